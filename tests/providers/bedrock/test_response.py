"""Answers of `converse` as results: blocks, JSON by a tool, calls that were not wanted, metadata, what is no answer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from neurolink_mw.errors import ProviderError
from neurolink_mw.protocol import (
    CallWarning,
    File,
    GenerateResult,
    Reasoning,
    Source,
    Text,
    ToolCall,
    ToolResult,
    UnknownPart,
)
from neurolink_mw.providers.bedrock.request import Expected
from neurolink_mw.providers.bedrock.response import parse_response
from neurolink_mw.structured import AnswerTool

from .native import CLAUDE, PNG, USAGE, Json, own, own_metadata, whole


def read(*blocks: Json, expected: Expected | None = None, **more: Any) -> GenerateResult:
    return parse_response(whole(*blocks, **more), model_id=CLAUDE, expected=expected)


def use(id: str = "t1", name: str = "look", input: Any = None, **more: Any) -> Json:
    return {"toolUse": {"toolUseId": id, "name": name, "input": {"q": 1} if input is None else input, **more}}


# ------------------------------------------------------------------------------------------------------------- blocks


def test_blocks_are_content_in_their_order() -> None:
    answer = read(
        {"reasoningContent": {"reasoningText": {"text": "why", "signature": "SG"}}},
        {"reasoningContent": {"redactedContent": b"\x00\x01"}},
        {"text": "so"},
        use(),
        reason="tool_use",
    )
    assert answer.content == (
        Reasoning("why", own(signature="SG")),
        Reasoning("", own(redactedContent="AAE=")),
        Text("so"),
        ToolCall("t1", "look", '{"q":1}'),
    )


def test_an_empty_text_is_no_content() -> None:
    assert read({"text": ""}).content == ()


def test_cited_text_is_a_text_and_its_sources() -> None:
    law, page = {"title": "law", "sourceContent": [{"text": "§ 1"}]}, {"location": {"web": {"url": "https://a.test"}}}
    cited = {"content": [{"text": "So "}, {"text": "it is."}], "citations": [law, page]}
    text, first, second = read({"citationsContent": cited}).content
    assert text == Text("So it is.", own(citations=[law, page]))
    assert first == Source("document", "source-0", title="law", provider_metadata=own(citation=law))
    assert second == Source("url", "source-1", "https://a.test", provider_metadata=own(citation=page))


def test_a_picture_is_a_file() -> None:
    assert read({"image": {"format": "png", "source": {"bytes": PNG}}}).content == (File("image/png", PNG),)


@pytest.mark.parametrize(
    "block",
    [
        {"guardContent": {"text": {"text": "x"}}},
        {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b-a/x"}}}},
        {"image": {"format": "png", "source": {"bytes": b"x"}, "error": {"message": "too dark"}}},
        {"brandNew": {"data": [1]}},
        {"reasoningContent": {}},
    ],
)
def test_a_block_that_v3_does_not_have_survives_whole(block: Json) -> None:
    (part,) = read(block).content
    assert isinstance(part, UnknownPart)
    assert part.type == "custom"
    assert part.data["kind"] == f"bedrock.{next(iter(block))}"
    assert "block" in own_metadata(part.data["providerMetadata"])


def test_a_block_that_botocore_does_not_know_is_told_by_its_name() -> None:
    block = {"SDK_UNKNOWN_MEMBER": {"name": "brandNew"}}
    assert read(block).content == (UnknownPart("custom", {"kind": "bedrock.brandNew"}),)


def test_a_tool_of_the_service_has_run_and_answered() -> None:
    call, found, many = read(
        use("s1", "search", type="server_tool_use"),
        {"toolResult": {"toolUseId": "s1", "content": [{"json": {"hits": 1}}], "status": "error", "type": "web"}},
        {"toolResult": {"toolUseId": "s1", "content": [{"text": "a"}, {"text": "b"}]}},
    ).content
    assert call == ToolCall("s1", "search", '{"q":1}', True, provider_metadata=own(type="server_tool_use"))
    metadata = own(serverTool=True, type="web", status="error")
    assert found == ToolResult("s1", "search", {"hits": 1}, True, provider_metadata=metadata)
    assert isinstance(many, ToolResult)
    assert many.result == [{"text": "a"}, {"text": "b"}]


def test_names_are_the_callers_and_ids_are_unique() -> None:
    answer = read(use(name="lookup"), use(name="lookup"), expected=Expected(tool_names={"lookup": "look.up"}))
    assert [(call.tool_call_id, call.tool_name) for call in answer.tool_calls] == [
        ("t1", "look.up"),
        ("t1-2", "look.up"),
    ]


# --------------------------------------------------------------------------------------------------------- JSON, choice


def test_a_json_answer_by_a_tool_is_the_text() -> None:
    expected = Expected(AnswerTool("json"))
    answer = read({"text": "sure"}, use(name="json", input={"city": "Oslo"}), reason="tool_use", expected=expected)
    assert answer.content == (Text('{"city":"Oslo"}'),)
    assert (answer.finish_reason.unified, answer.finish_reason.raw) == ("stop", "tool_use")
    assert own_metadata(answer.provider_metadata)["isJsonResponseFromTool"] is True


def test_calls_beside_a_json_answer_are_left_out_and_named() -> None:
    expected = Expected(AnswerTool("final_result"))
    answer = read(use(id="c2"), use(name="final_result", input={"a": 1}), reason="tool_use", expected=expected)
    assert answer.content == (Text('{"a":1}'),)
    assert answer.finish_reason.unified == "stop"
    assert own_metadata(answer.provider_metadata)["unexecuted_tool_calls"] == ["look"]
    assert [warning.type for warning in answer.warnings] == ["other"]


def test_calls_without_an_answer_are_calls() -> None:
    answer = read({"text": "sure"}, use(), reason="tool_use", expected=Expected(AnswerTool("final_result")))
    assert answer.text == ""
    assert (len(answer.tool_calls), answer.finish_reason.unified) == (1, "tool-calls")


def test_an_answer_in_words_where_a_tool_was_to_give_it_has_a_warning() -> None:
    answer = read({"text": "sure"}, reason="end_turn", expected=Expected(AnswerTool("final_result")))
    assert answer.text == "sure"
    assert ["answered in words" in (warning.message or "") for warning in answer.warnings] == [True]


def test_a_cut_json_answer_is_still_cut() -> None:
    answer = read(use(name="json"), reason="max_tokens", expected=Expected(AnswerTool("json")))
    assert answer.finish_reason.unified == "length"


def test_a_tool_named_json_is_a_tool_where_no_json_was_asked_for() -> None:
    assert read(use(name="json"), reason="tool_use").finish_reason.unified == "tool-calls"


def test_a_call_against_the_choice_is_returned_with_a_warning() -> None:
    answer = read(use(), reason="tool_use", expected=Expected(no_calls=True))
    assert len(answer.tool_calls) == 1
    assert [warning.feature for warning in answer.warnings] == ["toolChoice"]
    told = own_metadata(answer.provider_metadata)["warnings"]
    assert told[0]["feature"] == "toolChoice"
    assert read({"text": "x"}, expected=Expected(no_calls=True)).warnings == ()


# ---------------------------------------------------------------------------------------------------- reasons, numbers


@pytest.mark.parametrize(
    ("raw", "unified"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool-calls"),
        ("guardrail_intervened", "content-filter"),
        ("content_filtered", "content-filter"),
        ("malformed_model_output", "error"),
        ("malformed_tool_use", "error"),
        ("brand_new", "other"),
        (None, "other"),
    ],
)
def test_every_stop_reason_is_mapped_and_kept(raw: Any, unified: str) -> None:
    reason = read({"text": "x"}, reason=raw).finish_reason
    assert (reason.unified, reason.raw) == (unified, raw)


def test_input_tokens_are_summed_once_with_the_caches() -> None:
    usage = {
        **USAGE,
        "cacheReadInputTokens": 80,
        "cacheWriteInputTokens": 20,
        "cacheDetails": [{"ttl": "1h", "inputTokens": 20}],
    }
    answer = read({"text": "x"}, usage=usage)
    tokens = answer.usage.input_tokens
    assert (tokens.total, tokens.no_cache, tokens.cache_read, tokens.cache_write) == (104, 4, 80, 20)
    assert answer.usage.raw == usage
    assert own_metadata(answer.provider_metadata)["usage"]["cacheDetails"] == usage["cacheDetails"]


def test_numbers_that_were_not_reported_are_unset() -> None:
    for usage in (None, {}, {"inputTokens": -1, "outputTokens": True}):
        answer = read({"text": "x"}, usage=usage)
        assert answer.usage.input_tokens.total is None
        assert answer.usage.output_tokens.total is None
    assert read({"text": "x"}).usage.input_tokens.cache_read is None


def test_what_the_answer_says_of_itself_is_in_its_metadata() -> None:
    said: Json = {
        "trace": {"guardrail": {"actionReason": "none"}, "promptRouter": {"invokedModelId": "arn:x"}},
        "performanceConfig": {"latency": "optimized"},
        "serviceTier": {"type": "flex"},
        "additionalModelResponseFields": {"stop_sequence": "END"},
    }
    answer = read({"text": "x"}, **said)
    assert answer.provider_metadata == own(**said, metrics={"latencyMs": 9}, stopSequence="END")
    assert answer.response is not None
    assert answer.response.model_id == "arn:x"


def test_who_answered_is_told_from_what_botocore_adds() -> None:
    headers = {"date": "Tue, 03 Mar 2026 10:00:00 GMT", "x-amzn-requestid": "r-1"}
    head = {"RequestId": "r-1", "HTTPStatusCode": 200, "HTTPHeaders": headers}
    warnings = (CallWarning("other", message="w"),)
    native = whole({"text": "x"}, ResponseMetadata=head)
    answer = parse_response(native, model_id=CLAUDE, warnings=warnings, request_body={"modelId": CLAUDE})
    assert answer.response is not None
    assert (answer.response.id, answer.response.model_id) == ("r-1", CLAUDE)
    assert answer.response.timestamp == datetime(2026, 3, 3, 10, tzinfo=UTC)
    assert answer.response.headers == headers
    assert answer.response.body == whole({"text": "x"})
    assert answer.request is not None
    assert answer.request.body == {"modelId": CLAUDE}
    assert answer.warnings == warnings


# --------------------------------------------------------------------------------------------------------- no answers


@pytest.mark.parametrize(
    ("native", "what"),
    [
        (None, "holds no message"),
        ({}, "holds no message"),
        ({"output": {"message": {"content": "x"}}}, "holds no message"),
        (whole({}), r"content\[0\] of the answer is not an object with one member"),
        (
            whole({"text": "a"}, {"toolUse": {"toolUseId": "t"}}),
            r"content\[1\] of the answer is a tool use that names no",
        ),
    ],
)
def test_what_is_no_whole_answer_is_an_error(native: Any, what: str) -> None:
    with pytest.raises(ProviderError, match=what) as caught:
        parse_response(native, model_id=CLAUDE)
    assert (caught.value.provider, caught.value.model_id, caught.value.retryable) == ("bedrock", CLAUDE, False)
