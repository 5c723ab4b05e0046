"""The outer end of a chain that has a scope: each call gets a scope, and each scope one outcome."""

from __future__ import annotations

import logging
import sys
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from typing import cast

import anyio

from ..protocol import (
    CallOptions,
    Closer,
    ErrorPart,
    Finish,
    FinishReason,
    GenerateResult,
    PartStream,
    StreamPart,
    StreamResult,
    StreamStart,
    TextDelta,
    Usage,
    with_context,
)
from ..protocol.stream_result import as_exception
from .build import Listener, OnPart
from .denial import Denial, RefusedStream, find_denial, refusal, without_denials
from .failing import no_answer
from .inside import can_end_a_read
from .outcome import Status
from .record import Clocks
from .scope import Host, Scope, billed, told_at_once
from .tap import failed

_log = logging.getLogger(__name__)
_CLOSE_DEADLINE_S = 5.0


class Boundary:
    """The outermost layer of a chain. Each call gets a scope, and each scope one outcome."""

    def __init__(self, host: Host, *, timed: bool) -> None:
        self._host = host
        self._generate = host.model.do_generate
        self._stream = host.model.do_stream
        self._timed = timed
        self._in_scope: Callable[[CallOptions, Scope], CallOptions] = with_context
        self._on_part = _each_part(host.listeners)
        self._conditional = any(listener.when is not None for listener in host.listeners)
        if self._conditional:
            self._everybody = host
            self._host = host.with_listeners([one for one in host.listeners if one.when is None])

    def _settle_listeners(self, scope: Scope, options: CallOptions) -> None:
        """Who listens to this call. Within the call, so that a condition that cannot be decided is its failure."""
        listeners = [one for one in self._everybody.listeners if one.when is None or one.when.matches(options)]
        scope.host = self._everybody.with_listeners(listeners)

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        scope = Scope(self._host, "generate", options)
        if self._timed:
            scope.clocks = Clocks(len(self._host.member_ids))
        inner = self._in_scope(options, scope)
        denial: Denial | None = None
        try:
            if self._conditional:
                self._settle_listeners(scope, options)
            result = await self._generate(inner)
            if result.__class__ is not GenerateResult and not isinstance(result, GenerateResult):
                raise no_answer(result, "do_generate of a member or model", GenerateResult)
        except GeneratorExit:  # the coroutine is thrown away
            scope.end_without_loop("abandoned")
            raise
        except BaseException as error:
            if scope.seen is not None:
                failed(scope.seen, error)
            if (denial := _denial_of(scope, error)) is None:
                await _end_failed(scope, error)
                raise
        if denial is not None or scope.denial is not None:  # the latter where somebody swallowed it
            return await _refused(scope, denial or cast(Denial, scope.denial))
        if (attempt := scope.seen) is not None:
            attempt.status = "ok"
            attempt.usage = result.usage
        scope.usage = result.usage
        scope.finish_reason = result.finish_reason
        if scope.host.listeners or scope.callbacks is not None:
            await scope.end("error" if result.finish_reason.unified == "error" else "ok")
        else:
            scope.done = True
        return result

    async def do_stream(self, options: CallOptions) -> StreamResult:
        scope = Scope(self._host, "stream", options)
        if self._timed:
            scope.clocks = Clocks(len(self._host.member_ids))
        inner = self._in_scope(options, scope)
        scope.opened = []
        denial: Denial | None = None
        try:
            if self._conditional:
                self._settle_listeners(scope, options)
            result = await self._stream(inner)
            if result.__class__ is not StreamResult and not isinstance(result, StreamResult):
                raise no_answer(result, "do_stream of a member or model", StreamResult)
        except GeneratorExit:
            scope.end_without_loop("abandoned")
            raise
        except BaseException as error:
            if scope.seen is not None:
                failed(scope.seen, error)
            if (denial := _denial_of(scope, error)) is None:
                await _close_opened(scope)
                await _end_failed(scope, error)
                raise
            await _close_opened(scope)
        if denial is not None:  # out here, so that what callers catch does not lead back to it
            if scope.parent is not None or scope.host.raises_denials:
                await _refused(scope, denial)
            result = StreamResult(PartStream(_raising(denial)))  # the refusal is a stream like any other
        others, scope.opened = scope.opened, None
        on_part = _each_part(scope.host.listeners) if self._conditional else self._on_part
        ending = _Ending(scope, result.stream, on_part, [weakref.ref(one) for one in others] if len(others) > 1 else ())
        return StreamResult(_ScopedStream(_bounded(ending), close=ending), result.request, result.response)


class _Ending(Closer):
    """Ends a stream's scope, however the stream ends: read out, left, failed, aborted or dropped."""

    __slots__ = ("_opened", "inner", "on_part", "scope")

    def __init__(
        self, scope: Scope, inner: PartStream, on_part: OnPart | None, opened: Sequence[weakref.ref[PartStream]] = ()
    ) -> None:
        super().__init__(inner.aclose)
        self._opened = opened  # by the model, where it opened several: one that nobody returned is closed with them
        self.scope = scope
        self.inner = inner
        self.on_part = on_part
        inner._inner = True  # the boundary's generator reads it, as that of a derived stream does

    async def __call__(self) -> None:
        try:
            await super().__call__()
            for one in self._opened:
                if (stream := one()) is not None:
                    await stream.aclose()
        except BaseException as error:  # a member may deny while it is closed: who closes it does not hear of that
            if (late := find_denial(error)) is None:
                raise
            self.scope.latch(late)
            if self.scope.parent is not None:
                self.scope.parent.latch(late)
        finally:
            if (denial := self.scope.denial) is not None:  # left before the refusal was given out
                await _end_refused(self.scope, denial, billed(self.scope.model_calls()))
            else:
                await self.scope.end(self.status_on_leaving())

    def status_on_leaving(self) -> Status:
        scope: Scope | None = self.scope
        while scope is not None:  # scopes further in are left because the outermost one is
            if scope.cancelled:
                return "cancelled"
            scope = scope.parent
        return "abandoned"

    def without_loop(self) -> None:
        self.done = True
        scope = self.scope
        if scope.denial is not None:
            _note_refusal(scope, scope.denial, billed(scope.model_calls()))
            scope.end_without_loop("denied")
        else:
            scope.end_without_loop("abandoned")


class _ScopedStream(PartStream):
    """The stream that the caller of a scope gets. Leaving it because of a cancellation is not abandoning it."""

    __slots__ = ()

    async def aclose(self) -> None:
        ending = cast(_Ending, self._close)
        # Whoever closes it while an exception passes by: `async with stream`, `aclosing(stream)`, a `finally`.
        if _is_cancellation(sys.exc_info()[1]):
            ending.scope.cancelled = True
        if self._ending is None and self._is_being_read() and not self._can_end_a_read():
            raise RuntimeError(
                "this stream is being read, and its source has no close function to end the read: cancel the reader"
            )
        await super().aclose()

    def _can_end_a_read(self) -> bool:
        return can_end_a_read(cast(_Ending, self._close).inner)


async def _bounded(ending: _Ending) -> AsyncIterator[StreamPart]:
    scope, on_part = ending.scope, ending.on_part
    given = RefusedStream()
    denial: Denial | None = None
    late: Denial | None = None
    try:
        async for part in ending.inner:
            if scope.denial is not None:  # somebody swallowed it
                raise scope.denial
            scope.parts += 1
            if (cls := part.__class__) is not TextDelta:
                if cls is Finish:
                    # Before the finish is passed on, since many consumers stop reading there.
                    await _finish(scope, cast(Finish, part))
                else:
                    given.note(part)
                    if isinstance(part, ErrorPart) and not scope.done:
                        scope.error = as_exception(part.error)
            if on_part is not None:
                on_part(part)
            yield part
        if scope.denial is not None:
            raise scope.denial
    except GeneratorExit:
        await ending()
        raise
    except BaseException as error:
        if ending.done:  # closed from another task: what the abort raised is the closing, not a failure
            await scope.end(ending.status_on_leaving())
            if _is_cancellation(error):
                raise
            raise anyio.ClosedResourceError from None
        if scope.done and (late := find_denial(error)) is not None:
            await _close_after_failure(ending)
        elif not scope.done and (denial := _denial_of(scope, error)) is not None:
            await _close_inner(ending)
        else:
            try:
                await _end_failed(scope, error)
            finally:
                await _close_after_failure(ending)
            raise
    if late is not None:
        _refused_too_late(scope, late)
        return
    if denial is not None and (scope.parent is not None or scope.host.raises_denials):
        try:
            await _refused(scope, denial)
        finally:
            await _close_after_failure(ending)
    if denial is not None:
        try:
            for part in given.body(denial):
                scope.parts += 1
                if on_part is not None:
                    on_part(part)
                yield part
            usage = billed(scope.model_calls())
            finish = given.finish(denial, usage)
            scope.parts += 1
            await _end_refused(scope, denial, usage, finish.finish_reason)
            if on_part is not None:
                on_part(finish)
            yield finish
        finally:
            await ending()
        return
    if ending.done:  # closed from another task, and the source just ended
        await scope.end(ending.status_on_leaving())
        raise anyio.ClosedResourceError
    await scope.end("error")  # a stream without a finish is no whole answer
    await ending()


async def _refused(scope: Scope, denial: Denial) -> GenerateResult:
    """What becomes of a refused call: further in, the denial goes on outwards; at the root, callers get their answer,
    or the error that they asked for."""
    usage = billed(scope.model_calls())
    await _end_refused(scope, denial, usage)
    _pass_on(scope, denial)
    return refusal(denial, usage)


def _pass_on(scope: Scope, denial: Denial) -> None:
    """Raise a denial in the form in which it leaves a scope. Returns where callers get a refusal for it."""
    if scope.parent is not None:
        scope.parent.latch(denial)
        raise denial from None
    if scope.host.raises_denials:
        error = denial.as_error()
        error.final = True
        raise error from None


def _refused_too_late(scope: Scope, denial: Denial) -> None:
    """A denial after the finish: the caller has the whole answer. Somebody further out may still hold it back."""
    _log.warning("%s denied a call that had been answered in full", denial.by or "a member")
    _pass_on(scope, denial)


async def _end_refused(scope: Scope, denial: Denial, usage: Usage, reason: FinishReason | None = None) -> None:
    _note_refusal(scope, denial, usage, reason)
    await scope.end("denied")


def _note_refusal(scope: Scope, denial: Denial, usage: Usage, reason: FinishReason | None = None) -> None:
    if not scope.done:
        scope.usage = usage
        scope.finish_reason = reason or denial.finish_reason
        scope.error = denial.as_error()


async def _end_failed(scope: Scope, error: BaseException) -> None:
    """Settle a call that failed. The failure is then raised again, but for denials that it came in a group with."""
    rest = without_denials(error)
    if not scope.done:
        scope.error = rest
    await scope.end(_status_of(rest))
    if rest is not error:
        raise rest from None


async def _raising(denial: Denial | None) -> AsyncIterator[StreamPart]:
    if denial is not None:
        raise denial
    yield StreamStart()  # what makes this a generator


def _denial_of(scope: Scope, error: BaseException) -> Denial | None:
    """The denial that a failure is, holds or hides. Whoever is cancelled or stops the process gets that instead."""
    found = find_denial(error)
    if found is not None:
        return scope.latch(found)
    return scope.denial if isinstance(error, Exception) else None


async def _finish(scope: Scope, part: Finish) -> None:
    if (attempt := scope.seen) is not None:
        attempt.status = "ok"
        attempt.usage = part.usage
    scope.usage = part.usage
    scope.finish_reason = part.finish_reason
    failed = part.finish_reason.unified == "error" or scope.error is not None
    await scope.end("error" if failed else "ok")


async def _close_inner(ending: _Ending) -> None:
    """Free what a refused stream read from, before the refusal is given out. Its scope has not ended yet."""
    with anyio.move_on_after(_CLOSE_DEADLINE_S, shield=True):
        try:
            await ending.inner.aclose()
        except (Exception, Denial) as error:
            _log.warning("closing a stream that was refused failed: %s", type(error).__name__)


async def _close_after_failure(ending: _Ending) -> None:
    with anyio.move_on_after(_CLOSE_DEADLINE_S, shield=True):
        try:
            await ending()
        except (Exception, Denial) as error:  # the failure that the caller gets is the first one
            _log.warning("closing a stream that had failed failed too: %s", type(error).__name__)


async def _close_opened(scope: Scope) -> None:
    """A call that fails after the model opened a stream for it leaves none open."""
    with anyio.move_on_after(_CLOSE_DEADLINE_S, shield=True):
        for stream in scope.opened or ():
            try:
                await stream.aclose()
            except (Exception, Denial) as error:
                _log.warning("closing the stream of a call that failed, failed too: %s", type(error).__name__)


def _status_of(error: BaseException) -> Status:
    return "cancelled" if _is_cancellation(error) else "error"


def _is_cancellation(error: BaseException | None) -> bool:
    if error is None or isinstance(error, Exception):
        return False
    try:
        cancelled = anyio.get_cancelled_exc_class()
    except RuntimeError:  # no event loop: a coroutine driven by hand
        return False
    if isinstance(error, BaseExceptionGroup):
        return error.split(cancelled)[1] is None
    return isinstance(error, cancelled)


def _each_part(listeners: Sequence[Listener]) -> OnPart | None:
    watching = [(one.id, one.on_part) for one in listeners if one.on_part is not None]
    if not watching:
        return None

    def tell(part: StreamPart) -> None:
        for id, on_part in watching:
            told_at_once(id, "a part", on_part, part)

    return tell
