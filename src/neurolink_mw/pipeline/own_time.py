"""A limit on the time that a member spends itself: the clock runs while its own code does, what it awaits included,
and stops while the model further in works.

A cancel scope stands around each entry into the member's code, one call or one read of its stream, and never across a
`yield`. Setting a deadline for each of them would be dear, so on asyncio one timer serves the whole call: when it
fires, it looks whether the limit is reached, and if not, sets itself again.
"""

from __future__ import annotations

import asyncio
import math
import weakref
from time import monotonic
from types import TracebackType

import anyio

from ..protocol.late_close import current_loop


class Overdue(TimeoutError):
    """A member exceeded its own time. The message is ours."""


class OwnTime:
    """The clock of one call. `with clock:` around each entry; `pause` and `resume` around each call of the model.

    An entry that exceeds the limit is cancelled and raises `TimeoutError`. Code that cannot be interrupted (a sync
    function, one that swallows its cancellation) is judged when it is done.
    """

    __slots__ = ("__weakref__", "_asyncio", "_id", "_limit", "_scope", "_since", "_spent", "_timer", "_waiting")

    def __init__(self, limit: float, id: str) -> None:
        self._limit = limit
        self._id = id
        self._spent = 0.0
        self._since = 0.0
        self._waiting = 0  # calls of the model that are on their way: a hedge has two
        self._scope: anyio.CancelScope | None = None
        self._timer: asyncio.TimerHandle | None = None
        loop = current_loop()
        self._asyncio = loop if isinstance(loop, asyncio.AbstractEventLoop) else None

    # -- entries

    def __enter__(self) -> None:
        if self._asyncio is None:
            self._since = anyio.current_time()
            deadline = math.inf if self._waiting else self._since + self._limit - self._spent
            self._scope = anyio.CancelScope(deadline=deadline)
        else:
            self._since = monotonic()
            self._scope = anyio.CancelScope()
            if self._timer is None:
                self._set_timer(self._limit - self._spent)
        self._scope.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        scope, self._scope = self._scope, None
        assert scope is not None
        if not self._waiting:
            self._spent += self._now() - self._since
        swallowed = scope.__exit__(kind, error, trace)
        if scope.cancelled_caught or (kind is None and self._spent > self._limit):
            raise Overdue(f"{self._id} took more than {self._limit} s of its own time")
        return swallowed

    def stop(self) -> None:
        """The call is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- calls of the model

    def pause(self) -> None:
        self._waiting += 1
        if self._waiting == 1 and self._scope is not None:
            self._spent += self._now() - self._since
            if self._asyncio is None:
                self._scope.deadline = math.inf

    def resume(self) -> None:
        self._waiting -= 1
        if self._waiting == 0:
            self._since = self._now()
            if self._scope is None:
                return
            if self._asyncio is None:
                self._scope.deadline = self._since + self._limit - self._spent
            elif self._timer is None:  # it fired while the model worked
                self._set_timer(self._limit - self._spent)

    # -- the timer

    def _now(self) -> float:
        return anyio.current_time() if self._asyncio is None else monotonic()

    def _set_timer(self, seconds: float) -> None:
        assert self._asyncio is not None
        # Not the clock itself: a call that is dropped takes its clock with it, and the timer then does nothing.
        self._timer = self._asyncio.call_later(max(seconds, 0.0), _fire, weakref.ref(self))

    def _due(self) -> None:
        self._timer = None
        if self._scope is None:  # nobody is inside, and the next entry sets it again
            return
        left = self._limit - self._spent - (0.0 if self._waiting else monotonic() - self._since)
        if left > 0:
            self._set_timer(left)
        elif not self._waiting:
            self._scope.cancel()


def _fire(clock: weakref.ref[OwnTime]) -> None:
    alive = clock()
    if alive is not None:
        alive._due()
