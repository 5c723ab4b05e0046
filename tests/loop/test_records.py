"""The small functions of the loop that others use: records, messages, what can be driven."""

from __future__ import annotations

import pytest

from neurolink_mw.loop import (
    StepToolCall,
    StepToolResult,
    TurnRecord,
    append_json_schema_instruction,
    has_native_do_generate,
    run_generate_loop,
    to_prepare_step_record,
)
from neurolink_mw.protocol import (
    CallOptions,
    FinishReason,
    GenerateResult,
    InputTokens,
    SystemMessage,
    Text,
    TextOutput,
    ToolCall,
    user,
)

from .builders import ASKED, call, look, says, script


def test_a_record_has_one_shape_whoever_makes_it() -> None:
    record = to_prepare_step_record(
        step_number=2,
        content=[Text("Hm."), call("c1")],
        text="Hm.",
        tool_calls=[{"toolName": "look", "toolCallId": "c1", "input": {"at": "sea"}}],
        tool_results=[{"toolName": "look", "toolCallId": "c1", "output": TextOutput("saw sea")}],
        finish_reason="tool-calls",
        input_tokens=10,
        output_tokens=3,
    )
    assert (record.step_number, record.text) == (2, "Hm.")
    assert record.tool_calls == (StepToolCall("look", "c1", {"at": "sea"}),)
    assert record.tool_results == (StepToolResult("look", "c1", TextOutput("saw sea")),)
    assert record.finish_reason == FinishReason("tool-calls")
    assert (record.usage.input_tokens.total, record.usage.output_tokens.total) == (10, 3)


def test_an_unknown_reason_is_other_and_kept() -> None:
    record = to_prepare_step_record(step_number=0, content=(), text="", finish_reason="end_turn")
    assert record.finish_reason == FinishReason("other", "end_turn")


def test_cache_tokens_are_there_only_where_they_were_reported_and_counted_once() -> None:
    plain = to_prepare_step_record(step_number=0, content=(), text="", finish_reason="stop", input_tokens=10)
    assert plain.usage.input_tokens == InputTokens(10)
    cached = to_prepare_step_record(
        step_number=0, content=(), text="", finish_reason="stop", input_tokens=10, cache_read_tokens=5
    )
    assert cached.usage.input_tokens == InputTokens(15, 10, 5, None)


def test_tokens_that_nobody_counted_are_unset() -> None:
    record = to_prepare_step_record(step_number=0, content=(), text="", finish_reason="stop")
    assert record.usage.input_tokens.total is None


@pytest.mark.parametrize("missing", [{}, {"toolName": 3, "toolCallId": "c1"}])
def test_a_call_without_its_names_is_refused(missing: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError)):
        to_prepare_step_record(
            step_number=0,
            content=(),
            text="",
            finish_reason="stop",
            tool_calls=[missing],  # type: ignore[list-item]
        )


@pytest.mark.parametrize(
    ("value", "expected"), [(script(), True), ("openai:gpt-5", False), (None, False), (type(script()), False)]
)
def test_what_can_be_driven_has_a_do_generate(value: object, expected: bool) -> None:
    assert has_native_do_generate(value) is expected


def test_the_instruction_for_a_schema_is_here_too() -> None:
    messages = append_json_schema_instruction([user("Hi")], {"type": "object"})
    assert isinstance(messages[0], SystemMessage)


def test_a_record_shows_no_content() -> None:
    record = TurnRecord(messages=(user("secret"),))
    assert "secret" not in repr(record)


class Echo:
    """A model of one's own: two names and one method."""

    provider, model_id = "example", "echo"

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        seen = any(message.role == "tool" for message in options.prompt)
        return GenerateResult((Text("I looked."),) if seen else (ToolCall("c1", "look", "{}"),))


@pytest.mark.anyio
async def test_anything_with_a_v3_shaped_do_generate_can_be_driven() -> None:
    result = await run_generate_loop(Echo(), ASKED, tools=[look])  # type: ignore[arg-type]  # it cannot stream
    assert (result.text, len(result.tool_executions)) == ("I looked.", 1)


@pytest.mark.anyio
async def test_a_generated_turn_makes_no_streaming_call() -> None:
    model = script(says(call()), "done")
    await run_generate_loop(model, ASKED, tools=[look])
    assert [one.kind for one in model.calls] == ["generate", "generate"]
