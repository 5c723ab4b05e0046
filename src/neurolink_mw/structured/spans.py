"""Where, in a text that has JSON somewhere in it, objects and arrays may stand."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_FENCE: Final = r"^[ \t]*+``` | ```\s*+\Z"
_QUOTED: Final = re.compile(rf'["{{}}\[\]] | {_FENCE}', re.M | re.X)
_BRACKETS: Final = re.compile(rf"[{{}}\[\]] | {_FENCE}", re.M | re.X)
_CLOSING_FENCE: Final = re.compile(r"^[ \t]*+```[ \t]*+$ | ```\s*+\Z", re.M | re.X)
_IN_STRING: Final = re.compile(r'"|\\.', re.S)
_OPENING: Final = {"}": "{", "]": "["}
_LOOK: Final = 1_000

# What prose puts into brackets does not begin like this.
_BLANK: Final = r"(?: \s | //[^\n]*\n | /\*.*?\*/ )*+"
_KEY: Final = r"""(?: "(?:[^"\\]|\\.)*+" | '(?:[^'\\]|\\.)*+' | [“”][^“”]*+[“”] | [\w$.-]++ )"""
_CUT_KEY: Final = r"""(?: "(?:[^"\\]|\\.)*+ | '(?:[^'\\]|\\.)*+ ) \\? \Z"""
_LIKE_OBJECT: Final = re.compile(
    rf"\{{ {_BLANK} (?: {_KEY} {_BLANK} (?: : | \Z ) | {_CUT_KEY} | \}}? \Z )", re.S | re.X
)
_LITERAL: Final = r"""(?: (?:true|false|null|True|False|None)\b | (?:tru?|t|fa?|fals?|nu?|nul)\Z )"""
_LIKE_ARRAY: Final = re.compile(rf"""\[ {_BLANK} (?: ["'“”{{\[] | -?\d | {_LITERAL} | [-\]]?\Z )""", re.S | re.X)


class Span(NamedTuple):
    """start, end: in the text. closed: it ends with its own bracket; else it breaks off with the text."""

    start: int
    end: int
    closed: bool = True


def spans(text: str, *, quotes: bool) -> list[Span]:
    """The outermost pairs of brackets in a text, and opening ones without their end, should what follows them look like
    JSON; in order. A line that begins with a code fence ends what is open. Takes time in proportion to the text.

    quotes: brackets and fences between double quotes do not count, as in JSON. Where a stray quote spoils that, it
    helps to say no.
    """
    opened: list[tuple[str, int, int]] = []  # the bracket, its place, and how many spans had been found before it
    counts = {"{": 0, "[": 0}
    found: list[Span] = []
    at = 0
    pattern = _QUOTED if quotes else _BRACKETS
    while match := pattern.search(text, at):
        sign, at = match[0], match.end()
        if sign == '"':
            if not opened:
                continue
            end = _past_string(text, at)
            if end is None:
                # It breaks off. A text may have a fence in it, but one that is a line by itself ends the whole.
                closing = _CLOSING_FENCE.search(text, at)
                end, pattern = closing.start() if closing else len(text), _BRACKETS
            at = end
        elif sign in counts:
            opened.append((sign, match.start(), len(found)))
            counts[sign] += 1
        elif sign not in _OPENING:
            _break_off(text, match.start(), opened, found)
            opened, counts = [], dict.fromkeys(counts, 0)
        elif counts[opening := _OPENING[sign]]:
            while (last := opened.pop())[0] != opening:
                counts[last[0]] -= 1  # never closed
            counts[opening] -= 1
            del found[last[2] :]
            found.append(Span(last[1], at))
    _break_off(text, len(text), opened, found)
    return found


def _break_off(text: str, end: int, opened: list[tuple[str, int, int]], found: list[Span]) -> None:
    """Put the outermost bracket that is still open in place of the pairs within it."""
    for _, start, before in opened:
        if looks_like_json(text, start):
            found[before:] = [Span(start, end, closed=False)]
            return


def looks_like_json(text: str, start: int) -> bool:
    """Whether what follows an opening bracket could be the beginning of an object or array, well-formed or nearly."""
    pattern = _LIKE_OBJECT if text[start] == "{" else _LIKE_ARRAY
    return pattern.match(text[start : start + _LOOK]) is not None


def _past_string(text: str, at: int) -> int | None:
    while match := _IN_STRING.search(text, at):
        at = match.end()
        if match[0] == '"':
            return at
    return None
