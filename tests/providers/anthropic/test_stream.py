"""From events to parts: the grammar's rules, blocks by their index, inputs of calls, usage."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from neurolink_mw.protocol import (
    CallWarning,
    Raw,
    ReasoningDelta,
    ReasoningStart,
    ResponseMetadata,
    Source,
    StreamStart,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
    UnknownPart,
    collect,
)
from neurolink_mw.providers.anthropic.stream import MessageStream, parse_stream
from neurolink_mw.providers.common.sse import ServerSentEvent

from ..streams import errors, finish, last
from .events import (
    BEGIN,
    CALLED,
    END,
    MODEL,
    PING,
    STOPPED,
    TEXT,
    WEB_CITATION,
    Json,
    began,
    call_events,
    delta,
    ended,
    events_of,
    kinds,
    message,
    own,
    own_metadata,
    parts_of,
    redacted,
    server_result,
    server_use,
    start,
    stop,
    text,
    thinking,
    use,
)

# ---------------------------------------------------------------------------------------------------------- the whole


def test_parse_stream_reads_sync_and_async_sources() -> None:
    async def read() -> None:
        async def source() -> Any:
            for event in TEXT:
                yield event

        one = [part async for part in parse_stream(TEXT, model_id=MODEL)]
        two = [part async for part in parse_stream(source(), model_id=MODEL)]
        assert one == two
        assert collect(one).text == "Hello"

    anyio.run(read)


def test_events_may_be_framed_or_bytes_or_parsed() -> None:
    framed = [ServerSentEvent(json.dumps(event).encode(), event["type"]) for event in TEXT]
    data = [json.dumps(event).encode() for event in TEXT]
    assert parts_of(*framed) == parts_of(*data) == parts_of(*TEXT)


def test_a_stream_opens_with_its_warnings_and_who_answers() -> None:
    warnings = (CallWarning("other", message="w"),)
    first, second, *_ = parts_of(*TEXT, warnings=warnings)
    assert first == StreamStart(warnings)
    assert second == ResponseMetadata("msg-1", None, MODEL)


def test_raw_events_stand_before_what_is_made_of_them() -> None:
    parts = parts_of(*TEXT, {"type": "brand_new", "z": 1}, include_raw=True)
    assert kinds(parts)[:6] == ["raw", "response-metadata", "raw", "raw", "text-start", "raw"]
    assert parts[1] == Raw(BEGIN)
    assert Raw({"type": "brand_new", "z": 1}) in parts


def test_an_unknown_event_makes_nothing() -> None:
    odd: list[Json] = [{"type": "brand_new", "index": 0, "delta": {"type": "text_delta", "text": "x"}}, {}, PING]
    assert parts_of(*odd, *TEXT) == parts_of(*TEXT)


def test_a_stream_is_done_when_the_message_has_stopped() -> None:
    machine = MessageStream()
    for event in TEXT[:-1]:
        machine.feed(event)
    assert not machine.done
    machine.feed(STOPPED)
    assert machine.done


def test_a_stream_has_begun_with_its_first_content() -> None:
    machine = MessageStream()
    for event in (BEGIN, start(text(""))):
        machine.feed(event)
    assert not machine.begun
    machine.feed(delta(text="x"))
    assert machine.begun


def test_content_that_came_with_the_beginning_of_the_message_is_content() -> None:
    head = began(content=[text("so"), use()], stop_reason="tool_use")
    answer = collect(parts_of(head, *call_events('{"q":2}', id="t2"), ended(None), STOPPED))
    assert answer.text == "so"
    assert [call.tool_call_id for call in answer.tool_calls] == ["t1", "t2"]
    assert answer.finish_reason.unified == "tool-calls"


# ------------------------------------------------------------------------------------------------------------- blocks


def test_a_signature_is_an_empty_delta_with_metadata() -> None:
    parts = parts_of(BEGIN, start(thinking("", "")), delta(thinking="hm"), delta(signature="SG"), stop(), *END)
    assert ReasoningDelta("0", "", own(signature="SG")) in parts
    assert kinds(parts)[1:-1] == ["reasoning-start", "reasoning-delta", "reasoning-delta", "reasoning-end"]


def test_thinking_that_is_not_shown_has_its_signature_alone() -> None:
    silent = {**delta(thinking=""), "delta": {"type": "thinking_delta", "thinking": "", "estimated_tokens": 50}}
    parts = parts_of(BEGIN, start(thinking("", "")), silent, delta(signature="SG"), stop(), *END)
    assert [part for part in parts if isinstance(part, ReasoningDelta)] == [
        ReasoningDelta("0", "", own(signature="SG"))
    ]


def test_redacted_thinking_is_told_at_its_start() -> None:
    assert ReasoningStart("0", own(redactedData="RD")) in parts_of(BEGIN, start(redacted()), stop(), *END)


def test_what_a_block_has_at_its_start_is_not_lost() -> None:
    parts = parts_of(BEGIN, start(text("Hel")), delta(text="lo"), stop(), start(thinking("hm"), 1), stop(1), *END)
    answer = collect(parts)
    assert (answer.text, answer.reasoning_text) == ("Hello", "hm")
    assert answer.content[1].provider_metadata == own(signature="SG")  # type: ignore[union-attr]  # reasoning


def test_blocks_of_several_indices_are_kept_apart() -> None:
    parts = parts_of(
        BEGIN,
        start(text("")),
        start(use("t1") | {"input": {}}, 1),
        start(use("t2") | {"input": {}}, 2),
        delta(2, partial_json='{"q":2}'),
        delta(0, text="a"),
        delta(1, partial_json='{"q":1}'),
        stop(2),
        stop(1),
        delta(0, text="b"),
        stop(0),
        *CALLED,
    )
    answer = collect(parts)
    assert answer.text == "ab"
    assert [(call.tool_call_id, call.input) for call in answer.tool_calls] == [("t2", '{"q":2}'), ("t1", '{"q":1}')]


def test_a_second_block_of_an_index_closes_the_first_and_has_an_id_of_its_own() -> None:
    parts = parts_of(BEGIN, start(text("a")), start(text("b")), stop(), *END)
    assert [part.id for part in parts if isinstance(part, TextStart)] == ["0", "0-2"]


def test_sources_come_while_their_text_is_open_and_citations_at_its_end() -> None:
    block = start({"type": "text", "text": "", "citations": []})
    parts = parts_of(BEGIN, block, delta(text="One"), delta(citation=WEB_CITATION), stop(), *END)
    assert kinds(parts)[1:-1] == ["text-start", "text-delta", "source", "text-end"]
    assert TextEnd("0", own(citations=[WEB_CITATION])) in parts


def test_a_server_tool_is_called_answers_and_its_pages_are_sources() -> None:
    parts = parts_of(*events_of(message(server_use(), server_result(), text("One", WEB_CITATION)), size=50))
    assert kinds(parts)[1:6] == ["tool-input-start", "tool-input-delta", "tool-input-end", "tool-call", "tool-result"]
    assert ToolInputStart("s1", "web_search", True) in parts
    assert [part.id for part in parts if isinstance(part, Source)] == ["source-0", "source-1"]


@pytest.mark.parametrize(
    ("pieces", "input"),
    [
        (['{"command":', '"ls"}'], '{"type": "bash_code_execution","command":"ls"}'),
        (["{", ' "command": 1}'], '{"type": "bash_code_execution", "command": 1}'),
        ([" { ", "}"], '{"type": "bash_code_execution" }'),
        (["{}"], '{"type": "bash_code_execution"}'),
        ([], '{"type":"bash_code_execution"}'),
        (["[1]"], "[1]"),
        (["{"], "{"),
    ],
)
def test_a_tool_within_code_execution_is_told_first_in_its_input(pieces: list[str], input: str) -> None:
    block = server_use(name="bash_code_execution") | {"input": {}}
    parts = parts_of(BEGIN, start(block), *(delta(partial_json=piece) for piece in pieces), stop(), *END)
    (call,) = [part for part in parts if isinstance(part, ToolCall)]
    assert (call.tool_name, call.input) == ("code_execution", input)
    said = "".join(part.delta for part in parts if isinstance(part, ToolInputDelta))
    assert said == (input if pieces else "")


def test_a_call_of_an_mcp_server_has_no_parts_of_its_input() -> None:
    block = {"type": "mcp_tool_use", "id": "m1", "name": "echo", "server_name": "srv", "input": {}}
    parts = parts_of(BEGIN, start(block), delta(partial_json='{"m":1}'), stop(), *END)
    metadata = own(type="mcp-tool-use", serverName="srv")
    assert parts[2:-1] == [ToolCall("m1", "echo", '{"m":1}', True, True, metadata)]


def test_a_block_that_v3_does_not_have_is_put_together_from_its_pieces() -> None:
    block = {"type": "compaction", "content": None}
    piece = {"type": "compaction_delta", "content": "so far", "encrypted_content": "EC"}
    parts = parts_of(BEGIN, start(block), {**delta(text=""), "delta": piece}, stop(), *END)
    whole = {"type": "compaction", "content": "so far", "encrypted_content": "EC"}
    assert UnknownPart("custom", {"kind": "anthropic.compaction", "providerMetadata": own(block=whole)}) in parts


def test_pieces_of_an_unknown_kind_are_shown_and_make_no_block() -> None:
    odd = {"type": "brand_new_delta", "z": 1}
    parts = parts_of(BEGIN, start({"type": "brand_new"}), {**delta(text=""), "delta": odd}, stop(), *END)
    metadata = own(start={"type": "brand_new"}, pieces=[odd])
    assert UnknownPart("custom", {"kind": "anthropic.brand_new", "providerMetadata": metadata}) in parts


def test_an_unknown_block_grows_as_known_ones_do() -> None:
    block = start({"type": "brand_new", "id": "b", "input": {}})
    parts = parts_of(BEGIN, block, delta(text="a"), delta(text="b"), delta(partial_json='{"q":1}'), stop(), *END)
    whole = {"type": "brand_new", "id": "b", "input": {"q": 1}, "text": "ab"}
    assert UnknownPart("custom", {"kind": "anthropic.brand_new", "providerMetadata": own(block=whole)}) in parts


def test_an_unknown_delta_of_a_known_block_makes_nothing() -> None:
    odd = {**delta(text=""), "delta": {"type": "brand_new_delta"}}
    assert errors(parts_of(BEGIN, start(text("")), odd, stop(), *END)) == []


def test_another_model_that_goes_on_is_the_one_that_answers() -> None:
    block = {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}, "trigger": {"type": "refusal"}}
    answer = collect(parts_of(BEGIN, start(block), stop(), *END))
    assert answer.response is not None
    assert (answer.response.id, answer.response.model_id) == ("msg-1", "b")


# ---------------------------------------------------------------------------------------------------------- the input


@pytest.mark.parametrize("pieces", [[], [""]])
def test_a_call_without_input_has_an_empty_object(pieces: list[str]) -> None:
    (call,) = collect(parts_of(BEGIN, *call_events(*pieces), *CALLED)).tool_calls
    assert call.input == "{}"


@pytest.mark.parametrize("pieces", [[], [""]])
def test_the_input_of_the_start_stands_where_no_piece_came_and_is_a_piece_itself(pieces: list[str]) -> None:
    parts = parts_of(BEGIN, *call_events(*pieces, given={"path": "a.txt"}), *CALLED)
    assert ToolInputDelta("t1", '{"path":"a.txt"}') in parts
    assert collect(parts).tool_calls[0].input == '{"path":"a.txt"}'


def test_pieces_take_the_place_of_the_input_of_the_start() -> None:
    (call,) = collect(parts_of(BEGIN, *call_events('{"a":1}', given={"b": 2}), *CALLED)).tool_calls
    assert call.input == '{"a":1}'


def test_an_input_that_was_cut_stays_as_it_is() -> None:
    parts = parts_of(BEGIN, *call_events('{"q": "cut'), ended("max_tokens"), STOPPED)
    assert collect(parts).tool_calls[0].input == '{"q": "cut'
    assert finish(parts) == ("length", "max_tokens")


@pytest.mark.parametrize("events", [call_events(), call_events()[:-1], call_events("")])
@pytest.mark.parametrize("reason", ["max_tokens", "refusal"])
def test_a_last_call_that_was_cut_before_its_input_does_not_look_whole(events: list[Json], reason: str) -> None:
    parts = parts_of(BEGIN, *call_events(id="t0", index=1), *events, ended(reason), STOPPED)
    assert [call.input for call in collect(parts).tool_calls] == ["{}", ""]


def test_a_call_that_the_connection_cut_is_closed_and_not_passed_on() -> None:
    for events in (call_events('{"q":')[:-1], call_events()):
        parts = parts_of(BEGIN, *events)
        assert kinds(parts)[-3:] == ["tool-input-end", "error", "finish"]
        assert collect(parts).tool_calls == ()


# -------------------------------------------------------------------------------------------------------------- usage


def test_later_usage_takes_the_place_of_earlier_and_never_adds_up() -> None:
    usage = {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 5}
    told = last(parts_of(began(usage=usage), ended(usage={"output_tokens": 4}), *END)).usage
    assert (told.input_tokens.total, told.input_tokens.cache_read, told.output_tokens.total) == (48, 40, 8)


def test_null_in_later_usage_says_nothing() -> None:
    usage = {"output_tokens": 9, "input_tokens": None, "cache_read_input_tokens": 4}
    told = last(parts_of(BEGIN, ended(usage=usage), STOPPED)).usage
    assert (told.input_tokens.total, told.input_tokens.cache_read, told.output_tokens.total) == (15, 4, 9)
    assert told.raw == {"input_tokens": 11, "output_tokens": 9, "cache_read_input_tokens": 4}


def test_metadata_is_gathered_from_the_beginning_and_the_end() -> None:
    end = ended("refusal", container={"id": "ct"}, stop_details={"type": "refusal"}, stop_sequence="END")
    end["context_management"] = {"applied_edits": []}
    told = own_metadata(last(parts_of(began(diagnostics={"cache_miss_reason": None}), end, STOPPED)).provider_metadata)
    assert told["container"] == {"id": "ct", "expiresAt": None, "skills": None}
    assert told["contextManagement"] == {"appliedEdits": []}
    assert (told["stopSequence"], told["stopDetails"]) == ("END", {"type": "refusal"})
    assert told["diagnostics"] == {"cacheMissReason": None}
