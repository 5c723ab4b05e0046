"""What every answer carries besides its content: why it ended, what it cost, what could not be honoured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeAlias

from .content import Content, Reasoning, Text, ToolCall
from .values import JSON, JSONObject, Value, list_as_tuple, value

# The known reasons. The field stays an open string: newer providers add to it (V4 has `interrupted`).
UnifiedFinishReason: TypeAlias = Literal["stop", "length", "content-filter", "tool-calls", "error", "other"]


@value
class FinishReason(Value):
    """`unified` is one of `UnifiedFinishReason` or a newer word; `raw` is what the provider said."""

    unified: str
    raw: str | None = None
    extra: JSONObject | None = None


@value
class InputTokens(Value):
    """Tokens read. `total` = `no_cache` + `cache_read` + `cache_write`, for every provider. Unset: not reported."""

    total: int | None = None
    no_cache: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    extra: JSONObject | None = None


@value
class OutputTokens(Value):
    """Tokens written. `total` = `text` + `reasoning`. Unset: not reported."""

    total: int | None = None
    text: int | None = None
    reasoning: int | None = None
    extra: JSONObject | None = None


@value
class Usage(Value):
    """What a call cost, in tokens. A number that was not reported is unset, never 0. `raw`: the provider's own."""

    input_tokens: InputTokens = InputTokens()
    output_tokens: OutputTokens = OutputTokens()
    raw: JSON = None
    extra: JSONObject | None = None

    def __add__(self, other: Usage) -> Usage:
        """The sum. An unset number plus a number is unset: part of the bill is unknown."""
        mine, theirs = self.input_tokens, other.input_tokens
        written, more = self.output_tokens, other.output_tokens
        return Usage(
            InputTokens(
                _sum(mine.total, theirs.total),
                _sum(mine.no_cache, theirs.no_cache),
                _sum(mine.cache_read, theirs.cache_read),
                _sum(mine.cache_write, theirs.cache_write),
            ),
            OutputTokens(
                _sum(written.total, more.total), _sum(written.text, more.text), _sum(written.reasoning, more.reasoning)
            ),
        )


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


NO_USAGE = Usage(InputTokens(0, 0, 0, 0), OutputTokens(0, 0, 0))
"""What a call cost that reached no model."""


@value
class CallWarning(Value):
    """Something of the request that was left out or bent.

    type: "unsupported" or "compatibility" (with `feature`, perhaps `details`), "other" (with `message`), or newer.
    """

    type: str
    feature: str | None = None
    details: str | None = None
    message: str | None = None
    extra: JSONObject | None = None


@value
class RequestInfo(Value):
    """What was sent: the native body, where the adapter keeps it."""

    body: JSON = None
    extra: JSONObject | None = None


@value
class ResponseInfo(Value):
    """Who answered: the provider's id of the answer, its time, the model that really ran, HTTP headers, raw body."""

    id: str | None = None
    timestamp: datetime | None = None
    model_id: str | None = None
    headers: Mapping[str, str] | None = None
    body: JSON = None
    extra: JSONObject | None = None


@value
class GenerateResult(Value):
    """A whole answer."""

    content: Sequence[Content] = ()
    finish_reason: FinishReason = FinishReason("stop")
    usage: Usage = Usage()
    warnings: Sequence[CallWarning] = ()
    provider_metadata: JSONObject | None = None
    request: RequestInfo | None = None
    response: ResponseInfo | None = None
    extra: JSONObject | None = None

    def __post_init__(self) -> None:
        if self.content.__class__ is not tuple:
            list_as_tuple(self, "content")
        if self.warnings.__class__ is not tuple:
            list_as_tuple(self, "warnings")

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return "".join(part.text for part in self.content if isinstance(part, Text))

    @property
    def reasoning_text(self) -> str:
        """The reasoning blocks, joined."""
        return "".join(part.text for part in self.content if isinstance(part, Reasoning))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in the model's order."""
        return tuple(part for part in self.content if isinstance(part, ToolCall))
