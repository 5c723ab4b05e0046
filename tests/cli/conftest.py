"""Modules with tools, in the directory that the command is run in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from tests.cli.commands import WriteModule


@pytest.fixture
def write_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WriteModule]:
    """Writes a module to the current directory, which is one of its own. What was imported from it is forgotten."""
    monkeypatch.chdir(tmp_path)
    names: list[str] = []

    def write(source: str, name: str = "mytools") -> None:
        names.append(name)
        (tmp_path / f"{name}.py").write_text(dedent(source), encoding="utf-8")

    yield write
    for name in names:
        sys.modules.pop(name, None)
