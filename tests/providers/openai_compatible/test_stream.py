"""From events to parts: the grammar's rules, failures, usage."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from neurolink_mw.errors import OverloadedError, ProviderError, RateLimitError, ServerError, StreamInterruptedError
from neurolink_mw.protocol import File, Raw, Reasoning, Source, Text, collect
from neurolink_mw.providers.common.sse import ServerSentEvent
from neurolink_mw.providers.openai_compatible.response import parse_response
from neurolink_mw.providers.openai_compatible.stream import ChatStream, NativeEvent, parse_stream

from ..streams import errors, finish
from .chunks import CALLS, STOP, Json, call, chunk, kinds, parts_of

# ------------------------------------------------------------------------------------------------------ the whole


def test_parse_stream_takes_chunks_texts_and_framed_events_from_sync_and_async_sources() -> None:
    events: list[NativeEvent] = [
        chunk({"content": "a"}),
        json.dumps(chunk({"content": "b"})),
        json.dumps(chunk({"content": "c"})).encode(),
        ServerSentEvent(json.dumps(STOP).encode()),
        "[DONE]",
    ]

    async def read() -> None:
        async def source() -> Any:
            for event in events:
                yield event

        one = [part async for part in parse_stream(events, provider="acme")]
        two = [part async for part in parse_stream(source(), provider="acme")]
        assert one == two
        assert collect(one).text == "abc"

    anyio.run(read)


def test_a_stream_adds_up_to_the_same_content_as_the_whole_answer() -> None:
    streamed = collect(
        parts_of(
            chunk({"role": "assistant", "content": ""}),
            chunk({"reasoning_content": "hm"}),
            chunk({"content": "Hel"}),
            chunk({"content": "lo"}),
            chunk({"tool_calls": [call(0, None, "look", '{"q":')]}),
            chunk({"tool_calls": [call(0, None, None, "1}")]}),
            CALLS,
        )
    )
    message = {"content": "Hello", "reasoning_content": "hm", "tool_calls": [call(0, None, "look", '{"q":1}')]}
    whole = parse_response({**chunk(), "choices": [{"message": message, "finish_reason": "tool_calls"}]})
    assert streamed.content == whole.content  # the made id of the call included
    assert streamed.finish_reason == whole.finish_reason


def test_an_unknown_event_is_a_raw_part_where_asked_for_and_nothing_else() -> None:
    odd: list[NativeEvent] = [{"type": "ping"}, {}, {"detail": "x"}, "", "  "]
    assert kinds(parts_of(*odd, chunk({"content": "x"}), STOP)) == kinds(parts_of(chunk({"content": "x"}), STOP))
    parts = parts_of({"type": "ping"}, chunk({"content": "x"}), STOP, include_raw=True)
    assert kinds(parts[1:4]) == ["raw", "raw", "response-metadata"]
    assert isinstance(parts[1], Raw)
    assert parts[1].raw_value == {"type": "ping"}


def test_a_raw_part_stands_before_the_error_that_its_chunk_makes() -> None:
    parts = parts_of(chunk({"content": "x"}), "{broken", {"error": {"message": "no"}}, include_raw=True)
    assert kinds(parts)[5:9] == ["raw", "error", "raw", "error"]


def test_response_metadata_waits_for_a_chunk_that_has_some() -> None:
    azure = {"id": "", "model": "", "choices": [], "prompt_filter_results": []}
    parts = parts_of(azure, chunk({"content": "x"}), STOP)
    assert kinds(parts)[:3] == ["stream-start", "response-metadata", "text-start"]
    assert collect(parts).response is not None
    assert collect(parts).response.id == "c-1"  # type: ignore[union-attr]  # as asserted


def test_text_after_reasoning_after_text_gets_new_ids() -> None:
    parts = parts_of(
        chunk({"content": "a"}), chunk({"reasoning": "r"}), chunk({"content": "b"}), chunk({"reasoning": "s"}), STOP
    )
    ids = [part.id for part in parts if part.type in ("text-start", "reasoning-start")]  # type: ignore[union-attr]
    assert ids == ["txt-0", "reasoning-0", "txt-1", "reasoning-1"]


def test_reasoning_of_a_chunk_comes_before_its_text() -> None:
    content = collect(parts_of(chunk({"content": "t", "reasoning_content": "r"}), STOP)).content
    assert content == (Reasoning("r"), Text("t"))


def test_reasoning_ends_where_tool_calls_begin() -> None:
    parts = parts_of(chunk({"reasoning": "r"}), chunk({"tool_calls": [call(0, "c1", "look", "{}")]}), CALLS)
    assert kinds(parts)[4:6] == ["reasoning-end", "tool-input-start"]
    untouched = parts_of(chunk({"reasoning": "r", "tool_calls": []}), chunk({"reasoning": "s"}), STOP)
    assert kinds(untouched).count("reasoning-start") == 1


def test_content_may_be_a_list_of_text_and_thinking_chunks() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    delta = {"content": [thinking, {"type": "text", "text": "ok"}]}
    assert collect(parts_of(chunk(delta), STOP)).content == (Reasoning("hm"), Text("ok"))


def test_a_refusal_is_text_that_is_marked_and_ends_as_filtered() -> None:
    result = collect(parts_of(chunk({"refusal": "I can"}), chunk({"refusal": "not."}), STOP, provider="acme"))
    assert result.text == "I cannot."
    assert (result.finish_reason.unified, result.finish_reason.raw) == ("content-filter", "stop")
    assert result.content[0].provider_metadata == {"acme": {"refusal": True}}  # type: ignore[union-attr]
    assert result.provider_metadata == {"acme": {"refusal": "I cannot."}}


def test_images_sources_and_speech_are_passed_on() -> None:
    image = {"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}}]}
    cited = {"annotations": [{"type": "url_citation", "url_citation": {"url": "https://a.test", "title": "A"}}]}
    parts = parts_of(
        chunk(image),
        chunk({"content": "x"}, citations=["https://b.test"]),
        chunk(cited, citations=["https://b.test"]),
        chunk({"audio": {"id": "a1", "data": "AAEC", "transcript": " spoken"}}),
        chunk({"audio": {"data": "AwQF"}}),
        STOP,
    )
    result = collect(parts)
    assert result.text == "x spoken"
    assert [(part.media_type, part.data) for part in result.content if isinstance(part, File)] == [
        ("image/png", b"\x00\x01\x02"),
        ("audio/wav", b"\x00\x01\x02\x03\x04\x05"),
    ]
    sources = [(part.id, part.url, part.title) for part in result.content if isinstance(part, Source)]
    assert sources == [("source-0", "https://b.test", None), ("source-1", "https://a.test", "A")]


def test_usage_is_overwritten_and_a_null_does_not_erase_it() -> None:
    first, last = {"prompt_tokens": 1, "completion_tokens": 1}, {"prompt_tokens": 1, "completion_tokens": 7}
    parts = parts_of(
        chunk({"content": "x"}, usage=first), chunk({}, "stop", usage=last), {"choices": [], "usage": None}
    )
    usage = collect(parts).usage
    assert (usage.input_tokens.total, usage.output_tokens.total) == (1, 7)


def test_the_last_finish_reason_that_is_not_null_stands_and_finish_waits_for_the_end() -> None:
    parts = parts_of(chunk({"content": "x"}, "stop"), chunk({"content": "y"}), chunk({}, "length"), "[DONE]")
    assert finish(parts) == ("length", "length")
    assert collect(parts).text == "xy"


@pytest.mark.parametrize(
    ("raw", "unified"),
    [("stop", "stop"), ("content_filter", "content-filter"), ("function_call", "tool-calls"), ("eos", "other")],
)
def test_finish_reasons_have_one_meaning_each(raw: str, unified: str) -> None:
    assert finish(parts_of(chunk({"content": "x"}, raw))) == (unified, raw)


# ------------------------------------------------------------------------------------------------------- failures


def test_a_cut_is_an_error_and_never_a_quiet_stop() -> None:
    parts = parts_of(chunk({"content": "x"}))
    assert finish(parts) == ("error", "interrupted")
    assert isinstance(errors(parts)[0], StreamInterruptedError)


def test_a_last_event_without_its_empty_line_is_a_cut_unless_it_is_done() -> None:
    cut, done = ChatStream(), ChatStream()
    for machine in (cut, done):
        machine.feed(chunk({"content": "x"}, "stop"))
    assert finish(cut.finish(b'{"choices":[],"usage":{"prompt_t')) == ("error", "interrupted")
    assert finish(done.finish(b"[DONE]\n")) == ("stop", "stop")


def test_a_cut_takes_half_a_tool_call_away() -> None:
    parts = parts_of(chunk({"tool_calls": [call(0, "c1", "look", '{"path": "/tm')]}))
    assert kinds(parts)[-3:] == ["tool-input-end", "error", "finish"]


def test_the_reason_stays_error_whatever_comes_later() -> None:
    parts = parts_of(chunk({"content": "x"}), {"error": {"message": "boom"}}, chunk({"content": "y"}), STOP, "[DONE]")
    assert finish(parts) == ("error", "stop")
    assert collect(parts).text == "xy"


def test_the_end_after_an_error_is_no_second_error() -> None:
    assert len(errors(parts_of(chunk({"content": "x"}), {"error": {"message": "boom"}}))) == 1


@pytest.mark.parametrize(
    ("error", "cls", "status", "retryable"),
    [
        ({"error": {"message": "m", "code": 429}}, RateLimitError, 429, True),
        ({"error": {"message": "m", "code": "503"}}, OverloadedError, 503, True),
        ({"error": {"message": "m", "type": "server_error"}}, ServerError, None, True),
        ({"error": {"message": "m", "type": "overloaded_error"}}, OverloadedError, None, True),
        ({"error": "m"}, ProviderError, None, False),
        ({"object": "error", "message": "m", "code": 500}, ServerError, 500, True),
        (
            {"choices": [{"delta": {}, "finish_reason": "error", "error": {"code": 502, "message": "m"}}]},
            ServerError,
            502,
            True,
        ),
    ],
)
def test_an_error_object_is_typed_by_its_code_else_by_its_kind(
    error: Json, cls: type[ProviderError], status: int | None, retryable: bool
) -> None:
    (found,) = errors(parts_of(chunk({"content": "x"}), error))
    assert (type(found), found.status, found.retryable) == (cls, status, retryable)
    assert str(found).endswith(": m")


def test_an_event_of_type_error_is_an_error_whatever_it_holds() -> None:
    for data in (b'{"message":"boom"}', b"boom", b'{"error":{"message":"boom"}}'):
        (found,) = errors(parts_of(chunk({"content": "x"}), ServerSentEvent(data, "error")))
        assert str(found).endswith(": boom")


@pytest.mark.parametrize(
    "event",
    [
        "{broken",
        "[1]",
        "5",
        {"choices": "x"},
        {"choices": ["x"]},
        {"choices": [{"delta": "x"}]},
        {"choices": [{"delta": {"content": 5}}]},
        {"choices": [{"delta": {"tool_calls": {"id": "c"}}}]},
        {"choices": [{"delta": {"tool_calls": ["x"]}}]},
    ],
)
def test_a_chunk_that_is_none_is_an_error_and_the_stream_goes_on(event: NativeEvent) -> None:
    parts = parts_of(chunk({"content": "x"}), event, chunk({"content": "y"}), STOP)
    assert len(errors(parts)) == 1
    assert collect(parts).text == "xy"
    assert finish(parts)[0] == "error"


def test_loose_json_that_real_servers_send_is_read() -> None:
    texts: list[NativeEvent] = [
        '{"choices":[{"delta":{"content":"a\\ud83d"},"logprobs":NaN}]}',
        b'{"choices":[{"delta":{"content":"\xff"}}]}',
    ]
    assert collect(parts_of(*texts, STOP)).text == "a\ufffd\ufffd"


@pytest.mark.parametrize(
    ("events", "counts"),
    [
        pytest.param(
            [
                {"choices": [{"delta": {"content": "ok"}}], "usage": None},
                {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": None},
                {
                    "choices": [],
                    "usage": {
                        "prompt_tokens": 13,
                        "completion_tokens": 2,
                        "prompt_tokens_details": {"cached_tokens": 8},
                    },
                },
            ],
            (13, 8, 5, 2),
            id="as specified",
        ),
        pytest.param(
            [
                {"choices": [{"delta": {"content": "ok"}}], "usage": {"prompt_tokens": 13, "completion_tokens": 1}},
                {
                    "choices": [{"delta": {}, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 13, "completion_tokens": 2},
                },
            ],
            (13, None, 13, 2),
            id="with choices, twice",
        ),
        pytest.param(
            [{"choices": [{"delta": {"content": "ok"}}]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}],
            (None, None, None, None),
            id="none at all",
        ),
    ],
)
def test_usage_is_taken_from_wherever_it_stands(events: list[Json], counts: tuple[int | None, ...]) -> None:
    # elastic/kibana#192951
    parts = parts_of(*events, "[DONE]")
    usage = collect(parts).usage
    read, written = usage.input_tokens, usage.output_tokens
    assert (read.total, read.cache_read, read.no_cache, written.total) == counts
    assert kinds(parts).count("finish") == 1
