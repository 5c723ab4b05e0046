"""`timeout`: limits on the time that a caller waits, for the whole call and for each attempt."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar

from pydantic import Field

from ..errors import ConfigError, ProviderTimeoutError
from ..pipeline import Member, Middleware, MiddlewareConfig, Stage
from ..pipeline.own_time import OwnTime
from ..protocol import CallOptions, GenerateResult, LanguageModel, PartStream, StreamPart, StreamResult


class TimeoutConfig(MiddlewareConfig):
    """Seconds; at least one of the two. call: for the whole call, with all its attempts and the waits between them.
    attempt: for one attempt, to the end of its stream.
    """

    call: float | None = Field(None, gt=0, allow_inf_nan=False)
    attempt: float | None = Field(None, gt=0, allow_inf_nan=False)


@dataclass(frozen=True)
class _Limit:
    """seconds; of: what it limits, in words; retryable: whether another try may help where it is reached."""

    seconds: float
    of: str
    retryable: bool

    def clock(self, model: LanguageModel) -> _Clock:
        return _Clock(self, model)

    def reached(self, model: LanguageModel) -> ProviderTimeoutError:
        return ProviderTimeoutError(
            f"{self.of} took more than {self.seconds:g} s",
            provider=model.provider,
            model_id=model.model_id,
            retryable=self.retryable,
        )


class _Clock(OwnTime):
    """The time of one call or attempt: it runs while somebody waits for it, and stands still between two reads."""

    __slots__ = ("_model", "_of")

    def __init__(self, limit: _Limit, model: LanguageModel) -> None:
        super().__init__(limit.seconds, limit.of)
        self._of = limit
        self._model = model

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            super().__exit__(kind, error, trace)
        except TimeoutError:  # its own: one that came from inside is not raised here, but passes
            raise self._of.reached(self._model) from None


class _Limited(Middleware):
    """A place in a chain with a limit."""

    needs_scope: ClassVar[bool | None] = False
    _limit: _Limit

    def _keep_to(self, limit: _Limit) -> None:
        self._limit = limit
        self.about = f"{limit.of} takes at most {limit.seconds:g} s"

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        clock = self._limit.clock(model)
        try:
            with clock:
                return await model.do_generate(options)
        finally:
            clock.stop()

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        clock = self._limit.clock(model)
        opened: PartStream | None = None
        try:
            with clock:
                result = await model.do_stream(options)
                opened = result.stream
        except ProviderTimeoutError:
            if opened is not None:  # it came all the same, and too late
                await _close(opened)
            raise
        finally:
            clock.stop()  # the first read sets it again: a stream that is never read leaves no timer behind
        return result.through(lambda parts: _limited(parts, clock))


async def _limited(parts: PartStream, clock: _Clock) -> AsyncIterator[StreamPart]:
    read = parts.__aiter__().__anext__
    try:
        while True:
            try:
                with clock:  # around one read, never across a yield
                    part = await read()
            except StopAsyncIteration:
                return
            yield part
    except ProviderTimeoutError:
        await _close(parts)
        raise
    finally:
        clock.stop()


async def _close(stream: PartStream) -> None:
    with suppress(Exception):  # the caller is to learn that it took too long
        await stream.aclose()


class TimeoutOfAttempt(_Limited):
    """The second place of `timeout`."""

    id: ClassVar[str] = "timeout.attempt"
    stage: ClassVar[int] = Stage.LIMIT
    # A wait for a permit or for a hedge is no time of the attempt.
    after: ClassVar[Sequence[str]] = ("circuit_breaker", "hedge", "rate_limit")

    def __init__(self, limit: _Limit) -> None:
        super().__init__()
        self._keep_to(limit)


class Timeout(_Limited):
    """Ends what takes too long with a `ProviderTimeoutError`, and closes what was opened.

    The limit of the whole call stands at the edge of the chain and includes retries and their waits. That of an attempt
    stands next to the model, as `timeout.attempt`; an attempt that reaches it may be tried again. Where only attempts
    are limited, `timeout` itself stands there. What counts is the time that the caller waits, for the answer or for
    the parts of a stream: pauses that its reader makes between two parts do not. Code that never awaits cannot be
    interrupted; it is judged when it is done.
    """

    stage: ClassVar[int] = Stage.EDGE
    Config = TimeoutConfig
    config: TimeoutConfig

    def __init__(self, config: TimeoutConfig | None = None, **values: object) -> None:
        super().__init__(config, **values)
        call, attempt = self.config.call, self.config.attempt
        of_attempt = None if attempt is None else _Limit(attempt, "an attempt", retryable=True)
        self._companions: tuple[Member, ...] = ()
        if call is not None:
            self._keep_to(_Limit(call, "the call", retryable=False))
            self._companions = () if of_attempt is None else (TimeoutOfAttempt(of_attempt),)
        elif of_attempt is not None:
            self._keep_to(of_attempt)
            self.stage = TimeoutOfAttempt.stage  # type: ignore[misc]  # the only place it has
            self.after = TimeoutOfAttempt.after  # type: ignore[misc]
        else:
            raise ConfigError(f"{self.id} limits nothing: set call, attempt or both, in seconds")

    def companions(self) -> Sequence[Member]:
        return self._companions
