"""Running `neurolink-mw`: in this process where that is enough, else as a program of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from neurolink_mw.cli import make_app
from neurolink_mw.testing import wire

WriteModule = Callable[..., None]

WORD_COUNT = """
    def word_count(text: str) -> int:
        '''Count the words of a text.'''
        return len(text.split())
"""


def invoke(*args: object, input: str | bytes | None = None) -> Result:
    """The command in this process."""
    return CliRunner().invoke(make_app(), list(map(str, args)), input=input)


def start(*args: object, cwd: Path | None = None, **environ: str) -> subprocess.Popen[bytes]:
    """The command as a program, with pipes."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "NEUROLINK_"))}
    return subprocess.Popen(
        [sys.executable, "-m", "neurolink_mw.cli", *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env | environ,
        cwd=cwd,
    )


def finish(program: subprocess.Popen[bytes], input: bytes = b"") -> tuple[int, str, str]:
    """The exit code, standard output and standard error."""
    out, err = program.communicate(input, timeout=30)
    return program.returncode, out.decode(), err.decode()


def config_for(server: wire.ScriptedServer, folder: Path, **options: Any) -> Path:
    """A configuration of a pipeline around a model that the server plays."""
    path = folder / "pipeline.json"
    model = {"provider": "openai-compatible", "model_id": "m", "base_url": server.base_url, "api_key": "sk-secret-key"}
    path.write_text(json.dumps({"model": model, "middlewares": ["default_settings"], **options}))
    return path


def json_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]
