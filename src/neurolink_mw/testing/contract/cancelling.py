"""A task that is cancelled while it waits, at every place where it may."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio

from ...protocol import CallOptions, Kind, LanguageModel
from .material import paced, saying_in
from .plain import KINDS
from .subject import Subject
from .wording import require, show_error

MOST_WAITS = 100  # that are tried in one call


async def check_a_cancellation_comes_out_wherever_it_hits(subject: Subject) -> None:
    for kind in KINDS:
        for place in range(1, MOST_WAITS):
            cut = await _cancelled_at(subject, kind, place)
            if cut.waits < place:  # it came to its end without a wait at that place
                break
            _require_a_clean_end(f"do_{kind} is cancelled at its wait number {place}", cut)


@dataclass(frozen=True)
class _Cut:
    """A call that was cancelled. delivered: the cancellation reached it; came_out: so it ended."""

    waits: int
    delivered: bool
    came_out: bool
    raised: Exception | None
    outcomes: int
    closings: tuple[int, ...]


def _require_a_clean_end(fed: str, cut: _Cut) -> None:
    instead = f"raised {show_error(cut.raised)}" if cut.raised is not None else "went on as if nothing had happened"
    require(
        cut.came_out or not cut.delivered,
        f"{fed}, and it {instead}. Catch Exception and never BaseException, or raise the cancellation again",
    )
    require(
        all(times == 1 for times in cut.closings),
        f"{fed}: the model's streams were closed {list(cut.closings)} times. What is cancelled still closes what it "
        f"opened: `async with result.stream`, or PartStream(source, close=upstream.aclose)",
    )
    require(cut.outcomes == 1, f"{fed}: the call has {cut.outcomes} outcomes, and each call has one")


async def _cancelled_at(subject: Subject, kind: Kind, place: int) -> _Cut:
    async with subject.fresh(paced(saying_in("Hel", "lo."))) as trial:
        raised: Exception | None = None
        with anyio.CancelScope() as scope:
            running = CancelledAt(_run(trial.model, kind, subject.options), scope, place)
            try:
                await running
            except Exception as error:
                raised = error
        outcomes, closings = len(trial.outcomes), trial.upstream.closings()
    return _Cut(running.waits, running.delivered, scope.cancelled_caught, raised, outcomes, closings)


async def _run(model: LanguageModel, kind: Kind, options: CallOptions) -> None:
    if kind == "generate":
        await model.do_generate(options)
        return
    async with (await model.do_stream(options)).stream as stream:
        async for _ in stream:
            pass


class CancelledAt:
    """Awaits a coroutine and cancels `scope` when it waits for the `place`th time.

    Every wait of a coroutine passes through whoever awaits it, on asyncio and on trio. `delivered`: whether the
    cancellation was thrown in; a wait that is shielded never gets it.
    """

    def __init__(self, work: Coroutine[Any, Any, object], scope: anyio.CancelScope, place: int) -> None:
        self._work = work
        self._scope = scope
        self._place = place
        self.waits = 0
        self.delivered = False

    def __await__(self) -> Generator[Any, Any, None]:
        resume = partial(self._work.send, None)
        while True:
            try:
                waits_for = resume()
            except StopIteration:
                return
            self.waits += 1
            if self.waits == self._place:
                self._scope.cancel()
            try:
                value = yield waits_for
            except BaseException as error:
                self._note(error)
                resume = partial(self._work.throw, error)
            else:
                self._note(getattr(value, "error", None))  # trio sends what it would throw
                resume = partial(self._work.send, value)

    def _note(self, error: object) -> None:
        self.delivered |= self._scope.cancel_called and isinstance(error, anyio.get_cancelled_exc_class())
