"""The Bedrock server, seen from the outside: real sockets and a real boto3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from botocore.eventstream import ChecksumMismatch
from botocore.exceptions import ClientError, EventStreamError
from tests.testing.wire.clients import HELLO, bedrock_client, collect, converse, deltas, stream, texts

from neurolink_mw.testing import wire
from neurolink_mw.testing.wire import bedrock, eventstream

ARN = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.acme.model-v1:0"


def names(events: list[Mapping[str, Any]]) -> list[str]:
    return [next(iter(event)) for event in events]


# Whole answers


def test_a_text_is_a_whole_answer() -> None:
    with wire.bedrock_server([bedrock.answer("Hello there")]) as server:
        native = converse(server)
    assert native["output"] == {"message": {"role": "assistant", "content": [{"text": "Hello there"}]}}
    assert native["stopReason"] == "end_turn"
    assert native["usage"] == {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
    assert native["metrics"] == {"latencyMs": 120}
    assert native["ResponseMetadata"]["RequestId"] == bedrock.REQUEST_ID


def test_an_answer_has_reasoning_then_text_then_calls() -> None:
    calls = [bedrock.ToolCall("look", {"q": 1}), bedrock.ToolCall("smell", "", id="own")]
    with wire.bedrock_server([bedrock.answer("Let me see.", reasoning="Hm.", tool_calls=calls)]) as server:
        native = converse(server)
    assert native["stopReason"] == "tool_use"
    assert native["output"]["message"]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": bedrock.SIGNATURE}}},
        {"text": "Let me see."},
        {"toolUse": {"toolUseId": "tooluse_1", "name": "look", "input": {"q": 1}}},
        {"toolUse": {"toolUseId": "own", "name": "smell", "input": {}}},
    ]


def test_reasoning_may_be_unsigned_or_redacted() -> None:
    thoughts: list[str | bedrock.Thought] = [
        bedrock.Reasoning("Hm.", signature=None),
        bedrock.RedactedReasoning(b"\x00\xff"),
        "So.",
    ]
    with wire.bedrock_server([bedrock.answer("a", reasoning=thoughts)], repeat="last") as server:
        whole = converse(server)["output"]["message"]["content"]
        streamed = deltas(stream(server))
    assert whole[:3] == [
        {"reasoningContent": {"reasoningText": {"text": "Hm."}}},
        {"reasoningContent": {"redactedContent": b"\x00\xff"}},
        {"reasoningContent": {"reasoningText": {"text": "So.", "signature": bedrock.SIGNATURE}}},
    ]
    assert streamed[:4] == [
        {"reasoningContent": {"text": "Hm."}},
        {"reasoningContent": {"redactedContent": b"\x00\xff"}},
        {"reasoningContent": {"text": "So."}},
        {"reasoningContent": {"signature": bedrock.SIGNATURE}},
    ]


def test_a_call_of_the_service_is_marked_and_does_not_stop_for_the_client() -> None:
    with wire.bedrock_server([bedrock.answer(tool_calls=[bedrock.ToolCall("search", {}, server=True)])]) as server:
        native = converse(server)
    [block] = native["output"]["message"]["content"]
    assert block["toolUse"]["type"] == "server_tool_use"
    assert native["stopReason"] == "end_turn"


def test_usage_counts_the_cache_apart_and_in_the_total() -> None:
    usage = bedrock.usage(4, 6, cache_read=100, cache_write=20)
    with wire.bedrock_server([bedrock.answer("a", usage=usage)]) as server:
        assert converse(server)["usage"] == {
            "inputTokens": 4,
            "outputTokens": 6,
            "totalTokens": 130,
            "cacheReadInputTokens": 100,
            "cacheWriteInputTokens": 20,
        }


def test_stop_reason_trace_and_further_members_are_those_given() -> None:
    trace = {"guardrail": {"actionReason": "word"}}
    reply = bedrock.answer(
        "no",
        stop_reason="guardrail_intervened",
        trace=trace,
        fields={"stop_sequence": "END"},
        metadata={"serviceTier": {"type": "flex"}},
    )
    with wire.bedrock_server([reply], repeat="last") as server:
        whole = converse(server)
        *_, stop, last = stream(server)
    assert (whole["stopReason"], whole["trace"]) == ("guardrail_intervened", trace)
    assert (whole["additionalModelResponseFields"], whole["serviceTier"]) == (
        {"stop_sequence": "END"},
        {"type": "flex"},
    )
    assert stop["messageStop"] == {
        "stopReason": "guardrail_intervened",
        "additionalModelResponseFields": {"stop_sequence": "END"},
    }
    assert (last["metadata"]["trace"], last["metadata"]["serviceTier"]) == (trace, {"type": "flex"})


def test_broken_input_of_a_call_is_text_in_a_whole_answer() -> None:
    with wire.bedrock_server([bedrock.answer(tool_calls=[bedrock.ToolCall("look", '{"q":')])]) as server:
        assert converse(server)["output"]["message"]["content"][0]["toolUse"]["input"] == '{"q":'


# Streams


def test_a_text_is_streamed_word_by_word() -> None:
    with wire.bedrock_server([bedrock.answer("Hello there, you")]) as server:
        events = stream(server)
    assert names(events) == ["messageStart", *["contentBlockDelta"] * 3, "contentBlockStop", "messageStop", "metadata"]
    assert texts(events) == ["Hello", " there,", " you"]
    assert events[-1]["metadata"] == {
        "usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15},
        "metrics": {"latencyMs": 120},
    }


def test_a_call_opens_with_id_and_name_and_goes_on_in_fragments() -> None:
    call = bedrock.ToolCall("look", {"city": "Oslo"})
    with wire.bedrock_server([bedrock.answer("See:", tool_calls=[call])]) as server:
        events = stream(server)
    [start] = [event["contentBlockStart"] for event in events if "contentBlockStart" in event]
    assert start == {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "tooluse_1", "name": "look"}}}
    fragments = [delta["toolUse"]["input"] for delta in deltas(events) if "toolUse" in delta]
    assert len(fragments) > 1
    assert "".join(fragments) == '{"city": "Oslo"}'


def test_reasoning_may_come_in_given_fragments() -> None:
    with wire.bedrock_server([bedrock.answer("a", reasoning=["Let me", wire.Pause(0.001), " think"])]) as server:
        thought = [delta["reasoningContent"] for delta in deltas(stream(server)) if "reasoningContent" in delta]
    assert thought == [{"text": "Let me"}, {"text": " think"}, {"signature": bedrock.SIGNATURE}]


def test_a_signature_ends_its_reasoning() -> None:
    with wire.bedrock_server([bedrock.answer("a", reasoning="Let me think")]) as server:
        thought = [delta["reasoningContent"] for delta in deltas(stream(server)) if "reasoningContent" in delta]
    assert thought == [{"text": "Let"}, {"text": " me"}, {"text": " think"}, {"signature": bedrock.SIGNATURE}]


def test_a_stream_without_usage_has_no_metadata() -> None:
    with wire.bedrock_server([bedrock.answer("a", usage=None)]) as server:
        assert names(stream(server))[-1] == "messageStop"


def test_broken_input_of_a_call_is_streamed_as_it_is() -> None:
    with wire.bedrock_server([bedrock.answer(tool_calls=[bedrock.ToolCall("look", ['{"q"', ":"])])]) as server:
        assert deltas(stream(server)) == [{"toolUse": {"input": '{"q"'}}, {"toolUse": {"input": ":"}}]


def test_events_are_padded_as_the_service_pads_them() -> None:
    with wire.bedrock_server([bedrock.answer("a b")]) as server:
        content = httpx.post(f"{server.base_url}/model/m/converse-stream", json={"messages": HELLO}).content
    assert content.count(b',"p":"a') == 6


def test_text_and_deltas_together_are_refused() -> None:
    with pytest.raises(ValueError, match="give one of them"):
        bedrock.answer("a", deltas=["a"])


# Scripted events


def test_a_scripted_stream_sends_events_as_they_stand() -> None:
    scripted: list[bedrock.Event] = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 3, "delta": {"text": "é"}}},
        eventstream.event("messageStop", {"stopReason": "stop_sequence"}),
    ]
    with wire.bedrock_server([wire.EventsReply(scripted)]) as server:
        events = stream(server)
    assert events == [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 3, "delta": {"text": "é"}}},
        {"messageStop": {"stopReason": "stop_sequence"}},
    ]


def test_padding_can_be_left_out() -> None:
    bare = wire.EventsReply([{"messageStop": {"stopReason": "end_turn"}}], padded=False)
    assert list(bare.parts()) == [eventstream.event("messageStop", {"stopReason": "end_turn"})]


def test_an_item_that_is_not_one_event_is_refused() -> None:
    with pytest.raises(ValueError, match=r"events\[1\] is one event"):
        wire.EventsReply([{"messageStart": {}}, {"messageStop": {}, "metadata": {}}])


def test_an_exception_event_ends_a_stream_behind_what_came() -> None:
    scripted: list[bedrock.Event] = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Half an "}}},
        {"throttlingException": {"message": "Too many requests"}},
    ]
    events: list[Mapping[str, Any]] = []
    with wire.bedrock_server([wire.EventsReply(scripted)]) as server, pytest.raises(EventStreamError) as caught:
        collect(server, events)
    assert texts(events) == ["Half an "]
    assert caught.value.response["Error"] == {"Code": "throttlingException", "Message": "Too many requests"}


def test_an_error_outside_the_model_ends_a_stream() -> None:
    with (
        wire.bedrock_server([wire.EventsReply([eventstream.error("InternalError", "it broke")])]) as server,
        pytest.raises(EventStreamError) as caught,
    ):
        stream(server)
    assert caught.value.response["Error"] == {"Code": "InternalError", "Message": "it broke"}


@pytest.mark.parametrize("corrupt", ["prelude", "message"])
def test_a_corrupt_frame_is_noticed_behind_what_came(corrupt: eventstream.Corrupt) -> None:
    scripted: list[bedrock.Event] = [
        {"messageStart": {"role": "assistant"}},
        eventstream.event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "a"}}, corrupt=corrupt),
    ]
    events: list[Mapping[str, Any]] = []
    with wire.bedrock_server([wire.EventsReply(scripted)]) as server, pytest.raises(ChecksumMismatch):
        collect(server, events)
    assert events == [{"messageStart": {"role": "assistant"}}]


# Errors


@pytest.mark.parametrize("ask", [converse, stream])
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "ValidationException"),
        (403, "AccessDeniedException"),
        (408, "ModelTimeoutException"),
        (429, "ThrottlingException"),
        (429, "ModelNotReadyException"),
        (500, "InternalServerException"),
        (503, "ServiceUnavailableException"),
    ],
)
def test_an_error_reaches_boto3_with_its_code(ask: Any, status: int, code: str) -> None:
    error = bedrock.error(status, code, "why", retry_after=7)
    with wire.bedrock_server([error]) as server, pytest.raises(ClientError) as caught:
        ask(server)
    response: Mapping[str, Any] = caught.value.response
    assert response["Error"] == {"Code": code, "Message": "why"}
    assert type(caught.value).__name__ == code
    assert response["ResponseMetadata"]["HTTPStatusCode"] == status
    assert response["ResponseMetadata"]["RequestId"] == bedrock.REQUEST_ID
    assert response["ResponseMetadata"]["HTTPHeaders"]["retry-after"] == "7"


def test_an_error_has_further_members() -> None:
    members = {"originalStatusCode": 529, "resourceName": "acme"}
    error = bedrock.error(424, "ModelErrorException", "why", members=members)
    with wire.bedrock_server([error]) as server, pytest.raises(ClientError) as caught:
        converse(server)
    response: Mapping[str, Any] = caught.value.response
    assert (response["originalStatusCode"], response["resourceName"]) == (529, "acme")


def test_own_headers_win() -> None:
    error = bedrock.error(429, "ThrottlingException", "why", headers={"X-Amzn-RequestId": "r1"})
    with wire.bedrock_server([error]) as server, pytest.raises(ClientError) as caught:
        converse(server)
    assert caught.value.response["ResponseMetadata"]["RequestId"] == "r1"


def test_an_exhausted_script_says_so_to_boto3() -> None:
    with wire.bedrock_server() as server, pytest.raises(ClientError, match="The script is exhausted"):
        converse(server)


# The journal and the server's own rules


def test_the_journal_tells_model_operation_and_body() -> None:
    with wire.bedrock_server([bedrock.answer("a")], repeat="last") as server:
        converse(server, modelId=ARN, inferenceConfig={"maxTokens": 5})
        stream(server)
        whole, streamed = server.journal
    assert bedrock.asked(whole) == (ARN, "converse")
    assert bedrock.asked(streamed) == ("acme.model-v1:0", "converse-stream")
    assert whole.json == {"messages": HELLO, "inferenceConfig": {"maxTokens": 5}}


def test_another_path_asks_for_no_model() -> None:
    with pytest.raises(ValueError, match="neither"):
        bedrock.asked(wire.Exchange("POST", "/model/m/invoke", {}, b""))


@pytest.mark.parametrize("ask", [converse, stream])
def test_a_breach_of_the_rules_is_refused_and_uses_up_no_reply(ask: Any) -> None:
    with wire.bedrock_server([bedrock.answer("a")]) as server:
        with pytest.raises(ClientError) as caught:
            ask(server, messages=[{"role": "user", "content": [{"text": " "}]}])
        assert ask(server)
    assert type(caught.value).__name__ == "ValidationException"
    assert "messages.0.content.0 is blank" in caught.value.response["Error"]["Message"]
    assert [exchange.source for exchange in server.journal] == ["server", "script"]


def test_the_rules_can_be_left_out() -> None:
    with wire.bedrock_server([bedrock.answer("a")], enforce=False) as server:
        assert converse(server, messages=[])


def test_a_stored_prompt_needs_no_messages() -> None:
    prompt = "arn:aws:bedrock:us-east-1:123456789012:prompt/ABCDEFGHIJ:1"
    with wire.bedrock_server([bedrock.answer("a")]) as server, bedrock_client(server) as client:
        assert client.converse(modelId=prompt, promptVariables={"who": {"text": "you"}})


@pytest.mark.parametrize("content", [b"", b"[1]", b"{"])
def test_a_body_that_is_no_object_is_refused(content: bytes) -> None:
    with wire.bedrock_server(enforce=False) as server:
        response = httpx.post(f"{server.base_url}/model/m/converse", content=content)
    assert (response.status_code, response.headers["x-amzn-errortype"]) == (400, "SerializationException")


@pytest.mark.parametrize(("method", "path"), [("POST", "/model/m/invoke"), ("GET", "/model/m/converse")])
def test_another_operation_is_unknown(method: str, path: str) -> None:
    with wire.bedrock_server() as server:
        response = httpx.request(method, f"{server.base_url}{path}", json={})
    assert (response.status_code, response.headers["x-amzn-errortype"]) == (404, "UnknownOperationException")


def test_what_an_answer_says_can_be_replayed() -> None:
    calls = [bedrock.ToolCall("look", {"q": 1}), bedrock.ToolCall("look", {"q": 2})]
    tools = {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}]}
    with wire.bedrock_server([bedrock.answer("See", reasoning="Hm", tool_calls=calls), bedrock.answer("a")]) as server:
        said = converse(server, toolConfig=tools)["output"]["message"]
        results = [
            {"toolResult": {"toolUseId": block["toolUse"]["toolUseId"], "content": [{"json": {}}]}}
            for block in said["content"]
            if "toolUse" in block
        ]
        history = [*HELLO, said, {"role": "user", "content": results}]
        assert converse(server, messages=history, toolConfig=tools)["stopReason"] == "end_turn"
