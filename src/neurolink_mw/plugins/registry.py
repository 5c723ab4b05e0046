"""What the loaded plugins made available: middlewares, providers and stores by name."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

import pluggy

from ..errors import ConfigError, NeurolinkError, PluginError
from ..events import Event
from ..pipeline import Member
from ..pipeline.wording import did_you_mean, without_texts
from ..protocol import DecisionModel, LanguageModel
from .hookspecs import PROJECT, Hooks, ModelFactory, StoreFactory

T = TypeVar("T")
Observer: TypeAlias = tuple[str, Callable[..., object], bool]
"""A plugin's name, its `on_event`, and whether that takes the event."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Deferred:
    """A middleware class that is imported when it is first used. `target`: `module:Class`; `id`: the class's id."""

    id: str
    target: str

    def load(self) -> object:
        module, _, name = self.target.partition(":")
        loaded: object = getattr(importlib.import_module(module), name)
        return loaded


@dataclass(frozen=True)
class Registered(Generic[T]):
    """Something a plugin registered, with the plugin's name."""

    value: T
    plugin: str


@dataclass(frozen=True)
class PluginInfo:
    """A plugin that was found. error: why it could not be loaded, in one sentence."""

    name: str
    distribution: str | None = None
    version: str | None = None
    disabled: bool = False
    error: str | None = None
    middlewares: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        return "failed" if self.error else "disabled" if self.disabled else "loaded"


@dataclass
class Offer:
    """What one plugin registers. It is taken over whole, or not at all if the plugin fails halfway."""

    plugin: str
    middlewares: dict[str, type[Member] | Deferred] = field(default_factory=dict)
    providers: dict[str, ModelFactory] = field(default_factory=dict)
    stores: dict[str, StoreFactory] = field(default_factory=dict)

    def add_middleware(self, cls: object) -> None:
        if isinstance(cls, Deferred) or (isinstance(cls, type) and issubclass(cls, Member)):
            self._add("middleware", self.middlewares, cls.id, cls)
            return
        what = cls.__name__ if isinstance(cls, type) else type(cls).__name__
        raise PluginError(f"plugin {self.plugin!r} registered {what}, which is neither a Middleware nor a role")

    def add_provider(self, name: str, factory: ModelFactory) -> None:
        self._add("provider", self.providers, name, factory)

    def add_store(self, scheme: str, factory: StoreFactory) -> None:
        self._add("store", self.stores, scheme, factory)

    def _add(self, kind: str, mine: dict[str, T], name: str, value: T) -> None:
        if not isinstance(name, str) or not name or ":" in name:
            raise PluginError(f"plugin {self.plugin!r} registered a {kind} under {name!r}: a name has no colon")
        if not callable(value) and not isinstance(value, Deferred):
            raise PluginError(f"plugin {self.plugin!r} registered the {kind} {name!r} without a factory to call")
        if name in mine:
            raise PluginError(f"plugin {self.plugin!r} registered the {kind} {name!r} twice")
        mine[name] = value


class Registry:
    """The plugins of a process, or of a test. Looked up by name; an unknown name is a ConfigError."""

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager(PROJECT)
        self.manager.add_hookspecs(Hooks)
        self.plugins: list[PluginInfo] = []
        self._middlewares: dict[str, Registered[type[Member] | Deferred]] = {}
        self._providers: dict[str, Registered[ModelFactory]] = {}
        self._stores: dict[str, Registered[StoreFactory]] = {}
        self._observers: tuple[Observer, ...] = ()

    def copy(self) -> Registry:
        """A registry with the same plugins, to which more can be added."""
        copy = Registry()
        for name, plugin in self.manager.list_name_plugin():
            copy.manager.register(plugin, name)
        copy.plugins = list(self.plugins)
        copy._middlewares = dict(self._middlewares)
        copy._providers = dict(self._providers)
        copy._stores = dict(self._stores)
        copy.resolve_observers()
        return copy

    def has_plugin(self, name: str) -> bool:
        """Whether a plugin was loaded under this name."""
        return self.manager.has_plugin(name)

    def accept(self, offer: Offer) -> None:
        """Take over what a plugin registered. PluginError where another one has the name already."""
        _refuse_taken("middleware", self._middlewares, offer.middlewares, offer.plugin)
        _refuse_taken("provider", self._providers, offer.providers, offer.plugin)
        _refuse_taken("store", self._stores, offer.stores, offer.plugin)
        self._middlewares |= {id: Registered(cls, offer.plugin) for id, cls in offer.middlewares.items()}
        self._providers |= {name: Registered(factory, offer.plugin) for name, factory in offer.providers.items()}
        self._stores |= {scheme: Registered(factory, offer.plugin) for scheme, factory in offer.stores.items()}

    def resolve_observers(self) -> None:
        """Collect who listens to events, once: telling an event is then a plain loop and never goes through pluggy."""
        impls = self.manager.hook.on_event.get_hookimpls()
        self._observers = tuple((impl.plugin_name, impl.function, bool(impl.argnames)) for impl in reversed(impls))

    @property
    def listens(self) -> bool:
        """Whether any plugin wants to be told events."""
        return bool(self._observers)

    @property
    def middleware_ids(self) -> tuple[str, ...]:
        return tuple(sorted(self._middlewares))

    @property
    def provider_names(self) -> tuple[str, ...]:
        return tuple(sorted(self._providers))

    def middleware(self, id: str) -> type[Member]:
        """The class of a middleware, imported now if it was not yet."""
        found = self._find("middleware", self._middlewares, id)
        cls = _imported(found.value, found.plugin) if isinstance(found.value, Deferred) else found.value
        if cls.id != id:
            raise PluginError(f"plugin {found.plugin!r} registered {cls.__name__} as {id!r}, and its id is {cls.id!r}")
        return cls

    def model(self, name: str, **config: object) -> LanguageModel:
        """The model of a name such as `openai-compatible:ID`. ConfigError for a bad name or bad config."""
        provider, colon, model_id = name.partition(":")
        if not colon or not model_id:
            known = ", ".join(self.provider_names)
            raise ConfigError(f"a model is named provider:model-id, not {name!r} (providers: {known})")
        return self.make_model(provider, model_id, **config)

    def provider(self, name: str) -> ModelFactory:
        """What makes the models of a provider."""
        return self._find("provider", self._providers, name).value

    def make_model(self, provider: str, model_id: str, **config: object) -> LanguageModel:
        """The model of a provider. ConfigError where the provider is unknown, or does not take this configuration."""
        factory = self.provider(provider)
        try:
            model = factory(model_id, **config)
        except NeurolinkError:
            raise
        except TypeError as error:
            said = without_texts(str(error), config)
            raise ConfigError(f"the provider {provider!r} does not take this configuration: {said}") from None
        except Exception as error:  # a plugin's own code: its message might quote a secret of the configuration
            raise PluginError(f"the provider {provider!r} failed with {type(error).__name__}") from None
        if isinstance(model, DecisionModel) and not isinstance(model, LanguageModel):
            raise ConfigError(f"{provider}:{model_id} is a decision model, and a language model is needed here")
        if not isinstance(model, LanguageModel):
            raise PluginError(f"the provider {provider!r} returned {type(model).__name__}, which is no model")
        return model

    def store(self, url: str) -> object:
        """The store of an address such as `memory:`."""
        scheme, colon, _ = url.partition(":")
        if not colon:
            raise ConfigError("a store's address begins with its scheme and a colon, such as 'memory:'")
        return self._find("store", self._stores, scheme).value(url)

    def emit(self, event: Event) -> None:
        """Tell an event to the plugins that listen."""
        for name, observe, wants_event in self._observers:
            try:
                observe(event) if wants_event else observe()
            except Exception as error:
                _log.warning("plugin %s failed on an event: %s", name, type(error).__name__)

    def announce(self, pipeline: object) -> None:
        """Show a pipeline to the plugins. One that refuses it raises ConfigError or PluginError; anything else that
        it raises is a PluginError with its name."""
        for impl in reversed(self.manager.hook.pipeline_built.get_hookimpls()):
            try:
                impl.function(*(pipeline for _ in impl.argnames))
            except NeurolinkError:
                raise
            except Exception as error:
                raise PluginError(
                    f"plugin {impl.plugin_name!r} failed while it looked at a pipeline: {type(error).__name__}"
                ) from error

    def _find(self, kind: str, known: dict[str, Registered[T]], name: str) -> Registered[T]:
        found = known.get(name)
        if found is None:
            failed = [info.name for info in self.plugins if info.error]
            hint = f"; these plugins could not be loaded: {', '.join(failed)}" if failed else ""
            raise ConfigError(f"there is no {kind} {name!r}{did_you_mean(name, sorted(known))}{hint}")
        return found


def _imported(deferred: Deferred, plugin: str) -> type[Member]:
    try:
        cls = deferred.load()
    except Exception as error:
        raise PluginError(
            f"plugin {plugin!r}: the middleware {deferred.id!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not (isinstance(cls, type) and issubclass(cls, Member)):
        raise PluginError(f"plugin {plugin!r} registered {deferred.target}, which is neither a Middleware nor a role")
    return cls


def _refuse_taken(kind: str, taken: Mapping[str, Registered[T]], offered: Iterable[str], plugin: str) -> None:
    for name in offered:
        if name in taken:
            raise PluginError(
                f"the {kind} {name!r} is registered by plugin {taken[name].plugin!r} and by {plugin!r}: "
                f"rename one, or disable a plugin with NEUROLINK_MW_DISABLE"
            )
