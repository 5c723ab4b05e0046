"""Everything a plugin can do, on one screen.

A plugin is a module or an object with functions marked `@hookimpl`, named by an entry point of the group
`neurolink_mw`. Middlewares, providers and stores that it registers are available, not active: a configuration makes
them so. The other hooks act as soon as the plugin is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

import pluggy

from ..events import Event
from ..pipeline import Member
from ..protocol import DecisionModel, LanguageModel

if TYPE_CHECKING:
    import typer

PROJECT = "neurolink_mw"
API_VERSION = 1
"""The version of these hooks. A plugin may say `requires_api = 1`; one that needs a newer one is refused."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

ModelFactory: TypeAlias = Callable[..., LanguageModel | DecisionModel]
"""`factory(model_id, **config)`: a model; `config` is what stands beside the name in the configuration."""

StoreFactory: TypeAlias = Callable[[str], object]
"""`factory(url)`: a store."""


class RegisterProvider(Protocol):
    """`register(name, factory)`, for models named `name:model-id`."""

    def __call__(self, name: str, factory: ModelFactory) -> None: ...


class RegisterStore(Protocol):
    """`register(scheme, factory)`, for stores addressed as `scheme:...`."""

    def __call__(self, scheme: str, factory: StoreFactory) -> None: ...


class Hooks:
    """The hooks. A plugin has any of them."""

    @hookspec
    def register_middlewares(self, register: Callable[[type[Member]], None]) -> None:
        """Call `register(cls)` for each middleware class and each role class."""

    @hookspec
    def register_providers(self, register: RegisterProvider) -> None:
        """Call `register(name, factory)`; models are then named `name:model-id`."""

    @hookspec
    def register_stores(self, register: RegisterStore) -> None:
        """Call `register(scheme, factory)`; stores are then addressed as `scheme:...`."""

    @hookspec
    def register_commands(self, app: typer.Typer) -> None:
        """Add commands to `neurolink-mw`."""

    @hookspec
    def pipeline_built(self, pipeline: object) -> None:
        """Look at a pipeline that was just built; raise ConfigError or PluginError to refuse it."""

    @hookspec
    def on_event(self, event: Event) -> None:
        """Get the typed, frozen events of `neurolink_mw.events`. What this raises is logged and changes nothing."""
