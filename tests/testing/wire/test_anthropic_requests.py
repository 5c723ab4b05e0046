"""What the Anthropic server refuses and notes down, and the errors of its script, through the real SDK."""

from __future__ import annotations

from typing import Any

import anthropic as sdk
import httpx
import pytest
from tests.testing.wire.anthropic_clients import HELLO, MODEL, create, own, stream

from neurolink_mw.testing import wire
from neurolink_mw.testing.wire import anthropic

pytestmark = pytest.mark.anyio

TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]


# Errors


@pytest.mark.parametrize("ask", [create, stream])
@pytest.mark.parametrize(
    ("status", "kind", "raised"),
    [
        (400, "invalid_request_error", sdk.BadRequestError),
        (401, "authentication_error", sdk.AuthenticationError),
        (403, "permission_error", sdk.PermissionDeniedError),
        (404, "not_found_error", sdk.NotFoundError),
        (413, "request_too_large", sdk.APIStatusError),
        (429, "rate_limit_error", sdk.RateLimitError),
        (500, "api_error", sdk.InternalServerError),
        (503, "api_error", sdk.InternalServerError),
        (529, "overloaded_error", sdk.InternalServerError),
    ],
)
async def test_an_error_reaches_the_sdk_with_its_type(
    ask: Any, status: int, kind: str, raised: type[sdk.APIStatusError]
) -> None:
    with (
        wire.anthropic_server([anthropic.error(status, "why", retry_after=7)]) as server,
        pytest.raises(raised) as caught,
    ):
        await ask(server)
    assert (caught.value.status_code, caught.value.type, caught.value.api_message) == (status, kind, "why")
    assert caught.value.request_id == anthropic.REQUEST_ID
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.response.json()["request_id"] == anthropic.REQUEST_ID


async def test_an_error_may_name_its_type_and_cause() -> None:
    error = anthropic.error(400, "why", type="own_error", details={"error_code": "tool_name_conflict"})
    with wire.anthropic_server([error]) as server, pytest.raises(sdk.BadRequestError) as caught:
        await create(server)
    assert (caught.value.type, caught.value.error_code) == ("own_error", "tool_name_conflict")


async def test_own_headers_win() -> None:
    replies: list[wire.ScriptedReply] = [
        anthropic.error(429, "why", headers={"Request-Id": "r1"}),
        anthropic.answer("a", headers={"X-Own": "1"}),
    ]
    with wire.anthropic_server(replies) as server:
        with pytest.raises(sdk.RateLimitError) as caught:
            await create(server)
        async with own(server) as client:
            raw = await client.messages.with_raw_response.create(
                model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "hi"}]
            )
    assert caught.value.request_id == "r1"
    assert (raw.headers["request-id"], raw.headers["x-own"]) == (anthropic.REQUEST_ID, "1")


async def test_an_exhausted_script_says_so_to_the_sdk() -> None:
    with wire.anthropic_server() as server, pytest.raises(sdk.InternalServerError, match="The script is exhausted"):
        await create(server)


# The journal and the server's own rules


async def test_the_journal_tells_model_stream_betas_and_body() -> None:
    with wire.anthropic_server([anthropic.answer("a")], repeat="last") as server:
        async with own(server) as client:
            await client.beta.messages.create(
                model=MODEL,
                max_tokens=9,
                messages=[{"role": "user", "content": "hi"}],
                betas=["one", "two"],
                extra_query={"beta": "true"},
            )
        await stream(server)
    beta, streamed = server.journal
    assert anthropic.asked(beta) == (MODEL, False, "anthropic", ("one", "two"))
    assert (beta.path, streamed.path) == ("/v1/messages?beta=true", "/v1/messages")
    assert anthropic.asked(streamed) == (MODEL, True, "anthropic", ())
    assert streamed.json == {"model": MODEL, "max_tokens": 100, "messages": HELLO, "stream": True}
    assert streamed.headers["anthropic-version"]


def test_another_path_asks_for_no_model() -> None:
    with pytest.raises(ValueError, match="no path of Messages"):
        anthropic.asked(wire.Exchange("POST", "/v1/complete", {}, b"{}"))
    with pytest.raises(ValueError, match="not a JSON object"):
        anthropic.asked(wire.Exchange("POST", "/v1/messages", {}, b"[]"))


@pytest.mark.parametrize("ask", [create, stream])
async def test_a_breach_of_the_rules_is_refused_and_uses_up_no_reply(ask: Any) -> None:
    with wire.anthropic_server([anthropic.answer("a")]) as server:
        with pytest.raises(sdk.BadRequestError) as caught:
            await ask(server, messages=[{"role": "user", "content": " "}])
        assert await ask(server)
    assert caught.value.type == "invalid_request_error"
    assert caught.value.api_message == "messages: text content blocks must contain non-whitespace text"
    assert [exchange.source for exchange in server.journal] == ["server", "script"]


async def test_the_rules_can_be_left_out() -> None:
    with wire.anthropic_server([anthropic.answer("a")], enforce=False) as server:
        assert await create(server, messages=[])


@pytest.mark.parametrize("content", [b"", b"[1]", b"{"])
def test_a_body_that_is_no_object_is_refused(content: bytes) -> None:
    with wire.anthropic_server(enforce=False) as server:
        response = httpx.post(f"{server.base_url}/v1/messages", content=content)
    assert (response.status_code, response.json()["error"]["type"]) == (400, "invalid_request_error")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/messages"),
        ("POST", "/v1/messages/count_tokens"),
        ("POST", "/model/m/converse"),
        ("POST", "/v1/projects/p/locations/r/publishers/acme/models/m:rawPredict"),
    ],
)
def test_another_operation_is_not_found(method: str, path: str) -> None:
    with wire.anthropic_server() as server:
        response = httpx.request(method, f"{server.base_url}{path}", json={})
    assert (response.status_code, response.json()["error"]["type"]) == (404, "not_found_error")


async def test_what_a_message_says_can_be_replayed() -> None:
    calls = [anthropic.ToolCall("look", {"q": 1}), anthropic.ToolCall("look", {"q": 2})]
    thoughts: list[anthropic.Thought] = [anthropic.Thinking("Hm"), anthropic.RedactedThinking("RED")]
    replies = [anthropic.answer("See", thinking=thoughts, tool_calls=calls), anthropic.answer("a")]
    with wire.anthropic_server(replies) as server:
        said = (await create(server, tools=TOOLS))["content"]
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "done"}
            for block in said
            if block["type"] == "tool_use"
        ]
        history = [*HELLO, {"role": "assistant", "content": said}, {"role": "user", "content": results}]
        assert (await create(server, messages=history, tools=TOOLS))["stop_reason"] == "end_turn"
