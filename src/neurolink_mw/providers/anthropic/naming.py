"""Member names: snake_case on the wire, camelCase in metadata, results and options. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...protocol import JSON
from ...protocol.serialization import camel_case

_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")


def camel_keys(native: object) -> JSON:
    """A JSON value with the names of all members in camelCase, however deep."""
    if isinstance(native, Mapping):
        return {camel_case(str(name)): camel_keys(item) for name, item in native.items()}
    return [camel_keys(item) for item in native] if isinstance(native, list | tuple) else native  # type: ignore[return-value]  # JSON


def snake_keys(shown: object) -> JSON:
    """A JSON value with the names of all members in snake_case: the way back, but for names such as `ttl_5m_max`."""
    if isinstance(shown, Mapping):
        return {snake_case(str(name)): snake_keys(item) for name, item in shown.items()}
    return [snake_keys(item) for item in shown] if isinstance(shown, list | tuple) else shown  # type: ignore[return-value]  # JSON


def snake_case(name: str) -> str:
    """`toolUseId` as `tool_use_id`."""
    return _CAPITAL.sub(lambda match: f"_{match.group(1).lower()}", name)
