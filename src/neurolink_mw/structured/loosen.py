"""An answer that does not fit its schema for one of two plain reasons, made to fit.

Models write JSON as a text where the JSON itself belongs (`{"tags": "[1, 2]"}`), and put their answer under a key of
their own (`{"answer": {…}}`, `[{…}]`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ..protocol import JSON
from ..protocol.tokens import json_text
from .check import SchemaChecker
from .keywords import Node
from .plain import plain
from .repair import parsed

DEEPEST: Final = 6
"""How many levels down texts are unpacked, and wrappers taken off."""

_MOST_INNER: Final = 1_000
_HERE: Final = ("allOf", "anyOf", "oneOf")
_IF: Final = ("if", "then", "else")


def loosened(value: JSON, checker: SchemaChecker) -> tuple[Any] | None:
    """The value, in a tuple, with texts unpacked, or what it wraps; None where that does not fit the schema either.

    Of several things in a wrapper that fit, the one whose JSON is longest.
    """
    unpacked = _unpacked(value, checker)
    if unpacked is not None:
        return (unpacked,)
    best: tuple[int, Any] | None = None
    for inner in _wrapped_in(value, _known_keys(checker.schema)):
        fitting = inner if not checker.misfits(inner, 1) else _unpacked(inner, checker)
        if fitting is not None and (best is None or size(fitting) > best[0]):
            best = size(fitting), fitting
    return None if best is None else (best[1],)


def _unpacked(value: JSON, checker: SchemaChecker) -> Any:
    """The value with the texts that do not fit parsed as JSON, once and no further; None where that does not help."""
    places = [place for place in checker.misfits(value) if len(place) <= DEEPEST]
    for chosen in (_texts_at(value, places), _texts_below(value, places)):
        if chosen:
            changed = _with(value, chosen)
            if not checker.misfits(changed, 1):
                return changed
    return None


def _texts_at(value: JSON, places: list[tuple[str | int, ...]]) -> dict[tuple[str | int, ...], Any]:
    found = {}
    for place in places:
        at = _at(value, place)
        if isinstance(at, str) and (inner := parsed(at)) is not None:
            found[place] = inner[0]
    return found


def _texts_below(value: JSON, places: list[tuple[str | int, ...]]) -> dict[tuple[str | int, ...], Any]:
    """All texts that are objects or arrays, below a place that fits none of several forms, which says no more."""
    found = {}
    pending = [(place, _at(value, place)) for place in places]
    while pending:
        place, at = pending.pop()
        if isinstance(at, str):
            inner = parsed(at)
            if inner is not None and isinstance(inner[0], dict | list):
                found[place] = inner[0]
        elif isinstance(at, dict | list) and len(place) < DEEPEST:
            steps: Any = at.items() if isinstance(at, dict) else enumerate(at)
            pending += [((*place, step), below) for step, below in steps]
    return found


def _at(value: Any, place: tuple[str | int, ...]) -> Any:
    """What is at a place of a value; None where that is the name of a key, which has a place of its own in no value."""
    for step in place:
        within = isinstance(value, dict) if isinstance(step, str) else isinstance(value, list)
        if not within or (isinstance(step, str) and step not in value):
            return None
        value = value[step]
    return value


def _with(value: JSON, changes: dict[tuple[str | int, ...], Any]) -> Any:
    if () in changes:
        return changes[()]
    changed = plain(value)
    for place, inner in changes.items():
        at = changed
        for step in place[:-1]:
            at = at[step]
        at[place[-1]] = inner
    return changed


def _wrapped_in(value: JSON, known: frozenset[str] | None) -> Iterator[Any]:
    """The objects and arrays that a value may wrap: the items of arrays, and what is in objects with none of the keys
    that the schema knows. Beneath such a key is a part of an answer, which must not pass for the whole."""
    pending: list[tuple[int, Any]] = [(0, value)] if isinstance(value, dict | list) else []
    left = _MOST_INNER
    while pending and left:
        depth, at = pending.pop(0)
        if isinstance(at, dict):
            inner = list(at.values()) if known is not None and known.isdisjoint(at) else []
        else:
            inner = at
        for item in inner[:left]:
            left -= 1
            if isinstance(item, dict | list):
                yield item
                if depth + 1 < DEEPEST:
                    pending.append((depth + 1, item))


def _known_keys(schema: object) -> frozenset[str] | None:
    """The keys that a schema names for the value itself. None where it has words for others too."""
    keys: set[str] = set()
    seen: set[int] = set()
    pending = [schema]
    while pending:
        node = pending.pop()
        if not isinstance(node, dict) or id(node) in seen:
            continue
        seen.add(id(node))
        if "patternProperties" in node or isinstance(node.get("additionalProperties"), dict):
            return None
        keys.update(node.get("properties", ()))
        keys.update(key for key in node.get("required", ()) if isinstance(key, str))
        pending += [below for keyword in _HERE for below in node.get(keyword, ())]
        pending += [node.get(keyword) for keyword in _IF]
        pending.append(_target(schema, node.get("$ref")))
    return frozenset(keys)


def _target(root: Any, reference: object) -> Node | None:
    """What a plain pointer within the schema leads to."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    at: Any = root
    for token in reference[1:].split("/")[1:]:
        at = at.get(token.replace("~1", "/").replace("~0", "~")) if isinstance(at, dict) else None
    return at if isinstance(at, dict) else None


def size(value: object) -> int:
    """How long its canonical JSON text is."""
    return len(json_text(value))
