"""From the body of a completion to an answer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from neurolink_mw.errors import ContextOverflowError, ProviderError, RateLimitError
from neurolink_mw.protocol import File, GenerateResult, JSONObject, Reasoning, Source, Text, ToolCall
from neurolink_mw.providers.openai_compatible.response import parse_response

Json = dict[str, Any]


def answer(message: Json, finish_reason: str | None = "stop", **more: Any) -> GenerateResult:
    native = {"id": "c-1", "choices": [{"message": message, "finish_reason": finish_reason}], **more}
    return parse_response(native, provider="acme", **({"request_body": more["asked"]} if "asked" in more else {}))


def test_content_stands_in_the_order_reasoning_text_files_calls_sources() -> None:
    message = {
        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
        "images": [{"image_url": {"url": "data:image/webp;base64,AAEC"}}],
        "annotations": [
            {
                "type": "url_citation",
                "url_citation": {"url": "https://a.test", "title": "A", "start_index": 0, "end_index": 4},
            }
        ],
        "content": "t",
        "reasoning": "r",
    }
    assert answer(message).content == (
        Reasoning("r"),
        Text("t"),
        File("image/webp", b"\0\1\2"),
        ToolCall("c", "f", "{}"),
        Source("url", "source-0", "https://a.test", "A", provider_metadata={"acme": {"startIndex": 0, "endIndex": 4}}),
    )


def test_calls_without_an_id_or_with_one_twice_get_made_ids_that_are_always_the_same() -> None:
    calls = [{"id": id, "function": {"name": "f", "arguments": None}} for id in ("a", "a", "", None)]
    first, second = answer({"tool_calls": calls}), answer({"tool_calls": calls})
    ids = [call.tool_call_id for call in first.tool_calls]
    assert ids[0] == "a"
    assert len(set(ids)) == 4
    assert [call.input for call in first.tool_calls] == ["{}"] * 4
    assert first == second


def test_made_ids_differ_between_answers() -> None:
    calls = {"tool_calls": [{"function": {"name": "f"}}]}
    bodies = [{"choices": [{"message": calls}], "id": id} for id in ("c-1", "c-2", None, None)]
    assert len({parse_response(body).tool_calls[0].tool_call_id for body in bodies}) == 4


def test_arguments_may_be_an_object_and_calls_may_have_their_old_form() -> None:
    assert answer({"tool_calls": [{"function": {"name": "f", "arguments": {"q": 1}}}]}).tool_calls[0].input == '{"q":1}'
    assert answer({"function_call": {"name": "f", "arguments": "{}"}}).tool_calls[0].tool_name == "f"


def test_speech_is_a_file_of_the_type_that_was_asked_for_and_its_transcript_the_text() -> None:
    audio = {"id": "a", "data": "AAEC", "transcript": "hello", "expires_at": 9}
    result = answer({"content": None, "audio": audio}, asked={"audio": {"format": "mp3"}})
    metadata: JSONObject = {"acme": {"audioId": "a", "expiresAt": 9, "transcript": "hello"}}
    assert result.content == (Text("hello"), File("audio/mpeg", b"\0\1\2", metadata))
    assert answer({"audio": {"data": "no base64!"}}).content == ()


def test_a_refusal_is_marked_text_and_a_filtered_end() -> None:
    result = answer({"content": None, "refusal": "No."})
    assert result.content == (Text("No.", {"acme": {"refusal": True}}),)
    assert (result.finish_reason.unified, result.finish_reason.raw) == ("content-filter", "stop")


def test_numbers_that_were_not_reported_stay_unset() -> None:
    usage = answer({"content": "x"}, usage={"prompt_tokens": 5}).usage
    assert (usage.input_tokens.total, usage.input_tokens.cache_read, usage.output_tokens.total) == (5, None, None)
    odd = answer({"content": "x"}, usage={"prompt_tokens": "5", "completion_tokens": True}).usage
    assert (odd.input_tokens.total, odd.output_tokens.total) == (None, None)
    assert answer({"content": "x"}, usage={"prompt_tokens": 0}).usage.input_tokens.total == 0


def test_cached_tokens_are_part_of_the_prompt_under_either_name() -> None:
    for cached in ({"prompt_tokens_details": {"cached_tokens": 4}}, {"prompt_cache_hit_tokens": 4}):
        read = answer({"content": "x"}, usage={"prompt_tokens": 5, **cached}).usage.input_tokens
        assert (read.total, read.no_cache, read.cache_read) == (5, 1, 4)


def test_the_answer_says_who_gave_it() -> None:
    native = {"id": "c", "created": 1_760_000_000, "model": "m-x", "choices": [{"message": {"content": "x"}}]}
    response = parse_response(native, headers={"x-request-id": "r"}).response
    assert response is not None
    assert (response.id, response.model_id, response.body) == ("c", "m-x", native)
    assert response.timestamp == datetime(2025, 10, 9, 8, 53, 20, tzinfo=UTC)
    assert response.headers == {"x-request-id": "r"}


@pytest.mark.parametrize(
    "native",
    [
        None,
        [],
        "text",
        {},
        {"choices": []},
        {"choices": None},
        {"choices": ["x"]},
        {"choices": [{}]},
        {"choices": [{"message": "x"}]},
        {"choices": [{"message": {"tool_calls": ["x"]}}]},
        {"choices": [{"message": {"tool_calls": [{"id": "c", "function": {}}]}}]},
    ],
)
def test_half_an_answer_is_never_taken_for_a_whole_one(native: object) -> None:
    with pytest.raises(ProviderError) as caught:
        parse_response(native, provider="acme", model_id="m", status=200)
    assert caught.value.retryable is False
    assert (caught.value.provider, caught.value.model_id) == ("acme", "m")


@pytest.mark.parametrize(
    ("native", "cls", "status"),
    [
        ({"error": {"message": "slow", "code": 429}}, RateLimitError, 429),
        ({"error": {"message": "m", "code": "context_length_exceeded"}}, ContextOverflowError, 200),
        ({"error": "no"}, ProviderError, 200),
        ({"choices": [{"message": {"content": ""}, "error": {"code": 429, "message": "m"}}]}, RateLimitError, 429),
    ],
)
def test_an_error_object_in_place_of_an_answer_is_raised(native: Json, cls: type[ProviderError], status: int) -> None:
    with pytest.raises(ProviderError) as caught:
        parse_response(native, status=200)
    assert (type(caught.value), caught.value.status) == (cls, status)


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ({"content": 5}, "content of the answer is of type int"),
        ({"content": {"text": "a"}}, "content of the answer is of type dict"),
        ({"content": "a", "tool_calls": {"0": {}}}, "tool_calls of the answer is of type dict"),
        (
            {"tool_calls": [{"id": "c", "function": {}}]},
            r"tool_calls\[0\] of the answer names no function: .*\"id\":\"c\"",
        ),
    ],
)
def test_content_of_the_wrong_type_makes_no_empty_answer(message: Json, says: str) -> None:
    with pytest.raises(ProviderError, match=says):
        answer(message)
