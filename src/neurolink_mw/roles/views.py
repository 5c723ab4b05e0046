"""What a policy gets to see."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ..protocol import CallOptions, JSONObject, Kind, ToolCall, user_text

ViewKind: TypeAlias = Literal["text", "reasoning", "tool_call"]


@dataclass(frozen=True, slots=True)
class Request:
    """A call on its way to the model. provider, model_id: of the model further in."""

    options: CallOptions = field(repr=False)
    kind: Kind
    provider: str
    model_id: str

    @property
    def text(self) -> str:
        """What the user wrote, all user messages joined by newlines."""
        return user_text(self.options.prompt)

    @property
    def metadata(self) -> JSONObject:
        """What the caller knows about the call; empty where nothing was given."""
        return self.options.metadata or {}


@dataclass(frozen=True, slots=True)
class View:
    """A part of an answer. kind: "text" for all text blocks, joined; "reasoning" for all reasoning, joined;
    "tool_call" for one call, which is then in `tool_call`. text: what is judged, whichever it is: for a tool call its
    input, the JSON text that the model wrote. final: False where a stream is looked at before its end, with the text
    as far as it goes; only the verdict on a final view counts.
    """

    kind: ViewKind
    text: str = field(repr=False)
    request: Request
    final: bool = True
    tool_call: ToolCall | None = field(default=None, repr=False)

    @property
    def reasoning(self) -> str:
        """What is judged, where it is reasoning; else empty."""
        return self.text if self.kind == "reasoning" else ""
