"""Whether a task is being cancelled, or only something that it awaited was."""

from __future__ import annotations

import asyncio

import anyio
import anyio.lowlevel


def is_cancellation(error: BaseException) -> bool:
    """Whether an exception is how this task is told to stop. The name of an error says nothing: a function that awaits
    a task which somebody cancelled raises asyncio's `CancelledError` although nobody cancelled its caller."""
    cancelled = anyio.get_cancelled_exc_class()
    if not isinstance(error, cancelled):
        return False
    # trio gives its exception only to tasks that it cancels.
    return cancelled is not asyncio.CancelledError or _is_being_cancelled()


def is_called_cancellation(error: BaseException) -> bool:
    """Whether an exception is of a kind that stands for cancellations, on whichever event loop."""
    return isinstance(error, asyncio.CancelledError | anyio.get_cancelled_exc_class())


def interrupts(error: BaseException) -> bool:
    """Whether an exception is to go on outwards whatever it broke: a cancellation of this task, and whatever else is no
    `Exception` (the end of the process, the closing of a generator, a refusal of the call); and a group that holds one.
    A cancellation that nobody asked for is a failure like any other."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(interrupts, error.exceptions))
    if isinstance(error, Exception):
        return False
    return is_cancellation(error) or not is_called_cancellation(error)


async def raise_if_cancelled() -> None:
    """Raise this task's cancellation where it is being cancelled: for after a call of somebody's code that may have
    made another error of it."""
    await anyio.lowlevel.checkpoint_if_cancelled()  # raises that of a scope, by which the scope knows it
    if anyio.get_cancelled_exc_class() is asyncio.CancelledError and _is_being_cancelled():
        raise asyncio.CancelledError


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
