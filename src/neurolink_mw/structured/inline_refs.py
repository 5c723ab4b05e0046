"""`inline_refs`: a schema that stands for itself, with what its `$ref`s lead to put in their places."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..protocol import JSONObject
from .definitions import Definition, Definitions, Dynamic
from .drafts import ADDRESSES, BEFORE_2019, Draft, draft_of
from .keywords import ALONE, DEFINITIONS, VALIDATING, Node, subschemas, with_subschemas
from .places import listed
from .plain import plain, plain_schema

MOST_VALUES = 20_000
"""How many JSON values a schema may have that has everything inlined."""

_UNNAMEABLE = re.compile(r"[^A-Za-z0-9._-]")

_READ_OTHERWISE = frozenset(
    {
        *("prefixItems", "dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties"),
        *("minContains", "maxContains", "dependencies", "additionalItems", "if", "contentEncoding", "contentMediaType"),
    }
)
"""The keywords that drafts 6 to 2020-12 do not all read alike."""


@dataclass(frozen=True, slots=True)
class Inlined:
    """schema: the self-contained schema, an object always. warnings: a sentence for each thing that was left as it is,
    naming `$ref`s and definitions, and one on keywords without effect. complete: whether nothing was left."""

    schema: JSONObject
    warnings: tuple[str, ...] = ()
    complete: bool = True


def inline_refs(schema: JSONObject | bool, *, most_values: int = MOST_VALUES) -> Inlined:
    """The same schema without `$ref`s, as far as that is possible. It accepts the same values; the one given is not
    changed.

    - Pointers, anchors and `$id`s within the schema are resolved, and unused definitions dropped.
    - A definition that leads back to itself stays, in the root's `$defs`, and is pointed at; the root itself with `#`.
      So are those used more than once in a schema that would grow beyond `most_values` JSON values, and those that
      would be nested too deeply.
    - Annotations beside a `$ref` (`description`, `default`, …) win over those of what it leads to. Up to draft 7,
      other keywords beside it have no effect and go, with a warning where the schema does not say its draft; later
      they apply too, and are joined, by `allOf` where need be.
    - `$schema` goes, unless the schema would be read otherwise without it, or a `$ref` is left; where the schema would
      be, and did not say its draft, it is told.
    - A `$ref` that leads nowhere within the schema stays, with a warning. Nothing is fetched.
    - A schema with `$dynamicRef` or `$recursiveRef`, or with parts in another draft, stays whole, with a warning.

    ConfigError for what is no schema, is nested more than 100 levels deep, or is in a draft that is not known here.
    """
    root = plain_schema(schema)
    if isinstance(root, bool):
        return Inlined({} if root else {"not": {}})
    draft = draft_of(root)
    try:
        definitions = Definitions(root, draft)
    except Dynamic as error:
        return Inlined(root, (f"the schema is left as it is: {error}",), complete=False)
    inliner = _Inliner(definitions, draft, definitions.kept(most_values))
    made = inliner.whole(root)
    return Inlined(made, (*definitions.warnings, *inliner.warnings()), complete=not definitions.warnings)


class _Inliner:
    def __init__(self, definitions: Definitions, draft: Draft, kept: Iterable[Definition]) -> None:
        self._definitions = definitions
        self._draft = draft
        self._pointers: dict[int, str] = {}  # to the definitions that stay, by their ids
        self._kept: dict[str, Definition] = {}  # by those pointers
        self._ignored: set[str] = set()  # keywords beside a $ref, which the draft does not read
        for one in kept:
            self._keep(one)

    def whole(self, root: Node) -> Node:
        made: Any = self._rewritten(root)
        # Where the root only points at a definition, it becomes a copy of it: an object at the root, as providers ask.
        opened: set[str] = set()
        while isinstance(made, dict) and made.get("$ref") in self._kept and made["$ref"] not in opened:
            pointer = made.pop("$ref")
            opened.add(pointer)
            made = _joined(self._rewritten(self._kept[pointer].node), made)
        if isinstance(made, bool):
            made = {} if made else {"not": {}}
        bodies = {pointer.removeprefix("#/$defs/"): self._rewritten(one.node) for pointer, one in self._kept.items()}
        if bodies:
            made["$defs"] = bodies
        if ("$schema" in root and self._definitions.dangling) or _is_read_otherwise(made, self._draft):
            made = {"$schema": root.get("$schema", ADDRESSES[self._draft]), **made}
        copied: Node = plain(made)  # data is shared between the places where one definition was put
        return copied

    def warnings(self) -> tuple[str, ...]:
        if not self._ignored or "$schema" in self._definitions.root:
            return ()
        words = f"without effect beside a $ref, and dropped: {listed(sorted(self._ignored))}"
        return (f"{words}. A schema without $schema and $defs is read as draft 7",)

    def _keep(self, one: Definition) -> None:
        if one.node is self._definitions.root:
            self._pointers[id(one.node)] = "#"
            return
        name = stem = _UNNAMEABLE.sub("_", one.name) or "schema"
        number = 1
        while (pointer := f"#/$defs/{name}") in self._kept or pointer in self._definitions.dangling:
            number += 1
            name = f"{stem}_{number}"
        self._kept[pointer] = one
        self._pointers[id(one.node)] = pointer

    def _rewritten(self, node: Node) -> Node | bool:
        link = self._definitions.links.get(id(node))
        if link is not None and self._draft in BEFORE_2019:
            self._ignored.update(key for key in node if key in VALIDATING and key not in DEFINITIONS)
            node = {key: value for key, value in node.items() if key not in VALIDATING}
        node = {key: value for key, value in node.items() if not self._names(key, value)}
        body = with_subschemas(node, self._rewritten)
        if link is None:
            return body
        del body["$ref"]
        if isinstance(link, str):
            return {"$ref": link, **body}
        if isinstance(link, bool):
            return _joined(link, body)
        pointer = self._pointers.get(id(link))
        return _joined(self._rewritten(link), body) if pointer is None else {"$ref": pointer, **body}

    def _names(self, key: str, value: object) -> bool:
        """Whether a keyword only serves to point at schemas."""
        if key == "$anchor":
            return self._draft not in BEFORE_2019
        if key == ("id" if self._draft == "draft-04" else "$id"):
            return isinstance(value, str)
        return key in DEFINITIONS or key == "$schema"


def _joined(target: Node | bool, beside: Node) -> Node | bool:
    """A schema that accepts what both accept. `beside` stood beside the reference to the other."""
    if isinstance(target, bool):
        return beside if target else False
    if all(key not in VALIDATING or (key in ALONE and key not in target) for key in beside):
        return {**target, **beside}
    # Keywords look at their neighbours (additionalProperties at properties), so each side keeps to itself.
    return {**beside, "allOf": [*beside.get("allOf", ()), target]}


def _is_read_otherwise(schema: Node, draft: Draft) -> bool:
    """Whether a schema in a draft would be read otherwise where it does not say so."""
    if draft == draft_of(schema) or draft == "draft-04":
        return draft == "draft-04"
    pending = [schema]
    while pending:
        node = pending.pop()
        if not _READ_OTHERWISE.isdisjoint(node) or ("$ref" in node and not VALIDATING.isdisjoint(node)):
            return True
        pending += [below for _, below in subschemas(node)]
    return False
