"""Somebody who watches and changes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, ClassVar, Literal

from ..errors import ConfigError
from ..pipeline import BuildContext, Effect, Middleware, OnError, Outcome, Rules, Stage
from ..pipeline.attempts import AttemptBoundary
from ..pipeline.bind import awaiting
from ..pipeline.middleware import is_sync
from ..pipeline.rest import Rest
from ..protocol import CallOptions, GenerateResult, LanguageModel, StreamPart, StreamResult
from .role import PATIENCE_S, Adapter, Role


class Observer(Role):
    """Is told how each call ended, and shown each part on its way.

        class Count(Observer):
            def on_outcome(self, outcome):
                CALLS.labels(outcome.status).inc()

    per: "call" stands at the boundary of the chain and sees what the caller sees; "attempt" stands at the provider and
    is told of each call that reaches the model. What it raises is logged and changes nothing; an async `on_outcome`
    has five seconds, or the timeout of its place. `on_part` is sync, since nothing may delay a part.
    """

    stage: ClassVar[int] = Stage.OBSERVE
    told: ClassVar[frozenset[str]] = frozenset({"on_outcome", "on_part"})
    reads: ClassVar[frozenset[Effect]] = frozenset({"output", "metadata"})
    default_on_error: ClassVar[OnError] = "skip"
    per: ClassVar[Literal["call", "attempt"]] = "call"

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if cls.per not in ("call", "attempt"):
            raise ConfigError(f'{cls.__name__}.per is "call" or "attempt"')
        if cls.per == "attempt" and cls.stage == Stage.OBSERVE:
            cls.stage = Stage.PROVIDER

    def on_outcome(self, outcome: Outcome) -> Awaitable[None] | None:
        """A call, or an attempt, is over."""

    def on_part(self, part: StreamPart) -> None:
        """A part of a stream is about to be passed on."""

    def as_middleware(self, rules: Rules) -> Middleware:
        if rules.on_error != "skip":
            raise ConfigError(f'{self.id}: an observer changes nothing, also by failing: on_error can only be "skip"')
        if rules.mode == "shadow":
            raise ConfigError(f'{self.id}: an observer changes nothing anyway: mode is "enforce" or "off"')
        return _PerCall(self, rules) if self.per == "call" else _PerAttempt(self, rules)


class _Watching(Adapter[Observer]):
    handles_failures: ClassVar[bool] = True

    def __init__(self, role: Observer, rules: Rules) -> None:
        super().__init__(role, rules)
        self._on_outcome = _told(role, rules) if _overridden(role, "on_outcome") else None
        self._on_part = role.on_part if _overridden(role, "on_part") else None
        self._deadline = PATIENCE_S if rules.timeout is None else rules.timeout
        if self._on_outcome is None and self._on_part is None:
            raise ConfigError(
                f"{type(role).__name__} has neither on_outcome nor on_part: it would never be told a thing"
            )
        for name in ("timeout", "max_failures", "blocking"):
            if self._on_outcome is None and getattr(rules, name):
                raise ConfigError(f"{role.id}: {name} is about on_outcome, which it does not have: leave it out")
        if rules.blocking and not is_sync(role.on_outcome):
            raise ConfigError(
                f"{role.id}: blocking moves a sync on_outcome to a worker thread, and this one is async: leave it out"
            )

    def bind(self, build: BuildContext) -> None:
        super().bind(build)
        if self._on_outcome is not None and self.rules.max_failures is not None:
            self._on_outcome = _resting(self._on_outcome, Rest(self.rules.max_failures, build.clock))


class _PerCall(_Watching):
    def bind(self, build: BuildContext) -> None:
        super().bind(build)
        build.observe(self._on_outcome, on_part=self._on_part, deadline=self._deadline)


class _PerAttempt(_Watching):
    def __init__(self, role: Observer, rules: Rules) -> None:
        super().__init__(role, rules)
        self._boundary: AttemptBoundary | None = None

    def bind(self, build: BuildContext) -> None:
        super().bind(build)
        listening = BuildContext(self.id)  # checks what is observed, as for everybody
        listening.observe(self._on_outcome, on_part=self._on_part, deadline=self._deadline)
        (self._listener,) = listening.listeners

    def _around(self, model: LanguageModel) -> AttemptBoundary:
        """The boundary around the next model in, which is the same one at every call."""
        if self._boundary is None or self._boundary.model is not model:
            self._boundary = AttemptBoundary(model, self._listener)
        return self._boundary

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return await self._around(model).do_generate(options)

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return await self._around(model).do_stream(options)


def _overridden(role: Observer, name: str) -> bool:
    own = getattr(role, name)
    return getattr(own, "__func__", own) is not vars(Observer)[name]


def _told(role: Observer, rules: Rules) -> Callable[[Outcome], Any]:
    called = awaiting(role.on_outcome, f"{role.id}.on_outcome", blocking=rules.blocking)  # refuses what cannot be
    return called if rules.blocking else role.on_outcome


def _resting(on_outcome: Callable[[Outcome], Any], rest: Rest) -> Callable[[Outcome], Any]:
    """`on_outcome`, left alone for a while after it failed too often. One that is sync stays so, since nothing can be
    awaited where a stream is dropped."""

    def told(outcome: Outcome) -> Awaitable[None] | None:
        if rest.resting():
            return None
        try:
            made = on_outcome(outcome)
        except Exception:
            rest.failed()
            raise
        if isawaitable(made):
            return told_in_time(made)
        rest.worked()
        return None

    async def told_in_time(made: Awaitable[object]) -> None:
        try:
            await made
        except BaseException:  # also when it took too long and was cancelled
            rest.failed()
            raise
        rest.worked()

    async def told_later(outcome: Outcome) -> None:
        made = told(outcome)
        if made is not None:
            await made

    return told if is_sync(on_outcome) else told_later
