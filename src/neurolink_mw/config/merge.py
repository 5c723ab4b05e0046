"""Laying configurations over each other: defaults, then the file, then code, then the call. The later one wins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .schema import normal


def merge(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """`upper` over `lower`. Mappings are merged at every depth, middlewares by id, other lists are replaced.

    A middleware that both name keeps its place in the list; one that only `upper` names comes last.
    """
    lower, upper = normal(lower), normal(upper)
    merged = _deep(lower, upper)
    if isinstance(lower.get("middlewares"), list) and isinstance(upper.get("middlewares"), list):
        merged["middlewares"] = _by_id(lower["middlewares"], upper["middlewares"])
    return merged


def _deep(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(lower)
    for key, value in upper.items():
        below = merged.get(key)
        merged[key] = _deep(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged


def _by_id(lower: list[Any], upper: list[Any]) -> list[Any]:
    merged = list(lower)
    index = {member.get("id"): at for at, member in enumerate(lower) if isinstance(member, Mapping)}
    for member in upper:
        at = index.get(member.get("id")) if isinstance(member, Mapping) else None
        if at is None:
            merged.append(member)
        else:
            merged[at] = _deep(merged[at], member)
    return merged
