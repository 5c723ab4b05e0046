"""Words that several messages share."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches


def did_you_mean(name: str, allowed: Sequence[str]) -> str:
    """The end of a sentence about an unknown name: the likely one, or all that are allowed."""
    close = get_close_matches(name, allowed, n=1)
    listed = f" (allowed: {', '.join(allowed)})" if allowed else ""
    return f"; did you mean {close[0]!r}?{listed}" if close else listed
