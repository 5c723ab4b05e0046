"""The record of one step: what the model answered, and what became of its tool calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from ..loop_guard import LoopGuardPlan
from ..protocol import (
    JSON,
    CallWarning,
    Content,
    FinishReason,
    GenerateResult,
    InputTokens,
    OutputTokens,
    ResponseInfo,
    ToolOutput,
    Usage,
    Value,
    value,
)
from ..protocol.results import UnifiedFinishReason


@value
class StepToolCall(Value):
    """A tool call of a step. input: parsed, or the text where it is no JSON."""

    tool_name: str
    tool_call_id: str
    input: JSON


@value
class StepToolResult(Value):
    """The result of a tool call, as the conversation holds it."""

    tool_name: str
    tool_call_id: str
    output: ToolOutput


@value
class StepResult(Value):
    """One completed step. step_number: from 0. content: all that the model answered. tool_calls: of the tools that the
    turn runs; tool_results: their results, in the same order. usage: what the step cost. context: what the context
    guard found before the step, with the budget and what was left of it; None where there is no guard."""

    step_number: int
    content: tuple[Content, ...]
    text: str
    tool_calls: tuple[StepToolCall, ...] = ()
    tool_results: tuple[StepToolResult, ...] = ()
    finish_reason: FinishReason = FinishReason("stop")
    usage: Usage = Usage()
    warnings: Sequence[CallWarning] = ()
    response: ResponseInfo | None = None
    provider_metadata: Mapping[str, JSON] | None = None
    context: LoopGuardPlan | None = None

    @property
    def answer(self) -> GenerateResult:
        """The model's answer, as it was."""
        return GenerateResult(
            self.content, self.finish_reason, self.usage, self.warnings, self.provider_metadata, response=self.response
        )


_REASONS = frozenset(get_args(UnifiedFinishReason))


def to_prepare_step_record(
    *,
    step_number: int,
    content: Sequence[Content],
    text: str,
    tool_calls: Sequence[StepToolCall | Mapping[str, JSON]] = (),
    tool_results: Sequence[StepToolResult | Mapping[str, object]] = (),
    finish_reason: str,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    cache_read_tokens: int | None = None,
    cache_write_tokens: int | None = None,
) -> StepResult:
    """The record of a step that `prepare_step` reads in `steps`, for loops that speak to a provider natively, so that
    a hook sees one shape.

    Calls and results may be mappings with `toolName`, `toolCallId` and `input` or `output`. finish_reason: one of the
    unified ones; any other word becomes "other", and is kept as the raw one. input_tokens: where cache tokens are
    given, those that were neither read from nor written to a cache; the total is then the sum. Unset numbers stay
    unset.
    """
    cached = cache_read_tokens is not None or cache_write_tokens is not None
    total = input_tokens
    if cached and input_tokens is not None:
        total = input_tokens + (cache_read_tokens or 0) + (cache_write_tokens or 0)
    known = finish_reason in _REASONS
    return StepResult(
        step_number,
        tuple(content),
        text,
        tuple(_call(one) for one in tool_calls),
        tuple(_result(one) for one in tool_results),
        FinishReason(finish_reason) if known else FinishReason("other", finish_reason),
        Usage(
            InputTokens(total, input_tokens if cached else None, cache_read_tokens, cache_write_tokens),
            OutputTokens(output_tokens),
        ),
    )


def _call(given: StepToolCall | Mapping[str, JSON]) -> StepToolCall:
    if isinstance(given, StepToolCall):
        return given
    return StepToolCall(_text(given, "toolName"), _text(given, "toolCallId"), given.get("input"))


def _result(given: StepToolResult | Mapping[str, object]) -> StepToolResult:
    if isinstance(given, StepToolResult):
        return given
    return StepToolResult(_text(given, "toolName"), _text(given, "toolCallId"), given["output"])  # type: ignore[arg-type]


def _text(given: Mapping[str, object], name: str) -> str:
    found = given[name]
    if not isinstance(found, str):
        raise TypeError(f"{name} is a text, not {type(found).__name__}")
    return found
