"""What tools said, as toolResult blocks."""

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
    OutputCustom,
    OutputFileData,
    OutputFileId,
    OutputImageData,
    OutputImageUrl,
    OutputText,
    ToolOutput,
)

from .native import CLAUDE, NOVA, PNG, Json, answered, called, messages_of, own, result, said, told


def only_result(output: ToolOutput | str, model_id: str = CLAUDE, **more: Any) -> Json:
    *_, last = messages_of(said("q"), answered(called()), told(result(output=output, **more)), model_id=model_id)
    block: Json = last["content"][0]["toolResult"]
    return block


def test_a_native_block_of_blank_text_is_not_sent() -> None:
    output = ContentOutput((OutputCustom(own(block={"text": " "})), OutputText("found")))
    assert only_result(output)["content"] == [{"text": "found"}]


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ({"ok": True}, {"json": {"ok": True}}),
        ({}, {"json": {}}),
        ([1, 2], {"text": "[1,2]"}),
        ("plain", {"text": "plain"}),
        (7, {"text": "7"}),
        (None, {"text": "null"}),
        ("", {"text": "(no output)"}),
    ],
)
def test_an_object_is_json_and_everything_else_is_text(value: Any, content: Json) -> None:
    assert only_result(JsonOutput(value))["content"] == [content]


def test_a_failed_tool_says_so() -> None:
    assert only_result(ErrorTextOutput("bad")) == {"toolUseId": "t1", "content": [{"text": "bad"}], "status": "error"}
    assert only_result(ErrorJsonOutput({"code": 1}))["status"] == "error"
    assert "status" not in only_result("fine")


def test_the_status_is_sent_to_models_that_take_it() -> None:
    assert only_result(ErrorTextOutput("bad"), NOVA)["status"] == "error"
    assert "status" not in only_result(ErrorTextOutput("bad"), "meta.llama3-1-70b-instruct-v1:0")


def test_a_denied_call_gives_its_reason() -> None:
    assert only_result(ExecutionDenied("not allowed"))["content"] == [{"text": "not allowed"}]
    assert only_result(ExecutionDenied())["content"] == [{"text": "Tool execution denied."}]


@pytest.mark.parametrize("output", ["", "\n ", ContentOutput(()), ContentOutput((OutputText(" "),))])
def test_a_blank_result_stays_a_result(output: Any) -> None:
    assert only_result(output)["content"] == [{"text": "(no output)"}]


def test_a_result_of_several_pieces() -> None:
    output = ContentOutput(
        (
            OutputText("see"),
            OutputImageData(PNG, "image/*"),
            OutputFileData(b"a,b", "text/csv", "t.csv"),
            OutputImageUrl("s3://bucket-a/pic.jpg"),
            OutputCustom(own(block={"json": {"a": 1}})),
        )
    )
    assert only_result(output)["content"] == [
        {"text": "see"},
        {"image": {"format": "png", "source": {"bytes": PNG}}},
        {"document": {"format": "csv", "name": "t", "source": {"bytes": b"a,b"}}},
        {"image": {"format": "jpeg", "source": {"s3Location": {"uri": "s3://bucket-a/pic.jpg"}}}},
        {"json": {"a": 1}},
    ]


@pytest.mark.parametrize(
    "piece",
    [
        OutputFileId("f-1"),
        OutputCustom(),
        OutputFileData(b"x", "audio/wav"),
        OutputFileData(b"x", "application/zip"),
        OutputImageUrl("https://a.test/x.png"),
    ],
)
def test_a_piece_that_a_result_cannot_carry_is_refused_by_its_place(piece: Any) -> None:
    with pytest.raises(InvalidRequestError, match=r"prompt\[2\]\.content\[0\]\.output\.value\[0\]"):
        only_result(ContentOutput((piece,)))


def test_a_status_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"prompt\[2\]\.content\[0\]: status"):
        only_result("x", status="odd")
