"""The account of a call: one outcome, which says how it ended and how often the model was asked."""

from __future__ import annotations

from ...errors import InvalidRequestError
from ...protocol import StreamStart, TextDelta, TextStart
from ..scripted import ScriptedReply
from .material import MIXED, PLAIN
from .plain import KINDS
from .subject import Subject
from .wording import require

_CONTEXT = (
    "Leave the context alone: make other requests with options.replace(...), and those for a judge or a summary with "
    "options.for_helper(prompt)"
)


async def check_every_call_has_one_outcome(subject: Subject) -> None:
    error = InvalidRequestError("the model refuses", provider="scripted", status=400)
    scripts: dict[str, ScriptedReply] = {
        "answers": PLAIN,
        "calls a tool": MIXED[0],
        "fails at once": error,
        "fails in the middle": [StreamStart(), TextStart("0"), TextDelta("0", "Hello"), error],
    }
    for fed, script in scripts.items():
        for kind in KINDS:
            seen = await subject.ask(kind, script)
            told = f"do_{kind}, and the model {fed}"
            require(len(seen.outcomes) == 1, f"{told}: the call has {len(seen.outcomes)} outcomes, not one. {_CONTEXT}")
            (outcome,) = seen.outcomes
            failed = seen.raised is not None
            require(
                outcome.status in (("error", "denied") if failed else ("ok", "denied", "error")),
                f"{told}: the outcome is {outcome.status!r}, and what came is {seen}. {_CONTEXT}",
            )
            require(
                outcome.attempts == len(seen.calls),
                f"{told}: the model was asked {len(seen.calls)} times, and the outcome counts {outcome.attempts} "
                f"attempts. {_CONTEXT}",
            )
