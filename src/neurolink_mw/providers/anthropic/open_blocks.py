"""Native to V3: the blocks of a streamed answer that are open, by their index. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...protocol import StreamPart
from ..common.readings import AnswerIds, words
from .citations import SourceReader
from .request import Expected
from .server_tools import ToolReader, is_call, is_result
from .stream_blocks import CallBlock, ForeignBlock, OpenBlock, ReasoningBlock, ResultBlock, TextBlock

_DELTAS: Final = frozenset(
    {"text_delta", "citations_delta", "thinking_delta", "signature_delta", "input_json_delta", "compaction_delta"}
)


class Malformed(Exception):
    """An event that cannot be read; says why."""


class OpenBlocks:
    """Begins, feeds and ends the blocks of one answer. What its methods make is added to `parts`.

    by_index: the open ones. has_calls: one was a call for the caller. answer_id: the id of the text that the answer's
    tool makes, where it has been called. Malformed for what cannot be read.
    """

    def __init__(self, expected: Expected) -> None:
        self.by_index: dict[int, OpenBlock] = {}
        self.has_calls = False
        self.answer_id: str | None = None
        self._answer_name = None if expected.answer is None else expected.answer.name
        self._ids = AnswerIds()
        self._tools = ToolReader(expected.tool_names, self._ids)
        self._sources = SourceReader(expected.documents)
        self._empty: CallBlock | None = None  # a call without input, until it is known whether the message was cut

    def begin(self, index: int, native: object, parts: list[StreamPart], *, whole: bool = True) -> None:
        """Begin a block. A second one of an index ends the first."""
        self.end(index, parts, whole=whole)
        self.end_empty(parts, whole=whole)
        if not isinstance(native, Mapping):
            raise Malformed("a block start of the stream holds no block")
        self.by_index[index] = block = self._made(str(index), native)
        parts.extend(block.start())

    def add_whole(self, number: int, native: object, parts: list[StreamPart]) -> None:
        """A block that came whole with the beginning of the message. number: among those."""
        if not isinstance(native, Mapping):
            raise Malformed("a block at the beginning of the message is no object")
        block = self._made(f"start-{number}", native)
        parts.extend([*block.start(), *block.end(whole=True)])

    def delta(self, index: int, native: Mapping[str, object], parts: list[StreamPart]) -> None:
        """A piece of a block. One of an unknown type says nothing."""
        block = self.by_index.get(index)
        made = None if block is None else block.delta(native)
        if made is not None:
            parts.extend(made)
        elif block is None or words(native.get("type")) in _DELTAS:
            raise Malformed("a piece of the stream belongs to no block, or to one of another kind")

    def end(self, index: int, parts: list[StreamPart], *, whole: bool) -> None:
        """End a block. A call without input waits for what tells whether it was cut before its input began."""
        block = self.by_index.pop(index, None)
        if block is None:
            return
        self.end_empty(parts, whole=whole)
        if isinstance(block, CallBlock) and block.is_empty:
            self._empty = block
        else:
            parts.extend(block.end(whole=whole))

    def end_empty(self, parts: list[StreamPart], *, whole: bool, cut: bool = False) -> None:
        """End the call that waits. cut: the message was, and this may be where."""
        if self._empty is not None:
            parts.extend(self._empty.end(whole=whole, cut=cut))
            self._empty = None

    def close(self, parts: list[StreamPart], *, whole: bool, cut: bool) -> None:
        """End all that are open, since the stream has ended."""
        self.end_empty(parts, whole=whole, cut=cut)
        for block in self.by_index.values():
            parts.extend(block.end(whole=whole, cut=cut) if isinstance(block, CallBlock) else block.end(whole=whole))
        self.by_index.clear()

    def _made(self, id: str, native: Mapping[str, object]) -> OpenBlock:
        kind = native.get("type")
        if kind == "text":
            return TextBlock(self._ids.take(id), native, self._sources)
        if kind == "thinking" or (kind == "redacted_thinking" and isinstance(native.get("data"), str)):
            return ReasoningBlock(self._ids.take(id), native)
        if is_call(kind):
            return self._call(id, native)
        return ResultBlock(native, self._tools, self._sources) if is_result(kind) else ForeignBlock(native)

    def _call(self, id: str, native: Mapping[str, object]) -> CallBlock:
        called = self._tools.call(native)
        if called is None:
            raise Malformed("a tool use of the stream names no tool")
        if not called.of_server:
            self.has_calls = True
            if called.name == self._answer_name:
                self._answer_name = None
                self.answer_id = self._ids.take(id)
        return CallBlock(called, native)
