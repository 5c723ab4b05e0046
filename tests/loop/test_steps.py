"""What a step's answer leads to."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from neurolink_mw.errors import ConfigError
from neurolink_mw.protocol import (
    AssistantMessage,
    CallOptions,
    ContentOutput,
    File,
    FilePart,
    FunctionTool,
    OutputImageData,
    Reasoning,
    ReasoningPart,
    Source,
    Text,
    TextOutput,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolMessage,
    ToolResult,
    ToolResultPart,
    UnknownPart,
    Usage,
)

from .builders import ASKED, COST, Drive, both_ways, call, check_paired, look, outputs, says, script, sent, working

pytestmark = pytest.mark.anyio


@both_ways
async def test_an_answer_without_calls_is_the_last(drive: Drive) -> None:
    result = await drive(script("Hello."), tools=[look])
    assert (result.text, result.stopped_by, result.finish_reason.unified) == ("Hello.", "answer", "stop")
    assert result.messages == (*ASKED.prompt, AssistantMessage((TextPart("Hello."),)))


@both_ways
async def test_tools_are_run_and_the_model_is_asked_again_with_their_results(drive: Drive) -> None:
    model = script(says("Let me see.", call("c1", at="sea"), call("c2")), "It is blue.")
    result = await drive(model, tools=[look])
    assert sent(model, 1).prompt == (
        *ASKED.prompt,
        AssistantMessage(
            (TextPart("Let me see."), ToolCallPart("c1", "look", {"at": "sea"}), ToolCallPart("c2", "look", {}))
        ),
        ToolMessage(tuple(_result(id, f"saw {what}") for id, what in (("c1", "sea"), ("c2", "sky")))),
    )
    assert result.text == "It is blue."
    assert result.tools_used == ("look",)


def _result(id: str, text: str) -> ToolResultPart:
    return ToolResultPart(id, "look", TextOutput(text))


@both_ways
async def test_the_model_is_told_of_the_tools_at_every_step(drive: Drive) -> None:
    model = script(says(call()), "done")
    other = FunctionTool("theirs", {"type": "object"})
    await drive(model, ASKED.replace(tools=[other]), tools=[look])
    assert [sent(model, step).tools for step in range(2)] == [(look.definition, other)] * 2


@both_ways
@pytest.mark.parametrize("reason", ["stop", "other", "tool-calls", "interrupted"])
async def test_complete_calls_are_run_whatever_the_reason_says(drive: Drive, reason: str) -> None:
    result = await drive(script(says("Looking.", call(), reason=reason), "done"), tools=[look])
    assert (len(result.tool_executions), result.text) == (1, "done")


@both_ways
async def test_a_turn_that_ends_without_calls_ends_with_stop_whatever_the_reason_says(drive: Drive) -> None:
    result = await drive(script(says("bye", reason="tool-calls")), tools=[look])
    assert (result.text, result.finish_reason.unified) == ("bye", "stop")


@both_ways
async def test_the_text_of_the_last_step_is_the_text_and_reasoning_is_that_of_all_steps(drive: Drive) -> None:
    model = script(says(Reasoning("First. "), "Looking.", call()), says(Reasoning("Then."), "done"))
    result = await drive(model, tools=[look])
    assert (result.text, result.reasoning_text) == ("done", "First. Then.")
    assert [step.text for step in result.steps] == ["Looking.", "done"]


@both_ways
async def test_usage_is_the_sum_over_the_steps(drive: Drive) -> None:
    result = await drive(script(says(call()), says("done")), tools=[look])
    assert result.usage == COST + COST


@both_ways
async def test_usage_that_one_step_did_not_report_is_unset(drive: Drive) -> None:
    result = await drive(script(says(call()), says("done", usage=Usage())), tools=[look])
    assert result.usage.input_tokens.total is None


@both_ways
async def test_results_stand_in_the_order_of_the_calls_with_an_error_for_each_that_failed(drive: Drive) -> None:
    later = anyio.Event()

    async def ok(given: object) -> str:
        await later.wait()
        return "one"

    def boom(given: object) -> str:
        raise KeyError

    async def cancels_itself(given: object) -> str:
        later.set()
        raise asyncio.CancelledError

    tools = [working("ok", ok), working("boom", boom), working("self_cancel", cancels_itself)]
    model = script(says(call("c1", "ok"), call("c2", "boom"), call("c3", "self_cancel")), "done")
    result = await drive(model, tools=tools)
    assert list(outputs(result.messages)) == ["c1", "c2", "c3"]
    assert outputs(result.messages)["c1"] == ("text", "one")
    kind, said = outputs(result.messages)["c2"]
    assert kind == "error-text"
    assert "KeyError" in str(said)
    assert outputs(result.messages)["c3"][0] == "error-text"
    assert (len(model.calls), result.text) == (2, "done")


@both_ways
async def test_an_unknown_tool_is_an_error_for_that_call_alone(drive: Drive) -> None:
    model = script(says(call("c1", "get_sites"), call("c2")), says(call("c3")), "done")
    result = await drive(model, tools=[look])
    assert outputs(result.messages)["c1"] == (
        "error-text",
        "There is no tool 'get_sites' here. The available tools are: look.",
    )
    assert [one.status for one in result.tool_executions] == ["error", "ok", "ok"]
    assert result.text == "done"


@both_ways
async def test_a_mistake_that_is_made_again_and_again_ends_at_the_limit(drive: Drive) -> None:
    model = script(*(says(call(f"c{n}", "get_sites")) for n in range(5)), RuntimeError())
    result = await drive(model, tools=[look], max_steps=5)
    assert (result.stopped_by, result.finish_reason.unified) == ("step-limit", "tool-calls")
    assert all(one.tries == 0 for one in result.tool_executions)


@both_ways
async def test_input_that_is_no_json_is_an_error_and_goes_back_as_it_was(drive: Drive) -> None:
    model = script(says(ToolCall("c1", "look", '{"at": ')), "done")
    result = await drive(model, tools=[look])
    (execution,) = result.tool_executions
    assert (execution.status, execution.tries, execution.input) == ("error", 0, '{"at": ')
    replayed = sent(model, 1).prompt[1].content[0]
    assert isinstance(replayed, ToolCallPart)
    assert replayed.input == '{"at": '


@both_ways
async def test_a_tool_that_nothing_stands_behind_gets_an_error_result(drive: Drive) -> None:
    options = ASKED.replace(tools=[FunctionTool("theirs", {"type": "object"})])
    result = await drive(script(says(call("c1", "theirs")), "done"), options)
    assert outputs(result.messages)["c1"][0] == "error-text"
    assert result.text == "done"


@both_ways
async def test_tools_that_the_provider_ran_are_not_run_again(drive: Drive) -> None:
    search = (ToolCall("s1", "search", "{}", provider_executed=True), ToolResult("s1", "search", {"hits": 3}))
    result = await drive(script(says(*search, "Found.", reason="stop")), tools=[look])
    assert result.tool_executions == ()
    message = result.messages[-1]
    assert isinstance(message, AssistantMessage)
    assert [part.type for part in message.content] == ["tool-call", "tool-result", "text"]
    assert result.text == "Found."


@both_ways
async def test_a_conversation_keeps_what_a_provider_needs_to_go_on(drive: Drive) -> None:
    signed = Reasoning("Hm.", {"anthropic": {"signature": "abc"}})
    picture = File("image/png", b"png")
    source, new = Source("url", "s1", url="https://x"), UnknownPart("new", {"type": "new"})
    model = script(says(signed, picture, source, new, call()), "done")
    await drive(model, tools=[look])
    message = sent(model, 1).prompt[1]
    assert isinstance(message, AssistantMessage)
    assert message.content[:3] == (
        ReasoningPart("Hm.", {"anthropic": {"signature": "abc"}}),
        FilePart("image/png", b"png"),
        new,
    )


@both_ways
async def test_images_that_a_tool_returns_reach_the_model(drive: Drive) -> None:
    image = OutputImageData(b"png", "image/png")
    model = script(says(call("c1", "shot")), "done")
    await drive(model, tools=[working("shot", lambda given: image)])
    results = sent(model, 1).prompt[2].content
    assert isinstance(results[0], ToolResultPart)
    assert results[0].output == ContentOutput((image,))


@both_ways
async def test_a_long_output_goes_into_the_conversation_in_part_and_into_the_record_whole(drive: Drive) -> None:
    long = "\n".join(f"line {n}" for n in range(5000))
    model = script(says(call("c1", "read")), "done")
    result = await drive(model, tools=[working("read", lambda given: long)])
    said = str(outputs(sent(model, 1).prompt)["c1"][1])
    assert len(said.splitlines()) <= 2000
    assert said.startswith("line 0\n")
    assert said.endswith("line 4999")
    assert getattr(result.tool_executions[0].output, "value", None) == long


@both_ways
async def test_everything_of_the_request_reaches_each_step_with_its_number(drive: Drive) -> None:
    model = script(says(call()), "done")
    options = CallOptions(ASKED.prompt, temperature=0.5, metadata={"tenant": "t1"})
    await drive(model, options, tools=[look])
    contexts = [sent(model, step).context for step in range(2)]
    assert [context.step for context in contexts] == [0, 1]
    assert len({context.request_id for context in contexts}) == 1
    assert all(one.options.temperature == 0.5 and one.options.metadata == {"tenant": "t1"} for one in model.calls)


@both_ways
async def test_a_first_answer_of_nothing_makes_no_empty_message(drive: Drive) -> None:
    result = await drive(script(says(Text(""))))
    assert result.messages == ASKED.prompt
    check_paired(result.messages)


@both_ways
async def test_a_turn_shows_no_content_when_it_is_printed(drive: Drive) -> None:
    result = await drive(script(says("my secret", call(at="my secret")), "my secret"), tools=[look])
    assert "secret" not in repr(result)
    assert "secret" not in repr(result.tool_executions)


@both_ways
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_steps": 0}, "max_steps is a whole number from 1 to 500"),
        ({"max_steps": 501}, "from 1 to 500"),
        ({"max_steps": True}, "max_steps"),
        ({"tool_choice_steps": -1}, "tool_choice_steps"),
        ({"deadline": 0}, "deadline"),
        ({"stop_when": [3]}, "stop_when"),
        ({"terminal_tools": "final"}, "terminal_tools is a list"),
        ({"prepare_step": 3}, "prepare_step"),
        ({"parallel_tools": 0}, "parallel"),
        ({"tools": [look, look]}, "two tools have the name 'look'"),
        ({"tools": look}, "tools are given as a list"),
        ({"tools": [print]}, "functions with @tool"),
    ],
)
async def test_settings_that_cannot_work_are_refused(drive: Drive, settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        await drive(script("done"), **settings)


@both_ways
async def test_a_misspelt_setting_is_named(drive: Drive) -> None:
    with pytest.raises(TypeError, match=r"no setting 'max_step'.*max_steps"):
        await drive(script("done"), max_step=3)


@both_ways
async def test_what_is_no_model_is_refused(drive: Drive) -> None:
    with pytest.raises(ConfigError, match=r"a (streamed )?turn needs a model with do_"):
        await drive("openai-compatible:gpt-5")
