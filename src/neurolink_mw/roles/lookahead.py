"""A function of whole texts, applied to a text that comes in pieces, with the same result for every way to cut it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from inspect import iscoroutine
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
        if iscoroutine(made):
            made.close()  # nobody will await it
        raise refuse(made)
    return made


class Lookahead(ABC):
    """One block of text on its way through what rewrites it. reach: how far a match reaches, in characters: the longest
    match plus the context around it that decides it.

    Text waits until `2 * reach` characters are there, and then for a place where it can be cut. Where there is none,
    the rest waits for the end of the block. `changed`: something became another text.
    """

    __slots__ = ("_held", "_length", "_next", "_reach", "changed")

    def __init__(self, reach: int) -> None:
        self._reach = reach
        self._next = 2 * reach
        self._held: list[str] = []
        self._length = 0
        self.changed = False

    def delta(self, text: str) -> str:
        """One more piece. Returns what may leave now."""
        self._held.append(text)
        self._length += len(text)
        if self._length < self._next:
            return ""
        buffer = "".join(self._held)
        cut, made = self._leaving(buffer)
        if not cut:
            self._held = [buffer]
            self._next = 2 * len(buffer)  # so that a text without one costs no more than a few looks at all of it
            return ""
        self._held, self._length = [buffer[cut:]], len(buffer) - cut
        self._next = 2 * self._reach
        return made

    def end(self) -> str:
        """The block is over. Returns what was held."""
        text = "".join(self._held)
        self._held, self._length = [], 0
        return self._rewritten(text)

    def _places(self, buffer: str) -> range:
        """Where a text may be cut, the best place first: at least `reach` before its end, and within reach of that."""
        last = len(buffer) - self._reach
        return range(last, max(0, last - 2 * self._reach), -1)

    @abstractmethod
    def _leaving(self, buffer: str) -> tuple[int, str]:
        """Where the text can be cut, and what becomes of what is before; 0 where there is no such place."""

    @abstractmethod
    def _rewritten(self, text: str) -> str:
        """What becomes of the last of a block."""


class FunctionLookahead(Lookahead):
    """Through `fn`, of which nothing else is known. refuse: the error for what `fn` returned, where it is no text.

    The text is cut where `fn` changes nothing within `reach` on either side, so that no match touches the cut, and
    where the two halves by themselves become what the whole becomes.
    """

    __slots__ = ("_fn", "_refuse")

    def __init__(self, fn: Callable[[str], str], reach: int, refuse: Callable[[object], Exception]) -> None:
        super().__init__(reach)
        self._fn = fn
        self._refuse = refuse

    def _leaving(self, buffer: str) -> tuple[int, str]:
        whole = transformed(self._fn, buffer, self._refuse)
        for cut in self._places(buffer):
            made = self._half(buffer, whole, cut)
            if made is not None:
                self.changed = self.changed or made != buffer[:cut]
                return cut, made
        return 0, ""

    def _half(self, buffer: str, whole: str, cut: int) -> str | None:
        """What becomes of the text before a cut; None where it cannot be cut there."""
        fn, head, tail = self._fn, buffer[:cut], buffer[cut:]
        if whole == buffer:
            return head if fn(tail) == tail else None
        around = buffer[max(0, cut - self._reach) : cut + self._reach]
        if self._reach > 1 and fn(around) != around:  # what goes by single characters can be cut anywhere
            return None
        made = fn(head)
        return made if made + fn(tail) == whole else None

    def _rewritten(self, text: str) -> str:
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
