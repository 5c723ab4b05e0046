"""Laying configurations over each other: defaults, then the file, then code, then the call. The later one wins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merge(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """`upper` over `lower`, both in their long form. Mappings are merged at every depth, middlewares by id, other lists
    are replaced.

    A middleware that both name keeps its place in the list; one that only `upper` names comes last. A model of
    another provider replaces the whole model: one provider's key must not reach another.
    """
    merged = _deep(lower, upper)
    if isinstance(lower.get("middlewares"), list) and isinstance(upper.get("middlewares"), list):
        merged["middlewares"] = _by_id(lower["middlewares"], upper["middlewares"])
    below, above = lower.get("model"), upper.get("model")
    if isinstance(below, Mapping) and isinstance(above, Mapping):
        provider = below.get("provider")
        if above.get("provider", provider) != provider:
            merged["model"] = above
    return merged


def _deep(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(lower)
    for key, value in upper.items():
        below = merged.get(key)
        merged[key] = _deep(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged


def _by_id(lower: list[Any], upper: list[Any]) -> list[Any]:
    merged = list(lower)
    index = {member["id"]: at for at, member in enumerate(lower)}
    for member in upper:
        at = index.get(member["id"])
        if at is None:
            merged.append(member)
        else:
            merged[at] = _deep(merged[at], member)
    return merged
