"""In which order the parts of a stream may come.

    stream      := stream-start  (raw? item)*  finish
    item        := response-metadata | block piece | tool-call | tool-result | tool-approval-request
                   | source | file | error
    text block  := text-start(id) text-delta(id)* text-end(id)          a reasoning block the same
    tool block  := tool-input-start(id) tool-input-delta(id)* tool-input-end(id)  then tool-call(tool_call_id = id)

Blocks may interleave and ids are unique within a stream. There is one finish, it is last, also after errors and cuts,
every block is closed before it, and after an error part its reason is `error`. Types of parts that this version does
not know may stand anywhere between start and finish.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from ..errors import ProtocolError
from .content import ToolCall
from .parts import BLOCK_DELTAS, BLOCK_ENDS, BLOCK_STARTS, ErrorPart, Finish, StreamPart, StreamStart

_KINDS = frozenset(get_args(StreamPart))


class GrammarChecker:
    """Checks a stream part by part: `feed(part)` each, then `finish()`. The first fault is raised as ProtocolError.

    `path` of the error is the index of the part, as in `parts[4]`.
    """

    def __init__(self) -> None:
        self._index = -1
        self._open: dict[str, str] = {}
        self._seen: set[str] = set()
        self._unanswered: set[str] = set()
        self._calls: set[str] = set()
        self._failed = False
        self._finished = False

    def feed(self, part: StreamPart) -> None:
        self._index += 1
        cls = part.__class__
        if cls not in _KINDS:
            self._fault(f"a {cls.__name__} is no part of a stream")
        if self._finished:
            self._fault(f"{part.type} after finish: finish is last")
        if (cls is StreamStart) != (self._index == 0):
            self._fault(
                "a second stream-start"
                if cls is StreamStart
                else f"a stream begins with stream-start, not with {part.type}"
            )
        piece: Any = part  # the tables list only kinds that have an id
        if (kind := BLOCK_DELTAS.get(cls)) is not None:
            self._needs_open(kind, part.type, piece.id)
        elif (kind := BLOCK_STARTS.get(cls)) is not None:
            self._start(kind, part.type, piece.id)
        elif (kind := BLOCK_ENDS.get(cls)) is not None:
            self._needs_open(kind, part.type, piece.id)
            del self._open[piece.id]
            if kind == "tool_input":
                self._unanswered.add(piece.id)
        elif isinstance(part, ToolCall):
            self._tool_call(part)
        elif cls is ErrorPart:
            self._failed = True
        elif isinstance(part, Finish):
            self._finish(part)

    def finish(self) -> None:
        """The source has ended."""
        if not self._finished:
            self._index += 1
            self._fault("the stream ended without a finish part")

    def _start(self, kind: str, type: str, id: str) -> None:
        if id in self._seen:
            self._fault(f"a second block with the id {id!r}: ids are unique within a stream")
        if kind == "tool_input" and id in self._calls:
            self._fault(f"{type} for {id!r} after its tool-call")
        self._seen.add(id)
        self._open[id] = kind

    def _needs_open(self, kind: str, type: str, id: str) -> None:
        if self._open.get(id) != kind:
            self._fault(f"{type} for {id!r}, and no {kind} block of that id is open")

    def _tool_call(self, call: ToolCall) -> None:
        id = call.tool_call_id
        if id in self._open:
            self._fault(f"the tool-call {id!r} before its tool-input-end")
        if id in self._calls:
            self._fault(f"a second tool-call with the id {id!r}")
        self._calls.add(id)
        self._unanswered.discard(id)

    def _finish(self, part: Finish) -> None:
        self._finished = True
        reason = part.finish_reason.unified
        if self._open:
            self._fault(f"finish while blocks are open: {', '.join(map(repr, sorted(self._open)))}")
        if self._failed and reason != "error":
            self._fault(f"finish reason {reason!r} after an error part: it stays 'error'")
        if self._unanswered and reason in ("stop", "tool-calls"):
            # A cut, an error or a filter may take a call away after its input began; a whole answer may not.
            self._fault(f"tool input without its tool-call: {', '.join(map(repr, sorted(self._unanswered)))}")

    def _fault(self, message: str) -> None:
        raise ProtocolError(message, path=f"parts[{self._index}]")


def check_grammar(parts: Iterable[StreamPart]) -> None:
    """Check a whole list of parts. Raises ProtocolError with the index of the first fault."""
    checker = GrammarChecker()
    for part in parts:
        checker.feed(part)
    checker.finish()
