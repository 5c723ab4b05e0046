"""Reading a configuration file in TOML, YAML or JSON: what the three can say is the same mapping."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import ConfigError


def load_file(path: Path) -> dict[str, Any]:
    """The mapping that a file holds. ConfigError names the file, and the line where it cannot be parsed."""
    parsers: dict[str, Callable[[Path, str], Any]] = {".toml": _toml, ".json": _json, ".yaml": _yaml, ".yml": _yaml}
    parse = parsers.get(path.suffix.lower())
    if parse is None:
        raise ConfigError(f"{path}: a configuration is a file that ends in {', '.join(parsers)}")
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as UTF-8 text: {type(error).__name__}") from None
    try:
        loaded = parse(path, text)
    except RecursionError:
        raise ConfigError(f"{path}: cannot be read: it is nested too deeply") from None
    except ValueError:  # the parsers do not say where, and quote the value, which may be a secret
        raise ConfigError(f"{path}: cannot be read: a number or a date in it is none") from None
    if not isinstance(loaded, dict):
        raise ConfigError(f"{path}: a configuration is a mapping of options, not {type(loaded).__name__}")
    return loaded


def _toml(path: Path, text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: this is not TOML: {error}") from None


def _json(path: Path, text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _without_duplicates(path, pairs))
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}, line {error.lineno}, column {error.colno}: this is not JSON: {error.msg}") from None


def _without_duplicates(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:  # the first one would be dropped without a word
        raise ConfigError(f"{path}: {twice!r} stands twice in one object")
    return dict(pairs)


def _yaml(path: Path, text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise ConfigError(f"{path}: YAML needs an extra: pip install 'neurolink-mw[yaml]'") from None

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen = set()
            for key, _ in node.value:
                if key.tag != "tag:yaml.org,2002:merge" and key.value in seen:
                    line = key.start_mark.line + 1
                    raise ConfigError(f"{path}, line {line}: {key.value!r} stands twice in one mapping")
                seen.add(key.value if isinstance(key.value, str) else None)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader)  # a subclass of the safe one
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or type(error).__name__
        raise ConfigError(f"{path}{where}: this is not YAML: {problem}") from None
