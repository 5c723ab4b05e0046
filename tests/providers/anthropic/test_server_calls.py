"""Calls that the service ran itself, and their results, on their way back."""

from __future__ import annotations

from typing import Any

import pytest

from neurolink_mw.errors import InvalidRequestError
from neurolink_mw.protocol import AssistantPart, ErrorJsonOutput, ExecutionDenied, JsonOutput, TextOutput, ToolOutput
from neurolink_mw.providers.anthropic.request import build_request

from .builders import FINDER, HAIKU, RUNNER, Json, answered, called, messages_of, options, request, result, said


def text(words: str, **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def replayed(*parts: AssistantPart, **more: Any) -> list[Json]:
    """The blocks of an earlier answer."""
    content: list[Json] = messages_of(said("q"), answered(*parts), said("next"), **more)[1]["content"]
    return content


def test_a_call_of_a_server_tool_and_its_result_go_back_under_the_tools_own_name() -> None:
    page = {
        "type": "web_search_result",
        "url": "https://w.test",
        "title": "W",
        "encryptedContent": "E",
        "pageAge": None,
    }
    blocks = replayed(
        called("s1", "finder", {"query": "x"}, by_server=True),
        result("s1", JsonOutput([page]), "finder"),
        tools=[FINDER],
    )
    assert blocks == [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "s1",
            "content": [
                {
                    "type": "web_search_result",
                    "url": "https://w.test",
                    "title": "W",
                    "encrypted_content": "E",
                    "page_age": None,
                }
            ],
        },
    ]


def test_a_failure_of_a_server_tool_goes_back() -> None:
    error = ErrorJsonOutput({"type": "web_search_tool_result_error", "errorCode": "unavailable"})
    blocks = replayed(called("s1", "web_search", by_server=True), result("s1", error, "web_search"))
    assert blocks[1]["content"] == {"type": "web_search_tool_result_error", "error_code": "unavailable"}


def test_the_tools_within_code_execution_go_back_under_their_own_names() -> None:
    output: Json = {"type": "bash_code_execution_result", "stdout": "a", "stderr": "", "return_code": 0, "content": []}
    input = {"type": "bash_code_execution", "command": "ls"}
    blocks = replayed(
        called("s1", "runner", input, by_server=True), result("s1", JsonOutput(output), "runner"), tools=[RUNNER]
    )
    assert (blocks[0]["name"], blocks[0]["input"]) == ("bash_code_execution", {"command": "ls"})
    assert (blocks[1]["type"], blocks[1]["content"]) == ("bash_code_execution_tool_result", output)


def test_a_call_of_an_mcp_servers_tool_goes_back() -> None:
    mcp = {"type": "mcp-tool-use", "serverName": "srv"}
    blocks = replayed(
        called("m1", "echo", by_server=True, **mcp), result("m1", JsonOutput([text("one")]), "echo", **mcp)
    )
    assert blocks[0] == {"type": "mcp_tool_use", "id": "m1", "name": "echo", "server_name": "srv", "input": {"q": "x"}}
    assert blocks[1] == {"type": "mcp_tool_result", "tool_use_id": "m1", "is_error": False, "content": [text("one")]}


@pytest.mark.parametrize("output", [TextOutput("found"), JsonOutput({"hits": 2}), JsonOutput(["a"]), ExecutionDenied()])
def test_what_a_server_tool_cannot_have_said_is_refused_by_its_place(output: ToolOutput) -> None:
    answer = answered(called("s1", "web_search", by_server=True), result("s1", output, "web_search"))
    with pytest.raises(
        InvalidRequestError, match=r"prompt\[1\]\.content\[1\]\.output: what a tool of the provider said"
    ):
        build_request(HAIKU, options(said("q"), answer, said("go")))


def test_a_server_tool_needs_no_result() -> None:
    assert len(replayed(called("s1", "web_search", by_server=True))) == 1


def test_what_another_providers_tool_did_is_left_out_with_a_warning() -> None:
    answer = answered(called("x", "grounding", by_server=True), result("x", "r", "grounding"), "a")
    native, warned_of = request(options(said("q"), answer, said("go")))
    assert native["messages"][1]["content"] == [text("a")]
    assert warned_of == ["provider-executed tool call"]
