"""The two ends of a chain that has a scope: the boundary outside, which keeps the outcome, and the tap inside, which
counts what reaches the model."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from typing import cast

import anyio

from ..protocol import (
    NO_USAGE,
    Attempt,
    CallOptions,
    Closer,
    ErrorPart,
    Finish,
    GenerateResult,
    LanguageModel,
    PartStream,
    StreamPart,
    StreamResult,
    TextDelta,
    with_context,
)
from ..protocol.part_stream import MapPart
from .build import Listener, OnPart
from .outcome import Status
from .record import Clocks
from .scope import Host, Scope, refused_unbilled

_log = logging.getLogger(__name__)


class Boundary:
    """The outermost layer of a chain. Each call gets a scope, and each scope one outcome."""

    def __init__(self, core: LanguageModel, listeners: Sequence[Listener], ids: Sequence[str], *, timed: bool) -> None:
        self._host = Host(core, tuple(listeners), tuple(ids))
        self._generate = core.do_generate
        self._stream = core.do_stream
        self._timed = timed
        self._on_part = _each_part(listeners)

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        scope = Scope(self._host, "generate", options)
        if self._timed:
            scope.clocks = Clocks(len(self._host.member_ids))
        try:
            result = await self._generate(with_context(options, scope))
        except BaseException as error:
            scope.error = error
            await scope.end(_status_of(error))
            raise
        scope.usage = result.usage
        scope.finish_reason = result.finish_reason
        if self._host.listeners or scope.callbacks is not None:
            await scope.end("error" if result.finish_reason.unified == "error" else "ok")
        return result

    async def do_stream(self, options: CallOptions) -> StreamResult:
        scope = Scope(self._host, "stream", options)
        if self._timed:
            scope.clocks = Clocks(len(self._host.member_ids))
        try:
            result = await self._stream(with_context(options, scope))
        except BaseException as error:
            scope.error = error
            await scope.end(_status_of(error))
            raise
        ending = _Ending(scope, result.stream)
        return StreamResult(
            _ScopedStream(_bounded(ending, self._on_part), close=ending), result.request, result.response
        )


class _Ending(Closer):
    """Ends a stream's scope, however the stream ends: read out, left, failed, aborted or dropped."""

    __slots__ = ("inner", "scope")

    def __init__(self, scope: Scope, inner: PartStream) -> None:
        super().__init__(inner.aclose)
        self.scope = scope
        self.inner = inner

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

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if (
            error is not None
            and isinstance(error, anyio.get_cancelled_exc_class())
            and isinstance(self._close, _Ending)
        ):
            self._close.scope.cancelled = True
        await self.aclose()


async def _bounded(ending: _Ending, on_part: OnPart | None) -> AsyncIterator[StreamPart]:
    scope = ending.scope
    parts = ending.inner if on_part is None else ending.inner.map(_seen_by(on_part))
    count = 0
    try:
        async for part in parts:
            count += 1
            if (cls := part.__class__) is not TextDelta:
                if cls is Finish:
                    # Before the finish is passed on, since many consumers stop reading there.
                    scope.parts = count
                    await _finish(scope, cast(Finish, part))
                elif isinstance(part, ErrorPart) and isinstance(part.error, BaseException):
                    scope.error = part.error
            yield part
    except GeneratorExit:
        scope.parts = count
        await ending()
        raise
    except BaseException as error:
        scope.parts = count
        if ending.done:  # closed from another task: what the abort raised is the closing, not a failure
            await scope.end(ending.status_on_leaving())
            raise anyio.ClosedResourceError from None
        scope.error = error
        await scope.end(_status_of(error))
        await _close_after_failure(ending)
        raise
    scope.parts = count
    await scope.end("error")  # a stream without a finish is no whole answer
    await ending()


async def _finish(scope: Scope, part: Finish) -> None:
    scope.usage = part.usage
    scope.finish_reason = part.finish_reason
    await scope.end("error" if part.finish_reason.unified == "error" else "ok")


def _seen_by(on_part: OnPart) -> MapPart:
    def seen(part: StreamPart) -> StreamPart:
        on_part(part)
        return part

    return seen


async def _close_after_failure(ending: _Ending) -> None:
    with anyio.move_on_after(5, shield=True):
        await ending()


def _status_of(error: BaseException) -> Status:
    try:
        return "cancelled" if isinstance(error, anyio.get_cancelled_exc_class()) else "error"
    except RuntimeError:  # no event loop: a coroutine driven by hand
        return "error"


def _each_part(listeners: Sequence[Listener]) -> OnPart | None:
    watching = [(one.id, one.on_part) for one in listeners if one.on_part is not None]
    if not watching:
        return None

    def tell(part: StreamPart) -> None:
        for id, on_part in watching:
            try:
                on_part(part)
            except Exception as error:
                _log.warning("%s failed on a part: %s", id, type(error).__name__)

    return tell


class Tap:
    """The innermost layer: every call that reaches the model goes into the scope's account.

    `leaf` is False where the model is a chain with a scope of its own, which accounts for its calls itself.
    """

    def __init__(self, model: LanguageModel, *, leaf: bool) -> None:
        self._leaf = leaf
        self._generate = model.do_generate
        self._stream = model.do_stream
        self.provider = model.provider
        self.model_id = model.model_id

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        context = options.context
        scope = context if context.__class__ is Scope else context.scope
        if scope is None:
            return await self._generate(options)
        scope.attempts += 1
        if not self._leaf:
            return await self._generate(options)
        attempt = Attempt("generate", self.provider, self.model_id, context.helper)
        scope.begin(attempt)
        try:
            result = await self._generate(options)
        except BaseException as error:
            _failed(attempt, error)
            raise
        attempt.status = "ok"
        attempt.usage = result.usage
        return result

    async def do_stream(self, options: CallOptions) -> StreamResult:
        context = options.context
        scope = context if context.__class__ is Scope else context.scope
        if scope is None:
            return await self._stream(options)
        scope.attempts += 1
        if not self._leaf:
            return await self._stream(options)
        attempt = Attempt("stream", self.provider, self.model_id, context.helper)
        scope.begin(attempt)
        try:
            result = await self._stream(options)
        except BaseException as error:
            _failed(attempt, error)
            raise
        return result.through(lambda parts: _accounted(parts, attempt))


async def _accounted(parts: PartStream, attempt: Attempt) -> AsyncIterator[StreamPart]:
    try:
        async for part in parts:
            if part.__class__ is Finish:
                attempt.status = "ok"
                attempt.usage = part.usage
            yield part
    finally:
        if attempt.status == "running":
            attempt.status = "error"


def _failed(attempt: Attempt, error: BaseException) -> None:
    attempt.status = "error"
    if refused_unbilled(error):
        attempt.usage = NO_USAGE
