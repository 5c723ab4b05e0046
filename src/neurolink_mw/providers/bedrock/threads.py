"""Threads for calls that block: a bounded pool, first come first served, that never holds up the end of the process.

boto3 blocks, and a model may think for minutes. The threads of a `concurrent.futures` executor are joined when the
interpreter exits, which one blocked read would delay by its whole timeout; anyio's are shared with everything else.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import Final
from weakref import WeakSet

from ...errors import ConfigError

SIZE: Final = 128
WAIT_S: Final = 60.0
IDLE_S: Final = 5.0


class NoThread(Exception):
    """No thread of the pool became free in time."""

    def __init__(self, threads: Threads) -> None:
        super().__init__(
            f"none of the pool's {threads.size} threads became free within {threads.wait_s:g} s: "
            "close streams that are no longer read, or give the model more with threads="
        )


class Threads:
    """A pool of daemon threads, which several models may share.

    size: how many threads there are at most, and so how many calls and streams wait for bytes at one time; a stream
    whose reader pauses takes none. wait_s: how many seconds a call may wait for a thread. idle_s: how many seconds a
    thread without work stays. Threads start when they are needed; there is nothing to close.
    """

    def __init__(self, size: int = SIZE, *, wait_s: float = WAIT_S, idle_s: float = IDLE_S) -> None:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ConfigError(f"threads is how many threads there may be, 1 or more, or a Threads; not {size!r}")
        self.size = size
        self.wait_s = wait_s
        self.idle_s = idle_s
        self._set_up()
        _pools.add(self)

    def _set_up(self) -> None:
        # On an RLock, as a Condition is by default: a garbage collection may submit in the middle of anything.
        self._changed = Condition()
        self._queue: deque[Callable[[], None]] = deque()
        self._alive = 0
        self._free = 0
        self._started = 0

    def __repr__(self) -> str:
        return f"Threads(size={self.size}, busy={self.busy})"

    @property
    def alive(self) -> int:
        """How many threads there are."""
        return self._alive

    @property
    def busy(self) -> int:
        """How many of them are at work."""
        with self._changed:
            return self._alive - self._free

    def submit(self, work: Callable[[], None]) -> None:
        """Have a thread run `work()`, which must not raise, after everything that was submitted before."""
        with self._changed:
            self._queue.append(work)
            if self._free >= len(self._queue):
                self._changed.notify()
            elif self._alive < self.size:
                self._start()

    def _start(self) -> None:
        self._alive += 1
        self._started += 1
        thread = Thread(target=self._serve, name=f"neurolink-bedrock-{self._started}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system gives no more, or the interpreter is ending
            self._alive -= 1
            if not self._alive:
                self._queue.pop()
                raise

    def _serve(self) -> None:
        try:
            while (work := self._next()) is not None:
                work()
                del work  # what it holds must not stay while this thread waits
        except BaseException:
            with self._changed:
                self._alive -= 1
            raise

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            while not self._queue:
                self._free += 1
                called = self._changed.wait(self.idle_s)
                self._free -= 1
                if not called and not self._queue:
                    self._alive -= 1
                    return None
            return self._queue.popleft()


def _forget_threads() -> None:
    """In a forked process, to which no thread comes along, and where a lock may be held for ever."""
    for pool in list(_pools):
        pool._set_up()


_pools: WeakSet[Threads] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)

_shared = Threads()


def threads_of(setting: int | Threads | None) -> Threads:
    """A pool: the given one, one of the given size, or the one that this process's models share."""
    if setting is None:
        return _shared
    return setting if isinstance(setting, Threads) else Threads(setting)
