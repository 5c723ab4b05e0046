"""The commands that look at configurations and plugins: `explain`, `check`, `plugins`, `schema`."""

from __future__ import annotations

import io
import json
from pathlib import Path

import typer
from rich.markup import escape
from rich.table import Table

from ..config import Pipeline, json_schema
from ..errors import ConfigError
from ..plugins import PluginInfo, default_registry
from .exits import BAD_INPUT, exits
from .output import console, notes, write, write_json


def explain(config: Path, *, as_json: bool) -> None:
    """Print the chain in both directions, with the reason for each place."""
    with exits(as_json=as_json):
        explanation = Pipeline.from_config(config).explain()
        if as_json:
            write_json(explanation.to_json())
        else:
            write(f"{explanation}\n")


def check(config: Path, *, as_json: bool) -> None:
    """Print everything that is wrong with a configuration."""
    with exits(as_json=as_json):
        faults = Pipeline.validate(config)
        if as_json:
            write_json({"ok": not faults, "faults": faults})
        else:
            for fault in faults:
                notes().print(f"error: {fault}", markup=False)
            if not faults:
                write(f"{config}: ok\n")
    if faults:
        raise typer.Exit(BAD_INPUT)


def plugins(*, as_json: bool) -> None:
    """Print the plugins that were found, what each makes available, and why one is not loaded."""
    with exits(as_json=as_json):
        found = default_registry().plugins
        if as_json:
            write_json([_plugin_json(info) for info in found])
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("plugin", "distribution", "status", "offers"):
            table.add_column(heading, overflow="fold")
        for info in found:
            offers = ", ".join((*info.middlewares, *(f"{name}:" for name in (*info.providers, *info.stores))))
            where = f"{info.distribution} {info.version}" if info.distribution else "-"
            # An error is told below: it is a sentence, and no cell.
            table.add_row(*map(escape, (info.name, where, info.status, offers or "-")))
        rendered = io.StringIO()  # so that all output goes one way, with one kind of failure
        console(rendered).print(table)
        write(rendered.getvalue())
        for info in found:
            if info.error:
                write(f"{info.name}: {info.error}\n")


def schema(output: Path | None) -> None:
    """Print the JSON Schema of a configuration, installed plugins included."""
    with exits():
        text = json.dumps(json_schema(default_registry()), indent=2) + "\n"
        if output is None:
            write(text)
            return
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{output}: cannot be written: {error.strerror}") from None


def _plugin_json(info: PluginInfo) -> dict[str, object]:
    return {
        "name": info.name,
        "distribution": info.distribution,
        "version": info.version,
        "status": info.status,
        "error": info.error,
        "middlewares": list(info.middlewares),
        "providers": list(info.providers),
        "stores": list(info.stores),
    }
