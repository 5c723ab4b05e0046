"""What a model is asked: messages and their parts, already normalised (no plain strings, no remote references)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from .content import UnknownPart, Url
from .values import JSON, JSONObject, Value, list_as_tuple, value

FileData: TypeAlias = bytes | Url


@value
class TextPart(Value):
    """A text of a message."""

    type: ClassVar[str] = "text"
    text: str
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class ReasoningPart(Value):
    """Reasoning of an earlier answer. Its signature goes back in `provider_options`, unchanged."""

    type: ClassVar[str] = "reasoning"
    text: str
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class FilePart(Value):
    """A file in the prompt. `media_type` may be a wildcard such as `image/*`; `data` is the bytes or a `Url`."""

    type: ClassVar[str] = "file"
    media_type: str
    data: FileData
    filename: str | None = None
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class ToolCallPart(Value):
    """A call of an earlier turn. `input` is the parsed value here, and JSON text in a model's answer (`ToolCall`)."""

    type: ClassVar[str] = "tool-call"
    tool_call_id: str
    tool_name: str
    input: JSON
    provider_executed: bool | None = None
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class OutputText(Value):
    """A text within a tool's output."""

    type: ClassVar[str] = "text"
    text: str
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class OutputFileData(Value):
    """A file within a tool's output, as bytes."""

    type: ClassVar[str] = "file-data"
    data: bytes
    media_type: str
    filename: str | None = None
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class OutputFileUrl(Value):
    """A file within a tool's output that lies elsewhere."""

    type: ClassVar[str] = "file-url"
    url: str
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class OutputFileId(Value):
    """A file that a provider keeps. `file_id` is one id, or a mapping of provider to id."""

    type: ClassVar[str] = "file-id"
    file_id: JSON
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class OutputImageData(Value):
    """An image within a tool's output, as bytes."""

    type: ClassVar[str] = "image-data"
    data: bytes
    media_type: str
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class OutputImageUrl(Value):
    """An image within a tool's output that lies elsewhere."""

    type: ClassVar[str] = "image-url"
    url: str
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class OutputImageFileId(Value):
    """An image within a tool's output, by the provider's id or a map of provider to id."""

    type: ClassVar[str] = "image-file-id"
    file_id: JSON
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class OutputCustom(Value):
    """Something that only the provider understands, in `provider_options`."""

    type: ClassVar[str] = "custom"
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


OutputContent: TypeAlias = (
    OutputText
    | OutputFileData
    | OutputFileUrl
    | OutputFileId
    | OutputImageData
    | OutputImageUrl
    | OutputImageFileId
    | OutputCustom
    | UnknownPart
)


@value
class TextOutput(Value):
    """What a tool said, as text."""

    type: ClassVar[str] = "text"
    value: str
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class JsonOutput(Value):
    """What a tool said, as JSON."""

    type: ClassVar[str] = "json"
    value: JSON
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class ErrorTextOutput(Value):
    """How a tool failed, as a text that the model reads."""

    type: ClassVar[str] = "error-text"
    value: str
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class ErrorJsonOutput(Value):
    """How a tool failed, as JSON that the model reads."""

    type: ClassVar[str] = "error-json"
    value: JSON
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class ExecutionDenied(Value):
    """The tool was not run, because a person or a policy said no."""

    type: ClassVar[str] = "execution-denied"
    reason: str | None = None
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class ContentOutput(Value):
    """A result of several pieces, such as text and images."""

    type: ClassVar[str] = "content"
    value: tuple[OutputContent, ...]
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


ToolOutput: TypeAlias = (
    TextOutput | JsonOutput | ErrorTextOutput | ErrorJsonOutput | ExecutionDenied | ContentOutput | UnknownPart
)


@value
class ToolResultPart(Value):
    """The answer to one tool call of the conversation."""

    type: ClassVar[str] = "tool-result"
    tool_call_id: str
    tool_name: str
    output: ToolOutput
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class ToolApprovalResponsePart(Value):
    """Whether a call that waited for approval may run, and why not."""

    type: ClassVar[str] = "tool-approval-response"
    approval_id: str
    approved: bool
    reason: str | None = None
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


UserPart: TypeAlias = TextPart | FilePart | UnknownPart
AssistantPart: TypeAlias = TextPart | FilePart | ReasoningPart | ToolCallPart | ToolResultPart | UnknownPart
ToolPart: TypeAlias = ToolResultPart | ToolApprovalResponsePart | UnknownPart

_WRAP = " of parts: wrap a text as [TextPart(text)]"


@value
class SystemMessage(Value):
    """Instructions to the model."""

    role: ClassVar[str] = "system"
    content: str
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None


@value
class UserMessage(Value):
    """What the user said, with files where there are any."""

    role: ClassVar[str] = "user"
    content: Sequence[UserPart]
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None

    def __post_init__(self) -> None:
        if self.content.__class__ is not tuple:
            list_as_tuple(self, "content", _WRAP)


@value
class AssistantMessage(Value):
    """An earlier answer of the model, with its tool calls."""

    role: ClassVar[str] = "assistant"
    content: Sequence[AssistantPart]
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None

    def __post_init__(self) -> None:
        if self.content.__class__ is not tuple:
            list_as_tuple(self, "content", _WRAP)


@value
class ToolMessage(Value):
    """Answers to tool calls of the message before it."""

    role: ClassVar[str] = "tool"
    content: Sequence[ToolPart]
    provider_options: JSONObject | None = None
    extra: JSONObject | None = None

    def __post_init__(self) -> None:
        if self.content.__class__ is not tuple:
            list_as_tuple(self, "content", _WRAP)


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage


def user(text: str) -> UserMessage:
    """A user message of one text."""
    return UserMessage((TextPart(text),))


def user_text(prompt: Sequence[Message]) -> str:
    """The text that the user wrote: text parts of one message joined by a space, messages by a newline."""
    return "\n".join(
        " ".join(part.text for part in message.content if isinstance(part, TextPart))
        for message in prompt
        if isinstance(message, UserMessage)
    )
