"""An open pipeline: its task group, and who has to be closed."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import anyio
from anyio.abc import TaskGroup

_log = logging.getLogger(__name__)
CLOSE_DEADLINE_S = 10.0


class Opened:
    """Closes what was added, the newest first, then ends the background work.

    Each close is shielded from a cancellation that is under way and has ten seconds: leaving must not hang.
    """

    def __init__(self) -> None:
        self._closers = AsyncExitStack()

    async def start(self) -> None:
        self.tasks: TaskGroup = await anyio.create_task_group().__aenter__()

    def add(self, name: str, close: Callable[[], Awaitable[None]]) -> None:
        self._closers.push_async_callback(_close, name, close)

    async def aclose(self, error: BaseException | None) -> bool:
        """error: what ends the `async with`. True where it was the task group's own cancellation."""
        # A task group takes back its own cancellation; everything else it would wrap in an ExceptionGroup.
        shown = None if isinstance(error, Exception | KeyboardInterrupt | SystemExit | GeneratorExit) else error
        try:
            await self._closers.aclose()
        finally:
            self.tasks.cancel_scope.cancel()
            ended = await self.tasks.__aexit__(
                type(shown) if shown else None, shown, shown.__traceback__ if shown else None
            )
        # On trio it says so of any exception, since its scope was cancelled just now.
        return bool(ended) and shown is not None


async def _close(name: str, close: Callable[[], Awaitable[None]]) -> None:
    with anyio.move_on_after(CLOSE_DEADLINE_S, shield=True) as patience:
        await close()
    if patience.cancelled_caught:
        _log.warning("%s was not closed after %s s", name, CLOSE_DEADLINE_S)
