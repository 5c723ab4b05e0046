"""JSON values on their way into a native request. Pure.

Options are given in camelCase, as everywhere in V3, and the API takes snake_case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from .naming import snake_case

Block: TypeAlias = dict[str, object]
"""A native content block, or another object of a request."""

# What a schema or a tool's input holds is the caller's own, and so are names that are keys.
_VERBATIM: Final = frozenset({"input", "input_examples", "input_schema", "schema"})
_BY_NAME: Final = frozenset({"configs"})


def snaked(data: object) -> object:
    """A plain JSON value with its members' names as the API spells them; what is named by the caller stays."""
    if isinstance(data, Mapping):
        native: dict[str, object] = {}
        for key, item in data.items():
            name = snake_case(str(key))
            if name in _BY_NAME and isinstance(item, Mapping):
                native[name] = {key: snaked(inner) for key, inner in item.items()}
            else:
                native[name] = item if name in _VERBATIM else snaked(item)
        return native
    if isinstance(data, list | tuple):
        return [snaked(item) for item in data]
    return data


def is_blank(block: Block) -> bool:
    """Whether it is a text that says nothing, which the API refuses."""
    return block.get("type") == "text" and isinstance(text := block.get("text"), str) and not text.strip()
