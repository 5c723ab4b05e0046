"""The text of an answer that comes as a tool's input: taken out of the wrapper `{"key": …}`, piece by piece."""

from __future__ import annotations

import re
from typing import Final

_BLANK: Final = " \t\n\r"
_STARTS: Final = frozenset('{["-0123456789tfn')
_IN_STRING: Final = re.compile(r'[^"\\]*')
_IN_CONTAINER: Final = re.compile(r'[^"{}\[\]]*')
_SCALAR: Final = re.compile(r"[^ \t\n\r,}\]]*")
_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_CLOSING: Final = re.compile(r"[ \t\n\r]*\}?[ \t\n\r]*")
_LONGEST_PREFIX: Final = 1_000  # blanks included; it is read anew with every piece


class AnswerText:
    """`feed(piece)` for each piece of the JSON text of an input, then `finish()`: each returns the text that may leave.

    key: of a wrapped root (`Wrapped.key`), whose value's text leaves as it comes; None: everything does. What does not
    begin as that object leaves unchanged, and so does what follows the value beyond the closing brace. However the text
    is cut into pieces, what leaves is the same when joined.
    """

    __slots__ = ("_closed", "_depth", "_escaped", "_held", "_in_string", "_prefix", "_state")

    def __init__(self, key: str | None) -> None:
        self._prefix = () if key is None else ("{", _quoted(key), ":")
        self._state = "plain" if key is None else "before"
        self._held = ""
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._closed = False

    def feed(self, piece: str) -> str:
        if self._state == "plain":
            return piece
        if self._state == "before":
            self._held += piece
            begin = self._value_start(self._held)
            if begin is None:
                return ""
            held, self._held = self._held, ""
            if begin < 0:
                self._state = "plain"
                return held
            self._state = "scalar" if held[begin] not in '{["' else "value"
            piece = held[begin:]
        if self._state == "after":
            return self._after(piece)
        end = self._scalar_end(piece) if self._state == "scalar" else self._value_end(piece)
        if end is None:
            return piece
        self._state = "after"
        return piece[:end] + self._after(piece[end:])

    def finish(self) -> str:
        """The input has ended. Returns what was held and is not the wrapper's end."""
        held, self._held = self._held, ""
        self._state = "plain"
        return "" if self._closed else held

    def _value_start(self, text: str) -> int | None:
        """Where the value begins; -1 where this is not the wrapper, None where that cannot be told yet."""
        at, end = 0, min(len(text), _LONGEST_PREFIX)
        untold = None if end < _LONGEST_PREFIX else -1
        for token in self._prefix:
            at = _past_blanks(text, at, end)
            if not text.startswith(token, at, end):
                return untold if token.startswith(text[at:end]) else -1
            at += len(token)
        at = _past_blanks(text, at, end)
        if at == end:
            return untold
        return at if text[at] in _STARTS else -1

    def _scalar_end(self, piece: str) -> int | None:
        match = _SCALAR.match(piece)
        assert match is not None  # it may match nothing, and so it always matches
        return match.end() if match.end() < len(piece) else None

    def _value_end(self, piece: str) -> int | None:
        """Past the closing bracket or quote of the value; None where the piece does not reach it."""
        at, length = 0, len(piece)
        while at < length:
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            match = (_IN_STRING if self._in_string else _IN_CONTAINER).match(piece, at)
            assert match is not None
            at = match.end()
            if at == length:
                break
            sign = piece[at]
            at += 1
            if sign == '"':
                self._in_string = not self._in_string
            elif sign == "\\":
                self._escaped = True
                continue
            else:
                self._depth += 1 if sign in "{[" else -1
            if not self._in_string and self._depth <= 0:
                return at
        return None

    def _after(self, piece: str) -> str:
        """Held as long as it may be the end of the wrapper."""
        self._held += piece
        if (_BLANKS if self._closed else _CLOSING).fullmatch(piece):
            self._closed = self._closed or "}" in piece
            return ""
        held, self._held = self._held, ""
        self._state = "plain"
        self._closed = False
        return held


def answer_text(input: str, key: str | None) -> str:
    """The text of a whole answer, out of the input of its tool: what `AnswerText` makes of it."""
    reader = AnswerText(key)
    return reader.feed(input) + reader.finish()


def _past_blanks(text: str, at: int, end: int) -> int:
    while at < end and text[at] in _BLANK:
        at += 1
    return at


def _quoted(key: str) -> str:
    return f'"{key}"'  # of a wrapped root: a plain word
