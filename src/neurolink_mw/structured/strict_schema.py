"""A schema as native JSON output takes it: Anthropic's `output_config.format` and Bedrock's `outputConfig.textFormat`.

What they take is what the transformation in Anthropic's SDK lets through (`anthropic/lib/_parse/_transform.py`, 2.14).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..protocol import JSONObject
from ..protocol.tokens import json_text
from .by_schema import by_schema
from .check import SchemaChecker
from .inline_refs import inline_refs
from .keywords import Node

_FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)
_KEPT: Final = frozenset({"$ref", "$defs", "type", "enum", "const", "anyOf", "allOf", "title", "description"})
_OF_TYPE: Final[Mapping[str, frozenset[str]]] = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems"}),
    "string": frozenset({"format"}),
}
_LITERALS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_UNSAID: Final = frozenset({"$schema", "$id", "id", "$comment"})
_SEVERAL: Final = frozenset({"type", "properties", "required"})
_MORE: Final = "Its schema says further: "


@by_schema
def strict_schema(schema: JSONObject | bool) -> JSONObject:
    """The schema with every object closed and nothing in it that native JSON output refuses.

    `$ref`s are inlined first; those that are left lead to recursive definitions, and stand alone. `oneOf` becomes
    `anyOf`, a list of types too; parts of an `allOf` that do not contradict each other become one. A type is added
    where `properties` or `items` say it, and goes where literals do. Other keywords (`minimum`, `pattern`, an
    `additionalProperties` that is true or a schema, …) go to the end of the description, in words, so that the model
    knows of them: an answer may break them, and is checked against the schema that was given. What is strict already
    stays as it is; the schema that is given is not changed.

    ConfigError as in `SchemaChecker`: for a broken schema, and for a `$ref` that leads nowhere.
    """
    SchemaChecker(schema)
    before: object = None
    made: Any = schema
    while made != before:  # what became words may have been all that made a definition recursive, or kept parts apart
        before, made = made, _strict(dict(inline_refs(made).schema))
    assert isinstance(made, dict)  # of an object it makes one
    return made


def _strict(node: Node | bool) -> Node | bool:
    if isinstance(node, bool):
        return {} if node else node
    node = _one_type_each(_joined_parts(_with_type(node)))
    made: Node = {}
    if isinstance(definitions := node.get("$defs"), dict):
        made["$defs"] = {name: _strict(one) for name, one in definitions.items()}
    if "$ref" in node:
        return {**made, "$ref": node["$ref"]}  # nothing else may stand beside it
    type_ = node.get("type")
    own = _OF_TYPE.get(type_, frozenset()) if isinstance(type_, str) else frozenset()
    further: dict[str, Any] = {}
    for key, item in node.items():
        if key == "oneOf" and "anyOf" not in node:
            made["anyOf"] = [_strict(one) for one in item]
        elif key in ("anyOf", "allOf"):
            made[key] = [_strict(one) for one in item]
        elif key in ("enum", "const"):
            (made if _is_plain(item, key) else further)[key] = item
        elif key in _KEPT or key in own:
            if key not in ("$defs", "description"):
                _keep(key, item, made, further)
        elif key not in _UNSAID:
            further[key] = item
    if ("enum" in made or "const" in made) and _says_the_type(made, type_):
        made.pop("type", None)
    if type_ == "object":
        made.setdefault("properties", {})
        made["additionalProperties"] = False
    said = [text for text in (node.get("description"), _in_words(further)) if text]
    if said:
        made["description"] = "\n\n".join(said)
    return made


def _keep(key: str, item: Any, made: Node, further: Node) -> None:
    if key == "properties":
        made[key] = {name: _strict(one) for name, one in item.items()}
    elif key == "items" and isinstance(item, dict | bool):
        made[key] = _strict(item)
    elif key == "additionalProperties":
        if item is not False:
            further[key] = item
    elif (
        (key == "items")
        or (key == "format" and item not in _FORMATS)
        or (key == "minItems" and (isinstance(item, bool) or item not in (0, 1)))
    ):
        further[key] = item
    else:
        made[key] = item


def _with_type(node: Node) -> Node:
    if "type" in node or "$ref" in node:
        return node
    if "properties" in node:
        return {"type": "object", **node}
    return {"type": "array", **node} if "items" in node else node


def _one_type_each(node: Node) -> Node:
    """A list of types as an `anyOf`, each with the keywords that are about it."""
    types = node.get("type")
    if not isinstance(types, list) or "anyOf" in node or "oneOf" in node or "enum" in node or "const" in node:
        return node
    about = {keyword for keywords in _OF_TYPE.values() for keyword in keywords}
    forms = [
        {"type": one, **{key: item for key, item in node.items() if key in _OF_TYPE.get(one, ())}} for one in types
    ]
    rest = {key: item for key, item in node.items() if key != "type" and key not in about}
    return {**rest, "anyOf": forms}


def _joined_parts(node: Node) -> Node:
    """Parts of an `allOf` put into the schema around them, where they do not speak of the same things.

    Closed on its own, each part of an object would refuse the keys of the others.
    """
    parts = node.get("allOf")
    if not isinstance(parts, list):
        return node
    made = {key: item for key, item in node.items() if key != "allOf"}
    for part in parts:
        inner = _joined_parts(_with_type({} if part is True else part)) if part is not False else None
        if inner is None or not _may_join(made, inner):
            return node
        properties = {**made.get("properties", {}), **inner.get("properties", {})}
        required = [*dict.fromkeys([*made.get("required", ()), *inner.get("required", ())])]
        said = [*dict.fromkeys(text for one in (made, inner) if (text := one.get("description")))]
        made = {**inner, **made, **({"properties": properties} if properties else {})}
        made.update({"required": required} if required else {})
        made.update({"description": "\n\n".join(said)} if said else {})
    return made


def _may_join(node: Node, part: Node) -> bool:
    if "$ref" in part or "$ref" in node or "allOf" in part:
        return False
    for one, other in ((node, part), (part, node)):
        if "additionalProperties" in one and "properties" in other:
            return False  # it looks at the properties beside it, and would see more of them
    if node.get("type", part.get("type")) != part.get("type", node.get("type")):
        return False
    same = (node.keys() & part.keys()) - _SEVERAL - {"title", "description"}
    return not same and node.get("properties", {}).keys().isdisjoint(part.get("properties", {}))


def _is_plain(item: Any, key: str) -> bool:
    """Literals are taken where all of them are scalars."""
    items = item if key == "enum" else [item]
    return bool(items) and not any(isinstance(one, dict | list) for one in items)


def _says_the_type(node: Node, type_: object) -> bool:
    """Whether the literals are of the type beside them, so that it says nothing: the SDK lets none stand there."""
    kinds = _LITERALS.get(type_, ()) if isinstance(type_, str) else ()
    return all(one.__class__ in kinds for one in [*node.get("enum", ()), *([node["const"]] if "const" in node else [])])


def _in_words(further: Node) -> str:
    return _MORE + ", ".join(f"{key}: {json_text(item)}" for key, item in further.items()) if further else ""
