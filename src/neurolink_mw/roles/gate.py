"""Which parts of a stream may leave before the verdict on the whole answer.

One queue: parts are never split, merged or reordered, but for the calls of a turn, which have to be known before they
run. What may not leave holds back what is behind it. A state machine without I/O: `feed` a part, look at what it asks
to look at, tell it the verdict, and take what is `ready`. What is judged is what the queue holds or has let go, so
nothing leaves that no verdict has seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import cast, get_args

from ..pipeline.marks import is_of_a_turn
from ..protocol import (
    Raw,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamPart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolApprovalRequest,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from ..protocol.parts import BLOCK_DELTAS, BLOCK_ENDS, BLOCK_STARTS, BlockDelta, BlockEnd, BlockStart
from .streaming import Hold, Pass, Streaming, Window
from .units import Said, is_judged
from .views import ViewKind

NOTHING: Mapping[ViewKind, str] = MappingProxyType({})


class HeldCall:
    """One call of a tool: its input and itself wait for one verdict. asked: the call as the model made it, for one
    that was cut as far as it came. kept: what leaves in its place; None takes it out."""

    __slots__ = ("_in_one_piece", "asked", "kept", "pieces", "settled")

    def __init__(self, asked: ToolCall) -> None:
        self.asked = asked
        self.kept: ToolCall | None = None
        self.pieces: list[str] = []
        self.settled = self._in_one_piece = False

    @property
    def changed(self) -> bool:
        """Whether something that it said does not leave."""
        return self.kept is None or self.kept.input != self.asked.input or self._in_one_piece

    def settle(self, kept: ToolCall | None) -> None:
        """The verdict, or that there will be none. Where its input came as another text than was judged, the judged
        one leaves, in one piece; but a model may send no piece of an input that says nothing."""
        self.settled, self.kept = True, kept
        came = "".join(self.pieces)
        self._in_one_piece = kept is not None and came != kept.input and (came != "" or self.changed)

    def leaves(self, part: StreamPart) -> Iterator[StreamPart]:
        """What becomes of one of its parts."""
        if self.kept is None:
            return
        if isinstance(part, ToolCall):
            yield self.kept
        elif not (self._in_one_piece and isinstance(part, ToolInputDelta)):
            yield part
            if self._in_one_piece and self.kept.input and isinstance(part, ToolInputStart):
                yield ToolInputDelta(part.id, self.kept.input)


class _Block:
    """One block of text or reasoning. length: how much has come; settled: how much of that may leave."""

    __slots__ = ("ended", "length", "pieces", "settled")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.length = self.settled = 0
        self.ended = False


class _Channel:
    """All text, or all reasoning, in the order in which its blocks began."""

    __slots__ = ("_latest", "blocks", "length", "looked")

    def __init__(self) -> None:
        self.blocks: list[_Block] = []
        self._latest: dict[str, _Block] = {}
        self.length = self.looked = 0

    def block(self, id: str, *, begins: bool) -> _Block:
        """The block of an id; another one where the id is used again."""
        block = self._latest.get(id)
        if block is None or (begins and block.ended):
            block = self._latest[id] = _Block()
            self.blocks.append(block)
        return block

    def text(self) -> str:
        return "".join(piece for block in self.blocks for piece in block.pieces)


class _Item:
    """A part that waits: until its block has settled so far, until its call is judged, or for nothing."""

    __slots__ = ("part", "until", "waits_for")

    def __init__(self, part: StreamPart, waits_for: _Block | HeldCall | None = None, until: int = 0) -> None:
        self.part = part
        self.waits_for = waits_for
        self.until = until

    @property
    def is_free(self) -> bool:
        waited_for = self.waits_for
        if isinstance(waited_for, _Block):
            return waited_for.settled >= self.until
        return waited_for is None or waited_for.settled


class Gate:
    """The queue of one stream. `released`: something that is judged has left already. `changed`: a call was taken out
    or rewritten."""

    def __init__(self, mode: Streaming, sees: Collection[str]) -> None:
        self._taken_out: set[str] = set()
        self._holds = isinstance(mode, Hold)
        self._window = mode if isinstance(mode, Window) else None
        self._channels: dict[str, _Channel] = {kind: _Channel() for kind in ("text", "reasoning") if kind in sees}
        self._sees_calls = "tool_input" in sees
        # It would tell what is held back.
        self._drops_raw = isinstance(mode, Window) or (isinstance(mode, Pass) and self._sees_calls)
        self._inputs: dict[str, HeldCall] = {}  # of calls that are not whole yet
        self._queue: deque[_Item] = deque()
        self._first: deque[StreamPart] = deque()  # what waits for nothing, not even for its turn
        self._judges_calls = self.released = self.changed = False

    # -- coming in

    def feed(self, part: StreamPart) -> HeldCall | ViewKind | None:
        """Queue a part. Returns what to look at now: a whole call, or a channel as far as it goes."""
        cls = _class_of(part)
        if cls is Raw and self._drops_raw:
            return None
        if isinstance(part, ToolApprovalRequest) and part.tool_call_id in self._taken_out:
            return None  # there is nothing to approve any more
        if self._sees_calls:
            if cls is ToolCall:
                return self._feed_call(cast(ToolCall, part))
            if cls in _TOOL_INPUT:
                self._feed_input(part)
                return None
        kind = _kind_of(cls)
        channel = self._channels.get(kind) if kind is not None else None
        if channel is None:
            self._queue.append(_Item(part))
            return None
        return self._feed_text(part, cls, cast(ViewKind, kind), channel)

    def _feed_text(self, part: StreamPart, cls: type, kind: ViewKind, channel: _Channel) -> ViewKind | None:
        id = cast("BlockStart | BlockDelta | BlockEnd", part).id
        block = channel.block(id, begins=cls in BLOCK_STARTS)
        item = _Item(part)
        if isinstance(part, TextDelta | ReasoningDelta):
            block.pieces.append(part.delta)
            block.length += len(part.delta)
            channel.length += len(part.delta)
            if self._window is not None:
                item = _Item(part, block, block.length)
        elif cls in BLOCK_ENDS:
            block.ended = True
        self._queue.append(item)
        if self._window is None or cls in BLOCK_STARTS:
            return None
        stride = self._window.stride or self._window.n
        due = channel.length - channel.looked >= stride or (block.ended and block.settled < block.length)
        return kind if due else None

    def _feed_input(self, part: StreamPart) -> None:
        id = cast("BlockStart | BlockDelta | BlockEnd", part).id
        call = self._inputs.get(id)
        if isinstance(part, ToolInputStart):
            if call is None:
                asked = ToolCall(
                    id, part.tool_name, "", part.provider_executed, provider_metadata=part.provider_metadata
                )
                call = self._inputs[id] = HeldCall(asked)
        elif isinstance(part, ToolInputDelta):
            if call is None:  # a piece of no input begins one
                call = self._inputs[id] = HeldCall(ToolCall(id, "", ""))
            call.pieces.append(part.delta)
        self._queue.append(_Item(part, call))

    def _feed_call(self, part: ToolCall) -> HeldCall | None:
        call = self._inputs.pop(part.tool_call_id, None) or HeldCall(part)
        call.asked = part
        self._queue.append(_Item(part, call))
        if is_judged(part):
            self._judges_calls = True
            return call
        call.pieces.clear()  # nobody judges what it says
        self.settle(call, part)
        return None

    # -- verdicts

    def text_of(self, kind: ViewKind) -> str:
        """A channel as far as it goes. Empty for one that is not judged."""
        channel = self._channels.get(kind)
        if channel is None:
            return ""
        channel.looked = channel.length
        return channel.text()

    def said(self) -> Said:
        """All that is judged."""
        return Said(self.text_of("text"), self.text_of("reasoning"), self._judges_calls)

    def is_a_beginning(self, kind: ViewKind) -> bool:
        """Whether a channel as far as it goes is how its whole text begins. It is not where an earlier block is still
        open, since what comes there comes between."""
        *earlier, _ = self._channels[kind].blocks
        return all(block.ended for block in earlier)

    def allowed(self, kind: ViewKind) -> None:
        """A look found nothing: what cannot be part of a match that is still coming may leave."""
        held_back = 0 if self._window is None else self._window.n - 1
        for block in self._channels[kind].blocks:
            block.settled = max(block.settled, block.length - (0 if block.ended else held_back))

    def settle(self, call: HeldCall, kept: ToolCall | None) -> None:
        """The verdict on one call. kept: what leaves in its place; None takes it out, with its input."""
        call.settle(kept)
        if kept is None:
            self._taken_out.add(call.asked.tool_call_id)
        self.changed = self.changed or call.changed
        self._drops_raw = self._drops_raw or call.changed
        if is_of_a_turn(call.asked):
            self._overtake(call)

    def _overtake(self, call: HeldCall) -> None:
        """A call that a turn is about to run waits for its own verdict alone: whoever stands further out has to see it
        before that, whatever is held back of what was said before."""
        kept: deque[_Item] = deque()
        for item in self._queue:
            if item.waits_for is call:
                self._first.extend(call.leaves(item.part))
            else:
                kept.append(item)
        self._queue = kept

    def unfinished_calls(self) -> list[HeldCall]:
        """Calls whose input began and that never came whole: a stream that was cut. They are judged as far as they go,
        since their input would leave."""
        cut = list(self._inputs.values())
        for call in cut:
            call.asked = call.asked.replace(input="".join(call.pieces))
        return cut

    # -- going out

    def ready(self) -> Iterator[StreamPart]:
        """What may leave now."""
        while self._first:
            yield self._first.popleft()
        queue = self._queue
        while queue:
            item = queue[0]
            if not (item.part.__class__ is StreamStart if self._holds else item.is_free):
                return
            queue.popleft()
            yield from self._out(item)

    def rest(self, rewritten: Mapping[ViewKind, str] = NOTHING) -> Iterator[StreamPart]:
        """Everything that waits, after the verdict. rewritten: what all blocks of a kind become, in one block."""
        while self._first:
            yield self._first.popleft()
        drops_raw = self._drops_raw or bool(rewritten)  # raw chunks would still tell what was there
        blocks = {kind: _InOneBlock(kind, text) for kind, text in rewritten.items()}
        while self._queue:
            item = self._queue.popleft()
            part = item.part
            if drops_raw and isinstance(part, Raw):
                continue
            block = blocks.get(cast(ViewKind, _kind_of(_class_of(part))))
            yield from self._out(item) if block is None else block.leaves(part)
        for block in blocks.values():
            yield from block.rest()

    def forget(self) -> None:
        """Everything has left by another way."""
        self._queue.clear()
        self._first.clear()

    def _out(self, item: _Item) -> Iterator[StreamPart]:
        part = item.part
        if isinstance(item.waits_for, HeldCall):
            yield from item.waits_for.leaves(part)
            return
        if not self.released and isinstance(part, TextDelta | ReasoningDelta) and part.delta:
            self.released = _kind_of(_class_of(part)) in self._channels
        yield part


class _InOneBlock:
    """A kind of blocks that become one, with another text: it stands where the first of them stood, else at the end.

    Their metadata was made for the old text (signatures, citations, probabilities of its tokens) and goes."""

    __slots__ = ("_ended", "_id", "_kind", "_text")

    def __init__(self, kind: ViewKind, text: str) -> None:
        self._ended = False
        self._kind = kind
        self._text = text
        self._id: str | None = None

    def leaves(self, part: StreamPart) -> Iterator[StreamPart]:
        if isinstance(part, TextStart | ReasoningStart) and self._id is None:
            self._id = part.id
            yield part.replace(provider_metadata=None, extra=None)
            yield from self._delta(part.id)
        elif isinstance(part, TextEnd | ReasoningEnd) and self._id == part.id and not self._ended:
            self._ended = True
            yield part.replace(provider_metadata=None, extra=None)

    def rest(self) -> Iterator[StreamPart]:
        if self._id is None and self._text:
            id = f"neurolink_mw.{self._kind}"
            yield TextStart(id) if self._kind == "text" else ReasoningStart(id)
            yield from self._delta(id)
            yield TextEnd(id) if self._kind == "text" else ReasoningEnd(id)

    def _delta(self, id: str) -> Iterator[StreamPart]:
        if self._text:
            yield TextDelta(id, self._text) if self._kind == "text" else ReasoningDelta(id, self._text)


_TOOL_INPUT = frozenset({ToolInputStart, ToolInputDelta, ToolInputEnd})


_KINDS = frozenset(get_args(StreamPart))


def _class_of(part: StreamPart) -> type:
    """The kind of a part. Somebody's subclass of a kind is of that kind: it must not pass for something unknown."""
    cls = part.__class__
    return cls if cls in _KINDS else next((base for base in cls.__mro__ if base in _KINDS), cls)


def _kind_of(cls: type) -> str | None:
    return BLOCK_DELTAS.get(cls) or BLOCK_STARTS.get(cls) or BLOCK_ENDS.get(cls)
