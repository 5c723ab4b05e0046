"""`neurolink-mw new-plugin`: what a name becomes, what is refused, and a distribution that works as it is written.

That it can be installed, type-checked and linted is tried by `.ci/run`, which has an environment for it.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.cli.commands import finish, invoke, start

from neurolink_mw.cli.new_plugin import Naming, derive, refuse_taken, render, write_files
from neurolink_mw.errors import ConfigError
from neurolink_mw.plugins import default_registry

GUARD = Naming("acme-guard", "acme_guard", "acme_guard", "AcmeGuard")
FILES = {
    *("pyproject.toml", "README.md", ".gitignore", "tests/test_acme_guard.py"),
    *("src/acme_guard/__init__.py", "src/acme_guard/py.typed"),
}


def written(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


# ------------------------------------------------------------------------------------------------------------ names


@pytest.mark.parametrize("name", ["acme-guard", "Acme_Guard", "ACME.guard", "acme--guard", "acme._-guard"])
def test_spellings_of_one_name_are_one_name(name: str) -> None:
    assert derive(name) == GUARD


def test_the_prefix_of_the_library_is_left_out_of_the_id() -> None:
    naming = derive("neurolink-mw-word2vec")
    assert naming == Naming("neurolink-mw-word2vec", "neurolink_mw_word2vec", "word2vec", "Word2vec")


@pytest.mark.parametrize("name", ["", "-guard", "guard-", "_guard", "acme guard", "acme/guard", "..", "wächter", "a\n"])
def test_a_name_that_no_distribution_can_have_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="NAME: the name of a distribution has letters, digits"):
        derive(name)


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("3d", "the module '3d'"),
        ("class", "the module 'class'"),
        ("match", "the module 'match'"),
        ("neurolink-mw-import", "the middleware 'import'"),
        ("neurolink-mw-3d", "the middleware '3d'"),
        ("true", "the class 'True'"),
    ],
)
def test_a_name_that_is_none_in_python_is_refused(name: str, made: str) -> None:
    with pytest.raises(ConfigError, match=f"NAME: '{name}' leads to {made}, which is no name in Python"):
        derive(name)


@pytest.mark.parametrize(
    ("name", "role"), [("response-policy", "ResponsePolicy"), ("middleware", "Middleware"), ("pipeline", "Pipeline")]
)
def test_a_class_that_would_hide_one_of_the_library_is_refused(name: str, role: str) -> None:
    with pytest.raises(ConfigError, match=f"leads to the class {role}, which the library has already"):
        derive(name)


def test_a_name_that_would_not_fit_into_a_line_is_refused() -> None:
    assert derive("a" * 40).module == "a" * 40
    with pytest.raises(ConfigError, match="NAME: 41 characters are too many: take a name of 40 at most"):
        derive("a" * 41)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("neurolink.mw", "is the library itself"),
        ("pluggy", "a distribution 'pluggy' is installed already"),
        ("json", "there is a module 'json' already"),
        ("tests", "there is a module 'tests' already"),
        ("builtin", "a plugin 'builtin' is installed already"),
        ("model", "the middleware id 'model' is taken"),
        ("neurolink-mw-logging", "the middleware id 'logging' is taken"),
    ],
)
def test_a_name_that_is_taken_is_refused(name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"NAME: .*{why}"):
        refuse_taken(derive(name), default_registry())


# -------------------------------------------------------------------------------------------------------- rendering


def test_every_file_of_a_distribution_is_rendered() -> None:
    assert set(render(GUARD, "0.1.0")) == FILES


@pytest.mark.parametrize("name", ["acme-guard", "x", "l" * 40])
def test_a_name_of_any_length_fits_into_the_files(name: str) -> None:
    texts = render(derive(name), "0.1.0")
    assert not any("$" in text for text in texts.values())
    for path in (path for path in texts if path.endswith(".py")):
        assert ast.get_docstring(ast.parse(texts[path]))
        assert texts[path].endswith("\n")
        assert all(len(line) <= 120 for line in texts[path].splitlines())


def test_the_entry_point_names_the_module() -> None:
    project = tomllib.loads(render(GUARD, "0.1.0")["pyproject.toml"])["project"]
    assert project["name"] == "acme-guard"
    assert project["entry-points"] == {"neurolink_mw": {"acme_guard": "acme_guard"}}


@pytest.mark.parametrize(
    ("library", "requirement"),
    [("0.1.0", ">=0.1.0,<0.2"), ("0.9.2.dev3", ">=0.9.2.dev3,<0.10"), ("2.4.1", ">=2.4.1,<3")],
)
def test_it_depends_on_versions_that_keep_their_contracts(library: str, requirement: str) -> None:
    project = tomllib.loads(render(GUARD, library)["pyproject.toml"])["project"]
    assert project["dependencies"] == [f"neurolink-mw{requirement}"]


# ---------------------------------------------------------------------------------------------------------- writing


def test_the_command_writes_a_folder_and_says_what_comes_next(tmp_path: Path) -> None:
    ran = invoke("new-plugin", "Acme.Guard", "--directory", tmp_path)
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert set(written(tmp_path / "acme-guard")) == FILES
    assert f"cd {tmp_path}/acme-guard\n" in ran.stdout
    assert 'python -m pip install -e ".[test]"' in ran.stdout


def test_what_exists_is_left_as_it_is(tmp_path: Path) -> None:
    mine = tmp_path / "acme-guard" / "notes.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    ran = invoke("new-plugin", "acme-guard", "--directory", tmp_path)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: {tmp_path}/acme-guard: exists already; nothing was changed")
    assert written(tmp_path) == {"acme-guard/notes.txt": "mine"}


@pytest.mark.parametrize("kind", ["a file", "a dangling link"])
def test_the_target_may_not_be_anything_else_either(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "acme-guard"
    target.write_text("mine") if kind == "a file" else target.symlink_to(tmp_path / "gone")
    assert invoke("new-plugin", "acme-guard", "-d", tmp_path).exit_code == 2
    assert target.is_symlink() or target.read_text() == "mine"


def test_a_directory_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    ran = invoke("new-plugin", "acme-guard", "--directory", tmp_path / "gone")
    assert (ran.exit_code, ran.stderr) == (
        2,
        f"error: {tmp_path}/gone: there is no such directory: make it, or give another\n",
    )
    assert not list(tmp_path.iterdir())


def test_a_name_that_cannot_be_is_exit_2_and_writes_nothing(tmp_path: Path) -> None:
    ran = invoke("new-plugin", "neurolink-mw", "--directory", tmp_path)
    assert (ran.exit_code, ran.stdout, len(ran.stderr.splitlines())) == (2, "", 1)
    assert not list(tmp_path.iterdir())


def test_nothing_half_written_is_left(tmp_path: Path) -> None:
    texts = {"README.md": "read me", "src": "a file where a folder is needed", "src/module.py": "never written"}
    with pytest.raises(ConfigError, match="nothing of it was left"):
        write_files(tmp_path / "acme-guard", texts)
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------------------------- using it


def test_it_is_found_and_passes_its_own_tests(tmp_path: Path) -> None:
    assert invoke("new-plugin", "acme-guard", "--directory", tmp_path).exit_code == 0
    plugin = tmp_path / "acme-guard"
    project = tomllib.loads((plugin / "pyproject.toml").read_text())["project"]
    info = plugin / "src" / "acme_guard-0.1.0.dist-info"  # what an installer writes
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    (name, module), *_ = project["entry-points"]["neurolink_mw"].items()
    (info / "entry_points.txt").write_text(f"[neurolink_mw]\n{name} = {module}\n")
    path = str(plugin / "src")

    code, out, err = finish(start("plugins", "--json", PYTHONPATH=path))
    assert (code, err) == (0, "")
    listed = next(one for one in json.loads(out) if one["distribution"] == "acme-guard")
    assert (listed["status"], listed["middlewares"]) == ("loaded", ["acme_guard"])

    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=plugin,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "5 passed" in ran.stdout
