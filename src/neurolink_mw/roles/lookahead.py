"""A function of whole texts, applied to a text that comes in pieces, with the same result for every way to cut it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class RewritingBlock(Protocol):
    """What rewrites one block: `delta(piece)` returns what may leave now, `end()` what was held. changed: something
    became another text."""

    changed: bool

    def delta(self, text: str) -> str: ...

    def end(self) -> str: ...


def transformed(fn: Callable[[str], str], text: str, refuse: Callable[[object], Exception]) -> str:
    """What `fn` makes of a text. refuse: the error for what is no text."""
    if not text:
        return text
    made: object = fn(text)
    if not isinstance(made, str):
        raise refuse(made)
    return made


class Lookahead:
    """One block of text on its way through `fn`. reach: how far a match of `fn` reaches, in characters: the longest
    match plus the context around it that decides it.

    Text waits until `2 * reach` characters are there. Then it is cut at the last place where the two halves by
    themselves become what the whole becomes, at least `reach` characters before the end, so that nothing to come can
    change what leaves. At the end of the block the rest goes through `fn`. `changed`: something became another text.
    """

    __slots__ = ("_fn", "_next", "_reach", "_refuse", "_text", "changed")

    def __init__(self, fn: Callable[[str], str], reach: int, refuse: Callable[[object], Exception]) -> None:
        self._fn = fn
        self._refuse = refuse
        self._reach = reach
        self._next = 2 * reach
        self._text = ""
        self.changed = False

    def delta(self, text: str) -> str:
        """One more piece. Returns what may leave now."""
        buffer = self._text = self._text + text
        if len(buffer) < self._next:
            return ""
        fn, reach = self._fn, self._reach
        whole = transformed(fn, buffer, self._refuse)
        last = len(buffer) - reach
        for cut in range(last, max(0, last - 2 * reach), -1):
            head, tail = buffer[:cut], buffer[cut:]
            if whole == buffer:  # nothing to change in sight, unless the cut makes it so
                made = head
                fits = fn(tail) == tail
            else:
                made = fn(head)
                fits = made + fn(tail) == whole
            if fits:
                self._text = tail
                self._next = 2 * reach
                self.changed = self.changed or made != head
                return made
        self._next = len(buffer) + reach  # no place to cut: look again when as much has come again
        return ""

    def end(self) -> str:
        """The block is over. Returns what was held."""
        text, self._text = self._text, ""
        made = transformed(self._fn, text, self._refuse)
        self.changed = self.changed or made != text
        return made


class Whole:
    """One block of text that is held to its end, and then given out in one piece."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def delta(self, text: str) -> str:
        self._pieces.append(text)
        return ""

    def end(self) -> str:
        return "".join(self._pieces)
