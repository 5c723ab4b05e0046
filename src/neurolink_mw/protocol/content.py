"""What a model answers with: the content of a result. The same tool calls, sources and files also travel in streams."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from .values import JSON, JSONObject, Value, value


class Url(str):
    """A file that lies elsewhere. A plain `str` is never taken for one, so data and address cannot be mixed up."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Url(<{len(self)} chars>)"  # signed addresses carry secrets


@value
class UnknownPart(Value):
    """A part of a type that this version does not know. It is carried along whole and written back as it came."""

    type: str
    data: JSONObject


@value
class Text(Value):
    """A text block of an answer."""

    type: ClassVar[str] = "text"
    text: str
    provider_metadata: JSONObject | None = None
    extra: JSONObject | None = None


@value
class Reasoning(Value):
    """The model's reasoning. Signatures and redacted data live in `provider_metadata` and must travel back with it."""

    type: ClassVar[str] = "reasoning"
    text: str
    provider_metadata: JSONObject | None = None
    extra: JSONObject | None = None


@value
class File(Value):
    """A file that the model made."""

    type: ClassVar[str] = "file"
    media_type: str
    data: bytes
    provider_metadata: JSONObject | None = None
    extra: JSONObject | None = None


@value
class ToolCall(Value):
    """A tool that the model wants to run. `input` is the JSON text that the model wrote, valid or not."""

    type: ClassVar[str] = "tool-call"
    tool_call_id: str
    tool_name: str
    input: str
    provider_executed: bool | None = None
    dynamic: bool | None = None
    provider_metadata: JSONObject | None = None
    extra: JSONObject | None = None


@value
class ToolResult(Value):
    """The result of a tool that the provider ran itself. A preliminary result is replaced by the next one."""

    type: ClassVar[str] = "tool-result"
    tool_call_id: str
    tool_name: str
    result: JSON
    is_error: bool | None = None
    preliminary: bool | None = None
    dynamic: bool | None = None
    provider_metadata: JSONObject | None = None
    extra: JSONObject | None = None


@value
class ToolApprovalRequest(Value):
    """A call that waits until somebody approves it."""

    type: ClassVar[str] = "tool-approval-request"
    approval_id: str
    tool_call_id: str
    provider_metadata: JSONObject | None = None
    extra: JSONObject | None = None


@value
class Source(Value):
    """What an answer stands on: a page (`source_type` "url", with `url`) or a document (with `media_type`, `title`)."""

    type: ClassVar[str] = "source"
    source_type: str
    id: str
    url: str | None = None
    title: str | None = None
    media_type: str | None = None
    filename: str | None = None
    provider_metadata: JSONObject | None = None
    extra: JSONObject | None = None


Content: TypeAlias = Text | Reasoning | File | ToolCall | ToolResult | ToolApprovalRequest | Source | UnknownPart
