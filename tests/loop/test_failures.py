"""What a turn raises, and what it keeps."""

from __future__ import annotations

import anyio
import pytest

from neurolink_mw import Middleware, wrap_model
from neurolink_mw.errors import (
    ConfigError,
    ContextOverflowError,
    PolicyDenied,
    RateLimitError,
    StreamInterruptedError,
    TurnError,
)
from neurolink_mw.loop import StepInfo, TurnModel, TurnRecord, run_generate_loop, run_stream_loop
from neurolink_mw.protocol import (
    CallOptions,
    ErrorPart,
    Finish,
    GenerateResult,
    LanguageModel,
    StreamStart,
    TextDelta,
    TextStart,
    to_json,
)
from neurolink_mw.roles import Hold, ResponsePolicy, Verdict, View, allow
from neurolink_mw.testing import HOLD, ScriptedModel

from .builders import ASKED, COST, Drive, both_ways, call, check_paired, generated, look, says, script, working

pytestmark = pytest.mark.anyio


@both_ways
async def test_what_fails_at_the_first_step_is_raised_as_it_is(drive: Drive) -> None:
    with pytest.raises(RateLimitError):
        await drive(script(RateLimitError("slow down")), tools=[look])


@both_ways
async def test_a_later_failure_carries_what_was_done(drive: Drive) -> None:
    model = script(says("Looking.", call()), RateLimitError("slow down"))
    with pytest.raises(TurnError, match="the turn failed after 1 step: slow down") as caught:
        await drive(model, tools=[look])
    error = caught.value
    assert isinstance(error.__cause__, RateLimitError)
    assert [step.text for step in error.steps] == ["Looking."]
    assert error.usage == COST
    assert [one.status for one in error.tool_executions] == ["ok"]
    check_paired(error.messages)
    assert len(error.messages) == 3


@both_ways
async def test_a_failed_turn_can_be_gone_on_with(drive: Drive) -> None:
    with pytest.raises(TurnError) as caught:
        await drive(script(says(call()), RateLimitError("slow down")), tools=[look])
    result = await drive(script("done"), CallOptions(caught.value.messages), tools=[look])
    assert result.text == "done"


@both_ways
async def test_a_turn_that_failed_after_a_tool_ran_is_not_tried_again_as_a_whole(drive: Drive) -> None:
    assert not getattr(TurnError("x"), "retryable", False)


@both_ways
async def test_a_refusal_is_raised_as_what_it_is(drive: Drive) -> None:
    with pytest.raises(PolicyDenied):
        await drive(script(says(call()), PolicyDenied("No.", code="no")), tools=[look])


@both_ways
async def test_a_stop_condition_that_fails_fails_the_turn(drive: Drive) -> None:
    def fails(steps: object) -> bool:
        raise ValueError("bad")

    with pytest.raises(TurnError) as caught:
        await drive(script(says(call())), tools=[look], stop_when=fails)
    check_paired(caught.value.messages)


@both_ways
async def test_a_model_that_returns_nothing_is_named(drive: Drive) -> None:
    class Nothing:
        provider, model_id = "no", "thing"

        async def do_generate(self, options: CallOptions) -> None:
            return None

        do_stream = do_generate

    with pytest.raises(ConfigError, match="returned NoneType, not a "):
        await drive(Nothing())


# -- deadline


@both_ways
async def test_a_turn_has_a_deadline(drive: Drive) -> None:
    with pytest.raises(TurnError, match=r"the turn was not done after 0\.05 s") as caught:
        await drive(script([HOLD]), deadline=0.05)
    assert isinstance(caught.value.__cause__, TimeoutError)


@both_ways
async def test_the_deadline_holds_while_tools_run_and_keeps_what_they_did(drive: Drive) -> None:
    async def hangs(given: object) -> None:
        await anyio.sleep_forever()

    model = script(says(call("c1"), call("c2", "hangs")))
    with pytest.raises(TurnError) as caught:
        await drive(model, tools=[look, working("hangs", hangs)], deadline=0.05)
    check_paired(caught.value.messages)
    assert [one.status for one in caught.value.tool_executions] == ["ok", "cancelled"]


async def test_the_deadline_holds_between_the_parts_of_a_stream() -> None:
    model = script([StreamStart(), TextStart("0"), TextDelta("0", "Hel"), HOLD])
    turn = await run_stream_loop(model, ASKED, deadline=0.05)
    parts = [part async for part in turn.stream]
    error, finish = parts[-2:]
    assert isinstance(error, ErrorPart)
    assert isinstance(error.error, TurnError)
    assert isinstance(finish, Finish)
    assert finish.finish_reason.unified == "error"
    assert model.calls[0].closed == 1


@both_ways
async def test_a_timeout_of_the_model_is_no_deadline(drive: Drive) -> None:
    with pytest.raises(TimeoutError, match="mine"):
        await drive(script(TimeoutError("mine")), deadline=60)


# -- too long


def overflow(**figures: int) -> ContextOverflowError:
    error = ContextOverflowError("too long")
    error.prompt_tokens, error.limit_tokens = figures.get("prompt"), figures.get("limit")
    return error


LONG = "\n".join(f"line {n} of something long" for n in range(1500))


@both_ways
async def test_a_prompt_that_is_too_long_is_shortened_and_tried_once_more(drive: Drive) -> None:
    reads = working("read", lambda given: LONG)
    model = script(*(says(call(f"c{n}", "read")) for n in range(4)), overflow(prompt=50_000, limit=40_000), "done")
    result = await drive(model, tools=[reads])
    assert result.text == "done"
    before, after = model.calls[4].options.prompt, model.calls[5].options.prompt
    assert len(str(_texts(after))) < len(str(_texts(before)))
    check_paired(after)
    check_paired(result.messages)


def _texts(prompt: object) -> object:
    return to_json(tuple(prompt))  # type: ignore[arg-type]


@both_ways
async def test_where_it_stays_too_long_the_error_has_the_figures(drive: Drive) -> None:
    reads = working("read", lambda given: LONG)
    model = script(*(says(call(f"c{n}", "read")) for n in range(4)), overflow(), overflow())
    with pytest.raises(TurnError) as caught:
        await drive(model, tools=[reads])
    cause = caught.value.__cause__
    assert isinstance(cause, ContextOverflowError)
    assert "tokens by our estimate" in str(cause)
    assert len(model.calls) == 6
    check_paired(caught.value.messages)


@both_ways
async def test_where_nothing_can_be_left_out_it_is_not_tried_again(drive: Drive) -> None:
    model = script(overflow())
    with pytest.raises(ContextOverflowError, match="nothing more can be left out"):
        await drive(model)
    assert len(model.calls) == 1


# -- streams


async def test_an_error_in_a_stream_comes_after_what_came_before_and_carries_the_steps() -> None:
    cut = [StreamStart(), TextStart("0"), TextDelta("0", "Hel"), StreamInterruptedError("cut")]
    turn = await run_stream_loop(script(says(call()), cut), ASKED, tools=[look])
    parts = [part async for part in turn.stream]
    assert TextDelta("1-0", "Hel") in parts
    error = parts[-2]
    assert isinstance(error, ErrorPart)
    assert isinstance(error.error, TurnError)
    assert isinstance(error.error.__cause__, StreamInterruptedError)
    assert len(error.error.steps) == 1
    assert turn.record.result is None
    with pytest.raises(ConfigError, match="the turn has no result"):
        _ = turn.result


async def test_an_error_part_of_a_later_step_carries_the_steps() -> None:
    failing = [StreamStart(), TextStart("0"), TextDelta("0", "x"), ErrorPart(StreamInterruptedError("cut"))]
    turn = await run_stream_loop(script(says(call()), failing), ASKED, tools=[look])
    parts = [part async for part in turn.stream]
    (error,) = (part for part in parts if isinstance(part, ErrorPart))
    assert isinstance(error.error, TurnError)
    assert isinstance(parts[-1], Finish)
    assert parts[-1].finish_reason.unified == "error"


async def test_where_the_first_step_of_a_stream_fails_before_its_content_it_is_raised() -> None:
    with pytest.raises(RateLimitError):
        await run_stream_loop(script([StreamStart(), ErrorPart(RateLimitError("slow"))]), ASKED)


# -- what may not be told


class Judge(ResponsePolicy):
    streaming = Hold()

    def check(self, view: View) -> Verdict:
        return allow()


async def test_a_failed_turn_that_somebody_around_it_judges_does_not_tell_what_the_model_said() -> None:
    model = script(says("the secret", call()), RateLimitError("slow down"))
    judged = wrap_model(TurnModel(model, [look]), [Judge()], lint="off")
    with pytest.raises(TurnError) as caught:
        await judged.do_generate(ASKED)
    assert [step.text for step in caught.value.steps] == [""]
    assert all(step.content == () for step in caught.value.steps)
    assert "secret" not in str(_texts(caught.value.messages))
    check_paired(caught.value.messages)
    assert [one.status for one in caught.value.tool_executions] == ["ok"]


# -- cancellation


class Waits(Middleware):
    """Waits for ever in front of the model, at a step."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step
        self.waiting = anyio.Event()

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        if options.context.step == self.step:
            self.waiting.set()
            await anyio.sleep_forever()
        return await model.do_generate(options)


async def test_a_record_tells_how_far_a_cancelled_turn_had_come() -> None:
    record, waits = TurnRecord(), Waits(1)
    model = wrap_model(script(says(call())), [waits])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: run_generate_loop(model, ASKED, tools=[look], record=record))
        await waits.waiting.wait()
        tasks.cancel_scope.cancel()
    assert len(record.steps) == 1
    assert record.result is None
    check_paired(record.messages)


async def test_once_a_tool_has_started_a_cancelled_batch_is_kept_with_a_result_for_every_call() -> None:
    record, started = TurnRecord(), anyio.Event()

    async def hangs(given: object) -> None:
        started.set()
        await anyio.sleep_forever()

    model = script(says(call("c1"), call("c2", "hangs"), call("c3", "hangs"), call("c4")))
    tools = [look, working("hangs", hangs)]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: generated(model, tools=tools, record=record, parallel_tools=2))
        await started.wait()
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    check_paired(record.messages)
    assert [one.status for one in record.tool_executions] == ["ok", "cancelled", "cancelled", "cancelled"]


async def test_where_no_tool_had_started_the_batch_is_dropped() -> None:
    record, asked = TurnRecord(), anyio.Event()

    async def approve(one: object) -> None:
        asked.set()
        await anyio.sleep_forever()

    guarded = working("pay", lambda given: "paid", needs_approval=True)
    model = script(says("Paying.", call("c1", "pay"), call("c2", "nope")))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: generated(model, tools=[guarded], record=record, approve=approve))
        await asked.wait()
        tasks.cancel_scope.cancel()
    assert record.messages == ASKED.prompt
    assert record.tool_executions == []
    assert len(record.steps) == 1  # which is paid for


@both_ways
async def test_a_tool_that_ignores_its_cancellation_does_not_keep_the_turn(drive: Drive) -> None:
    goes_on = anyio.Event()
    started = anyio.Event()

    async def stubborn(given: object) -> None:
        with anyio.CancelScope(shield=True):
            started.set()
            await goes_on.wait()

    model = script(says(call("c1", "stubborn")))
    with anyio.move_on_after(30) as patience:
        async with anyio.create_task_group() as tasks:

            async def turn() -> None:
                await drive(model, tools=[working("stubborn", stubborn)])

            tasks.start_soon(turn)
            await started.wait()
            tasks.cancel_scope.cancel()
    assert not patience.cancelled_caught
    goes_on.set()


async def test_closing_a_stream_from_another_task_while_a_tool_runs_stops_the_turn() -> None:
    started = anyio.Event()

    async def hangs(given: object) -> None:
        started.set()
        await anyio.sleep_forever()

    turn = await run_stream_loop(script(says(call("c1", "hangs"))), ASKED, tools=[working("hangs", hangs)])
    ended: list[type[BaseException]] = []

    async def read() -> None:
        try:
            async for _ in turn.stream:
                pass
        except BaseException as error:
            ended.append(type(error))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await started.wait()
        await turn.stream.aclose()
    assert ended == [anyio.ClosedResourceError]
    check_paired(turn.record.messages)
    assert [one.status for one in turn.record.tool_executions] == ["cancelled"]


async def test_closing_a_stream_while_the_model_is_read_closes_the_models_stream() -> None:
    model = script([StreamStart(), TextStart("0"), TextDelta("0", "x"), HOLD])
    turn = await run_stream_loop(model, ASKED)
    ended: list[type[BaseException]] = []
    begun = anyio.Event()

    async def read() -> None:
        try:
            async for part in turn.stream:
                if isinstance(part, TextDelta):
                    begun.set()
        except BaseException as error:
            ended.append(type(error))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await begun.wait()
        await anyio.wait_all_tasks_blocked()
        await turn.stream.aclose()
    assert ended == [anyio.ClosedResourceError]
    assert model.calls[0].closed == 1


async def test_a_stream_that_is_left_closes_the_models_stream_and_runs_no_tool() -> None:
    ran: list[object] = []
    model = script(says("Looking.", call("c1", "note")))
    turn = await run_stream_loop(model, ASKED, tools=[working("note", ran.append)])
    async with turn.stream as parts:
        async for part in parts:
            if part.type == "tool-call":
                break
    assert ran == []
    assert model.calls[0].closed == 1
    assert turn.record.messages == ASKED.prompt


async def test_a_stream_that_was_never_read_is_closed() -> None:
    model = script("Hello")
    turn = await run_stream_loop(model, ASKED)
    await turn.stream.aclose()
    assert model.calls[0].closed == 1


async def test_nothing_happens_unless_the_stream_is_read() -> None:
    ran: list[object] = []
    model = ScriptedModel([says(call("c1", "note")), "done"])
    turn = await run_stream_loop(model, ASKED, tools=[working("note", ran.append)])
    async with turn.stream as parts:
        async for part in parts:
            if part.type == "tool-call":
                await anyio.wait_all_tasks_blocked()
                assert (ran, len(model.calls)) == ([], 1)
    assert (len(ran), len(model.calls)) == (1, 2)


async def test_a_prepare_step_that_is_cancelled_cancels_the_turn() -> None:
    waits = anyio.Event()

    async def prepare(info: StepInfo) -> None:
        waits.set()
        await anyio.sleep_forever()

    model = script("done")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: generated(model, prepare_step=prepare))
        await waits.wait()
        tasks.cancel_scope.cancel()
    assert model.calls == []
