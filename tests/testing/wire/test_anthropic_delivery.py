"""How the bytes of an Anthropic reply reach the real SDK: cut, held, broken off, over TLS, and left by the client."""

from __future__ import annotations

import itertools
import ssl
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import anthropic as sdk
import anyio
import anyio.to_thread
import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.testing.wire.anthropic_clients import (
    CLIENTS,
    Json,
    collect,
    create,
    kinds,
    on_bedrock,
    opened,
    own,
    stream,
    texts,
)
from tests.testing.wire.clients import CERTIFICATE, server_tls

from neurolink_mw.testing import wire
from neurolink_mw.testing.wire import anthropic

pytestmark = pytest.mark.anyio

CUT = anthropic.answer("a wholé answer", thinking="Hm", tool_calls=[anthropic.ToolCall("look", {"q": "é"})])
BORDERS = list(itertools.accumulate(len(part) for part in CUT.streamed("m").parts() if isinstance(part, bytes)))
LENGTH = BORDERS[-1]


def cut(**delivery: Unpack[wire.Delivery]) -> anthropic.Answer:
    return replace(CUT, delivery=delivery)


@pytest.mark.parametrize("host", CLIENTS)
async def test_a_stream_in_single_bytes_says_the_same(host: str) -> None:
    with wire.anthropic_server([CUT, cut(rechunk=1)]) as server:
        whole = await stream(server, CLIENTS[host])
        assert await stream(server, CLIENTS[host]) == whole


async def test_a_whole_message_in_pieces_says_the_same() -> None:
    with wire.anthropic_server([CUT, cut(rechunk=7)]) as server:
        assert await create(server) == await create(server)


@given(cuts=st.lists(st.integers(1, LENGTH - 1), max_size=5))
@settings(max_examples=15, deadline=None)
async def test_cuts_at_any_byte_change_nothing(cuts: list[int]) -> None:
    with wire.anthropic_server([CUT, cut(cuts=cuts)]) as server:
        assert await stream(server, model="m") == await stream(server, model="m")


@given(offset=st.integers(0, LENGTH - 1), reset=st.booleans())
@settings(max_examples=15, deadline=None)
async def test_a_break_at_any_byte_leaves_the_events_before_it(offset: int, reset: bool) -> None:
    events: list[Json] = []
    reply = cut(reset_after=offset) if reset else cut(cut_after=offset)
    # A reset may overtake the head, and then it is the SDK's own error.
    with wire.anthropic_server([reply]) as server, pytest.raises((httpx2.TransportError, sdk.APIConnectionError)):
        await collect(server, events, model="m")
    sent = [kind for kind, border in zip(kinds_of(CUT), BORDERS, strict=True) if border <= offset and kind != "ping"]
    assert kinds(events) == sent[: len(events)]
    if not reset:
        assert kinds(events) == sent


def kinds_of(reply: anthropic.Answer) -> list[str]:
    return [str(event["type"]) for event in reply.streamed("m").events if isinstance(event, dict)]


async def test_a_whole_message_may_break_off() -> None:
    with wire.anthropic_server([cut(cut_after=20)]) as server, pytest.raises(sdk.APIConnectionError):
        await create(server)
    assert server.journal[0].outcome == "cut"


async def test_a_stream_may_end_early_and_politely() -> None:
    half = [*anthropic.events(["Half an"])][:-3]
    with wire.anthropic_server([wire.StreamReply(half)]) as server:
        assert kinds(await stream(server))[-1] == "content_block_delta"
    assert server.journal[0].outcome == "complete"


async def test_no_reply_at_all_is_a_connection_error() -> None:
    with wire.anthropic_server([wire.Disconnect()]) as server, pytest.raises(sdk.APIConnectionError):
        await create(server)


async def test_a_body_that_is_not_the_apis_reaches_the_sdk_as_it_is() -> None:
    page = wire.RawReply(b"<html>Bad Gateway</html>", "text/html", status=502)
    with wire.anthropic_server([page]) as server, pytest.raises(sdk.InternalServerError) as caught:
        await create(server)
    assert caught.value.type is None
    assert caught.value.response.text == "<html>Bad Gateway</html>"


# Holds and delays


@pytest.mark.parametrize("host", CLIENTS)
async def test_a_stream_is_held_between_two_events(host: str) -> None:
    with wire.anthropic_server([anthropic.answer(deltas=["one", wire.HOLD, " two"])]) as server:
        async with CLIENTS[host](server) as client, opened(client) as events:
            first = [(await anext(events)).to_dict(warnings=False) for _ in range(3)]
            assert texts(first) == ["one"]
            assert server.journal[0].outcome == "open"
            server.release()
            assert texts([event.to_dict(warnings=False) async for event in events]) == [" two"]
        assert (await closed(server)).outcome == "complete"


@pytest.mark.parametrize("ask", [create, stream])
async def test_a_reply_is_held_before_its_head(ask: Callable[..., Any]) -> None:
    with wire.anthropic_server([anthropic.answer("a", delay=wire.HOLD)]) as server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(ask, server))
            await anyio.to_thread.run_sync(server.wait_until, lambda journal: len(journal) == 1)
            assert server.journal[0].outcome == "open"
            server.release()
        assert (await closed(server)).outcome == "complete"


async def test_a_reply_that_hangs_meets_the_timeout_of_the_sdk() -> None:
    with wire.anthropic_server([anthropic.answer("a", delay=wire.HOLD)]) as server:
        with pytest.raises(sdk.APITimeoutError):
            await create(server, partial(own, timeout=0.05))
        assert (await closed(server)).outcome == "client-closed"


# A client that leaves


async def closed(server: wire.ScriptedServer, index: int = 0) -> wire.Exchange:
    return await anyio.to_thread.run_sync(server.wait_for_closed, index)


async def test_a_client_that_closes_a_held_stream_is_noticed() -> None:
    with wire.anthropic_server([anthropic.answer(deltas=["one", wire.HOLD, " two"])]) as server:
        async with own(server) as client, opened(client):
            assert server.journal[0].outcome == "open"
        assert (await closed(server)).outcome == "client-closed"


async def test_a_cancelled_request_is_noticed() -> None:
    with wire.anthropic_server([anthropic.answer("a", delay=wire.HOLD)]) as server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(create, server)
            await anyio.to_thread.run_sync(server.wait_until, lambda journal: len(journal) == 1)
            tasks.cancel_scope.cancel()
        assert (await closed(server)).outcome == "client-closed"


async def test_a_flood_that_nobody_reads_waits_and_ends_with_the_client() -> None:
    flood = anthropic.answer(deltas=["x" * 100_000] * 200)
    with wire.anthropic_server([flood]) as server:
        async with own(server) as client, opened(client):
            assert server.journal[0].outcome == "open"
        assert (await closed(server)).outcome == "client-closed"


async def test_a_client_keeps_its_connection_for_the_next_request() -> None:
    with wire.anthropic_server([anthropic.answer("a")], repeat="last") as server:
        async with own(server) as client:
            for _ in range(2):
                async with opened(client) as events:
                    assert [event async for event in events]
        await anyio.to_thread.run_sync(server.wait_until, lambda journal: journal.open_connections == 0)
        assert server.connections_total == 1


# TLS


async def test_the_server_speaks_tls() -> None:
    async with httpx2.AsyncClient(verify=ssl.create_default_context(cafile=str(CERTIFICATE))) as http:
        with wire.anthropic_server([anthropic.answer("a b")], repeat="last", tls=server_tls()) as server:
            make = partial(own, http_client=http)
            assert server.base_url.startswith("https://")
            async with make(server) as client, opened(client) as events:
                assert texts([event.to_dict(warnings=False) async for event in events]) == ["a", " b"]


async def test_a_bedrock_stream_breaks_off_inside_a_frame() -> None:
    events: list[Json] = []
    with wire.anthropic_server([cut(cut_after=600)]) as server, pytest.raises(httpx2.TransportError):
        await collect(server, events, on_bedrock)
    assert kinds(events)[0] == "message_start"
