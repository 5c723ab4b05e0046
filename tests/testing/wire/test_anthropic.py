"""The Anthropic server, seen from the outside: real sockets and the real SDK."""

from __future__ import annotations

import anthropic as sdk
import httpx
import pytest
from tests.testing.wire.anthropic_clients import HELLO, MODEL, Json, collect, create, deltas, kinds, stream, texts

from neurolink_mw.testing import wire
from neurolink_mw.testing.wire import anthropic

pytestmark = pytest.mark.anyio

TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]


# Whole messages


async def test_a_text_is_a_whole_message() -> None:
    with wire.anthropic_server([anthropic.answer("Hello there")]) as server:
        message = await create(server)
    assert message["content"] == [{"type": "text", "text": "Hello there"}]
    assert (message["id"], message["model"], message["role"]) == (anthropic.MESSAGE_ID, MODEL, "assistant")
    assert (message["stop_reason"], message["stop_sequence"]) == ("end_turn", None)
    assert message["usage"] == {"input_tokens": 10, "output_tokens": 5}


async def test_a_message_has_thinking_then_text_then_calls() -> None:
    calls = [anthropic.ToolCall("look", {"q": 1}), anthropic.ToolCall("smell", "", id="own")]
    with wire.anthropic_server([anthropic.answer("Let me see.", thinking="Hm.", tool_calls=calls)]) as server:
        message = await create(server)
    assert message["stop_reason"] == "tool_use"
    assert message["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": anthropic.SIGNATURE},
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"q": 1}},
        {"type": "tool_use", "id": "own", "name": "smell", "input": {}},
    ]


async def test_thinking_may_be_unsigned_or_redacted() -> None:
    thoughts: list[anthropic.Thought] = [
        anthropic.Thinking("Hm.", signature=None),
        anthropic.RedactedThinking("RED"),
        anthropic.Thinking("So."),
    ]
    with wire.anthropic_server([anthropic.answer("a", thinking=thoughts)], repeat="last") as server:
        whole = (await create(server))["content"]
        events = await stream(server)
    assert whole[:3] == [
        {"type": "thinking", "thinking": "Hm."},
        {"type": "redacted_thinking", "data": "RED"},
        {"type": "thinking", "thinking": "So.", "signature": anthropic.SIGNATURE},
    ]
    assert deltas(events)[:3] == [
        {"type": "thinking_delta", "thinking": "Hm."},
        {"type": "thinking_delta", "thinking": "So."},
        {"type": "signature_delta", "signature": anthropic.SIGNATURE},
    ]
    opened = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    assert opened[1] == {"type": "redacted_thinking", "data": "RED"}


async def test_a_call_of_the_api_is_marked_and_does_not_stop_for_the_client() -> None:
    with wire.anthropic_server([anthropic.answer(tool_calls=[anthropic.ToolCall("s", {}, server=True)])]) as server:
        message = await create(server)
    assert message["content"] == [{"type": "server_tool_use", "id": "srvtoolu_1", "name": "s", "input": {}}]
    assert message["stop_reason"] == "end_turn"


async def test_usage_counts_the_cache_apart() -> None:
    usage = anthropic.usage(4, 6, cache_read=100, cache_write=20)
    with wire.anthropic_server([anthropic.answer("a", usage=usage)]) as server:
        assert (await create(server))["usage"] == {
            "input_tokens": 4,
            "output_tokens": 6,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 20,
        }


async def test_stop_reason_and_further_members_are_those_given() -> None:
    refused = {"type": "refusal", "category": "cyber", "explanation": None}
    members = {"stop_details": refused, "context_management": {"applied_edits": []}, "diagnostics": None}
    reply = anthropic.answer("no", stop_reason="refusal", members=members)
    with wire.anthropic_server([reply], repeat="last") as server:
        whole = await create(server)
        events = await stream(server)
    assert (whole["stop_reason"], whole["stop_details"]) == ("refusal", refused)
    assert whole["context_management"] == {"applied_edits": []}
    [stop] = [event for event in events if event["type"] == "message_delta"]
    assert stop["delta"] == {"stop_reason": "refusal", "stop_sequence": None, "stop_details": refused}
    assert stop["context_management"] == {"applied_edits": []}
    assert events[0]["message"].keys() >= {"diagnostics"}
    assert not events[0]["message"].keys() & {"stop_details", "context_management"}


async def test_a_stop_sequence_is_a_reason_of_its_own() -> None:
    with wire.anthropic_server([anthropic.answer("a", stop_sequence="END")], repeat="last") as server:
        whole = await create(server)
        stop = (await stream(server))[-2]["delta"]
    for told in (whole, stop):
        assert (told["stop_reason"], told["stop_sequence"]) == ("stop_sequence", "END")


async def test_broken_input_of_a_call_is_text_in_a_whole_message() -> None:
    with wire.anthropic_server([anthropic.answer(tool_calls=[anthropic.ToolCall("look", '{"q":')])]) as server:
        assert (await create(server))["content"][0]["input"] == '{"q":'


# Streams


async def test_a_text_is_streamed_word_by_word() -> None:
    with wire.anthropic_server([anthropic.answer("Hello there, you")]) as server:
        events = await stream(server)
    assert kinds(events) == [
        "message_start",
        "content_block_start",
        *["content_block_delta"] * 3,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert texts(events) == ["Hello", " there,", " you"]
    assert events[0]["message"]["content"] == []
    assert events[0]["message"]["stop_reason"] is None


async def test_a_ping_follows_the_start_of_the_first_block() -> None:
    with wire.anthropic_server([anthropic.answer("a", thinking="b")]) as server:
        body = {"model": "m", "max_tokens": 9, "messages": HELLO, "stream": True}
        async with httpx.AsyncClient() as client:
            content = (await client.post(f"{server.base_url}/v1/messages", json=body)).text
    lines = [line for line in content.splitlines() if line.startswith("event: ")]
    assert lines[1:3] == ["event: content_block_start", "event: ping"]
    assert lines.count("event: ping") == 1


async def test_usage_is_told_at_the_start_and_again_at_the_end() -> None:
    usage = anthropic.usage(4, 6, cache_read=100) | {
        "service_tier": "standard",
        "server_tool_use": {"web_search_requests": 1},
    }
    with wire.anthropic_server([anthropic.answer("a", usage=usage)]) as server:
        events = await stream(server)
    early = {"input_tokens": 4, "output_tokens": 1, "cache_read_input_tokens": 100}
    assert events[0]["message"]["usage"] == early | {"service_tier": "standard"}
    late = {"input_tokens": 4, "output_tokens": 6, "cache_read_input_tokens": 100}
    assert events[-2]["usage"] == late | {"server_tool_use": {"web_search_requests": 1}}


async def test_a_message_may_count_nothing() -> None:
    with wire.anthropic_server([anthropic.answer("a", usage=None)], repeat="last") as server:
        assert "usage" not in await create(server)
        events = await stream(server)
    assert "usage" not in events[0]["message"]
    assert "usage" not in events[-2]


async def test_a_call_opens_with_id_and_name_and_goes_on_in_fragments() -> None:
    call = anthropic.ToolCall("look", {"city": "Oslo"})
    with wire.anthropic_server([anthropic.answer("See:", tool_calls=[call])]) as server:
        events = await stream(server)
    start = [event for event in events if event["type"] == "content_block_start"][1]
    assert (start["index"], start["content_block"]) == (
        1,
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
    )
    fragments = [delta["partial_json"] for delta in deltas(events) if delta["type"] == "input_json_delta"]
    assert fragments[0] == ""
    assert len(fragments) > 2
    assert "".join(fragments) == '{"city": "Oslo"}'


async def test_broken_input_of_a_call_is_streamed_as_it_is() -> None:
    with wire.anthropic_server([anthropic.answer(tool_calls=[anthropic.ToolCall("look", ['{"q"', ":"])])]) as server:
        assert [delta["partial_json"] for delta in deltas(await stream(server))] == ["", '{"q"', ":"]


async def test_thinking_may_come_in_given_fragments() -> None:
    thought = anthropic.Thinking(["Let me", wire.Pause(0.001), " think"])
    with wire.anthropic_server([anthropic.answer("a", thinking=thought)]) as server:
        assert deltas(await stream(server))[:3] == [
            {"type": "thinking_delta", "thinking": "Let me"},
            {"type": "thinking_delta", "thinking": " think"},
            {"type": "signature_delta", "signature": anthropic.SIGNATURE},
        ]


def test_text_and_deltas_together_are_refused() -> None:
    with pytest.raises(ValueError, match="give one of them"):
        anthropic.answer("a", deltas=["a"])


# Messages in the API's own JSON


CITATION = {"type": "web_search_result_location", "url": "https://a.test", "cited_text": "x", "title": "A"}
NATIVE: Json = {
    "id": "msg_own",
    "type": "message",
    "role": "assistant",
    "model": "claude-own",
    "content": [
        {"type": "server_tool_use", "id": "srvtoolu_9", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_9", "content": []},
        {"type": "text", "text": "Found it.", "citations": [CITATION]},
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "ask", "server_name": "m", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False, "content": []},
        {"type": "compaction", "content": "before: much", "encrypted_content": "ENC"},
    ],
    "stop_reason": "pause_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 2},
}


async def test_a_whole_message_can_be_the_reply() -> None:
    with wire.anthropic_server([anthropic.of_message(NATIVE)]) as server:
        assert await create(server) == NATIVE


async def test_the_events_of_a_message_add_up_to_it() -> None:
    with wire.anthropic_server([anthropic.of_message(NATIVE)]) as server:
        events = await stream(server)
    assert (events[0]["message"]["id"], events[0]["message"]["model"]) == ("msg_own", "claude-own")
    starts = {event["index"]: event["content_block"] for event in events if event["type"] == "content_block_start"}
    assert starts[0]["input"] == {}
    assert starts[1] == NATIVE["content"][1]
    assert (starts[2]["text"], starts[2]["citations"]) == ("", [])
    by_index: dict[int, list[Json]] = {}
    for event in events:
        if event["type"] == "content_block_delta":
            by_index.setdefault(event["index"], []).append(event["delta"])
    assert "".join(delta["partial_json"] for delta in by_index[0]) == '{"query": "x"}'
    assert by_index[2][-1] == {"type": "citations_delta", "citation": CITATION}
    assert "".join(delta["partial_json"] for delta in by_index[3]) == "{}"
    assert by_index[5] == [{"type": "compaction_delta", "content": "before: much", "encrypted_content": "ENC"}]
    assert starts[5] == {"type": "compaction", "content": None, "encrypted_content": None}


def test_a_message_without_a_list_of_blocks_is_refused() -> None:
    with pytest.raises(ValueError, match="content must be a list of blocks"):
        anthropic.of_message({"content": "text"})


# Scripted events


async def test_a_scripted_stream_sends_events_as_they_stand() -> None:
    scripted: list[anthropic.Event] = [
        {"type": "message_start", "message": {"id": "m", "content": []}},
        ": a comment\n\n",
        {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "é"}},
        b'event: message_stop\ndata: {"type": "message_stop"}\n\n',
    ]
    with wire.anthropic_server([wire.StreamReply(scripted)]) as server:
        events = await stream(server)
    assert kinds(events) == ["message_start", "content_block_delta", "message_stop"]
    assert texts(events) == ["é"]


async def test_events_of_a_helper_can_be_mixed_with_others() -> None:
    said = [*anthropic.events(["Half an"])][:-2]
    scripted = [*said, anthropic.error_event("Overloaded")]
    events: list[Json] = []
    with wire.anthropic_server([wire.StreamReply(scripted)]) as server, pytest.raises(sdk.APIStatusError) as caught:
        await collect(server, events)
    assert texts(events) == ["Half", " an"]
    assert (caught.value.type, caught.value.status_code) == ("overloaded_error", 200)


def test_an_event_without_a_type_has_data_alone() -> None:
    assert list(wire.StreamReply([{"a": 1}]).parts()) == [b'data: {"a":1}\n\n']
