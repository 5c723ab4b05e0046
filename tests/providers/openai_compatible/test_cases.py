"""The recorded cases of this format, over real HTTP: what is sent, what an answer means, what a stream means.

`cases.json` holds what the AI SDK's V3 adapter does. Where the rules of `protocol/grammar.py` ask for something else,
or where we normalise on purpose, `OVERRULED` says what we do and why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from neurolink_mw.errors import ProviderError
from neurolink_mw.protocol import CallOptions, GenerateResult, StreamPart, Url, check_grammar, from_json, to_json
from neurolink_mw.providers.openai_compatible import OpenAICompatibleModel
from neurolink_mw.testing.wire import JsonReply, RawReply, Reply, SseReply, openai, openai_server

pytestmark = pytest.mark.anyio

Json = dict[str, Any]

CASES: list[Json] = json.loads((Path(__file__).parent / "cases.json").read_text("utf-8"))

ERROR = {"type": "error"}
INTERRUPTED = {"unified": "error", "raw": "interrupted"}
TEXT_END = {"type": "text-end", "id": "txt-0"}


def _begin(*more: Json) -> list[Json]:
    head = {"type": "response-metadata", "id": "cs-1", "modelId": "m-1-x", "timestamp": "2025-10-09T08:53:20.000Z"}
    return [{"type": "stream-start", "warnings": []}, head, *more]


def _text(*deltas: str, id: str = "txt-0") -> list[Json]:
    return [{"type": "text-start", "id": id}, *({"type": "text-delta", "id": id, "delta": delta} for delta in deltas)]


def _reasoning(delta: str, id: str) -> list[Json]:
    return [
        {"type": "reasoning-start", "id": id},
        {"type": "reasoning-delta", "id": id, "delta": delta},
        {"type": "reasoning-end", "id": id},
    ]


def _finish(unified: str, raw: str | None = None) -> Json:
    reason = {"unified": unified} if raw is None else {"unified": unified, "raw": raw}
    usage: Json = {"inputTokens": {}, "outputTokens": {}}
    return {"type": "finish", "finishReason": reason, "usage": usage, "providerMetadata": {"acme": {}}}


OVERRULED: dict[str, tuple[Any, str]] = {
    "OA-031": (
        {
            "model": "m-1",
            "messages": [{"role": "user", "content": "Hi"}],
            "stream": True,
            "stream_options": {"include_usage": True},
        },
        "usage of streams is asked for by default, since nobody can budget what is not reported",
    ),
    "OA-038": ({"type": "tool-call", "toolCallId": "c2", "toolName": "look", "input": "{}"}, "empty arguments are {}"),
    "OA-061": (
        _begin(
            *_reasoning("r1", "reasoning-0"),
            *_text("a"),
            TEXT_END,
            *_reasoning("r2", "reasoning-1"),
            *_text("b", id="txt-1"),
            {"type": "text-end", "id": "txt-1"},
            _finish("stop", "stop"),
        ),
        "(g) ids are unique within a stream",
    ),
    "OA-079": (429, "(e) a failure before the first content is raised"),
    "OA-081": (_begin(*_text("x"), TEXT_END, ERROR, _finish("error", "interrupted")), "(d) a cut says so"),
    "OA-082": (_begin(*_text("x"), TEXT_END, ERROR, _finish("error", "interrupted")), "(d) no reason was ever given"),
    "OA-083": (_begin(*_text("x"), TEXT_END, _finish("stop", "stop")), "(f) an unknown event is no error"),
    "OA-084": (_begin(*_text("x"), TEXT_END, _finish("stop", "stop")), "(f) an unknown event is no error"),
    "OA-088": (_begin(*_text("x"), TEXT_END, ERROR, _finish("error", "interrupted")), "(d) a cut says so"),
    "OA-089": (200, "(e) a failure before the first content is raised"),
}


def _of(area: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in CASES if case["area"].startswith(area)]


def _options(given: Json) -> CallOptions:
    data = {"prompt": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], **given.get("options", {})}
    return from_json(CallOptions, _with_addresses(data))


def _with_addresses(data: Any) -> Any:
    if isinstance(data, dict):
        return Url(data["$url"]) if "$url" in data else {key: _with_addresses(item) for key, item in data.items()}
    return [_with_addresses(item) for item in data] if isinstance(data, list) else data


def _model(given: Json, base_url: str) -> OpenAICompatibleModel:
    settings = given.get("settings", {})
    wanted: Json = {}
    if "includeUsage" in settings:
        wanted["include_usage"] = settings["includeUsage"]
    if "supportsStructuredOutputs" in settings:
        wanted["supports_structured_outputs"] = settings["supportsStructuredOutputs"]
    return OpenAICompatibleModel(given["model"], base_url=base_url, provider="acme", **wanted)


def _reply(given: Json) -> Reply:
    headers: Mapping[str, str] = given.get("response_headers", {})
    status = given.get("status", 200)
    if "response_body" in given:
        return JsonReply(given["response_body"], status=status, headers=headers)
    if "response_text" in given:
        return RawReply(given["response_text"].encode(), "application/json", status=status, headers=headers)
    return SseReply(given["sse"], done=False, rechunk=given.get("chunk_size"))


async def _generate(given: Json, reply: Reply) -> GenerateResult:
    with openai_server([reply]) as server:
        async with _model(given, server.base_url) as model:
            return await model.do_generate(_options(given))


async def _stream(given: Json, reply: Reply) -> list[StreamPart]:
    with openai_server([reply]) as server:
        async with _model(given, server.base_url) as model:
            result = await model.do_stream(_options(given))
            return [part async for part in result.stream]


def _reported(usage: Json) -> Json:
    """(h): a number that was not reported is unset. The recorded adapter writes 0 for it."""
    raw = usage.get("raw") or {}
    usage = json.loads(json.dumps(usage))
    if "cached_tokens" not in raw.get("prompt_tokens_details", {}):
        usage["inputTokens"].pop("cacheRead", None)
    if "reasoning_tokens" not in raw.get("completion_tokens_details", {}):
        usage["outputTokens"].pop("reasoning", None)
    return usage


def _comparable(parts: list[Json]) -> list[Json]:
    """Error parts by their type alone, made ids by the order in which they appear, usage as reported."""
    made: dict[str, str] = {}
    out = []
    for part in parts:
        part = dict(part)
        if part["type"] == "error":
            part = dict(ERROR)
        if part["type"] == "finish":
            part["usage"] = _reported(part["usage"])
        for key in ("id", "toolCallId"):
            id = part.get(key, "")
            if id.startswith(("call_", "<generated")):
                part[key] = made.setdefault(id, f"made-{len(made)}")
        out.append(part)
    return out


@pytest.mark.parametrize("case", _of("request/"))
async def test_a_call_is_sent_as_recorded(case: Json) -> None:
    given, expect = case["given"], case["expect"]
    body = OVERRULED.get(case["id"], (expect.get("body"), ""))[0]
    with openai_server([openai.answer("ok")]) as server:
        async with _model(given, server.base_url) as model:
            if "error" in expect:
                with pytest.raises(ProviderError, match=r"prompt\[0\]\.content\[0\].*audio/mpeg and application/pdf"):
                    await model.do_generate(_options(given))
                assert len(server.journal) == 0
                return
            if given["call"] == "stream":
                result = await model.do_stream(_options(given))
                head, *_ = [part async for part in result.stream]
                warnings = cast(Json, to_json(head))["warnings"]
            else:
                answer = await model.do_generate(_options(given))
                warnings = to_json(answer.warnings)
        assert server.journal[0].json == body
        assert server.journal[0].path == "/v1/chat/completions"
    assert [{"type": one["type"], "feature": one.get("feature")} for one in warnings] == expect["warnings"]


@pytest.mark.parametrize("case", [param for param in _of("response/") if "error" not in param.values[0]["expect"]])
async def test_an_answer_is_read_as_recorded(case: Json) -> None:
    given, expect = case["given"], case["expect"]
    result = cast(Json, to_json(await _generate(given, _reply(given))))
    content = expect["content"]
    if case["id"] in OVERRULED:
        content = [OVERRULED[case["id"]][0]]
    assert result["content"] == content
    assert result["finishReason"] == expect["finishReason"]
    assert result["usage"] == _reported(expect["usage"])
    assert result["providerMetadata"] == expect["providerMetadata"]
    assert {key: result["response"][key] for key in expect["response"]} == expect["response"]
    assert result["response"]["body"] == given["response_body"]
    assert result["warnings"] == expect["warnings"]


@pytest.mark.parametrize(
    "case", [param for param in _of("response/") + _of("stream/") if "error" in param.values[0]["expect"]]
)
async def test_a_refusal_is_raised_as_recorded(case: Json) -> None:
    given, expect = case["given"], case["expect"]["error"]
    with pytest.raises(ProviderError) as caught:
        await (_stream if given["call"] == "stream" else _generate)(given, _reply(given))
    assert caught.value.status == expect["statusCode"]
    assert caught.value.retryable == expect["isRetryable"]
    if expect.get("has_data"):
        assert expect["message"] in str(caught.value)
    if given.get("response_headers"):
        assert caught.value.retry_after == 3


@pytest.mark.parametrize("case", [param for param in _of("stream/") if "parts" in param.values[0]["expect"]])
async def test_a_stream_is_read_as_recorded(case: Json) -> None:
    given = case["given"]
    wanted = OVERRULED.get(case["id"], (case["expect"]["parts"], ""))[0]
    if isinstance(wanted, int):
        with pytest.raises(ProviderError) as caught:
            await _stream(given, _reply(given))
        assert caught.value.status == wanted
        return
    parts = await _stream(given, _reply(given))
    check_grammar(parts)
    assert _comparable(cast(list[Json], to_json(parts))) == _comparable(wanted)
