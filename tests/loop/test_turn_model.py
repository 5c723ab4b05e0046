"""A turn as a model, and what stands around it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import pytest

from neurolink_mw import Middleware, Outcome, When, wrap_model
from neurolink_mw.errors import ConfigError, PolicyDenied, TurnError
from neurolink_mw.events import CallEnded, Event, StepEnded, ToolExecuted
from neurolink_mw.loop import TurnModel, messages_of
from neurolink_mw.pipeline import Surroundings, Use
from neurolink_mw.protocol import (
    AssistantMessage,
    CallOptions,
    ErrorJsonOutput,
    ErrorTextOutput,
    ExecutionDenied,
    GenerateResult,
    LanguageModel,
    OutputImageData,
    PartStream,
    Reasoning,
    StreamPart,
    StreamResult,
    Text,
    TextPart,
    ToolApprovalResponsePart,
    ToolCall,
    ToolCallPart,
    ToolMessage,
    ToolOutcome,
    ToolResult,
    ToolRunner,
    collect,
)
from neurolink_mw.roles import (
    Hold,
    Observer,
    Pass,
    RequestPolicy,
    ResponsePolicy,
    Verdict,
    View,
    Window,
    allow,
    deny,
    flag,
    replace,
)
from neurolink_mw.testing import ScriptedModel, check_stream

from .builders import ASKED, COST, call, check_paired, look, outputs, says, script, sent, working

pytestmark = pytest.mark.anyio

Ask = Callable[[LanguageModel, CallOptions], Awaitable[GenerateResult]]


async def _generated(model: LanguageModel, options: CallOptions) -> GenerateResult:
    return await model.do_generate(options)


async def _streamed(model: LanguageModel, options: CallOptions) -> GenerateResult:
    parts = [part async for part in (await model.do_stream(options)).stream]
    check_stream(parts)
    return collect(parts)


both_calls = pytest.mark.parametrize("ask", [_generated, _streamed])


class Outcomes(Observer):
    def __init__(self) -> None:
        super().__init__()
        self.all: list[Outcome] = []

    def on_outcome(self, outcome: Outcome) -> None:
        self.all.append(outcome)


def two_steps() -> ScriptedModel:
    return script(says(Reasoning("Hm."), "Looking.", call("c1", at="sea")), says("It is blue."))


# -- its answer


@both_calls
async def test_the_answer_is_that_of_all_steps_with_the_turns_own_calls_and_results_in_between(ask: Ask) -> None:
    answer = await ask(TurnModel(two_steps(), [look]), ASKED)
    assert [one.type for one in answer.content] == ["reasoning", "text", "tool-call", "tool-result", "text"]
    made, result = answer.content[2:4]
    assert isinstance(made, ToolCall)
    assert (made.tool_call_id, made.provider_executed) == ("0-c1", True)
    assert isinstance(result, ToolResult)
    assert (result.tool_call_id, result.result) == ("0-c1", "saw sea")
    for one in (made, result):
        assert "neurolink_mw" in (one.provider_metadata or {})


@both_calls
async def test_usage_is_a_sum_and_says_so(ask: Ask) -> None:
    answer = await ask(TurnModel(two_steps(), [look]), ASKED)
    assert answer.usage == COST + COST
    assert (answer.provider_metadata or {})["neurolink_mw"] == {"turn": {"steps": 2, "stopped_by": "answer"}}


async def test_generated_and_streamed_answers_are_the_same() -> None:
    generated = await _generated(TurnModel(two_steps(), [look]), ASKED)
    streamed = await _streamed(TurnModel(two_steps(), [look]), ASKED)
    assert streamed == generated


async def test_ids_of_a_stream_tell_the_step() -> None:
    stream = (await TurnModel(two_steps(), [look]).do_stream(ASKED)).stream
    ids = {part.id async for part in stream if hasattr(part, "id") and part.type != "response-metadata"}
    assert ids == {"0-0", "0-1", "0-c1", "1-0"}


@both_calls
async def test_the_answer_becomes_messages_again_with_the_models_own_ids(ask: Ask) -> None:
    answer = await ask(TurnModel(two_steps(), [look]), ASKED)
    messages = messages_of(answer.content)
    assert [message.role for message in messages] == ["assistant", "tool", "assistant"]
    check_paired(messages)
    assert outputs(messages) == {"c1": ("text", "saw sea")}
    assert messages[-1] == AssistantMessage((TextPart("It is blue."),))


@both_calls
@pytest.mark.parametrize(
    "output",
    [
        "text",
        {"a": [1, None]},
        None,
        ExecutionDenied("no"),
        ErrorTextOutput("broken"),
        ErrorJsonOutput({"code": 3}),
        OutputImageData(b"png", "image/png"),
    ],
)
async def test_results_of_every_kind_become_what_they_were(ask: Ask, output: object) -> None:
    turn = TurnModel(script(says(call("c1", "give")), "done"), [working("give", lambda given: output)])
    answer = await ask(turn, ASKED)
    again = TurnModel(script(says(call("c1", "give")), "done"), [working("give", lambda given: output)])
    model = again.model
    await again.do_generate(ASKED)
    assert isinstance(model, ScriptedModel)
    in_conversation = sent(model, 1).prompt[-1]
    assert isinstance(in_conversation, ToolMessage)
    assert messages_of(answer.content)[1] == in_conversation


async def test_one_turn_model_serves_any_number_of_turns_at_once() -> None:
    turn = TurnModel(ScriptedModel([says(call("c1")), "done"] * 2, repeat=True), [look])
    first, second = await turn.do_generate(ASKED), await turn.do_generate(ASKED)
    assert first == second


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="a turn needs a model"):
        TurnModel("gpt-5", [look])  # type: ignore[arg-type]  # what it is about


def test_a_misspelt_setting_is_named() -> None:
    with pytest.raises(TypeError, match="max_steps"):
        TurnModel(script(), [look], max_step=3)  # type: ignore[call-arg]  # what it is about


# -- accounts


@both_calls
@pytest.mark.parametrize("wrapped", [False, True])
async def test_a_turn_is_one_attempt_of_as_many_model_calls_as_it_has_steps(ask: Ask, wrapped: bool) -> None:
    outer, inner = Outcomes(), Outcomes()
    model: LanguageModel = two_steps()
    if wrapped:
        model = wrap_model(model, [inner])
    await ask(wrap_model(TurnModel(model, [look]), [outer]), ASKED)
    (outcome,) = outer.all
    assert (outcome.status, outcome.attempts, outcome.model_calls) == ("ok", 1, 2)
    assert outcome.usage == outcome.answer_usage == COST + COST
    assert [one.context.step for one in inner.all] == ([0, 1] if wrapped else [])


class Flags(RequestPolicy):
    """Needs a scope of its own, around each step."""

    def check(self, request: object) -> Verdict:
        return flag("seen")


@both_calls
async def test_what_is_found_at_the_steps_stands_in_the_outcome_of_the_turn(ask: Ask) -> None:
    outer = Outcomes()
    await ask(wrap_model(TurnModel(wrap_model(two_steps(), [Flags()]), [look]), [outer]), ASKED)
    assert [one.code for one in outer.all[0].findings if hasattr(one, "code")] == ["seen", "seen"]


@both_calls
async def test_plugins_hear_of_steps_and_tools(ask: Ask) -> None:
    told: list[Event] = []
    model = wrap_model(two_steps(), [Flags()], surroundings=Surroundings(events=told.append))
    await ask(TurnModel(model, [look]), ASKED)
    steps = [(one.step, one.finish_reason, one.tool_calls) for one in told if isinstance(one, StepEnded)]
    assert steps == [(0, "tool-calls", 1), (1, "stop", 0)]
    (ran,) = (one for one in told if isinstance(one, ToolExecuted))
    assert (ran.tool_name, ran.tool_call_id, ran.status, ran.step) == ("look", "c1", "ok", 0)
    assert len({one.request_id for one in told}) == 1
    assert sum(isinstance(one, CallEnded) for one in told) == 2


@both_calls
async def test_a_pipeline_around_the_turn_tells_its_plugins(ask: Ask) -> None:
    told: list[Event] = []
    turn = wrap_model(TurnModel(two_steps(), [look]), [Flags()], surroundings=Surroundings(events=told.append))
    await ask(turn, ASKED)
    assert sum(isinstance(one, ToolExecuted) for one in told) == 1
    assert sum(isinstance(one, CallEnded) for one in told) == 1


# -- denied calls


class NoLargeSums(ResponsePolicy):
    """Denies calls that pay too much, and counts how often it was asked about one."""

    def __init__(self, verdict: Callable[[], Verdict] | None = None, **settings: Any) -> None:
        super().__init__()
        self.verdict = verdict or (lambda: deny("too-much", "That is too much."))
        self.asked = 0
        for name, value in settings.items():
            setattr(self, name, value)

    def check(self, view: View) -> Verdict:
        if view.tool_call is None:
            return allow()
        self.asked += 1
        return self.verdict() if json.loads(view.text)["sum"] > 100 else allow()


class Till:
    def __init__(self) -> None:
        self.paid: list[int] = []
        self.tool = working("pay", self.pay)

    def pay(self, given: dict[str, int]) -> str:
        self.paid.append(given["sum"])
        return "paid"


def buying() -> ScriptedModel:
    return script(says("Paying.", call("c1", "pay", sum=5), call("c2", "pay", sum=500)), "Done.")


MODES = pytest.mark.parametrize("mode", [Hold(), Window(5), Pass()])


def around(where: str, model: ScriptedModel, till: Till, policies: Sequence[ResponsePolicy]) -> LanguageModel:
    """The policies around the steps, around the turn, or one around the other around the turn."""
    if where == "steps":
        return TurnModel(wrap_model(model, policies), [till.tool])
    turn: LanguageModel = TurnModel(model, [till.tool])
    for policy in policies:
        turn = wrap_model(turn, [policy], lint="off")
    return turn


@both_calls
@MODES
@pytest.mark.parametrize("where", ["steps", "turn"])
async def test_a_denied_call_is_not_run_and_the_turn_goes_on(ask: Ask, mode: Any, where: str) -> None:
    till, model, policy = Till(), buying(), NoLargeSums(streaming=mode)
    answer = await ask(around(where, model, till, [policy]), ASKED)
    assert till.paid == [5]
    assert outputs(sent(model, 1).prompt) == {"c1": ("text", "paid"), "c2": ("execution-denied", "That is too much.")}
    assert answer.finish_reason.unified == "stop"
    denied = [one for one in answer.content if isinstance(one, ToolCall)][1]
    mark = (denied.provider_metadata or {})["neurolink_mw"]
    assert isinstance(mark, dict)
    assert mark["denied"] == {"code": "too-much", "message": "That is too much."}


@both_calls
@MODES
@pytest.mark.parametrize("where", ["steps", "turn"])
async def test_each_call_is_asked_about_once(ask: Ask, mode: Any, where: str) -> None:
    till, policy = Till(), NoLargeSums(streaming=mode)
    await ask(around(where, buying(), till, [policy]), ASKED)
    assert policy.asked == 2


@both_calls
@MODES
@pytest.mark.parametrize("outermost", [False, True])
async def test_with_policies_around_each_other_each_verdict_comes_before_the_tool_runs(
    ask: Ask, mode: Any, outermost: bool
) -> None:
    till, model = Till(), buying()
    policies = [NoLargeSums(streaming=mode), NoLargeSums(allow, streaming=mode)]
    await ask(around("turn", model, till, policies[::-1] if outermost else policies), ASKED)
    assert till.paid == [5]


@both_calls
@pytest.mark.parametrize("where", ["steps", "turn"])
async def test_a_replaced_input_is_what_runs(ask: Ask, where: str) -> None:
    till = Till()
    policy = NoLargeSums(lambda: replace('{"sum": 100}'))
    await ask(around(where, buying(), till, [policy]), ASKED)
    assert sorted(till.paid) == [5, 100]


@both_calls
@pytest.mark.parametrize("where", ["steps", "turn"])
async def test_a_policy_that_cannot_decide_on_a_call_lets_nothing_run(ask: Ask, where: str) -> None:
    till = Till()

    def fails() -> Verdict:
        raise RuntimeError

    answer = await ask(around(where, buying(), till, [NoLargeSums(fails)]), ASKED)
    assert 500 not in till.paid
    assert answer.finish_reason.unified == "content-filter"


@both_calls
@pytest.mark.parametrize("where", ["steps", "turn"])
async def test_a_call_that_the_conversation_brings_along_is_judged_too(ask: Ask, where: str) -> None:
    till, model = Till(), script("Done.")
    till.tool = working("pay", till.pay, needs_approval=True)
    history = (*ASKED.prompt, AssistantMessage([ToolCallPart("c1", "pay", {"sum": 500})]))
    approved = ToolMessage([ToolApprovalResponsePart("approval-c1", True)])
    await ask(around(where, model, till, [NoLargeSums()]), CallOptions((*history, approved)))
    assert till.paid == []
    assert outputs(sent(model, 0).prompt) == {"c1": ("execution-denied", "That is too much.")}


async def test_where_a_policy_around_the_turn_cannot_decide_the_turn_ends_there_in_both() -> None:
    def fails() -> Verdict:
        raise RuntimeError

    asked = []
    for ask in (_generated, _streamed):
        till, model = Till(), buying()
        await ask(around("turn", model, till, [NoLargeSums(fails)]), ASKED)
        asked.append((len(model.calls), 500 in till.paid))
    assert asked == [(1, False)] * 2


def test_a_policy_that_judges_calls_alone_may_stand_around_the_turn_alone() -> None:
    wrap_model(TurnModel(buying(), []), [NoLargeSums(sees=("tool_input",))])
    with pytest.raises(ConfigError, match="judges the answer of a whole turn only"):
        wrap_model(TurnModel(buying(), []), [NoLargeSums()])


async def test_under_hold_a_call_of_the_turn_leaves_on_its_own_verdict_and_text_waits() -> None:
    till = Till()
    turn = wrap_model(TurnModel(buying(), [till.tool]), [NoLargeSums()], lint="off")
    seen: list[tuple[str, int]] = []
    async for part in (await turn.do_stream(ASKED)).stream:
        seen.append((part.type, len(till.paid)))
    kinds = [kind for kind, _ in seen]
    assert kinds.index("tool-call") < kinds.index("text-delta")
    assert ("tool-call", 0) in seen


@both_calls
async def test_in_shadow_a_policy_around_the_turn_records_and_changes_nothing(ask: Ask) -> None:
    till, outcomes = Till(), Outcomes()
    turn = TurnModel(buying(), [till.tool])
    await ask(wrap_model(turn, [Use(NoLargeSums(), mode="shadow"), outcomes], lint="off"), ASKED)
    assert sorted(till.paid) == [5, 500]
    assert [one.code for one in outcomes.all[0].findings if hasattr(one, "code")] == ["too-much"]


class Refuses(Middleware):
    """Refuses the whole call where it sees a tool called."""

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        async def watch(parts: PartStream) -> Any:
            async for part in parts:
                if isinstance(part, ToolCall):
                    raise options.context.deny("no-tools", "No tools here.")
                yield part

        return (await model.do_stream(options)).through(watch)


async def test_a_layer_that_denies_on_a_tool_call_part_stops_the_tool_before_it_runs() -> None:
    till = Till()
    answer = await _streamed(wrap_model(TurnModel(buying(), [till.tool]), [Refuses()]), ASKED)
    assert till.paid == []
    assert answer.finish_reason.unified == "content-filter"
    assert answer.content[-1] == Text("No tools here.")


@both_calls
async def test_what_is_denied_at_a_step_refuses_the_turn_that_is_around_it(ask: Ask) -> None:
    class NoBlue(ResponsePolicy):
        def check(self, view: View) -> Verdict:
            return deny("blue", "No.") if "blue" in view.text else allow()

    outer = Outcomes()
    turn = wrap_model(TurnModel(wrap_model(two_steps(), [NoBlue()]), [look]), [outer])
    answer = await ask(turn, ASKED)
    assert answer.finish_reason.unified == "content-filter"
    assert outer.all[0].status == "denied"


# -- turns in turns


@both_calls
async def test_a_turn_may_be_the_model_of_a_turn(ask: Ask) -> None:
    inner = TurnModel(script(says("Inner.", call("c1", at="inside")), "inner done"), [look])
    answer = await ask(TurnModel(inner, [look]), ASKED)
    assert [one.type for one in answer.content] == ["text", "tool-call", "tool-result", "text"]
    messages = messages_of(answer.content)
    check_paired(messages)
    assert outputs(messages) == {"c1": ("text", "saw inside")}


@both_calls
async def test_a_tool_may_be_a_turn(ask: Ask) -> None:
    agent = TurnModel(script(says(call("c1", at="inside")), "inner done"), [look])

    async def delegate(given: object) -> str:
        return (await agent.do_generate(ASKED)).text

    answer = await ask(TurnModel(script(says(call("c1", "delegate")), "done"), [working("delegate", delegate)]), ASKED)
    assert answer.text == "done"


# -- wrap_tool


class Notes(Middleware):
    """Notes the executions that it is around."""

    def __init__(self, id: str, journal: list[str]) -> None:
        super().__init__()
        self.id = id  # type: ignore[misc]  # a chain may have many of a kind
        self.journal = journal

    async def wrap_tool(self, tool: ToolRunner, call: ToolCall) -> ToolOutcome:
        self.journal.append(f"{self.id}>{tool.name}")
        outcome = await tool.run(call)
        self.journal.append(f"{self.id}<{outcome.status}")
        return outcome


@both_calls
async def test_hooks_around_the_turn_stand_outside_those_around_its_steps(ask: Ask) -> None:
    journal: list[str] = []
    steps = wrap_model(wrap_model(two_steps(), [Notes("inner", journal)]), [Notes("step", journal)])
    turn = wrap_model(wrap_model(TurnModel(steps, [look]), [Notes("turn", journal)]), [Notes("outer", journal)])
    await ask(turn, ASKED)
    into = ["outer>look", "turn>look", "step>look", "inner>look"]
    assert journal == [*into, "inner<ok", "step<ok", "turn<ok", "outer<ok"]


@both_calls
async def test_one_instance_runs_once_however_often_it_stands_there(ask: Ask) -> None:
    journal: list[str] = []
    both = Notes("both", journal)
    await ask(wrap_model(TurnModel(wrap_model(two_steps(), [both]), [look]), [both]), ASKED)
    assert journal == ["both>look", "both<ok"]


@both_calls
async def test_hooks_around_a_turn_further_in_are_not_around_the_tools_of_the_outer_one(ask: Ask) -> None:
    journal: list[str] = []
    inner = TurnModel(wrap_model(script(says(call("c1")), "x"), [Notes("inner", journal)]), [look])
    await ask(TurnModel(inner, [look]), ASKED)
    assert journal == ["inner>look", "inner<ok"]


@both_calls
async def test_what_is_not_run_is_not_wrapped(ask: Ask) -> None:
    journal: list[str] = []
    model = script(says(call("c1", "nope"), ToolCall("c2", "look", "{")), "done")
    await ask(TurnModel(wrap_model(model, [Notes("step", journal)]), [look]), ASKED)
    assert journal == []


class Change(Middleware):
    def __init__(self, fn: Callable[[ToolRunner, ToolCall], Awaitable[Any]]) -> None:
        super().__init__()
        self.fn = fn

    async def wrap_tool(self, tool: ToolRunner, call: ToolCall) -> ToolOutcome:
        outcome: ToolOutcome = await self.fn(tool, call)
        return outcome


async def run_with(ask: Ask, use: Middleware | Use, model: ScriptedModel | None = None) -> ScriptedModel:
    model = model or script(says(call("c1", at="sea")), "done")
    await ask(TurnModel(wrap_model(model, [use]), [look]), ASKED)
    return model


@both_calls
async def test_a_hook_may_change_the_input_the_output_or_answer_itself(ask: Ask) -> None:
    async def change_input(tool: ToolRunner, one: ToolCall) -> object:
        return await tool.run(one.replace(input='{"at": "land"}'))

    model = await run_with(ask, Change(change_input))
    assert outputs(sent(model, 1).prompt)["c1"] == ("text", "saw land")

    async def answer(tool: ToolRunner, one: ToolCall) -> object:
        return ToolOutcome(ExecutionDenied("closed"), "denied")

    model = await run_with(ask, Change(answer))
    assert outputs(sent(model, 1).prompt)["c1"] == ("execution-denied", "closed")


@both_calls
async def test_an_input_that_a_hook_makes_is_checked_too(ask: Ask) -> None:
    async def break_input(tool: ToolRunner, one: ToolCall) -> object:
        return await tool.run(one.replace(input='{"at": 3}'))

    model = await run_with(ask, Change(break_input))
    assert outputs(sent(model, 1).prompt)["c1"][0] == "error-text"


@both_calls
async def test_a_hook_sees_the_metadata_of_the_call(ask: Ask) -> None:
    seen: list[object] = []

    async def note(tool: ToolRunner, one: ToolCall) -> object:
        seen.append((tool.options.metadata, tool.options.context.step))
        return await tool.run(one)

    model = wrap_model(script(says(call("c1")), "done"), [Change(note)])
    await ask(TurnModel(model, [look]), ASKED.replace(metadata={"tenant": "t1"}))
    assert seen == [({"tenant": "t1"}, 0)]


@both_calls
async def test_a_hook_that_raises_policy_denied_denies_that_call_alone(ask: Ask) -> None:
    async def refuse(tool: ToolRunner, one: ToolCall) -> object:
        raise PolicyDenied("Not today.", code="closed")

    model = await run_with(ask, Change(refuse))
    assert outputs(sent(model, 1).prompt)["c1"] == ("execution-denied", "Not today.")


@both_calls
async def test_a_hook_may_refuse_the_whole_turn(ask: Ask) -> None:
    async def refuse(tool: ToolRunner, one: ToolCall) -> object:
        raise tool.options.context.deny("closed", "We are closed.")

    turn = wrap_model(TurnModel(two_steps(), [look]), [Change(refuse)])
    answer = await ask(turn, ASKED)
    assert answer.finish_reason.unified == "content-filter"
    assert answer.content[-1] == Text("We are closed.")


@both_calls
async def test_with_nothing_around_the_turn_a_hook_that_refuses_refuses_the_call_alone(ask: Ask) -> None:
    async def refuse(tool: ToolRunner, one: ToolCall) -> object:
        raise tool.options.context.deny("closed", "We are closed.")

    model = await run_with(ask, Change(refuse))
    assert outputs(sent(model, 1).prompt)["c1"] == ("execution-denied", "We are closed.")


@both_calls
async def test_with_nothing_around_the_turn_there_is_no_end_to_wait_for(ask: Ask) -> None:
    said: list[str] = []

    async def wait(tool: ToolRunner, one: ToolCall) -> object:
        with pytest.raises(ConfigError) as caught:
            tool.options.context.at_end(print)
        said.append(str(caught.value))
        return await tool.run(one)

    await run_with(ask, Change(wait))
    assert "turn_middlewares=" in said[0]


async def _fails(tool: ToolRunner, one: ToolCall) -> object:
    raise RuntimeError("secret")


async def _fails_afterwards(tool: ToolRunner, one: ToolCall) -> object:
    await tool.run(one)
    raise RuntimeError("secret")


async def _returns_nothing(tool: ToolRunner, one: ToolCall) -> object:
    await tool.run(one)
    return None


@both_calls
@pytest.mark.parametrize("fails", [_fails, _fails_afterwards, _returns_nothing])
async def test_with_on_error_skip_the_tool_runs_once_and_its_outcome_stands(
    ask: Ask, fails: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[object] = []

    def saw(given: object) -> str:
        ran.append(given)
        return "saw it"

    counted = working("look", saw)
    model = script(says(call("c1")), "done")
    await ask(TurnModel(wrap_model(model, [Use(Change(fails), on_error="skip")]), [counted]), ASKED)
    assert outputs(sent(model, 1).prompt)["c1"] == ("text", "saw it")
    assert len(ran) == 1
    assert "secret" not in caplog.text


@both_calls
@pytest.mark.parametrize("fails", [_fails, _returns_nothing])
async def test_with_on_error_deny_that_call_is_denied(ask: Ask, fails: Any) -> None:
    model = await run_with(ask, Use(Change(fails), on_error="deny"))
    assert outputs(sent(model, 1).prompt)["c1"][0] == "execution-denied"


@both_calls
async def test_a_hook_has_its_own_time_while_the_tool_runs_as_long_as_it_likes(ask: Ask) -> None:
    async def slow(given: object) -> str:
        await anyio.sleep(0.15)
        return "at last"

    async def hangs(tool: ToolRunner, one: ToolCall) -> object:
        outcome = await tool.run(one)
        await anyio.sleep_forever()
        return outcome

    async def passes(tool: ToolRunner, one: ToolCall) -> object:
        return await tool.run(one)

    for hook, expected in ((passes, "text"), (hangs, "execution-denied")):
        model = script(says(call("c1", "slow")), "done")
        use = Use(Change(hook), timeout=0.1, on_error="deny")
        await ask(TurnModel(wrap_model(model, [use]), [working("slow", slow)]), ASKED)
        assert outputs(sent(model, 1).prompt)["c1"][0] == expected


@both_calls
async def test_a_hook_that_fails_without_a_rule_fails_the_turn(ask: Ask) -> None:
    turn = TurnModel(wrap_model(two_steps(), [Change(_fails)]), [look])
    if ask is _generated:
        with pytest.raises(TurnError) as caught:
            await ask(turn, ASKED)
        assert isinstance(caught.value.__cause__, RuntimeError)
    else:
        parts: list[StreamPart] = [part async for part in (await turn.do_stream(ASKED)).stream]
        assert parts[-2].type == "error"


@both_calls
async def test_a_condition_of_the_place_decides_for_each_step(ask: Ask) -> None:
    journal: list[str] = []
    use = Use(Notes("step", journal), when=When(metadata={"tenant": "t1"}))
    for tenant in ("t1", "t2"):
        model = wrap_model(two_steps(), [use])
        await ask(TurnModel(model, [look]), ASKED.replace(metadata={"tenant": tenant}))
    assert journal == ["step>look", "step<ok"]
