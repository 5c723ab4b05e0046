"""Parts, and sources that remember what was done with them."""

from __future__ import annotations

import asyncio
import gc
import selectors
from collections.abc import AsyncIterator, Iterable

import anyio

from neurolink_mw.protocol import (
    Finish,
    FinishReason,
    PartStream,
    StreamPart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
)
from neurolink_mw.protocol.part_stream import Through

STOP = Finish(FinishReason("stop"))


def text_block(*pieces: str, id: str = "0") -> list[StreamPart]:
    return [TextStart(id), *(TextDelta(id, piece) for piece in pieces), TextEnd(id)]


def whole(*items: StreamPart | list[StreamPart], finish: Finish = STOP) -> list[StreamPart]:
    """A stream from its start to its finish around parts and blocks."""
    return [StreamStart(), *(part for item in items for part in (item if isinstance(item, list) else [item])), finish]


HELLO = whole(text_block("Hel", "lo"))


def said(parts: Iterable[StreamPart]) -> str:
    return "".join(part.delta for part in parts if isinstance(part, TextDelta))


class Connection:
    """A source as an adapter has one. It gives its parts and then ends, or, held, waits until it is closed.

    `closed`: how often its close function ran. `left`: whether its generator was left. `waiting` is set when a read
    waits, `freed` when it was closed.
    """

    def __init__(self, parts: Iterable[StreamPart] = HELLO, *, held: bool = False) -> None:
        self._parts = tuple(parts)
        self._held = held
        self.closed = 0
        self.left = False
        self.waiting = anyio.Event()
        self.freed = anyio.Event()

    async def close(self) -> None:
        self.closed += 1
        self.freed.set()

    async def parts(self) -> AsyncIterator[StreamPart]:
        try:
            for part in self._parts:
                yield part
            if self._held:
                self.waiting.set()
                await self.freed.wait()
                raise OSError("the connection was shut down")
        finally:
            self.left = True

    def stream(self) -> PartStream:
        return PartStream(self.parts(), close=self.close)


async def passed_on(parts: PartStream) -> AsyncIterator[StreamPart]:
    """What a middleware's generator does at least."""
    async with parts:
        async for part in parts:
            yield part


def unchanged(part: StreamPart) -> StreamPart:
    return part


async def plainly(parts: PartStream) -> AsyncIterator[StreamPart]:
    """A middleware's generator that leaves the closing to others."""
    async for part in parts:
        yield part


def layered(stream: PartStream, layers: int = 10, author: Through = passed_on) -> PartStream:
    """A stream with middlewares around it, of every kind in turn."""
    for layer in range(layers):
        if layer % 3 == 0:
            stream = stream.through(author)
        else:
            stream = stream.map(unchanged) if layer % 3 == 1 else stream.expand(unchanged)
    return stream


async def read(stream: PartStream) -> list[StreamPart]:
    return [part async for part in stream]


def collect_garbage() -> None:
    gc.collect(1)  # what a test just dropped is young


class _JumpingSelector(selectors.DefaultSelector):
    jumped = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(None if timeout is None else 0)
        if not ready and timeout:
            self.jumped += timeout
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer when there is nothing else to do, as trio's MockClock does."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return super().time() + self._jumping.jumped
