"""From events to parts: the grammar's rules, blocks by their index, failures, usage."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from neurolink_mw.errors import (
    InvalidRequestError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    ServerError,
    StreamInterruptedError,
)
from neurolink_mw.protocol import (
    CallWarning,
    Raw,
    Reasoning,
    ReasoningDelta,
    ResponseMetadata,
    Source,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    ToolCall,
    ToolInputStart,
    ToolResult,
    UnknownPart,
    check_grammar,
    collect,
)
from neurolink_mw.providers.bedrock.errors import ErrorReader
from neurolink_mw.providers.bedrock.request import Expected
from neurolink_mw.providers.bedrock.response import parse_response
from neurolink_mw.providers.bedrock.stream import ConverseStream, NativeEvent, parse_stream
from neurolink_mw.structured import AnswerTool

from ..streams import errors, finish, last
from .native import (
    BEGIN,
    CLAUDE,
    METADATA,
    PNG,
    Json,
    delta,
    ended,
    kinds,
    own,
    own_metadata,
    parts_of,
    reasoned,
    start,
    stop,
    tool_delta,
    tool_start,
    whole,
)

TEXT: list[Json] = [BEGIN, delta("Hel"), delta("lo"), stop(), ended(), METADATA]
END: list[Json] = [ended("tool_use"), METADATA]

# ---------------------------------------------------------------------------------------------------------- the whole


def test_parse_stream_reads_sync_and_async_sources() -> None:
    async def read() -> None:
        async def source() -> Any:
            for event in TEXT:
                yield event

        one = [part async for part in parse_stream(TEXT, model_id=CLAUDE)]
        two = [part async for part in parse_stream(source(), model_id=CLAUDE)]
        assert one == two
        assert collect(one).text == "Hello"

    anyio.run(read)


def test_a_stream_opens_with_its_warnings_and_who_answers() -> None:
    headers = {"x-amzn-requestid": "r-1", "date": "Tue, 03 Mar 2026 10:00:00 GMT"}
    warnings = (CallWarning("other", message="w"),)
    first, second, *_ = parts_of(*TEXT, model_id=CLAUDE, warnings=warnings, metadata={"HTTPHeaders": headers})
    assert first == StreamStart(warnings)
    assert isinstance(second, ResponseMetadata)
    assert (second.id, second.model_id) == ("r-1", CLAUDE)


def test_a_stream_adds_up_to_the_same_answer_as_the_whole_one() -> None:
    citation = {"title": "law"}
    streamed = collect(
        parts_of(
            BEGIN,
            reasoned(0, text="w"),
            reasoned(0, text="hy"),
            reasoned(0, signature="SG"),
            stop(0),
            reasoned(1, redactedContent=b"\x00"),
            reasoned(1, redactedContent=b"\x01"),
            stop(1),
            delta("Hel", 2),
            delta("lo", 2),
            delta({"citation": citation}, 2),
            stop(2),
            tool_start("t1", "look", 3),
            tool_delta('{"q":', 3),
            tool_delta("1}", 3),
            stop(3),
            start({"image": {"format": "png"}}, 4),
            delta({"image": {"source": {"bytes": PNG[:4]}}}, 4),
            delta({"image": {"source": {"bytes": PNG[4:]}}}, 4),
            stop(4),
            *END,
        )
    )
    answer = parse_response(
        whole(
            {"reasoningContent": {"reasoningText": {"text": "why", "signature": "SG"}}},
            {"reasoningContent": {"redactedContent": b"\x00\x01"}},
            {"citationsContent": {"content": [{"text": "Hello"}], "citations": [citation]}},
            {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"q": 1}}},
            {"image": {"format": "png", "source": {"bytes": PNG}}},
            reason="tool_use",
        )
    )
    assert streamed.content == answer.content
    assert streamed.finish_reason == answer.finish_reason
    assert streamed.usage == answer.usage
    assert streamed.provider_metadata == answer.provider_metadata


def test_raw_events_stand_before_what_is_made_of_them() -> None:
    parts = parts_of(*TEXT, {"brandNew": {"z": 1}}, include_raw=True)
    assert kinds(parts)[:4] == ["raw", "raw", "text-start", "text-delta"]
    assert parts[2] == Raw(BEGIN)
    assert Raw({"brandNew": {"z": 1}}) in parts


def test_an_unknown_event_makes_nothing() -> None:
    odd: list[Json] = [{"brandNew": {"z": 1}}, {"SDK_UNKNOWN_MEMBER": {"name": "brandNew"}}, {}]
    assert parts_of(*odd, *TEXT) == parts_of(*TEXT)


def test_a_stream_is_done_when_reason_and_usage_were_told_in_either_order() -> None:
    for order in ([ended(), METADATA], [METADATA, ended()]):
        machine = ConverseStream()
        machine.feed(order[0])
        assert not machine.done
        machine.feed(order[1])
        assert machine.done


def test_a_stream_has_begun_with_its_first_block() -> None:
    machine = ConverseStream()
    for event in (BEGIN, start({}), delta("")):
        machine.feed(event)
    assert not machine.begun
    machine.feed(delta("x"))
    assert machine.begun


# ------------------------------------------------------------------------------------------------------------- blocks


def test_a_text_block_begins_with_its_first_piece() -> None:
    assert kinds(parts_of(start({}), delta(""), delta("x"), stop(), ended())) == [
        *("text-start", "text-delta", "text-end", "finish")
    ]


def test_a_block_that_says_nothing_is_none() -> None:
    for events in ([start({}), stop()], [delta(""), stop()], [reasoned(text=""), stop()], [stop()]):
        assert kinds(parts_of(*events, ended())) == ["finish"]


def test_blocks_of_several_indices_are_kept_apart() -> None:
    parts = parts_of(
        delta("a", 0),
        tool_start("t1", "look", 1),
        tool_start("t2", "look", 2),
        tool_delta('{"q":2}', 2),
        delta("b", 0),
        tool_delta('{"q":1}', 1),
        stop(2),
        stop(1),
        stop(0),
        *END,
    )
    answer = collect(parts)
    assert answer.text == "ab"
    assert [(call.tool_call_id, call.input) for call in parts if isinstance(call, ToolCall)] == [
        ("t2", '{"q":2}'),
        ("t1", '{"q":1}'),
    ]


def test_another_kind_of_delta_ends_the_block_of_its_index() -> None:
    parts = parts_of(reasoned(0, text="hm"), delta("so", 0), stop(0), ended())
    assert kinds(parts) == [
        *("reasoning-start", "reasoning-delta", "reasoning-end", "text-start", "text-delta", "text-end", "finish")
    ]
    assert collect(parts).content == (Reasoning("hm"), Text("so"))


def test_a_block_without_its_stop_is_closed_at_the_end() -> None:
    parts = parts_of(delta("a"), tool_start("t1", index=1), tool_delta("{}", 1), ended("tool_use"), METADATA)
    assert kinds(parts)[-4:] == ["text-end", "tool-input-end", "tool-call", "finish"]


def test_ids_are_unique_in_the_stream() -> None:
    parts = parts_of(delta("a"), stop(), delta("b"), stop(), tool_start("0"), stop(), tool_start("0"), stop(), *END)
    ids = [part.id for part in parts if part.type.endswith("-start") and part.type != "stream-start"]  # type: ignore[union-attr]  # they have one
    assert ids == ["0", "0-2", "0-3", "0-4"]


def test_a_signature_in_pieces_is_whole_in_the_last_of_them() -> None:
    parts = parts_of(reasoned(text="hm"), reasoned(signature="S"), reasoned(signature="G"), stop(), ended())
    assert collect(parts).content == (Reasoning("hm", own(signature="SG")),)


def test_a_signature_alone_opens_a_block() -> None:
    parts = parts_of(reasoned(signature="SG"), stop(), ended())
    assert parts[3] == ReasoningDelta("0", "", own(signature="SG"))


def test_a_call_without_input_has_an_empty_object() -> None:
    parts = parts_of(tool_start(), tool_delta(""), stop(), *END)
    assert kinds(parts) == ["tool-input-start", "tool-input-end", "tool-call", "finish"]
    assert isinstance(parts[4], ToolCall)
    assert parts[4].input == "{}"


def test_names_are_the_callers() -> None:
    parts = parts_of(tool_start(name="lookup"), stop(), *END, expected=Expected(tool_names={"lookup": "look.up"}))
    assert isinstance(parts[2], ToolInputStart)
    assert isinstance(parts[4], ToolCall)
    assert parts[2].tool_name == parts[4].tool_name == "look.up"


def test_a_tool_of_the_service_runs_in_the_stream() -> None:
    parts = parts_of(
        tool_start("s1", "search", type="server_tool_use"),
        tool_delta('{"q":1}'),
        stop(),
        start({"toolResult": {"toolUseId": "s1", "status": "success"}}, 1),
        delta({"toolResult": [{"text": "fou"}]}, 1),
        delta({"toolResult": [{"text": "nd"}, "odd"]}, 1),
        stop(1),
        ended(),
    )
    call, result = (part for part in parts if isinstance(part, ToolCall | ToolResult))
    assert isinstance(parts[2], ToolInputStart)
    assert parts[2].provider_executed is True
    assert call == ToolCall("s1", "search", '{"q":1}', True, provider_metadata=own(type="server_tool_use"))
    metadata = own(serverTool=True, status="success")
    assert result == ToolResult("s1", "search", "found", provider_metadata=metadata)


def test_citations_are_sources_and_stay_with_their_text() -> None:
    web = {"location": {"web": {"url": "https://a.test"}}}
    parts = parts_of(delta({"citation": web}), delta("so"), delta({"citation": {"title": "law"}}), stop(), ended())
    assert [part.url for part in parts if isinstance(part, Source)] == ["https://a.test", None]
    assert TextEnd("0", own(citations=[web, {"title": "law"}])) in parts


def test_an_image_that_is_no_bytes_survives() -> None:
    place = {"s3Location": {"uri": "s3://b-a/x"}}
    parts = parts_of(start({"image": {"format": "png"}}), delta({"image": {"source": place}}), stop(), ended())
    assert isinstance(parts[2], UnknownPart)
    block = {"image": {"format": "png", "source": place}}
    assert parts[2].data["providerMetadata"] == own(block=block)


def test_a_block_of_a_new_kind_survives_piece_by_piece() -> None:
    parts = parts_of(start({"brandNew": {"a": 1}}), delta({"brandNew": {"b": b"x"}}), stop(), ended())
    assert parts[2] == UnknownPart(
        "custom", {"kind": "bedrock.brandNew", "providerMetadata": own(pieces=[{"b": {"$bytes": "eA=="}}])}
    )
    unknown = parts_of(delta({"SDK_UNKNOWN_MEMBER": {"name": "brandNew"}}), stop(), ended())
    assert kinds(unknown) == ["custom", "finish"]


# -------------------------------------------------------------------------------------------------------- JSON, choice


def test_a_json_answer_by_a_tool_is_shown_as_text_while_it_comes() -> None:
    expected = Expected(AnswerTool("json"))
    parts = parts_of(tool_start(name="json"), tool_delta('{"a":'), tool_delta("1}"), stop(), *END, expected=expected)
    assert kinds(parts) == ["text-start", "text-delta", "text-delta", "text-end", "finish"]
    assert finish(parts) == ("stop", "tool_use")
    assert last(parts).provider_metadata == own(isJsonResponseFromTool=True, metrics={"latencyMs": 9})
    assert collect(parts_of(tool_start(name="json"), stop(), *END, expected=expected)).text == "{}"


def test_calls_beside_a_json_answer_are_left_out_of_a_stream_and_named() -> None:
    events = [delta("sure"), stop(), tool_start("t1", index=1), tool_delta("{}", 1), stop(1)]
    answer = [tool_start("t2", "final_result", 2), tool_delta('{"a":1}', 2), stop(2)]
    parts = parts_of(*events, *answer, *END, expected=Expected(AnswerTool("final_result")))
    assert kinds(parts) == ["text-start", "text-delta", "text-end", "finish"]
    assert collect(parts).text == '{"a":1}'
    assert finish(parts) == ("stop", "tool_use")
    assert own_metadata(last(parts).provider_metadata)["unexecuted_tool_calls"] == ["look"]


def test_a_text_without_any_call_is_the_answer() -> None:
    parts = parts_of(delta("sure"), stop(), ended(), METADATA, expected=Expected(AnswerTool("final_result")))
    assert collect(parts).text == "sure"
    told = own_metadata(last(parts).provider_metadata)["warnings"]
    assert "answered in words" in told[0]["message"]


def test_a_call_against_the_choice_is_passed_on_and_told_in_the_finish() -> None:
    parts = parts_of(tool_start(), stop(), *END, expected=Expected(no_calls=True))
    assert "tool-call" in kinds(parts)
    told = own_metadata(last(parts).provider_metadata)["warnings"]
    assert told[0]["feature"] == "toolChoice"


# ------------------------------------------------------------------------------------------------------------- usage


def test_the_finish_waits_for_the_usage_in_either_order() -> None:
    one, two = parts_of(delta("x"), ended(), METADATA), parts_of(delta("x"), METADATA, ended())
    assert one == two
    assert last(one).usage.input_tokens.total == 4


def test_usage_that_never_came_is_unset() -> None:
    usage = last(parts_of(delta("x"), ended())).usage
    assert (usage.input_tokens.total, usage.output_tokens.total, usage.raw) == (None, None, None)


def test_what_two_events_say_of_the_answer_is_in_one_metadata() -> None:
    fields = {"delta": {"stop_sequence": "END"}}
    metadata = {"metadata": {**METADATA["metadata"], "trace": {"guardrail": {}}, "serviceTier": {"type": "flex"}}}
    parts = parts_of(delta("x"), ended("stop_sequence", additionalModelResponseFields=fields), metadata)
    assert last(parts).provider_metadata == own(
        metrics={"latencyMs": 9},
        trace={"guardrail": {}},
        serviceTier={"type": "flex"},
        additionalModelResponseFields=fields,
        stopSequence="END",
    )


# ------------------------------------------------------------------------------------------------------------ failures


@pytest.mark.parametrize(
    ("name", "cls", "retryable"),
    [
        ("throttlingException", RateLimitError, True),
        ("ThrottlingException", RateLimitError, True),
        ("modelStreamErrorException", ServerError, True),
        ("internalServerException", ServerError, True),
        ("serviceUnavailableException", OverloadedError, True),
        ("validationException", InvalidRequestError, False),
        ("brandNewException", ProviderError, False),
    ],
)
def test_an_exception_event_is_an_error_part_with_its_kind(
    name: str, cls: type[ProviderError], retryable: bool
) -> None:
    parts = parts_of(delta("Half an "), {name: {"message": "boom"}})
    (error,) = errors(parts)
    assert type(error) is cls
    assert error.retryable is retryable
    assert finish(parts) == ("error", None)
    assert collect(parts).text == "Half an "


def test_what_the_models_server_said_goes_with_the_exception() -> None:
    said = {"originalStatusCode": 400, "originalMessage": "bad schema"}
    (error,) = errors(parts_of({"modelStreamErrorException": said}))
    assert not error.retryable
    assert "bad schema" in str(error)


def test_after_an_error_the_reason_stays_error() -> None:
    parts = parts_of(delta("x"), {"throttlingException": {"message": "boom"}}, delta("y"), stop(), ended(), METADATA)
    assert finish(parts) == ("error", "end_turn")
    assert collect(parts).text == "xy"
    assert last(parts).usage.input_tokens.total == 4


def test_a_cut_stream_says_so_and_passes_on_no_half_call() -> None:
    parts = parts_of(delta("x"), tool_start("t1", index=1), tool_delta('{"q"', 1))
    assert kinds(parts)[-4:] == ["text-end", "tool-input-end", "error", "finish"]
    assert finish(parts) == ("error", "interrupted")
    assert isinstance(errors(parts)[0], StreamInterruptedError)


def test_an_interrupted_stream_tells_the_first_error_alone() -> None:
    machine = ConverseStream()
    parts = [*machine.start(), *machine.feed(delta("x")), *machine.feed({"throttlingException": {}})]
    parts += machine.interrupt(ErrorReader().interrupted("cut"))
    check_grammar(parts)
    assert [type(error) for error in errors(parts)] == [RateLimitError]
    assert finish(parts) == ("error", None)
    assert machine.finish() == machine.interrupt(ErrorReader().interrupted("cut")) == []


@pytest.mark.parametrize(
    "event",
    [
        {"contentBlockDelta": {"contentBlockIndex": "zero", "delta": {"text": "x"}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": "x"}},
        {"contentBlockDelta": "x"},
        {"contentBlockStart": {"start": {"toolUse": {}}}},
        {"contentBlockStop": {}},
        {"messageStop": {}},
        start({"toolUse": {"toolUseId": "t"}}),
        tool_delta("{}"),
    ],
)
def test_an_event_that_cannot_be_read_is_an_error_and_the_rest_is_still_read(event: NativeEvent) -> None:
    parts = parts_of(event, delta("x", 1), stop(1), ended())
    assert len(errors(parts)) == 1
    assert finish(parts) == ("error", "end_turn")
    assert TextDelta("1", "x") in parts
