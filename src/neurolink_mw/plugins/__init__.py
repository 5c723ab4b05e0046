"""Plugins: what they can do (`hookspecs`), how they are found (`discovery`) and loaded
(`loading`), what they made available (`registry`).

pluggy carries discovery and notification. No call to a model and no part of a stream ever goes through it.
"""

from .discovery import ALLOW_VARIABLE, DISABLE_VARIABLE, PluginWarning, default_registry, load_plugins, with_plugins
from .hookspecs import API_VERSION, hookimpl
from .registry import Deferred, PluginInfo, Registry

__all__ = [
    "ALLOW_VARIABLE",
    "API_VERSION",
    "DISABLE_VARIABLE",
    "Deferred",
    "PluginInfo",
    "PluginWarning",
    "Registry",
    "default_registry",
    "hookimpl",
    "load_plugins",
    "with_plugins",
]
