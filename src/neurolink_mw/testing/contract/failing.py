"""A model that fails: streams without an end, error parts, exceptions. What failed must be told, and nothing lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...errors import InvalidRequestError, StreamInterruptedError
from ...protocol import (
    ErrorPart,
    Finish,
    FinishReason,
    StreamPart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolInputDelta,
    ToolInputStart,
    collect,
)
from ..scripted import ScriptedPart, ScriptedReply
from .agreement import difference_between
from .material import COST, STOP
from .plain import KINDS
from .subject import Seen, Subject
from .wording import require, show_error, show_parts

_HALF = " ends in half: <thi"


class Unforeseen(Exception):
    """A failure that no middleware has heard of."""


async def check_a_stream_without_an_end_loses_nothing(subject: Subject) -> None:
    for fed, script in _unfinished([_HALF, *(answer.text for answer in subject.answers if answer.text)]):
        generated = await subject.ask("generate", collect(script))
        streamed = await subject.ask("stream", script)
        if not streamed.calls:
            continue
        told = f"{fed}, {show_parts(script)}"
        require(
            streamed.raised is None
            or isinstance(streamed.raised, StreamInterruptedError)
            or type(streamed.raised) is type(generated.raised),
            f"{told}: it raised {show_error(streamed.raised)}, and the model raised nothing. Expect no start before a "
            f"delta, no end and no finish: block = open_blocks.get(part.id)",
        )
        finish = next((part for part in streamed.parts if isinstance(part, Finish)), None)
        if finish is not None and not streamed.denied and not any(isinstance(part, Finish) for part in script):
            require(
                finish.finish_reason.unified == "error",
                f"{told}: a finish was made up, {finish.finish_reason.unified!r}. An answer that was cut is no whole "
                f"one: end as the model ended, or with Finish(INTERRUPTED)",
            )
        # What fails a whole answer, as a validation does, need not fail one that was cut.
        if streamed.raised is None and generated.raised is None:
            _require_nothing_lost(generated, streamed, told)


def _unfinished(texts: Sequence[str]) -> Iterator[tuple[str, list[StreamPart]]]:
    for text in texts:
        block: list[StreamPart] = [*(StreamStart(), TextStart("0"), TextDelta("0", text[:3]), TextDelta("0", text[3:]))]
        yield "a text block that is never ended", [*block, STOP]
        yield "a stream that stops without a finish", [*block, TextEnd("0")]
        yield "a stream that stops in the middle of a block", block
    yield "a tool input that breaks off", [StreamStart(), ToolInputStart("c", "look_up"), ToolInputDelta("c", '{"wo')]
    yield "a delta of a block that never began", [StreamStart(), TextDelta("0", "Hello"), STOP]
    yield "an end of a block that never began", [StreamStart(), TextEnd("0"), STOP]


def _require_nothing_lost(generated: Seen, streamed: Seen, fed: str) -> None:
    difference = difference_between(generated, streamed)
    require(
        difference is None,
        f"{fed}: {difference}. Generated: {generated}; streamed: {streamed}. Let go what is held when the stream ends, "
        f"after the loop over its parts, too",
    )


async def check_an_error_part_is_passed_on(subject: Subject) -> None:
    error = StreamInterruptedError("the connection broke", provider="scripted")
    finish = Finish(FinishReason("error", "interrupted"), COST)
    block: list[StreamPart] = [TextStart("0"), TextDelta("0", "Hello, <thi")]
    for fed, script in (
        ("an error part inside a block", [StreamStart(), *block, ErrorPart(error), TextEnd("0"), finish]),
        ("an error part between blocks", [StreamStart(), *block, TextEnd("0"), ErrorPart(error), finish]),
    ):
        generated = await subject.ask("generate", collect(script))
        streamed = await subject.ask("stream", script)
        if not streamed.calls or streamed.denied or _answered_instead(subject, streamed):
            continue
        told = f"{fed}, {show_parts(script)}"
        if all(call.kind == "generate" for call in streamed.calls):  # then nobody told it of the error
            _require_nothing_lost(generated, streamed, told)
            continue
        require(
            is_told(streamed, error)
            or (streamed.raised is not None and type(streamed.raised) is type(generated.raised)),
            f"{told}: what comes out is {show_parts(streamed.parts)}, {streamed}. Pass the error part on, and leave "
            f"the finish reason at 'error'",
        )
        if streamed.raised is None:
            _require_nothing_lost(generated, streamed, told)


async def check_a_failure_of_the_model_comes_out(subject: Subject) -> None:
    for error in (InvalidRequestError("the model refuses", provider="scripted", status=400), Unforeseen("no idea")):
        for kind in KINDS:
            for fed, script in _failing(error):
                seen = await subject.ask(kind, script)
                if not seen.calls or seen.denied or _answered_instead(subject, seen):
                    continue
                require(
                    is_told(seen, error),
                    f"do_{kind}, and the model fails {fed} with {show_error(error)}: what comes out is {seen}. Let the "
                    f"exception pass, or raise your own `from` it; an answer in its place needs may_answer = True",
                )


def _failing(error: Exception) -> Iterator[tuple[str, ScriptedReply]]:
    block: list[ScriptedPart] = [TextStart("0"), TextDelta("0", "Hello, <thi")]
    yield "at once", error
    yield "at the first read", [error]
    yield "after stream-start", [StreamStart(), error]
    yield "in the middle of a block", [StreamStart(), *block, error]


def is_told(seen: Seen, error: BaseException) -> bool:
    """Whether a failure reaches the caller: raised, as the cause of what is raised, or in an error part."""
    if seen.raised is not None:
        return _comes_from(seen.raised, error)
    failed = seen.answer is not None and seen.answer.finish_reason.unified == "error"
    return failed and any(isinstance(part, ErrorPart) and _comes_from(part.error, error) for part in seen.parts)


def _comes_from(raised: object, error: BaseException) -> bool:
    if raised is error:
        return True
    if isinstance(raised, BaseExceptionGroup) and any(_comes_from(one, error) for one in raised.exceptions):
        return True
    return isinstance(raised, BaseException) and _comes_from(raised.__cause__, error)


def _answered_instead(subject: Subject, seen: Seen) -> bool:
    """A fallback or a cache may answer where the model failed; with another model, which it looked up at build, too."""
    may = subject.may_answer or subject.surroundings is not None
    return may and seen.answered is not None and seen.answered.finish_reason.unified != "error"
