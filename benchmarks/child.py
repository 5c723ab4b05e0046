"""Measurements that need a process of their own: a fresh interpreter, run from where this one runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from .measure import Effort, Series, series_of

ROOT: Final = Path(__file__).parents[1]
"""Where children run, so that they find this package."""


def run_json(*arguments: str) -> dict[str, float]:
    """The JSON object that a Python process prints."""
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"python {' '.join(arguments)} failed:\n{done.stderr.strip()[-2000:]}")
    printed: dict[str, float] = json.loads(done.stdout)
    return printed


def in_turn(
    names: Iterable[str], probe: Callable[[str], Mapping[str, float]], effort: Effort
) -> dict[str, dict[str, Series]]:
    """`probe(name)` for each name in turn, once per round after a warm-up: for each name a series per key."""
    names = list(names)
    taken: dict[str, list[Mapping[str, float]]] = {name: [] for name in names}
    for number in range(effort.rounds + 1):
        for name in names:
            printed = probe(name)
            if number:
                taken[name].append(printed)
    return {
        name: {key: series_of([printed[key] for printed in rounds]) for key in rounds[0]}
        for name, rounds in taken.items()
    }


@contextmanager
def serving(module: str, how: str) -> Iterator[str]:
    """The address that a module prints which serves until its standard input ends, in a process of its own."""
    command = [sys.executable, "-m", module, how]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        base_url = process.stdout.readline().strip()
        if not base_url:
            raise RuntimeError(f"the server {module} did not start")
        yield base_url
