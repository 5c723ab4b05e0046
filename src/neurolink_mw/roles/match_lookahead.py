"""Replacing the matches of a pattern in a text that comes in pieces, with the same result for every way to cut it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Repl = str | Callable[[re.Match[str]], str]


class MatchLookahead:
    """One block of text. reach: see `reach_of`. `delta`, `end` and `changed` are those of `Lookahead`.

    A pattern says more than a function of texts: where its matches are. So the text is cut outside of them, where what
    is left has the same matches by itself; and each match is replaced once.
    """

    __slots__ = ("_held", "_length", "_next", "_pattern", "_reach", "_repl", "changed")

    def __init__(self, pattern: re.Pattern[str], repl: Repl, reach: int) -> None:
        self._pattern = pattern
        self._repl = repl
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
        matches = list(self._pattern.finditer(buffer))
        cut = self._place_to_cut(buffer, [match.span() for match in matches])
        if not cut:
            self._held = [buffer]
            self._next = 2 * len(buffer)  # so that a text without one costs no more than a few looks at all of it
            return ""
        self._held, self._length = [buffer[cut:]], len(buffer) - cut
        self._next = 2 * self._reach
        return self._replaced(buffer[:cut], [match for match in matches if match.start() < cut])

    def end(self) -> str:
        """The block is over. Returns what was held."""
        text = "".join(self._held)
        self._held, self._length = [], 0
        return self._replaced(text, list(self._pattern.finditer(text))) if text else ""

    def _place_to_cut(self, buffer: str, spans: Sequence[tuple[int, int]]) -> int:
        """The last place that is outside of all matches, at least `reach` before the end, and leaves a rest with the
        same matches; 0 if there is none within reach."""
        last = len(buffer) - self._reach
        for cut in range(last, max(0, last - 2 * self._reach), -1):
            if any(start < cut < end for start, end in spans):
                continue
            rest = [(start - cut, end - cut) for start, end in spans if start >= cut]
            if [match.span() for match in self._pattern.finditer(buffer[cut:])] == rest:
                return cut
        return 0

    def _replaced(self, text: str, matches: Sequence[re.Match[str]]) -> str:
        if not matches:
            return text
        out: list[str] = []
        at = 0
        for match in matches:
            made = match.expand(self._repl) if isinstance(self._repl, str) else self._repl(match)
            self.changed = self.changed or made != match[0]
            out += (text[at : match.start()], made or "")  # None is nothing, as for `re.sub`
            at = match.end()
        return "".join((*out, text[at:]))
