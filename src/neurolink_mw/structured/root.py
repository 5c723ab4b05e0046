"""An object at the root of every schema: providers take nothing else, so any other one is put under a key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from ..errors import ConfigError, SchemaValidationError
from ..protocol import JSON, JSONObject
from .drafts import draft_of
from .keywords import DEFINITIONS, Node, with_subschemas
from .plain import plain_schema

KEY = "value"

_NOT_AT_A_ROOT = frozenset({"$ref", "allOf", "anyOf", "enum", "not", "oneOf"})
"""What the API of Anthropic or that of OpenAI refuses at a root, whatever its type; a `$ref` hides the type."""


@dataclass(frozen=True, slots=True)
class Wrapped:
    """schema: a schema with an object at its root. key: where in that object the value is, or None where the value is
    the object itself. warnings: of `answer_schema`, a sentence for each thing that could not be inlined."""

    schema: JSONObject
    key: str | None
    warnings: tuple[str, ...] = ()


def wrap_root(schema: JSONObject | bool) -> Wrapped:
    """A schema with an object at its root: the same one where that is so already, else one whose one key it describes.

    At the root is an object where `type` is exactly "object" and no `$ref`, `allOf`, `anyOf`, `oneOf`, `enum` or `not`
    stands beside it. Properties without a type are not enough: such a schema accepts what is no object, too.

    A value fits the given schema exactly if `{key: value}` fits the wrapped one. Definitions stay at the root, where
    `#/$defs/…` points, and other pointers get longer; `inline_refs` comes first for a schema that knows itself by
    its own `$id`. ConfigError for what is no schema, and for one that uses `$recursiveRef`.
    """
    inner = plain_schema(schema)
    if isinstance(inner, bool):
        inner = {} if inner else {"not": {}}
    elif inner.get("type") == "object" and _NOT_AT_A_ROOT.isdisjoint(inner):
        return Wrapped(inner, None)
    id_ = "id" if draft_of(inner) == "draft-04" else "$id"
    of_root = {key for key in inner if key in DEFINITIONS or key in ("$schema", id_)}
    moved = {key: inner.pop(key) for key in sorted(of_root)}
    outer = {**moved, "type": "object", "properties": {KEY: inner}, "required": [KEY], "additionalProperties": False}
    return Wrapped(_repointed(outer, id_), KEY)


def unwrap_root(value: JSON, key: str | None) -> JSON:
    """The value itself, out of an answer to a wrapped schema. `key` is `Wrapped.key`; None: the answer is it.

    SchemaValidationError for an answer that is no object with that one key.
    """
    if key is None:
        return value
    if isinstance(value, Mapping) and value.keys() == {key}:
        return value[key]
    problem = f"answer: must be an object with the one key {key!r}"
    raise SchemaValidationError(problem, problems=(problem,))


def _repointed(outer: Node, id_: str) -> Node:
    """Pointers at the old root, and into it, lead to where it is now. Those into the definitions stay."""
    address = outer.get(id_, "")

    def changed(node: Node) -> Node:
        if "$recursiveRef" in node or "$recursiveAnchor" in node:
            raise ConfigError("schema: what has a $recursiveRef cannot be put under a key: write it as a $ref")
        if id_ in node and not str(node[id_]).startswith("#"):
            return node  # the pointers in there begin there
        copied = with_subschemas(node, changed)
        for keyword in ("$ref", "$dynamicRef"):
            if isinstance(reference := copied.get(keyword), str):
                copied[keyword] = _longer(reference, address)
        return copied

    return with_subschemas(outer, changed)


def _longer(reference: str, address: str) -> str:
    document, _, fragment = reference.partition("#")
    pointer = unquote(fragment)
    if document not in ("", address) or (pointer and not pointer.startswith("/")):
        return reference  # elsewhere, or a name
    if pointer and pointer.split("/")[1] in DEFINITIONS:
        return reference
    return f"#/properties/{KEY}{fragment}"
