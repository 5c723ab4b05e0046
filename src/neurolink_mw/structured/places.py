"""Naming a place within a JSON value, and quoting a short piece of one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

_PLAIN_KEY = re.compile(r"[A-Za-z_$][\w$-]*", re.ASCII)
_KEY = 60
_QUOTED = 200


def place(root: str, path: Iterable[str | int]) -> str:
    """A place as a reader writes it: `input.items[2].name`, and `input["a b"]` for a key that is no plain word."""
    written = root
    for step in path:
        if isinstance(step, str) and len(step) <= _KEY and _PLAIN_KEY.fullmatch(step):
            written += f".{step}"
        else:
            written += f"[{step if isinstance(step, int) else quoted(step, _KEY)}]"
    return written


def quoted(value: object, limit: int = _QUOTED) -> str:
    """A JSON value as JSON text, cut off at `limit` characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit else f"{text[:limit]}…"


def listed(values: Sequence[object], limit: int = 20) -> str:
    """Some JSON values, with a comma between them; of many only the first ones."""
    shown = ", ".join(quoted(value, _KEY) for value in values[:limit])
    return shown if len(values) <= limit else f"{shown} and {len(values) - limit} more"
