"""A Bedrock turn as a model that owns its outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

import anyio
import pytest
from tests.loop.builders import ASKED, COST, call, check_paired, look, says, script, sent, working

from neurolink_mw import Middleware, wrap_model
from neurolink_mw.errors import ConfigError, PolicyDenied, ProviderTimeoutError, RateLimitError, TurnError
from neurolink_mw.middlewares.timeout import Timeout
from neurolink_mw.protocol import (
    CallContext,
    CallOptions,
    Finish,
    FinishReason,
    GenerateResult,
    Kind,
    LanguageModel,
    StreamPart,
    StreamResult,
    StreamStart,
    Text,
    TextDelta,
    TextPart,
    TextStart,
    UserMessage,
    collect,
    user,
)
from neurolink_mw.providers.bedrock.agentic_loop import AgenticLoopResult
from neurolink_mw.providers.bedrock.turn_model import BedrockTurnModel
from neurolink_mw.roles import Observer, ResponsePolicy, TextTransform, Verdict, View, allow, deny
from neurolink_mw.testing import HOLD, ScriptedModel, check_stream

pytestmark = pytest.mark.anyio

BOTH = COST + COST


def two_steps() -> ScriptedModel:
    return script(says("Let me look.", call()), says("Rain.", reason="stop"))


@dataclass
class Played:
    answer: GenerateResult
    loop: AgenticLoopResult | None

    @property
    def ran(self) -> AgenticLoopResult:
        assert self.loop is not None
        return self.loop


class Drive(Protocol):
    def __call__(self, turn: BedrockTurnModel, options: CallOptions = ..., /) -> Awaitable[Played]: ...


async def generated(turn: BedrockTurnModel, options: CallOptions = ASKED) -> Played:
    made = await turn.run_generate(options)
    return Played(made.answer, made.loop)


async def streamed(turn: BedrockTurnModel, options: CallOptions = ASKED) -> Played:
    made = await turn.run_stream(options)
    parts = [part async for part in made.stream]
    check_stream(parts)
    return Played(collect(parts), made.loop)


both_ways = pytest.mark.parametrize("drive", [generated, streamed])


class Around(Middleware):
    """Does to the answer of a turn what `change` does to its finish reason, usage and content."""

    def __init__(self, change: Callable[[GenerateResult], GenerateResult]) -> None:
        self.change = change

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return self.change(await model.do_generate(options))

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        result = await model.do_stream(options)
        parts = [part async for part in result.stream]
        return StreamResult.of(self.change(collect(parts)))


# -- who owns the outcome


@both_ways
async def test_a_turn_is_an_answer_like_any_other(drive: Drive) -> None:
    played = await drive(BedrockTurnModel(two_steps(), tools=[look]))
    assert played.answer.text == "Let me look.Rain."
    assert played.answer.usage == BOTH
    assert played.answer.finish_reason == FinishReason("stop")
    assert played.ran.text == "Rain."
    assert [one.status for one in played.ran.tool_executions] == ["ok"]


@both_ways
async def test_a_middleware_may_replace_the_content_and_not_what_happened(drive: Drive) -> None:
    lies = Around(
        lambda answer: answer.replace(content=[Text("Sun.")], finish_reason=FinishReason("length"), usage=COST)
    )
    played = await drive(BedrockTurnModel(two_steps(), tools=[look], middlewares=[lies]))
    assert played.answer.text == "Sun."
    assert played.answer.finish_reason == FinishReason("stop")
    assert played.answer.usage == BOTH
    assert played.ran.text == "Rain."


@both_ways
async def test_metadata_that_a_middleware_adds_stays_and_the_mark_of_the_turn_too(drive: Drive) -> None:
    adds = Around(lambda answer: answer.replace(provider_metadata={"mine": {"a": 1}}))
    played = await drive(BedrockTurnModel(two_steps(), tools=[look], middlewares=[adds]))
    metadata = played.answer.provider_metadata
    assert metadata is not None
    assert metadata["mine"] == {"a": 1}
    mark = metadata["neurolink_mw"]
    assert isinstance(mark, dict)
    turn = mark["turn"]
    assert isinstance(turn, dict)
    assert (turn["steps"], turn["stopped_by"]) == (2, "answer")


class Answers(Middleware):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return says("From the cache.")

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return StreamResult.of(says("From the cache."))


@both_ways
async def test_where_no_loop_ran_the_middleware_s_answer_stands(drive: Drive) -> None:
    model = two_steps()
    played = await drive(BedrockTurnModel(model, tools=[look], middlewares=[Answers()]))
    assert (played.answer.text, played.answer.usage, played.loop) == ("From the cache.", COST, None)
    assert len(model.calls) == 0


class Recovers(Middleware):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        try:
            return await model.do_generate(options)
        except (RateLimitError, TurnError):
            return says("Later.").replace(finish_reason=FinishReason("other"))

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        try:
            return await model.do_stream(options)
        except (RateLimitError, TurnError):
            return StreamResult.of(says("Later.").replace(finish_reason=FinishReason("other")))


@both_ways
async def test_a_middleware_that_recovers_from_a_failure_keeps_its_answer(drive: Drive) -> None:
    played = await drive(BedrockTurnModel(script(RateLimitError("slow")), middlewares=[Recovers()]))
    assert (played.answer.text, played.answer.finish_reason.unified, played.loop) == ("Later.", "other", None)


class Twice(Middleware):
    """Has the turn run twice and returns the answer of one run, by its number."""

    def __init__(
        self, returned: int, change: Callable[[GenerateResult], GenerateResult] = lambda answer: answer
    ) -> None:
        self.returned = returned
        self.change = change

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        runs = [await model.do_generate(options) for _ in range(2)]
        return self.change(runs[self.returned])

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        runs = [collect([part async for part in (await model.do_stream(options)).stream]) for _ in range(2)]
        return StreamResult.of(self.change(runs[self.returned]))


@both_ways
@pytest.mark.parametrize("returned", [0, 1])
async def test_of_several_runs_the_one_counts_whose_answer_was_returned(drive: Drive, returned: int) -> None:
    model = script(says("One."), says("Two.", call()), says("Three."))
    say_less = Twice(returned, lambda answer: answer.replace(content=[Text("Hm.")]))
    played = await drive(BedrockTurnModel(model, tools=[look], middlewares=[say_less]))
    assert played.ran.text == ("One." if returned == 0 else "Three.")
    assert played.answer.usage == (COST if returned == 0 else BOTH)


@both_ways
async def test_of_answers_that_come_from_no_run_the_last_that_ended_counts(drive: Drive) -> None:
    model = script(says("One."), says("Two."))
    makes_one_up = Twice(0, lambda answer: says("Mine."))
    played = await drive(BedrockTurnModel(model, middlewares=[makes_one_up]))
    assert (played.answer.text, played.ran.text) == ("Mine.", "Two.")


class Ledger(Observer):
    """What each call cost, as its outcome has it."""

    def __init__(self) -> None:
        self.spent: list[object] = []

    def on_outcome(self, outcome: Any) -> None:
        self.spent.append(outcome.usage)


@both_ways
async def test_what_stands_around_the_steps_sees_every_run(drive: Drive) -> None:
    ledger = Ledger()
    model = wrap_model(script(says("One."), says("Two.")), [ledger])
    await drive(BedrockTurnModel(model, middlewares=[Twice(1)]))
    assert ledger.spent == [COST, COST]


# -- refusals and policies


class NoRain(ResponsePolicy):
    def check(self, view: View) -> Verdict:
        return deny("weather", "Not about the weather.") if "Rain" in view.text else allow()


class Refuses(Middleware):
    """Refuses the turn when it has its answer."""

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        await model.do_generate(options)
        raise options.context.deny("weather", "Not about the weather.")

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        async for _ in (await model.do_stream(options)).stream:
            pass
        raise options.context.deny("weather", "Not about the weather.")


@both_ways
async def test_a_refusal_alone_wins_over_the_reason_and_nothing_that_was_said_is_told(drive: Drive) -> None:
    played = await drive(BedrockTurnModel(two_steps(), tools=[look], middlewares=[Refuses()]))
    assert played.answer.finish_reason == FinishReason("content-filter", "stop")
    assert (played.answer.text, played.answer.usage) == ("Not about the weather.", BOTH)
    assert [one.status for one in played.ran.tool_executions] == ["ok"]
    assert played.ran.text == ""
    assert "Rain" not in str([getattr(message, "content", "") for message in played.ran.messages])
    check_paired(played.ran.messages)


@both_ways
@pytest.mark.parametrize("around", [[], [Around(lambda answer: answer)]], ids=["alone", "within a chain"])
async def test_what_a_policy_of_a_step_refuses_ends_the_turn_and_tells_what_tools_did(
    drive: Drive, around: list[Middleware]
) -> None:
    model = wrap_model(two_steps(), [NoRain()])
    played = await drive(BedrockTurnModel(model, tools=[look], middlewares=around))
    assert (played.answer.finish_reason.unified, played.ran.finish_reason.unified) == ("content-filter",) * 2
    assert played.answer.text.endswith("Not about the weather.")
    assert [one.status for one in played.ran.tool_executions] == ["ok"]
    assert played.ran.stop_reason is None
    check_paired(played.ran.messages)


class Stars(TextTransform):
    lookahead = 6

    def transform(self, text: str) -> str:
        return text.replace("secret", "******")


@both_ways
async def test_what_a_guard_of_the_steps_takes_out_is_in_no_history(drive: Drive) -> None:
    model = script(says("A secret.", call()), says("Done."))
    played = await drive(BedrockTurnModel(wrap_model(model, [Stars()]), tools=[look]))
    assert played.answer.text == "A ******.Done."
    for messages in (played.ran.messages, sent(model, 1).prompt):
        said = messages[1].content[0]
        assert getattr(said, "text", None) == "A ******."


class NoLooking(ResponsePolicy):
    sees = ("tool_input",)

    def check(self, view: View) -> Verdict:
        return deny("no", "Not that.")


@both_ways
async def test_a_guard_of_the_turn_that_denies_a_call_stops_the_tool_before_it_runs(drive: Drive) -> None:
    tool = working("look", lambda given: pytest.fail("it ran"))
    turn = BedrockTurnModel(two_steps(), tools=[tool], middlewares=[NoLooking()])
    played = await drive(turn)
    assert [one.status for one in played.ran.tool_executions] == ["denied"]
    assert played.answer.finish_reason.unified == "stop"


class Rewrites(Middleware):
    async def transform_params(self, options: CallOptions, kind: object, model: object) -> CallOptions:
        return options.replace(prompt=[user("And tomorrow?")], top_p=0.0)


@both_ways
async def test_what_a_middleware_changes_of_the_request_reaches_every_step(drive: Drive) -> None:
    model = two_steps()
    await drive(BedrockTurnModel(model, tools=[look], middlewares=[Rewrites()]))
    for step in (0, 1):
        assert sent(model, step).prompt[0] == user("And tomorrow?")
        assert sent(model, step).top_p == 0.0


# -- leaving


class Watches(Middleware):
    """Stands there and changes nothing."""

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return await model.do_stream(options)


BEGUN: list[StreamPart] = [StreamStart(), TextStart("0"), TextDelta("0", "Ha")]


async def test_a_middleware_s_deadline_ends_the_turn() -> None:
    model = script(says(call()), [*BEGUN, HOLD])
    made = await BedrockTurnModel(model, tools=[look], middlewares=[Timeout(call=0.05)]).run_stream(ASKED)
    with pytest.raises(ProviderTimeoutError):
        async for _ in made.stream:
            pass
    assert model.calls[1].closed == 1


async def test_the_caller_s_cancellation_composes_with_a_middleware_s_deadline() -> None:
    waits = anyio.Event()

    async def hangs(given: object) -> None:
        waits.set()
        await anyio.sleep_forever()

    turn = BedrockTurnModel(
        script(says(call("c1", "hangs"))), tools=[working("hangs", hangs)], middlewares=[Timeout(call=60)]
    )
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:

            async def leave() -> None:
                await waits.wait()
                scope.cancel()

            tasks.start_soon(leave)
            await turn.do_generate(ASKED)
    assert scope.cancelled_caught


async def test_closing_the_stream_closes_that_of_the_step() -> None:
    model = script([*BEGUN, HOLD])
    async with (await BedrockTurnModel(model, middlewares=[Watches()]).do_stream(ASKED)).stream as parts:
        async for part in parts:
            if isinstance(part, TextDelta):
                break
    assert model.calls[0].closed == 1


async def test_a_failure_keeps_what_was_done() -> None:
    with pytest.raises(TurnError) as caught:
        await BedrockTurnModel(script(says(call()), RateLimitError("slow")), tools=[look]).do_generate(ASKED)
    assert len(caught.value.steps) == 1


async def test_a_stream_that_fails_ends_with_the_failure() -> None:
    made = await BedrockTurnModel(script(says(call()), RateLimitError("slow")), tools=[look]).run_stream(ASKED)
    parts = [part async for part in made.stream]
    assert isinstance(parts[-1], Finish)
    assert parts[-1].finish_reason.unified == "error"
    assert made.loop is not None
    assert isinstance(made.loop.error, TurnError)
    assert [one.status for one in made.loop.tool_executions] == ["ok"]
    assert [message["role"] for message in made.loop.conversation] == ["user", "assistant", "user"]


async def test_a_stream_has_no_outcome_before_its_end() -> None:
    made = await BedrockTurnModel(two_steps(), tools=[look]).run_stream(ASKED)
    with pytest.raises(ConfigError, match="to the end"):
        _ = made.loop
    await made.stream.aclose()


async def test_a_stream_that_is_closed_tells_how_far_the_loop_came() -> None:
    model = script(says(call()), [StreamStart(), TextStart("t"), TextDelta("t", "Ra"), HOLD])
    made = await BedrockTurnModel(model, tools=[look]).run_stream(ASKED)
    async with made.stream:
        async for part in made.stream:
            if isinstance(part, TextDelta):
                break
    assert made.loop is not None
    assert made.loop.aborted
    assert [one.status for one in made.loop.tool_executions] == ["ok"]


@both_ways
async def test_a_finish_that_a_middleware_calls_an_error_is_none_of_the_loop_s(drive: Drive) -> None:
    lies = Around(lambda answer: answer.replace(finish_reason=FinishReason("error"), usage=COST))
    played = await drive(BedrockTurnModel(two_steps(), tools=[look], middlewares=[lies]))
    assert (played.answer.finish_reason.unified, played.answer.usage) == ("stop", BOTH)


class NoSecrets(ResponsePolicy):
    id = "no-secrets"

    def check(self, view: View) -> Verdict:
        return deny("secret", "No.") if "SECRET" in view.text else allow()


class OfSteps(ResponsePolicy):
    """Without one at the steps, none may stand around a turn."""

    id = "of-steps"

    def check(self, view: View) -> Verdict:
        return allow()


class FallsBack(Middleware):
    """Answers by itself where what is further in was denied."""

    id = "falls-back"
    sees_denials = True

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        try:
            return await model.do_generate(options)
        except PolicyDenied:
            return says("Something else.", reason="stop")

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        try:
            result = await model.do_stream(options)
            parts = [part async for part in result.stream]
        except PolicyDenied:
            return StreamResult.of(says("Something else.", reason="stop"))
        return StreamResult.of(collect(parts))


@both_ways
async def test_what_was_denied_is_told_nowhere_also_where_a_fallback_answers(drive: Drive) -> None:
    model = wrap_model(script(says("SECRET one", call()), says("SECRET two", reason="stop")), [OfSteps()])
    played = await drive(BedrockTurnModel(model, tools=[look], middlewares=[FallsBack(), NoSecrets()]))
    assert played.answer.text == "Something else."
    assert played.ran.text == ""
    assert "SECRET" not in repr([(step.text, step.content) for step in played.ran.steps])
    assert "SECRET" not in repr(played.ran.conversation)
    assert [one.status for one in played.ran.tool_executions] == ["ok"]


class AsksAgain(FallsBack):
    """Asks once more where what is further in was denied."""

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        try:
            return await model.do_generate(options)
        except PolicyDenied:
            return await model.do_generate(options)

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        try:
            return StreamResult.of(collect([part async for part in (await model.do_stream(options)).stream]))
        except PolicyDenied:
            return await model.do_stream(options)


@both_ways
async def test_a_run_after_one_that_was_denied_is_told(drive: Drive) -> None:
    model = wrap_model(script(says("SECRET", reason="stop"), says("Clean.", reason="stop")), [OfSteps()])
    played = await drive(BedrockTurnModel(model, middlewares=[AsksAgain(), NoSecrets()]))
    assert (played.answer.text, played.ran.text) == ("Clean.", "Clean.")


# -- several at once


@both_ways
async def test_two_turns_on_one_model_never_see_each_other(drive: Drive) -> None:
    class Echo:
        provider, model_id = "echo", "echo-1"

        async def do_generate(self, options: CallOptions) -> GenerateResult:
            await anyio.lowlevel.checkpoint()
            (first,) = (one for one in options.prompt if isinstance(one, UserMessage))
            if len(options.prompt) == 1:
                return says(call())
            return says(*(part.text for part in first.content if isinstance(part, TextPart)))

        async def do_stream(self, options: CallOptions) -> StreamResult:
            return StreamResult.of(await self.do_generate(options))

    turn = BedrockTurnModel(Echo(), tools=[look], middlewares=[Around(lambda answer: answer)])
    played: dict[str, Played] = {}

    async def play(text: str) -> None:
        run = generated if drive is generated else streamed
        played[text] = await run(turn, CallOptions.from_text(text))

    async with anyio.create_task_group() as tasks:
        for n in range(20):
            tasks.start_soon(play, f"question {n}")
    for text, one in played.items():
        assert (one.answer.text, one.ran.text, len(one.ran.steps)) == (text, text, 2)


async def test_options_that_a_middleware_makes_from_scratch_are_of_the_same_call() -> None:
    class FromScratch(Middleware):
        async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
            return await model.do_generate(CallOptions(options.prompt))

    played = await generated(BedrockTurnModel(two_steps(), tools=[look], middlewares=[FromScratch()]))
    assert played.ran.text == "Rain."


def test_a_turn_shows_its_model_and_no_more() -> None:
    assert "Umbrella" not in repr(BedrockTurnModel(two_steps(), tools=[look]))


@both_ways
async def test_two_calls_of_one_request_never_see_each_other(drive: Drive) -> None:
    """As of a tool that asks a specialist, twice at a time."""

    class Echo:
        provider, model_id = "echo", "echo-1"

        async def do_generate(self, options: CallOptions) -> GenerateResult:
            await anyio.lowlevel.checkpoint()
            (first,) = (one for one in options.prompt if isinstance(one, UserMessage))
            (part,) = (one for one in first.content if isinstance(one, TextPart))
            return says(part.text, reason="stop")

        async def do_stream(self, options: CallOptions) -> StreamResult:
            return StreamResult.of(await self.do_generate(options))

    class Waits(Middleware):
        """Forgets the metadata, so that only the records tell which run it was."""

        async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
            return options

        async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
            return (await model.do_generate(options)).replace(provider_metadata=None)

        async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
            result = await model.do_stream(options)
            return StreamResult.of(collect([part async for part in result.stream]).replace(provider_metadata=None))

    turn = BedrockTurnModel(Echo(), middlewares=[Waits()])
    context = CallContext()
    told: dict[str, str] = {}

    async def ask(text: str) -> None:
        played = await drive(turn, CallOptions.from_text(text).replace(context=context))
        told[played.answer.text] = played.ran.text

    async with anyio.create_task_group() as tasks:
        for text in "ABCD":
            tasks.start_soon(ask, text)
    assert told == {text: text for text in "ABCD"}


@both_ways
async def test_an_answer_that_was_kept_from_another_call_is_not_taken_for_a_run_of_this_one(drive: Drive) -> None:
    kept: list[GenerateResult] = []

    class Stale(Around):
        """Has the loop run twice, and returns what an earlier call was answered."""

        def __init__(self) -> None:
            super().__init__(lambda answer: answer)

        async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
            answer = await super().wrap_generate(model, options)
            if not kept:
                kept.append(answer)
                return answer
            await super().wrap_generate(model, options)
            return kept[0]

        async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
            return StreamResult.of(await self.wrap_generate(model, options))

    model = script(*(says(f"run {number}", reason="stop") for number in range(3)))
    turn = BedrockTurnModel(model, middlewares=[Stale()])
    await drive(turn)
    assert (await drive(turn)).ran.text == "run 2"
