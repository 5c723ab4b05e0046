"""`retry`: another try for a call that failed and may work later."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Awaitable, Callable
from typing import ClassVar, Literal, TypeAlias, TypeVar

import anyio
from pydantic import Field

from .. import errors
from ..errors import ConfigError, PolicyDenied, ProviderError
from ..events import Event
from ..events import Retry as RetryEvent
from ..pipeline import BuildContext, Middleware, MiddlewareConfig, Rules, Stage
from ..pipeline.wording import did_you_mean
from ..protocol import CallOptions, GenerateResult, LanguageModel, StreamResult, primed

T = TypeVar("T")
Sleep: TypeAlias = Callable[[float], Awaitable[None]]

_RETRYABLE = {
    name: found for name, found in vars(errors).items() if isinstance(found, type) and issubclass(found, ProviderError)
}


class RetryConfig(MiddlewareConfig):
    """attempts: calls of the model in all, the first one included. delay, factor, max_delay: before the second attempt
    it waits up to `delay` seconds, before each later one up to `factor` times as long, and never more than `max_delay`
    because of this. max_retry_after: seconds; where the provider asks to wait longer, the call fails at once.
    deadline: seconds for all attempts and waits; a wait that would end after it is not begun. It ends no attempt that
    runs, which is what `timeout` is for. on: "retryable", or the names of error classes (`neurolink_mw.errors`), and
    then only those of the retryable errors are tried again.
    """

    attempts: int = Field(3, ge=1, le=100)
    delay: float = Field(0.5, ge=0, allow_inf_nan=False)
    factor: float = Field(2.0, ge=1, le=10)
    max_delay: float = Field(20.0, ge=0, allow_inf_nan=False)
    max_retry_after: float = Field(60.0, ge=0, allow_inf_nan=False)
    deadline: float | None = Field(None, gt=0, allow_inf_nan=False)
    on: Literal["retryable"] | tuple[str, ...] = "retryable"


class Retry(Middleware):
    """Calls the model again when it failed in a way that may pass: rate limits, overload, broken connections, timeouts.

    That is what the error says itself (`retryable`). A refusal by a policy and a cancellation are never tried again. It
    waits a random time that grows with each attempt, and at least as long as the provider asked for; where that is
    too long, the error goes out at once, with its `retry_after`. A stream is tried again until its first content and
    never after it: what a failed attempt sent before is not seen. Each attempt is billed by itself.
    """

    # It looks at failures, and only whether content has come: it reads and changes nothing of a call.
    stage: ClassVar[int] = Stage.RETRY
    # Where somebody listens to events there is a scope, and nothing else here uses one.
    needs_scope: ClassVar[bool | None] = False
    Config = RetryConfig
    config: RetryConfig

    def __init__(
        self,
        config: RetryConfig | None = None,
        *,
        sleep: Sleep = anyio.sleep,
        random: Callable[[], float] = random.random,
        **values: object,
    ) -> None:
        """sleep(seconds), random() -> 0 to 1: for tests that do not wait. The time is that of the pipeline,
        `Surroundings(clock=...)`."""
        super().__init__(config, **values)
        self._sleep = sleep
        self._random = random
        self._clock = time.monotonic
        self._tell: Callable[[Event], None] | None = None
        self._retried = self._chosen_errors()
        self.about = f"up to {self.config.attempts} attempts"

    def _chosen_errors(self) -> tuple[type[Exception], ...]:
        if self.config.on == "retryable":
            return (Exception,)
        if not self.config.on:
            raise ConfigError(f'{self.id}.on: name at least one error, or leave it at "retryable"')
        for name in self.config.on:
            if name not in _RETRYABLE:
                raise ConfigError(f"{self.id}.on: there is no such error{did_you_mean(name, sorted(_RETRYABLE))}")
        return tuple(_RETRYABLE[name] for name in self.config.on)

    def as_middleware(self, rules: Rules) -> Middleware:
        """A copy for each chain, since each has its own clock and its own listeners to events."""
        return copy.copy(super().as_middleware(rules))

    def bind(self, build: BuildContext) -> None:
        self._clock = build.clock
        self._tell = build.events

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return await self._until_it_works(model.do_generate, options)

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        async def begin(options: CallOptions) -> StreamResult:
            return await primed(await model.do_stream(options))

        return await self._until_it_works(begin, options)

    async def _until_it_works(self, ask: Callable[[CallOptions], Awaitable[T]], options: CallOptions) -> T:
        started = self._clock()
        attempt = 1
        while True:
            try:
                return await ask(options)
            except Exception as error:
                wait = self._wait_after(error, attempt, started)
                if wait is None:
                    raise
                failure = (type(error).__name__, getattr(error, "status", None))
            # Out here, so that what the next attempt raises does not carry the failures before it.
            if self._tell is not None:
                self._tell(RetryEvent(options.context.request_id, self.id, attempt, wait, *failure))
            await self._sleep(wait)
            attempt += 1

    def _wait_after(self, error: Exception, attempt: int, started: float) -> float | None:
        """Seconds until the next attempt; None if there is to be none."""
        config = self.config
        if attempt >= config.attempts or not self._may_pass(error):
            return None
        wait = self._random() * min(config.delay * config.factor ** (attempt - 1), config.max_delay)
        asked = getattr(error, "retry_after", None)
        if isinstance(asked, int | float):
            if not asked <= config.max_retry_after:
                return None
            # Never less than was asked for, and not to the moment: many were told the same.
            wait = max(asked, wait) + self._random() * min(config.delay, config.max_delay)
        if config.deadline is not None and self._clock() - started + wait > config.deadline:
            return None
        return wait

    def _may_pass(self, error: Exception) -> bool:
        refused = isinstance(error, PolicyDenied)
        return not refused and getattr(error, "retryable", False) is True and isinstance(error, self._retried)
