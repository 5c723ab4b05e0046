"""The grammar of streams, rule by rule."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.errors import ProtocolError
from neurolink_mw.protocol import (
    ErrorPart,
    File,
    Finish,
    FinishReason,
    GenerateResult,
    GrammarChecker,
    Raw,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ResponseMetadata,
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
    check_grammar,
    collect,
    parts_of,
)

from .builders import HELLO, STOP, text_block, whole
from .strategies import quick, results, streams

START = StreamStart()
LENGTH = Finish(FinishReason("length"))
FAILED = Finish(FinishReason("error"))
CALLS = Finish(FinishReason("tool-calls"))


def reasoning_block(*pieces: str, id: str = "r") -> list[StreamPart]:
    return [ReasoningStart(id), *(ReasoningDelta(id, piece) for piece in pieces), ReasoningEnd(id)]


def tool_input(*pieces: str, id: str = "c") -> list[StreamPart]:
    return [ToolInputStart(id, "t"), *(ToolInputDelta(id, piece) for piece in pieces), ToolInputEnd(id)]


def call(id: str = "c") -> ToolCall:
    return ToolCall(id, "t", "{}")


ACCEPTED: dict[str, list[StreamPart]] = {
    "the shortest stream": [START, STOP],
    "a text block": HELLO,
    "a block without a delta": whole(text_block()),
    "an empty delta": whole(text_block("")),
    "a reasoning block": whole(reasoning_block("hm")),
    "a tool block with its call": whole(tool_input("{", "}"), call(), finish=CALLS),
    "a call without a tool block": whole(call(), finish=CALLS),
    "a call that comes later": whole(tool_input(), text_block("a"), call(), finish=CALLS),
    "blocks one after the other": whole(text_block("a"), text_block("b", id="1")),
    "blocks that interleave": whole(
        [TextStart("0"), ReasoningStart("r"), TextDelta("0", "a"), ReasoningDelta("r", "b"), TextEnd("0")],
        ReasoningEnd("r"),
    ),
    "items between and inside of blocks": whole(
        ResponseMetadata("r1"),
        [TextStart("0"), Source("url", "s", "https://a.b"), File("m", b""), TextEnd("0")],
        [call(), ToolResult("c", "t", 1), ToolApprovalRequest("a", "c")],
    ),
    "raw parts anywhere": whole(Raw(1), [TextStart("0"), Raw(2), TextEnd("0")], Raw(3)),
    "parts of a later version": whole(UnknownPart("ping", {}), text_block("a"), UnknownPart("ping", {})),
    "an error and then the finish": whole(ErrorPart("e"), finish=FAILED),
    "several errors": whole(ErrorPart("e"), text_block("a"), ErrorPart("e"), finish=FAILED),
    "a reason of error without an error part": whole(text_block("a"), finish=FAILED),
    "tool input that a cut left without its call": whole(tool_input("{"), finish=LENGTH),
    "tool input that an error left without its call": whole(tool_input("{"), ErrorPart("e"), finish=FAILED),
    "a later version's finish reason": whole(text_block("a"), finish=Finish(FinishReason("interrupted"))),
    "the id of a text block for a call that has no block": whole(text_block("a", id="c"), call(), finish=CALLS),
}

REJECTED: dict[str, tuple[list[StreamPart], str]] = {
    "nothing at all": ([], r"parts\[0\]: the stream ended without a finish part"),
    "no finish": ([START, *text_block("a")], r"parts\[4\]: the stream ended without a finish part"),
    "no start": ([STOP], r"parts\[0\]: a stream begins with stream-start, not with finish"),
    "a part before the start": ([Raw(1), START, STOP], r"parts\[0\]: a stream begins with stream-start, not with raw"),
    "a second start": (whole(START), r"parts\[1\]: a second stream-start"),
    "a second finish": ([*HELLO, STOP], r"parts\[6\]: finish after finish: finish is last"),
    "a part after the finish": ([*HELLO, Raw(1)], r"parts\[6\]: raw after finish"),
    "an error after the finish": ([*HELLO, ErrorPart("e")], "error after finish"),
    "a delta before its block": (whole(TextDelta("0", "a")), r"parts\[1\]: text-delta for '0', and no text block"),
    "an end before its block": (whole(ReasoningEnd("0")), "reasoning-end for '0', and no reasoning block"),
    "a delta after its block": (whole(text_block("a"), TextDelta("0", "b")), "text-delta for '0'"),
    "a second end": (whole(text_block("a"), TextEnd("0")), "text-end for '0'"),
    "a delta of another kind": (
        whole([TextStart("0"), ReasoningDelta("0", "a"), TextEnd("0")]),
        "reasoning-delta for '0', and no reasoning block",
    ),
    "an end of another kind": (whole([TextStart("0"), ToolInputEnd("0")]), "tool-input-end for '0'"),
    "an id that is open already": (whole([TextStart("0"), TextStart("0")]), "a second block with the id '0'"),
    "an id that was used before": (whole(text_block("a"), text_block("b")), "a second block with the id '0'"),
    "an id that another kind used": (
        whole(text_block("a"), reasoning_block("b", id="0")),
        "a second block with the id",
    ),
    "an open block at the finish": (
        whole([TextStart("1"), TextStart("0")]),
        r"parts\[3\]: finish while blocks are open: '0', '1'",
    ),
    "an open block at the finish of an error": (
        whole([TextStart("0"), ErrorPart("e")], finish=FAILED),
        "finish while blocks are open",
    ),
    "an error that became a stop": (
        whole(ErrorPart("e")),
        "finish reason 'stop' after an error part: it stays 'error'",
    ),
    "an error that became another reason": (whole(ErrorPart("e"), finish=LENGTH), "it stays 'error'"),
    "a call inside of its block": (
        whole([ToolInputStart("c", "t"), call(), ToolInputEnd("c")], finish=CALLS),
        "the tool-call 'c' before its tool-input-end",
    ),
    "a call before its block": (whole(call(), tool_input("{}"), finish=LENGTH), "tool-input-start for 'c' after its"),
    "a second call of an id": (whole(call(), call(), finish=CALLS), "a second tool-call with the id 'c'"),
    "tool input without its call at a stop": (whole(tool_input("{}")), "tool input without its tool-call: 'c'"),
    "tool input without its call at tool-calls": (
        whole(tool_input("{}"), call("other"), finish=CALLS),
        "tool input without its tool-call: 'c'",
    ),
}


@pytest.mark.parametrize("parts", ACCEPTED.values(), ids=ACCEPTED)
def test_a_stream_is_accepted_with(parts: list[StreamPart]) -> None:
    check_grammar(parts)


@pytest.mark.parametrize(("parts", "message"), REJECTED.values(), ids=REJECTED)
def test_a_stream_is_rejected_with(parts: list[StreamPart], message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        check_grammar(parts)


@pytest.mark.parametrize("intruder", [Text("a"), TextPart("a"), None, {"type": "raw"}, "text", GenerateResult()])
def test_what_is_no_part_is_rejected_by_its_class(intruder: Any) -> None:
    with pytest.raises(ProtocolError, match=f"a {type(intruder).__name__} is no part of a stream") as caught:
        check_grammar([START, intruder, STOP])
    assert caught.value.path == "parts[1]"


def test_the_first_fault_is_reported_at_once() -> None:
    checker = GrammarChecker()
    checker.feed(START)
    with pytest.raises(ProtocolError):
        checker.feed(TextEnd("0"))


def test_an_unfinished_stream_is_only_known_at_its_end() -> None:
    checker = GrammarChecker()
    checker.feed(START)
    with pytest.raises(ProtocolError, match="without a finish"):
        checker.finish()


def test_a_finished_stream_may_end() -> None:
    checker = GrammarChecker()
    for part in HELLO:
        checker.feed(part)
    checker.finish()


def test_no_message_shows_content() -> None:
    parts = whole(TextDelta("0", "my password"))
    with pytest.raises(ProtocolError) as caught:
        check_grammar(parts)
    assert "my password" not in str(caught.value)


@quick
@given(result=results())
def test_an_answer_as_a_stream_is_always_grammatical_and_says_the_same(result: GenerateResult) -> None:
    parts = list(parts_of(result))
    check_grammar(parts)
    streamed = collect(parts)
    head = result.response
    if head is not None:
        head = head.replace(headers=None, body=None)
    assert streamed == result.replace(request=None, response=head)


def drop(parts: list[StreamPart], at: int) -> list[StreamPart]:
    return parts[:at] + parts[at + 1 :]


def duplicate(parts: list[StreamPart], at: int) -> list[StreamPart]:
    return parts[: at + 1] + parts[at:]


def swap(parts: list[StreamPart], at: int) -> list[StreamPart]:
    return [*parts[:at], *reversed(parts[at : at + 2]), *parts[at + 2 :]]


@pytest.mark.parametrize("damage", [drop, duplicate, swap])
@quick
@given(parts=streams, data=st.data())
def test_a_damaged_stream_is_accepted_or_rejected_but_never_crashes_the_checker(
    damage: Callable[[list[StreamPart], int], list[StreamPart]], parts: list[StreamPart], data: st.DataObject
) -> None:
    damaged = damage(parts, data.draw(st.integers(0, len(parts) - 1)))
    with suppress(ProtocolError):
        check_grammar(damaged)
    collect(damaged)


@quick
@given(parts=streams, data=st.data())
def test_a_stream_without_one_of_its_structural_parts_is_rejected(parts: list[StreamPart], data: st.DataObject) -> None:
    structural = (StreamStart, Finish, TextStart, TextEnd, ReasoningStart, ReasoningEnd, ToolInputStart, ToolInputEnd)
    at = data.draw(st.sampled_from([index for index, part in enumerate(parts) if isinstance(part, structural)]))
    with pytest.raises(ProtocolError):
        check_grammar(drop(parts, at))
    with pytest.raises(ProtocolError):
        check_grammar(duplicate(parts, at))
