"""Real clients of Anthropic's SDK for a wire server, its own and those of Bedrock and Vertex, retries off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from anthropic import AsyncAnthropic, AsyncAnthropicBedrock, AsyncAnthropicVertex

from neurolink_mw.testing import wire

MODEL = "claude-test-1"
HELLO = [{"role": "user", "content": "hi"}]

Json = dict[str, Any]


def own(server: wire.ScriptedServer, **options: Any) -> AsyncAnthropic:
    return AsyncAnthropic(
        api_key="test", base_url=server.base_url, max_retries=0, **{"open_telemetry": False, "timeout": 20.0, **options}
    )


def on_bedrock(server: wire.ScriptedServer) -> AsyncAnthropicBedrock:
    return AsyncAnthropicBedrock(
        api_key="test", aws_region="us-east-1", base_url=server.base_url, max_retries=0, open_telemetry=False
    )


def on_vertex(server: wire.ScriptedServer) -> AsyncAnthropicVertex:
    return AsyncAnthropicVertex(
        project_id="acme",
        region="europe-west1",
        access_token="test",
        base_url=f"{server.base_url}/v1",
        max_retries=0,
        open_telemetry=False,
    )


CLIENTS: dict[str, Any] = {"anthropic": own, "bedrock": on_bedrock, "vertex": on_vertex}


async def create(server: wire.ScriptedServer, make: Any = own, **body: Any) -> Json:
    """The whole message that answers one request, as the SDK has read it."""
    async with make(server) as client:
        message = await client.messages.create(**{"model": MODEL, "max_tokens": 100, "messages": HELLO, **body})
    answered: Json = message.to_dict(mode="json", warnings=False)
    return answered


async def stream(server: wire.ScriptedServer, make: Any = own, **body: Any) -> list[Json]:
    """All events of the answer to one request."""
    events: list[Json] = []
    await collect(server, events, make, **body)
    return events


async def collect(server: wire.ScriptedServer, into: list[Json], make: Any = own, **body: Any) -> None:
    """Append the events of one answer as they come, so that those before an error are kept."""
    async with make(server) as client, opened(client, **body) as events:
        async for event in events:
            into.append(event.to_dict(mode="json", warnings=False))


@asynccontextmanager
async def opened(client: Any, **body: Any) -> AsyncIterator[Any]:
    """The open stream of events that answers one request."""
    asked = {"model": MODEL, "max_tokens": 100, "messages": HELLO, **body}
    events = await client.messages.create(**asked, stream=True)
    try:
        yield events
    finally:
        await events.close()


def deltas(events: list[Json]) -> list[Json]:
    return [event["delta"] for event in events if event["type"] == "content_block_delta"]


def texts(events: list[Json]) -> list[str]:
    return [delta["text"] for delta in deltas(events) if delta["type"] == "text_delta"]


def kinds(events: list[Json]) -> list[str]:
    return [event["type"] for event in events]
