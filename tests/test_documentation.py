"""What the documentation shows, runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S))
]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_python_block_of_the_documentation_runs(block: str) -> None:
    done = run("-c", block)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_an_example_runs_and_says_something(example: Path) -> None:
    done = run(str(example))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_generated_page_is_up_to_date() -> None:
    done = run("docs/generate.py", "--check")
    assert done.returncode == 0, done.stderr


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*PAGES, *sorted((ROOT / "docs" / "decisions").glob("*.md")), ROOT / "CONTRIBUTING.md"]
    broken = [
        f"{page.name}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert not broken


def test_the_first_two_commands_of_the_readme_do_all_the_setting_up() -> None:
    first, second = re.findall(r"^```sh\n(.*?)\n", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)[:2]
    assert first.startswith("python -m pip install") and first.endswith("neurolink-mw demo")  # noqa: PT018
    assert second.startswith("python -m pip install") and second.endswith("python -m pytest -n auto")  # noqa: PT018
