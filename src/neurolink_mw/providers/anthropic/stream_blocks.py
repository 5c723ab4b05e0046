"""Native to V3: the content blocks of a streamed answer, each from its own events. No I/O.

A block is made by its start event, takes deltas, and ends once: at its stop, or at the end of the stream.
`delta(native)` returns None for a delta that does not belong to its kind of block. `end(whole=False)` closes what was
cut, and passes on nothing that may be half.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import orjson

from ...protocol import (
    JSON,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamPart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolInputDelta,
    ToolInputEnd,
)
from ..common.readings import words
from .citations import SourceReader
from .readings import citations_metadata, foreign, redaction, signed
from .server_tools import Called, ToolReader


class TextBlock:
    """A text. What its citations name is told as soon as it is cited, the citations themselves at its end."""

    __slots__ = ("_citations", "_native", "_sources", "id")

    def __init__(self, id: str, native: Mapping[str, object], sources: SourceReader) -> None:
        self.id = id
        self._native = native
        self._sources = sources
        self._citations: list[JSON] = []

    def start(self) -> list[StreamPart]:
        parts: list[StreamPart] = [TextStart(self.id)]
        if text := words(self._native.get("text")):
            parts.append(TextDelta(self.id, text))
        cited = self._native.get("citations")
        for citation in cited if isinstance(cited, list | tuple) else ():
            parts.extend(self._cite(citation))
        return parts

    def delta(self, native: Mapping[str, object]) -> list[StreamPart] | None:
        kind = native.get("type")
        if kind == "text_delta" and (text := native.get("text")).__class__ is str:
            return [TextDelta(self.id, text)] if text else []
        if kind == "text_delta" and text is None:
            return []
        return self._cite(native.get("citation")) if kind == "citations_delta" else None

    def end(self, *, whole: bool) -> list[StreamPart]:
        return [TextEnd(self.id, citations_metadata(self._citations))]

    def _cite(self, citation: object) -> list[StreamPart]:
        self._citations.append(cast(JSON, citation))
        source = self._sources.cited(citation)
        return [] if source is None else [source]


class ReasoningBlock:
    """Reasoning. Its signature comes as an empty delta with metadata; what is redacted has all of it at its start."""

    __slots__ = ("_native", "id")

    def __init__(self, id: str, native: Mapping[str, object]) -> None:
        self.id = id
        self._native = native

    def start(self) -> list[StreamPart]:
        if self._native["type"] == "redacted_thinking":
            return [ReasoningStart(self.id, redaction(self._native.get("data")))]
        parts: list[StreamPart] = [ReasoningStart(self.id)]
        if text := words(self._native.get("thinking")):
            parts.append(ReasoningDelta(self.id, text))
        return [*parts, *self._signed(self._native.get("signature"))]

    def delta(self, native: Mapping[str, object]) -> list[StreamPart] | None:
        kind = native.get("type")
        if kind == "thinking_delta" and (text := native.get("thinking")).__class__ is str:
            return [ReasoningDelta(self.id, text)] if text else []
        return self._signed(native.get("signature")) if kind == "signature_delta" else None

    def end(self, *, whole: bool) -> list[StreamPart]:
        return [ReasoningEnd(self.id)]

    def _signed(self, signature: object) -> list[StreamPart]:
        metadata = signed(signature)  # of several the last is the whole one, as the SDK has it
        return [] if metadata is None else [ReasoningDelta(self.id, "", metadata)]


class CallBlock:
    """A call: of the caller's tools, or of one that the service runs itself.

    The input of its start stands until a piece that says something comes: the API has `{}` there, and gateways send
    the whole. A call of an MCP server comes without the parts of its input, as V3 has it.
    """

    __slots__ = ("_called", "_native", "_pieces", "_typed", "has_call")

    def __init__(self, called: Called, native: Mapping[str, object]) -> None:
        self._called = called
        self._native = native
        self._pieces: list[str] = []
        self._typed = None if called.sub_tool is None else _TypedInput(called.sub_tool)

    @property
    def is_empty(self) -> bool:
        """Whether there is no input yet: it has none, or was cut before it."""
        return not self._pieces and not self._called.input_text(self._native.get("input"))

    def start(self) -> list[StreamPart]:
        return [] if self._called.dynamic else [self._called.start()]

    def delta(self, native: Mapping[str, object]) -> list[StreamPart] | None:
        piece = native.get("partial_json")
        if native.get("type") != "input_json_delta" or piece.__class__ is not str:
            return None
        return self._add(piece) if piece else []

    def end(self, *, whole: bool, cut: bool = False) -> list[StreamPart]:
        """cut: the message was, so that an input that says nothing may be one that had not begun."""
        called = self._called
        parts: list[StreamPart] = []
        if self._typed is not None and (rest := self._typed.finish()):
            self._pieces.append(rest)
            parts.append(ToolInputDelta(called.id, rest))
        if not self._pieces and (given := called.input_text(self._native.get("input"))):
            self._typed = None
            parts.extend(self._add(given))  # for those who read the pieces alone
        if not called.dynamic:
            parts.append(ToolInputEnd(called.id))
        if whole:
            parts.append(called.call("".join(self._pieces) or ("" if cut else called.no_input())))
        return parts

    def _add(self, piece: str) -> list[StreamPart]:
        if self._typed is not None:
            piece = self._typed.feed(piece)
        if not piece:
            return []
        self._pieces.append(piece)
        return [] if self._called.dynamic else [ToolInputDelta(self._called.id, piece)]


class ResultBlock:
    """What a tool of the service said, and the pages it found. It comes whole, at its start."""

    __slots__ = ("_native", "_sources", "_tools")

    def __init__(self, native: Mapping[str, object], tools: ToolReader, sources: SourceReader) -> None:
        self._native = native
        self._tools = tools
        self._sources = sources

    def start(self) -> list[StreamPart]:
        return []

    def delta(self, native: Mapping[str, object]) -> list[StreamPart] | None:
        return None

    def end(self, *, whole: bool) -> list[StreamPart]:
        return [self._tools.result(self._native), *self._sources.of_result(self._native)] if whole else []


class ForeignBlock:
    """A block that V3 has no part for: its start, with what its deltas added to it.

    Pieces of a kind that is not known cannot be put together: they are shown, and make no block to send back.
    """

    __slots__ = ("_input", "_pieces", "native")

    def __init__(self, native: Mapping[str, object]) -> None:
        self.native: dict[str, object] = dict(native)
        self._input: list[str] = []
        self._pieces: list[JSON] = []

    def start(self) -> list[StreamPart]:
        return []

    def delta(self, native: Mapping[str, object]) -> list[StreamPart] | None:
        kind = native.get("type")
        if kind == "compaction_delta":  # it has the whole, as the SDK reads it
            self.native.update((name, item) for name, item in native.items() if name != "type")
        elif kind == "input_json_delta" and isinstance(piece := native.get("partial_json"), str):
            self._input.append(piece)
        elif (member := _GROWING.get(str(kind))) is not None and isinstance(piece := native.get(member), str):
            self.native[member] = f"{words(self.native.get(member)) or ''}{piece}"
        else:
            self._pieces.append(cast(JSON, native))
        return []

    def end(self, *, whole: bool) -> list[StreamPart]:
        if not whole:
            return []
        if text := "".join(self._input):
            try:
                self.native["input"] = orjson.loads(text)
            except orjson.JSONDecodeError:
                self.native["input"] = text
        return [foreign(self.native, self._pieces)]


_GROWING: Final[Mapping[str, str]] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}

OpenBlock = TextBlock | ReasoningBlock | CallBlock | ResultBlock | ForeignBlock


class _TypedInput:
    """Makes the sub-tool's name the first member of an input, while that comes."""

    __slots__ = ("_done", "_held", "_sub_tool")

    def __init__(self, sub_tool: str) -> None:
        self._sub_tool = sub_tool
        self._held = ""
        self._done = False

    def feed(self, piece: str) -> str:
        if self._done:
            return piece
        self._held += piece
        text = self._held.lstrip()
        if text.startswith("{"):
            members = text[1:].lstrip()
            if not members:
                return ""
            comma = "" if members.startswith("}") else ","
            self._held = f'{{"type": "{self._sub_tool}"{comma}{text[1:]}'
        elif not text:
            return ""
        return self.finish()

    def finish(self) -> str:
        """What was held: it has the name in it, or is no object, or was cut before its first member."""
        self._done = True
        held, self._held = self._held, ""
        return held
