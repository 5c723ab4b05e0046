"""Running a function that may be left behind.

Whoever waits for a tool must be free to leave: when the turn is cancelled, or the tool has had its time. A child of a
task group cannot be left, since its group waits for it. So an async function runs in a task of its own, which is
cancelled when the waiter leaves and given a moment to tidy up; one that ignores this is left to itself. A sync function
runs in a worker thread, which nobody can stop, and is left there.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from typing import Any

import anyio
from anyio import CapacityLimiter, to_thread

_log = logging.getLogger(__name__)

_TO_TIDY_UP_S = 0.25
"""How long a cancelled function may keep the waiter."""

_left_behind: set[asyncio.Task[None]] = set()  # asyncio keeps only weak references to its tasks


def is_async(function: object) -> bool:
    """Whether calling it gives a coroutine: an async function, a partial of one, an object with an async call."""
    return iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


async def run_detached(name: str, function: Callable[..., object], *args: object) -> object:
    """What `function(*args)` returns or raises. `name` stands in the log where it was left behind."""
    if is_async(function):
        return await _in_task(name, function, *args)
    made = await _in_thread(name, partial(function, *args))
    return await _in_task(name, _awaiting, made) if isawaitable(made) else made


async def _awaiting(made: Awaitable[object]) -> object:
    return await made


async def _in_thread(name: str, call: Callable[[], object]) -> object:
    run = _ThreadRun(name, call)
    try:
        # Whoever waits takes the place among the threads, and gives it back when leaving: threads that never end
        # would else take all of them, also from the other users of anyio's threads in the process.
        async with to_thread.current_default_thread_limiter():
            (made,) = await to_thread.run_sync(run, abandon_on_cancel=True, limiter=CapacityLimiter(1))
    except BaseException:
        run.leave()
        raise
    return made


async def _in_task(name: str, function: Callable[..., object], *args: object) -> object:
    run = _TaskRun(name, function, args)
    run.start()
    try:
        await run.ended.wait()
    except GeneratorExit:  # nothing can be awaited any more
        run.cancel()
        raise
    except BaseException:
        run.cancel()
        with anyio.move_on_after(_TO_TIDY_UP_S, shield=True):
            await run.ended.wait()
        if not run.ended.is_set():
            run.left = True
            _log_left(name)
        raise
    if (error := run.error) is not None:
        try:
            raise error
        finally:
            run.error = error = None  # a frame that refers to the error that refers to it would wait for the collector
    return run.value


class _ThreadRun:
    """One function in a worker thread."""

    def __init__(self, name: str, call: Callable[[], object]) -> None:
        self._name = name
        self._call = call
        self._running = False
        self._left = False

    def __call__(self) -> tuple[object]:
        # It may have been left before a thread was free. In a tuple, since trio's threads may return no coroutine.
        return (None if self._left else self._run(),)

    def _run(self) -> object:
        self._running = True
        try:
            return self._call()
        except BaseException as error:
            if self._left:
                _log_late(self._name, error)
            raise
        finally:
            self._running = False

    def leave(self) -> None:
        """Nobody waits for it any more."""
        self._left = True
        if self._running:
            _log_left(self._name)


class _TaskRun:
    """One function in a task of its own. `ended` is set when it is done, with its value or its error."""

    def __init__(self, name: str, function: Callable[..., Any], args: tuple[object, ...]) -> None:
        self._name = name
        self._call = partial(function, *args)
        self._cancel: Callable[[], object] = self._cancel_before_start
        self._cancelled = False
        self.ended = anyio.Event()
        self.value: object = None
        self.error: BaseException | None = None
        self.left = False

    def start(self) -> None:
        context = copy_context()  # the tool sees the caller's context variables, such as the current span
        trio = sys.modules.get("trio")
        if trio is None or anyio.get_cancelled_exc_class() is asyncio.CancelledError:
            task = asyncio.get_running_loop().create_task(self._run(), context=context)
            self._cancel = task.cancel
            _left_behind.add(task)
            task.add_done_callback(_left_behind.discard)
        else:
            # A system task: no nursery of the caller's waits for it, and the end of the run cancels it.
            trio.lowlevel.spawn_system_task(self._run_in_scope, context=context)

    def cancel(self) -> None:
        self._cancelled = True
        with suppress(RuntimeError):  # its loop has ended
            self._cancel()

    def _cancel_before_start(self) -> None:
        """Its scope does not stand yet: it will see that it is cancelled."""

    async def _run_in_scope(self) -> None:
        with anyio.CancelScope() as scope:
            self._cancel = scope.cancel
            if self._cancelled:
                scope.cancel()
            await self._run()

    async def _run(self) -> None:
        try:
            self.value = await self._call()
        except BaseException as error:  # raised by whoever waits; out of here, trio would end the process for it
            self.error = error
            if self.left:
                _log_late(self._name, error)
        finally:
            self.ended.set()


def _log_left(name: str) -> None:
    _log.warning("%s was cancelled and goes on all the same: it is left to itself", name)


def _log_late(name: str, error: BaseException) -> None:
    """By its type alone: its message may quote what the tool was given."""
    _log.warning("%s, which had been left to itself, ended with %s", name, type(error).__name__)
