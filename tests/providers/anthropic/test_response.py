"""Messages of the API as answers: blocks, citations, answers by a tool, usage, what is no answer."""

from __future__ import annotations

from typing import Any

import pytest

from neurolink_mw.errors import OverloadedError, ProviderError
from neurolink_mw.protocol import (
    CallWarning,
    GenerateResult,
    Reasoning,
    RequestInfo,
    Source,
    Text,
    ToolCall,
    UnknownPart,
)
from neurolink_mw.providers.anthropic.request import Document, Expected
from neurolink_mw.providers.anthropic.response import parse_response
from neurolink_mw.structured import AnswerTool

from .events import MODEL, USAGE, Json, failed, message, own, own_metadata, redacted, server_use, text, thinking, use

LAW = Document(title="The Law", filename="law.pdf", media_type="application/pdf")
ANSWER = AnswerTool("final_result")


def read(*blocks: Json, expected: Expected | None = None, **more: Any) -> GenerateResult:
    return parse_response(message(*blocks, **more), model_id=MODEL, expected=expected)


# ------------------------------------------------------------------------------------------------------------- blocks


def test_blocks_are_content_in_their_order() -> None:
    answer = read(thinking("why"), redacted(), text("so"), use(), reason="tool_use")
    assert answer.content == (
        Reasoning("why", own(signature="SG")),
        Reasoning("", own(redactedData="RD")),
        Text("so"),
        ToolCall("t1", "look", '{"q":1}'),
    )


def test_reasoning_without_a_signature_has_none_made_for_it() -> None:
    assert read(thinking("why", signature="")).content == (Reasoning("why"),)


def test_what_a_call_says_besides_goes_back_with_it() -> None:
    caller = {"type": "code_execution_20260120", "tool_id": "s1"}
    (call,) = read(use(caller=caller, toolset_name="computer")).content
    assert isinstance(call, ToolCall)
    assert call.provider_metadata == own(
        caller={"type": "code_execution_20260120", "toolId": "s1"}, toolsetName="computer"
    )


@pytest.mark.parametrize("input", [{}, None])
def test_no_input_is_an_empty_object(input: Any) -> None:
    (call,) = read(use() | {"input": input}).content
    assert isinstance(call, ToolCall)
    assert call.input == "{}"


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal"])
def test_a_last_call_without_input_does_not_look_whole_where_the_message_was_cut(reason: str) -> None:
    answer = read(use("a", input={}), use("b", input={}), reason=reason)
    assert [call.input for call in answer.tool_calls] == ["{}", ""]


def test_names_are_the_callers_and_ids_are_unique() -> None:
    answer = read(use(name="lookup"), use(name="lookup"), expected=Expected(tool_names={"lookup": "look.up"}))
    assert [(call.tool_call_id, call.tool_name) for call in answer.tool_calls] == [
        ("t1", "look.up"),
        ("t1-2", "look.up"),
    ]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "container_upload", "file_id": "f-1"},
        {"type": "compaction", "content": "so far", "encrypted_content": "EC"},
        {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}, "trigger": {"type": "refusal"}},
        {"type": "mcp_tool_listing", "mcp_server_name": "srv", "tools": []},
        {"type": "brand_new", "data": [1]},
    ],
)
def test_a_block_that_v3_does_not_have_survives_whole(block: Json) -> None:
    (part,) = read(block).content
    assert part == UnknownPart("custom", {"kind": f"anthropic.{block['type']}", "providerMetadata": own(block=block)})


# ---------------------------------------------------------------------------------------------------------- citations


def test_a_cited_document_is_a_source_and_the_citation_stays_with_the_text() -> None:
    citation = {
        "type": "page_location",
        "cited_text": "art 1",
        "document_index": 0,
        "document_title": None,
        "start_page_number": 1,
        "end_page_number": 2,
        "file_id": None,
    }
    said, source = read(text("per law", citation), expected=Expected(documents=(LAW,))).content
    assert said == Text("per law", own(citations=[citation]))
    metadata = own(citedText="art 1", startPageNumber=1, endPageNumber=2)
    assert source == Source("document", "source-0", None, "The Law", "application/pdf", "law.pdf", metadata)


def test_a_document_that_is_not_known_is_no_source() -> None:
    citation = {"type": "char_location", "cited_text": "z", "document_index": 5}
    assert read(text("x", citation)).content == (Text("x", own(citations=[citation])),)


@pytest.mark.parametrize(
    ("source", "kind", "url"), [("https://kb.test/1", "url", "https://kb.test/1"), ("handbook", "document", None)]
)
def test_a_search_result_of_the_callers_is_a_source_by_its_address(source: str, kind: str, url: str | None) -> None:
    citation = {"type": "search_result_location", "source": source, "title": None, "cited_text": "a"}
    cited = read(text("x", citation)).content[1]
    assert isinstance(cited, Source)
    assert (cited.source_type, cited.url) == (kind, url)
    assert cited.provider_metadata == own(citedText="a")


# -------------------------------------------------------------------------------------------------- answers by a tool


def test_an_answer_by_a_tool_is_text_and_the_reason_stop() -> None:
    answer = read(text("noise"), use(name="final_result"), reason="tool_use", expected=Expected(answer=ANSWER))
    assert answer.content == (Text('{"q":1}'),)
    assert (answer.finish_reason.unified, answer.finish_reason.raw) == ("stop", "tool_use")
    assert answer.warnings == ()


def test_an_answer_is_taken_out_of_its_wrapper() -> None:
    expected = Expected(answer=AnswerTool("final_result", "value"))
    answer = read(use(name="final_result", input={"value": [1, 2]}), reason="tool_use", expected=expected)
    assert answer.text == "[1,2]"


def test_calls_beside_the_answer_are_left_out_and_named() -> None:
    answer = read(use(), use("t2", "final_result"), reason="tool_use", expected=Expected(answer=ANSWER))
    assert answer.content == (Text('{"q":1}'),)
    assert own_metadata(answer.provider_metadata)["unexecuted_tool_calls"] == ["look"]
    (warning,) = answer.warnings
    assert "look" in (warning.message or "")


def test_other_calls_in_place_of_the_answer_are_calls() -> None:
    answer = read(text("noise"), use(), reason="tool_use", expected=Expected(answer=ANSWER))
    assert answer.content == (ToolCall("t1", "look", '{"q":1}'),)
    assert answer.finish_reason.unified == "tool-calls"


def test_an_answer_that_was_cut_stays_cut() -> None:
    answer = read(use(name="final_result"), reason="max_tokens", expected=Expected(answer=ANSWER))
    assert (answer.finish_reason.unified, answer.text) == ("length", '{"q":1}')


def test_a_call_that_was_not_wanted_is_kept_and_warned_about() -> None:
    answer = read(use(), reason="tool_use", expected=Expected(no_calls=True))
    assert len(answer.tool_calls) == 1
    (warning,) = answer.warnings
    assert warning.feature == "toolChoice"
    assert own_metadata(answer.provider_metadata)["warnings"][0]["feature"] == "toolChoice"
    assert read(server_use(), expected=Expected(no_calls=True)).warnings == ()


# ---------------------------------------------------------------------------------------------------- reason and usage


@pytest.mark.parametrize(
    ("raw", "unified"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool-calls"),
        ("refusal", "content-filter"),
        ("compaction", "other"),
        ("something_new", "other"),
        (None, "other"),
    ],
)
def test_reasons_are_those_of_v3_and_the_raw_one_stays(raw: str | None, unified: str) -> None:
    reason = read(text("x"), reason=raw).finish_reason
    assert (reason.unified, reason.raw) == (unified, raw)


def test_usage_that_was_not_reported_is_unset() -> None:
    told = read(text("x"), usage={"input_tokens": 9, "output_tokens": 4}).usage
    assert (told.input_tokens.total, told.input_tokens.no_cache) == (9, 9)
    assert (told.input_tokens.cache_read, told.input_tokens.cache_write) == (None, None)
    assert (told.output_tokens.total, told.output_tokens.text, told.output_tokens.reasoning) == (4, None, None)
    assert read(text("x"), usage=None).usage.output_tokens.total is None


def test_cache_tokens_add_to_the_total_and_thinking_is_part_of_the_output() -> None:
    native = {
        "input_tokens": 3,
        "output_tokens": 20,
        "cache_read_input_tokens": 70,
        "cache_creation_input_tokens": 30,
        "output_tokens_details": {"thinking_tokens": 15},
        "server_tool_use": {"web_search_requests": 2},
    }
    told = read(text("x"), usage=native).usage
    assert (told.input_tokens.total, told.input_tokens.cache_read, told.input_tokens.cache_write) == (103, 70, 30)
    assert (told.output_tokens.total, told.output_tokens.text, told.output_tokens.reasoning) == (20, 5, 15)
    assert told.raw == native


def test_iterations_cost_what_they_cost_together_and_an_adviser_is_another_model() -> None:
    native = {
        "input_tokens": 23,
        "output_tokens": 10,
        "iterations": [
            {"type": "compaction", "input_tokens": 180, "output_tokens": 35},
            {"type": "message", "input_tokens": 23, "output_tokens": 10},
            {"type": "advisor_message", "model": "m", "input_tokens": 900, "output_tokens": 90},
        ],
    }
    answer = read(text("x"), usage=native)
    assert (answer.usage.input_tokens.total, answer.usage.output_tokens.total) == (203, 45)
    told = own_metadata(answer.provider_metadata)["iterations"]
    assert told[0] == {"type": "compaction", "inputTokens": 180, "outputTokens": 35}


def test_metadata_tells_what_belongs_to_the_whole_answer() -> None:
    edits = [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 3}]
    answer = read(
        text("x"),
        reason="refusal",
        stop_sequence="END",
        stop_details={"type": "refusal", "category": "bio"},
        container={"id": "ct", "expires_at": "2026-01-01T00:00:00Z"},
        context_management={"applied_edits": edits},
        diagnostics={"cache_miss_reason": None},
    )
    assert answer.provider_metadata == own(
        usage=USAGE,
        cacheCreationInputTokens=None,
        stopSequence="END",
        iterations=None,
        stopDetails={"type": "refusal", "category": "bio"},
        container={"id": "ct", "expiresAt": "2026-01-01T00:00:00Z", "skills": None},
        contextManagement={"appliedEdits": [{"type": "clear_tool_uses_20250919", "clearedToolUses": 3}]},
        diagnostics={"cacheMissReason": None},
    )


def test_an_answer_tells_who_gave_it_and_what_was_sent() -> None:
    warning = CallWarning("other", message="w")
    native = message(text("x"))
    answer = parse_response(native, warnings=[warning], request_body={"a": 1}, headers={"request-id": "r"})
    assert answer.warnings == (warning,)
    assert answer.request == RequestInfo({"a": 1})
    assert answer.response is not None
    assert (answer.response.id, answer.response.model_id, answer.response.body) == ("msg-1", MODEL, native)
    assert answer.response.headers == {"request-id": "r"}


# ----------------------------------------------------------------------------------------------------------- no answer


@pytest.mark.parametrize(
    "native", [None, [], "text", {}, {"content": None}, {"content": "x"}, message() | {"content": {}}]
)
def test_what_is_no_message_is_an_error(native: object) -> None:
    with pytest.raises(ProviderError, match="not a message"):
        parse_response(native)


@pytest.mark.parametrize(
    ("block", "fault"), [("x", "is of type str"), (use() | {"name": None}, "names no tool"), (None, "NoneType")]
)
def test_a_block_that_cannot_be_read_is_named(block: Any, fault: str) -> None:
    with pytest.raises(ProviderError, match=rf"content\[1\] of the answer .*{fault}"):
        read(text("x"), block)


def test_an_error_in_place_of_a_message_is_raised_as_what_it_is() -> None:
    with pytest.raises(OverloadedError) as caught:
        parse_response(failed(), status=200)
    assert caught.value.retryable


def test_a_citation_of_an_odd_type_is_kept_and_no_source() -> None:
    answer = read(text("x", {"type": ["odd"]}))
    assert answer.text == "x"


def test_an_answer_that_is_nested_without_end_is_refused() -> None:
    deep: Json = {}
    for _ in range(900):
        deep = {"a": deep}
    with pytest.raises(ProviderError, match="nested"):
        read(text("x"), container={"id": "c", "deep": deep})
