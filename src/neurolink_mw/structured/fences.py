"""Markdown's code fences in a model's answer, which may share a line with what is in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

FENCE: Final = "```"

_OPENING: Final = r"`{3,}+ (?: [\w+-]*+ (?=[\s{\[\"]) )?+"
_OPENS: Final = re.compile(_OPENING, re.X)
# A JSON text may have a fence in it. Not so the rest, where the next fence is the end.
_FENCED: Final = re.compile(
    rf'(?<!`) {_OPENING} (?: \s*+ (?P<text> "(?:[^"\\]|\\.)*+" ) \s*+ | (?P<rest> .*? ) ) `{{3,}}', re.S | re.X
)


def without_opening(text: str) -> str | None:
    """What follows the fence that a text begins with; None where it begins with none."""
    opening = _OPENS.match(text)
    return None if opening is None else text[opening.end() :]


def fenced(text: str) -> Iterator[str]:
    """What is in each code fence, from its beginning to the next fence. Takes time in proportion to the text."""
    for one in _FENCED.finditer(text):
        yield one["text"] or one["rest"]
