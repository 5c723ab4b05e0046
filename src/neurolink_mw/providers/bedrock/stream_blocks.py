"""Native to V3: the content blocks of a streamed answer, each from its own events. No I/O.

A block is made by its first event, takes deltas, and ends once: at its stop, where another kind of delta comes for its
index, or at the end of the stream. `end(whole=False)` closes what was cut, and passes on nothing that may be half.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...protocol import (
    JSON,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamPart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from ...protocol.tokens import json_text
from .messages import SERVER_TOOL
from .native_values import decoded, stored
from .options import KEY
from .readings import file_of, foreign, reasoning_pieces, redaction, server_result


class TextBlock:
    """A text. citations: what its citation deltas held, which is the machine's to add to."""

    kind: Final = "text"
    __slots__ = ("citations", "id")

    def __init__(self, id: str, citations: list[JSON]) -> None:
        self.id = id
        self.citations = citations

    def start(self) -> StreamPart:
        return TextStart(self.id)

    def delta(self, piece: object) -> list[StreamPart]:
        return [TextDelta(self.id, piece)] if isinstance(piece, str) and piece else []

    def end(self, *, whole: bool) -> list[StreamPart]:
        return [TextEnd(self.id, {KEY: {"citations": self.citations}} if self.citations else None)]


class ReasoningBlock:
    """Reasoning. A signature comes as an empty delta with metadata, redacted content whole before the end."""

    kind: Final = "reasoningContent"
    __slots__ = ("_redacted", "_signature", "id")

    def __init__(self, id: str) -> None:
        self.id = id
        self._signature = ""
        self._redacted = b""

    def start(self) -> StreamPart:
        return ReasoningStart(self.id)

    def delta(self, piece: object) -> list[StreamPart]:
        if isinstance(piece, dict) and len(piece) == 1 and isinstance(text := piece.get("text"), str):
            return [ReasoningDelta(self.id, text)] if text else []
        parts: list[StreamPart] = []
        for kind, said in reasoning_pieces(piece) if isinstance(piece, Mapping) else ():
            if kind == "redacted":
                self._redacted += said if isinstance(said, bytes) else _bytes(said)
            elif isinstance(said, str) and kind == "text":
                parts.extend([ReasoningDelta(self.id, said)] if said else [])
            elif isinstance(said, str):
                self._signature += said  # the last delta of it holds the whole
                parts.append(ReasoningDelta(self.id, "", {KEY: {"signature": self._signature}}))
        return parts

    def end(self, *, whole: bool) -> list[StreamPart]:
        parts: list[StreamPart] = []
        if self._redacted:
            parts.append(ReasoningDelta(self.id, "", redaction(self._redacted)))
        return [*parts, ReasoningEnd(self.id)]


class CallBlock:
    """A call: of the caller's tools, or of one that the service runs itself."""

    kind: Final = "toolUse"
    __slots__ = ("_name", "_of_server", "_pieces", "id")

    def __init__(self, id: str, name: str, of_server: bool) -> None:
        self.id = id
        self._name = name
        self._of_server = of_server
        self._pieces: list[str] = []

    def start(self) -> StreamPart:
        return ToolInputStart(self.id, self._name, True if self._of_server else None)

    def delta(self, piece: object) -> list[StreamPart]:
        text = _input_piece(piece)
        if not text:
            return []
        self._pieces.append(text)
        return [ToolInputDelta(self.id, text)]

    def end(self, *, whole: bool) -> list[StreamPart]:
        parts: list[StreamPart] = [ToolInputEnd(self.id)]
        if whole:
            metadata = {KEY: {"type": SERVER_TOOL}} if self._of_server else None
            input = "".join(self._pieces) or "{}"
            parts.append(
                ToolCall(self.id, self._name, input, True if self._of_server else None, provider_metadata=metadata)
            )
        return parts


class ResultBlock:
    """What a tool of the service said. Texts are joined, as a whole answer has them."""

    kind: Final = "toolResult"
    __slots__ = ("_call", "_content", "_result")

    def __init__(self, result: Mapping[str, object], id: str, tool_name: str) -> None:
        self._result = result
        self._call = id, tool_name
        self._content: list[dict[str, object]] = []

    def start(self) -> None:
        return None

    def delta(self, piece: object) -> list[StreamPart]:
        for item in piece if isinstance(piece, list | tuple) else ():
            if not isinstance(item, Mapping):
                continue
            text, last = item.get("text"), self._content[-1] if self._content else {}
            if isinstance(text, str) and isinstance(last.get("text"), str):
                self._content[-1] = {"text": f"{last['text']}{text}"}
            else:
                self._content.append(dict(item))
        return []

    def end(self, *, whole: bool) -> list[StreamPart]:
        return [server_result({**self._result, "content": self._content}, *self._call)] if whole else []


class ImageBlock:
    """An image that the model made, from its bytes."""

    kind: Final = "image"
    __slots__ = ("_body", "_data")

    def __init__(self, start: Mapping[str, object]) -> None:
        self._body: dict[str, object] = dict(start)
        self._data = b""

    def start(self) -> None:
        return None

    def delta(self, piece: object) -> list[StreamPart]:
        if isinstance(piece, Mapping):
            source = piece.get("source")
            data = source.get("bytes") if isinstance(source, Mapping) else None
            if isinstance(data, bytes):
                self._data += data
            else:
                self._body.update(piece)
        return []

    def end(self, *, whole: bool) -> list[StreamPart]:
        if not whole:
            return []
        body = {**self._body, "source": {"bytes": self._data}} if self._data else self._body
        return [file_of(self.kind, body) or foreign(self.kind, {self.kind: body})]


class ForeignBlock:
    """A block of a kind that V3 has no part for: what came of it, piece by piece."""

    __slots__ = ("_pieces", "_start", "kind")

    def __init__(self, kind: str, start: object) -> None:
        self.kind = kind
        self._start = start
        self._pieces: list[object] = []

    def start(self) -> None:
        return None

    def delta(self, piece: object) -> list[StreamPart]:
        self._pieces.append(piece)
        return []

    def end(self, *, whole: bool) -> list[StreamPart]:
        said = self._start if self._start is not None else next(iter(self._pieces), None)
        part = foreign(self.kind, {self.kind: said})
        # Pieces are no block, so they are shown and cannot be sent back.
        more: dict[str, JSON] = {"providerMetadata": {KEY: {"pieces": stored(self._pieces)}}} if self._pieces else {}
        return [part.replace(data={"kind": part.data["kind"], **more})] if whole else []


OpenBlock = TextBlock | ReasoningBlock | CallBlock | ResultBlock | ImageBlock | ForeignBlock


def says_nothing(kind: str, piece: object) -> bool:
    """Whether a delta holds no text, signature or data that a block of its kind could begin with."""
    if kind == "text":
        return not isinstance(piece, str) or not piece
    if kind == "reasoningContent":
        return not isinstance(piece, Mapping) or not any(said for _, said in reasoning_pieces(piece))
    return False


def _input_piece(piece: object) -> str:
    input = piece.get("input") if isinstance(piece, Mapping) else None
    return input if isinstance(input, str) else "" if input is None else json_text(input)


def _bytes(text: str) -> bytes:
    try:
        return decoded(text)
    except ValueError:
        return text.encode()
