"""What tools said, as the content of their results, and which results are refused."""

from __future__ import annotations

from typing import Any

import pytest

from neurolink_mw.errors import InvalidRequestError
from neurolink_mw.protocol import (
    ContentOutput,
    ErrorJsonOutput,
    ErrorTextOutput,
    ExecutionDenied,
    JsonOutput,
    Message,
    OutputCustom,
    OutputFileData,
    OutputFileId,
    OutputFileUrl,
    OutputImageData,
    OutputImageFileId,
    OutputImageUrl,
    OutputText,
    TextOutput,
    ToolOutput,
)
from neurolink_mw.providers.anthropic.request import build_request

from .builders import HAIKU, MARK, PNG, Json, answered, called, messages_of, options, own, result, said, told


def text(words: str, **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def refusal(*prompt: Message) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        build_request(HAIKU, options(*prompt))
    return str(caught.value)


def answered_with(output: ToolOutput | str) -> Json:
    """The block of a result."""
    block: Json = messages_of(said("q"), answered(called()), told(result(output=output)))[-1]["content"][0]
    return block


@pytest.mark.parametrize(
    ("output", "block"),
    [
        (TextOutput("found"), {"content": "found"}),
        (TextOutput(" "), {}),
        (JsonOutput({"hits": 2}), {"content": '{"hits":2}'}),
        (JsonOutput("two"), {"content": '"two"'}),
        (ErrorTextOutput("lost"), {"content": "lost", "is_error": True}),
        (ErrorTextOutput(""), {"content": "(no output)", "is_error": True}),
        (ErrorJsonOutput({"code": 4}), {"content": '{"code":4}', "is_error": True}),
        (ExecutionDenied(), {"content": "Tool execution denied."}),
        (ExecutionDenied("not now"), {"content": "not now"}),
        (ContentOutput(()), {}),
        (ContentOutput((OutputText(" "),)), {}),
    ],
)
def test_an_output_is_the_content_of_its_result(output: ToolOutput, block: Json) -> None:
    assert answered_with(output) == {"type": "tool_result", "tool_use_id": "c1", **block}


def test_a_result_of_several_pieces_is_a_list_of_blocks() -> None:
    reference = own(type="tool-reference", toolName="look")
    page = own(type="search_result", source="kb:1", title="One", content=[text("found")])
    pieces = (
        OutputText("see", own(cacheControl=MARK)),
        OutputImageData(PNG, "image/png"),
        OutputFileData(b"%PDF-", "application/pdf", "a.pdf"),
        OutputFileData(b"words", "text/csv"),
        OutputImageUrl("https://pics.test/a.png"),
        OutputFileUrl("https://docs.test/a.pdf"),
        OutputFileId({"anthropic": "file_1", "other": "x"}),
        OutputImageFileId("file_2"),
        OutputCustom(reference),
        OutputCustom(page),
    )
    content = answered_with(ContentOutput(pieces))["content"]
    assert content[0] == text("see", cache_control=MARK)
    assert [block["source"]["type"] for block in content[1:8]] == [
        *("base64", "base64", "text", "url", "url", "file", "file")
    ]
    assert [block["type"] for block in content[1:8]] == [
        *("image", "document", "document", "image", "document", "document", "image")
    ]
    assert content[8] == {"type": "tool_reference", "tool_name": "look"}
    assert content[9] == {"type": "search_result", "source": "kb:1", "title": "One", "content": [text("found")]}


def test_a_piece_that_a_result_cannot_carry_is_refused_by_its_place() -> None:
    piece = OutputCustom(own(block={"type": "thinking", "thinking": "", "signature": "S"}))
    problem = refusal(said("q"), answered(called()), told(result(output=ContentOutput((OutputText("a"), piece)))))
    assert problem == "prompt[2].content[0].output.value[1]: a tool result carries no block of type 'thinking'"


def test_an_output_without_json_is_refused_by_its_place() -> None:
    problem = refusal(said("q"), answered(called()), told(result(output=JsonOutput(float("nan")))))
    assert problem == "prompt[2].content[0].output: holds a value that has no JSON form"


def test_a_native_block_of_blank_text_is_not_sent_in_a_result() -> None:
    output = ContentOutput((OutputCustom(own(block=text(" "))), OutputText("found")))
    assert answered_with(output)["content"] == [text("found")]
