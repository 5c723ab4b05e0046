"""What becomes of a command whose output cannot be written."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

COMMAND = f"{sys.executable} -m neurolink_mw.cli"


def shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("command", ["plugins", "schema", "plugins --json"])
@pytest.mark.parametrize(("redirect", "said"), [("> /dev/full", "cannot be written"), (">&-", "is closed")])
def test_an_output_that_cannot_be_written_is_one_sentence_and_exit_code_1(
    command: str, redirect: str, said: str
) -> None:
    done = shell(f"{COMMAND} {command} {redirect}")
    assert done.returncode == 1
    assert done.stderr.startswith("error: standard output")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_command_says_its_version() -> None:
    assert shell(f"{COMMAND} --version").stdout == version("neurolink-mw") + "\n"
