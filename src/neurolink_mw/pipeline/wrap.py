"""The composition: a model and its members become one model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from inspect import iscoroutinefunction
from types import CodeType, FunctionType

from ..errors import ConfigError
from ..protocol import SPECIFICATION_VERSION, GenerateResult, LanguageModel, StreamResult, supported_urls
from .bind import GENERATE, STREAM, Call, Layer, bind_call, names_of
from .boundary import Boundary
from .build import BuildContext, Listener, Surroundings
from .middleware import Middleware, overrides
from .order import Placed, arrange
from .place import Use, as_uses
from .record import Statistics
from .scope import Host
from .tap import Tap

_ON_THE_WAY = ("transform_params", "wrap_generate", "wrap_stream")


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
        *("_layers", "_listeners", "_statistics", "chain", "do_generate", "do_stream"),
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
        layers: Sequence[Layer],
    ) -> None:
        self.chain = chain
        self.scoped = scoped
        self._listeners = listeners
        self._statistics = statistics
        self._layers = layers
        core = _compose(chain, layers, scoped=scoped, timed=statistics is not None)
        self.provider = core.provider
        self.model_id = core.model_id
        self.supported_urls = supported_urls(core)
        if scoped:
            boundary = Boundary(Host(core, tuple(listeners), chain.ids, chain.listening), timed=statistics is not None)
            self.do_generate, self.do_stream = boundary.do_generate, boundary.do_stream
        else:
            self.do_generate, self.do_stream = core.do_generate, core.do_stream

    def with_scope(self) -> WrappedModel:
        """The same chain with a scope of its own, so that a chain further out can account for what happens in it."""
        if self.scoped:
            return self
        return WrappedModel(self.chain, self._listeners, self._statistics, scoped=True, layers=self._layers)

    def seen_by(self, index: int) -> Layer:
        """The next model in, as the member at `index` sees it: its names and addresses, without the calls."""
        return names_of(self._layers[index + 1])

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
    shown = (model.provider if provider is None else provider, model.model_id if model_id is None else model_id)
    excluded = {
        place.use.id: why for place in placed if place.use.when is not None and (why := place.use.when.excludes(*shown))
    }
    taking_part = tuple(place for place in placed if place.use.id not in excluded)
    if not placed and not left_out and provider is None and model_id is None and statistics is None:
        return model
    listeners: list[Listener] = []
    for place in taking_part:
        if iscoroutinefunction(place.use.member.bind):
            raise ConfigError(f"{place.use.id}.bind is not awaited: make it a sync method, and await in `open`")
        when = place.use.when if place.use.when is not None and place.use.when.per_call else None
        place.use.member.bind(BuildContext(place.use.id, surroundings or Surroundings(), listeners, when))
    listening = frozenset(listener.id for listener in listeners)
    chain = Chain(model, taking_part, (*left_out, *excluded.items()), listening)
    if statistics is not None:
        listeners.append(Listener("statistics", statistics.add))
    scoped = bool(listeners) or any(_needs_scope(place.use.member) for place in taking_part)
    layers = _name_layers(chain, provider, model_id)
    return WrappedModel(chain, tuple(listeners), statistics, scoped=scoped, layers=layers)


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
        member, inner = place.use.member, layer
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
        between = any(overrides(place.use.member, hook) for place in chain.placed for hook in _ON_THE_WAY)
        model = Tap(bare, leaf=not nested, seen=not between)
    inner = names_of(layers[-1])
    inner.do_generate, inner.do_stream = model.do_generate, model.do_stream
    if timed:
        inner.do_generate = GENERATE.timed(inner.do_generate, len(chain.placed))
        inner.do_stream = STREAM.timed(inner.do_stream, len(chain.placed))
    for index in reversed(range(len(chain.placed))):
        use = chain.placed[index].use
        clock = index if timed else None
        layer = names_of(layers[index])
        layer.do_generate = bind_call(GENERATE, use.member, inner, when=use.when, scoped=scoped, clock=clock)
        layer.do_stream = bind_call(STREAM, use.member, inner, when=use.when, scoped=scoped, clock=clock)
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
    return any(_mentions(function.__code__, "context") for function in _functions(member))


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
