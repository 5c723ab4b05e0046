"""Reading a configuration: a file in TOML, YAML or JSON, and the references to the environment in it."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ConfigError

_SHORTEST_SECRET = 4  # cleaning a message of every "1" would leave nothing to read
_REFERENCE = re.compile(r"(\$?)\$\{ENV:([A-Za-z_][A-Za-z0-9_]*)\}")


def load_file(path: Path) -> dict[str, Any]:
    """The mapping that a file holds. ConfigError names the file, and the line where it cannot be parsed."""
    parsers = {".toml": _toml, ".json": _json, ".yaml": _yaml, ".yml": _yaml}
    parse = parsers.get(path.suffix.lower())
    if parse is None:
        raise ConfigError(f"{path}: a configuration is a file that ends in {', '.join(parsers)}")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as UTF-8 text: {type(error).__name__}") from None
    loaded = parse(path, text)
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
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or type(error).__name__
        raise ConfigError(f"{path}{where}: this is not YAML: {problem}") from None


@dataclass
class Secrets:
    """What came from the environment, so that messages can be cleaned of it."""

    references: dict[str, str] = field(default_factory=dict, repr=False)

    def scrub(self, text: str) -> str:
        """The text with every secret replaced by the reference that it came from."""
        for secret, reference in sorted(self.references.items(), key=lambda item: -len(item[0])):
            text = text.replace(secret, reference)
        return text


def resolve(value: Any, secrets: Secrets, place: str = "", environ: Mapping[str, str] | None = None) -> Any:
    """A copy of a configuration with `${ENV:NAME}` replaced by the variable; `$${ENV:NAME}` stands for itself.

    ConfigError names the place and the variable that is not set.
    """
    environ = os.environ if environ is None else environ
    if isinstance(value, Mapping):
        return {
            key: resolve(item, secrets, f"{place}.{key}" if place else str(key), environ) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [resolve(item, secrets, f"{place}[{index}]", environ) for index, item in enumerate(value)]
    if not isinstance(value, str) or "${ENV:" not in value:
        return value

    def replace(match: re.Match[str]) -> str:
        escaped, name = match.groups()
        if escaped:
            return match.group()[1:]
        if name not in environ:
            raise ConfigError(f"{place}: the environment variable {name} is not set")
        if len(environ[name]) >= _SHORTEST_SECRET:
            secrets.references[environ[name]] = f"${{ENV:{name}}}"
        return environ[name]

    return _REFERENCE.sub(replace, value)
