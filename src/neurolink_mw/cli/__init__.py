"""The `neurolink-mw` command: its names and options. What each does is in the module of its name.

Answers go to standard output, everything else to standard error. Exit codes: 0 ok, 1 the output cannot be written,
2 bad input or configuration, 3 denied, 4 provider failure, 130 interrupted.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from ..plugins import default_registry
from . import inspect as _inspect
from .exits import INTERRUPTED, exits, leave_threads_behind
from .plugin_commands import add_plugin_commands

Config = Annotated[Path, typer.Option("--config", "-c", help="The pipeline: a TOML, YAML or JSON file.")]
Json = Annotated[bool, typer.Option("--json", help="Print machine-readable output only.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("neurolink-mw"))
        raise typer.Exit


def make_app() -> typer.Typer:
    """The command with its own subcommands and those of the plugins."""
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        help="Middleware pipelines around calls to language models.",
    )

    @app.callback()
    def options(
        show_version: Annotated[
            bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
        ] = False,
    ) -> None:
        """Middleware pipelines around calls to language models."""

    @app.command()
    def demo() -> None:
        """See a pipeline work: a recorded conversation over real HTTP, with no key and no network."""
        from .demo import demo as run_demo

        run_demo()

    @app.command()
    def run(
        config: Config,
        prompt: Annotated[str | None, typer.Argument(help="The prompt; - or nothing reads standard input.")] = None,
        tools: Annotated[
            list[str] | None,
            typer.Option(
                metavar="MODULE:NAME",
                help="A typed function, a Tool or a list of them that the model may call. Can be given several times.",
            ),
        ] = None,
        max_steps: Annotated[
            int | None, typer.Option(help="With --tools: how often the model is asked at most.")
        ] = None,
        stream: Annotated[bool, typer.Option(help="Print the answer as it arrives.")] = True,
        json: Json = False,
    ) -> None:
        """Send one prompt through a pipeline, and show what each middleware did."""
        from .run import run as run_prompt

        run_prompt(config, prompt, tools=tools or (), max_steps=max_steps, stream=stream, as_json=json)

    @app.command()
    def explain(config: Config, json: Json = False) -> None:
        """Show who stands where in a pipeline, and why."""
        _inspect.explain(config, as_json=json)

    @app.command()
    def check(config: Config, json: Json = False) -> None:
        """Say everything that is wrong with a configuration."""
        _inspect.check(config, as_json=json)

    @app.command()
    def plugins(json: Json = False) -> None:
        """List the plugins that were found, and what each makes available."""
        _inspect.plugins(as_json=json)

    @app.command()
    def schema(
        output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file instead.")] = None,
    ) -> None:
        """Print the JSON Schema of a configuration, for editors."""
        _inspect.schema(output)

    @app.command()
    def new_plugin(
        name: Annotated[str, typer.Argument(help="The name of the distribution, such as acme-guard.")],
        directory: Annotated[
            Path, typer.Option("--directory", "-d", help="Where to put its folder; here unless given.")
        ] = Path(),
    ) -> None:
        """Write a plugin to start from: installable, typed, with its own tests."""
        from .new_plugin import new_plugin as write_plugin

        write_plugin(name, directory)

    add_plugin_commands(app, default_registry())
    return app


def main() -> None:
    """The entry point."""
    try:
        with exits():
            app = make_app()
    except typer.Exit as exit:  # a plugin that somebody asked for cannot be loaded
        raise SystemExit(exit.exit_code) from None
    try:
        app()
    except SystemExit as exit:
        if exit.code == INTERRUPTED:
            leave_threads_behind()
        raise
