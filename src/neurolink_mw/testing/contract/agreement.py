"""One request gets one answer: generated or streamed, in whatever pieces it comes, under whatever ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from ...protocol import (
    Content,
    ErrorPart,
    Finish,
    GenerateResult,
    Kind,
    Reasoning,
    StreamPart,
    Text,
    ToolCall,
    ToolInputDelta,
    collect,
    to_json,
)
from .chunking import ways_to_cut, whole
from .material import ANSWERS, MIXED, ODD_IDS, interleaved, saying, saying_in, streaming
from .plain import KINDS
from .subject import Seen, Subject, require_no_failure_of_its_own
from .wording import require, show, show_answer, show_pieces, show_reason

_ADVICE = (
    "The two must say the same. Hold back what may still become part of a match, one buffer per block id, and let it "
    "go at the latest when the block ends."
)

_NO_COUNT = (
    "What becomes of a text is a function of that text: no number, time or chance of its own goes into it, and no "
    "memory of what came before"
)
_TIMES = 3


async def check_generate_and_stream_agree(subject: Subject) -> None:
    """For texts in many pieces. Halves of matches at the end of a block are among them."""
    for answer in (*ANSWERS, *subject.answers):
        generated = await subject.ask("generate", answer)
        require_no_failure_of_its_own(generated.raised, generated.findings, f"the model says {show_answer(answer)}")
        finish = Finish(answer.finish_reason, answer.usage, answer.provider_metadata)
        for pieces in ways_to_cut(answer.text) if _is_one_text(answer) else ():
            streamed = await subject.ask("stream", saying_in(*pieces, finish=finish))
            _require_agreement(subject, generated, streamed, f"the model streams {show_pieces(pieces)}")


async def check_what_is_found_twice_is_changed_twice(subject: Subject) -> None:
    """The author's answers again and again in one text, which sets a middleware to work in one block several times."""
    for answer in subject.answers:
        if not answer.text:
            continue
        text = "\n".join([answer.text] * _TIMES)
        generated = await subject.ask("generate", saying(text))
        for cut in _CUTS:
            pieces = cut(text)
            streamed = await subject.ask("stream", saying_in(*pieces))
            _require_agreement(
                subject, generated, streamed, f"the model streams {show_pieces(pieces)}", f"{_ADVICE} {_NO_COUNT}"
            )


async def check_the_same_answer_comes_out_the_same_again(subject: Subject) -> None:
    """One member, asked again and again. What it refuses or fails at later is its own business, as of a limit."""
    for answer in (*ANSWERS, *MIXED, *subject.answers):
        async with subject.fresh(answer) as trial:
            before: dict[Kind, Seen] = {}
            for kind in (*KINDS, *KINDS):
                seen = await trial.ask(kind, subject.options)
                if seen.answered is None or _asked_another(subject, seen):
                    continue
                first = before.setdefault(kind, seen)
                difference = difference_between(first, seen, in_order=True)
                require(
                    difference is None,
                    f"do_{kind} of one request, and the model says {show_answer(answer)} again and again: "
                    f"{difference}. First: {first}; later: {seen}. {_NO_COUNT}",
                )


def _asked_another(subject: Subject, seen: Seen) -> bool:
    """Whether another model may have answered, which the member looked up at build."""
    return subject.surroundings is not None and not seen.calls


async def check_answers_of_many_kinds_agree(subject: Subject) -> None:
    """Reasoning, tool calls, sources and several texts in one answer."""
    for answer in (*MIXED, *(one for one in subject.answers if not _is_one_text(one))):
        generated = await subject.ask("generate", answer)
        require_no_failure_of_its_own(generated.raised, generated.findings, f"the model says {show_answer(answer)}")
        for cut in _CUTS:
            streamed = await subject.ask("stream", streaming(answer, cut))
            _require_agreement(subject, generated, streamed, f"the model streams {show_answer(answer)} in pieces")


async def check_tool_inputs_say_what_their_calls_say(subject: Subject) -> None:
    """The input of a call comes twice in a stream: in pieces, for who shows it, and whole, for who runs the tool."""
    for answer in (*MIXED, *subject.answers):
        seen = await subject.ask("stream", streaming(answer, _in_pieces_of(2)))
        inputs: dict[str, str] = {}
        for part in seen.parts:
            if isinstance(part, ToolInputDelta):
                inputs[part.id] = inputs.get(part.id, "") + part.delta
            elif isinstance(part, ToolCall) and (shown := inputs.get(part.tool_call_id)) not in (None, part.input):
                raise AssertionError(
                    f"the model streams {show_answer(answer)}: the input of {part.tool_name} comes out as "
                    f"{show(str(shown))} in pieces, and as {show(part.input)} in its tool-call. Rewrite both alike"
                )


async def check_interleaved_blocks_are_kept_apart(subject: Subject) -> None:
    script = interleaved("a", "b", "r", "c")
    await compare(
        subject, script, "blocks that grow side by side", "Keep state per block id, never 'the current block'."
    )


async def check_odd_ids_are_ids_like_any_other(subject: Subject) -> None:
    shuffled = Random(0)
    for id in ODD_IDS:
        others = shuffled.sample([other for other in ODD_IDS if other != id], 3)
        fed = f"the first text block has the id {show(id)}"
        await compare(
            subject, interleaved(id, *others), fed, "An id is any text: use it as the key of a dict, as it is."
        )


async def compare(subject: Subject, script: Sequence[StreamPart], fed: str, advice: str = _ADVICE) -> Seen:
    """Require that generated and streamed answers of one script agree, blocks in whatever order. Returns what was
    streamed."""
    generated = await subject.ask("generate", collect(script))
    streamed = await subject.ask("stream", script)
    _require_agreement(subject, generated, streamed, fed, advice, in_order=False)
    return streamed


def _require_agreement(
    subject: Subject, generated: Seen, streamed: Seen, fed: str, advice: str = _ADVICE, *, in_order: bool = True
) -> None:
    """in_order: the content too. Blocks that interleave may change places, since each starts when it first shows."""
    difference = difference_between(generated, streamed, in_order=in_order)
    if difference is None:
        return
    came_out = f"generated: {generated}; streamed: {streamed}"
    raise AssertionError(f"{fed}: {difference}. {came_out}. {subject.wraps_one_call_only() or advice}")


def difference_between(generated: Seen, streamed: Seen, *, in_order: bool = False) -> str | None:
    """In words, what differs between the two answers to one request; None where they agree."""
    if generated.denied != streamed.denied:
        return f"{'generated' if generated.denied else 'streamed'} it is refused, and the other way it is not"
    if type(generated.raised) is not type(_failure_like(generated, streamed)):
        return "one of the two fails, or each in its own way"
    whole, pieces = generated.answer, streamed.answer
    if whole is None or pieces is None or generated.raised is not None:
        return None
    reasons = whole.finish_reason, pieces.finish_reason
    if reasons[0].unified != reasons[1].unified:
        return f"the finish reason is {show_reason(reasons[0])} generated and {show_reason(reasons[1])} streamed"
    if generated.denied:
        # What was released before the verdict stands before the refusal.
        return None if pieces.text.endswith(whole.text) else "the refusals differ"
    if whole.usage != pieces.usage:
        return "the usage differs: pass on the finish part with the usage that it has"
    said, streamed_said = said_in(whole), said_in(pieces)
    if not in_order:
        said, streamed_said = sorted(said), sorted(streamed_said)
    return "the content differs" if said != streamed_said else None


def _failure_like(generated: Seen, streamed: Seen) -> object:
    """How a stream failed. What is raised where nothing has left yet, may be an error part where something has."""
    if streamed.raised is not None or generated.raised is None:
        return streamed.raised
    return next((part.error for part in streamed.parts if isinstance(part, ErrorPart)), None)


def said_in(answer: GenerateResult) -> list[tuple[str, str]]:
    """What an answer says, in order: texts that follow each other are one, and empty ones are none."""
    said: list[tuple[str, str]] = []
    for item in answer.content:
        if not isinstance(item, Text | Reasoning):
            said.append((item.type, _named(item)))
        elif said and said[-1][0] == item.type:
            said[-1] = (item.type, said[-1][1] + item.text)
        elif item.text:
            said.append((item.type, item.text))
    return said


def _named(item: Content) -> str:
    if not isinstance(item, ToolCall):
        return str(to_json(item))
    by = "by the provider" if item.provider_executed else "by the caller"
    return "\n".join((item.tool_call_id, item.tool_name, item.input, by))


def _is_one_text(answer: GenerateResult) -> bool:
    return len(answer.content) == 1 and isinstance(answer.content[0], Text)


def _in_pieces_of(length: int) -> Callable[[str], Sequence[str]]:
    return lambda text: [text[start : start + length] for start in range(0, len(text), length)]


_CUTS: Sequence[Callable[[str], Sequence[str]]] = (whole, *map(_in_pieces_of, (1, 2, 3, 7)))
