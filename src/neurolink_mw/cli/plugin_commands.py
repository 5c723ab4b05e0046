"""Commands that plugins add. One that fails, or takes a name that is taken, adds nothing and is told of."""

from __future__ import annotations

from collections.abc import Iterator

import typer

from ..plugins import Registry
from .output import notes


def add_plugin_commands(app: typer.Typer, registry: Registry) -> None:
    """Let each plugin add to the command."""
    for impl in reversed(registry.manager.hook.register_commands.get_hookimpls()):
        theirs = typer.Typer()
        try:
            impl.function(*(theirs for _ in impl.argnames))
        except Exception as error:
            _leave_out(impl.plugin_name, f"{type(error).__name__}: {error}")
            continue
        taken = sorted(set(_names(app)) & set(_names(theirs)))
        if taken:
            _leave_out(impl.plugin_name, f"there is a command {taken[0]!r} already")
            continue
        app.registered_commands += theirs.registered_commands
        app.registered_groups += theirs.registered_groups


def _leave_out(plugin: str, why: str) -> None:
    notes().print(f"warning: the commands of plugin {plugin!r} are left out: {why}", markup=False)


def _names(app: typer.Typer) -> Iterator[str]:
    for command in app.registered_commands:
        name = command.name or str(getattr(command.callback, "__name__", ""))
        yield name.lower().replace("_", "-")
    for group in app.registered_groups:
        if isinstance(group.name, str):
            yield group.name
