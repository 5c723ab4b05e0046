"""Broken JSON text made whole: exactly where the fault is a plain one, by `json_repair` where it is not."""

from __future__ import annotations

import json
import re
from typing import Any, Final, SupportsIndex

import pydantic_core

from .plain import NotJson, plain

MOST_REPAIRED: Final = 200_000
"""How many characters a text may have that is given to `json_repair`."""

_STEPS_FOR_EACH: Final = 12  # what needs repair takes two to four a character; what is made to be slow, thousands
_STEPS: Final = 10_000
_TRAILING_COMMA: Final = re.compile(r'("(?:[^"\\]|\\.)*+")|,(?=[ \t\n\r]*[}\]])', re.S)


def parsed(text: str) -> tuple[Any] | None:
    """The value that is the text's, in a tuple, since it may be None itself; None for what is not JSON as it stands."""
    try:
        return (plain(pydantic_core.from_json(text, allow_inf_nan=False)),)
    except (ValueError, TypeError, NotJson):  # a TypeError: half a surrogate pair in the text itself
        return None


def completed(text: str) -> tuple[Any] | None:
    """The value of a text that breaks off, as far as it came; half a text in it stays, half a number or word goes.

    None for a text that is broken before its end, or does not break off.
    """
    try:
        # What is broken in the middle is left out by a partial reading, from there on; so that is not for such texts.
        if not _breaks_off(text):
            return None
        return (plain(pydantic_core.from_json(text, allow_inf_nan=False, allow_partial="trailing-strings")),)
    except (ValueError, TypeError, NotJson):
        return None


def _breaks_off(text: str) -> bool:
    try:
        pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError as error:
        return str(error).startswith("EOF while parsing")
    return False


class Repairer:
    """Repairs pieces of one text. size: of that, in characters; it bounds the time of all repairs together."""

    def __init__(self, size: int) -> None:
        self._meter = _Meter(_STEPS + _STEPS_FOR_EACH * size)

    def repaired(self, text: str) -> dict[str, Any] | list[Any] | None:
        """The object or array that a text, beginning with its bracket, was meant to be; None where none is found.

        Line breaks within texts and trailing commas are mended without a change to anything else. All other faults are
        left to `json_repair`, which guesses.
        """
        kind = dict if text.startswith("{") else list
        for made in (_mended(text), self._guessed(text)):
            if isinstance(made, kind) and made:
                return made
        return None

    def _guessed(self, text: str) -> Any:
        from json_repair import loads  # needed by few answers

        if len(text) > MOST_REPAIRED:
            return None
        try:
            return plain(loads(_Metered(text, self._meter), skip_json_loads=True))
        except Exception:  # whatever a hostile text brings it to, _TooSlow among that: then it is not repaired
            return None


def _mended(text: str) -> Any:
    """Python's own parser takes line breaks and tabs in texts, as models write them."""
    try:
        return plain(json.loads(_TRAILING_COMMA.sub(r"\1", text), strict=False))
    except (ValueError, NotJson, RecursionError):
        return None


class _TooSlow(Exception):
    """A repair that took more steps than its text is worth."""


class _Meter:
    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise _TooSlow


class _Metered(str):
    """A text that counts how often it is looked at.

    json_repair looks far ahead from every odd quote and bracket, so that some texts take it time that grows with the
    square of their length. It is plain Python, and cannot be stopped from outside.
    """

    __slots__ = ("_meter",)
    _meter: _Meter

    def __new__(cls, text: str, meter: _Meter) -> _Metered:
        made = super().__new__(cls, text)
        made._meter = meter
        return made

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        found = super().__getitem__(key)
        self._meter.take(len(found))
        return found
