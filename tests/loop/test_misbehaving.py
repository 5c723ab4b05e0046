"""Models, hooks and callers that do what they should not."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import pytest

from neurolink_mw import Middleware, wrap_model
from neurolink_mw.errors import PolicyDenied, RateLimitError, TurnError
from neurolink_mw.loop import StepInfo, TurnModel, TurnRecord, messages_of, resolve_step_tool_choice, run_stream_loop
from neurolink_mw.middlewares.timeout import Timeout
from neurolink_mw.protocol import (
    AssistantMessage,
    CallOptions,
    ErrorPart,
    Finish,
    FinishReason,
    GenerateResult,
    LanguageModel,
    StreamPart,
    StreamResult,
    StreamStart,
    TextDelta,
    TextStart,
    ToolApprovalRequest,
    ToolApprovalResponsePart,
    ToolCall,
    ToolCallPart,
    ToolInputDelta,
    ToolInputStart,
    ToolMessage,
    ToolOutcome,
    ToolRunner,
    collect,
)
from neurolink_mw.roles import ResponsePolicy, Verdict, View, allow, deny
from neurolink_mw.testing import HOLD, check_stream
from neurolink_mw.tools import approve

from .builders import ASKED, Drive, both_ways, call, check_paired, generated, look, outputs, says, script, sent, working

pytestmark = pytest.mark.anyio

STOP = Finish(FinishReason("tool-calls"))


async def parts_of_turn(model: LanguageModel, **settings: Any) -> list[StreamPart]:
    turn = await run_stream_loop(model, ASKED, **settings)
    parts = [part async for part in turn.stream]
    check_stream(parts)
    return parts


# -- calls


@both_ways
async def test_calls_of_one_id_are_two_calls(drive: Drive) -> None:
    result = await drive(script(says(call("c1", at="sea"), call("c1", at="land")), "done"), tools=[look])
    assert outputs(result.messages) == {"c1": ("text", "saw sea"), "c1~2": ("text", "saw land")}
    check_paired(result.messages)


@both_ways
async def test_each_of_two_calls_of_one_id_is_approved_by_itself(drive: Drive) -> None:
    paid: list[object] = []
    pay = working("pay", paid.append, needs_approval=True)
    first = await drive(script(says(call("c1", "pay", sum=1), call("c1", "pay", sum=2))), tools=[pay])
    one, other = first.approvals
    assert one.approval_id != other.approval_id
    await drive(script("done"), CallOptions((*first.messages, one.approve(), other.deny())), tools=[pay])
    assert paid == [{"sum": 1}]


@both_ways
async def test_an_input_that_is_no_text_is_taken_as_it_is(drive: Drive) -> None:
    odd = ToolCall("c1", "look", {"at": "sea"})  # type: ignore[arg-type]  # as a model of one's own may give it
    model = script(says(odd), "done")
    if drive is generated:
        result = await drive(model, tools=[look])
        assert outputs(result.messages) == {"c1": ("text", "saw sea")}


@both_ways
async def test_a_provider_that_asks_for_approval_beside_calls_is_heard(drive: Drive) -> None:
    theirs = ToolCall("m1", "mcp", "{}", provider_executed=True)
    model = script(says(call("c1"), theirs, ToolApprovalRequest("a1", "m1")))
    result = await drive(model, tools=[look])
    assert (result.stopped_by, [one.approval_id for one in result.approvals]) == ("approval", ["a1"])
    assert [one.status for one in result.tool_executions] == ["ok"]


# -- approvals


def answered(*said: tuple[str, bool], call: str = "c1") -> CallOptions:
    parts = [ToolApprovalResponsePart(id, approved) for id, approved in said]
    history = (*ASKED.prompt, AssistantMessage([ToolCallPart(call, "pay", {"id": 2**100})]))
    return CallOptions((*history, ToolMessage(parts)))


@both_ways
@pytest.mark.parametrize("order", [(True, False), (False, True)])
async def test_where_yes_and_no_are_said_no_stands(drive: Drive, order: tuple[bool, bool]) -> None:
    paid: list[object] = []
    pay = working("pay", paid.append, needs_approval=True)
    model = script("done")
    await drive(model, answered(*(("approval-c1", said) for said in order)), tools=[pay])
    assert paid == []
    assert all(not isinstance(part, ToolApprovalResponsePart) for part in sent(model, 0).prompt[-1].content)


@both_ways
async def test_a_long_integer_survives_an_approval(drive: Drive) -> None:
    paid: list[Any] = []
    pay = working("pay", paid.append, needs_approval=True)
    await drive(script("done"), answered(("approval-c1", True)), tools=[pay])
    assert paid == [{"id": 2**100}]


@both_ways
async def test_what_is_said_too_late_goes_to_no_provider(drive: Drive) -> None:
    first = await drive(script(says(call("c1")), "done"), tools=[look])
    late = ToolMessage([ToolApprovalResponsePart("approval-c1", True)])
    model = script("done")
    result = await drive(model, CallOptions((*first.messages, late)), tools=[look])
    assert sent(model, 0).prompt == first.messages
    assert result.tool_executions == ()


# -- refusals


class Nothing(ResponsePolicy):
    """Something around the turn."""

    sees = ("tool_input",)

    def check(self, view: View) -> Verdict:
        return allow()


class DeniesQuietly(Middleware):
    async def wrap_tool(self, tool: ToolRunner, call: ToolCall) -> ToolOutcome:
        tool.options.context.deny("closed", "We are closed.")
        return await tool.run(call)


@pytest.mark.parametrize("streams", [False, True])
async def test_once_a_turn_is_refused_no_tool_runs_whether_or_not_it_was_raised(streams: bool) -> None:
    ran: list[object] = []
    model = script(says(call("c1", "note"), call("c2", "note")), "done")
    turn = wrap_model(TurnModel(model, [working("note", ran.append)]), [DeniesQuietly()])
    answer = await _asked(turn, streams)
    assert (ran, answer.finish_reason.unified) == ([], "content-filter")


@pytest.mark.parametrize("streams", [False, True])
async def test_a_tool_that_refuses_the_turn_is_not_tried_again(streams: bool) -> None:
    tries: list[object] = []

    async def refuses(given: object, context: Any) -> None:
        tries.append(given)
        raise context.options.context.deny("closed", "We are closed.")

    tool = working("refuses", refuses, retries=3, retry_delay=0)
    turn = wrap_model(TurnModel(script(says(call("c1", "refuses"))), [tool]), [Nothing()])
    answer = await _asked(turn, streams)
    assert (len(tries), answer.finish_reason.unified) == (1, "content-filter")


async def _asked(model: LanguageModel, streams: bool) -> GenerateResult:
    if not streams:
        return await model.do_generate(ASKED)
    return collect([part async for part in (await model.do_stream(ASKED)).stream])


@both_ways
async def test_a_tool_may_deny_its_own_call(drive: Drive) -> None:
    async def refuses(given: object, context: Any) -> None:
        raise PolicyDenied("Not that one.", code="no")

    result = await drive(script(says(call("c1", "refuses")), "done"), tools=[working("refuses", refuses, retries=2)])
    (execution,) = result.tool_executions
    assert (execution.status, execution.tries) == ("denied", 1)
    assert outputs(result.messages)["c1"] == ("execution-denied", "Not that one.")


@pytest.mark.parametrize("streams", [False, True])
async def test_nobody_is_asked_about_a_call_that_a_policy_around_the_turn_denies(streams: bool) -> None:
    class No(ResponsePolicy):
        sees = ("tool_input",)

        def check(self, view: View) -> Verdict:
            return deny("no", "Not that.")

    asked: list[object] = []

    def ask(one: ToolCall) -> Any:
        asked.append(one)
        return approve()

    model = script(says(call("c1", "pay")), "done")
    pay = working("pay", lambda given: pytest.fail("it ran"), needs_approval=True)
    answer = await _asked(wrap_model(TurnModel(model, [pay], approve=ask), [No()]), streams)
    assert (asked, answer.text) == ([], "done")
    assert outputs(sent(model, 1).prompt)["c1"] == ("execution-denied", "Not that.")


class CancelsItself(Middleware):
    async def wrap_tool(self, tool: ToolRunner, call: ToolCall) -> ToolOutcome:
        raise asyncio.CancelledError


@pytest.mark.parametrize("calls", [1, 2])
async def test_a_cancellation_that_a_hook_makes_up_is_a_failure(calls: int) -> None:
    model = script(says(*(call(f"c{n}") for n in range(calls))))
    with pytest.raises(TurnError) as caught:
        await generated(wrap_model(model, [CancelsItself()]), tools=[look])
    assert isinstance(caught.value.__cause__, RuntimeError | asyncio.CancelledError)


# -- streams


BEGUN: list[StreamPart] = [StreamStart(), TextStart("0"), TextDelta("0", "Ha")]


async def test_a_stream_that_fails_within_a_block_ends_it() -> None:
    parts = await parts_of_turn(script([*BEGUN, RateLimitError("slow")]))
    assert [part.type for part in parts[-3:]] == ["text-end", "error", "finish"]


async def test_so_does_one_that_runs_out_of_time() -> None:
    parts = await parts_of_turn(script([*BEGUN, HOLD]), deadline=0.02)
    assert [part.type for part in parts[-3:]] == ["text-end", "error", "finish"]


async def test_so_does_one_that_a_middleware_stops() -> None:
    model = wrap_model(script([*BEGUN, HOLD]), [Timeout(call=0.02)])
    parts = await parts_of_turn(model)
    assert [part.type for part in parts[-3:]] == ["text-end", "error", "finish"]


async def test_an_input_that_becomes_no_call_is_ended_with_its_step() -> None:
    half = [StreamStart(), ToolInputStart("c1", "look"), ToolInputDelta("c1", '{"a')]
    parts = await parts_of_turn(script([*half, Finish(FinishReason("length"))]), tools=[look])
    assert [part.type for part in parts[-2:]] == ["tool-input-end", "finish"]


async def test_calls_behind_an_error_are_not_run() -> None:
    ran: list[object] = []
    failing = [StreamStart(), ErrorPart(RateLimitError("slow")), call("c1", "note"), STOP]
    turn = await run_stream_loop(script([*BEGUN, *failing[1:]]), ASKED, tools=[working("note", ran.append)])
    parts = [part async for part in turn.stream]
    assert ran == []
    assert isinstance(parts[-1], Finish)
    assert parts[-1].finish_reason.unified == "error"


async def test_usage_of_a_failed_turn_is_marked_as_a_sum_too() -> None:
    parts = await parts_of_turn(script(says(call()), RateLimitError("slow")), tools=[look])
    assert isinstance(parts[-1], Finish)
    assert (parts[-1].provider_metadata or {})["neurolink_mw"] == {"turn": {"steps": 1, "stopped_by": "error"}}


async def test_a_step_that_may_fail_says_what_it_said_and_then_the_turn_ends_well() -> None:
    for half in ([*BEGUN, RateLimitError("slow")], [*BEGUN, ErrorPart(RateLimitError("slow")), STOP]):
        parts = await parts_of_turn(script(says(call()), half), tools=[look], max_steps=1)
        assert not any(isinstance(part, ErrorPart) for part in parts)
        text = "".join(part.delta for part in parts if isinstance(part, TextDelta))
        assert text.startswith("HaI made 1 tool call")


async def test_the_deadline_holds_in_a_step_that_may_fail() -> None:
    parts = await parts_of_turn(script(says(call()), [*BEGUN, HOLD]), tools=[look], max_steps=1, deadline=0.05)
    (error,) = (part for part in parts if isinstance(part, ErrorPart))
    assert isinstance(error.error, TurnError)


async def test_a_turn_with_a_deadline_that_is_left_leaves_nothing_to_close() -> None:
    turn = await run_stream_loop(script([*BEGUN, HOLD]), ASKED, deadline=60)
    async with turn.stream as parts:
        async for part in parts:
            if isinstance(part, TextDelta):
                break
    del turn, parts
    gc.collect()  # a ResourceWarning would be an error


class OpensAllTheSame:
    """A model that takes no notice of its cancellation, and opens a stream when nobody wants it."""

    provider, model_id = "stubborn", "stubborn-1"

    def __init__(self) -> None:
        self.first = script(says(call()))
        self.second = script([*BEGUN, HOLD])
        self.asked = anyio.Event()
        self.goes_on = anyio.Event()

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        raise NotImplementedError

    async def do_stream(self, options: CallOptions) -> StreamResult:
        if not self.first.calls:
            return await self.first.do_stream(options)
        with anyio.CancelScope(shield=True):
            self.asked.set()
            await self.goes_on.wait()
        return await self.second.do_stream(options)


async def test_a_stream_that_is_opened_while_the_turn_is_closed_is_closed() -> None:
    model = OpensAllTheSame()
    turn = await run_stream_loop(model, ASKED, tools=[look])

    async def read() -> None:
        with pytest.raises(anyio.ClosedResourceError):
            async for _ in turn.stream:
                pass

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await model.asked.wait()
        tasks.start_soon(turn.stream.aclose)
        await anyio.wait_all_tasks_blocked()
        model.goes_on.set()
    assert model.second.calls[0].closed == 1


# -- hooks


@pytest.mark.parametrize("raises", [False, True])
async def test_a_hook_that_swallows_the_cancellation_does_not_keep_the_turn(raises: bool) -> None:
    waits = anyio.Event()

    async def swallows(*_: object) -> Any:
        try:
            waits.set()
            await anyio.sleep_forever()
        except BaseException:
            if raises:
                raise RuntimeError("never mind") from None
        return approve()

    pay = working("pay", lambda given: pytest.fail("it ran"), needs_approval=True)
    for settings in ({"prepare_step": swallows}, {"approve": swallows}):
        model, waits = script(says(call("c1", "pay")), "done"), anyio.Event()
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_after, waits, scope)
                await generated(model, ASKED, tools=[pay], **settings)
                pytest.fail("it went on")
        assert len(model.calls) <= 1


async def _cancel_after(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def test_the_tool_choice_alone_is_read_of_a_hook_for_it() -> None:
    said = {"toolChoice": "required", "model": "gpt-5", "activeTools": 3, "system": 7, "options": "x"}
    choice = await resolve_step_tool_choice(
        step=5, tool_choice="auto", prepare_step=lambda info: said, max_steps=9, model=script()
    )
    assert choice == "required"


@pytest.mark.parametrize("steps", [None, "2", -1, True])
async def test_a_number_of_steps_that_is_none_is_one(steps: Any, caplog: pytest.LogCaptureFixture) -> None:
    for step, expected in ((0, "required"), (1, "auto")):
        choice = await resolve_step_tool_choice(
            step=step, tool_choice="required", tool_choice_steps=steps, max_steps=9, model=script()
        )
        assert choice == expected
    assert "tool_choice_steps" in caplog.text


@both_ways
async def test_a_hook_that_chooses_the_model_of_the_turn_changes_nothing(drive: Drive) -> None:
    model = script(says(call()), "done")
    result = await drive(model, tools=[look], prepare_step=lambda info: {"model": info.model})
    assert (result.text, len(model.calls)) == ("done", 2)


# -- models


class Bare:
    """A `do_generate` and no more."""

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        return says("Here.")


async def test_a_model_without_names_can_be_driven() -> None:
    assert (await generated(Bare())).text == "Here."  # type: ignore[arg-type]  # what it is about


class HasAChain(Bare):
    provider, model_id = "mine", "mine-1"
    chain = ("of", "thought")


async def test_a_model_may_have_a_chain_of_its_own() -> None:
    assert (await generated(HasAChain())).text == "Here."  # type: ignore[arg-type]  # it cannot stream


@both_ways
async def test_a_turn_within_a_turn_asks_for_approvals_and_gets_them(drive: Drive) -> None:
    paid: list[object] = []
    pay = working("pay", paid.append, needs_approval=True)
    inner = TurnModel(script(says(call("c1", "pay", sum=5)), "done"), [pay])
    first = await drive(inner, tools=[look])
    (pending,) = first.approvals
    assert (first.stopped_by, pending.call.tool_name) == ("approval", "pay")
    result = await drive(inner, CallOptions((*first.messages, pending.approve())), tools=[look])
    assert (paid, result.text) == ([{"sum": 5}], "done")


@both_ways
async def test_a_record_that_is_used_again_begins_anew(drive: Drive) -> None:
    record = TurnRecord()
    for _ in range(2):
        await drive(script(says(call()), "done"), tools=[look], record=record, max_steps=2)
        assert (len(record.steps), len(record.tool_executions)) == (2, 1)


@both_ways
async def test_a_terminal_call_at_the_limit_is_listed_nowhere(drive: Drive) -> None:
    final = working("final", lambda given: pytest.fail("it ran"))
    model = script(says(call("c1")), says("Here.", call("c2", "final")))
    result = await drive(model, tools=[look, final], max_steps=1, terminal_tools=["final"])
    assert result.text == "Here."
    assert all(one.type != "tool-call" for one in result.steps[-1].content)


async def test_calls_of_a_batch_that_was_dropped_have_no_results_anywhere() -> None:
    record, asked = TurnRecord(), anyio.Event()

    async def ask(one: ToolCall) -> Any:
        asked.set()
        await anyio.sleep_forever()

    pay = working("pay", lambda given: "paid", needs_approval=True)
    async with anyio.create_task_group() as tasks:
        model = script(says(call("c1", "pay"), call("c2", "nope")))
        tasks.start_soon(lambda: generated(model, tools=[pay], record=record, approve=ask))
        await asked.wait()
        tasks.cancel_scope.cancel()
    assert record.steps[0].tool_results == ()


# -- memory


class FailsAnew:
    """A model that ends its script with an error of which it keeps nothing."""

    provider, model_id = "tired", "tired-1"

    def __init__(self, *first: object) -> None:
        self.first, self.good = script(*first), len(first)

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        self._check()
        return await self.first.do_generate(options)

    async def do_stream(self, options: CallOptions) -> StreamResult:
        self._check()
        return await self.first.do_stream(options)

    def _check(self) -> None:
        if len(self.first.calls) == self.good:
            raise RateLimitError("slow")


async def read_to_the_end(model: LanguageModel, options: CallOptions = ASKED, **settings: Any) -> None:
    async for _ in (await run_stream_loop(model, options, **settings)).stream:
        pass


@pytest.mark.parametrize("drive", [generated, read_to_the_end])
@pytest.mark.parametrize(
    "model",
    [
        lambda: script("done"),
        lambda: script(says(call()), "done"),
        lambda: FailsAnew(),
        lambda: FailsAnew(says(call())),
    ],
    ids=["one step", "two steps", "no step", "fails after a step"],
)
async def test_a_turn_leaves_nothing_to_the_garbage_collector(drive: Any, model: Callable[[], LanguageModel]) -> None:
    """What is in a cycle would hold the conversation until a collection."""
    gc.collect()
    gc.disable()
    try:
        assert (await _play(drive, model()))() is None
    finally:
        gc.enable()


async def _play(drive: Any, model: LanguageModel) -> weakref.ref[TurnRecord]:
    record = TurnRecord()
    with suppress(RateLimitError, TurnError):
        await drive(model, tools=[look], record=record)
    return weakref.ref(record)


async def test_an_answer_of_a_turn_becomes_messages_without_its_sources() -> None:
    answer = await TurnModel(script(says(call()), "done"), [look]).do_generate(ASKED)
    assert [message.role for message in messages_of(answer.content)] == ["assistant", "tool", "assistant"]
    check_paired(messages_of(answer.content))


async def test_a_hook_is_told_of_a_copy_of_the_steps() -> None:
    seen: list[StepInfo] = []
    await generated(script(says(call()), "done"), tools=[look], prepare_step=seen.append)
    assert [len(info.steps) for info in seen] == [0, 1]
