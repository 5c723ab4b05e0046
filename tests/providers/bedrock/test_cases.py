"""The recorded cases of this format: what is sent, what an answer means, what a stream means.

`cases.json` holds what the AI SDK's V3 adapter does, in the JSON of the wire, where bytes are base64: ours are bytes,
and are compared in that form. Where the rules of `protocol/grammar.py` ask for something else, where botocore refuses
it, or where we do better on purpose, `OVERRULED` says what we do and why.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from neurolink_mw.errors import InvalidRequestError, ProviderError
from neurolink_mw.protocol import CallOptions, Url, check_grammar, from_json, to_json
from neurolink_mw.providers.bedrock.errors import ErrorReader
from neurolink_mw.providers.bedrock.request import Expected, build_request, expected_of
from neurolink_mw.providers.bedrock.response import parse_response
from neurolink_mw.providers.bedrock.stream import ConverseStream
from neurolink_mw.structured import FINAL_RESULT_DESCRIPTION, FINAL_RESULT_INSTRUCTION

from .native import Json, check_request

CASES: list[Json] = json.loads((Path(__file__).parent / "cases.json").read_text("utf-8"))

CITATION = {
    "title": "law",
    "sourceContent": [{"text": "art 1"}],
    "location": {"documentPage": {"documentIndex": 0, "start": 1, "end": 2}},
}
SOURCE = {
    "type": "source",
    "sourceType": "document",
    "id": "source-0",
    "title": "law",
    "providerMetadata": {"bedrock": {"citation": CITATION}},
}
CITED = {"bedrock": {"citations": [CITATION]}}
ERROR = {"type": "error"}
TEXT_END = {"type": "text-end", "id": "0"}
JSON_FORMAT = {
    "type": "json_schema",
    "structure": {
        "jsonSchema": {
            "schema": '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],'
            '"additionalProperties":false}'
        }
    },
}
REFUSED = "refused"


def _text(delta: str) -> list[Json]:
    return [{"type": "text-start", "id": "0"}, {"type": "text-delta", "id": "0", "delta": delta}]


def _finish(unified: str, raw: str | None = None, usage: Json | None = None) -> Json:
    reason = {"unified": unified} if raw is None else {"unified": unified, "raw": raw}
    return {"type": "finish", "finishReason": reason, "usage": usage or {"inputTokens": {}, "outputTokens": {}}}


def _redacted(data: str) -> list[Json]:
    metadata = {"bedrock": {"redactedContent": data}}
    return [
        {"type": "reasoning-start", "id": "0"},
        {"type": "reasoning-delta", "id": "0", "delta": "", "providerMetadata": metadata},
        {"type": "reasoning-end", "id": "0"},
    ]


_CITY: Json = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
FINAL_RESULT: Json = {
    "toolSpec": {"name": "final_result", "description": FINAL_RESULT_DESCRIPTION, "inputSchema": {"json": _CITY}}
}
ANSWER_BY_TOOL = [{"text": FINAL_RESULT_INSTRUCTION.strip()}]

# A request: changes of its body (None: taken out), or REFUSED; and the warnings, where they differ.
_LATE = {"role": "user", "content": [{"text": "Hello"}, {"text": "late rule"}, {"text": "again"}]}
REQUESTS: dict[str, tuple[Json | str, list[str] | None, str]] = {
    "BR-003": (
        {"messages": [_LATE], "additionalModelResponseFieldPaths": ["/delta/stop_sequence"]},
        ["system message"],
        "a late system message goes in its place, with a warning",
    ),
    "BR-014": (
        {"messages.0.content.0.document.name": "plan-v2"},
        None,
        "only the last ending is cut, so that two files do not get one name",
    ),
    "BR-023": (
        {"messages.2.content.0.toolResult.content": [{"json": {"hits": 2}}]},
        None,
        "an object is a json block (field bug B03)",
    ),
    "BR-024": ({"messages.2.content.0.toolResult.status": "error"}, None, "a failed tool says so"),
    "BR-034": (
        {"messages.1.content.0.reasoningContent": {"redactedContent": "RED1"}},
        None,
        "botocore knows redactedContent alone",
    ),
    "BR-035": ({}, ["reasoning"], "nothing is left out silently"),
    "BR-036": (
        {"messages.1.content.0.reasoningContent": {"redactedContent": "ENA="}},
        None,
        "boto3 takes bytes: the recorded text is base64 without its padding",
    ),
    "BR-049": ({}, ["tool anthropic.web_search_20250305"], "one spelling for all tools that a provider defines"),
    "BR-050": ({"toolConfig.tools.1": {"cachePoint": {"type": "default"}}}, None, "Converse takes cache points there"),
    "BR-051": (
        {"inferenceConfig.topK": None, "additionalModelRequestFields": {"top_k": 5}},
        None,
        "botocore refuses topK in inferenceConfig",
    ),
    "BR-054": (
        {"additionalModelRequestFields": None, "outputConfig": {"textFormat": JSON_FORMAT}},
        None,
        "Converse has a member for it",
    ),
    "BR-056": (
        {
            "toolConfig.tools.1.toolSpec": FINAL_RESULT["toolSpec"],
            "toolConfig.toolChoice": None,
            "system": ANSWER_BY_TOOL,
        },
        None,
        "a forced tool would take the caller's tools away",
    ),
    "BR-059": (
        {"toolConfig.tools.1": FINAL_RESULT, "system": ANSWER_BY_TOOL},
        None,
        "a schema in the prompt is no promise, a tool's schema is one",
    ),
    "BR-060": (
        {
            "additionalModelRequestFields.output_config": None,
            "toolConfig": {"tools": [FINAL_RESULT]},
            "system": ANSWER_BY_TOOL,
        },
        None,
        "this model has no native format, and a tool that is only offered goes with reasoning",
    ),
    "BR-064": ({"anthropicBeta": None}, None, "botocore refuses a member that is none of Converse"),
    "BR-073": (
        {
            "messages.1.content.0.toolUse.toolUseId": "HQ0YkYvZd",
            "messages.2.content.0.toolResult.toolUseId": "HQ0YkYvZd",
        },
        None,
        "ids with one beginning must not become one id",
    ),
}
# An answer's content.
ANSWERS: dict[str, tuple[list[Json], str]] = {
    "BR-077": (
        [{"type": "tool-call", "toolCallId": "HQ0YkYvZd", "toolName": "look", "input": "{}"}],
        "ids with one beginning must not become one id",
    ),
    "BR-080": (
        [
            {"type": "reasoning", "text": "", "providerMetadata": {"bedrock": {"redactedContent": "RD"}}},
            {"type": "text", "text": "so"},
        ],
        "one name for redacted reasoning, the one that goes back",
    ),
    "BR-128": (
        [{"type": "text", "text": "Cited sentence.", "providerMetadata": CITED}, SOURCE],
        "citations are sources, and go back with the text",
    ),
}
# A stream's parts after the two that open it. Its events, where botocore raises instead.
_JSON_TEXT = [
    {"type": "text-start", "id": "1"},
    {"type": "text-delta", "id": "1", "delta": '{"city":'},
    {"type": "text-delta", "id": "1", "delta": '"Oslo"}'},
    {"type": "text-end", "id": "1"},
]
_USAGE = {
    "inputTokens": {"total": 4, "noCache": 4},
    "outputTokens": {"total": 6, "text": 6},
    "raw": {"inputTokens": 4, "outputTokens": 6, "totalTokens": 10},
}
_FAILED = ([*_text("par"), ERROR, TEXT_END, _finish("error")], "(b) open blocks are closed before the finish")
STREAMS: dict[str, tuple[list[Json], str]] = {
    "BR-102": (
        [
            {"type": "tool-input-start", "id": "HQ0YkYvZd", "toolName": "look"},
            {"type": "tool-input-delta", "id": "HQ0YkYvZd", "delta": "{}"},
            {"type": "tool-input-end", "id": "HQ0YkYvZd"},
            {"type": "tool-call", "toolCallId": "HQ0YkYvZd", "toolName": "look", "input": "{}"},
            _finish("tool-calls", "tool_use"),
        ],
        "ids with one beginning must not become one id",
    ),
    "BR-105": (
        [
            *_redacted("RD0="),
            {"type": "text-start", "id": "1"},
            {"type": "text-delta", "id": "1", "delta": "x"},
            {"type": "text-end", "id": "1"},
            _finish("stop", "end_turn"),
        ],
        "one name for redacted reasoning, the one that goes back",
    ),
    "BR-107": (
        [*_JSON_TEXT, _finish("stop", "tool_use", _USAGE)],
        "a JSON answer is shown while it comes, and nothing beside it: it could not be parsed then",
    ),
    **dict.fromkeys(("BR-112", "BR-113", "BR-114", "BR-116"), _FAILED),
    "BR-118": ([*_text("par"), ERROR, TEXT_END, _finish("error", "end_turn")], "(c) the reason stays error"),
    "BR-119": ([ERROR, _finish("error", "interrupted")], "botocore cannot parse the event and raises"),
    "BR-120": ([ERROR, _finish("error", "end_turn")], "(c) the reason stays error"),
    "BR-121": ([*_text("x"), TEXT_END, ERROR, _finish("error", "interrupted")], "(a) one finish, also after a cut"),
    "BR-122": ([*_text("x"), TEXT_END, ERROR, _finish("error", "interrupted")], "(d) a cut says so"),
    "BR-129": (
        [*_text("Cited"), SOURCE, {**TEXT_END, "providerMetadata": CITED}, _finish("stop", "end_turn", _USAGE)],
        "citations are sources, and go back with the text",
    ),
    "BR-133": (
        [
            {"type": "tool-input-start", "id": "tu-12", "toolName": "look"},
            {"type": "tool-input-delta", "id": "tu-12", "delta": '{"q":1}'},
            {"type": "tool-input-end", "id": "tu-12"},
            {"type": "tool-call", "toolCallId": "tu-12", "toolName": "look", "input": '{"q":1}'},
            _finish("tool-calls", "tool_use", _USAGE),
        ],
        "(b) open blocks are closed before the finish",
    ),
}


def _of(area: str, key: str | None = None) -> list[Any]:
    """The cases of an area, those with this key in what they expect."""
    return [
        pytest.param(case, id=case["id"])
        for case in CASES
        if case["area"].startswith(area) and (key is None or key in case["expect"])
    ]


def _options(given: Json) -> CallOptions:
    data = {"prompt": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], **given.get("options", {})}
    return from_json(CallOptions, _plain(data))


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        if "$url" in data:
            return Url(data["$url"])
        return data["$bytes"] if "$bytes" in data else {key: _plain(item) for key, item in data.items()}
    return [_plain(item) for item in data] if isinstance(data, list) else data


def _changed(body: Any, changes: Json) -> Any:
    body = json.loads(json.dumps(body))
    for path, item in changes.items():
        *outer, name = path.split(".")
        at = body
        for step in outer:
            at = at[int(step) if isinstance(at, list) else step]
        if isinstance(at, list):
            at.append(item)
        elif item is None:
            del at[name]
        else:
            at[name] = item
    if not body.get("system"):
        body.pop("system", None)  # an empty list says nothing
    return {name: item for name, item in body.items() if item != {}}


def _without_prose(body: Any) -> Any:
    """The description of the JSON tool is left open by the cases."""
    for tool in body.get("toolConfig", {}).get("tools", []):
        if tool.get("toolSpec", {}).get("name") == "json":
            tool["toolSpec"]["description"] = "<any>"
    return body


def _reported(usage: Json) -> Json:
    """(h): a number that was not reported is unset. The recorded adapter writes 0 for it."""
    raw: Json = usage.get("raw") or {}
    usage = json.loads(json.dumps(usage))
    for name, key in (("cacheReadInputTokens", "cacheRead"), ("cacheWriteInputTokens", "cacheWrite")):
        if name not in raw:
            usage["inputTokens"].pop(key, None)
    return usage


def _metadata(metadata: Json | None) -> Json:
    """Without what we tell besides, and without what is not there."""
    own = dict((metadata or {}).get("bedrock", {}))
    for name in ("metrics", "additionalModelResponseFields"):
        own.pop(name, None)
    return {name: item for name, item in own.items() if item is not None}


@pytest.mark.parametrize("case", _of("request/"))
def test_a_call_is_sent_as_recorded(case: Json) -> None:
    given, expect = case["given"], case["expect"]
    changes, features, _ = REQUESTS.get(case["id"], ({}, None, ""))
    stream = given["call"] == "stream"
    if changes == REFUSED or ("error" in expect and case["id"] not in REQUESTS):
        with pytest.raises(InvalidRequestError, match=r"prompt\[0\]\.content\[0\]|response_format"):
            build_request(given["model"], _options(given), stream=stream)
        return
    native, warnings = build_request(given["model"], _options(given), stream=stream)
    check_request(native, stream=stream)
    sent = cast(Json, to_json(native))
    assert sent.pop("modelId") == given["model"]
    assert isinstance(changes, dict)
    assert _without_prose(sent) == _without_prose(_changed(expect.get("body", {}), changes))
    recorded = [warning.get("feature") for warning in expect.get("warnings", [])]
    assert sorted(str(one.feature) for one in warnings) == sorted(recorded if features is None else features)


@pytest.mark.parametrize("case", _of("response/", "content"))
def test_an_answer_is_read_as_recorded(case: Json) -> None:
    given, expect = case["given"], case["expect"]
    head = {"HTTPHeaders": given.get("response_headers", {}), "HTTPStatusCode": 200}
    native = {**given["response_body"], "ResponseMetadata": head}
    answer = parse_response(native, model_id=given["model"], expected=_expected(given))
    result = cast(Json, to_json(answer))
    assert result["content"] == ANSWERS.get(case["id"], (expect["content"],))[0]
    assert result["finishReason"] == expect["finishReason"]
    assert result["usage"] == _reported(expect["usage"])
    assert _metadata(result["providerMetadata"]) == _metadata(expect["providerMetadata"])
    assert {key: result["response"][key] for key in expect["response"]} == expect["response"]
    assert result["response"]["body"] == given["response_body"]
    assert result["warnings"] == expect["warnings"]


def _expected(given: Json) -> Expected:
    options = _options(given)
    try:
        return expected_of(options, build_request(given["model"], options)[0])
    except InvalidRequestError:  # a schema with tools: such an answer would be read as any other
        return Expected()


@pytest.mark.parametrize("case", [*_of("response/", "error"), *_of("stream/", "error")])
def test_a_refusal_is_raised_as_recorded(case: Json) -> None:
    given, expect = case["given"], case["expect"]["error"]
    status = given.get("status", 200)
    if status == 200:
        with pytest.raises(ProviderError) as caught:
            parse_response({**json.loads(given["response_text"]), "ResponseMetadata": {"HTTPStatusCode": status}})
        error = caught.value
    else:
        error = ErrorReader().of_client_error(_as_botocore_parses_it(given), "Converse")
    assert (error.status, error.retryable) == (expect["statusCode"], expect["isRetryable"])
    if expect.get("has_data"):
        assert expect.get("message", "bad") in str(error)


def _as_botocore_parses_it(given: Json) -> Json:
    try:
        body = json.loads(given["response_text"])
    except ValueError:
        body = {"message": given["status_text"], "type": str(given["status"])}
    said = {"Code": body.get("type", ""), "Message": body["message"]}
    return {"Error": said, "ResponseMetadata": {"HTTPStatusCode": given["status"], "HTTPHeaders": {}}}


@pytest.mark.parametrize("case", _of("stream/", "parts"))
def test_a_stream_is_read_as_recorded(case: Json) -> None:
    given = case["given"]
    raw = bool(given.get("options", {}).get("includeRawChunks"))
    machine = ConverseStream(model_id=given["model"], include_raw=raw, expected=_expected(given))
    parts = machine.start()
    events = given["events"][:-1] if "truncate_last_bytes" in given else given["events"]
    for event in events:
        if "rawBody" in event:
            parts += machine.interrupt(ErrorReader().interrupted("ResponseParserError while reading the stream"))
            break
        # botocore knows no padding, and leaves it out
        payload = {name: item for name, item in event["payload"].items() if name != "p"}
        parts += machine.feed({event.get("event") or event.get("exception"): payload})
    parts += machine.finish()
    check_grammar(parts)
    got = [_comparable(part) for part in cast(list[Json], to_json(parts))]
    wanted = [_comparable(part) for part in case["expect"]["parts"]]
    if case["id"] in STREAMS:
        assert STREAMS[case["id"]][0] == [{key: it for key, it in part.items() if key != "own"} for part in got[2:]]
    else:
        assert got == wanted


def _comparable(part: Json) -> Json:
    """An error by its type alone, usage as reported, the metadata of the finish without what we tell besides."""
    if part["type"] == "error":
        return dict(ERROR)
    if part["type"] == "finish":
        kept = {key: item for key, item in part.items() if key != "providerMetadata"}
        return {**kept, "usage": _reported(part["usage"]), "own": _metadata(part.get("providerMetadata"))}
    return part
