"""The outer end of a chain that has a scope: each call gets a scope, and each scope one outcome."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator, Sequence
from typing import cast

import anyio

from ..errors import ConfigError
from ..protocol import (
    CallOptions,
    Closer,
    ErrorPart,
    Finish,
    GenerateResult,
    PartStream,
    StreamPart,
    StreamResult,
    TextDelta,
    with_context,
)
from ..protocol.part_stream import MapPart
from ..protocol.stream_result import as_exception
from .build import Listener
from .outcome import Status
from .record import Clocks
from .scope import Host, Scope
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
        try:
            if self._conditional:
                self._settle_listeners(scope, options)
            result = await self._generate(with_context(options, scope))
            if result.__class__ is not GenerateResult and not isinstance(result, GenerateResult):
                raise _no_answer(result, "do_generate", GenerateResult)
        except GeneratorExit:  # the coroutine is thrown away
            scope.end_without_loop("abandoned")
            raise
        except BaseException as error:
            if scope.seen is not None:
                failed(scope.seen, error)
            scope.error = error
            await scope.end(_status_of(error))
            raise
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
        scope.opened = []
        try:
            if self._conditional:
                self._settle_listeners(scope, options)
            result = await self._stream(with_context(options, scope))
            if result.__class__ is not StreamResult and not isinstance(result, StreamResult):
                raise _no_answer(result, "do_stream", StreamResult)
        except GeneratorExit:
            scope.end_without_loop("abandoned")
            raise
        except BaseException as error:
            if scope.seen is not None:
                failed(scope.seen, error)
            scope.error = error
            status = _status_of(error)
            await _close_opened(scope)
            await scope.end(status)
            raise
        scope.opened = None
        on_part = _each_part(scope.host.listeners) if self._conditional else self._on_part
        ending = _Ending(scope, result.stream if on_part is None else result.stream.map(on_part))
        return StreamResult(_ScopedStream(_bounded(ending), close=ending), result.request, result.response)


class _Ending(Closer):
    """Ends a stream's scope, however the stream ends: read out, left, failed, aborted or dropped."""

    __slots__ = ("inner", "scope")

    def __init__(self, scope: Scope, inner: PartStream) -> None:
        super().__init__(inner.aclose)
        self.scope = scope
        self.inner = inner
        inner._inner = True  # the boundary's generator reads it, as that of a derived stream does

    async def __call__(self) -> None:
        try:
            await super().__call__()
        finally:
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
        self.scope.end_without_loop("abandoned")


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
        *_, source = cast(_Ending, self._close).inner._lineage()
        return source._can_end_a_read() if isinstance(source, _ScopedStream) else source._close is not None


async def _bounded(ending: _Ending) -> AsyncIterator[StreamPart]:
    scope = ending.scope
    try:
        async for part in ending.inner:
            scope.parts += 1
            if (cls := part.__class__) is not TextDelta:
                if cls is Finish:
                    # Before the finish is passed on, since many consumers stop reading there.
                    await _finish(scope, cast(Finish, part))
                elif isinstance(part, ErrorPart) and not scope.done:
                    scope.error = as_exception(part.error)
            yield part
    except GeneratorExit:
        await ending()
        raise
    except BaseException as error:
        if ending.done:  # closed from another task: what the abort raised is the closing, not a failure
            await scope.end(ending.status_on_leaving())
            if _is_cancellation(error):
                raise
            raise anyio.ClosedResourceError from None
        if not scope.done:
            scope.error = error
        try:
            await scope.end(_status_of(error))
        finally:
            await _close_after_failure(ending)
        raise
    if ending.done:  # closed from another task, and the source just ended
        await scope.end(ending.status_on_leaving())
        raise anyio.ClosedResourceError
    await scope.end("error")  # a stream without a finish is no whole answer
    await ending()


async def _finish(scope: Scope, part: Finish) -> None:
    if (attempt := scope.seen) is not None:
        attempt.status = "ok"
        attempt.usage = part.usage
    scope.usage = part.usage
    scope.finish_reason = part.finish_reason
    failed = part.finish_reason.unified == "error" or scope.error is not None
    await scope.end("error" if failed else "ok")


async def _close_after_failure(ending: _Ending) -> None:
    with anyio.move_on_after(_CLOSE_DEADLINE_S, shield=True):
        try:
            await ending()
        except Exception as error:  # the failure that the caller gets is the first one
            _log.warning("closing a stream that had failed failed too: %s", type(error).__name__)


async def _close_opened(scope: Scope) -> None:
    """A call that fails after the model opened a stream for it leaves none open."""
    with anyio.move_on_after(_CLOSE_DEADLINE_S, shield=True):
        for stream in scope.opened or ():
            try:
                await stream.aclose()
            except Exception as error:
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


def _no_answer(result: object, call: str, expected: type) -> ConfigError:
    kind = type(result).__name__
    hint = "; is there a `return` missing?" if result is None else ""
    return ConfigError(f"{call} of a member or model returned {kind}, not a {expected.__name__}{hint}")


def _each_part(listeners: Sequence[Listener]) -> MapPart | None:
    watching = [(one.id, one.on_part) for one in listeners if one.on_part is not None]
    if not watching:
        return None

    def tell(part: StreamPart) -> StreamPart:
        for id, on_part in watching:
            try:
                on_part(part)
            except Exception as error:
                _log.warning("%s failed on a part: %s", id, type(error).__name__)
        return part

    return tell
