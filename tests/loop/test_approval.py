"""Calls that somebody has to approve."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from neurolink_mw import Tool
from neurolink_mw.loop import TurnModel
from neurolink_mw.protocol import (
    AssistantMessage,
    CallOptions,
    Message,
    TextOutput,
    ToolApprovalRequest,
    ToolApprovalResponsePart,
    ToolCall,
    ToolCallPart,
    ToolMessage,
    ToolResultPart,
    UserMessage,
    collect,
    user,
)
from neurolink_mw.tools import approve, ask, deny

from .builders import ASKED, Drive, both_ways, call, check_paired, look, outputs, says, script, sent, working

pytestmark = pytest.mark.anyio


class Till:
    """A tool that has to be approved, and what was paid."""

    def __init__(self) -> None:
        self.paid: list[object] = []
        self.tool = working("pay", self.pay, needs_approval=True)

    def pay(self, given: object) -> str:
        self.paid.append(given)
        return "paid"


def answered(messages: Sequence[Message], *answers: tuple[str, bool, str | None]) -> CallOptions:
    parts = [ToolApprovalResponsePart(id, approved, reason) for id, approved, reason in answers]
    return CallOptions((*messages, ToolMessage(parts)))


@both_ways
async def test_a_turn_ends_where_a_call_has_to_be_approved(drive: Drive) -> None:
    till = Till()
    result = await drive(script(says("I will pay.", call("c1", "pay", sum=5))), tools=[till.tool])
    assert (result.stopped_by, result.finish_reason.unified, till.paid) == ("approval", "tool-calls", [])
    (pending,) = result.approvals
    assert (pending.call.tool_call_id, pending.call.input) == ("c1", '{"sum": 5}')
    assert [one for one in result.shown if isinstance(one, ToolApprovalRequest)] == [
        ToolApprovalRequest(pending.approval_id, "0-c1")
    ]
    assert isinstance(result.messages[-1], AssistantMessage)


@both_ways
async def test_the_next_request_brings_the_approval_and_the_call_is_run_before_the_model_is_asked(drive: Drive) -> None:
    till = Till()
    first = await drive(script(says(call("c1", "pay", sum=5))), tools=[till.tool])
    model = script("Paid.")
    options = answered(first.messages, (first.approvals[0].approval_id, True, None))
    result = await drive(model, options, tools=[till.tool])
    assert till.paid == [{"sum": 5}]
    assert outputs(sent(model, 0).prompt) == {"c1": ("text", "paid")}
    check_paired(sent(model, 0).prompt)
    assert (result.text, [one.status for one in result.tool_executions]) == ("Paid.", ["ok"])


@both_ways
async def test_a_denied_call_is_answered_with_the_reason(drive: Drive) -> None:
    till = Till()
    first = await drive(script(says(call("c1", "pay"))), tools=[till.tool])
    model = script("I did not pay.")
    options = answered(first.messages, (first.approvals[0].approval_id, False, "too much"))
    result = await drive(model, options, tools=[till.tool])
    assert till.paid == []
    assert outputs(sent(model, 0).prompt) == {"c1": ("execution-denied", "too much")}
    assert [one.status for one in result.tool_executions] == ["denied"]


@both_ways
async def test_other_calls_of_the_step_run_and_their_results_stay_in_order(drive: Drive) -> None:
    till = Till()
    first = await drive(script(says(call("c1", "pay"), call("c2"), call("c3", "pay"))), tools=[look, till.tool])
    assert outputs(first.messages) == {"c2": ("text", "saw sky")}
    assert [one.call.tool_call_id for one in first.approvals] == ["c1", "c3"]
    ids = [one.approval_id for one in first.approvals]
    model = script("done")
    await drive(model, answered(first.messages, (ids[1], True, None), (ids[0], False, None)), tools=[look, till.tool])
    assert list(outputs(sent(model, 0).prompt)) == ["c1", "c2", "c3"]
    check_paired(sent(model, 0).prompt)
    assert len(till.paid) == 1


@both_ways
async def test_a_call_that_nobody_said_anything_about_gets_a_result_that_says_so(drive: Drive) -> None:
    till = Till()
    first = await drive(script(says(call("c1", "pay"))), tools=[till.tool])
    model = script("done")
    await drive(model, CallOptions((*first.messages, user("Never mind."))), tools=[till.tool])
    assert outputs(sent(model, 0).prompt)["c1"][0] == "error-text"
    assert till.paid == []
    check_paired(sent(model, 0).prompt)
    assert isinstance(sent(model, 0).prompt[-1], UserMessage)


@both_ways
async def test_a_conversation_in_another_process_needs_nothing_but_its_messages(drive: Drive) -> None:
    till = Till()
    history = (*ASKED.prompt, AssistantMessage([ToolCallPart("c1", "pay", {"sum": 5})]))
    result = await drive(script("done"), answered(history, ("approval-c1", True, None)), tools=[till.tool])
    assert (till.paid, result.text) == ([{"sum": 5}], "done")


@both_ways
async def test_a_hook_decides_at_once(drive: Drive) -> None:
    till = Till()
    asked: list[str] = []

    async def decide(one: ToolCall) -> object:
        asked.append(one.tool_call_id)
        return {"c1": approve(), "c2": deny("no"), "c3": ask()}[one.tool_call_id]

    result = await drive(
        script(says(call("c1", "pay"), call("c2", "pay"), call("c3", "pay"))), tools=[till.tool], approve=decide
    )
    assert sorted(asked) == ["c1", "c2", "c3"]
    assert outputs(result.messages) == {"c1": ("text", "paid"), "c2": ("execution-denied", "no")}
    assert [one.call.tool_call_id for one in result.approvals] == ["c3"]


@both_ways
async def test_approved_calls_are_checked_like_others(drive: Drive) -> None:
    strict = Tool(
        name="pay",
        input_schema={"type": "object", "required": ["sum"]},
        execute=lambda given: pytest.fail("it is not valid"),
        needs_approval=True,
    )
    history = (*ASKED.prompt, AssistantMessage([ToolCallPart("c1", "pay", {})]))
    model = script("done")
    await drive(model, answered(history, ("approval-c1", True, None)), tools=[strict])
    assert outputs(sent(model, 0).prompt)["c1"][0] == "error-text"


@both_ways
async def test_approvals_of_the_providers_own_calls_are_left_alone(drive: Drive) -> None:
    history = (
        *ASKED.prompt,
        AssistantMessage([ToolCallPart("c1", "look", {})]),
        ToolMessage([ToolResultPart("c1", "look", TextOutput("saw sky"))]),
    )
    options = answered(history, ("mcp-1", True, None))
    model = script("done")
    await drive(model, options, tools=[look])
    assert sent(model, 0).prompt == options.prompt


@both_ways
async def test_a_request_for_approval_of_the_provider_ends_the_turn(drive: Drive) -> None:
    theirs = ToolCall("m1", "mcp", "{}", provider_executed=True)
    result = await drive(script(says(theirs, ToolApprovalRequest("a1", "m1"), reason="tool-calls")), tools=[look])
    assert result.stopped_by == "approval"


async def test_a_turn_as_a_model_asks_and_goes_on_the_same_way() -> None:
    till = Till()
    turn = TurnModel(script(says(call("c1", "pay")), "done"), [till.tool])
    first = await turn.do_generate(ASKED)
    (request,) = (one for one in first.content if isinstance(one, ToolApprovalRequest))
    history = (*ASKED.prompt, AssistantMessage([ToolCallPart("c1", "pay", {})]))
    stream = (await turn.do_stream(answered(history, (request.approval_id, True, None)))).stream
    assert collect([part async for part in stream]).text == "done"
    assert len(till.paid) == 1
