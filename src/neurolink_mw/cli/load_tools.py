"""`--tools module:name`: the tools of a turn, imported from the current directory or the environment."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from inspect import isfunction
from pathlib import Path
from types import ModuleType

from ..errors import ConfigError
from ..pipeline.wording import did_you_mean
from ..tools import Tool, tool


@contextmanager
def importable_here() -> Iterator[None]:
    """Modules of the current directory can be imported, as in a script that lies there. Also while the tools run,
    since a tool may import as late as that."""
    before = list(sys.path)
    sys.path.insert(0, "")
    try:
        yield
    finally:
        sys.path[:] = before


def load_tools(names: Sequence[str]) -> tuple[Tool, ...]:
    """What `module:name` stands for: a typed function, a `Tool`, or a list of them. ConfigError that names the
    argument where it stands for none, or where a tool has the name of another."""
    found: dict[str, tuple[str, Tool]] = {}
    for name in names:
        for one in _tools(name):
            if one.name in found:
                raise _refused(
                    name,
                    f"there is a tool {one.name!r} already, from --tools {found[one.name][0]}: leave one out, or give "
                    f"it another name with @tool(name=...)",
                )
            found[one.name] = name, one
    return tuple(one for _, one in found.values())


def _tools(name: str) -> Iterator[Tool]:
    given = _imported(name)
    if not isinstance(given, list | tuple):
        yield _tool(name, given, "this")
        return
    if not given:
        raise _refused(name, "this list is empty: put tools into it, or leave the option out")
    for number, one in enumerate(given, 1):
        yield _tool(name, one, f"item {number} of this list")


def _tool(name: str, given: object, what: str) -> Tool:
    if isinstance(given, Tool):
        return given
    if not callable(given) or isinstance(given, type):
        kind = f"the class {given.__name__}" if isinstance(given, type) else f"of the type {type(given).__name__}"
        raise _refused(name, f"{what} is {kind}: give a typed function, a Tool, or a list of them")
    try:
        return tool(given)
    except ConfigError as error:
        raise _refused(name, str(error)) from None


def _imported(name: str) -> object:
    module, colon, path = name.partition(":")
    steps = path.split(".")
    if not colon or not all(step.isidentifier() for step in (*module.split("."), *steps)):
        raise _refused(name, "write module:name, such as mytools:word_count for a function of mytools.py")
    found: object = _module(name, module)
    for step in steps:
        try:
            found = getattr(found, step)
        except AttributeError:
            raise _refused(name, f"there is no {step!r} in {module}{did_you_mean(step, _offered(found))}") from None
    return found


def _offered(found: object) -> list[str]:
    """What of a module could be tools."""
    if not isinstance(found, ModuleType):
        return []
    return [
        name
        for name, value in vars(found).items()
        if isinstance(value, Tool) or (isfunction(value) and value.__module__ == found.__name__)
    ]


def _module(name: str, module: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise _broken(name, module, error) from None
        remedy = "leave out the .py" if module.endswith(".py") else "check the name, or go to the directory it is in"
        raise _refused(name, f"there is no module {error.name!r}, here or among the installed ones: {remedy}") from None
    except (Exception, SystemExit) as error:  # a script without a guard may well end the program
        raise _broken(name, module, error) from None


def _broken(name: str, module: str, error: BaseException) -> ConfigError:
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if not isinstance(error, SyntaxError):  # which says itself where it is
        last = traceback.extract_tb(error.__traceback__)[-1]
        said += "" if last.filename.startswith("<") else f" ({Path(last.filename).name}, line {last.lineno})"
    return _refused(name, f"{module} cannot be imported: {' '.join(said.split())}")


def _refused(name: str, why: str) -> ConfigError:
    return ConfigError(f"--tools {name}: {why}")
