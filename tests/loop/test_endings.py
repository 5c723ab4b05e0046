"""How a turn ends that does not end with an answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from neurolink_mw.errors import PolicyDenied
from neurolink_mw.loop import StepResult, has_tool_call, step_count_is
from neurolink_mw.protocol import (
    AssistantMessage,
    Content,
    FinishReason,
    GenerateResult,
    Reasoning,
    Text,
    TextPart,
    ToolCall,
    ToolChoice,
    ToolMessage,
)

from .builders import COST, Drive, both_ways, call, check_paired, look, says, script, sent, working

pytestmark = pytest.mark.anyio

final = working("final_result", lambda given: pytest.fail("a terminal tool is never run"))


# -- answers that were cut


@both_ways
@pytest.mark.parametrize("reason", ["length", "content-filter", "error"])
async def test_the_calls_of_a_cut_answer_are_not_run_and_not_kept(drive: Drive, reason: str) -> None:
    result = await drive(script(says("I will", call(), reason=reason)), tools=[look])
    assert result.finish_reason.unified == reason
    assert result.tool_executions == ()
    assert result.messages[-1] == AssistantMessage((TextPart("I will"),))
    assert [one.type for one in result.content] == ["text"]
    assert [one.message for one in result.warnings] == ["calls were not run, since the answer was cut: look"]


@both_ways
async def test_a_cut_answer_of_calls_alone_makes_no_message(drive: Drive) -> None:
    result = await drive(script(says(call(), reason="length")), tools=[look])
    assert all(not isinstance(message, AssistantMessage) for message in result.messages)


@both_ways
async def test_a_cut_in_a_later_step_keeps_what_was_done_before(drive: Drive) -> None:
    result = await drive(script(says(call("c1")), says("par", call("c2"), reason="length")), tools=[look])
    assert [one.tool_call_id for one in result.tool_executions] == ["c1"]
    check_paired(result.messages)


# -- an answer of nothing


@both_ways
async def test_an_answer_of_nothing_that_means_to_call_tools_is_asked_for_once_more_without_them(drive: Drive) -> None:
    model = script(says(reason="tool-calls"), "Here it is.")
    result = await drive(model, tools=[look])
    assert sent(model, 1).tool_choice == ToolChoice("none")
    assert sent(model, 1).prompt == sent(model, 0).prompt
    assert (result.text, result.finish_reason.unified, len(result.steps)) == ("Here it is.", "stop", 2)
    check_paired(result.messages)


@both_ways
async def test_it_is_asked_for_only_once(drive: Drive) -> None:
    model = script(says(reason="tool-calls"), says(reason="tool-calls"))
    result = await drive(model, tools=[look])
    assert (len(model.calls), result.text, result.finish_reason.unified) == (2, "", "stop")


@both_ways
async def test_where_asking_again_fails_the_turn_ends_as_it_was(drive: Drive, caplog: pytest.LogCaptureFixture) -> None:
    result = await drive(script(says(Reasoning("Hm."), reason="tool-calls"), RuntimeError("secret")), tools=[look])
    assert (result.text, result.stopped_by, len(result.steps)) == ("", "answer", 1)
    assert result.reasoning_text == "Hm."
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text


@both_ways
async def test_calls_that_come_all_the_same_are_not_run(drive: Drive) -> None:
    result = await drive(script(says(reason="tool-calls"), says("Well.", call())), tools=[look])
    assert (result.text, result.tool_executions) == ("Well.", ())
    check_paired(result.messages)


@both_ways
async def test_without_tools_or_steps_left_an_answer_of_nothing_stands(drive: Drive) -> None:
    assert (await drive(script(says(reason="tool-calls")))).stopped_by == "answer"
    assert (await drive(script(says(reason="tool-calls")), tools=[look], max_steps=1)).text == ""


# -- the limit of steps


@both_ways
async def test_at_the_limit_the_text_of_the_last_step_is_the_answer(drive: Drive) -> None:
    model = script(says("First.", call("c1")), says("Second.", call("c2")))
    result = await drive(model, tools=[look], max_steps=2)
    assert (result.text, result.stopped_by) == ("Second.", "step-limit")
    assert (result.finish_reason.unified, result.finish_reason.raw) == ("tool-calls", "step-limit")
    assert len(model.calls) == 2
    check_paired(result.messages)


@both_ways
async def test_else_what_was_said_before(drive: Drive) -> None:
    model = script(says("First.", call("c1")), says("Second.", call("c2")), says(call("c3")))
    assert (await drive(model, tools=[look], max_steps=3)).text == "First.\n\nSecond."


@both_ways
async def test_else_the_model_is_asked_for_an_answer_without_tools(drive: Drive) -> None:
    model = script(says(call("c1")), says(call("c2")), "It is blue.")
    result = await drive(model, tools=[look], max_steps=2)
    assert sent(model, 2).tool_choice == ToolChoice("none")
    assert isinstance(sent(model, 2).prompt[-1], ToolMessage)
    assert (result.text, result.stopped_by, result.finish_reason.unified) == ("It is blue.", "step-limit", "tool-calls")
    assert result.messages[-1] == AssistantMessage((TextPart("It is blue."),))
    assert result.usage.output_tokens.total is None  # the last one did not say


@both_ways
@pytest.mark.parametrize("last", [RuntimeError(), says(call("c9")), says("No", reason="error")])
async def test_else_the_turn_says_what_happened_and_never_fails(drive: Drive, last: object) -> None:
    result = await drive(script(says(call("c1"), call("c2")), last), tools=[look], max_steps=1)
    assert result.text == (
        "I made 2 tool calls and came to the limit of 1 step before I had an answer. "
        "Please ask for less at once, or in smaller parts."
    )
    assert result.finish_reason.unified == "tool-calls"
    check_paired(result.messages)
    assert result.messages[-1] == AssistantMessage((TextPart(result.text),))


@both_ways
async def test_an_answer_that_was_refused_at_the_limit_stays_refused(drive: Drive) -> None:
    result = await drive(script(says(call()), says("Not that.", reason="content-filter")), tools=[look], max_steps=1)
    assert (result.text, result.finish_reason.unified, result.stopped_by) == (
        "Not that.",
        "content-filter",
        "step-limit",
    )


@both_ways
async def test_a_refusal_at_the_limit_is_raised(drive: Drive) -> None:
    with pytest.raises(PolicyDenied):
        await drive(script(says(call()), PolicyDenied("No.", code="no")), tools=[look], max_steps=1)


@both_ways
async def test_an_answer_at_the_very_last_step_is_an_answer(drive: Drive) -> None:
    result = await drive(script(says(call()), "done"), tools=[look], max_steps=2)
    assert (result.text, result.stopped_by) == ("done", "answer")


@both_ways
async def test_the_limit_is_200_steps_unless_it_is_said(drive: Drive) -> None:
    model = script(*(says(call(f"c{n}")) for n in range(200)), "done at last")
    result = await drive(model, tools=[look])
    assert (len(result.tool_executions), result.text) == (200, "done at last")
    assert result.stopped_by == "step-limit"


# -- conditions


@both_ways
async def test_a_condition_ends_the_turn_after_a_step_whose_tools_have_run(drive: Drive) -> None:
    model = script(says("Looking.", call("c1")), says("Again.", call("c2")))
    result = await drive(model, tools=[look], stop_when=step_count_is(2))
    assert (result.stopped_by, result.text, len(result.tool_executions)) == ("stop-condition", "Again.", 2)
    assert result.finish_reason.unified == "tool-calls"
    check_paired(result.messages)


@both_ways
async def test_any_of_several_conditions_is_enough(drive: Drive) -> None:
    model = script(says(call("c1", "other")))
    other = working("other", lambda given: "")
    result = await drive(model, tools=[look, other], stop_when=[step_count_is(9), has_tool_call("other")])
    assert result.stopped_by == "stop-condition"


@both_ways
async def test_a_condition_may_be_async_and_sees_the_steps(drive: Drive) -> None:
    seen: list[int] = []

    async def enough(steps: Sequence[StepResult]) -> bool:
        seen.append(len(steps))
        return False

    await drive(script(says(call()), says(call()), "done"), tools=[look], stop_when=enough)
    assert seen == [1, 2]


# -- terminal tools


@both_ways
async def test_a_terminal_tool_ends_the_turn_and_is_neither_run_nor_counted_nor_listed(drive: Drive) -> None:
    model = script(says("There.", call("c1", "final_result", x=1)))
    result = await drive(model, tools=[look, final], terminal_tools=["final_result"])
    assert result.stopped_by == "terminal-tool"
    assert (result.finish_reason.unified, result.text) == ("stop", "There.")
    assert result.terminal_call is not None
    assert result.terminal_call.input == '{"x": 1}'
    assert result.tool_executions == ()
    assert result.steps[0].tool_calls == ()
    for content in (result.content, result.shown, result.steps[0].content):
        assert all(one.type != "tool-call" for one in content)
    check_paired(result.messages)


@both_ways
async def test_real_calls_beside_a_terminal_one_are_not_run(drive: Drive) -> None:
    model = script(says(call("c1"), call("c2", "final_result")))
    result = await drive(model, tools=[look, final], terminal_tools=["final_result"])
    assert result.tool_executions == ()
    assert "calls were not run" in str(result.warnings[0].message)
    check_paired(result.messages)


@both_ways
async def test_a_terminal_call_that_was_cut_is_none(drive: Drive) -> None:
    model = script(says(call("c1", "final_result"), reason="length"))
    result = await drive(model, tools=[final], terminal_tools=["final_result"])
    assert (result.terminal_call, result.finish_reason.unified) == (None, "length")


@both_ways
async def test_text_beside_a_terminal_call_stays(drive: Drive) -> None:
    model = script(says("There.", call("c1", "final_result")))
    result = await drive(model, tools=[final], terminal_tools=["final_result"])
    assert result.content == (Text("There."),)


def paused(*content: Content | str) -> GenerateResult:
    return says(*content).replace(finish_reason=FinishReason("stop", "pause_turn"))


@both_ways
async def test_an_answer_that_has_paused_is_gone_on_with(drive: Drive) -> None:
    searches = ToolCall("s1", "search", "{}", provider_executed=True)
    model = script(paused("Let me search.", searches), says("Rain."))
    turn = await drive(model)
    assert (turn.text, turn.stopped_by, len(turn.steps)) == ("Rain.", "answer", 2)
    asked_again = model.calls[1].options.prompt
    assert isinstance(last := asked_again[-1], AssistantMessage)
    assert [part.type for part in last.content] == ["text", "tool-call"]
    assert turn.usage == COST + COST


@both_ways
async def test_an_answer_that_pauses_without_end_ends_at_the_limit(drive: Drive) -> None:
    turn = await drive(script(*[paused("More.")] * 4), max_steps=3)
    assert (turn.stopped_by, len(turn.steps)) == ("step-limit", 3)


@both_ways
async def test_tools_that_are_called_beside_a_pause_are_run(drive: Drive) -> None:
    turn = await drive(script(paused("Look.", call()), says("Rain.")), tools=[look])
    assert [one.status for one in turn.tool_executions] == ["ok"]
