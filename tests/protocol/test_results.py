"""Usage is added without inventing numbers; an answer is read by kind."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given

from neurolink_mw.protocol import (
    NO_USAGE,
    FinishReason,
    GenerateResult,
    InputTokens,
    OutputTokens,
    Reasoning,
    Text,
    ToolCall,
    UnknownPart,
    Usage,
)

from .strategies import quick, values_of


def test_numbers_add_up_field_by_field() -> None:
    one = Usage(InputTokens(10, 5, 3, 2), OutputTokens(7, 4, 3))
    assert one + one == Usage(InputTokens(20, 10, 6, 4), OutputTokens(14, 8, 6))


def test_an_unknown_number_makes_the_sum_unknown_and_never_a_part_of_it() -> None:
    total = Usage(InputTokens(10)) + Usage(InputTokens(no_cache=1))
    assert total == Usage()


def test_what_the_provider_said_itself_does_not_add_up() -> None:
    one = Usage(InputTokens(1, extra={"audio": 2}), raw={"prompt_tokens": 1}, extra={"cost": 1})
    assert one + NO_USAGE == Usage(InputTokens(1))


@quick
@given(usage=values_of(Usage))
def test_no_usage_adds_nothing(usage: Usage) -> None:
    plain = Usage(usage.input_tokens.replace(extra=None), usage.output_tokens.replace(extra=None))
    assert usage + NO_USAGE == NO_USAGE + usage == plain


def test_no_usage_is_known_to_be_nothing_and_differs_from_unknown() -> None:
    assert Usage() != NO_USAGE
    for side in (NO_USAGE.input_tokens, NO_USAGE.output_tokens):
        assert {getattr(side, f.name) for f in dataclasses.fields(side) if f.name != "extra"} == {0}


@pytest.fixture
def answer() -> GenerateResult:
    return GenerateResult(
        [
            Text("a"),
            Reasoning("x"),
            ToolCall("1", "t", "{}"),
            UnknownPart("custom", {}),
            Text("b"),
            Reasoning("y"),
            ToolCall("2", "t", "{}"),
        ]
    )


def test_the_text_is_that_of_all_text_blocks(answer: GenerateResult) -> None:
    assert answer.text == "ab"


def test_the_reasoning_text_is_that_of_all_reasoning_blocks(answer: GenerateResult) -> None:
    assert answer.reasoning_text == "xy"


def test_the_tool_calls_stand_in_the_models_order(answer: GenerateResult) -> None:
    assert [call.tool_call_id for call in answer.tool_calls] == ["1", "2"]


def test_an_empty_answer_has_empty_text_and_stopped() -> None:
    assert GenerateResult().text == ""
    assert GenerateResult().finish_reason == FinishReason("stop")
