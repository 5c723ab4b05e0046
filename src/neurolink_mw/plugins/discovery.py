"""Finding and loading plugins: entry points of installed distributions, and those that code or a configuration names.

A plugin that cannot be loaded is fatal where somebody asked for it (in code, in a configuration, in the allow-list),
and else listed with its fault and warned about once.
"""

from __future__ import annotations

import importlib
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ..errors import NeurolinkError, PluginError
from .hookspecs import API_VERSION, PROJECT
from .registry import Offer, PluginInfo, Registry

ALLOW_VARIABLE = "NEUROLINK_MW_PLUGINS"
"""Distributions whose plugins may be loaded, separated by commas. The library's own are never hidden."""
DISABLE_VARIABLE = "NEUROLINK_MW_DISABLE"
"""Plugins or distributions that are not loaded, separated by commas."""

_OWN_DISTRIBUTION = "neurolink-mw"
_warned: set[str] = set()


class PluginWarning(UserWarning):
    """A plugin that nobody asked for could not be loaded."""


def load_plugins(
    plugins: Sequence[object] = (),
    *,
    environ: Mapping[str, str] | None = None,
    found: Iterable[EntryPoint] | None = None,
) -> Registry:
    """A registry of the installed plugins and of `plugins`: objects, or dotted names `package.module[:object]`.

    environ: where the two variables are read; the process's by default. found: entry points to load instead of the
    installed ones. PluginError for what was asked for and cannot be loaded.
    """
    registry = Registry()
    environ = os.environ if environ is None else environ
    allowed = _names(environ.get(ALLOW_VARIABLE)) if ALLOW_VARIABLE in environ else None
    disabled = _names(environ.get(DISABLE_VARIABLE))
    points = list(entry_points(group=PROJECT)) if found is None else list(found)
    if allowed is not None:
        _refuse_absent(allowed, points)
    for point in sorted(points, key=lambda one: (not _is_own(one), one.name)):
        _load_entry_point(registry, point, allowed, disabled)
    for plugin in plugins:
        name = plugin if isinstance(plugin, str) else _name_of(plugin)
        info = PluginInfo(name)
        registry.plugins.append(_load(registry, _import(plugin) if isinstance(plugin, str) else plugin, info))
    registry.resolve_observers()
    return registry


def default_registry() -> Registry:
    """The registry of the installed plugins, loaded once for each setting of the two variables."""
    return _cached_registry(os.environ.get(ALLOW_VARIABLE), os.environ.get(DISABLE_VARIABLE))


@lru_cache(maxsize=8)
def _cached_registry(allowed: str | None, disabled: str | None) -> Registry:
    return load_plugins()


def _load_entry_point(registry: Registry, point: EntryPoint, allowed: set[str] | None, disabled: set[str]) -> None:
    distribution = _distribution(point)
    info = PluginInfo(point.name, distribution, point.dist.version if point.dist else None)
    asked_for = allowed is not None and distribution in allowed
    if allowed is not None and not asked_for and not _is_own(point):
        registry.plugins.append(replace(info, disabled=True))
        return
    if not _is_own(point) and {_canonical(point.name), distribution} & disabled:
        registry.plugins.append(replace(info, disabled=True))
        return
    try:
        registry.plugins.append(_load(registry, _load_point(point), info))
    except PluginError as error:
        if asked_for or _is_own(point):
            raise
        registry.plugins.append(replace(info, error=str(error)))
        if str(error) not in _warned:
            _warned.add(str(error))
            warnings.warn(f"{error}; it is left out", PluginWarning, stacklevel=4)


def _load_point(point: EntryPoint) -> object:
    try:
        loaded: object = point.load()
    except Exception as error:
        raise PluginError(f"plugin {point.name!r} cannot be imported: {type(error).__name__}: {error}") from error
    return loaded


def _import(name: str) -> object:
    module, _, attribute = name.partition(":")
    try:
        found: object = importlib.import_module(module)
        for step in attribute.split(".") if attribute else ():
            found = getattr(found, step)
    except Exception as error:
        raise PluginError(f"plugin {name!r} cannot be imported: {type(error).__name__}: {error}") from error
    return found


def _load(registry: Registry, plugin: object, info: PluginInfo) -> PluginInfo:
    """Register a plugin with all it offers, or leave the registry as it was."""
    name = info.name
    if isinstance(plugin, type):
        raise PluginError(f"plugin {name!r} is the class {plugin.__name__}: give an instance, {plugin.__name__}()")
    required = getattr(plugin, "requires_api", API_VERSION)
    if required != API_VERSION:
        raise PluginError(f"plugin {name!r} requires version {required!r} of the plugin API, and this is {API_VERSION}")
    manager = registry.manager
    try:
        manager.register(plugin, name)
    except Exception as error:  # pluggy's own validation, or a name that is taken
        raise PluginError(f"plugin {name!r} cannot be registered: {_first_line(error)}") from error
    try:
        _refuse_unknown_hooks(manager, plugin, name)
        offer = Offer(name)
        for hook, add in (
            ("register_middlewares", offer.add_middleware),
            ("register_providers", offer.add_provider),
            ("register_stores", offer.add_store),
        ):
            _call_only(manager, hook, plugin, register=add)
        registry.accept(offer)
    except NeurolinkError as error:
        manager.unregister(plugin)
        raise PluginError(str(error)) from error
    except Exception as error:
        manager.unregister(plugin)
        raise PluginError(f"plugin {name!r} failed while it registered: {type(error).__name__}: {error}") from error
    return replace(
        info, middlewares=tuple(offer.middlewares), providers=tuple(offer.providers), stores=tuple(offer.stores)
    )


def _call_only(manager: Any, hook: str, plugin: object, **arguments: object) -> None:
    others = [other for other in manager.get_plugins() if other is not plugin]
    manager.subset_hook_caller(hook, others)(**arguments)


def _refuse_unknown_hooks(manager: Any, plugin: object, name: str) -> None:
    known = {hook for hook in dir(manager.hook) if not hook.startswith("_")}
    for attribute in dir(plugin):
        if manager.parse_hookimpl_opts(plugin, attribute) is not None:
            hook = getattr(manager.hook, attribute, None)
            if hook is None or hook.spec is None:
                specified = sorted(one for one in known if getattr(manager.hook, one).spec is not None)
                raise PluginError(f"plugin {name!r} has the hook {attribute!r}, and there are {', '.join(specified)}")


def _refuse_absent(allowed: set[str], points: Sequence[EntryPoint]) -> None:
    present = {_distribution(point) for point in points}
    absent = sorted(allowed - present - {_OWN_DISTRIBUTION})
    if absent:
        raise PluginError(
            f"{ALLOW_VARIABLE} names {', '.join(absent)}, and no such distribution with a plugin is installed"
        )


def _names(value: str | None) -> set[str]:
    return {_canonical(name) for name in (value or "").split(",") if name.strip()}


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _distribution(point: EntryPoint) -> str | None:
    return _canonical(point.dist.name) if point.dist else None


def _is_own(point: EntryPoint) -> bool:
    return point.name == "builtin" and point.value == f"{PROJECT}.builtin"


def _name_of(plugin: object) -> str:
    named = getattr(plugin, "__name__", None)
    return named if isinstance(named, str) else type(plugin).__name__


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]
