"""How a member becomes a layer: its hooks are bound to the next model in, once, when the chain is built.

A layer without a hook for a call passes the inner call on as it is, at no cost; a layer that only wraps is one
`partial`. Conditions, clocks and the watch for short circuits are composed in only where something asks for them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from inspect import isasyncgenfunction, isawaitable, iscoroutinefunction, isgeneratorfunction
from time import perf_counter
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from anyio import to_thread

from ..errors import ConfigError
from ..protocol import (
    DETACHED,
    SPECIFICATION_VERSION,
    CallContext,
    CallOptions,
    GenerateResult,
    Kind,
    LanguageModel,
    PartStream,
    StreamPart,
    StreamResult,
    SupportedUrls,
)
from .conditions import When
from .failing import Keeper, answered_by, checked_options, rejoined
from .middleware import Middleware, overrides
from .owned import OwnedGenerate, OwnedStream
from .record import Clocks
from .scope import Scope

R = TypeVar("R", GenerateResult, StreamResult)
Call: TypeAlias = Callable[[CallOptions], Awaitable[R]]


class Layer:
    """The next model in, as the member further out sees it."""

    __slots__ = ("do_generate", "do_stream", "model_id", "provider", "supported_urls")
    specification_version = SPECIFICATION_VERSION

    do_generate: Call[GenerateResult]
    do_stream: Call[StreamResult]

    def __init__(self, provider: str, model_id: str, urls: SupportedUrls) -> None:
        self.provider = provider
        self.model_id = model_id
        self.supported_urls = urls


def names_of(layer: Layer) -> Layer:
    """A layer that shows the same, and has no calls yet."""
    return Layer(layer.provider, layer.model_id, layer.supported_urls)


class Timed(Protocol[R]):
    """Takes the time of one call of a layer. takes_part: whether the layer's member does something in it."""

    def __call__(self, call: Call[R], index: int, *, takes_part: bool = True) -> Call[R]: ...


class Hook(Generic[R]):
    """What differs between the two calls: the names, how time is taken, and how a member's failure is owned."""

    def __init__(self, kind: Kind, timed: Timed[R], owned: Callable[..., Call[R]]) -> None:
        self.kind: Kind = kind
        self.timed: Timed[R] = timed
        self.owned: Callable[..., Call[R]] = owned
        self.wrap = f"wrap_{kind}"
        self.do = f"do_{kind}"


@dataclass(frozen=True)
class LayerRules:
    """How a layer is bound. when: in which calls its member takes part; scoped: the chain has a scope; clock: the
    layer's index where time is taken; keeper: the host's rules, where there are any beyond passing failures on;
    watched: the member may answer by itself, or asks with options that it makes from scratch."""

    when: When | None = None
    scoped: bool = False
    clock: int | None = None
    keeper: Keeper | None = None
    watched: bool = False


def bind_call(hook: Hook[R], member: Middleware, model: LanguageModel, rules: LayerRules) -> Call[R]:
    """One call of a layer."""
    when, clock, keeper = rules.when, rules.clock, rules.keeper
    inner: Call[R] = getattr(model, hook.do)
    wraps, transforms = overrides(member, hook.wrap), overrides(member, "transform_params")
    has_hook = wraps or transforms
    # A member is timed in both calls or in none, so that what it passes on is known to be spent further in.
    timed = clock is not None and (has_hook or overrides(member, "wrap_generate") or overrides(member, "wrap_stream"))
    passing = inner if clock is None or not timed else hook.timed(inner, clock, takes_part=False)
    if not has_hook:
        return passing
    blocking = keeper is not None and keeper.rules.blocking
    wrap = _hook(member, hook.wrap, blocking) if wraps else None
    transform = _hook(member, "transform_params", blocking) if transforms else None
    call = inner
    if keeper is not None and keeper.needed:
        call = hook.owned(keeper, hook.kind, model, passing, transform, wrap)
    else:
        if wrap is not None:
            call = _watched(wrap, model, member) if rules.watched else _partial(wrap, model)
        if transform is not None:
            call = _transforming(transform, call, hook.kind, model, member.id)
    if clock is not None:
        call = hook.timed(call, clock)
    if when is not None and when.per_call:
        call = _conditional(when, call, passing)
    return call


def _hook(member: Middleware, name: str, blocking: bool) -> Callable[..., Awaitable[Any]]:
    return awaiting(getattr(member, name), f"{member.id}.{name}", blocking=blocking)


def awaiting(hook: Any, name: str, *, blocking: bool = False) -> Callable[..., Awaitable[Any]]:
    """Any hook as an async one: an async or sync function, an object with such a `__call__`. blocking: a sync one runs
    in a worker thread, and is left behind there when its call is cancelled."""
    if not callable(hook):
        raise ConfigError(f"{name} is not callable: {type(hook).__name__}")
    if isasyncgenfunction(hook) or isgeneratorfunction(hook):
        raise ConfigError(
            f"{name} has a `yield` in it: a hook returns its answer. To change parts, return "
            f"(await model.do_stream(options)).through(your_generator)"
        )
    if iscoroutinefunction(hook) or iscoroutinefunction(getattr(hook, "__call__", None)):  # noqa: B004  # its kind
        awaitable: Callable[..., Awaitable[Any]] = hook
        return awaitable

    async def call(*args: object) -> Any:
        if blocking:  # in a tuple, since trio's threads may return no coroutine
            (made,) = await to_thread.run_sync(lambda: (hook(*args),), abandon_on_cancel=True)
        else:
            made = hook(*args)
        return await made if isawaitable(made) else made

    return call


def _partial(wrap: Callable[..., Awaitable[R]], model: LanguageModel) -> Call[R]:
    function = getattr(wrap, "__func__", None)
    # A partial of the plain function spares making a bound method at every call.
    return partial(wrap, model) if function is None else partial(function, wrap.__self__, model)  # type: ignore[attr-defined]


def _transforming(
    transform: Callable[..., Awaitable[CallOptions]], call: Call[R], kind: Kind, model: LanguageModel, id: str
) -> Call[R]:
    async def transforming(options: CallOptions) -> R:
        changed = await transform(options, kind, model)
        if changed.__class__ is not CallOptions or (changed.context is DETACHED and options.context is not DETACHED):
            changed = checked_options(id, changed, options)
        return await call(changed)

    return transforming


def _conditional(when: When, call: Call[R], inner: Call[R]) -> Call[R]:
    def conditional(options: CallOptions) -> Awaitable[R]:
        return call(options) if when.matches(options) else inner(options)

    return conditional


class _Watched:
    """The model that a member which may answer gets for one call: it knows whether the answer came from inside.

    A call that the member makes for itself, with `options.for_helper`, is in another scope and no answer; one with
    options that it made from scratch is of the same call.
    """

    __slots__ = ("_context", "_model", "answered", "model_id", "provider", "supported_urls")
    specification_version = SPECIFICATION_VERSION

    def __init__(self, model: LanguageModel, context: CallContext) -> None:
        self._model = model
        self._context = context
        self.provider = model.provider
        self.model_id = model.model_id
        self.supported_urls = getattr(model, "supported_urls", {})
        self.answered = False

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        options = rejoined(options, self._context)
        result = await self._model.do_generate(options)
        self.answered |= options.context.scope is self._context.scope
        return result

    async def do_stream(self, options: CallOptions) -> StreamResult:
        options = rejoined(options, self._context)
        result = await self._model.do_stream(options)
        self.answered |= options.context.scope is self._context.scope
        return result


def _watched(wrap: Callable[..., Awaitable[R]], model: LanguageModel, member: Middleware) -> Call[R]:
    async def watched(options: CallOptions) -> R:
        inside = _Watched(model, options.context)
        result = await wrap(inside, options)
        if member.may_answer and not inside.answered:
            answered_by(member.id, options.context)
        return result

    return watched


def _timed_generate(call: Call[GenerateResult], index: int, *, takes_part: bool = True) -> Call[GenerateResult]:
    async def timed(options: CallOptions) -> GenerateResult:
        scope = options.context.scope
        if not isinstance(scope, Scope) or scope.clocks is None:  # a member's helper call is nobody's own time
            return await call(options)
        clocks = scope.clocks
        started = clocks.enter(index, takes_part)
        try:
            return await call(options)
        except Exception:
            clocks.errors[index] += takes_part
            raise
        finally:
            clocks.leave(index, started)

    return timed


def _timed_stream(call: Call[StreamResult], index: int, *, takes_part: bool = True) -> Call[StreamResult]:
    async def timed(options: CallOptions) -> StreamResult:
        scope = options.context.scope
        if not isinstance(scope, Scope) or scope.clocks is None:
            return await call(options)
        clocks = scope.clocks
        started = clocks.enter(index, takes_part)
        try:
            result = await call(options)
            if result.__class__ is not StreamResult:
                return result  # the boundary refuses it, with what is wrong
        except Exception:
            clocks.errors[index] += takes_part
            raise
        finally:
            clocks.leave(index, started)
        return result.through(lambda parts: _timed_parts(parts, clocks, index, takes_part))

    return timed


async def _timed_parts(parts: PartStream, clocks: Clocks, index: int, takes_part: bool) -> AsyncIterator[StreamPart]:
    read = parts.__aiter__().__anext__
    now = perf_counter
    seconds, ended = clocks.seconds, clocks.ended
    while True:
        started = now()
        try:
            part = await read()
        except StopAsyncIteration:
            return
        except Exception:
            clocks.errors[index] += takes_part
            raise
        finally:  # as `Clocks.leave` does, without a call for each part
            ended[index] = moment = now()
            seconds[index] += moment - started
        yield part


GENERATE: Hook[GenerateResult] = Hook("generate", _timed_generate, OwnedGenerate)
STREAM: Hook[StreamResult] = Hook("stream", _timed_stream, OwnedStream)
