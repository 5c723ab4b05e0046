"""Words that several messages share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches


def did_you_mean(name: str, allowed: Sequence[str]) -> str:
    """The end of a sentence about an unknown name: the likely one, or all that are allowed."""
    close = get_close_matches(name, allowed, n=1)
    listed = f" (allowed: {', '.join(allowed)})" if allowed else ""
    return f"; did you mean {close[0]!r}?{listed}" if close else listed


def without_texts(message: str, given: object) -> str:
    """A message in which no text of the input stands: a validator of a plugin may quote what it refuses."""
    if isinstance(given, str):
        return message.replace(given, "...") if len(given) > 2 else message
    inner = given.values() if isinstance(given, Mapping) else given if isinstance(given, list | tuple | set) else ()
    for item in inner:
        message = without_texts(message, item)
    return message
