"""What servers say when they fail, and what becomes of it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from neurolink_mw.errors import (
    AuthenticationError,
    ContextOverflowError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    ServerError,
)
from neurolink_mw.protocol.retry_after import retry_after
from neurolink_mw.providers.openai_compatible.errors import ErrorReader, error_details
from neurolink_mw.providers.openai_compatible.repair import repair

Json = dict[str, Any]
SECRET = "my-own-key-0815"


def refused(status: int, body: object = b"", headers: dict[str, str] | None = None) -> ProviderError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ErrorReader("acme", "m", [SECRET]).of_response(status, headers or {}, data)


@pytest.mark.parametrize(
    ("status", "cls", "retryable"),
    [
        (400, InvalidRequestError, False),
        (401, AuthenticationError, False),
        (403, PermissionDeniedError, False),
        (404, NotFoundError, False),
        (408, ProviderTimeoutError, True),
        (409, ProviderError, True),
        (413, InvalidRequestError, False),
        (422, InvalidRequestError, False),
        (429, RateLimitError, True),
        (500, ServerError, True),
        (503, OverloadedError, True),
        (529, OverloadedError, True),
        (302, ProviderError, False),
    ],
)
def test_a_status_has_its_class_and_says_whether_to_try_again(
    status: int, cls: type[ProviderError], retryable: bool
) -> None:
    error = refused(status, {"error": {"message": "slow"}}, {"x-request-id": "r-1"})
    assert (type(error), error.retryable, error.status) == (cls, retryable, status)
    assert (error.provider, error.model_id, error.request_id) == ("acme", "m", "r-1")
    assert str(error) == f"HTTP {status}: slow"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "a"}}, "a"),
        ({"error": "a"}, "a"),
        ([{"error": {"message": "a"}}], "a"),
        ({"object": "error", "message": "a", "code": 400}, "a"),
        ({"message": "a"}, "a"),
        ({"detail": "a"}, "a"),
        ({"detail": [{"loc": ["body", "x"], "msg": "a", "type": "missing"}]}, "a"),
        (b"<html>bad\r\ngateway\x1b[31m</html>", "<html>bad gateway [31m</html>"),
        ({"odd": 1}, '{"odd": 1}'),
        (b"", "Bad Request"),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_the_servers_own_words_are_quoted_else_an_excerpt_else_the_status(body: object, message: str) -> None:
    assert str(refused(400, body)) == f"HTTP 400: {message}"


def test_an_excerpt_is_short() -> None:
    said = str(refused(400, {"error": {"message": "x" * 10_000}})).removeprefix("HTTP 400: ")
    assert len(said) == 300


@pytest.mark.parametrize(
    "said",
    [
        f"no such key: {SECRET}",
        f"{SECRET[:8]}\x00{SECRET[8:]} {SECRET}",
        "got 'Authorization: Bearer abcdefgh12345'",
        "Incorrect API key provided: sk-proj-12*****345. You can",
        "x" * 290 + SECRET,
    ],
)
def test_no_secret_is_quoted(said: str) -> None:
    for body in ({"error": {"message": said}}, said.encode(), {"other": said}):
        error = refused(401, body)
        shown = f"{error} {error!r} {error.args}"
        assert SECRET not in shown
        assert "sk-proj" not in shown
        assert "abcdefgh" not in shown


@pytest.mark.parametrize(
    "error",
    [
        {"code": "context_length_exceeded", "message": "m"},
        {"message": "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"},
        {"type": "exceed_context_size_error", "message": "the request exceeds the available context size"},
        {"message": "prompt is too long: 210000 tokens > 200000 maximum"},
    ],
)
def test_a_prompt_that_does_not_fit_is_an_overflow(error: Json) -> None:
    assert type(refused(400, {"error": error})) is ContextOverflowError
    assert type(ErrorReader().of_object({"error": error})) is ContextOverflowError
    assert type(refused(429, {"error": error})) is RateLimitError


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "3"}, 3),
        ({"retry-after": "Thu, 09 Oct 2025 08:53:30 GMT", "date": "Thu, 09 Oct 2025 08:53:20 GMT"}, 10),
        ({"retry-after": "Thu, 09 Oct 2025 08:53:10 GMT", "date": "Thu, 09 Oct 2025 08:53:20 GMT"}, 0),
        ({"retry-after": "Thu, 09 Oct 2025 08:53:10 GMT"}, 0),
        *(({"retry-after": odd}, None) for odd in ("", "-1", "nan", "inf", "tomorrow")),
    ],
)
def test_the_wait_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds
    assert refused(429, b"", headers).retry_after == seconds


# ------------------------------------------------------------------------------------------------------- repair

SENT: Json = {
    "model": "m",
    "messages": [],
    "tools": [{}],
    "stream": True,
    "stream_options": {},
    "tool_choice": "auto",
    "temperature": 0.2,
    "max_tokens": 9,
    "seed": 1,
    "user": "u",
    "reasoning_effort": "low",
    "stop": ["x"],
}


@pytest.mark.parametrize(
    ("error", "left_out", "feature"),
    [
        (
            {"message": "Unsupported parameter: 'temperature' is not supported with this model."},
            "temperature",
            "temperature",
        ),
        (
            {
                "message": "Unsupported value: 'temperature' does not support 0.2 with this model.",
                "param": "temperature",
            },
            *("temperature", "temperature"),
        ),
        ({"message": "m", "param": "seed", "code": "unsupported_parameter"}, "seed", "seed"),
        ({"message": "m", "param": "stop", "code": "unknown_parameter"}, "stop", "stopSequences"),
        ({"message": "m", "param": "reasoning_effort", "code": "unsupported_value"}, "reasoning_effort", "reasoning"),
        ({"message": "Unrecognized request argument supplied: stream_options"}, "stream_options", "includeUsage"),
        ({"message": "Unknown parameter: 'user'."}, "user", "user"),
        ({"message": "property 'seed' is unsupported"}, "seed", "seed"),
        ({"message": "Extra inputs are not permitted, field: 'seed'"}, "seed", "seed"),
        ({"message": "seed: Extra inputs are not permitted"}, "seed", "seed"),
        ({"message": "seed extra fields not permitted"}, "seed", "seed"),
        ({"message": "got an unexpected keyword argument 'seed'"}, "seed", "seed"),
        ({"message": "This model does not support the parameter seed"}, "seed", "seed"),
        ({"message": "`tool_choice` is not supported"}, "tool_choice", "toolChoice"),
        ({"message": "seed: unsupported"}, "seed", "seed"),
        ({"message": "seed: not supported"}, "seed", "seed"),
        ({"message": "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'x'}]"}, "seed", "seed"),
    ],
)
def test_a_parameter_that_is_named_as_unsupported_is_left_out(error: Json, left_out: str, feature: str) -> None:
    for body in ({"error": error}, {"object": "error", **error}):
        repaired = repair(400, json.dumps(body).encode(), SENT)
        assert repaired is not None
        assert repaired.native == {name: item for name, item in SENT.items() if name != left_out}
        assert (repaired.warning.type, repaired.warning.feature) == ("unsupported", feature)


@pytest.mark.parametrize("kind", [{"type": "extra_forbidden"}, {"type": "value_error.extra"}])
@pytest.mark.parametrize("wrap", [lambda fault: {"detail": fault}, lambda fault: {"message": {"detail": fault}}])
def test_the_faults_that_fastapi_lists_are_understood(kind: Json, wrap: Any) -> None:
    body = wrap([{"loc": ["body", "seed"], "msg": "not permitted", **kind}])
    repaired = repair(422, json.dumps(body).encode(), SENT)
    assert repaired is not None
    assert "seed" not in repaired.native


def test_the_limit_of_tokens_is_sent_under_its_newer_name() -> None:
    body = b'{"error":{"message":"Unsupported parameter: \'max_tokens\' is not supported","param":"max_tokens"}}'
    repaired = repair(400, body, SENT)
    assert repaired is not None
    assert repaired.native["max_completion_tokens"] == 9
    assert "max_tokens" not in repaired.native
    assert repaired.warning.feature == "maxOutputTokens"


@pytest.mark.parametrize(
    "error",
    [
        *({"message": "m", "param": name, "code": "unsupported_parameter"} for name in ("model", "messages", "tools")),
        {"message": "Unsupported value: 'stream'", "param": "stream", "code": "unsupported_value"},
        {"message": "m", "param": "tools[0].function.strict", "code": "unknown_parameter"},
        {"message": "Unsupported parameter: 'top_k'"},
        {"message": "Invalid 'temperature': must be at most 2", "param": "temperature", "code": "invalid_value"},
        {"message": "this user is not allowed to stop"},
        {"message": "max_tokens: not allowed to exceed 8"},
        {"message": "no"},
    ],
)
def test_nothing_else_is_repaired(error: Json) -> None:
    assert repair(400, json.dumps({"error": error}).encode(), SENT) is None


def test_other_statuses_and_bodies_are_not_repaired() -> None:
    body = b'{"error":{"message":"Unsupported parameter: \'seed\'"}}'
    assert repair(500, body, SENT) is None
    assert repair(400, b"<html>", SENT) is None


def test_a_repaired_request_leaves_the_first_one_alone() -> None:
    before = dict(SENT)
    repair(400, b'{"error":{"message":"Unsupported parameter: \'seed\'"}}', SENT)
    assert before == SENT


def test_error_details_of_anything_are_harmless() -> None:
    nothing: list[object] = [None, 5, [], {}, {"error": {"message": 5, "code": True}}, {"detail": [5]}, {"error": []}]
    for odd in nothing:
        assert error_details(odd).message is None


@pytest.mark.parametrize(
    "echoed",
    [
        "ab/cD+ef==GH",
        r"ab\/cD+ef==GH",
        "ab%2FcD%2Bef%3D%3DGH",
        "ab/cD%2Bef%3D%3DGH",
        base64.b64encode(b"ab/cD+ef==GH").decode(),
    ],
)
def test_a_secret_is_blotted_out_however_it_is_spelt(echoed: str) -> None:
    body = f'{{"fault": {{"received": "{echoed}"}}}}'.encode()
    error = ErrorReader("acme", "m", ["ab/cD+ef==GH"]).of_response(400, {"x-request-id": f"r-{echoed}"}, body)
    assert echoed not in str(error)
    assert error.request_id == "r-[redacted]"


@pytest.mark.parametrize("word", ["a" * 60_000, "a." * 30_000, "'a" * 30_000])
def test_a_long_word_in_a_refusal_is_read_in_no_time(word: str) -> None:
    body = json.dumps({"error": {"message": f"does not support {word} {word} is not supported"}}).encode()
    assert repair(400, body, {"model": "m", "messages": [], "seed": 1}) is None


def test_a_choice_that_forbids_calls_is_never_left_out() -> None:
    body = json.dumps({"error": {"message": "tool_choice is not supported", "param": "tool_choice"}}).encode()
    native: dict[str, Any] = {"model": "m", "messages": [], "tools": [{}], "tool_choice": "none"}
    assert repair(400, body, native) is None
    assert repair(400, body, {**native, "tool_choice": "auto"}) is not None
