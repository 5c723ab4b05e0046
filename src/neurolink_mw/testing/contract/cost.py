"""A long stream of tiny pieces: right, and with work in proportion to its length."""

from __future__ import annotations

import sys
from types import FrameType

from .agreement import compare
from .material import saying_in
from .subject import Subject
from .wording import require, show_answer

_LETTERS = "The quick brown fox jumps over the lazy dog, and on it goes.\n"
_FEWER, _MORE = 500, 1000


async def check_a_thousand_tiny_deltas_cost_a_thousand_times_one(subject: Subject) -> None:
    fed = f"{_MORE} deltas of one character"
    streamed = await compare(subject, saying_in(*_letters(_MORE)), fed)
    require(
        len(streamed.parts) <= 2 * _MORE + 50,
        f"{fed}: {len(streamed.parts)} parts come out ({streamed.answer and show_answer(streamed.answer)}). Pass on "
        f"what is new, not what was passed on before",
    )
    if sys.getprofile() is not None:  # a profiler is at work, and there is room for one
        return
    fewer, more = await _calls(subject, _FEWER), await _calls(subject, _MORE)
    require(
        more <= 3 * fewer + 1000,
        f"{_FEWER} deltas of one character take {fewer} function calls and {_MORE} take {more}: the work grows with "
        f"the square of the length. Look at each delta once, and not at all that is held each time",
    )


async def _calls(subject: Subject, deltas: int) -> int:
    """How many functions run while so many deltas are streamed. Calls and not seconds, which depend on the machine."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    async with subject.fresh(saying_in(*_letters(deltas))) as trial:
        sys.setprofile(note)
        try:
            await trial.stream(subject.options)
        finally:
            sys.setprofile(None)
    return count


def _letters(count: int) -> str:
    return (_LETTERS * (count // len(_LETTERS) + 1))[:count]
