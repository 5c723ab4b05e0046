"""What the model says in the checks: plain answers, awkward ones, and the streams that deliver them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...protocol import (
    CallOptions,
    CallWarning,
    File,
    Finish,
    FinishReason,
    FunctionTool,
    GenerateResult,
    InputTokens,
    OutputTokens,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    RequestInfo,
    ResponseInfo,
    Source,
    StreamPart,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextPart,
    TextStart,
    ToolApprovalRequest,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
    UnknownPart,
    Usage,
    UserMessage,
    parts_of,
)
from ..scripted import Pause, ScriptedPart

COST = Usage(InputTokens(7, 7, 0, 0), OutputTokens(3, 3, 0))
STOP = Finish(FinishReason("stop"), COST)
ODD_IDS = ("__proto__", "constructor", "", "0", "text-end", "a b\nc", "naïve-😀", "x" * 5000)


def asking(text: str) -> CallOptions:
    """A request that uses many options, so that a change of any of them shows."""
    return CallOptions(
        (UserMessage((TextPart(text, provider_options={"scripted": {"part": 1}}),)),),
        max_output_tokens=256,
        temperature=0.0,
        stop_sequences=("END",),
        tools=(
            FunctionTool("look_up", {"type": "object", "properties": {"word": {"type": "string"}}}, "A dictionary"),
        ),
        headers={"x-purpose": "contract"},
        provider_options={"scripted": {"nested": {"list": [1, 2]}}},
        metadata={"tenant": "acme"},
    )


def saying(text: str, reason: str = "stop") -> GenerateResult:
    return GenerateResult((Text(text),), FinishReason(reason), COST)


PLAIN = saying("Hello, world.")

# Many end in what may be half of something: a tag, a fence, a number, an address, a space before more.
ANSWERS = (
    PLAIN,
    saying(""),
    saying("a"),
    saying("one  two\n\nthree "),
    saying(" ends in half: <thi"),
    saying('```json\n{"a": [1, 2]}\n``'),
    saying("write to bob@example."),
    saying("call 555-01"),
    saying("😀 naïve e\u0301 “quoted” \U0001f469\u200d\U0001f4bb"),
    saying("cut short", "length"),
    saying("", "content-filter"),
)
# One of each kind that an answer may hold, and all that comes beside it.
EVERYTHING = GenerateResult(
    (
        Text("I looked: "),
        ToolCall("call-1", "look_up", '{"word": "part"}'),
        ToolCall("call-2", "web_search", '{"query": "part"}', provider_executed=True, dynamic=True),
        ToolResult("call-2", "web_search", {"hits": [1, 2]}, is_error=False, dynamic=True),
        ToolApprovalRequest("approval-1", "call-1"),
        File("image/png", b"\x89PNG"),
        Source("url", "s", url="https://example.org"),
        UnknownPart("citation-map", {"of": [1, 2]}),
        Text("see there."),
    ),
    FinishReason("tool-calls"),
    COST,
    (CallWarning("unsupported", "seed"),),
    request=RequestInfo({"model": "scripted-1"}, {"requestExtra": 1}),
    response=ResponseInfo(
        "response-1", model_id="scripted-1", headers={"x-served-by": "a"}, body={"raw": 1}, extra={"responseExtra": 1}
    ),
)
MIXED = (
    GenerateResult(
        (Reasoning("Let me think."), Text("I will look."), ToolCall("call-1", "look_up", '{"word": "model"}')),
        FinishReason("tool-calls"),
        COST,
    ),
    GenerateResult((Text("First."), Source("url", "s", url="https://example.org"), Text("Second")), STOP.finish_reason),
    EVERYTHING,
)


def streaming(answer: GenerateResult, cut: Callable[[str], Sequence[str]]) -> list[StreamPart]:
    """An answer as a stream whose deltas are cut further."""
    parts: list[StreamPart] = []
    for part in parts_of(answer):
        if isinstance(part, TextDelta | ReasoningDelta | ToolInputDelta):
            parts += [part.replace(delta=piece) for piece in cut(part.delta)]
        else:
            parts.append(part)
    return parts


def text_block(id: str, *pieces: str) -> list[StreamPart]:
    return [TextStart(id), *(TextDelta(id, piece) for piece in pieces), TextEnd(id)]


def saying_in(*pieces: str, finish: Finish = STOP) -> list[StreamPart]:
    return [StreamStart(), *text_block("0", *pieces), finish]


def interleaved(first: str, second: str, reasoning: str, call: str) -> list[StreamPart]:
    """Two texts, a reasoning and a tool input that grow side by side."""
    return [
        StreamStart(),
        ReasoningStart(reasoning),
        TextStart(first),
        ReasoningDelta(reasoning, "hm "),
        TextDelta(first, "one, "),
        TextStart(second),
        TextDelta(second, "alpha, "),
        ToolInputStart(call, "look_up"),
        ToolInputDelta(call, '{"wo'),
        TextDelta(first, "two, "),
        TextDelta(second, "beta"),
        ReasoningDelta(reasoning, "so"),
        ToolInputDelta(call, 'rd": 1}'),
        TextEnd(second),
        TextDelta(first, "three"),
        ToolInputEnd(call),
        ReasoningEnd(reasoning),
        TextEnd(first),
        ToolCall(call, "look_up", '{"word": 1}'),
        Finish(FinishReason("tool-calls"), COST),
    ]


def paced(parts: Sequence[ScriptedPart]) -> list[ScriptedPart]:
    """The same with a wait before each part, where other tasks get their turn."""
    return [step for part in parts for step in (Pause(0.0), part)]
