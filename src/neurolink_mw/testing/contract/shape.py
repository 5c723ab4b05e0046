"""What a stream looks like when it comes out: well-formed, with its metadata, its raw parts as they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

from ...errors import ProtocolError
from ...protocol import (
    ErrorPart,
    Finish,
    FinishReason,
    GenerateResult,
    GrammarChecker,
    Raw,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ResponseInfo,
    ResponseMetadata,
    Source,
    StreamPart,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from .material import COST, MIXED, PLAIN, STOP, interleaved, streaming
from .subject import Seen, Subject
from .wording import require, show_parts


async def check_the_stream_grammar_is_kept(subject: Subject) -> None:
    failed: list[StreamPart] = [
        *(StreamStart(), TextStart("0"), TextDelta("0", "Hello"), TextEnd("0"), ErrorPart(RuntimeError("cut"))),
        Finish(FinishReason("error"), COST),
    ]
    scripts: list[Sequence[StreamPart]] = [failed, interleaved("a", "b", "r", "c")]
    scripts += [streaming(answer, tuple) for answer in (PLAIN, *MIXED, *subject.answers)]
    for script in scripts:
        seen = await subject.ask("stream", script)
        fault = faults_in(seen.parts, whole=seen.raised is None)
        require(
            not fault,
            f"the model streams {show_parts(script)}: what comes out, {show_parts(seen.parts)}, is not well-formed, "
            f"{fault}. Pass on every part that you do not change, and close each block that you open",
        )


def faults_in(parts: Sequence[StreamPart], *, whole: bool = True) -> str:
    """What is wrong with the form of a stream, or of the beginning of one; empty where nothing is."""
    checker = GrammarChecker()
    try:
        for part in parts:
            checker.feed(part)
        if whole:
            checker.finish()
    except ProtocolError as error:
        return str(error)
    return ""


# Each key names the part that carries it.
_MARKED: tuple[StreamPart, ...] = (
    StreamStart(),
    ResponseMetadata("response-1", model_id="scripted-1"),
    ReasoningStart("r", {"reasoning-start": {"id": 1}}, {"reasoningStart": 1}),
    ReasoningDelta("r", "hm", {"reasoning-delta": {"signature": "s"}}, {"reasoningDelta": 1}),
    ReasoningEnd("r", {"reasoning-end": {"signature": "t"}}, {"reasoningEnd": 1}),
    TextStart("0", {"text-start": {"id": 1}}, {"textStart": 1}),
    TextDelta("0", "Hello, "),
    TextDelta("0", "world.", {"text-delta": {"citation": [1, 2]}}, {"textDelta": 1}),
    TextEnd("0", {"text-end": {"signature": "s"}}, {"textEnd": 1}),
    ToolInputStart("c", "look_up", None, None, None, {"tool-input-start": {"id": 1}}, {"toolInputStart": 1}),
    ToolInputDelta("c", '{"word": ', {"tool-input-delta": {"id": 1}}, {"toolInputDelta": 1}),
    ToolInputDelta("c", '"part"}'),
    ToolInputEnd("c", {"tool-input-end": {"signature": "s"}}, {"toolInputEnd": 1}),
    ToolCall("c", "look_up", '{"word": "part"}', None, None, {"tool-call": {"signature": "s"}}, {"toolCall": 1}),
    Source("url", "s", "https://example.org", provider_metadata={"source": {"id": 1}}, extra={"sourceExtra": 1}),
    Finish(FinishReason("tool-calls"), COST, {"finish": {"id": 1}}, {"finishExtra": 1}),
)
# What a whole answer has no place for.
_STREAMED_ONLY = {
    *("reasoningDelta", "textDelta", "toolInputStart", "toolInputDelta", "toolInputEnd"),
    *("tool-input-start", "tool-input-delta", "tool-input-end"),
}
_WHOLE = GenerateResult(
    (
        Reasoning("hm", {"reasoning": {"signature": "s"}}, {"reasoningExtra": 1}),
        Text("Hello, world.", {"text": {"id": 1}}, {"textExtra": 1}),
        ToolCall("c", "look_up", '{"word": "part"}', None, None, {"tool-call": {"signature": "s"}}, {"toolCall": 1}),
        Source("url", "s", "https://example.org", provider_metadata={"source": {"id": 1}}, extra={"sourceExtra": 1}),
    ),
    FinishReason("tool-calls"),
    COST,
    provider_metadata={"result": {"id": 1}},
    response=ResponseInfo("response-1", model_id="scripted-1"),
    extra={"resultExtra": 1},
)


async def check_metadata_is_kept(subject: Subject) -> None:
    """Metadata may ride on any piece of a block; signatures and citations get lost with it."""
    generated = await subject.ask("generate", _WHOLE)
    if (answer := generated.answered) is not None and generated.calls:
        expected = _marks((_WHOLE, *_WHOLE.content))
        _require_marks(expected, _marks((answer, *answer.content)), generated, answer, "the model answers")
    streamed = await subject.ask("stream", _MARKED)
    if (answer := streamed.answered) is not None and streamed.calls:
        expected = _marks(_MARKED)
        if any(call.kind == "generate" for call in streamed.calls):
            expected = {key: mark for key, mark in expected.items() if key not in _STREAMED_ONLY}
        _require_marks(expected, _marks(streamed.parts), streamed, answer, f"the model streams {show_parts(_MARKED)}")


def _require_marks(
    expected: Mapping[str, object], found: Mapping[str, object], seen: Seen, answer: GenerateResult, fed: str
) -> None:
    if answer.reasoning_text != _WHOLE.reasoning_text:  # a signature holds for the reasoning that was signed, only
        expected = {key: mark for key, mark in expected.items() if "reasoning" not in key}
    if seen.refused_a_part:
        expected = {key: mark for key, mark in expected.items() if not key.startswith("tool")}
    lost = [key for key, mark in expected.items() if found.get(key) != mark]
    require(
        not lost,
        f"{fed} with metadata on every part: the provider_metadata or extra of {', '.join(lost)} is lost. Change parts "
        f"and content with part.replace(...), which keeps what you do not name",
    )
    require(
        answer.response is not None and answer.response.id == "response-1",
        f"{fed}: the response's own metadata is lost. Pass on the response-metadata part and GenerateResult.response",
    )


def _marks(carriers: Sequence[object]) -> dict[str, object]:
    marks: dict[str, object] = {}
    for carrier in carriers:
        for name in ("provider_metadata", "extra"):
            marks |= getattr(carrier, name, None) or {}
    return marks


async def check_raw_parts_are_untouched(subject: Subject) -> None:
    """All of them may be left out, since a raw chunk can hold the very text that is to be hidden."""
    raws = [Raw({"chunk": {"index": index, "text": "Hello, world."}}) for index in range(5)]
    text: list[StreamPart] = [TextStart("0"), TextDelta("0", "Hello, "), TextDelta("0", "world."), TextEnd("0")]
    body = [part for raw, made in zip(raws, [*text, STOP], strict=True) for part in (raw, made)]
    script: list[StreamPart] = [StreamStart(), *body]
    before = deepcopy([raw.raw_value for raw in raws])
    async with subject.fresh(script) as trial:
        seen = await trial.stream(subject.options.replace(include_raw_chunks=True))
    fed = f"raw chunks were asked for, and the model streams {show_parts(script)}"
    require([raw.raw_value for raw in raws] == before, f"{fed}: a raw value was changed. Never write into one")
    came = [part for part in seen.parts if part.__class__ is Raw]
    if seen.answered is None or not came:
        return
    advice = "Pass each on as the object that it is, or leave all of them out"
    known = {id(part): place for place, part in enumerate(script)}
    require(all(id(part) in known for part in came), f"{fed}: raw parts came out that the model did not send. {advice}")
    require(len(came) == len(raws), f"{fed}: {len(came)} of {len(raws)} raw parts came out. {advice}")
    places = [known[id(part)] for part in seen.parts if id(part) in known]
    require(
        places == sorted(places),
        f"{fed}: raw parts changed places, {show_parts(seen.parts)}. Each stands right before what was made of it: "
        f"pass parts on in their order",
    )
