"""Replacing the matches of a pattern in a text that comes in pieces, with the same result for every way to cut it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from .lookahead import Lookahead

Repl = str | Callable[[re.Match[str]], str]


class MatchLookahead(Lookahead):
    """Through a pattern, which says more than a function of texts: where its matches are. reach: see `reach_of`.

    So the text is cut outside of them, where what is left has the same matches by itself; and each match is replaced
    once.
    """

    __slots__ = ("_pattern", "_repl")

    def __init__(self, pattern: re.Pattern[str], repl: Repl, reach: int) -> None:
        super().__init__(reach)
        self._pattern = pattern
        self._repl = repl

    def _leaving(self, buffer: str) -> tuple[int, str]:
        matches = list(self._pattern.finditer(buffer))
        cut = self._place_to_cut(buffer, [match.span() for match in matches])
        return cut, self._replaced(buffer[:cut], [match for match in matches if match.start() < cut])

    def _rewritten(self, text: str) -> str:
        return self._replaced(text, list(self._pattern.finditer(text))) if text else ""

    def _place_to_cut(self, buffer: str, spans: Sequence[tuple[int, int]]) -> int:
        """The first place outside of all matches that leaves a rest with the same matches; 0 if there is none."""
        for cut in self._places(buffer):
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
