"""`coerce_json`: the JSON that a model meant, out of the text that it wrote."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from ..protocol import JSON, JSONObject
from ..protocol.tokens import json_text
from .check import SchemaChecker
from .fences import FENCE, fenced, without_opening
from .loosen import loosened, size
from .repair import Repairer, completed, parsed
from .spans import looks_like_json, spans

MOST_SEARCHED: Final = 250_000
"""How many characters a text may have in which JSON is searched for. A longer one is JSON
as a whole or in a code fence, or none."""

_MOST_CANDIDATES: Final = 5_000
_ROOT: Final = "answer"
_TIMES: Final = 8  # a text is read so often at most, whatever brackets are in it
_AROUND: Final = " \t\n\r\ufeff\u200b"


@dataclass(frozen=True, slots=True)
class Coerced:
    """What was found in a text.

    found: whether there was any JSON. value: it, None where nothing was found. text: its canonical JSON text; where
    nothing was found, the text as it was. repaired: the value does not stand in the text like that. truncated: the text
    breaks off within it, or it is known that the answer was cut. problems: why it does not fit the schema, or why
    there is none; sentences without content, as those of `SchemaChecker`.
    """

    found: bool
    value: JSON = field(repr=False)
    text: str = field(repr=False)
    repaired: bool = False
    truncated: bool = False
    problems: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether JSON was found, and fits the schema, should there be one."""
        return self.found and not self.problems


def coerce_json(
    text: str, schema: JSONObject | bool | SchemaChecker | None = None, *, truncated: bool = False
) -> Coerced:
    """The JSON in a model's answer, repaired where need be, and checked against a schema where there is one.

    The whole text is taken where it is JSON, or one code fence around it. Else objects and arrays are searched for: in
    fences, in prose, one that breaks off, one that is broken, one in a JSON string; a scalar only in fences. Of
    several that fit the schema the one whose JSON is longest is taken; where none fits, one without faults before one
    that needed repair, and of those the longest, with what is wrong with it in `problems`. What does not fit is also
    tried with texts that hold JSON unpacked, and without a wrapper of the model's own, and counts as repaired then.

    truncated: the answer is known to be cut (its finish reason is `length`).

    ConfigError for a broken schema. No text raises anything, and the time is in proportion to its length.
    """
    checker = schema if schema is None or isinstance(schema, SchemaChecker) else SchemaChecker(schema)
    search = _Search(text, checker, truncated)
    search.run()
    best = search.best
    if best is None:
        return Coerced(False, None, text, truncated=truncated, problems=(_why_not(text),))
    problems = () if best.fits or checker is None else checker.problems(best.value, root=_ROOT)
    cut = truncated or best.cut
    return Coerced(True, best.value, json_text(best.value), best.repaired, cut, problems)


@dataclass(frozen=True, slots=True)
class _Candidate:
    value: Any
    repaired: bool = False
    cut: bool = False
    fits: bool = True


class _Search:
    """best: what was found, after `run()`."""

    def __init__(self, text: str, checker: SchemaChecker | None, truncated: bool) -> None:
        self.best: _Candidate | None = None
        self._rank: tuple[bool, bool, bool, int] = False, False, False, 0
        self._text = text
        self._checker = checker
        self._truncated = truncated
        self._repairer = Repairer(min(len(text), MOST_SEARCHED))

    def run(self) -> None:
        text = self._text.strip(_AROUND)
        whole = parsed(text) or parsed(_out_of_fence(text))
        if whole is not None:
            self._take(whole[0])
            return
        for body in islice(fenced(text), _MOST_CANDIDATES):
            known = parsed(body.strip(_AROUND))
            if known is not None:
                self._take(known[0])
        if len(text) <= MOST_SEARCHED:
            self._search(text)

    def _take(self, value: Any) -> None:
        """Consider a value that stands alone or in a fence; of a text that is not wanted, also what is in it."""
        self._consider(_Candidate(value))
        wanted = self._checker is not None and self.best is not None and self.best.fits
        if isinstance(value, str) and not wanted:
            inner = _in_string(value.strip(_AROUND))
            if inner is not None:
                self._read(inner, closed=True, repaired=True)

    def _search(self, text: str) -> None:
        for quotes in (True, False):
            self._search_brackets(text, quotes)
            best = self.best
            if best is not None and best.fits and isinstance(best.value, dict | list):
                return

    def _search_brackets(self, text: str, quotes: bool) -> None:
        pending, left, candidates = [text], _TIMES * len(text), 0
        while pending:
            piece = pending.pop()
            left -= len(piece)
            if left < 0:
                return
            for span in spans(piece, quotes=quotes)[: _MOST_CANDIDATES - candidates]:
                candidates += 1
                found = self._read(piece[span.start : span.end], span.closed)
                if not found:
                    pending.append(piece[span.start + 1 : span.end - span.closed])

    def _read(self, text: str, closed: bool, repaired: bool = False) -> bool:
        """Consider what a piece of the text is that begins with a bracket. Whether it is anything."""
        exact = parsed(text)
        if exact is not None:
            return self._consider(_Candidate(exact[0], repaired))
        if not closed:
            text = text.rstrip(_AROUND)
            end = max(text.rfind("}"), text.rfind("]")) + 1
            known = completed(text) or completed(text[:end])
            if known is not None:
                return self._consider(_Candidate(known[0], repaired=True, cut=True))
        made = self._repairer.repaired(text) if looks_like_json(text, 0) else None
        return made is not None and self._consider(_Candidate(made, repaired=True, cut=not closed))

    def _consider(self, candidate: _Candidate) -> bool:
        checker = self._checker
        if checker is not None and checker.misfits(candidate.value, 1):
            loose = loosened(candidate.value, checker)
            if loose is None:
                candidate = _Candidate(candidate.value, candidate.repaired, candidate.cut, fits=False)
            else:
                candidate = _Candidate(loose[0], repaired=True, cut=candidate.cut)
        container = isinstance(candidate.value, dict | list)
        sound = not candidate.repaired or (candidate.cut and self._truncated)
        judged = candidate.fits and checker is not None  # then nothing but the length counts
        rank = candidate.fits, container or judged, sound or judged, size(candidate.value)
        if rank > self._rank:
            self.best, self._rank = candidate, rank
        return True


def _out_of_fence(text: str) -> str:
    """What is in the code fence that is the whole text, should it be one; the last fence is its end."""
    inner = without_opening(text)
    return text if inner is None else inner.rstrip("`").strip(_AROUND)


def _in_string(text: str) -> str | None:
    """The object or array that is the whole of a text, or of the code fence that the text begins with."""
    opened = without_opening(text)
    inner = text if opened is None else opened.lstrip(_AROUND)
    first = next(iter(spans(inner, quotes=True)), None)
    if first is None or first.start > 0 or not first.closed:
        return None
    rest = inner[first.end :].lstrip(_AROUND)
    is_whole = not rest or (opened is not None and rest.startswith(FENCE))
    return inner[: first.end] if is_whole else None


def _why_not(text: str) -> str:
    if not text.strip(_AROUND):
        return f"{_ROOT}: is empty"
    if len(text) > MOST_SEARCHED:
        return f"{_ROOT}: is not JSON as a whole, and too long to search in it"
    return f"{_ROOT}: has no JSON in it"
