"""Calls that need an approval: by a rule, by a hook, or by the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import time
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from neurolink_mw.protocol import ExecutionDenied, TextOutput, ToolCall, ToolOutcome, ToolRunner
from neurolink_mw.tools import (
    Approval,
    Approve,
    Tool,
    ToolContext,
    approval_id,
    approve,
    approved_call_id,
    ask,
    deny,
    tool,
)

from .builders import SECRET, Turn, call, explicit, wrapped
from .test_failures import cancelled_while

pytestmark = pytest.mark.anyio


def deleting(**settings: Any) -> Tool:
    return explicit(lambda given: "deleted", "delete", **{"needs_approval": True, **settings})


def saying(approval: object) -> list[Callable[[ToolCall], Any]]:
    """A hook that says something, sync and async."""

    def sync(call: ToolCall) -> object:
        return approval

    async def asynchronous(call: ToolCall) -> object:
        await anyio.lowlevel.checkpoint()
        return approval

    return [sync, asynchronous]


async def asked(turn: Turn, given: object = None) -> bool:
    """Whether the turn has to ask its caller about a call. It has no outcome then, and did not run."""
    (one,) = await turn.answer(call("delete", given))
    assert one.asks == (one.outcome is None)
    assert not (one.asks and one.tries)
    return one.asks


# -- who decides


async def test_without_a_hook_the_caller_is_asked() -> None:
    assert await asked(Turn(deleting()))


async def test_a_tool_that_needs_none_runs() -> None:
    assert not await asked(Turn(deleting(needs_approval=False)))


async def test_the_others_of_a_batch_run_meanwhile() -> None:
    turn = Turn(deleting(), explicit(lambda given: "read", "read"))
    await turn.answer(call("delete"), call("read"), call("delete"))
    assert turn.outcomes() == [None, "ok", None]
    assert [one.asks for one in turn.answering] == [True, False, True]


async def test_a_call_that_has_been_approved_runs() -> None:
    outcome = await Turn(deleting()).one(call("delete"), approved=True)
    assert outcome == ToolOutcome(TextOutput("deleted"))


async def test_nobody_is_asked_about_it_again() -> None:
    def never(call: ToolCall) -> Approval:
        raise AssertionError

    turn = Turn(deleting(needs_approval=never), approve=never)
    assert (await turn.one(call("delete"), approved=True)).status == "ok"


async def test_a_function_of_the_input_may_say_whether_it_is_needed() -> None:
    async def is_wide(given: Any) -> bool:
        await anyio.lowlevel.checkpoint()
        return bool(given["path"] == "/")

    for rule in (is_wide, lambda given: given["path"] == "/"):
        assert await asked(Turn(deleting(needs_approval=rule)), {"path": "/"})
        assert not await asked(Turn(deleting(needs_approval=rule)), {"path": "/tmp/x"})


async def test_it_gets_the_input_as_the_tool_takes_it() -> None:
    class Path(BaseModel):
        path: str

    made = deleting(input_schema=Path, needs_approval=lambda given: given.path == "/")
    assert await asked(Turn(made), {"path": "/"})


async def test_for_a_typed_function_it_gets_the_values_by_the_names_of_the_parameters() -> None:
    seen: list[object] = []

    async def is_much(given: dict[str, Any]) -> bool:
        seen.append(given)
        return bool(given["count"] > 3)

    @tool(needs_approval=is_much)
    def delete(context: ToolContext, count: int, /, unit: str = "file", **more: Any) -> str:
        return "deleted"

    assert await asked(Turn(delete), {"count": 5, "other": 1})
    assert not await asked(Turn(delete), {"count": 2})
    assert seen == [{"count": 5, "unit": "file", "other": 1}, {"count": 2, "unit": "file"}]


@pytest.mark.parametrize("said", [None, 0, "", "no"])
async def test_a_rule_that_does_not_say_false_needs_an_approval(said: Any) -> None:
    assert await asked(Turn(deleting(needs_approval=lambda given: said)))


async def test_a_call_that_would_not_run_anyway_is_not_asked_about() -> None:
    def never(given: object) -> bool:
        raise AssertionError

    turn = Turn(deleting(needs_approval=never, input_schema={"type": "object", "required": ["path"]}))
    assert (await turn.one(call("delete"))).status == "error"
    assert (await turn.one(call("delete", "{"))).status == "error"
    assert (await turn.one(call("delete", {"path": "/"}), available=[])).status == "error"


# -- what a hook says


@pytest.mark.parametrize("hook", saying(approve()))
async def test_an_approved_call_runs(hook: Approve) -> None:
    assert (await Turn(deleting(), approve=hook).one(call("delete"))).status == "ok"


@pytest.mark.parametrize("hook", saying(deny("Not on a Friday.")))
async def test_a_denied_call_does_not_run_and_the_model_reads_why(hook: Approve) -> None:
    done = await Turn(deleting(), approve=hook).report(call("delete"))
    assert (done.output, done.status, done.tries) == (ExecutionDenied("Not on a Friday."), "denied", 0)


async def test_no_reason_need_be_given() -> None:
    outcome = await Turn(deleting(), approve=lambda call: deny()).one(call("delete"))
    assert outcome == ToolOutcome(ExecutionDenied(), "denied")


@pytest.mark.parametrize("hook", saying(ask()))
async def test_a_hook_may_leave_it_to_the_caller(hook: Approve) -> None:
    assert await asked(Turn(deleting(), approve=hook))


async def test_a_hook_sees_the_call_and_only_those_that_need_an_approval() -> None:
    seen: list[ToolCall] = []

    def hook(call: ToolCall) -> Approval:
        seen.append(call)
        return approve()

    turn = Turn(deleting(), explicit(lambda given: "read", "read"), approve=hook)
    made = call("delete", {"path": "/"})
    await turn.answer(call("read"), made)
    assert seen == [made]


@pytest.mark.parametrize("hook", [*saying(True), *saying(None), *saying("approve")])
async def test_a_hook_that_says_anything_else_denies(hook: Approve) -> None:
    outcome = await Turn(deleting(), approve=hook).one(call("delete"))
    assert outcome == ToolOutcome(ExecutionDenied("The call could not be approved."), "denied")


def test_there_is_no_other_decision() -> None:
    with pytest.raises(ValueError, match="'approve', 'deny' or 'ask'"):
        Approval("yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("where", ["rule", "hook"])
@pytest.mark.parametrize(
    "error", [ValueError(SECRET), asyncio.CancelledError(SECRET), BaseExceptionGroup("x", [asyncio.CancelledError()])]
)
async def test_one_that_fails_denies_and_the_log_names_the_type_alone(
    where: str, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(given: object) -> Any:
        raise error

    turn = Turn(deleting(needs_approval=fail if where == "rule" else True), approve=fail)
    outcome = await turn.one(call("delete", {"path": SECRET}))
    assert outcome == ToolOutcome(ExecutionDenied("The call could not be approved."), "denied")
    expected = f"deciding on a call of 'delete' failed, so it is denied: {type(error).__name__}"
    assert [one.getMessage() for one in caplog.records] == [expected]
    assert SECRET not in caplog.text


async def test_the_end_of_the_process_goes_outwards() -> None:
    def end(call: ToolCall) -> Approval:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await Turn(deleting(), approve=end).one(call("delete"))


async def test_a_turn_that_is_cancelled_while_it_waits_for_an_answer_has_an_outcome() -> None:
    waiting = anyio.Event()

    async def wait(call: ToolCall) -> Approval:
        waiting.set()
        await anyio.sleep_forever()
        raise AssertionError

    turn = Turn(deleting(), approve=wait)
    await cancelled_while(turn, call("delete"), when=waiting.is_set)
    assert turn.outcomes() == ["cancelled"]


async def test_so_has_a_call_that_waits_for_the_caller_when_another_ends_the_turn() -> None:
    async def fail(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        raise RuntimeError

    turn = Turn(deleting(), explicit(lambda given: "read", "read"), around=wrapped(fail), parallel=1)
    with pytest.raises(RuntimeError):
        await turn.answer(call("delete"), call("read"))
    assert turn.outcomes() == ["cancelled", "cancelled"]
    assert not turn.answering[0].asks


# -- the wait


async def test_the_wait_for_an_approval_is_not_in_the_tools_time() -> None:
    async def slow(call: ToolCall) -> Approval:
        await anyio.sleep(0.06)
        return approve()

    asked_at = time()
    done = await Turn(deleting(timeout=0.05), approve=slow).report(call("delete"))
    assert done.status == "ok"
    assert done.started >= asked_at + 0.05
    assert done.duration < 0.05


# -- ids


def test_an_approval_tells_which_call_it_is_for() -> None:
    assert approved_call_id(approval_id("call-1")) == "call-1"
    assert approved_call_id(approval_id("")) == ""
    assert approved_call_id(approval_id(approval_id("x"))) == approval_id("x")


def test_one_that_a_provider_asked_for_is_for_none_of_ours() -> None:
    assert approved_call_id("mcp-approval-1") is None
