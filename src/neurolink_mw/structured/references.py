"""What a `$ref` within a schema leads to: pointers, anchors, and schemas with an `$id` of their own."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from .drafts import BEFORE_2019, Draft
from .keywords import Node, subschemas

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


class Target(NamedTuple):
    """schema: what is pointed at. base: the address against which the references in it are read. name: what to call it
    where it needs a name."""

    schema: Node | bool
    base: str
    name: str


class References:
    """All that can be pointed at in a schema. `root` is not changed while this is used: its parts are known by id()."""

    def __init__(self, root: Node, draft: Draft) -> None:
        self._draft = draft
        self._bases: dict[int, str] = {}  # of the schemas that have one of their own
        self._resources: dict[str, Node] = {}
        self._anchors: dict[tuple[str, str], Node] = {}
        pending = [(root, "")]
        self._resources[""] = root
        while pending:
            node, base = pending.pop()
            base = self._enter(node, base)
            pending += [(below, base) for _, below in subschemas(node)]

    @property
    def has_addresses(self) -> bool:
        """Whether other documents can point into this one."""
        return len(self._resources) > 1

    def base_of(self, node: Node, around: str) -> str:
        """The base of a schema that stands within one whose base is `around`."""
        return self._bases.get(id(node), around)

    def resolve(self, base: str, reference: str) -> Target | None:
        """What a reference leads to within this schema, if anything."""
        address, _, fragment = absolute(base, reference).partition("#")
        resource = self._resources.get(address)
        if resource is None:
            return None
        fragment = unquote(fragment)  # first of all: a pointer's own ~1 and ~0 may be written with percent signs
        base = self.base_of(resource, address)
        if not fragment:
            return Target(resource, base, address.rstrip("/").rpartition("/")[2])
        if fragment.startswith("/"):
            return self._point(resource, base, fragment)
        anchored = self._anchors.get((address, fragment))
        return None if anchored is None else Target(anchored, self.base_of(anchored, base), fragment)

    def _enter(self, node: Node, base: str) -> str:
        old = self._draft in BEFORE_2019
        id_ = node.get("id" if self._draft == "draft-04" else "$id")
        if isinstance(id_, str) and not (old and "$ref" in node):  # beside a $ref, old drafts read nothing else
            address, fragment = urldefrag(id_)
            if address:
                base = absolute(base, address)
                self._bases[id(node)] = base
                self._resources.setdefault(base, node)
            if fragment and old:
                self._anchors.setdefault((base, fragment), node)
        for keyword in () if old else ("$anchor", "$dynamicAnchor"):
            if isinstance(anchor := node.get(keyword), str):
                self._anchors.setdefault((base, anchor), node)
        return base

    def _point(self, at: object, base: str, pointer: str) -> Target | None:
        name = ""
        for token in pointer.split("/")[1:]:
            name = token.replace("~1", "/").replace("~0", "~")
            if isinstance(at, dict) and name in at:
                at = at[name]
            elif isinstance(at, list) and _INDEX.fullmatch(name) and int(name) < len(at):
                at = at[int(name)]
            else:
                return None
            if isinstance(at, dict):
                base = self.base_of(at, base)
        return Target(at, base, name) if isinstance(at, dict | bool) else None


def absolute(base: str, reference: str) -> str:
    """A reference as its address. `urljoin` alone loses the base of a fragment when that is a `urn:`."""
    if reference.startswith("#"):
        return base + reference
    try:
        return urljoin(base, reference)
    except ValueError:  # no address at all, such as "http://["
        return reference
