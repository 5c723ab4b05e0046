"""A scope: one wrapped call from its start to its one outcome."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from inspect import isawaitable, iscoroutine
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import anyio

from ..errors import ConfigError
from ..events import Decision, Event, Finding
from ..protocol import (
    DETACHED,
    NO_USAGE,
    Attempt,
    CallContext,
    CallOptions,
    FinishReason,
    Kind,
    LanguageModel,
    PartStream,
    Usage,
)
from ..protocol.cancellation import is_cancellation
from ..protocol.context import REFUSAL, AtEnd
from .build import Listener
from .denial import Denial
from .outcome import Outcome, Status
from .place import MODEL
from .record import CallRecord, Clocks

if TYPE_CHECKING:
    from .tool_hooks import ToolHook

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Host:
    """What all scopes of one chain share: its model as callers see it, who listens, its members' ids. tool_hooks: what
    its members put around the tools of a turn that it is around. judges_output: one of them may deny or change what an
    answer says."""

    model: LanguageModel
    listeners: tuple[Listener, ...]
    member_ids: tuple[str, ...]
    listening: frozenset[str] = frozenset()
    raises_denials: bool = False
    events: Callable[[Event], None] | None = None
    tool_hooks: tuple[ToolHook, ...] = ()
    judges_output: bool = False

    def with_listeners(self, listeners: Sequence[Listener]) -> Host:
        """The same chain with fewer who listen."""
        return replace(self, listeners=tuple(listeners), listening=frozenset(one.id for one in listeners))


class Scope(CallContext):
    """What is known about a call while it runs. `settle` makes its outcome, the first time only.

    It is itself the context of the call: one object less for every call. `calls` are the model calls in it; the
    outermost scope reads them off the request's ledger, which also holds helper calls. `opened`: the streams that the
    model opened, until one of them has become the answer; `seen`: the attempt whose answer the boundary sees as the
    model gave it, and accounts for; `denials`: how often the call was denied, by whomever that was caught. What may
    refer back to the scope (an error's traceback, a callback, a stream) is let go with the outcome, so that a call
    leaves nothing to the garbage collector.
    """

    __slots__ = (
        *("answered_by", "attempts", "callbacks", "calls", "cancelled", "clocks", "done", "error", "finish_reason"),
        *("denial", "denials", "findings", "host", "kind", "metadata", "opened", "parent", "parts", "started", "seen"),
        *("telling", "usage"),
    )

    def __init__(self, host: Host, kind: Kind, options: CallOptions) -> None:
        # Not through super(): a scope is made for every call, and this saves a quarter of it.
        outer = options.context
        self._request_id = None
        self._values = None
        self._scope = None
        self._inherited = outer._inherited
        self.parent: Scope | None = None
        self.calls: list[Attempt] | None = None
        if outer is DETACHED:
            self._root = self.step = None
            self._ledger = []
            self.helper = False
        else:
            self._root = outer.root
            self._ledger = None
            self.parent = cast("Scope | None", outer.scope)
            self.step = outer.step
            self.helper = outer.helper
            self.calls = []
        self.host = host
        self.kind = kind
        self.metadata = options.metadata
        self.attempts = self.parts = self.denials = 0
        self.cancelled = self.done = self.telling = False
        self.answered_by: str | None = None
        self.usage: Usage | None = None
        self.finish_reason: FinishReason | None = None
        self.error: BaseException | None = None
        self.denial: Denial | None = None
        self.findings: list[Finding] | None = None
        self.callbacks: list[AtEnd] | None = None
        self.clocks: Clocks | None = None
        self.opened: list[PartStream] | None = None
        self.seen: Attempt | None = None
        self.started = perf_counter()

    @property
    def scope(self) -> Scope:
        return self

    def at_end(self, fn: AtEnd) -> None:
        """Call `fn(outcome)` when the outermost scope of this request ends. ConfigError if it has ended."""
        root = self
        while root.parent is not None:
            root = root.parent
        if root.done:
            raise ConfigError("context.at_end came too late: this call has had its outcome")
        if root.callbacks is None:
            root.callbacks = []
        root.callbacks.append(fn)

    def begin(self, attempt: Attempt) -> None:
        """A call reaches a model: it goes into the request's ledger, and counts in every scope that encloses it."""
        if self._ledger is not None:  # the outermost scope of a request that began here
            self._ledger.append(attempt)
            return
        self.ledger.append(attempt)
        scope: Scope | None = self
        while scope is not None and scope.calls is not None:
            scope.calls.append(attempt)
            scope = scope.parent

    def begin_seen(self, attempt: Attempt) -> None:
        """Begin the one attempt of a scope whose boundary stands on the model itself."""
        self.attempts += 1
        self.seen = attempt
        if self._ledger is not None:
            self._ledger.append(attempt)
        else:
            self.begin(attempt)

    def answer(self, id: str) -> None:
        """A member answers instead of the model, of this scope and of those around it."""
        scope: Scope | None = self
        while scope is not None:
            scope.answered_by = id
            scope = scope.parent

    def model_calls(self) -> Sequence[Attempt]:
        """The calls that reached a model in this scope, or in one further in."""
        if self.calls is not None:
            return self.calls
        return [attempt for attempt in self.ledger if not attempt.helper]

    # -- what policies say

    def deny(self, code: str, message: str = REFUSAL, *, by: str | None = None) -> Denial:
        """Refuse this call from here on; see `CallContext.deny`."""
        if self.telling:
            raise ConfigError("context.deny came too late: who is told an outcome cannot deny the call any more")
        denial = self.latch(Denial(code, message, by))
        self.note(Decision(self.request_id, by, "denied", code, "call"))
        return denial

    def latch(self, denial: Denial) -> Denial:
        """From here on the call is refused, whoever swallows the denial."""
        self.denials += 1
        if self.denial is None:
            self.denial = denial
        return denial

    def note(self, finding: Finding) -> None:
        """Something that the outcome is to say, of this scope and of those around it. Plugins hear it as an event."""
        scope: Scope | None = self
        while scope is not None:
            if scope.findings is None:
                scope.findings = []
            scope.findings.append(finding)
            scope = scope.parent
        told = self
        while told.host.events is None and told.parent is not None:
            told = told.parent
        if told.host.events is not None:
            told.host.events(finding)

    # -- the end

    def settle(self, status: Status) -> Outcome | None:
        """The outcome; None if there already is one."""
        if self.done:
            return None
        self.done = True
        duration = perf_counter() - self.started
        calls = self.model_calls()
        answered_by = self.answered_by
        if answered_by is None and status == "ok" and calls:
            answered_by = MODEL
        error = self.error
        self._let_go()
        return Outcome(
            self.kind,
            status,
            answered_by,
            self.attempts,
            len(calls),
            billed(calls),
            self.usage,
            self.finish_reason,
            self.parts,
            duration,
            self.host.model.provider,
            self.host.model.model_id,
            error=error,
            findings=tuple(self.findings or ()),
            metadata=self.metadata,
            record=self._record(answered_by),
            context=self,
        )

    def _let_go(self) -> None:
        self.error = self.opened = self.denial = None
        if self.seen is not None and self.seen.status == "running":
            self.seen.status = "error"

    def _record(self, answered_by: str | None) -> CallRecord | None:
        clocks, host = self.clocks, self.host
        return None if clocks is None else clocks.record(host.member_ids, host.listening, answered_by)

    async def end(self, status: Status) -> None:
        """Settle, and tell everybody who listens. What they raise or how long they hang changes nothing."""
        if not self.host.listeners and self.callbacks is None:
            self.done = True
            self._let_go()
            return
        outcome = self.settle(status)
        if outcome is not None:
            await self._tell(outcome, self._listening())

    async def _tell(self, outcome: Outcome, listening: Iterator[Listener]) -> None:
        self.telling = True
        for listener in listening:
            try:
                told = told_at_once(listener.id, "an outcome", listener.on_outcome, outcome)
                if told is None or not isawaitable(told):
                    continue
                with anyio.move_on_after(listener.deadline, shield=True) as patience:
                    await told
                if patience.cancelled_caught:
                    _log.warning("%s was not done with an outcome after %s s", listener.id, listener.deadline)
            except (Exception, Denial) as error:  # a denial comes too late here
                _log.warning("%s failed on an outcome: %s", listener.id, type(error).__name__)
            except GeneratorExit:
                self._tell_without_loop(outcome, listening)
                raise
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError) and not is_cancellation(error):
                    _log.warning("%s failed on an outcome: it awaited what was cancelled", listener.id)
                    continue
                # asyncio's `task.cancel()` goes through shields; the others are told all the same.
                await self._tell(outcome, listening)
                raise
        self.telling = False

    def end_without_loop(self, status: Status) -> None:
        """Settle where nothing can be awaited any more: sync listeners are told, async ones are not."""
        outcome = self.settle(status)
        if outcome is not None:
            self._tell_without_loop(outcome, self._listening())

    def _tell_without_loop(self, outcome: Outcome, listening: Iterator[Listener]) -> None:
        self.telling = True
        for listener in listening:
            told = told_at_once(listener.id, "an outcome", listener.on_outcome, outcome)
            if iscoroutine(told):
                told.close()
                _log.warning("%s is async and was not told an outcome: nothing can be awaited now", listener.id)
        self.telling = False

    def _listening(self) -> Iterator[Listener]:
        """Who is told, from the inside out; what hooks registered comes last."""
        callbacks, self.callbacks = self.callbacks, None
        listeners = reversed(self.host.listeners)
        return listeners if callbacks is None else chain(listeners, (Listener("at_end", fn) for fn in callbacks))


def told_at_once(id: str, what: str, fn: Callable[[Any], object] | None, value: object) -> object:
    """What a sync function of a listener returns. Nothing that it raises reaches the call: a sync function that raises
    a cancellation is not being cancelled."""
    if fn is None:
        return None
    try:
        return fn(value)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        _log.warning("%s failed on %s: %s", id, what, type(error).__name__)
        return None


_UNKNOWN = Usage()


def billed(calls: Sequence[Attempt]) -> Usage:
    """The sum of what the model calls cost; unset where one of them did not say."""
    if not calls:
        return NO_USAGE
    total = calls[0].usage or _UNKNOWN
    for attempt in calls[1:]:
        total += attempt.usage or _UNKNOWN
    return total
