"""Callers that leave, and attempts that are given up: whatever the model opened for them is closed."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import ConnectionFailed
from ...protocol import ErrorPart, Finish, FinishReason, StreamStart, TextDelta, TextStart
from ..scripted import ScriptedPart, ScriptedReply
from .agreement import said_in
from .left_behind import noting_what_is_left_behind
from .material import COST, PLAIN, saying_in
from .plain import KINDS
from .shape import faults_in
from .subject import Subject
from .wording import require, show_answer, show_error, show_parts

_BY_KIT = (
    "Derive streams with result.map, .expand, .through or .blocks, which close what they read; a stream of your own "
    "needs PartStream(source, close=upstream.aclose)"
)


async def check_a_caller_may_leave_at_every_part(subject: Subject) -> None:
    """Before the first part, after each, and at the finish: the model's stream is closed once, and one call ends."""
    script = saying_in("Hel", "lo, ", "wor", "ld.")
    whole = await subject.ask("stream", script)
    for parts in range(len(whole.parts) + 1):
        async with subject.fresh(script) as trial:
            with noting_what_is_left_behind() as left:
                seen = await trial.stream(subject.options, leave_after=parts)
        fed = f"the caller leaves {show_parts(script)} after {parts} parts"
        require(
            type(seen.raised) is type(whole.raised) or seen.raised is None,
            f"{fed}: leaving raised {show_error(seen.raised)}. What runs when it is left may not yield, nor raise",
        )
        _require_all_closed(seen.closings, fed)
        require(
            not left,
            f"{fed}: {', '.join(left)} did not come to its end, and is left to the garbage collector. Where a "
            f"generator reads another, close that: `async with aclosing(inner(stream)) as parts`. A generator of "
            f"neurolink_mw is the library's fault: please report it",
        )
        require(len(seen.outcomes) == 1, f"{fed}: the call has {len(seen.outcomes)} outcomes, and each call has one")


def _require_all_closed(closings: tuple[int, ...], fed: str) -> None:
    require(
        all(times == 1 for times in closings),
        f"{fed}: the model opened {len(closings)} streams, which were closed {list(closings)} times. {_BY_KIT}",
    )


async def check_what_is_opened_and_not_returned_is_closed(subject: Subject) -> None:
    """A call that ends well leaves no stream open either, such as one that a member began for itself."""
    for kind in KINDS:
        seen = await subject.ask(kind, PLAIN)
        require(
            all(times == 1 for times in seen.closings),
            f"do_{kind} came to its end: the model had opened {len(seen.closings)} streams for it, which were closed "
            f"{list(seen.closings)} times. Close a stream that you do not return, `async with result.stream`",
        )


async def check_what_is_done_at_the_end_is_done_at_the_finish(subject: Subject) -> None:
    """Many callers stop at the finish part. A second call tells whether that changed what the first one left behind."""
    asked = []
    for leave_after in (None, len((await subject.ask("stream", PLAIN)).parts)):
        async with subject.fresh(PLAIN) as trial:
            await trial.stream(subject.options, leave_after=leave_after)
            again = await trial.stream(subject.options)
        asked.append((len(again.calls), again.status))
    require(
        asked[0] == asked[1],
        f"a call is read to its end and asked again, which calls the model {asked[0][0]} times ({asked[0][1]}); if the "
        f"caller stops at the finish part, {asked[1][0]} times ({asked[1][1]}). Act before the finish is passed on, as "
        f"result.collected(fn) does, and not after the loop",
    )


async def check_an_attempt_that_is_given_up_is_closed(subject: Subject) -> None:
    for fed, first in _bad_beginnings():
        async with subject.fresh(first, *[PLAIN] * 9) as trial:
            seen = await trial.stream(subject.options)
        attempts = f"the first of its {len(seen.closings)} attempts has {fed}"
        require(
            all(times == 1 for times in seen.closings),
            f"{attempts}: they were closed {list(seen.closings)} times. Close an attempt before you give it up, with "
            f"`async with result.stream`, or read its beginning with primed(result), which closes what fails",
        )


async def check_what_has_left_is_not_said_again(subject: Subject) -> None:
    """An attempt that broke after its first content: whoever got that cannot be given another answer from the start."""
    error = ConnectionFailed("the connection broke", provider="scripted")
    broken: list[ScriptedPart] = [StreamStart(), TextStart("0"), TextDelta("0", "Hello, wo"), error]
    expected = await subject.ask("stream", PLAIN)
    async with subject.fresh(broken, *[PLAIN] * 9) as trial:
        seen = await trial.stream(subject.options)
    if seen.answered is None or expected.answered is None or seen.answered.finish_reason.unified == "error":
        return
    require(
        said_in(seen.answered) == said_in(expected.answered) and not faults_in(seen.parts),
        f"the first attempt breaks after 'Hello, wo', the next says {show_answer(PLAIN)}: what comes out is "
        f"{show_parts(seen.parts)}. Try again only while nothing has left, as primed(result) sees to",
    )


def _bad_beginnings() -> Iterator[tuple[str, ScriptedReply]]:
    error = ConnectionFailed("the connection broke", provider="scripted")
    finish = Finish(FinishReason("error"), COST)
    yield "an error part before its first content", [StreamStart(), ErrorPart(error), finish]
    yield (
        "an error part in an empty block",
        [StreamStart(), TextStart("0"), TextDelta("0", ""), ErrorPart(error), finish],
    )
    yield "nothing but an exception", [StreamStart(), error]
    yield "no content at all", [StreamStart(), Finish(FinishReason("other"), COST)]
