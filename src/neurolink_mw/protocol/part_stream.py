"""A stream of parts that owns its closing.

Closing cannot be left to generators: the `finally` of one that never started does not run, and one that is being read
cannot be closed from outside. So a `PartStream` keeps the close function of what it reads from, every derived stream
knows the one below it, and a stream that is dropped is closed on its event loop.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from inspect import isasyncgen
from types import AsyncGeneratorType, TracebackType
from typing import Any, Self, TypeAlias, cast

import anyio

from . import blocks as _blocks
from .late_close import current_loop, run_later
from .parts import StreamPart
from .values import Value

Close: TypeAlias = Callable[[], Awaitable[None]]
MapPart: TypeAlias = Callable[[StreamPart], StreamPart | None]
ExpandPart: TypeAlias = Callable[[StreamPart], "StreamPart | Iterable[StreamPart] | None"]
Rest: TypeAlias = Callable[[], Iterable[StreamPart]]
_Generator: TypeAlias = AsyncGeneratorType[StreamPart, None]
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

    `source`: an async iterator. `close`: frees what the source holds and makes a waiting read end. It runs once: when
    the source ends or fails, when the stream is closed, or when it is dropped, also if nothing was ever read. What a
    read raises because of it reaches the reader as `anyio.ClosedResourceError`.

    A stream has one reader. `async for` reads the source's async generator with nothing in between. With a plain close
    function there is one generator more, which sees the source's end; a generator that is given a `Closer`, calls it
    at its own end and raises `ClosedResourceError` itself once that is `done` needs none.
    """

    # `__anext__` is a slot: reading a stream is reading its generator, with nothing in between, until it is closed.
    __slots__ = ("__anext__", "__weakref__", "_close", "_ending", "_finalizer", "_inner", "_iterator", "_upstream")

    __anext__: Callable[[], Awaitable[StreamPart]]
    _finalizer: weakref.finalize[[Closer, object], _Generator] | None

    def __init__(self, source: AsyncIterator[StreamPart], *, close: Close | None = None) -> None:
        if not hasattr(source, "__anext__"):
            raise TypeError(f"a PartStream reads an async iterator, not {type(source).__name__}")
        closer: Closer | None
        if isasyncgen(source) and (close is None or isinstance(close, Closer)):
            closer = close
        else:
            # Only a generator can say whether it is being read, and only one of ours that it has ended.
            close = close if isasyncgen(source) else _both(close, getattr(source, "aclose", None))
            closer = None if close is None else Closer(close)
            source = _relay(source, closer)
        self._set_up(cast(_Generator, source), None, closer)
        if closer is not None:
            # On the iterator, not on this handle: `async for part in (await model.do_stream(o)).stream` drops the
            # handle at once and reads on.
            self._finalizer = weakref.finalize(self._iterator, _close_dropped, closer, current_loop())
            self._finalizer.atexit = False

    def _set_up(self, iterator: _Generator, upstream: PartStream | None, close: Closer | None) -> None:
        self._iterator = iterator
        self.__anext__ = iterator.__anext__
        self._upstream = upstream
        self._inner = False  # whether another stream is derived from this one, and reads it
        self._ending: anyio.Event | None = None  # set when it has been closed, there since it is being closed
        self._close = close
        self._finalizer = None

    @classmethod
    def of(cls, parts: Iterable[StreamPart]) -> PartStream:
        """A stream of parts that are already there."""
        return cls(_replay(parts))

    # -- reading

    def __aiter__(self) -> AsyncIterator[StreamPart]:
        if self._ending is not None:
            raise anyio.ClosedResourceError
        return self._iterator if self._inner else self

    @property
    def is_over(self) -> bool:
        """Whether nothing more can be read: it was read to its end, has failed, or was closed."""
        return self._ending is not None or self._iterator.ag_frame is None

    # -- closing

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close this stream and everything upstream, once. Whoever calls it meanwhile waits until that is done.

        From another task while a read waits: the source's close function ends that read, the reader gets
        `anyio.ClosedResourceError`, and the streams are closed after it has left. `RuntimeError` where a stream that
        is being read has no close function, since nothing could end its read.
        """
        if self._ending is not None:
            # Not where another stream reads this one: its reader may be on the way out, and is waited for.
            if not self._inner:
                await self._ending.wait()
            return
        chain = list(self._lineage())
        reading = self._is_being_read()  # by another task
        close = chain[-1]._close
        if reading and close is None:
            raise RuntimeError(
                "this stream is being read, and its source has no close function to end the read: "
                "cancel the reader, or give PartStream(source, close=...) one"
            )
        self._begin_closing()
        steps: list[Close] = [close, self._reader_has_left] if reading and close is not None else []
        for stream in chain:
            steps.append(stream._close_generator)
            if stream._close is not None:
                steps.append(stream._close)
        try:
            await _run_all(steps)
        finally:
            for stream in chain:
                stream._begin_closing().set()
                if stream._finalizer is not None:
                    stream._finalizer.detach()
        if reading and self._is_being_read():
            raise RuntimeError(
                "this stream was closed, and the task that reads it still waits: its close function has to end the read"
            )

    def _begin_closing(self) -> anyio.Event:
        """From here on nothing can be read. A generator that was closed between two reads would end quietly instead,
        as if the answer were whole."""
        if self._ending is None:
            self._ending = anyio.Event()
            self.__anext__ = _refuse_to_read
        return self._ending

    async def _reader_has_left(self) -> None:
        delay = 0.0
        while self._is_being_read():
            await anyio.sleep(delay)
            delay = min(delay + 0.001, 0.02)

    async def _close_generator(self) -> None:
        self._begin_closing()
        if not self._iterator.ag_running:
            await self._iterator.aclose()

    def _lineage(self) -> Iterable[PartStream]:
        """This stream, then what it reads from, down to the source."""
        stream: PartStream | None = self
        while stream is not None:
            yield stream
            stream = stream._upstream

    def _is_being_read(self) -> bool:
        return any(stream._iterator.ag_running for stream in self._lineage())

    # -- deriving

    def map(self, fn: MapPart) -> PartStream:
        """Each part replaced by `fn(part)`, or left out where that is None. Adjacent maps share one loop."""
        return _Mapped(self, (fn,))

    def expand(self, fn: ExpandPart, *, rest: Rest | None = None) -> PartStream:
        """Each part replaced by the part or parts that `fn(part)` returns; None leaves it out. rest: the parts that
        `fn` still holds when the source ends; a source that was cut may end without a finish."""
        return self.through(lambda parts: _expand(parts, fn, rest))

    def through(self, fn: Through) -> PartStream:
        """The parts that the async generator function `fn` makes of this stream."""
        made = fn(self)
        if not hasattr(made, "__anext__"):
            if isinstance(made, Coroutine):
                made.close()
            raise TypeError(
                f"through() takes an async generator function; {getattr(fn, '__name__', fn)!r} returned "
                f"{type(made).__name__}"
            )
        derived = PartStream(made)
        derived._upstream = self
        self._inner = True
        return derived

    def blocks(self, factory: _blocks.BlockFactory, kinds: Sequence[str] = ("text",)) -> PartStream:
        """Rewrite the text of blocks, one object of `factory(kind, id)` per block.

        `delta(text) -> text` gets each piece and returns what may leave now; `end() -> text` returns what was held.
        kinds: of "text", "reasoning", "tool_input". Starts, ends, ids and metadata are kept. The tool call that
        follows a rewritten input keeps the input that the model wrote: rewrite it too, with `map`.
        """
        rewriter = _blocks.BlockRewriter(factory, kinds)
        return self.expand(rewriter, rest=rewriter.rest)


class _Mapped(PartStream):
    """A stream with sync functions over each part. Until it is read, a map of it is the same loop with one more."""

    __slots__ = ("_begun", "_fns", "_source")

    def __init__(self, source: PartStream, fns: tuple[MapPart, ...]) -> None:
        self._begun: list[bool] = []  # filled by the loop itself, which must not refer back to this handle
        self._set_up(cast(_Generator, _map(source, fns, self._begun)), source, None)
        self._source = source
        self._fns = fns
        source._inner = True

    def map(self, fn: MapPart) -> PartStream:
        return super().map(fn) if self._begun else _Mapped(self._source, (*self._fns, fn))


def _refuse_to_read() -> Awaitable[StreamPart]:
    raise anyio.ClosedResourceError


async def _map(upstream: PartStream, fns: tuple[MapPart, ...], begun: list[bool]) -> AsyncGenerator[StreamPart, None]:
    begun.append(True)
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


async def _expand(upstream: PartStream, fn: ExpandPart, rest: Rest | None) -> AsyncIterator[StreamPart]:
    async for part in upstream:
        made = fn(part)
        if isinstance(made, Value):
            yield made
        elif made is not None:
            for item in made:
                yield item
    if rest is not None:
        for item in rest():
            yield item


async def _replay(parts: Iterable[StreamPart]) -> AsyncIterator[StreamPart]:
    for part in parts:
        yield part


async def _relay(source: AsyncIterator[StreamPart], close: Closer | None) -> AsyncGenerator[StreamPart, None]:
    """The parts of a source that cannot be asked whether it has ended: it is closed as soon as it has."""
    try:
        async for part in source:
            yield part
    except GeneratorExit:
        if isasyncgen(source):
            await source.aclose()
        raise
    except BaseException as error:
        if close is not None and close.done and isinstance(error, Exception):
            raise anyio.ClosedResourceError from None  # how the read fails when it is closed from outside
        with suppress(Exception):  # the reader is to learn why it failed
            await _run_all([close] if close else [])
        raise
    if close is not None:
        if close.done:
            raise anyio.ClosedResourceError
        await _run_all([close])


def _both(first: Close | None, second: Close | None) -> Close | None:
    if first is None or second is None:
        return first or second

    async def close() -> None:
        try:
            await first()
        finally:
            await second()

    return close


async def _run_all(steps: Iterable[Close]) -> None:
    """Run each in turn, whatever the others raise and however long they hang; then raise the first failure."""
    failure: BaseException | None = None
    waiting = iter(steps)
    done = False
    while not done:
        with anyio.move_on_after(_CLOSE_DEADLINE_S, shield=True) as patience:
            for step in waiting:
                try:
                    await step()
                except BaseException as error:
                    if patience.cancel_called and isinstance(error, anyio.get_cancelled_exc_class()):
                        raise
                    failure = failure or error
                if patience.cancel_called:
                    break
            else:
                done = True
    if failure is not None:
        raise failure


def _close_dropped(close: Closer, loop: object) -> None:
    if close.done:
        return
    run_later(loop or current_loop(), close, close.without_loop)
    # Last, since a filter may turn it into an error.
    warnings.warn(
        "a stream was dropped before its end: leave it by `async with result.stream` or `await stream.aclose()`",
        ResourceWarning,
        stacklevel=2,
    )
