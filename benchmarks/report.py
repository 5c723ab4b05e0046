"""The run as a table for people and as JSON for programs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from .figure import Figure, Measured, Skipped
from .measure import Effort

SCHEMA: Final = 1
"""The version of the JSON's shape, which README.md describes."""

_DISTRIBUTIONS: Final = (
    *("neurolink-mw", "anyio", "httpx", "opentelemetry-api", "orjson", "pluggy", "pydantic"),
    *("langchain", "langchain-core", "litellm", "pydantic-ai-slim", "strands-agents"),
)
_HEADINGS: Final = ("figure", "N", "cost", "unit", "+-", "floor", "x floor", "goal", "")


def table(measured: Iterable[Figure | Skipped]) -> str:
    """One line a figure, under a line for each group."""
    rows: list[Sequence[str]] = [_HEADINGS]
    group = ""
    for one in measured:
        own_group, _, what = one.name.partition(".")
        if own_group != group:
            group = own_group
            rows.append([group])
        rows.append([f"  {what}", f"skipped: {one.why}"] if isinstance(one, Skipped) else _row(one, f"  {what}"))
    whole = [row for row in rows if len(row) == len(_HEADINGS)]
    widths = [max(len(row[column]) for row in whole) for column in range(len(_HEADINGS))]
    return "\n".join(_line(row, widths) for row in rows)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    if len(row) < len(widths):
        return " ".join(row)
    left_aligned = {0, 3, 5, 7, 8}
    cells = (
        cell.ljust(width) if column in left_aligned else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(cells).rstrip()


def _row(figure: Figure, what: str) -> Sequence[str]:
    floor, ratio, ours = figure.floor, figure.ratio, figure.times_ours
    verdicts = [] if ours is None else [f"{_number(ours.median)} x ours"]
    verdicts += {True: ["met"], False: ["MISSED"], None: []}[figure.is_met]
    return [
        what,
        "" if figure.n is None else str(figure.n),
        _number(figure.value.median),
        figure.unit,
        f"{figure.value.spread:.0%}",
        "" if floor is None else f"{floor.name} {_number(floor.value.median)}",
        "" if ratio is None else _number(ratio.median),
        "" if figure.goal is None else str(figure.goal),
        ", ".join(verdicts),
    ]


def _number(number: float) -> str:
    size = abs(number)
    return f"{number:,.0f}" if size >= 100 or not size else f"{number:.1f}" if size >= 10 else f"{number:.3g}"


def summary(measured: Iterable[Figure | Skipped]) -> str:
    """How many goals are met, and which are not."""
    judged = [one for one in measured if isinstance(one, Figure) and one.is_met is not None]
    missed = [one for one in judged if not one.is_met]
    lines = [f"{len(judged) - len(missed)} of {len(judged)} goals met."]
    lines += [f"missed: {one.name}, N={one.n}: goal {one.goal}" for one in missed]
    return "\n".join(lines)


def as_json(measured: Measured, effort: Effort) -> str:
    """The whole run. It names no host, no user and no path."""
    run = {
        "schema": SCHEMA,
        "quick": effort.is_quick,
        "rounds": effort.rounds,
        "clock": "process_time",
        "machine": machine(),
        "versions": versions(),
        "figures": [one.as_json() for one in measured if isinstance(one, Figure)],
        "skipped": [one.as_json() for one in measured if isinstance(one, Skipped)],
    }
    return json.dumps(run, indent=2) + "\n"


def machine() -> dict[str, object]:
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def versions() -> dict[str, str]:
    """Of the interpreter, and of what is installed of the libraries that play a part."""
    found = {"python": f"{platform.python_implementation()} {platform.python_version()}"}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    """The processor's name; Linux tells it in a file alone."""
    about = Path("/proc/cpuinfo")
    if about.exists():
        for line in about.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
