"""Builders that the tests of the model and of what it stands on share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, cast

import anyio.to_thread
import boto3
from botocore.config import Config
from tests.testing.wire.clients import CERTIFICATE

from neurolink_mw.protocol import CallOptions
from neurolink_mw.providers.bedrock import BedrockModel, Threads
from neurolink_mw.providers.bedrock.client import BedrockClient
from neurolink_mw.providers.bedrock.pump import Answer, Event
from neurolink_mw.testing.wire import HOLD, EventsReply, ScriptedServer, bedrock

from ..serving import all_closed

HI = CallOptions.from_text("Hi")
MODEL = "anthropic.claude-test-v1:0"
REQUEST: dict[str, Any] = {"modelId": MODEL, "messages": [{"role": "user", "content": [{"text": "Hi"}]}]}
KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "test-secret"}

START = {"messageStart": {"role": "assistant"}}
DELTA = {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "x"}}}
BLOCK_STOP = {"contentBlockStop": {"contentBlockIndex": 0}}
STOP = {"messageStop": {"stopReason": "end_turn"}}
METADATA = {"metadata": {"usage": bedrock.USAGE, "metrics": {"latencyMs": 1}}}
END = (BLOCK_STOP, STOP, METADATA)

HANGING = EventsReply([START, DELTA, HOLD, *END])
HEADERS_ONLY = EventsReply([HOLD, START, DELTA, *END])
NO_HEADERS = bedrock.answer("late", delay=HOLD)
FLOODING = EventsReply([START, *[DELTA] * 20_000, *END])


def client(address: str, *, attempts: int = 1, **settings: Any) -> BedrockClient:
    """A boto3 client, as a caller would make one."""
    made = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=address,
        verify=str(CERTIFICATE),
        config=Config(retries={"total_max_attempts": attempts, "mode": "standard"}, **{"read_timeout": 30, **settings}),
        **KEYS,
    )
    return cast("BedrockClient", made)


def streaming(one: BedrockClient) -> Callable[[], tuple[Answer, Iterable[Event]]]:
    """The call that a pump makes for a stream."""

    def call() -> tuple[Answer, Iterable[Event]]:
        answer = one.converse_stream(**REQUEST)
        return answer, answer.pop("stream")

    return call


def until(predicate: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait for what another thread does."""
    deadline = time.monotonic() + seconds
    while not predicate():
        if time.monotonic() > deadline:
            raise TimeoutError("the awaited state was not reached")
        time.sleep(0.001)


def model(server: ScriptedServer, **settings: Any) -> BedrockModel:
    """A model of the server, through a client as a caller would make one; `config` goes to that."""
    config = settings.pop("config", {})
    return BedrockModel(MODEL, client=client(server.base_url, **config), **settings)


async def unused(threads: Threads) -> None:
    """Until no thread is busy."""
    await anyio.to_thread.run_sync(until, lambda: threads.busy == 0)


async def idle(threads: Threads, server: ScriptedServer) -> None:
    """Until no thread is busy and no connection open."""
    await unused(threads)
    await all_closed(server)
