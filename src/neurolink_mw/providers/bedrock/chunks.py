"""Chunks of an agentic loop, to and from the parts of a V3 stream.

A chunk is what a reader of text wants: a piece of text or of reasoning. Ours also hold the part that they are, so that
a stream survives the way there and back whole; chunks of others, with text alone, become a stream with blocks.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from inspect import isasyncgen
from types import TracebackType
from typing import Final, Self, cast

import anyio

from ...errors import BridgeShapeError
from ...protocol import INTERRUPTED, Closer, ErrorPart, Finish, PartStream, ReasoningDelta, StreamPart, TextDelta
from ...protocol.stream_result import as_exception
from .chunk_parts import AgenticLoopChunk, ChunkParts

# How long to wait for the end of a stream that has told of a failure.
AFTER_ERROR_S: Final = 1.0

__all__ = ["AgenticLoopChunk", "ChunkStream", "bedrock_chunks_to_v3_stream", "bedrock_v3_stream_to_chunks"]

_log = logging.getLogger(__name__)


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
                await self._drain()
                try:
                    raise as_exception(cast(ErrorPart, part).error)
                finally:
                    del part  # a frame that holds the error that refers to it would wait for the collector
            if cls is not Finish:  # with it there is nothing more to come
                return AgenticLoopChunk("", None, part)

    async def _drain(self) -> None:
        """Read what ends a stream that has failed, and its outcome. What goes wrong there is no news."""
        with anyio.move_on_after(AFTER_ERROR_S), suppress(Exception):
            async for _ in self._parts:
                pass

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
        try:
            if cancel is not None:
                cancel()
        finally:
            # A generator that is being read cannot be closed by another task: it ends by what `cancel` does.
            if not (isasyncgen(source) and source.ag_running):
                await _close(source)

    closer = Closer(close)
    return PartStream(_parts(source, finish, closer), close=closer)


async def _close(source: object) -> None:
    if (aclose := getattr(source, "aclose", None)) is not None:
        await aclose()


async def _parts(
    source: AsyncIterable[AgenticLoopChunk], finish: Callable[[], Awaitable[Finish]], closer: Closer
) -> AsyncIterator[StreamPart]:
    machine, failure, over = ChunkParts(), None, False
    try:
        async for chunk in source:
            if closer.done:
                break
            for part in machine.feed(chunk):
                yield part
        over = True
        if not closer.done:
            closer.done = True  # it has ended by itself, and nothing is left to stop
        else:
            await _close(source)  # which could not be done while it was read
            raise anyio.ClosedResourceError
    except Exception as error:
        if over or closer.done:  # closed by another task, while this one was reading
            raise anyio.ClosedResourceError from None
        failure = error
        try:
            await closer()
        except Exception as late:
            _log.warning("stopping what makes the chunks failed: %s", type(late).__name__)
    finally:
        await closer()
    try:
        last = await finish()
        if not isinstance(last, Finish):
            raise BridgeShapeError(f"finish() returned {type(last).__name__}, not a Finish")
    except Exception as error:
        failure, last = failure or error, Finish(INTERRUPTED)
    for part in machine.finish(last, failure):
        yield part
    failure = None  # a frame that holds the error that refers to it would wait for the collector
