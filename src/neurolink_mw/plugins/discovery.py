"""Finding plugins: entry points of installed distributions, and those that code or a configuration names.

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

from ..errors import PluginError
from .hookspecs import PROJECT
from .loading import load
from .registry import PluginInfo, Registry

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
    _load_given(registry, plugins)
    return registry


def with_plugins(registry: Registry, plugins: Sequence[object]) -> Registry:
    """A registry with more plugins; the one given stays as it is. Those that it has already are left out."""
    missing = [plugin for plugin in plugins if not (isinstance(plugin, str) and registry.has_plugin(plugin))]
    if not missing:
        return registry
    extended = registry.copy()
    _load_given(extended, missing)
    return extended


def default_registry() -> Registry:
    """The registry of the installed plugins, loaded once for each setting of the two variables."""
    return _cached_registry(os.environ.get(ALLOW_VARIABLE), os.environ.get(DISABLE_VARIABLE))


@lru_cache(maxsize=8)
def _cached_registry(allowed: str | None, disabled: str | None) -> Registry:
    return load_plugins()


def _load_given(registry: Registry, plugins: Sequence[object]) -> None:
    for plugin in plugins:
        made = _import(plugin) if isinstance(plugin, str) else plugin
        if any(made is one for one in registry.manager.get_plugins()):
            continue  # installed and named as well: it is the same plugin
        name = plugin if isinstance(plugin, str) else _name_of(plugin)
        registry.plugins.append(load(registry, made, PluginInfo(name)))
    registry.resolve_observers()


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
        registry.plugins.append(load(registry, _load_point(point), info))
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
    except (Exception, SystemExit) as error:
        raise _not_importable(point.name, error) from error
    return loaded


def _import(name: str) -> object:
    module, _, attribute = name.partition(":")
    try:
        found: object = importlib.import_module(module)
        for step in attribute.split(".") if attribute else ():
            found = getattr(found, step)
    except (Exception, SystemExit) as error:
        raise _not_importable(name, error) from error
    return found


def _not_importable(name: str, error: BaseException) -> PluginError:
    said = " ".join(str(error).split())  # a sentence, whatever the plugin wrote
    return PluginError(f"plugin {name!r} cannot be imported: {type(error).__name__}{f': {said}' if said else ''}")


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
    name: str | None = point.dist.name if point.dist else None  # None too where its metadata are broken
    return _canonical(name) if name else None


def _is_own(point: EntryPoint) -> bool:
    return point.name == "builtin" and point.value == f"{PROJECT}.builtin"


def _name_of(plugin: object) -> str:
    named = getattr(plugin, "__name__", None)
    return named if isinstance(named, str) else type(plugin).__name__
