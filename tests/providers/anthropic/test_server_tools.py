"""What the service ran itself: calls, results and pages as V3 has them, and the way back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.protocol import GenerateResult, Source, ToolCall, ToolResult
from neurolink_mw.providers.anthropic.request import Expected
from neurolink_mw.providers.anthropic.response import parse_response
from neurolink_mw.providers.anthropic.server_tools import native_call, native_content, result_type

from .events import MODEL, Json, mcp_result, mcp_use, message, own, own_metadata, server_result, server_use, text


def read(*blocks: Json, expected: Expected | None = None, **more: Any) -> GenerateResult:
    return parse_response(message(*blocks, **more), model_id=MODEL, expected=expected)


def test_a_search_has_run_and_its_pages_are_sources() -> None:
    expected = Expected(tool_names={"web_search": "finder"})
    call, result, source = read(server_use(), server_result(), expected=expected).content
    assert call == ToolCall("s1", "finder", '{"query":"x"}', True)
    page: Json = {"type": "web_search_result", "url": "https://w.test/1", "title": "One"}
    page |= {"encryptedContent": "EE", "pageAge": None}
    assert result == ToolResult("s1", "finder", [page])
    assert source == Source("url", "source-0", "https://w.test/1", "One", provider_metadata=own(pageAge=None))


def test_tools_within_code_execution_are_one_tool_whose_input_tells_which() -> None:
    said: Json = {"type": "bash_code_execution_result", "stdout": "a", "stderr": "", "return_code": 0, "content": []}
    call, result = read(
        server_use(name="bash_code_execution", input={"command": "ls"}),
        server_result(kind="bash_code_execution", content=said),
        expected=Expected(tool_names={"code_execution": "runner"}),
    ).content
    assert call == ToolCall("s1", "runner", '{"type":"bash_code_execution","command":"ls"}', True)
    assert result == ToolResult("s1", "runner", said)


def test_a_fetched_page_is_shown_in_camel_case_and_may_be_cited() -> None:
    page = {
        "type": "web_fetch_result",
        "url": "https://w.test/2",
        "retrieved_at": "2026-01-01T00:00:00Z",
        "content": {
            "type": "document",
            "title": "Two",
            "source": {"type": "text", "media_type": "text/plain", "data": "said_so"},
        },
    }
    citation = {"type": "char_location", "document_index": 0, "cited_text": "a", "start_char_index": 0}
    _, result, _, source = read(
        server_use(name="web_fetch"), server_result(kind="web_fetch", content=page), text("So.", citation)
    ).content
    assert isinstance(result, ToolResult)
    assert result.result == {
        "type": "web_fetch_result",
        "url": "https://w.test/2",
        "retrievedAt": "2026-01-01T00:00:00Z",
        "content": {
            "type": "document",
            "title": "Two",
            "source": {"type": "text", "mediaType": "text/plain", "data": "said_so"},
        },
    }
    metadata = own(citedText="a", startCharIndex=0)
    assert source == Source("document", "source-0", None, "Two", "text/plain", None, metadata)


def test_found_tools_are_a_list_of_references() -> None:
    found = {"type": "tool_search_tool_search_result", "tool_references": [_reference("look")]}
    _, result = read(
        server_use(name="tool_search_tool_regex"), server_result(kind="tool_search", content=found)
    ).content
    assert result == ToolResult("s1", "tool_search_tool_regex", [{"type": "tool_reference", "toolName": "look"}])


def _reference(name: str) -> Json:
    return {"type": "tool_reference", "tool_name": name}


def test_an_advisers_words_are_a_result() -> None:
    said = {"type": "advisor_result", "text": "do it", "stop_reason": "end_turn"}
    _, result = read(server_use(name="advisor"), server_result(kind="advisor", content=said)).content
    assert result == ToolResult("s1", "advisor", {"type": "advisor_result", "text": "do it", "stopReason": "end_turn"})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("web_search", "web_search"),
        ("web_fetch", "web_fetch"),
        ("code_execution", "code_execution"),
        ("bash_code_execution", "bash_code_execution"),
        ("text_editor_code_execution", "text_editor_code_execution"),
        ("tool_search_tool_bm25", "tool_search"),
        ("advisor", "advisor"),
        ("brand_new", "brand_new"),
    ],
)
def test_a_server_tool_that_failed_says_so(name: str, kind: str) -> None:
    error = {"type": f"{kind}_tool_result_error", "error_code": "unavailable"}
    _, result = read(server_use(name=name), server_result(kind=kind, content=error)).content
    assert isinstance(result, ToolResult)
    assert result.is_error is True
    assert result.result == {"type": f"{kind}_tool_result_error", "errorCode": "unavailable"}
    assert result.provider_metadata is None


def test_a_result_whose_call_is_in_an_earlier_answer_is_known_by_its_type() -> None:
    expected = Expected(tool_names={"code_execution": "runner"})
    said = {"type": "bash_code_execution_result", "stdout": "a"}
    first, second = read(server_result("x", "bash_code_execution", said), mcp_result("y"), expected=expected).content
    assert first == ToolResult("x", "runner", said, provider_metadata=own(type="bash_code_execution_tool_result"))
    assert second == ToolResult(
        "y", "mcp", [{"type": "text", "text": "one"}], False, dynamic=True, provider_metadata=own(type="mcp-tool-use")
    )


def test_a_result_that_camel_case_would_not_lead_back_from_is_kept() -> None:
    odd = {"type": "advisor_result", "ttl_5m": 1, "alreadyCamel": 2}
    _, result = read(
        server_use(name="advisor"), server_result(kind="advisor", content=odd, caller={"type": "direct"})
    ).content
    assert isinstance(result, ToolResult)
    assert result.provider_metadata == own(content=odd, caller={"type": "direct"})


def test_a_tool_of_an_mcp_server_is_dynamic_and_has_run() -> None:
    metadata = own(type="mcp-tool-use", serverName="srv")
    assert read(mcp_use(), mcp_result(is_error=True)).content == (
        ToolCall("m1", "echo", '{"q":1}', True, True, metadata),
        ToolResult("m1", "echo", [{"type": "text", "text": "one"}], True, dynamic=True, provider_metadata=metadata),
    )


# ------------------------------------------------------------------------------------------------------- the way back

NAMES = st.sampled_from(
    ["web_search", "web_fetch", "bash_code_execution", "tool_search_tool_regex", "advisor", "brand_new"]
)
MEMBERS = st.sampled_from(
    ["type", "url", "error_code", "stop_reason", "alreadyCamel", "ttl_5m", "__odd", "tool_references"]
)
KINDS = st.sampled_from(["web_search_result", "tool_search_tool_search_result", "web_fetch_tool_result_error", "x"])
CONTENTS = st.recursive(
    KINDS | st.none() | st.integers(0, 3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(MEMBERS, inner, max_size=3),
    max_leaves=6,
)


@given(NAMES, CONTENTS)
def test_what_a_server_tool_said_can_be_sent_back_as_it_came(name: str, content: Any) -> None:
    kind = result_type(name)
    block = {"type": kind, "tool_use_id": "s1", "content": content}
    result = read(server_use(name=name), block).content[1]
    assert isinstance(result, ToolResult)
    kept = own_metadata(result.provider_metadata or own())
    assert kept.get("content", native_content(kind, result.result)) == content


@given(st.sampled_from(["bash_code_execution", "text_editor_code_execution", "code_execution"]), CONTENTS)
def test_a_call_within_code_execution_leads_back_to_its_tool(name: str, said: Any) -> None:
    (call,) = read(server_use(name=name, input={"command": said})).content
    assert isinstance(call, ToolCall)
    assert native_call("code_execution", json.loads(call.input)) == (name, {"command": said})
