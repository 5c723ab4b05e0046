"""What `prepare_step` may change of a step."""

from __future__ import annotations

from typing import Any

import pytest

from neurolink_mw.loop import StepChanges, StepInfo, StepResult
from neurolink_mw.protocol import CallOptions, FunctionTool, ProviderTool, SystemMessage, ToolChoice, UserMessage

from .builders import ASKED, Drive, both_ways, call, look, outputs, says, script, sent, working

pytestmark = pytest.mark.anyio

weather = working("weather", lambda given: "sunny")
mail = working("mail", lambda given: "sent")


def at_step(step: int, **changes: Any) -> Any:
    return lambda info: changes if info.step_number == step else None


@both_ways
async def test_it_is_told_of_the_steps_before(drive: Drive) -> None:
    told: list[tuple[int, tuple[StepResult, ...]]] = []

    def prepare(info: StepInfo) -> None:
        told.append((info.step_number, tuple(info.steps)))

    await drive(script(says("Let me see.", call("c1", at="sea")), "done"), tools=[look], prepare_step=prepare)
    assert [number for number, _ in told] == [0, 1]
    (step,) = told[1][1]
    assert (step.step_number, step.text, step.finish_reason.unified) == (0, "Let me see.", "tool-calls")
    assert [(one.tool_name, one.tool_call_id, one.input) for one in step.tool_calls] == [("look", "c1", {"at": "sea"})]
    assert [(one.tool_call_id, one.output.type) for one in step.tool_results] == [("c1", "text")]
    assert step.usage.input_tokens.total == 10


@both_ways
async def test_it_is_asked_once_for_each_step(drive: Drive) -> None:
    asked: list[int] = []
    await drive(script(says(call()), "done"), tools=[look], prepare_step=lambda info: asked.append(info.step_number))
    assert asked == [0, 1]


@both_ways
async def test_another_model_is_asked_for_the_step(drive: Drive) -> None:
    first, second = script(says(call())), script("done")
    result = await drive(first, tools=[look], prepare_step=at_step(1, model=second))
    assert result.text == "done"
    assert len(second.calls) == 1


@both_ways
async def test_active_tools_are_what_the_model_is_told_of_and_what_may_run(drive: Drive) -> None:
    """One set of tools for each step: a call of another tool is refused, and has its result all the same."""
    active = {0: ["weather"], 1: []}
    model = script(says(call("c1", "weather")), says(call("c2", "weather"), call("c3", "mail")), "done")
    result = await drive(
        model, tools=[weather, mail], prepare_step=lambda info: {"active_tools": active.get(info.step_number)}
    )
    told = [[one.name for one in sent(model, step).tools or () if isinstance(one, FunctionTool)] for step in range(3)]
    assert told == [["weather"], [], ["weather", "mail"]]
    assert [one.status for one in result.tool_executions] == ["ok", "error", "error"]
    assert [one.tries for one in result.tool_executions] == [1, 0, 0]
    assert outputs(result.messages)["c3"] == ("error-text", "There is no tool 'mail' here. No tool is available now.")
    assert result.text == "done"


@both_ways
async def test_active_tools_may_name_tools_of_the_provider(drive: Drive) -> None:
    model = script("done")
    search = ProviderTool("vendor.search", "search")
    await drive(model, ASKED.replace(tools=[search]), tools=[look], prepare_step=at_step(0, active_tools=["search"]))
    assert sent(model, 0).tools == (search,)


@both_ways
async def test_a_system_text_takes_the_place_of_the_system_messages_for_the_step(drive: Drive) -> None:
    options = CallOptions((SystemMessage("Be long."), *ASKED.prompt))
    model = script(says(call()), "done")
    result = await drive(model, options, tools=[look], prepare_step=at_step(0, system="Be brief."))
    heads = [sent(model, step).prompt[:2] for step in range(2)]
    assert [head[0] for head in heads] == [SystemMessage("Be brief."), SystemMessage("Be long.")]
    assert all(isinstance(head[1], UserMessage) for head in heads)
    assert result.messages[0] == SystemMessage("Be long.")


@both_ways
async def test_other_options_are_changed_for_the_step(drive: Drive) -> None:
    model = script(says(call()), "done")
    await drive(model, tools=[look], prepare_step=at_step(1, options={"temperature": 0.1, "max_output_tokens": 9}))
    assert [sent(model, step).temperature for step in range(2)] == [None, 0.1]
    assert sent(model, 1).max_output_tokens == 9


@both_ways
async def test_it_may_be_async_and_return_an_object(drive: Drive) -> None:
    async def prepare(info: StepInfo) -> StepChanges:
        return StepChanges(system="Be brief.")

    model = script("done")
    await drive(model, prepare_step=prepare)
    assert sent(model, 0).prompt[0] == SystemMessage("Be brief.")


@both_ways
@pytest.mark.parametrize(
    "said",
    [
        {"model": "gpt-5"},
        {"active_tools": "look"},
        {"system": 3},
        {"options": {"prompt": ()}},
        {"options": {"temprature": 1}},
        {"options": 3},
    ],
)
async def test_what_cannot_be_used_is_named_and_spoils_nothing_else(
    drive: Drive, said: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    model = script("done")
    (name,) = said
    assert (
        await drive(model, tools=[look], prepare_step=lambda info: {**said, "toolChoice": "required"})
    ).text == "done"
    assert f"what prepare_step returned as {name} is not used" in caplog.text
    assert sent(model, 0).tool_choice == ToolChoice("required")
    assert sent(model, 0).tools == (look.definition,)


@both_ways
async def test_what_is_no_answer_at_all_counts_as_a_failure_of_the_hook(
    drive: Drive, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await drive(script("done"), prepare_step=lambda info: 7)).text == "done"
    assert "prepare_step failed before step 0, which goes on without it: TypeError" in caplog.text


@both_ways
async def test_active_tools_may_be_any_names_one_after_the_other(drive: Drive) -> None:
    model = script(says(call()), "done")
    await drive(model, tools=[look], prepare_step=lambda info: {"active_tools": (name for name in ["look"])})
    assert [sent(model, step).tools for step in range(2)] == [(look.definition,)] * 2


@both_ways
async def test_the_step_at_the_limit_asks_the_model_that_it_says(drive: Drive) -> None:
    first, second = script(says(call())), script("done")
    result = await drive(
        first, tools=[look], max_steps=1, prepare_step=at_step(1, model=second, tool_choice="required")
    )
    assert (result.text, result.stopped_by) == ("done", "step-limit")
    assert sent(second, 0).tool_choice == ToolChoice("none")


@both_ways
async def test_what_nobody_reads_is_named(drive: Drive, caplog: pytest.LogCaptureFixture) -> None:
    await drive(script("done"), prepare_step=lambda info: {"toolchoice": "required"})
    assert "prepare_step returned what nobody reads: toolchoice" in caplog.text


@both_ways
async def test_a_failure_keeps_the_steps_that_are_paid_for(drive: Drive) -> None:
    def prepare(info: StepInfo) -> None:
        if info.step_number == 1:
            raise RuntimeError

    result = await drive(script(says(call()), "done"), tools=[look], prepare_step=prepare)
    assert len(result.steps) == 2
