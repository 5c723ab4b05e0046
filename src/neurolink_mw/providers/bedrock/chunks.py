"""Chunks of an agentic loop, to and from the parts of a V3 stream.

A chunk is what a reader of text wants: a piece of text or of reasoning. Ours also hold the part that they are, so that
a stream survives the way there and back whole; chunks of others, with text alone, become a stream with blocks.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator
from inspect import isasyncgen
from types import TracebackType
from typing import Self, cast

import anyio

from ...protocol import (
    INTERRUPTED,
    Closer,
    ErrorPart,
    Finish,
    PartStream,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamPart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    Value,
    value,
)
from ...protocol.parts import BLOCK_ENDS, BLOCK_STARTS, END_OF, BlockEnd, BlockStart
from ...protocol.stream_result import as_exception


@value
class AgenticLoopChunk(Value):
    """A piece of a turn. content: text of the answer, "" in a chunk without. reasoning: text of the model's reasoning.
    part: the V3 part that the chunk is; None where whoever made it knows of text alone."""

    content: str = ""
    reasoning: str | None = None
    part: StreamPart | None = None


class ChunkStream:
    """Chunks as an async iterator with `aclose()`, also an async context manager. What fails is raised after what came
    before it, once the stream has come to its end."""

    def __init__(self, parts: PartStream) -> None:
        self._parts = parts

    def __aiter__(self) -> AsyncIterator[AgenticLoopChunk]:
        return self

    async def __anext__(self) -> AgenticLoopChunk:
        while True:
            part = await self._parts.__anext__()
            cls = part.__class__
            if cls is TextDelta:
                return AgenticLoopChunk(cast(TextDelta, part).delta, None, part)
            if cls is ReasoningDelta:
                return AgenticLoopChunk("", cast(ReasoningDelta, part).delta or None, part)
            if cls is ErrorPart:
                error = as_exception(cast(ErrorPart, part).error)
                try:
                    async for _ in self._parts:  # the rest ends the stream, and its outcome
                        pass
                    raise error
                finally:
                    del error  # a frame that holds the error that refers to it would wait for the collector
            if cls is not Finish:  # with it there is nothing more to come
                return AgenticLoopChunk("", None, part)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop where the turn is. A reader that waits in another task gets `anyio.ClosedResourceError`."""
        await self._parts.aclose()


def bedrock_v3_stream_to_chunks(stream: PartStream) -> ChunkStream:
    """A stream of parts as chunks, one for each part but `finish` and `error`. An `error` part is raised."""
    return ChunkStream(stream)


def bedrock_chunks_to_v3_stream(
    source: AsyncIterable[AgenticLoopChunk],
    finish: Callable[[], Awaitable[Finish]],
    cancel: Callable[[], None] | None = None,
) -> PartStream:
    """Chunks as a V3 stream: the parts that they hold, and blocks around text that comes without.

    finish: gives the last part once the source has ended; after a failure its usage stands, and the reason is `error`.
    cancel: called once where the stream is closed, dropped or fails before the source has ended, and has to stop
    whatever makes the chunks; then the source is closed, where it can be.
    """

    async def close() -> None:
        if cancel is not None:
            cancel()
        # A generator that is being read cannot be closed by another task: it ends by what `cancel` does.
        if not (isasyncgen(source) and source.ag_running) and (aclose := getattr(source, "aclose", None)) is not None:
            await aclose()

    closer = Closer(close)
    return PartStream(_parts(source, finish, closer), close=closer)


async def _parts(
    source: AsyncIterable[AgenticLoopChunk], finish: Callable[[], Awaitable[Finish]], closer: Closer
) -> AsyncIterator[StreamPart]:
    machine, failure = ChunkParts(), None
    try:
        async for chunk in source:
            for part in machine.feed(chunk):
                yield part
        closed, closer.done = closer.done, True  # it has ended by itself, and nothing is left to stop
    except Exception as error:
        failure, closed = error, closer.done
    finally:
        await closer()
    if closed:  # by another task, while this one was reading
        raise anyio.ClosedResourceError from None
    try:
        last = await finish()
    except Exception as error:
        failure, last = failure or error, Finish(INTERRUPTED)
    for part in machine.finish(last, failure):
        yield part
    failure = None  # a frame that holds the error that refers to it would wait for the collector


class ChunkParts:
    """`feed(chunk)` for each chunk, then `finish(last, failure)`: each returns parts in order."""

    def __init__(self) -> None:
        self._started = False
        self._failed = False
        self._open: dict[tuple[type, str], BlockEnd] = {}  # blocks of the chunks' own parts
        self._bare: tuple[type, str] | None = None  # our block around bare text: the kind of its end, its id
        self._count = 0
        self._ids: set[str] = set()

    def feed(self, chunk: AgenticLoopChunk) -> list[StreamPart]:
        """The parts of one chunk."""
        part = chunk.part
        if part is None:
            return self._begun([*self._text(chunk)])
        cls = part.__class__
        if self._started and self._bare is None and (cls is TextDelta or cls is ReasoningDelta):  # nearly every one
            return [part]
        if cls is StreamStart and not self._started:
            self._started = True
            return [part]
        if cls is StreamStart or cls is Finish:  # of a stream within
            return []
        if cls in BLOCK_STARTS:
            id = cast(BlockStart, part).id
            self._ids.add(id)
            self._open[END_OF[cls], id] = END_OF[cls](id)
        elif cls in BLOCK_ENDS:
            self._open.pop((cls, cast(BlockEnd, part).id), None)
        elif cls is ErrorPart:
            self._failed = True
        return self._begun([*self._end_bare(), part])

    def finish(self, last: Finish, failure: Exception | None = None) -> list[StreamPart]:
        """The source has ended, or failed: what is open is ended, the failure told, and `last` is the last part."""
        parts: list[StreamPart] = self._begun([*self._end_bare(), *self._open.values()])
        self._open.clear()
        if failure is not None and not self._failed:
            parts.append(ErrorPart(failure))
        if (failure is not None or self._failed) and last.finish_reason.unified != "error":
            last = last.replace(finish_reason=INTERRUPTED)
        return [*parts, last]

    def _begun(self, parts: list[StreamPart]) -> list[StreamPart]:
        if self._started:
            return parts
        self._started = True
        return [StreamStart(), *parts]

    def _text(self, chunk: AgenticLoopChunk) -> Iterator[StreamPart]:
        """The text of a chunk that holds no part: one block for each run of a kind."""
        if chunk.reasoning:
            yield from self._bare_block(ReasoningEnd)
            yield ReasoningDelta(self._bare_id, chunk.reasoning)
        if chunk.content:
            yield from self._bare_block(TextEnd)
            yield TextDelta(self._bare_id, chunk.content)

    def _bare_block(self, end: type) -> Iterator[StreamPart]:
        if self._bare is not None and self._bare[0] is end:
            return
        yield from self._end_bare()
        id = f"chunk-{self._count}"
        while id in self._ids:
            self._count += 1
            id = f"chunk-{self._count}"
        self._count += 1
        self._bare = (end, id)
        yield TextStart(id) if end is TextEnd else ReasoningStart(id)

    def _end_bare(self) -> Iterator[StreamPart]:
        if self._bare is not None:
            end, id = self._bare
            self._bare = None
            yield end(id)

    @property
    def _bare_id(self) -> str:
        assert self._bare is not None
        return self._bare[1]
