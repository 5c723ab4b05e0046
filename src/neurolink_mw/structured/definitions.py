"""The definitions that a schema's `$ref`s lead to: who points at whom, and which of them cannot be inlined."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from .drafts import BEFORE_2019, Draft
from .keywords import DEFINITIONS, NESTING, Node, subschemas
from .places import listed, quoted
from .plain import SCHEMA_DEPTH
from .reach import bottom_up, recursive
from .references import References, absolute

_DEEPEST = SCHEMA_DEPTH - 10
"""How many levels of JSON there may be with everything inlined, so that what is made of that is a schema still."""

_LINK = 2
"""How many levels a reference may add by itself: an `allOf` and a place in it."""

_DYNAMIC = ("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor")


class Dynamic(Exception):
    """A schema whose references depend on how one came to them."""


@dataclass(slots=True, eq=False)
class Definition:
    """A schema that is pointed at, or the root.

    uses: its references, each as the depth within it and the id() of what is pointed at. size: how many JSON values it
    has, without what its references lead to. depth: how many levels, with what is inlined in it.
    """

    node: Node
    base: str
    name: str
    uses: list[tuple[int, int]] = field(default_factory=list)
    size: int = 0
    depth: int = 0


class Definitions:
    """What can be reached from the root. Dynamic for a schema with references that are not plain ones.

    root: the schema, which must stay as it is while this is used. links: by the id() of each schema that has a `$ref`,
    what that leads to: a schema, a bool, or the text that is to stay. dangling: those texts.
    """

    def __init__(self, root: Node, draft: Draft) -> None:
        self.root = root
        self.links: dict[int, Node | bool | str] = {}
        self.dangling: set[str] = set()
        self.warnings: tuple[str, ...] = ()
        self._draft = draft
        self._references = References(root, draft)
        self._all = {id(root): Definition(root, "", "")}
        pending = [*self._all.values()]
        while pending:
            pending += self._read(pending.pop())
        if self._references.has_addresses and any(not text.startswith("#") for text in self.dangling):
            raise Dynamic("it has an $id, and a $ref to another document, which may point back")

    def kept(self, most_values: int) -> list[Definition]:
        """Those that must stay definitions: the recursive ones, the root included, and those that are too large."""
        edges = {key: [target for _, target in one.uses] for key, one in self._all.items()}
        order = bottom_up(edges)
        kept = recursive(edges)
        deep: list[str] = []
        for key in order:
            one = self._all[key]
            for at, to in one.uses:
                below = at + _LINK + self._all[to].depth
                if to not in kept and below > _DEEPEST:
                    kept.add(to)
                    deep.append(self._all[to].name)
                elif to not in kept:
                    one.depth = max(one.depth, below)
        if deep:
            self._warn(f"definitions stay that would be nested too deeply: {listed(deep)}")
        if self._size(order, kept) > most_values:
            times = Counter(to for following in edges.values() for to in following)
            often = [key for key in order if times[key] > 1 and key not in kept]
            if often:
                kept.update(often)
                names = listed([self._all[key].name for key in often])
                self._warn(f"definitions stay, for else the schema would have more than {most_values} values: {names}")
        return [one for key, one in self._all.items() if key in kept]

    def _size(self, order: list[int], kept: set[int]) -> int:
        sizes: dict[int, int] = {}
        for key in order:
            one = self._all[key]
            sizes[key] = one.size + sum(sizes[to] for _, to in one.uses if to not in kept)
        return sum(sizes[key] for key in {*kept, id(self.root)})

    def _read(self, one: Definition) -> list[Definition]:
        """Read the references in a definition. Returns the definitions that were not known before."""
        found: list[Definition] = []
        pending = [(0, one.node, one.base)]
        while pending:
            depth, node, base = pending.pop()
            base = self._references.base_of(node, base)
            self._refuse_dynamic(node)
            one.depth = max(one.depth, depth)
            one.size += 1 + sum(_count(value) for key, value in node.items() if key not in NESTING)
            reference = node.get("$ref")
            if isinstance(reference, str):
                found += self._follow(one, depth, node, base, reference)
                if self._draft in BEFORE_2019:
                    continue
            reached = {key: value for key, value in node.items() if key not in DEFINITIONS}
            pending += [(depth + levels, below, base) for levels, below in subschemas(reached)]
        return found

    def _follow(self, one: Definition, depth: int, node: Node, base: str, reference: str) -> list[Definition]:
        target = self._references.resolve(base, reference)
        if target is None:
            self._warn(f"the $ref {quoted(reference)} leads nowhere within the schema, and stays")
            self.links[id(node)] = text = reference if reference.startswith("#") else absolute(base, reference)
            self.dangling.add(text)
            return []
        self.links[id(node)] = target.schema
        if isinstance(target.schema, bool):
            return []
        key = id(target.schema)
        one.uses.append((depth, key))
        if key in self._all:
            return []
        self._all[key] = found = Definition(target.schema, target.base, target.name)
        return [found]

    def _refuse_dynamic(self, node: Node) -> None:
        for keyword in _DYNAMIC:
            if keyword in node:
                raise Dynamic(f"it uses {keyword}")
        if "$schema" in node and node["$schema"] != self.root.get("$schema"):
            raise Dynamic("a part of it is in another draft")

    def _warn(self, words: str) -> None:
        if words not in self.warnings:
            self.warnings = (*self.warnings, words)


def _count(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_count, value.values()))
    return 1 + sum(map(_count, value)) if isinstance(value, list) else 1
