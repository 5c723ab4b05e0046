"""Which parts of a stream may leave before the verdict on the whole answer.

One queue: parts are never split, merged or reordered. What may not leave holds back what is behind it. A state machine
without I/O: `feed` a part, look at what it asks to look at, tell it the verdict, and take what is `ready`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import cast

from ..protocol import (
    Raw,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamPart,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from ..protocol.parts import BLOCK_DELTAS, BLOCK_ENDS, BLOCK_STARTS, BlockDelta, BlockEnd, BlockStart
from .streaming import Hold, Streaming, Window
from .units import is_judged
from .views import ViewKind

NOTHING: Mapping[ViewKind, Text | Reasoning] = MappingProxyType({})


class _Block:
    """One block of text or reasoning. length: how much has come; settled: how much of that may leave."""

    __slots__ = ("ended", "length", "pieces", "settled")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.length = self.settled = 0
        self.ended = False


class _Call:
    """One call of a tool: its input and itself wait for one verdict. call: what leaves; None if it is taken out.
    input: another input that the verdict gave it."""

    __slots__ = ("call", "id", "input", "judged", "name", "pieces")

    def __init__(self, id: str, name: str) -> None:
        self.id = id
        self.name = name
        self.pieces: list[str] = []
        self.judged = False
        self.call: ToolCall | None = None
        self.input: str | None = None


class _Channel:
    """All text, or all reasoning, in the order in which its blocks began."""

    __slots__ = ("blocks", "length", "looked")

    def __init__(self) -> None:
        self.blocks: dict[str, _Block] = {}
        self.length = self.looked = 0

    def text(self) -> str:
        return "".join(piece for block in self.blocks.values() for piece in block.pieces)


class _Item:
    """A part that waits: until its block has settled so far, until its call is judged, or for nothing."""

    __slots__ = ("part", "until", "waits_for")

    def __init__(self, part: StreamPart, waits_for: _Block | _Call | None = None, until: int = 0) -> None:
        self.part = part
        self.waits_for = waits_for
        self.until = until


class Gate:
    """The queue of one stream. `released`: something that is judged has left already."""

    def __init__(self, mode: Streaming, sees: Collection[str]) -> None:
        self._mode = mode
        self._holds = isinstance(mode, Hold)
        self._window = mode if isinstance(mode, Window) else None
        self._channels: dict[str, _Channel] = {kind: _Channel() for kind in ("text", "reasoning") if kind in sees}
        self._sees_calls = "tool_input" in sees
        self._calls: dict[str, _Call] = {}
        self._queue: deque[_Item] = deque()
        self._changed = False  # whether something was taken out or rewritten
        self.released = False

    # -- coming in

    def feed(self, part: StreamPart) -> ToolCall | ViewKind | None:
        """Queue a part. Returns what to look at now: a whole call, or a channel as far as it goes."""
        cls = part.__class__
        if cls is Raw and self._window is not None:
            return None  # it would tell what the window holds back
        if cls is ToolCall:
            return self._feed_call(cast(ToolCall, part))
        if cls in _TOOL_INPUT:
            self._feed_input(part)
            return None
        kind = BLOCK_DELTAS.get(cls) or BLOCK_STARTS.get(cls) or BLOCK_ENDS.get(cls)
        channel = self._channels.get(kind) if kind is not None else None
        if channel is None:
            self._queue.append(_Item(part))
            return None
        return self._feed_text(part, cast(ViewKind, kind), channel)

    def _feed_text(self, part: StreamPart, kind: ViewKind, channel: _Channel) -> ViewKind | None:
        id = cast("BlockStart | BlockDelta | BlockEnd", part).id
        block = channel.blocks.get(id)
        if block is None:
            block = channel.blocks[id] = _Block()
        item = _Item(part)
        if isinstance(part, TextDelta | ReasoningDelta):
            block.pieces.append(part.delta)
            block.length += len(part.delta)
            channel.length += len(part.delta)
            if self._window is not None:
                item = _Item(part, block, block.length)
        elif part.__class__ in BLOCK_ENDS:
            block.ended = True
        self._queue.append(item)
        if self._window is None or part.__class__ in BLOCK_STARTS:
            return None
        stride = self._window.stride or self._window.n
        due = channel.length - channel.looked >= stride or (block.ended and block.settled < block.length)
        return kind if due else None

    def _feed_input(self, part: StreamPart) -> None:
        call: _Call | None = None
        if isinstance(part, ToolInputStart):
            if self._sees_calls and not part.provider_executed:
                call = self._calls[part.id] = _Call(part.id, part.tool_name)
        else:
            call = self._calls.get(cast(BlockDelta, part).id)
            if call is not None and isinstance(part, ToolInputDelta):
                call.pieces.append(part.delta)
        self._queue.append(_Item(part, call))

    def _feed_call(self, part: ToolCall) -> ToolCall | None:
        call = self._calls.get(part.tool_call_id)
        if not (self._sees_calls and is_judged(part)):
            if call is not None:  # its input waited for nothing
                call.judged, call.call = True, part
            self._queue.append(_Item(part, call))
            return None
        if call is None:
            call = self._calls[part.tool_call_id] = _Call(part.tool_call_id, part.tool_name)
        self._queue.append(_Item(part, call))
        return part

    # -- verdicts

    def text_of(self, kind: ViewKind) -> str:
        """A channel as far as it goes."""
        channel = self._channels[kind]
        channel.looked = channel.length
        return channel.text()

    def allowed(self, kind: ViewKind) -> None:
        """A look found nothing: what cannot be part of a match that is still coming may leave."""
        held_back = 0 if self._window is None else self._window.n - 1
        for block in self._channels[kind].blocks.values():
            block.settled = max(block.settled, block.length - (0 if block.ended else held_back))

    def judged(self, id: str, call: ToolCall | None, *, rewritten: bool = False) -> None:
        """The verdict on one call. call: what leaves in its place; None takes it out, with its input."""
        waiting = self._calls[id]
        waiting.judged, waiting.call = True, call
        if rewritten and call is not None:
            waiting.input = call.input
        self._changed = self._changed or rewritten or call is None

    def unfinished_calls(self) -> Iterator[ToolCall]:
        """Calls whose input began and that never came whole: a stream that was cut. They are judged as far as they go,
        since their input would leave."""
        for call in self._calls.values():
            if not call.judged:
                yield ToolCall(call.id, call.name, "".join(call.pieces))

    # -- going out

    def ready(self) -> Iterator[StreamPart]:
        """What may leave now."""
        queue = self._queue
        while queue:
            item = queue[0]
            if (self._holds and item.part.__class__ is not StreamStart) or not _is_free(item):
                return
            queue.popleft()
            yield from self._out(item)

    def rest(self, rewritten: Mapping[ViewKind, Text | Reasoning] = NOTHING) -> Iterator[StreamPart]:
        """Everything that waits, after the verdict. rewritten: the one block that each rewritten channel becomes; it
        stands where the first block of the channel stood. Raw chunks would still tell what was there."""
        drops_raw = self._changed or bool(rewritten)
        first: dict[str, str] = {}
        while self._queue:
            item = self._queue.popleft()
            part = item.part
            if drops_raw and part.__class__ is Raw:
                continue
            kind = cast(ViewKind, _kind_of(part))
            if kind in rewritten:
                id = cast("BlockStart | BlockDelta | BlockEnd", part).id
                if first.setdefault(kind, id) == id:
                    yield from _rewritten(part, rewritten[kind])
            else:
                yield from self._out(item)

    def _out(self, item: _Item) -> Iterator[StreamPart]:
        part, waited_for = item.part, item.waits_for
        if isinstance(waited_for, _Call):
            yield from _of_call(part, waited_for)
            return
        if not self.released and isinstance(part, TextDelta | ReasoningDelta) and part.delta:
            self.released = BLOCK_DELTAS[part.__class__] in self._channels
        yield part


_TOOL_INPUT = frozenset({ToolInputStart, ToolInputDelta, ToolInputEnd})


def _kind_of(part: StreamPart) -> str | None:
    cls = part.__class__
    return BLOCK_DELTAS.get(cls) or BLOCK_STARTS.get(cls) or BLOCK_ENDS.get(cls)


def _is_free(item: _Item) -> bool:
    waited_for = item.waits_for
    if isinstance(waited_for, _Block):
        return waited_for.settled >= item.until
    return waited_for is None or waited_for.judged


def _rewritten(part: StreamPart, block: Text | Reasoning) -> Iterator[StreamPart]:
    """A block with another text: its metadata, from all its parts, rides on its start; its text comes in one piece."""
    if isinstance(part, TextStart | ReasoningStart):
        yield part.replace(provider_metadata=block.provider_metadata, extra=block.extra)
        if block.text:
            yield (TextDelta if isinstance(part, TextStart) else ReasoningDelta)(part.id, block.text)
    elif isinstance(part, TextEnd | ReasoningEnd):
        yield part.replace(provider_metadata=None, extra=None)


def _of_call(part: StreamPart, call: _Call) -> Iterator[StreamPart]:
    """A part of a call after its verdict. Another input comes in one piece."""
    if call.call is None:
        return
    if isinstance(part, ToolCall):
        yield call.call
    elif call.input is None or not isinstance(part, ToolInputDelta):
        yield part
        if call.input and isinstance(part, ToolInputStart):
            yield ToolInputDelta(part.id, call.input)
