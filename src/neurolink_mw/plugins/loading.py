"""Loading one plugin: its hooks are checked, what it registers is taken over whole, or nothing of it stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, isasyncgenfunction, iscoroutinefunction, isgeneratorfunction, signature
from typing import Any

from ..errors import NeurolinkError, PluginError
from ..pipeline.wording import did_you_mean
from .hookspecs import API_VERSION
from .registry import Offer, PluginInfo, Registry


def load(registry: Registry, plugin: object, info: PluginInfo) -> PluginInfo:
    """Register a plugin with all it offers, or leave the registry as it was and raise PluginError."""
    name, manager = info.name, registry.manager
    if isinstance(plugin, type):
        raise PluginError(f"plugin {name!r} is the class {plugin.__name__}: give an instance, {plugin.__name__}()")
    required = getattr(plugin, "requires_api", API_VERSION)
    if required != API_VERSION:
        raise PluginError(f"plugin {name!r} requires version {required!r} of the plugin API, and this is {API_VERSION}")
    known = {one: tuple(caller.spec.argnames) for one, caller in _callers(manager).items() if caller.spec is not None}
    _check_hooks(manager, plugin, name, known)
    if manager.get_plugin(name) is not None:
        raise PluginError(f"two plugins have the name {name!r}: rename one, or disable one with NEUROLINK_MW_DISABLE")
    offer = Offer(name)
    try:
        manager.register(plugin, name)
        for hook, add in (
            ("register_middlewares", offer.add_middleware),
            ("register_providers", offer.add_provider),
            ("register_stores", offer.add_store),
        ):
            for impl in _callers(manager)[hook].get_hookimpls():
                if impl.plugin is plugin:
                    impl.function(*(add for _ in impl.argnames))
        registry.accept(offer)
    except NeurolinkError as error:
        _forget(manager, name)
        raise PluginError(str(error)) from error
    except Exception as error:
        _forget(manager, name)
        raise PluginError(f"plugin {name!r} failed while it registered: {type(error).__name__}: {error}") from error
    return replace(
        info, middlewares=tuple(offer.middlewares), providers=tuple(offer.providers), stores=tuple(offer.stores)
    )


def _callers(manager: Any) -> dict[str, Any]:
    return {name: caller for name, caller in vars(manager.hook).items() if not name.startswith("_")}


def _forget(manager: Any, name: str) -> None:
    if manager.get_plugin(name) is not None:
        manager.unregister(name=name)


def _check_hooks(manager: Any, plugin: object, name: str, known: Mapping[str, Sequence[str]]) -> None:
    """A hook that would never be called, or not as its author means it, is refused: nobody would notice."""
    found = False
    for attribute in dir(plugin):
        marked = manager.parse_hookimpl_opts(plugin, attribute)
        if marked is None:
            if attribute in known and callable(getattr(plugin, attribute)):
                raise PluginError(f"plugin {name!r} has {attribute} without @hookimpl, so it would never be called")
            continue
        found = True
        hook = marked.get("specname") or attribute
        if hook not in known:
            raise PluginError(f"plugin {name!r}: there is no hook {hook!r}{did_you_mean(hook, sorted(known))}")
        _check_function(getattr(plugin, attribute), hook, name, known[hook])
    if not found:
        raise PluginError(f"plugin {name!r} has no hook: mark its functions with @hookimpl")


def _check_function(function: Any, hook: str, name: str, given: Sequence[str]) -> None:
    if isgeneratorfunction(function) or isasyncgenfunction(function) or iscoroutinefunction(function):
        raise PluginError(f"plugin {name!r}: {hook} is a plain function, neither async nor with a `yield`")
    asked = [
        parameter.name
        for parameter in signature(function).parameters.values()
        if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD and parameter.default is Parameter.empty
    ]
    if not set(asked) <= set(given):
        raise PluginError(f"plugin {name!r}: {hook} is called as {hook}({', '.join(given)}), not ({', '.join(asked)})")
