"""What a stream is made of, one type per kind of event. `grammar.py` says in which order they may come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, TypeAlias

from .content import File, Source, ToolApprovalRequest, ToolCall, ToolResult, UnknownPart
from .results import CallWarning, FinishReason, Usage
from .values import JSON, JSONObject, Value, list_as_tuple, value


@value
class StreamStart(Value):
    """The first part of every stream, with what the adapter could not do as asked."""

    type: ClassVar[str] = "stream-start"
    warnings: Sequence[CallWarning] = ()
    extra: JSONObject | None = None

    def __post_init__(self) -> None:
        if self.warnings.__class__ is not tuple:
            list_as_tuple(self, "warnings")


@value
class ResponseMetadata(Value):
    """What is known about the answer while it comes: the provider's id of it, its time, the model that really ran."""

    type: ClassVar[str] = "response-metadata"
    id: str | None = None
    timestamp: datetime | None = None
    model_id: str | None = None
    extra: JSONObject | None = None


@value
class TextStart(Value):
    """A block of text begins. Blocks of several ids may be open at once."""

    type: ClassVar[str] = "text-start"
    id: str
    provider_metadata: JSONObject | None = None
    extra: JSONObject | None = None


@value
class TextDelta(Value):
    """A piece of text. It may be empty where it only carries metadata."""

    type: ClassVar[str] = "text-delta"
    id: str
    delta: str
    provider_metadata: JSONObject | None = None
    extra: JSONObject | None = None


@value
class TextEnd(Value):
    """A block of text is whole."""

    type: ClassVar[str] = "text-end"
    id: str
    provider_metadata: JSONObject | None = None
    extra: JSONObject | None = None


@value
class ReasoningStart(Value):
    """A block of reasoning begins."""

    type: ClassVar[str] = "reasoning-start"
    id: str
    provider_metadata: JSONObject | None = None
    extra: JSONObject | None = None


@value
class ReasoningDelta(Value):
    """A piece of reasoning. A signature may come on an empty one."""

    type: ClassVar[str] = "reasoning-delta"
    id: str
    delta: str
    provider_metadata: JSONObject | None = None
    extra: JSONObject | None = None


@value
class ReasoningEnd(Value):
    """A block of reasoning is whole."""

    type: ClassVar[str] = "reasoning-end"
    id: str
    provider_metadata: JSONObject | None = None
    extra: JSONObject | None = None


@value
class ToolInputStart(Value):
    """The input of a tool call begins. `id` is the call's id."""

    type: ClassVar[str] = "tool-input-start"
    id: str
    tool_name: str
    provider_executed: bool | None = None
    dynamic: bool | None = None
    title: str | None = None
    provider_metadata: JSONObject | None = None
    extra: JSONObject | None = None


@value
class ToolInputDelta(Value):
    """A piece of the JSON text of a tool call's input."""

    type: ClassVar[str] = "tool-input-delta"
    id: str
    delta: str
    provider_metadata: JSONObject | None = None
    extra: JSONObject | None = None


@value
class ToolInputEnd(Value):
    """The input of a tool call is whole; the call itself follows as a `ToolCall`."""

    type: ClassVar[str] = "tool-input-end"
    id: str
    provider_metadata: JSONObject | None = None
    extra: JSONObject | None = None


@value
class Raw(Value):
    """A native event as it came, where the call asked for raw chunks. It comes right before what was made of it."""

    type: ClassVar[str] = "raw"
    raw_value: JSON
    extra: JSONObject | None = None


@value
class ErrorPart(Value):
    """A failure after the stream began. `error` is an exception here, and a JSON object once it crossed a border."""

    type: ClassVar[str] = "error"
    error: object
    extra: JSONObject | None = None


@value
class Finish(Value):
    """The last part of every stream, also after an error: why the model stopped, and what it cost."""

    type: ClassVar[str] = "finish"
    finish_reason: FinishReason
    usage: Usage = Usage()
    provider_metadata: JSONObject | None = None
    extra: JSONObject | None = None


BlockStart: TypeAlias = TextStart | ReasoningStart | ToolInputStart
BlockDelta: TypeAlias = TextDelta | ReasoningDelta | ToolInputDelta
BlockEnd: TypeAlias = TextEnd | ReasoningEnd | ToolInputEnd

StreamPart: TypeAlias = (
    StreamStart
    | ResponseMetadata
    | BlockStart
    | BlockDelta
    | BlockEnd
    | ToolCall
    | ToolResult
    | ToolApprovalRequest
    | Source
    | File
    | Raw
    | ErrorPart
    | Finish
    | UnknownPart
)

# Dispatch is a dict lookup on the class: a tenth of what an isinstance chain over five kinds costs.
BLOCK_STARTS: dict[type, str] = {TextStart: "text", ReasoningStart: "reasoning", ToolInputStart: "tool_input"}
BLOCK_DELTAS: dict[type, str] = {TextDelta: "text", ReasoningDelta: "reasoning", ToolInputDelta: "tool_input"}
BLOCK_ENDS: dict[type, str] = {TextEnd: "text", ReasoningEnd: "reasoning", ToolInputEnd: "tool_input"}
END_OF: dict[type, type[BlockEnd]] = {TextStart: TextEnd, ReasoningStart: ReasoningEnd, ToolInputStart: ToolInputEnd}

_WHOLE_CONTENT = frozenset({ToolCall, ToolResult, ToolApprovalRequest, Source, File, Finish})


def is_first_content(part: StreamPart) -> bool:
    """Whether a stream has begun to answer with this part: a non-empty delta, a whole item, or the finish.

    Until then an adapter raises what goes wrong, so that retry and fallback see it.
    """
    if isinstance(part, TextDelta | ReasoningDelta | ToolInputDelta):
        return part.delta != ""
    return part.__class__ in _WHOLE_CONTENT
