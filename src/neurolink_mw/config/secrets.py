"""References to the environment: `${ENV:NAME}` in a text of a configuration, and keeping what it stands for out of
every message."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..errors import ConfigError, NeurolinkError

Place: TypeAlias = tuple[str | int, ...]
Fault: TypeAlias = tuple[Place, str]
"""What is wrong, and where."""

_SHORTEST_SECRET = 4  # cleaning a message of every "1" would leave nothing to read
_REFERENCE = re.compile(r"(\$?)\$\{ENV:([^}]*)(\}?)")


@dataclass
class Secrets:
    """What came from the environment, so that messages can be cleaned of it."""

    references: dict[str, str] = field(default_factory=dict, repr=False)

    def add(self, name: str, value: str) -> None:
        # As it is, and as it stands in a `repr` or in JSON.
        for written in (value, repr(value)[1:-1], json.dumps(value)[1:-1]):
            if len(written) >= _SHORTEST_SECRET:
                self.references[written] = f"${{ENV:{name}}}"

    def scrub(self, text: str) -> str:
        """The text with every secret replaced by the reference that it came from."""
        if not self.references:
            return text
        longest_first = sorted(self.references, key=len, reverse=True)
        return re.sub("|".join(map(re.escape, longest_first)), lambda found: self.references[found.group()], text)

    @contextmanager
    def kept_out(self) -> Iterator[None]:
        """Whatever goes wrong while a pipeline is built is told without a secret in it."""
        try:
            yield
        except NeurolinkError as error:
            clean = self.scrub(str(error))
            if clean == str(error):
                raise
            raise retold(error, clean) from None
        except Exception as error:  # a member's own code
            clean = self.scrub(str(error))
            said = f"the pipeline cannot be built: {type(error).__name__}: {' '.join(clean.split())}"
            raise ConfigError(said) from (error if clean == str(error) else None)


def retold(error: NeurolinkError, text: str) -> NeurolinkError:
    """The same kind of error with another text."""
    try:
        return type(error)(text)
    except TypeError:  # a plugin's own class
        return ConfigError(text)


def resolve(value: Any, secrets: Secrets, environ: Mapping[str, str] | None = None) -> tuple[Any, list[Fault]]:
    """A copy of a configuration with `${ENV:NAME}` replaced by the variable; `$${ENV:NAME}` stands for itself.

    A reference to a variable that is not set, or that has no end, is a fault and stays as it is.
    """
    faults: list[Fault] = []
    return _resolve(value, (), secrets, os.environ if environ is None else environ, faults), faults


def _resolve(value: Any, place: Place, secrets: Secrets, environ: Mapping[str, str], faults: list[Fault]) -> Any:
    if isinstance(value, Mapping):
        return {key: _resolve(item, (*place, key), secrets, environ, faults) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_resolve(item, (*place, at), secrets, environ, faults) for at, item in enumerate(value)]
    if not isinstance(value, str) or "${ENV:" not in value:
        return value

    def replace(match: re.Match[str]) -> str:
        escaped, name, end = match.groups()
        if escaped:
            return match.group()[1:]
        if not name or not end:
            faults.append((place, "a reference to the environment is written ${ENV:NAME}"))
        elif name not in environ:
            faults.append((place, f"the environment variable {name} is not set"))
        else:
            secrets.add(name, environ[name])
            return environ[name]
        return match.group()

    return _REFERENCE.sub(replace, value)
