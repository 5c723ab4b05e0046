"""The recorded cases of this format: what an answer means, what a stream means.

`cases.json` holds what the AI SDK's V3 adapter does. Where the rules of `protocol/grammar.py` ask for something else,
or where we do better on purpose, the tables say what we do and why. `test_request_cases` reads the rest of the file.
`field_bugs.json` holds public bug reports about other libraries, and what is right.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from neurolink_mw.errors import ProviderError
from neurolink_mw.protocol import CallOptions, ErrorPart, StreamPart, ToolInputDelta, collect, from_json, to_json
from neurolink_mw.providers.anthropic.errors import ErrorReader
from neurolink_mw.providers.anthropic.request import Expected, build_request, expected_of
from neurolink_mw.providers.anthropic.response import parse_response
from neurolink_mw.providers.anthropic.stream import MessageStream
from neurolink_mw.providers.common.sse import SseDecoder

from ..streams import finish
from .events import Json, framed, own, parts_of

HERE = Path(__file__).parent
CASES: list[Json] = json.loads((HERE / "cases.json").read_text("utf-8"))
FIELD_BUGS: dict[str, Json] = json.loads((HERE / "field_bugs.json").read_text("utf-8"))

ERROR: Json = {"type": "error"}
TEXT_END: Json = {"type": "text-end", "id": "0"}


def _text(delta: str) -> list[Json]:
    return [{"type": "text-start", "id": "0"}, {"type": "text-delta", "id": "0", "delta": delta}]


def _finish(unified: str, raw: str | None = None, usage: Json | None = None) -> Json:
    """The last part, without the metadata of the whole."""
    reason = {"unified": unified} if raw is None else {"unified": unified, "raw": raw}
    return {"type": "finish", "finishReason": reason, "usage": usage or _usage(1)}


def _usage(written: int) -> Json:
    return {
        "inputTokens": {"total": 11, "noCache": 11},
        "outputTokens": {"total": written},
        "raw": {"input_tokens": 11, "output_tokens": written},
    }


_PAGE_CITATION = {
    "type": "page_location",
    "cited_text": "art 1",
    "document_index": 0,
    "document_title": "The Law",
    "start_page_number": 1,
    "end_page_number": 2,
}
_CHAR_CITATION = {
    "type": "char_location",
    "cited_text": "z",
    "document_index": 5,
    "document_title": None,
    "start_char_index": 0,
    "end_char_index": 3,
}
# An answer's content.
ANSWERS: dict[str, tuple[list[Json], str]] = {
    "AN-071": (
        [
            {"type": "text", "text": "per law", "providerMetadata": own(citations=[_PAGE_CITATION])},
            {
                "type": "source",
                "sourceType": "document",
                "id": "source-0",
                "mediaType": "application/pdf",
                "title": "The Law",
                "filename": "law.pdf",
                "providerMetadata": own(citedText="art 1", startPageNumber=1, endPageNumber=2),
            },
        ],
        "citations of every kind go back with the text",
    ),
    "AN-072": (
        [{"type": "text", "text": "x", "providerMetadata": own(citations=[_CHAR_CITATION])}],
        "citations of every kind go back with the text",
    ),
}
# A stream's parts after the two that open it.
STREAMS: dict[str, tuple[list[Json], str]] = {
    "AN-083": (
        [
            {"type": "tool-input-start", "id": "c3", "toolName": "look"},
            {"type": "tool-input-delta", "id": "c3", "delta": '{"q":"whole"}'},
            {"type": "tool-input-end", "id": "c3"},
            {"type": "tool-call", "toolCallId": "c3", "toolName": "look", "input": '{"q":"whole"}'},
            _finish("tool-calls", "tool_use", _usage(8)),
        ],
        "an input is its pieces joined, also where it came whole (field bug S02)",
    ),
    "AN-098": ([*_text("par"), ERROR, TEXT_END, _finish("error")], "(a) one finish, (b) after all blocks"),
    "AN-100": ([*_text("par"), TEXT_END, ERROR, _finish("error", "interrupted")], "(d) a cut says so"),
    "AN-101": ([ERROR, *_text("x"), TEXT_END, _finish("error", "end_turn", _usage(8))], "(c) the reason stays error"),
    "AN-102": (
        [*_text("x"), TEXT_END, _finish("stop", "end_turn", _usage(8))],
        "(f) an unknown event becomes a raw part when asked for, and nothing else",
    ),
    "AN-103": (
        [
            {
                "type": "custom",
                "kind": "anthropic.brand_new_block",
                "providerMetadata": own(block={"type": "brand_new_block"}),
            },
            {"type": "text-start", "id": "1"},
            {"type": "text-delta", "id": "1", "delta": "x"},
            {"type": "text-end", "id": "1"},
            _finish("stop", "end_turn", _usage(8)),
        ],
        "a block of an unknown type survives",
    ),
    "AN-105": ([_text("")[0], ERROR, TEXT_END, _finish("error")], "(a) one finish, (b) after all blocks"),
}
# What the errors of a stream say, where the recorded adapter says otherwise: the status, and whether to try again.
ERRORS: dict[str, tuple[int, bool, str]] = {
    "AN-097": (500, True, "an error of the service may pass, as its HTTP status 500 may")
}


def _of(area: str, key: str) -> list[Any]:
    """The cases of an area, those with this key in what they expect."""
    cases = [case for case in CASES if case["area"].startswith(area) and key in case["expect"]]
    return [pytest.param(case, id=case["id"]) for case in cases]


def _expected(given: Json) -> Expected:
    data = {"prompt": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], **given.get("options", {})}
    options: CallOptions = from_json(CallOptions, data)
    native, _ = build_request(given["model"], options, stream=given["call"] == "stream")
    return expected_of(options, native)


def _reported(part: Json) -> Json:
    """(h): a number that was not reported is unset. The recorded adapter writes 0 for it."""
    usage = part.get("usage")
    if usage is None:
        return part
    usage = json.loads(json.dumps(usage))
    for name, key in (("cache_read_input_tokens", "cacheRead"), ("cache_creation_input_tokens", "cacheWrite")):
        if name not in (usage.get("raw") or {}):
            usage["inputTokens"].pop(key, None)
    return {**part, "usage": usage}


def _shown(part: Json) -> Json:
    """A part as it is compared: errors by their being there, the sources' numbers as the cases have them."""
    if part["type"] == "error":
        return ERROR
    return {**part, "id": part["id"].replace("gen-", "source-")} if part["type"] == "source" else part


@pytest.mark.parametrize("case", _of("response/", "content"))
def test_an_answer_is_read_as_recorded(case: Json) -> None:
    given, expect = case["given"], case["expect"]
    answer = parse_response(given["response_body"], model_id=given["model"], expected=_expected(given))
    result = cast(Json, to_json(answer))
    content = ANSWERS.get(case["id"], (expect["content"],))[0]
    assert list(map(_shown, result["content"])) == list(map(_shown, content))
    assert result["finishReason"] == expect["finishReason"]
    assert result["usage"] == _reported(expect)["usage"]
    assert result["providerMetadata"] == expect["providerMetadata"]
    assert {key: result["response"][key] for key in expect["response"]} == expect["response"]
    assert result["warnings"] == expect["warnings"]


@pytest.mark.parametrize("case", _of("stream/", "parts"))
def test_a_stream_is_read_as_recorded(case: Json) -> None:
    given, expect = case["given"], case["expect"]
    decoder, machine = SseDecoder(), MessageStream(model_id=given["model"], expected=_expected(given))
    data = b"".join(event.encode() if isinstance(event, str) else framed(event) for event in given["sse"])
    size = given.get("chunk_size", len(data))
    parts = [*machine.start()]
    for at in range(0, len(data), size):
        for event in decoder.feed(data[at : at + size]):
            parts += machine.feed(event)
    parts += machine.finish(decoder.finish())
    made = [cast(Json, to_json(part)) for part in parts]
    assert made[:2] == expect["parts"][:2]
    if case["id"] in STREAMS:
        wanted = STREAMS[case["id"]][0]
        del made[-1]["providerMetadata"]
    else:
        wanted = [_reported(part) for part in expect["parts"][2:]]
    assert list(map(_shown, made[2:])) == list(map(_shown, wanted))


@pytest.mark.parametrize("case", [*_of("response/", "error"), *_of("stream/", "error")])
def test_a_failure_is_told_as_recorded(case: Json) -> None:
    given, expect = case["given"], case["expect"]["error"]
    if "sse" in given:
        (error,) = [part.error for part in parts_of(*given["sse"]) if isinstance(part, ErrorPart)]
    else:
        error = ErrorReader().of_response(given["status"], {}, given["response_text"].encode())
    assert isinstance(error, ProviderError)
    status, retryable, _ = ERRORS.get(case["id"], (expect["statusCode"], expect["isRetryable"], ""))
    assert (error.status, error.retryable) == (status, retryable)


def test_every_case_that_is_overruled_is_there() -> None:
    assert {*ANSWERS, *STREAMS, *ERRORS} <= {case["id"] for case in CASES}


# --------------------------------------------------------------------------------------------------- public bug reports


def _calls(parts: list[StreamPart]) -> list[list[Any]]:
    return [[call.tool_call_id, call.tool_name, json.loads(call.input)] for call in collect(parts).tool_calls]


@pytest.mark.parametrize("id", ["S01", "S02"])
def test_inputs_of_streamed_calls_are_read_as_the_bug_reports_ask(id: str) -> None:
    bug = FIELD_BUGS[id]
    parts = parts_of(*bug["given"]["anthropic_events"])
    assert _calls(parts) == bug["expect"]["tool_calls"]
    for call in collect(parts).tool_calls:
        pieces = [part.delta for part in parts if isinstance(part, ToolInputDelta) and part.id == call.tool_call_id]
        assert json.loads("".join(pieces) or "{}") == json.loads(call.input)


@pytest.mark.parametrize("variant", FIELD_BUGS["S04"]["given"]["variants"], ids=lambda variant: variant["name"])
def test_a_stream_that_fails_half_way_is_never_a_quiet_end(variant: Json) -> None:
    events = variant.get("anthropic_events")
    if events is None:
        events = SseDecoder().feed("\n".join([*variant["sse_lines"], ""]).encode())
    parts = parts_of(*events)
    (error,) = [part.error for part in parts if isinstance(part, ErrorPart)]
    assert isinstance(error, ProviderError)
    assert error.retryable
    assert finish(parts)[0] == "error"
    assert collect(parts).tool_calls == ()
