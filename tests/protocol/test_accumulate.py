"""Parts add up to the answer that they say."""

from __future__ import annotations

from datetime import UTC, datetime

from neurolink_mw.protocol import (
    INTERRUPTED,
    Accumulator,
    CallWarning,
    ErrorPart,
    File,
    Finish,
    FinishReason,
    GenerateResult,
    InputTokens,
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
    ToolApprovalRequest,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
    UnknownPart,
    Usage,
    check_grammar,
    collect,
    parts_of,
)

from .builders import HELLO, STOP, text_block, whole


def content_of(*items: StreamPart | list[StreamPart]) -> tuple[object, ...]:
    return tuple(collect(whole(*items)).content)


def test_the_deltas_of_a_block_are_joined() -> None:
    assert content_of(text_block("Hel", "", "lo")) == (Text("Hello"),)


def test_blocks_that_interleave_are_kept_apart_by_their_ids() -> None:
    assert content_of(
        [TextStart("0"), TextStart("1"), TextDelta("1", "b"), TextDelta("0", "a"), TextDelta("1", "B")],
        [TextDelta("0", "A"), TextEnd("1"), TextEnd("0")],
    ) == (Text("aA"), Text("bB"))


def test_blocks_of_different_kinds_may_use_one_id() -> None:
    assert content_of(
        [TextStart("0"), ReasoningStart("0"), ReasoningDelta("0", "r"), TextDelta("0", "t"), TextEnd("0")],
        ReasoningEnd("0"),
    ) == (Text("t"), Reasoning("r"))


def test_a_block_that_reuses_an_id_is_a_block_of_its_own() -> None:
    assert content_of(text_block("a"), text_block("b")) == (Text("a"), Text("b"))


def test_content_stands_where_its_block_began() -> None:
    source = Source("url", "s", "https://a.b")
    assert content_of([TextStart("0"), source, ReasoningStart("r"), ReasoningEnd("r"), TextEnd("0")]) == (
        Text(""),
        source,
        Reasoning(""),
    )


def test_a_block_that_was_never_closed_counts() -> None:
    assert content_of([TextStart("0"), TextDelta("0", "a")]) == (Text("a"),)


def test_a_delta_without_its_block_is_dropped() -> None:
    assert content_of(TextDelta("0", "a")) == ()


def test_metadata_of_start_delta_and_end_come_together_and_the_later_entry_wins() -> None:
    assert content_of(
        [
            TextStart("0", {"a": {"at": "start"}, "b": {"at": "start"}}),
            TextDelta("0", "x", {"b": {"at": "delta"}, "c": {"at": "delta"}}),
            TextEnd("0", {"c": {"at": "end"}}),
        ]
    ) == (Text("x", {"a": {"at": "start"}, "b": {"at": "delta"}, "c": {"at": "end"}}),)


def test_an_empty_delta_may_carry_a_signature() -> None:
    signature = {"anthropic": {"signature": "s"}}
    assert content_of([ReasoningStart("r"), ReasoningDelta("r", "", signature), ReasoningEnd("r")]) == (
        Reasoning("", signature),
    )


def test_fields_of_a_later_version_on_start_and_end_of_a_block_are_kept() -> None:
    assert content_of([TextStart("0", extra={"a": 1}), TextEnd("0", extra={"citations": []})]) == (
        Text("", extra={"a": 1, "citations": []}),
    )


def test_whole_items_are_kept_as_they_came() -> None:
    items: list[StreamPart] = [
        File("image/png", b"x"),
        ToolCall("c", "t", "{}"),
        ToolApprovalRequest("a", "c"),
        UnknownPart("custom", {"kind": "a.b"}),
    ]
    assert content_of(items) == tuple(items)


def test_a_tool_call_is_the_call_and_not_its_input_deltas() -> None:
    call = ToolCall("c", "t", '{"a":1}')
    assert content_of([ToolInputStart("c", "t"), ToolInputDelta("c", '{"a"'), ToolInputEnd("c"), call]) == (call,)


def test_raw_parts_are_no_content() -> None:
    assert content_of(Raw({"a": 1})) == ()


def test_preliminary_results_are_replaced_by_the_next_of_the_same_call_in_its_place() -> None:
    first, other, second, final = (
        ToolResult("c", "t", 1, preliminary=True),
        ToolResult("d", "t", 0),
        ToolResult("c", "t", 2, preliminary=True),
        ToolResult("c", "t", 3),
    )
    assert content_of(first, other, second) == (second, other)
    assert content_of(first, other, second, final) == (final, other)


def test_a_final_result_is_not_replaced() -> None:
    one, other = ToolResult("c", "t", 1), ToolResult("c", "t", 2)
    assert content_of(one, other) == (one, other)


def test_what_frames_the_content_is_kept() -> None:
    moment = datetime(2025, 1, 1, tzinfo=UTC)
    result = collect(
        [
            StreamStart([CallWarning("other", message="m")]),
            ResponseMetadata("r1", moment, "m1", {"later": 1}),
            Finish(FinishReason("length", "max"), Usage(InputTokens(3)), {"p": {"k": 1}}, {"later": 2}),
        ]
    )
    assert result == GenerateResult(
        (),
        FinishReason("length", "max"),
        Usage(InputTokens(3)),
        (CallWarning("other", message="m"),),
        {"p": {"k": 1}},
        response=ResponseInfo("r1", moment, "m1", extra={"later": 1}),
        extra={"later": 2},
    )


def test_a_stream_without_a_finish_is_an_interrupted_answer_of_unknown_cost() -> None:
    result = collect(HELLO[:-1])
    assert result.text == "Hello"
    assert result.finish_reason == INTERRUPTED == FinishReason("error", "interrupted")
    assert result.usage == Usage()


def test_the_errors_of_error_parts_are_listed_and_are_no_content() -> None:
    accumulator, error = Accumulator(), ValueError("x")
    for part in whole(ErrorPart(error), finish=Finish(FinishReason("error"))):
        accumulator.feed(part)
    assert accumulator.errors == [error]
    assert accumulator.result().content == ()


def test_an_accumulator_can_be_asked_on_the_way() -> None:
    accumulator = Accumulator()
    for part in HELLO[:3]:
        accumulator.feed(part)
    assert accumulator.result().text == "Hel"
    accumulator.feed(TextDelta("0", "lo"))
    assert accumulator.result().text == "Hello"


def test_an_answer_becomes_blocks_with_its_metadata_on_their_starts() -> None:
    parts = list(parts_of(GenerateResult((Text("hi", {"p": {}}), Reasoning("")))))
    assert parts == [
        StreamStart(),
        TextStart("0", {"p": {}}),
        TextDelta("0", "hi"),
        TextEnd("0"),
        ReasoningStart("1"),
        ReasoningEnd("1"),
        STOP,
    ]


def test_a_call_becomes_its_input_and_the_call() -> None:
    call = ToolCall("c", "t", "{}", dynamic=True)
    assert list(parts_of(GenerateResult((call,))))[1:-1] == [
        ToolInputStart("c", "t", dynamic=True),
        ToolInputDelta("c", "{}"),
        ToolInputEnd("c"),
        call,
    ]


def test_a_call_that_the_provider_ran_has_no_input_of_its_own() -> None:
    call = ToolCall("c", "t", "{}", provider_executed=True)
    assert list(parts_of(GenerateResult((call,))))[1:-1] == [call]


def test_the_ids_of_blocks_never_meet_those_of_calls() -> None:
    result = GenerateResult([Text("a"), ToolCall("0", "t", "{}"), Text("b"), ToolCall("block-0", "t", "")])
    parts = list(parts_of(result))
    check_grammar(parts)
    assert collect(parts) == result


def test_who_answered_is_said_only_where_it_is_known() -> None:
    with_headers = GenerateResult(response=ResponseInfo(headers={"a": "b"}))
    assert [part.type for part in parts_of(with_headers)] == ["stream-start", "finish"]
    with_id = GenerateResult(response=ResponseInfo("r1"))
    assert [part.type for part in parts_of(with_id)] == ["stream-start", "response-metadata", "finish"]


def test_warnings_that_come_with_the_end_are_warnings_of_the_answer() -> None:
    told = {"type": "other", "message": "calls were left out"}
    finish = Finish(FinishReason("stop"), Usage(), {"acme": {"warnings": [told, "odd", {"type": 5}]}, "x": 3})
    answer = collect([StreamStart((CallWarning("unsupported", "seed"),)), finish])
    assert answer.warnings == (CallWarning("unsupported", "seed"), CallWarning("other", message="calls were left out"))
    assert collect(parts_of(answer)) == answer
