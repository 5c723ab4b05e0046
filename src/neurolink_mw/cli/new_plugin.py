"""`neurolink-mw new-plugin`: a distribution with a plugin in it, ready to be installed, tested and published.

What it looks like is in `plugin_template/`; `render` fills that in, and touches nothing.
"""

from __future__ import annotations

import keyword
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template

from ..errors import ConfigError
from ..pipeline.place import MODEL
from ..plugins import Registry, default_registry
from .exits import exits
from .output import write

_PREFIX = "neurolink-mw-"
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")  # PEP 508
_LONGEST = 40  # so that the lines that are made from it stay within the format that they are checked against
_IMPORTED = re.compile(r"^(?:from \S+ )?import (.+)$", re.M)


@dataclass(frozen=True)
class Naming:
    """What one name becomes in all places. distribution: as installers write it (PEP 503). module: the package that is
    imported. id: how configurations name the middleware, and the name of the entry point. role: its class."""

    distribution: str
    module: str
    id: str
    role: str


def new_plugin(name: str, directory: Path) -> None:
    """The command's body."""
    with exits():
        naming = derive(name)
        refuse_taken(naming, default_registry())
        target = write_files(directory / naming.distribution, render(naming, version("neurolink-mw")))
        write(_next_steps(naming, target))


def derive(name: str) -> Naming:
    """What the name of a distribution becomes in all places. ConfigError for one that cannot be a distribution, a
    module and a class."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            "NAME: the name of a distribution has letters, digits, '.', '-' and '_', all ASCII, and begins and ends "
            "with a letter or a digit, as in acme-guard"
        )
    if len(name) > _LONGEST:
        raise ConfigError(f"NAME: {len(name)} characters are too many: take a name of {_LONGEST} at most")
    canonical = re.sub(r"[-_.]+", "-", name).lower()
    module = canonical.replace("-", "_")
    id = canonical.removeprefix(_PREFIX).replace("-", "_")
    role = "".join(word.capitalize() for word in id.split("_"))
    for what, made in (("module", module), ("middleware", id), ("class", role)):
        if not made.isidentifier() or keyword.iskeyword(made) or keyword.issoftkeyword(made):
            raise ConfigError(f"NAME: {name!r} leads to the {what} {made!r}, which is no name in Python: take another")
    if {role, f"{role}Config"} & _names_of_the_templates():
        raise ConfigError(f"NAME: {name!r} leads to the class {role}, which the library has already: take another")
    return Naming(canonical, module, id, role)


def refuse_taken(naming: Naming, registry: Registry) -> None:
    """ConfigError where a distribution, a module, a plugin or a middleware has one of the names."""
    if naming.module == "neurolink_mw":
        raise ConfigError("NAME: 'neurolink-mw' is the library itself: take another, as in acme-guard")
    if _is_installed(naming.distribution):
        raise ConfigError(f"NAME: a distribution {naming.distribution!r} is installed already: take another")
    if naming.module in {"tests", *sys.stdlib_module_names} or find_spec(naming.module) is not None:
        raise ConfigError(f"NAME: there is a module {naming.module!r} already, which it would hide: take another")
    if any(naming.id == info.name for info in registry.plugins):
        raise ConfigError(f"NAME: a plugin {naming.id!r} is installed already: take another")
    if naming.id == MODEL or naming.id in registry.middleware_ids:
        raise ConfigError(f"NAME: the middleware id {naming.id!r} is taken: take another")


def render(naming: Naming, library: str) -> dict[str, str]:
    """The files of the distribution: their text by their path. library: the version of neurolink-mw to depend on."""
    fields = {**vars(naming), "requirement": f">={library},<{_next_breaking(library)}"}
    return {
        "pyproject.toml": _filled("pyproject.toml", fields),
        "README.md": _filled("README.md", fields),
        ".gitignore": _filled("gitignore", fields),
        f"src/{naming.module}/__init__.py": _filled("module.py", fields),
        f"src/{naming.module}/py.typed": "",
        f"tests/test_{naming.module}.py": _filled("test_module.py", fields),
    }


def write_files(target: Path, texts: Mapping[str, str]) -> Path:
    """Make a folder with these files; all of them, or none. ConfigError where it cannot be made."""
    try:
        target.mkdir()  # whoever makes it has it to himself
    except FileExistsError:
        raise ConfigError(f"{target}: exists already; nothing was changed: take another name or --directory") from None
    except FileNotFoundError:
        raise ConfigError(f"{target.parent}: there is no such directory: make it, or give another") from None
    except OSError as error:
        raise ConfigError(f"{target}: cannot be made: {error.strerror}") from None
    try:
        for path, text in texts.items():
            file = target / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except BaseException as error:
        shutil.rmtree(target, ignore_errors=True)
        if isinstance(error, OSError):
            raise ConfigError(f"{target}: cannot be written: {error.strerror}; nothing of it was left") from None
        raise
    return target


def _next_breaking(version: str) -> str:
    """The next version that may change contracts: before 1.0 a minor one."""
    major, minor = map(int, version.split(".")[:2])
    return str(major + 1) if major else f"0.{minor + 1}"


def _filled(name: str, fields: Mapping[str, str]) -> str:
    return Template(_template(name)).substitute(fields)


def _template(name: str) -> str:
    return (files(__package__) / "plugin_template" / f"{name}.tmpl").read_text(encoding="utf-8")


def _names_of_the_templates() -> set[str]:
    """What a plugin and its tests import: its own class cannot have such a name."""
    imports = _IMPORTED.findall(_template("module.py") + _template("test_module.py"))
    return {name.strip() for names in imports for name in names.split(",")}


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _next_steps(naming: Naming, target: Path) -> str:
    return (
        f"{target}: a plugin with the middleware {naming.id!r}, in src/{naming.module}/__init__.py\n\n"
        f"next:\n"
        f"  cd {shlex.quote(str(target))}\n"
        f'  python -m pip install -e ".[test]"\n'
        f"  neurolink-mw plugins\n"
        f"  python -m pytest\n"
    )
