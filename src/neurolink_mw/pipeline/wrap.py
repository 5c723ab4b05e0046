"""The composition: a model and its members become one model."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import iscoroutinefunction
from types import CodeType, FunctionType
from typing import Literal, TypeAlias, get_args

from ..errors import ConfigError
from ..events import CallEnded, Event
from ..protocol import SPECIFICATION_VERSION, CallContext, GenerateResult, LanguageModel, StreamResult, supported_urls
from .bind import GENERATE, STREAM, Call, Layer, LayerRules, bind_call, names_of
from .boundary import Boundary
from .build import BuildContext, Listener, Surroundings
from .effects import Lint, find_faults, report
from .failing import Keeper
from .helper_calls import with_helper_calls
from .member import Member
from .middleware import Middleware, overrides
from .order import Placed, arrange
from .outcome import Outcome
from .place import MODE_OFF, Use, as_uses
from .record import Statistics
from .scope import Host
from .tap import Tap, is_turn
from .tool_hooks import hooks_of

Denied: TypeAlias = Literal["refuse", "raise"]

_log = logging.getLogger(__name__)
_ON_THE_WAY = ("transform_params", "wrap_generate", "wrap_stream")


@dataclass(frozen=True)
class Chain:
    """What a wrapped model is made of, from the outside in; `left_out` says who does not take part, and why;
    `listening`, who is told outcomes; `denied`, what callers get for a refused call."""

    model: LanguageModel
    placed: tuple[Placed, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    listening: frozenset[str] = frozenset()
    denied: Denied = "refuse"
    surroundings: Surroundings = field(default_factory=Surroundings)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(place.use.id for place in self.placed)


class WrappedModel:
    """A model with its chain around it. It is a model like any other, and shows its chain to checks."""

    __slots__ = (
        *("_layers", "_listeners", "_statistics", "chain", "do_generate", "do_stream"),
        *("_with_scope", "is_turn", "model_id", "provider", "scoped", "supported_urls", "tool_hooks"),
    )
    specification_version = SPECIFICATION_VERSION

    do_generate: Call[GenerateResult]
    do_stream: Call[StreamResult]

    def __init__(
        self,
        chain: Chain,
        listeners: Sequence[Listener],
        statistics: Statistics | None,
        *,
        scoped: bool,
        layers: Sequence[Layer],
    ) -> None:
        self.chain = chain
        self.scoped = scoped
        self._listeners = listeners
        self._statistics = statistics
        self._layers = layers
        self._with_scope: WrappedModel | None = self if scoped else None
        self.is_turn = is_turn(chain.model)
        self.tool_hooks = hooks_of(chain.placed, chain.model, lambda place: _keeper(place, chain.surroundings))
        core = _compose(chain, layers, scoped=scoped, timed=statistics is not None)
        self.provider = core.provider
        self.model_id = core.model_id
        self.supported_urls = supported_urls(core)
        if scoped:
            events = chain.surroundings.events
            refuses = chain.denied == "refuse"
            hooks = self.tool_hooks.judging if self.is_turn else ()
            judges = any("output" in place.use.member.writes | place.use.member.judges for place in chain.placed)
            host = Host(core, tuple(listeners), chain.ids, chain.listening, not refuses, events, hooks, judges)
            boundary = Boundary(host, timed=statistics is not None)
            self.do_generate, self.do_stream = boundary.do_generate, boundary.do_stream
        else:
            self.do_generate, self.do_stream = core.do_generate, core.do_stream

    def with_scope(self) -> WrappedModel:
        """The same chain with a scope of its own, so that a chain further out can account for what happens in it."""
        if self._with_scope is None:
            self._with_scope = WrappedModel(
                self.chain, self._listeners, self._statistics, scoped=True, layers=self._layers
            )
        return self._with_scope

    def seen_by(self, index: int) -> Layer:
        """The next model in, as the member at `index` sees it: its names and addresses, without the calls."""
        return names_of(self._layers[index + 1])

    def __repr__(self) -> str:
        return f"WrappedModel({self.provider}:{self.model_id}, [{', '.join(self.chain.ids)}])"


def wrap_model(
    model: LanguageModel,
    members: Sequence[Member | Use],
    *,
    provider: str | None = None,
    model_id: str | None = None,
    statistics: Statistics | None = None,
    surroundings: Surroundings | None = None,
    denied: Denied = "refuse",
    lint: Lint = "error",
) -> LanguageModel:
    """Put members around a model, the first outermost where their stages do not say otherwise.

    provider, model_id: what every layer shows instead of the model's own, as in the AI SDK. statistics: keep a record
    of what each member did. surroundings: what members may look up at build. denied: what callers get for a refused
    call: "refuse" answers with the policy's words and the finish reason `content-filter`, "raise" raises
    `PolicyDenied`. lint: what an order that is plainly wrong leads to: "error", "warn" or "off". Without members the
    model itself is returned. ConfigError for whatever cannot work: the bare model is never used in place of a chain.
    """
    return wrap_placed(
        model,
        arrange(as_uses(members)),
        provider=provider,
        model_id=model_id,
        statistics=statistics,
        surroundings=surroundings,
        denied=denied,
        lint=lint,
    )


def wrap_placed(
    model: LanguageModel,
    placed: Sequence[Placed],
    *,
    left_out: Sequence[tuple[str, str]] = (),
    provider: str | None = None,
    model_id: str | None = None,
    statistics: Statistics | None = None,
    surroundings: Surroundings | None = None,
    denied: Denied = "refuse",
    lint: Lint = "error",
) -> LanguageModel:
    """`wrap_model` for members whose order is already settled."""
    _check_model(model)
    if denied not in get_args(Denied):
        raise ConfigError('denied is "refuse" or "raise"')
    surroundings = _guarded(surroundings or Surroundings())
    shown = (model.provider if provider is None else provider, model.model_id if model_id is None else model_id)
    excluded = {place.use.id: why for place in placed if (why := _excluded(place.use, *shown))}
    taking_part = tuple(place.anew() for place in placed if place.use.id not in excluded)
    if not placed and not left_out and provider is None and model_id is None and statistics is None:
        return model
    listeners: list[Listener] = []
    for place in taking_part:
        if iscoroutinefunction(place.member.bind):
            raise ConfigError(f"{place.use.id}.bind is not awaited: make it a sync method, and await in `open`")
        when = place.use.when if place.use.when is not None and place.use.when.per_call else None
        place.member.bind(BuildContext(place.use.id, surroundings, listeners, when))
    listening = frozenset(listener.id for listener in listeners)
    chain = Chain(model, taking_part, (*left_out, *excluded.items()), listening, denied, surroundings)
    report(find_faults(chain), lint)
    if surroundings.events is not None:
        listeners.append(Listener("events", partial(_tell_end, surroundings.events)))
    if statistics is not None:
        listeners.append(Listener("statistics", statistics.add))
    # Around a chain that has a scope, so that what is denied there is not taken for an answer on its way out.
    around_scope = isinstance(model, WrappedModel) and model.scoped
    scoped = around_scope or bool(listeners) or any(_needs_scope(place) for place in taking_part)
    # A turn finds what stands around it by the scopes that it runs in.
    scoped = scoped or is_turn(model)
    layers = _name_layers(chain, provider, model_id)
    return WrappedModel(chain, tuple(listeners), statistics, scoped=scoped, layers=layers)


def accounted(model: LanguageModel, context: CallContext) -> LanguageModel:
    """The model of a turn's step, such that its calls stand in the accounts of the scopes that the turn runs in."""
    if context.scope is None or is_turn(model):
        return model
    return model.with_scope() if isinstance(model, WrappedModel) else Tap(model, leaf=True, counts=False)


def _guarded(surroundings: Surroundings) -> Surroundings:
    """The same, with events that nobody who tells one is hurt by: what a listener raises changes nothing."""
    tell = surroundings.events
    if tell is None:
        return surroundings

    def told(event: Event) -> None:
        try:
            tell(event)
        except Exception as error:
            _log.warning("telling a %s failed: %s", type(event).__name__, type(error).__name__)

    return replace(surroundings, events=told)


def _excluded(use: Use, provider: str, model_id: str) -> str | None:
    """Why a member does not take part in a chain around this model, or None."""
    if use.mode == "off":
        return MODE_OFF
    return use.when.excludes(provider, model_id) if use.when is not None else None


def _tell_end(tell: Callable[[Event], None], outcome: Outcome) -> None:
    reason, error, context = outcome.finish_reason, outcome.error, outcome.context
    tell(
        CallEnded(
            outcome.request_id,
            outcome.kind,
            outcome.status,
            outcome.provider,
            outcome.model_id,
            outcome.answered_by,
            outcome.attempts,
            outcome.model_calls,
            outcome.usage,
            outcome.duration,
            None if reason is None else reason.unified,
            None if error is None else type(error).__name__,
            context.step,
            context.helper,
        )
    )


def _name_layers(chain: Chain, provider: str | None, model_id: str | None) -> list[Layer]:
    """What each layer shows, from the outside in, the model last. The override hooks are asked here and only here."""
    model = chain.model
    layer = Layer(
        model.provider if provider is None else provider,
        model.model_id if model_id is None else model_id,
        supported_urls(model),
    )
    layers = [layer]
    for place in reversed(chain.placed):
        member, inner = place.member, layer
        inner.do_generate, inner.do_stream = model.do_generate, model.do_stream
        layer = names_of(inner)
        if provider is None and overrides(member, "override_provider"):
            layer.provider = member.override_provider(inner)
        if model_id is None and overrides(member, "override_model_id"):
            layer.model_id = member.override_model_id(inner)
        if overrides(member, "override_supported_urls"):
            layer.supported_urls = member.override_supported_urls(inner)
        layers.append(layer)
    return layers[::-1]


def _compose(chain: Chain, layers: Sequence[Layer], *, scoped: bool, timed: bool) -> LanguageModel:
    model = chain.model
    if scoped:
        nested = isinstance(model, WrappedModel)
        bare = model.with_scope() if isinstance(model, WrappedModel) else model
        between = any(overrides(place.member, hook) for place in chain.placed for hook in _ON_THE_WAY)
        model = Tap(bare, leaf=not nested and not is_turn(bare), seen=not between)
    inner = names_of(layers[-1])
    inner.do_generate, inner.do_stream = model.do_generate, model.do_stream
    if timed:
        inner.do_generate = GENERATE.timed(inner.do_generate, len(chain.placed))
        inner.do_stream = STREAM.timed(inner.do_stream, len(chain.placed))
    for index in reversed(range(len(chain.placed))):
        place = chain.placed[index]
        layer = names_of(layers[index])
        watched = scoped and (place.member.may_answer or _uses(place.member, "CallOptions"))
        keeper = _keeper(place, chain.surroundings)
        rules = LayerRules(place.use.when, scoped, index if timed else None, keeper, watched)
        if scoped and _uses(place.member, "for_helper"):
            host = Host(inner, (), (), raises_denials=chain.denied == "raise", events=chain.surroundings.events)
            inner = with_helper_calls(inner, host)
        layer.do_generate = bind_call(GENERATE, place.member, inner, rules)
        layer.do_stream = bind_call(STREAM, place.member, inner, rules)
        inner = layer
    return inner


def _keeper(place: Placed, surroundings: Surroundings) -> Keeper | None:
    """The host's rules for a place; None where its member's failures are simply passed on."""
    rules, member = place.use.rules, place.member
    if member.handles_failures or not (rules.owned or rules.blocking or member.sees_denials):
        return None
    clock = surroundings.clock
    return Keeper(member.id, rules, clock, sees_denials=member.sees_denials, answers=member.may_answer)


def _check_model(model: object) -> None:
    if isinstance(model, type):
        raise ConfigError(f"{model.__name__} is a class: give an instance of it")
    missing = [
        name for name in ("provider", "model_id", "do_generate", "do_stream") if getattr(model, name, None) is None
    ]
    if missing:
        raise ConfigError(f"{type(model).__name__} is no language model: it has no {', '.join(missing)}")


def _needs_scope(place: Placed) -> bool:
    member = place.member
    if member.sees_denials or (place.use.rules.owned and not member.handles_failures):
        return True
    if member.needs_scope is not None:
        return member.needs_scope
    return _uses(member, "context") or _uses(member, "PolicyDenied")  # which it may raise by itself


def _uses(member: Middleware, name: str) -> bool:
    return any(_mentions(function.__code__, name) for function in _functions(member))


def _functions(member: Middleware) -> Iterator[FunctionType]:
    """A member's own code: its methods and properties, decorated ones too, and hooks that were set on the instance."""
    own = [vars(cls) for cls in type(member).__mro__ if cls not in (Middleware, object)]
    for found in (item for namespace in (*own, vars(member)) for item in namespace.values()):
        code = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
        while code is not None:
            if isinstance(code, FunctionType):
                yield code
            code = getattr(code, "__wrapped__", None)


def _mentions(code: CodeType, name: str) -> bool:
    return name in code.co_names or any(
        _mentions(constant, name) for constant in code.co_consts if isinstance(constant, CodeType)
    )
