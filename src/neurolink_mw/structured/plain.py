"""JSON values as plain dicts, lists and scalars: checked for being JSON, and copied."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import ConfigError
from .places import place

VALUE_DEPTH = 200
"""How many levels a value may have. Checkers recurse in native code, where too many end the process."""

SCHEMA_DEPTH = 100
"""How many levels a schema may have. Walking one takes up to three of Python's frames a level, of a thousand."""

_INTEGER_BITS = 14_000  # about 4,200 digits: Python refuses to write or read integers of more than 4,300


class NotJson(Exception):
    """Something that is no JSON value: where it is, and what is wrong with it, in words that follow the place."""

    def __init__(self, path: Sequence[str | int], words: str) -> None:
        super().__init__(words)
        self.path = path
        self.words = words


def plain(value: object, depth: int = VALUE_DEPTH) -> Any:
    """A copy made of dict, list, str, int, float, bool and None alone, mappings and tuples included.

    NotJson for NaN and the infinities, half a surrogate pair, a key that is no text, any other type, and what is
    nested deeper than `depth` levels, a value that contains itself among them.
    """
    return _plain(value, [], depth)


def plain_schema(schema: object, where: str = "schema") -> Any:
    """A copy of a schema, a dict or a bool. ConfigError at `where` for anything else."""
    if not isinstance(schema, Mapping | bool):
        raise ConfigError(f"{where}: a JSON Schema is a mapping or a bool, not {type(schema).__name__}")
    try:
        return plain(schema, SCHEMA_DEPTH)
    except NotJson as error:
        raise ConfigError(f"{place(where, error.path)}: {error.words}") from None


def _plain(value: object, path: list[str | int], depth: int) -> Any:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, int):
        if value.bit_length() > _INTEGER_BITS:
            raise NotJson(path, "is an integer of too many digits")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotJson(path, "is not JSON, which knows neither NaN nor infinite numbers")
        return float(value)
    if not isinstance(value, Mapping | list | tuple):
        raise NotJson(path, f"is not JSON, but a Python {type(value).__name__}")
    if len(path) >= depth:
        raise NotJson(path[:3], f"is nested deeper than {depth} levels")
    # Loops, not comprehensions: one frame a level, so that the deepest value fits into Python's recursion limit.
    if isinstance(value, Mapping):
        copied: dict[str, Any] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise NotJson(path, f"has a key that is no text, but a Python {type(key).__name__}")
            text = _text(key, path)
            path.append(text)
            copied[text] = _plain(item, path, depth)
            path.pop()
        return copied
    items: list[Any] = []
    for index, item in enumerate(value):
        path.append(index)
        items.append(_plain(item, path, depth))
        path.pop()
    return items


def _text(value: str, path: Sequence[str | int]) -> str:
    text = str.__str__(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise NotJson(path, "holds half a surrogate pair, which is not valid Unicode") from None
    return text
