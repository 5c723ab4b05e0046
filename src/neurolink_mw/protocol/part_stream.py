"""A stream of parts that owns its closing.

Closing cannot be left to generators: the `finally` of one that never started does not run, and one that is being read
cannot be closed from outside. So a `PartStream` keeps the close function of what it reads from, every derived stream
knows the one below it, and a stream that is dropped is closed on its event loop.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from inspect import isasyncgen
from types import TracebackType
from typing import Any, Self, TypeAlias

import anyio

from . import blocks as _blocks
from .late_close import current_loop, run_later
from .parts import StreamPart
from .values import Value

Close: TypeAlias = Callable[[], Awaitable[None]]
MapPart: TypeAlias = Callable[[StreamPart], StreamPart | None]
ExpandPart: TypeAlias = Callable[[StreamPart], "StreamPart | Iterable[StreamPart] | None"]
Through: TypeAlias = Callable[["PartStream"], AsyncIterator[StreamPart]]

# A close that hangs must not hang the caller who is already leaving; what it frees is freed when the process ends.
_CLOSE_DEADLINE_S = 5.0


class Closer:
    """A close function that runs once. An adapter calls it when its source ends by itself; the stream, otherwise."""

    __slots__ = ("_close", "done")

    def __init__(self, close: Close) -> None:
        self._close = close
        self.done = False

    async def __call__(self) -> None:
        if not self.done:
            self.done = True
            await self._close()

    def without_loop(self) -> None:
        """Called instead, from the garbage collector, where the event loop has ended and nothing can be awaited."""
        self.done = True


class PartStream:
    """An async iterator of parts with `aclose()`; also an async context manager.

    `source`: an async iterator. `close`: frees what the source holds and makes a waiting read end; it runs once, also
    when nothing was ever read. A stream has one reader. `async for` iterates the source directly, at no cost.
    """

    __slots__ = ("__weakref__", "_close", "_closed", "_finalizer", "_iterator", "_upstream")

    def __init__(self, source: AsyncIterator[StreamPart], *, close: Close | None = None) -> None:
        if not hasattr(source, "__anext__"):
            raise TypeError(f"a PartStream reads an async iterator, not {type(source).__name__}")
        if not isasyncgen(source):
            # Only a generator can say whether it is being read, and be told from a dropped one.
            close = _both(close, getattr(source, "aclose", None))
            source = _relay(source)
        self._iterator: AsyncIterator[StreamPart] | None = source
        self._upstream: PartStream | None = None
        self._closed = False
        self._close: Closer | None = None
        self._finalizer: weakref.finalize[[Closer, object], AsyncIterator[StreamPart]] | None = None
        if close is not None:
            self._close = close if isinstance(close, Closer) else Closer(close)
            # On the iterator, not on this handle: `async for part in (await model.do_stream(o)).stream` drops the
            # handle at once and reads on.
            self._finalizer = weakref.finalize(source, _close_dropped, self._close, current_loop())
            self._finalizer.atexit = False

    @classmethod
    def of(cls, parts: Iterable[StreamPart]) -> PartStream:
        """A stream of parts that are already there."""
        return cls(_replay(parts))

    # -- reading

    def _source(self) -> AsyncIterator[StreamPart]:
        if self._closed:
            raise anyio.ClosedResourceError
        assert self._iterator is not None
        return self._iterator

    def __aiter__(self) -> AsyncIterator[StreamPart]:
        return self._source()

    def __anext__(self) -> Awaitable[StreamPart]:
        return self._source().__anext__()

    # -- closing

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close this stream and everything upstream, once.

        From another task while a read waits: the source's close function ends that read, the reader gets
        `anyio.ClosedResourceError`, and the streams are closed after it has left. `RuntimeError` where a stream that
        is being read has no close function, since nothing could end its read.
        """
        if self._closed:
            return
        chain = list(self._lineage())
        reading = self._is_being_read()
        close = chain[-1]._close
        if reading and close is None:
            raise RuntimeError(
                "this stream is being read, and its source has no close function to end the read: "
                "cancel the reader, or give PartStream(source, close=...) one"
            )
        self._closed = True
        if reading and close is not None:
            await close()
            delay = 0.0
            while self._is_being_read():
                await anyio.sleep(delay)
                delay = min(delay + 0.001, 0.02)
        with anyio.move_on_after(_CLOSE_DEADLINE_S, shield=True):
            await _close_chain(chain)

    def _lineage(self) -> Iterable[PartStream]:
        """This stream, then what it reads from, down to the source."""
        stream: PartStream | None = self
        while stream is not None:
            yield stream
            stream = stream._upstream

    def _is_being_read(self) -> bool:
        return bool(getattr(self._iterator, "ag_running", False))

    # -- deriving

    def map(self, fn: MapPart) -> PartStream:
        """Each part replaced by `fn(part)`, or left out where that is None. Adjacent maps share one loop."""
        return _Mapped(self, (fn,))

    def expand(self, fn: ExpandPart) -> PartStream:
        """Each part replaced by the part or parts that `fn(part)` returns; None leaves it out."""
        return self.through(lambda parts: _expand(parts, fn))

    def through(self, fn: Through) -> PartStream:
        """The parts that the async generator function `fn` makes of this stream."""
        made = fn(self)
        if not hasattr(made, "__anext__"):
            raise TypeError(
                f"through() takes an async generator function; {getattr(fn, '__name__', fn)!r} returned "
                f"{type(made).__name__}"
            )
        derived = PartStream(made)
        derived._upstream = self
        return derived

    def blocks(self, factory: _blocks.BlockFactory, kinds: Sequence[str] = ("text",)) -> PartStream:
        """Rewrite the text of blocks, one object of `factory(kind, id)` per block.

        `delta(text) -> text` gets each piece and returns what may leave now; `end() -> text` returns what was held.
        kinds: of "text", "reasoning", "tool_input". Starts, ends, ids and metadata are kept.
        """
        return self.expand(_blocks.BlockRewriter(factory, kinds))


class _Mapped(PartStream):
    """A stream with sync functions over each part. Its loop is made when reading begins, so that maps can be joined."""

    __slots__ = ("_fns",)

    def __init__(self, upstream: PartStream, fns: tuple[MapPart, ...]) -> None:
        self._iterator = None
        self._upstream = upstream
        self._closed = False
        self._close = None
        self._finalizer = None
        self._fns = fns

    def _source(self) -> AsyncIterator[StreamPart]:
        if self._closed:
            raise anyio.ClosedResourceError
        if self._iterator is None:
            assert self._upstream is not None
            self._iterator = _map(self._upstream, self._fns)
        return self._iterator

    def map(self, fn: MapPart) -> PartStream:
        if self._iterator is not None or self._upstream is None:
            return PartStream.map(self, fn)
        return _Mapped(self._upstream, (*self._fns, fn))


async def _map(upstream: PartStream, fns: tuple[MapPart, ...]) -> AsyncIterator[StreamPart]:
    if len(fns) == 1:
        (fn,) = fns
        async for part in upstream:
            if (mapped := fn(part)) is not None:
                yield mapped
        return
    async for read in upstream:
        current: Any = read  # a part, or None, which leaves the loop at once
        for fn in fns:
            current = fn(current)
            if current is None:
                break
        else:
            yield current


async def _expand(upstream: PartStream, fn: ExpandPart) -> AsyncIterator[StreamPart]:
    async for part in upstream:
        made = fn(part)
        if isinstance(made, Value):
            yield made
        elif made is not None:
            for item in made:
                yield item


async def _replay(parts: Iterable[StreamPart]) -> AsyncIterator[StreamPart]:
    for part in parts:
        yield part


async def _relay(source: AsyncIterator[StreamPart]) -> AsyncIterator[StreamPart]:
    async for part in source:
        yield part


def _both(first: Close | None, second: Close | None) -> Close | None:
    if first is None or second is None:
        return first or second

    async def close() -> None:
        try:
            await first()
        finally:
            await second()

    return close


async def _close_chain(chain: list[PartStream]) -> None:
    """Close the generators from the outside in, then the source; each gets its turn whatever the others raise."""
    stream, *inner = chain
    stream._closed = True
    try:
        close = getattr(stream._iterator, "aclose", None)
        if close is not None:
            await close()
    finally:
        try:
            if stream._close is not None:
                await stream._close()
        finally:
            if stream._finalizer is not None:
                stream._finalizer.detach()
            if inner:
                await _close_chain(inner)


def _close_dropped(close: Closer, loop: object) -> None:
    if close.done:
        return
    warnings.warn(
        "a stream was dropped before its end: leave it by `async with result.stream` or `await stream.aclose()`",
        ResourceWarning,
        stacklevel=2,
    )
    if not run_later(loop, close):
        close.without_loop()
