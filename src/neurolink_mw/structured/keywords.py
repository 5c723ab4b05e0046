"""Where, in a JSON Schema, further schemas stand, and where only data does. The keywords of all drafts together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

Node: TypeAlias = dict[str, Any]
"""A schema that is an object. Its other form, a bool, has nothing within."""

DEFINITIONS = frozenset({"definitions", "$defs"})

_ONE = frozenset(
    {
        *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
        *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
    }
)
_LIST = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_BY_NAME = DEFINITIONS | {"dependencies", "dependentSchemas", "patternProperties", "properties"}

NESTING = _ONE | _LIST | _BY_NAME
"""The keywords with schemas in them. What stands under any other (`enum`, `const`, `default`, `x-…`) is data."""

ALONE = frozenset(
    {
        *("type", "enum", "const", "format", "pattern", "minLength", "maxLength", "multipleOf"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "required", "dependentRequired"),
        *("contentEncoding", "contentMediaType"),
    }
)
"""The keywords that refuse values whatever stands beside them, and that no other keyword looks at."""

VALIDATING = NESTING | ALONE | {"minContains", "maxContains"}
"""The keywords that may refuse a value. Every other one is an annotation."""


def subschemas(node: Node) -> Iterator[tuple[int, Node]]:
    """The schemas right below one, each with how many levels of JSON it stands below."""
    for key, value in node.items():
        if key not in NESTING:
            continue
        if isinstance(value, dict):
            if key in _ONE:
                yield 1, value
            elif key in _BY_NAME:
                yield from ((2, item) for item in value.values() if isinstance(item, dict))
        elif isinstance(value, list) and key in _LIST:
            yield from ((2, item) for item in value if isinstance(item, dict))


def with_subschemas(node: Node, change: Callable[[Node], Any]) -> Node:
    """A copy in which each schema right below is what `change` makes of it. Data is shared with the original."""
    copied: Node = {}
    for key, value in node.items():
        if key in _ONE and isinstance(value, dict):
            value = change(value)
        elif key in _LIST and isinstance(value, list):
            value = [change(item) if isinstance(item, dict) else item for item in value]
        elif key in _BY_NAME and isinstance(value, dict):
            value = {name: change(item) if isinstance(item, dict) else item for name, item in value.items()}
        copied[key] = value
    return copied
