"""The composition: a model and its members become one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType

from ..errors import ConfigError
from ..protocol import SPECIFICATION_VERSION, GenerateResult, LanguageModel, StreamResult, supported_urls
from .bind import GENERATE, STREAM, Call, Layer, bind_call
from .boundary import Boundary, Tap
from .build import BuildContext, Listener, Surroundings
from .middleware import Middleware, overrides
from .order import Placed, arrange
from .place import Use, as_uses
from .record import Statistics


@dataclass(frozen=True)
class Chain:
    """What a wrapped model is made of, from the outside in; `left_out` says who does not take part, and why;
    `listening`, who is told outcomes."""

    model: LanguageModel
    placed: tuple[Placed, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    listening: frozenset[str] = frozenset()

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(place.use.id for place in self.placed)


class WrappedModel:
    """A model with its chain around it. It is a model like any other, and shows its chain to checks."""

    __slots__ = (
        *("_listeners", "_shown_as", "_statistics", "chain", "do_generate", "do_stream"),
        *("model_id", "provider", "scoped", "supported_urls"),
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
        provider: str | None,
        model_id: str | None,
    ) -> None:
        self.chain = chain
        self.scoped = scoped
        self._listeners = listeners
        self._statistics = statistics
        self._shown_as = (provider, model_id)
        core = _compose(chain, scoped=scoped, timed=statistics is not None, provider=provider, model_id=model_id)
        self.provider = core.provider
        self.model_id = core.model_id
        self.supported_urls = supported_urls(core)
        if scoped:
            boundary = Boundary(core, listeners, chain.ids, timed=statistics is not None)
            self.do_generate, self.do_stream = boundary.do_generate, boundary.do_stream
        else:
            self.do_generate, self.do_stream = core.do_generate, core.do_stream

    def with_scope(self) -> WrappedModel:
        """The same chain with a scope of its own, so that a chain further out can account for what happens in it."""
        if self.scoped:
            return self
        provider, model_id = self._shown_as
        return WrappedModel(
            self.chain, self._listeners, self._statistics, scoped=True, provider=provider, model_id=model_id
        )

    def __repr__(self) -> str:
        return f"WrappedModel({self.provider}:{self.model_id}, [{', '.join(self.chain.ids)}])"


def wrap_model(
    model: LanguageModel,
    members: Sequence[Middleware | Use],
    *,
    provider: str | None = None,
    model_id: str | None = None,
    statistics: Statistics | None = None,
    surroundings: Surroundings | None = None,
) -> LanguageModel:
    """Put members around a model, the first outermost where their stages do not say otherwise.

    provider, model_id: what every layer shows instead of the model's own, as in the AI SDK. statistics: keep a record
    of what each member did. surroundings: what members may look up at build. Without members the model itself is
    returned. ConfigError for whatever cannot work: the bare model is never used in place of a chain.
    """
    return wrap_placed(
        model,
        arrange(as_uses(members)),
        provider=provider,
        model_id=model_id,
        statistics=statistics,
        surroundings=surroundings,
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
) -> LanguageModel:
    """`wrap_model` for members whose order is already settled."""
    _check_model(model)
    excluded = {
        place.use.id: why
        for place in placed
        if place.use.when is not None and (why := place.use.when.excludes(model.provider, model.model_id))
    }
    taking_part = tuple(place for place in placed if place.use.id not in excluded)
    if not taking_part and provider is None and model_id is None and statistics is None:
        return model
    listeners: list[Listener] = []
    for place in taking_part:
        place.use.member.bind(BuildContext(place.use.id, surroundings or Surroundings(), listeners))
    listening = frozenset(listener.id for listener in listeners)
    chain = Chain(model, taking_part, (*left_out, *excluded.items()), listening)
    if statistics is not None:
        listeners.append(Listener("statistics", statistics.add))
    scoped = bool(listeners) or any(_needs_scope(place.use.member) for place in taking_part)
    return WrappedModel(chain, listeners, statistics, scoped=scoped, provider=provider, model_id=model_id)


def _compose(chain: Chain, *, scoped: bool, timed: bool, provider: str | None, model_id: str | None) -> LanguageModel:
    model = chain.model
    if scoped:
        nested = isinstance(model, WrappedModel)
        model = Tap(model.with_scope() if isinstance(model, WrappedModel) else model, leaf=not nested)
    bottom = Layer(provider or chain.model.provider, model_id or chain.model.model_id, supported_urls(chain.model))
    bottom.do_generate, bottom.do_stream = model.do_generate, model.do_stream
    if timed:
        bottom.do_generate = GENERATE.timed(bottom.do_generate, len(chain.placed))
        bottom.do_stream = STREAM.timed(bottom.do_stream, len(chain.placed))
    inner: LanguageModel = bottom
    for index in reversed(range(len(chain.placed))):
        use = chain.placed[index].use
        member, clock = use.member, index if timed else None
        layer = Layer(
            provider or (member.override_provider(inner) if overrides(member, "override_provider") else inner.provider),
            model_id or (member.override_model_id(inner) if overrides(member, "override_model_id") else inner.model_id),
            member.override_supported_urls(inner)
            if overrides(member, "override_supported_urls")
            else supported_urls(inner),
        )
        layer.do_generate = bind_call(GENERATE, member, inner, when=use.when, scoped=scoped, clock=clock)
        layer.do_stream = bind_call(STREAM, member, inner, when=use.when, scoped=scoped, clock=clock)
        inner = layer
    return inner


def _check_model(model: object) -> None:
    if isinstance(model, type):
        raise ConfigError(f"{model.__name__} is a class: give an instance of it")
    missing = [
        name for name in ("provider", "model_id", "do_generate", "do_stream") if getattr(model, name, None) is None
    ]
    if missing:
        raise ConfigError(f"{type(model).__name__} is no language model: it has no {', '.join(missing)}")


def _needs_scope(member: Middleware) -> bool:
    if member.needs_scope is not None:
        return member.needs_scope
    functions = (
        function
        for cls in type(member).__mro__
        if cls not in (Middleware, object)
        for function in vars(cls).values()
        if isinstance(function, FunctionType)
    )
    return any(_mentions(function.__code__, "context") for function in functions)


def _mentions(code: CodeType, name: str) -> bool:
    return name in code.co_names or any(
        _mentions(constant, name) for constant in code.co_consts if isinstance(constant, CodeType)
    )
