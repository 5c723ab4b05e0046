"""Requests of Messages in a line each."""

from __future__ import annotations

from typing import Any

from neurolink_mw.testing.wire.anthropic_rules import faults

Json = dict[str, Any]

CACHED: Json = {"cache_control": {"type": "ephemeral"}}
CACHED_LONG: Json = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def tool(name: str = "look", **more: object) -> Json:
    return {"name": name, "input_schema": {"type": "object"}, **more}


def text(content: str = "q", **more: object) -> Json:
    return {"type": "text", "text": content, **more}


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks) or [text()]}


def body(*messages: Json, **more: object) -> Json:
    return {"model": "m", "max_tokens": 4096, "messages": list(messages) or [user()], **more}


def only_fault(request: Json, **how: Any) -> str:
    """The one breach there is."""
    [fault] = faults(request, **how)
    return fault
