"""One call of a blocking client, and the stream that it may open, for a task that must not block.

A thread of the pool does the call and then reads the stream's events into a buffer. It is taken only while there are
bytes to wait for: when the buffer is full it is given back (the stream is parked), and asked for again when the reader
has drained the buffer. botocore's objects are touched by that thread alone, or by anyone while none has the stream.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import copy_context
from threading import RLock, Thread
from time import monotonic
from typing import Any, Final, Literal, TypeAlias

import anyio
import anyio.lowlevel

from .abort import Cell
from .bell import Bell
from .threads import NoThread, Threads

BOUND: Final = 256
LOW: Final = 64
# A reader that is faster than its events takes a nap instead of being woken for each: waking costs more than the event.
NAP_S: Final = 0.001

Event: TypeAlias = Mapping[str, Any]
Answer: TypeAlias = Mapping[str, Any]

_State: TypeAlias = Literal["queued", "running", "parked", "over"]


class Pump:
    """`answer()`, then `batch()` until it is empty, then `failure`; `abort()` at any time, from anywhere.

    call: does the call, and returns the answer and, where there is one, the iterable of its events, which may have a
    `close()`. It runs in a thread of `threads`, in the context of the task that makes the pump. headers: see `Cell`.
    bound: how many events are read ahead at most; low: how few are left when reading goes on.

    Every failure of the client ends up in `failure`, `NoThread` too, and none is raised: their tracebacks lead to the
    request.
    """

    def __init__(
        self,
        threads: Threads,
        call: Callable[[], tuple[Answer, Iterable[Event] | None]],
        *,
        headers: dict[str, str | None] | None = None,
        bound: int = BOUND,
        low: int = LOW,
    ) -> None:
        self.failure: BaseException | None = None
        self._threads = threads
        self._call: Callable[[], tuple[Answer, Iterable[Event] | None]] | None = call
        self._bound = bound
        self._low = low
        self._cell = Cell(headers)
        self._bell = Bell()
        self._context = copy_context()
        # An RLock, since the garbage collector may abort in the middle of anything.
        self._lock = RLock()
        self._closed = False
        self._answer: Answer | None = None
        self._events: deque[Event] = deque()
        self._stream: Iterable[Event] | None = None
        self._iterator: Iterator[Event] | None = None
        self._busy = False
        self._state: _State = "queued"
        self._queued_until = monotonic() + threads.wait_s
        self._queue()

    # ------------------------------------------------------------------------------------------------- for the task

    async def answer(self) -> Answer | None:
        """What the call returned; None where it failed. Raises ClosedResourceError when it is aborted meanwhile."""
        while self._answer is None and self._state != "over":
            await self._wait(lambda: self._answer is not None)
        self._check_open()
        return self._answer

    async def batch(self) -> list[Event]:
        """The events that have come since the last time, one at least. None at all: the stream has ended, or failed.

        Raises ClosedResourceError once it has been aborted.
        """
        events = self._events
        if events:
            # A reader that always finds some must not keep the loop to itself, and has to notice its cancellation.
            await anyio.lowlevel.checkpoint()
        while True:
            self._check_open()
            batch = [events.popleft() for _ in range(len(events))]
            if self._state == "parked":
                self._resume()
            if batch:
                return batch
            # In this order: the thread puts its last event before it says that it is done.
            if self._state == "over" and not events:
                self._check_open()  # which an abort may have ended just now
                return []
            if not events:
                await self._rest()

    def abort(self) -> None:
        """End the call or the stream. It never waits for its thread, and may be called from anywhere, the garbage
        collector included; a waiting reader gets ClosedResourceError."""
        with self._lock:
            if self._closed or self._state == "over":
                return
            self._closed = True
            held = self._state == "running"
            if not held:
                self._state = "over"
                self._call = None
            stream = None if held and self._cell.seen else self._take_stream()
        self._cell.abort()
        self._bell.ring()
        if not held:
            _close(stream)
            self._cell.release()
        elif stream is not None:
            # Of a client that is not botocore's, and has no socket that we know: its stream is asked to end itself,
            # from a thread of its own, since it may not return before the read does.
            with suppress(RuntimeError):
                Thread(target=_close, args=(stream,), name="neurolink-bedrock-close", daemon=True).start()

    # ---------------------------------------------------------------------------------------------------- waiting

    def _check_open(self) -> None:
        if self._closed:
            raise anyio.ClosedResourceError

    async def _rest(self) -> None:
        if self._busy:
            await anyio.sleep(NAP_S)
            if self._events:
                return
        started = monotonic()
        await self._wait(lambda: len(self._events) > 0)
        self._busy = monotonic() - started < 2 * NAP_S

    async def _wait(self, there: Callable[[], bool]) -> None:
        event = self._bell.arm()
        try:
            if there() or self._closed or self._state == "over":
                return
            if self._state == "queued":
                with anyio.move_on_after(self._queued_until - monotonic()):
                    await event.wait()
                    return
                if self._give_up():
                    return
            await event.wait()
        finally:
            self._bell.disarm()

    def _give_up(self) -> bool:
        """Wait no longer for a thread, unless one has come at last."""
        with self._lock:
            if self._state != "queued":
                return False
            self._state = "over"
            self._call = None
            self.failure = NoThread(self._threads)
            stream = self._take_stream()
        self._cell.abort()
        _close(stream)
        self._cell.release()
        return True

    def _queue(self) -> None:
        try:
            self._threads.submit(self._work)
        except RuntimeError as error:  # no thread can be started at all
            self.failure = error.with_traceback(None)
            self._state = "over"

    def _resume(self) -> None:
        with self._lock:
            if self._state != "parked":
                return
            self._state = "queued"
            self._queued_until = monotonic() + self._threads.wait_s
        self._queue()

    # ------------------------------------------------------------------------------------------------ in the thread

    def _work(self) -> None:
        with self._lock:
            if self._state != "queued":  # aborted or given up, and cleaned up by whoever did it
                return
            self._state = "running"
        # The state changes outside of the context, which must be left before another thread may enter it.
        while self._context.run(self._read):
            with self._lock:
                if self._closed:
                    break
                self._state = "parked"
                # Drained in the meantime, by a reader that saw no parked stream, and would now wait for ever.
                if len(self._events) > self._low:
                    return
                self._state = "running"
        with self._lock:
            stream = self._take_stream()
        _close(stream)
        self._cell.release()
        self._state = "over"
        self._bell.ring()

    def _read(self) -> bool:
        """Read until the buffer is full. False: there is no more to read."""
        events, bound, bell = self._events, self._bound, self._bell
        try:
            with self._cell:
                if self._iterator is None and not self._open():
                    return False
                assert self._iterator is not None
                for event in self._iterator:
                    if self._closed:
                        return False
                    events.append(event)
                    if bell.armed is not None and not bell.ring():
                        self._closed = True  # the loop has ended, and nobody will read this
                        return False
                    if len(events) >= bound:
                        return True
                return False
        except BaseException as error:
            self.failure = error.with_traceback(None)
            return False

    def _open(self) -> bool:
        call, self._call = self._call, None
        assert call is not None
        answer, stream = call()
        with self._lock:
            self._stream = stream
            if self._closed:
                return False
        if stream is not None:
            self._cell.see(stream)
            self._iterator = iter(stream)
        self._answer = answer
        self._bell.ring()
        return stream is not None

    def _take_stream(self) -> Iterable[Event] | None:
        """The stream, for whoever closes it. One does."""
        stream, self._stream, self._iterator = self._stream, None, None
        return stream


def _close(stream: Iterable[Event] | None) -> None:
    close = getattr(stream, "close", None)
    if close is not None:
        with suppress(Exception):  # it may have been broken off in the middle of a read
            close()
