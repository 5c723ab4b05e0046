"""The commands that look at configurations and plugins: `explain`, `check`, `plugins`, `schema`."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.markup import escape
from rich.table import Table

from ..config import Pipeline, json_schema
from ..errors import ConfigError, NeurolinkError
from ..pipeline import Fault
from ..plugins import PluginInfo, default_registry
from .exits import BAD_INPUT, exits
from .output import console, notes, write, write_json

_LINT_LOG = "neurolink_mw.pipeline.effects"
"""Where a build says what `lint = "warn"` lets pass."""


def explain(config: Path, *, as_json: bool) -> None:
    """Print the chain in both directions, with the reason for each place."""
    with exits(as_json=as_json):
        explanation = Pipeline.from_config(config).explain()
        if as_json:
            write_json(explanation.to_json())
        else:
            write(f"{explanation}\n")


def check(config: Path, *, as_json: bool) -> None:
    """Print everything that is wrong with a configuration. What `lint = "warn"` lets pass is a warning."""
    with exits(as_json=as_json):
        errors, warnings = _findings(config)
        if as_json:
            told = [
                {"rule": one.rule, "members": list(one.members), "message": one.message, "fix": one.fix}
                for one in warnings
            ]
            write_json({"ok": not errors, "faults": errors, "warnings": told})
        else:
            for error in errors:
                notes().print(f"error: {error}", markup=False)
            for warning in warnings:
                notes().print(f"warning: {config}: {warning}", markup=False)
            if not errors:
                write(f"{config}: ok\n")
    if errors:
        raise typer.Exit(BAD_INPUT)


def _findings(config: Path) -> tuple[list[str], Sequence[Fault]]:
    """Errors, which keep a pipeline from being built, and warnings, which do not."""
    try:
        with _silent(logging.getLogger(_LINT_LOG)):  # what it would log is what is told here
            pipeline = Pipeline.from_config(config)
    except NeurolinkError as error:
        return str(error).splitlines(), ()
    return [], pipeline.faults if pipeline.lint == "warn" else ()


@contextmanager
def _silent(logger: logging.Logger) -> Iterator[None]:
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


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
