"""Closing what nobody closed: a stream that the garbage collector takes still frees its connection.

A collector runs in any thread, in the middle of anything, and may not await. So it only sends word to the event loop
that the stream was made on, and the loop runs the close function there, shielded and with a deadline.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import anyio

_log = logging.getLogger(__name__)
_DEADLINE_S = 5.0
# Of trio's root task: for what is sent to the loop, for system tasks, for the main task. The last ends with the main
# task; then trio finalizes async generators, and a task that is begun there breaks the whole run.
_TRIO_NURSERIES = 3

Loop: TypeAlias = object
"""An asyncio event loop or a trio token; None where no loop was running."""

_late_tasks: set[asyncio.Task[None]] = set()  # asyncio keeps only weak references to its tasks


def current_loop() -> Loop | None:
    """The loop that is running here, asyncio's or trio's."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        trio = sys.modules.get("trio")  # imported by whoever runs on it
        if trio is None:
            return None
        try:
            token: Loop = trio.lowlevel.current_trio_token()
        except RuntimeError:
            return None
        return token


def run_later(loop: Loop | None, fn: Callable[[], Awaitable[None]], otherwise: Callable[[], None]) -> None:
    """Have `loop` run `await fn()`, called from any thread or from the garbage collector. otherwise: called instead
    where the loop is gone, or ends and begins no task any more."""

    async def run() -> None:
        try:
            with anyio.move_on_after(_DEADLINE_S, shield=True):
                await fn()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit | anyio.get_cancelled_exc_class()):
                raise
            # Nobody is left to raise to, and an exception in a trio system task would end the whole run.
            _log.warning("closing a dropped stream failed: %s", type(error).__name__)

    def start_on_asyncio(loop: asyncio.AbstractEventLoop) -> None:
        task = loop.create_task(run())
        _late_tasks.add(task)
        task.add_done_callback(_late_tasks.discard)

    def start_on_trio() -> None:
        lowlevel = sys.modules["trio"].lowlevel
        root = lowlevel.current_root_task()
        if root is not None and len(root.child_nurseries) >= _TRIO_NURSERIES:
            lowlevel.spawn_system_task(run)
        else:
            otherwise()

    if loop is None:
        otherwise()
        return
    try:
        if isinstance(loop, asyncio.AbstractEventLoop):
            loop.call_soon_threadsafe(start_on_asyncio, loop)
        else:
            loop.run_sync_soon(start_on_trio)  # type: ignore[attr-defined]  # a trio token
    except RuntimeError:  # both kinds of loop say so when they have ended
        otherwise()
