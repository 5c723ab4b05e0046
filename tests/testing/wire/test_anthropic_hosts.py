"""The Anthropic server as Bedrock and Vertex, through their clients in the real SDK."""

from __future__ import annotations

from typing import Any

import anthropic as sdk
import pytest
from tests.testing.wire.anthropic_clients import CLIENTS, MODEL, Json, collect, create, on_bedrock, stream, texts

from neurolink_mw.testing import wire
from neurolink_mw.testing.wire import anthropic, bedrock, eventstream

pytestmark = pytest.mark.anyio

TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]


@pytest.mark.parametrize("host", ["bedrock", "vertex"])
async def test_hosted_claude_answers_in_messages_and_events(host: str) -> None:
    reply = anthropic.answer("Hello there", tool_calls=[anthropic.ToolCall("look", {"q": 1})])
    with wire.anthropic_server([reply], repeat="last") as server:
        whole = await create(server, CLIENTS[host], tools=TOOLS)
        events = await stream(server, CLIENTS[host], tools=TOOLS)
    assert [block["type"] for block in whole["content"]] == ["text", "tool_use"]
    assert texts(events) == ["Hello", " there"]
    assert (whole["model"], events[0]["message"]["model"]) == (MODEL, MODEL)
    assert [anthropic.asked(exchange)[:3] for exchange in server.journal] == [(MODEL, False, host), (MODEL, True, host)]
    assert all("model" not in exchange.json for exchange in server.journal)


async def test_bedrock_adds_counts_of_its_own_to_the_last_event() -> None:
    with wire.anthropic_server([anthropic.answer("a", usage=anthropic.usage(4, 6))]) as server:
        last = (await stream(server, on_bedrock))[-1]
    metrics = last["amazon-bedrock-invocationMetrics"]
    assert (metrics["inputTokenCount"], metrics["outputTokenCount"]) == (4, 6)


async def test_bedrock_has_betas_in_the_body() -> None:
    with wire.anthropic_server([anthropic.answer("a")]) as server:
        await create(server, on_bedrock, extra_headers={"anthropic-beta": "one,two"})
    assert server.journal[0].json["anthropic_beta"] == ["one", "two"]
    assert set(anthropic.asked(server.journal[0]).betas) == {"one", "two"}


@pytest.mark.parametrize("ask", [create, stream])
@pytest.mark.parametrize("host", ["bedrock", "vertex"])
async def test_hosted_claude_keeps_the_same_rules(ask: Any, host: str) -> None:
    with wire.anthropic_server() as server, pytest.raises(sdk.BadRequestError, match="at least one message"):
        await ask(server, CLIENTS[host], messages=[])
    refused = server.journal[0]
    assert (refused.source, refused.status) == ("server", 400)


async def test_an_exception_frame_of_bedrock_ends_a_stream_behind_what_came() -> None:
    scripted: list[anthropic.Event] = [
        *[*anthropic.events(["Half an"])][:-2],
        eventstream.exception("throttlingException", {"message": "Too many requests"}),
    ]
    events: list[Json] = []
    with (
        wire.anthropic_server([wire.StreamReply(scripted, "eventstream")]) as server,
        pytest.raises(sdk.APIStatusError) as caught,
    ):
        await collect(server, events, on_bedrock)
    assert texts(events) == ["Half", " an"]
    assert str(caught.value.type) == "throttlingException"


async def test_an_error_of_bedrock_is_bedrocks_own() -> None:
    error = bedrock.error(429, "ThrottlingException", "Too many tokens")
    with wire.anthropic_server([error]) as server, pytest.raises(sdk.RateLimitError) as caught:
        await create(server, on_bedrock)
    assert caught.value.response.headers["x-amzn-errortype"] == "ThrottlingException"
