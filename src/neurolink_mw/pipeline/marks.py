"""Our own entries in provider metadata: by these a turn, and those around it, know its calls."""

from __future__ import annotations

from collections.abc import Mapping

from ..protocol import JSONObject, ToolCall, ToolResult

MARK = "neurolink_mw"
"""The key of our entries."""


def entry(metadata: JSONObject | None) -> JSONObject:
    """Our entry in some metadata; empty where there is none."""
    found = (metadata or {}).get(MARK)
    return found if isinstance(found, Mapping) else {}


def with_entry(metadata: JSONObject | None, more: JSONObject) -> JSONObject:
    """Metadata with more in our entry."""
    return {**(metadata or {}), MARK: {**entry(metadata), **more}}


def without_entry(metadata: JSONObject | None) -> JSONObject | None:
    """Metadata as it goes back to the provider."""
    if metadata is None or MARK not in metadata:
        return metadata
    return {key: value for key, value in metadata.items() if key != MARK} or None


def is_of_a_turn(part: ToolCall | ToolResult) -> bool:
    """Whether a turn shows this call or result as one that it runs, or ran, itself."""
    return "step" in entry(part.provider_metadata)
