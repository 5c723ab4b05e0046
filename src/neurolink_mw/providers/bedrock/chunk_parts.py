"""Chunks as parts: those that they hold, and blocks around text that comes without. A state machine without I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from ...errors import BridgeShapeError
from ...protocol import (
    INTERRUPTED,
    JSON,
    CallWarning,
    ErrorPart,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamPart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolInputDelta,
    ToolInputEnd,
    Value,
    to_json,
    value,
)
from ...protocol.parts import BLOCK_ENDS, BLOCK_STARTS, END_OF, BlockEnd, BlockStart
from .options import KEY


@value
class AgenticLoopChunk(Value):
    """A piece of a turn. content: text of the answer, "" in a chunk without. reasoning: text of the model's reasoning.
    part: the V3 part that the chunk is; None where whoever made it knows of text alone."""

    content: str = ""
    reasoning: str | None = None
    part: StreamPart | None = None


class ChunkParts:
    """`feed(chunk)` for each chunk, then `finish(last, failure)`: each returns parts in order.

    The text that a chunk says wins over that of the part that it holds: whoever changes it need not know of parts.
    """

    def __init__(self) -> None:
        self._started = False
        self._failed = False
        self._open: dict[tuple[type, str], BlockEnd] = {}  # blocks of the chunks' own parts
        self._bare: tuple[type, str] | None = None  # our block around bare text: the kind of its end, its id
        self._count = 0
        self._ids: set[str] = set()
        self._renamed: dict[tuple[type, str], str] = {}  # blocks whose id we had given to bare text
        self._late: list[CallWarning] = []

    def feed(self, chunk: AgenticLoopChunk) -> list[StreamPart]:
        """The parts of one chunk. BridgeShapeError for what is none."""
        try:
            part, content, reasoning = chunk.part, chunk.content, chunk.reasoning
        except AttributeError:
            raise BridgeShapeError(
                f"a chunk has content, reasoning and part, and {type(chunk).__name__} is none"
            ) from None
        cls = part.__class__
        if cls is TextDelta and self._bare is None:  # nearly every one
            delta = cast(TextDelta, part)
            if delta.delta == content and (TextEnd, delta.id) in self._open and not self._renamed:
                return [delta]
        if not isinstance(content, str) or not (reasoning is None or isinstance(reasoning, str)):
            raise BridgeShapeError("content and reasoning of a chunk are texts")
        if part is None:
            return self._begun([*self._text(content, reasoning)])
        if not isinstance(part, Value):
            raise BridgeShapeError(f"the part of a chunk is of type {type(part).__name__}, which is no stream part")
        if cls is StreamStart:
            return self._stream_start(cast(StreamStart, part))
        if cls is Finish:  # of a stream within
            return []
        said = () if cls is TextDelta or cls is ReasoningDelta else self._text(content, reasoning)
        if cls is ErrorPart:
            self._failed = True
        whole = [*self._whole(part, content, reasoning or "")]  # first: it may be refused
        return self._begun([*said, *self._end_bare(), *whole])

    def finish(self, last: Finish, failure: Exception | None = None) -> list[StreamPart]:
        """The source has ended, or failed: what is open is ended, the failure told, and `last` is the last part."""
        parts: list[StreamPart] = self._begun([*self._end_bare(), *self._open.values()])
        self._open.clear()
        if failure is not None and not self._failed:
            parts.append(ErrorPart(failure))
        if (failure is not None or self._failed) and last.finish_reason.unified != "error":
            last = last.replace(finish_reason=INTERRUPTED)
        if self._late:
            known = last.provider_metadata or {}
            of_bedrock = known.get(KEY)
            told: dict[str, JSON] = {"warnings": [to_json(warning) for warning in self._late]}
            more = {**of_bedrock, **told} if isinstance(of_bedrock, Mapping) else told
            last = last.replace(provider_metadata={**known, KEY: more})
        return [*parts, last]

    def _stream_start(self, part: StreamStart) -> list[StreamPart]:
        if self._started:  # by a text, or it is that of a stream within
            self._late.extend(part.warnings)
            return []
        self._started = True
        return [part]

    def _whole(self, part: StreamPart, content: str, reasoning: str) -> Iterator[StreamPart]:
        """A part that a chunk holds, with the chunk's text, in a block that has begun."""
        cls = part.__class__
        if cls in BLOCK_STARTS:
            yield self._opened(cast(BlockStart, part))
        elif cls in BLOCK_ENDS:
            key = cls, cast(BlockEnd, part).id
            if self._open.pop(key, None) is not None:
                yield cast(BlockEnd, part).replace(id=self._renamed.pop(key, key[1]))
        elif cls in _DELTAS:
            start, end = _DELTAS[cls]
            delta = cast("TextDelta | ReasoningDelta | ToolInputDelta", part)
            if (end, delta.id) not in self._open:
                if start is None:
                    raise BridgeShapeError("a chunk holds a piece of a tool's input whose beginning never came")
                yield self._opened(start(delta.id))
            said = {TextDelta: content, ReasoningDelta: reasoning}.get(cls, delta.delta)
            yield delta.replace(id=self._renamed.get((end, delta.id), delta.id), delta=said)
        else:
            yield part

    def _opened(self, start: BlockStart) -> BlockStart:
        key, id = (END_OF[start.__class__], start.id), start.id
        if id in self._ids and id.startswith(_BARE):
            id = self._renamed[key] = self._free_id()
        self._ids.add(id)
        self._open[key] = key[0](id)
        return start.replace(id=id)

    def _begun(self, parts: list[StreamPart]) -> list[StreamPart]:
        if self._started:
            return parts
        self._started = True
        return [StreamStart(), *parts]

    def _text(self, content: str, reasoning: str | None) -> Iterator[StreamPart]:
        """Text that comes without a part: one block for each run of a kind."""
        if reasoning:
            yield from self._bare_block(ReasoningEnd)
            yield ReasoningDelta(self._bare_id, reasoning)
        if content:
            yield from self._bare_block(TextEnd)
            yield TextDelta(self._bare_id, content)

    def _bare_block(self, end: type) -> Iterator[StreamPart]:
        if self._bare is not None and self._bare[0] is end:
            return
        yield from self._end_bare()
        id = self._free_id()
        self._ids.add(id)
        self._bare = (end, id)
        yield TextStart(id) if end is TextEnd else ReasoningStart(id)

    def _free_id(self) -> str:
        while (id := f"{_BARE}{self._count}") in self._ids:
            self._count += 1
        return id

    def _end_bare(self) -> Iterator[StreamPart]:
        if self._bare is not None:
            end, id = self._bare
            self._bare = None
            yield end(id)

    @property
    def _bare_id(self) -> str:
        assert self._bare is not None
        return self._bare[1]


_BARE = "chunk-"
_DELTAS: Mapping[type, tuple[type[TextStart | ReasoningStart] | None, type[BlockEnd]]] = {
    TextDelta: (TextStart, TextEnd),
    ReasoningDelta: (ReasoningStart, ReasoningEnd),
    ToolInputDelta: (None, ToolInputEnd),
}
