"""How a thread wakes the task that waits for it, on asyncio and on trio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import anyio

from ...protocol.late_close import current_loop


class Bell:
    """Made in a task; that task waits for it, and any thread may ring it, or the garbage collector.

    To lose no ring, the waiter arms it first, then looks whether what it waits for is there already, then waits; who
    rings has put the thing there before. `armed` is read without a call where that is dear.
    """

    __slots__ = ("_notify", "armed")

    def __init__(self) -> None:
        self.armed: anyio.Event | None = None
        loop = current_loop()
        if isinstance(loop, asyncio.AbstractEventLoop):
            self._notify: Callable[[Callable[[], None]], object] = loop.call_soon_threadsafe
        else:
            self._notify = cast("Any", loop).run_sync_soon  # a trio token

    def arm(self) -> anyio.Event:
        """The event that the next ring sets."""
        event = self.armed = anyio.Event()
        return event

    def disarm(self) -> None:
        self.armed = None

    def ring(self) -> bool:
        """Wake the waiter, if there is one. False: its event loop has ended."""
        event, self.armed = self.armed, None
        if event is not None:
            try:
                self._notify(event.set)
            except RuntimeError:  # both kinds of loop say so when they have ended
                return False
        return True
