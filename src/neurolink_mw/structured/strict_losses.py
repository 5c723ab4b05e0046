"""What native JSON output cannot carry of a schema, so that the answer had better come by a tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from ..protocol import JSONObject
from .by_schema import by_schema
from .inline_refs import inline_refs
from .keywords import Node, subschemas
from .places import listed
from .strict_schema import strict_schema

_FORMS: Final = ("anyOf", "allOf", "$ref", "enum", "const")
_CONDITIONS: Final = ("then", "else", "dependentSchemas")
_Named: TypeAlias = tuple[str, Any]


@by_schema
def strict_losses(schema: JSONObject | bool) -> tuple[str, ...]:
    """Sentences on what no answer can have any more once the schema is strict, and on what is refused even so.

    Lost are keys of objects that the schema leaves open, and forms that a closed object cannot have beside its own
    keys. Refused are schemas that lead back to themselves or elsewhere, and places that say no type. ConfigError for
    what is no schema.
    """
    inlined = inline_refs(schema)
    if not inlined.complete:  # which a strict schema cannot be made of
        return ("native JSON output takes only schemas that stand for themselves", *inlined.warnings)
    asked, strict = dict(inlined.schema), strict_schema(schema)
    told: list[str] = []
    for names, sentence in (
        (_where(asked, _is_open), "has no objects with keys that are not named, as the schema wants them of {}"),
        (_where(strict, _is_bound), "cannot carry the forms that an object may have beside its own keys, of {}"),
        (_where(asked, _depends), "cannot carry keys that depend on others, of {}"),
        (_where(strict, _leads_back), "takes no schema that leads back to itself, as that of {} does"),
        (_where(strict, _says_no_type), "wants a type everywhere, and the schema says none of {}"),
    ):
        if names:
            told.append(f"native JSON output {sentence.format(listed(sorted(names)))}")
    return tuple(told)


def _where(root: Any, holds: Callable[[Any], bool]) -> set[str]:
    """The names of the properties and definitions below which a schema is of that kind."""
    return {name for name, node in _nodes("the root", root) if holds(node)}


def _nodes(name: str, root: Any) -> Iterator[_Named]:
    pending: list[_Named] = [(name, root)]
    while pending:
        name, node = pending.pop()
        yield name, node
        if not isinstance(node, dict):
            continue
        for keyword in ("properties", "$defs"):
            below = node.get(keyword)
            pending += below.items() if isinstance(below, dict) else ()
        rest = {key: item for key, item in node.items() if key not in ("properties", "$defs")}
        pending += [(name, one) for _, one in subschemas(rest)]
        # A boolean is a schema, too, and is listed by none.
        pending += [(name, item) for key, item in rest.items() if key == "items" and isinstance(item, bool)]


def _types(node: Node) -> list[object]:
    type_ = node.get("type")
    return type_ if isinstance(type_, list) else [type_]


def _is_open(node: Any) -> bool:
    if not isinstance(node, dict):
        return False
    further = node.get("additionalProperties")
    if "patternProperties" in node or isinstance(further, dict) or further is True:
        return True
    return "object" in _types(node) and not node.get("properties") and further is not False


def _depends(node: Any) -> bool:
    """Whether keys are named under a condition alone."""
    if not isinstance(node, dict):
        return False
    return any(keyword in node and _names_keys(node[keyword]) for keyword in _CONDITIONS)


def _names_keys(below: Any) -> bool:
    if isinstance(below, dict):
        return "properties" in below or "required" in below or any(map(_names_keys, below.values()))
    return isinstance(below, list) and any(map(_names_keys, below))


def _is_bound(node: Any) -> bool:
    """Of a strict schema: whether an object is closed, and something beside it asks for more."""
    if not isinstance(node, dict):
        return False
    closed = node.get("type") == "object"
    missing = closed and not set(node.get("required", ())) <= set(node.get("properties", {}))
    return "allOf" in node or missing or (closed and "anyOf" in node)


def _leads_back(node: Any) -> bool:
    return isinstance(node, dict) and "$ref" in node


def _says_no_type(node: Any) -> bool:
    if not isinstance(node, dict):
        return True
    return isinstance(node.get("type"), list) or ("type" not in node and not any(form in node for form in _FORMS))
