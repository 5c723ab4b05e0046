"""Builders that the tests of the model share: clients as callers make them, replies, and waiting for a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic, AsyncAnthropicBedrock, AsyncAnthropicVertex, DefaultAsyncHttpxClient

from neurolink_mw.errors import ProviderError
from neurolink_mw.protocol import CallOptions
from neurolink_mw.providers.anthropic import AnthropicModel
from neurolink_mw.testing.wire import HOLD, ScriptedServer, StreamReply, anthropic

SAID = "what-nobody-may-quote"
HI = CallOptions.from_text(SAID).replace(max_output_tokens=64)
MODEL = "claude-test-1"
KEY = "key-that-nobody-may-see"

START, BLOCK_START, PING, DELTA, *END = (event for event in anthropic.events(["x"]) if isinstance(event, dict))
BODY: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 64,
    "messages": [{"role": "user", "content": [{"type": "text", "text": SAID}]}],
}
"""What is sent for HI."""

HANGING = StreamReply([START, BLOCK_START, DELTA, HOLD, *END])
HEADERS_ONLY = StreamReply([HOLD, START, BLOCK_START, DELTA, *END])
NO_HEADERS = anthropic.answer("late", delay=HOLD)

STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
HOSTS = ("bedrock", "vertex")

# Making one is the slow part of making a client.
TLS = httpx2.create_ssl_context()


def client(server: ScriptedServer, host: str = "anthropic", **settings: Any) -> Any:
    """A client of the SDK as a caller would make one: it tries again, and it traces."""
    shared: Any = {"http_client": DefaultAsyncHttpxClient(verify=TLS), **settings}
    if host == "bedrock":
        return AsyncAnthropicBedrock(api_key=KEY, aws_region="us-east-1", base_url=server.base_url, **shared)
    if host == "vertex":
        shared["base_url"] = f"{server.base_url}/v1"
        return AsyncAnthropicVertex(access_token=KEY, project_id="acme", region="europe-west1", **shared)
    return AsyncAnthropic(api_key=KEY, base_url=server.base_url, **shared)


def own(server: ScriptedServer) -> AnthropicModel:
    """A model with a client of its own."""
    return AnthropicModel(MODEL, api_key=KEY, base_url=server.base_url)


@asynccontextmanager
async def model(server: ScriptedServer, host: str = "anthropic", **settings: Any) -> AsyncIterator[AnthropicModel]:
    """A model of the server through a given client, which is closed at the end; `settings` go to that."""
    async with client(server, host, **settings) as given:
        yield AnthropicModel(MODEL, client=given)


async def call(one: AnthropicModel, *, streamed: bool, options: CallOptions = HI) -> None:
    """Ask, and leave a stream at its first content."""
    if streamed:
        await (await one.do_stream(options)).stream.aclose()
    else:
        await one.do_generate(options)


async def failing(
    server: ScriptedServer,
    host: str = "anthropic",
    *,
    streamed: bool = False,
    options: CallOptions = HI,
    **settings: Any,
) -> ProviderError:
    """The error that a call raises. It tells neither the key nor what was said."""
    async with model(server, host, **settings) as one:
        with pytest.raises(ProviderError) as caught:
            await call(one, streamed=streamed, options=options)
    error = caught.value
    check_discreet(error)
    return error


def check_discreet(error: ProviderError) -> None:
    # No cause, no context: both would lead to the SDK's exception, which holds the request and its headers.
    assert error.__cause__ is None
    assert error.__context__ is None
    assert (error.provider, error.model_id) == ("anthropic", MODEL)
    shown = f"{error} {error!r} {error.args} {vars(error)}"
    assert KEY not in shown
    assert SAID not in shown
