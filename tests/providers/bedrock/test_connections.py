"""Calls over real connections: when one is kept, when it is ended, and that nobody else's is touched."""

from __future__ import annotations

import socket
import ssl
import threading
from dataclasses import replace
from typing import Any

import anyio
import anyio.to_thread
import pytest
from tests.testing.wire.clients import server_tls

from neurolink_mw.providers.bedrock.client import Client, given_client
from neurolink_mw.providers.bedrock.pump import Pump
from neurolink_mw.providers.bedrock.threads import Threads
from neurolink_mw.testing.wire import Reply, ScriptedReply, ScriptedServer, bedrock, bedrock_server

from ..serving import all_closed, asked
from .wire_builders import (
    DELTA,
    FLOODING,
    HANGING,
    HEADERS_ONLY,
    NO_HEADERS,
    REQUEST,
    START,
    client,
    idle,
    streaming,
    unused,
)

pytestmark = pytest.mark.anyio

TCP_AND_TLS = pytest.mark.parametrize("tls", [None, server_tls()], ids=["tcp", "tls"])


def calling(server: ScriptedServer) -> Client:
    return given_client(client(server.base_url), None, 64)


# ----------------------------------------------------------------------------------------------------------- reuse


@TCP_AND_TLS
async def test_a_connection_is_used_again_after_answers_streams_and_errors(tls: ssl.SSLContext | None) -> None:
    refused = bedrock.error(400, "ValidationException", "no")
    replies: list[ScriptedReply] = [bedrock.answer("a"), bedrock.answer("b"), refused, refused, bedrock.answer("c")]
    with bedrock_server(replies, tls=tls) as server:
        one = calling(server)
        threads = Threads(2)
        for call in (
            lambda: (one.calls.converse(**REQUEST), None),
            streaming(one.calls),
            lambda: (one.calls.converse(**REQUEST), None),
            streaming(one.calls),
            streaming(one.calls),
        ):
            pump = Pump(threads, call)
            await pump.answer()
            while await pump.batch():
                pass
            await unused(threads)
        assert server.connections_total == 1


async def test_closing_ends_idle_connections_and_a_later_call_opens_new_ones() -> None:
    with bedrock_server([bedrock.answer("a")], repeat="last") as server:
        one, threads = calling(server), Threads(1)
        for total in (1, 2):
            pump = Pump(threads, lambda: (one.calls.converse(**REQUEST), None))
            await pump.answer()
            await unused(threads)
            one.close()
            await all_closed(server)
            assert server.connections_total == total


# ------------------------------------------------------------------------------------------------------------- ending


@TCP_AND_TLS
@pytest.mark.parametrize(
    "reply",
    [HANGING, HEADERS_ONLY, NO_HEADERS, FLOODING, replace(HANGING, headers={"connection": "close"})],
    ids=["hang", "head", "none", "flood", "last of its connection"],
)
async def test_an_aborted_stream_gives_thread_and_connection_back_in_any_phase(
    reply: Reply, tls: ssl.SSLContext | None
) -> None:
    with bedrock_server([reply], tls=tls) as server:
        one = calling(server)
        threads = Threads(1)
        pump = Pump(threads, streaming(one.calls))
        await asked(server)
        pump.abort()
        await idle(threads, server)
        assert server.journal[0].outcome == "client-closed"


@TCP_AND_TLS
async def test_an_aborted_converse_gives_thread_and_connection_back(tls: ssl.SSLContext | None) -> None:
    with bedrock_server([NO_HEADERS], tls=tls) as server:
        one = calling(server)
        threads = Threads(1)
        pump = Pump(threads, lambda: (one.calls.converse(**REQUEST), None))
        await asked(server)
        pump.abort()
        await idle(threads, server)


@pytest.mark.parametrize(
    ("address", "proxied"),
    [("https://{host}", False), ("http://bedrock.test", True), ("https://bedrock.test", True)],
    ids=["tls handshake", "proxy", "tunnel through a proxy"],
)
async def test_an_abort_ends_a_call_that_nobody_answers_at_all(address: str, proxied: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        proxies = dict.fromkeys(("http", "https"), f"http://{host}") if proxied else None
        one = given_client(client(address.format(host=host), proxies=proxies), None, 1)
        threads = Threads(1)
        pump = Pump(threads, streaming(one.calls))
        peer, _ = await anyio.to_thread.run_sync(listener.accept)
        with peer:
            peer.settimeout(5)
            hello = await anyio.to_thread.run_sync(peer.recv, 65536)
            assert hello
            pump.abort()
            await unused(threads)
            while peer.recv(65536):  # the rest of the request, then the end, or a timeout
                pass


@pytest.mark.parametrize("reply", [NO_HEADERS, HEADERS_ONLY], ids=["before the headers", "after the headers"])
async def test_a_client_that_tries_again_by_itself_does_not_try_an_aborted_call_again(reply: Reply) -> None:
    with bedrock_server([reply], repeat="last") as server:
        with pytest.warns(UserWarning, match="up to 4 attempts"):
            one = given_client(client(server.base_url, attempts=4), None, 4)
        threads = Threads(1)
        for number in (1, 2, 3):
            pump = Pump(threads, lambda: (one.calls.converse(**REQUEST), None))
            await asked(server, number)
            pump.abort()
            await unused(threads)
        assert len(server.journal) == 3


# -------------------------------------------------------------------------------------------------- other people's


async def test_other_calls_of_the_callers_client_go_on_when_ours_are_aborted() -> None:
    hanging = bedrock.answer("whole", delay=HANGING.events[2])  # type: ignore[arg-type]
    with bedrock_server([hanging], repeat="last") as server:
        theirs = client(server.base_url)
        one, threads, answers = given_client(theirs, None, 4), Threads(4), list[Any]()
        thread = threading.Thread(target=lambda: answers.append(theirs.converse(**REQUEST)))
        thread.start()
        await asked(server)
        pumps = [Pump(threads, lambda: (one.calls.converse(**REQUEST), None)) for _ in range(4)]
        await asked(server, 5)
        for pump in pumps:
            pump.abort()
        await unused(threads)
        server.release()
        await anyio.to_thread.run_sync(thread.join)
        assert answers[0]["output"]["message"]["content"] == [{"text": "whole"}]
        one.close()
        assert theirs.converse is not None
        assert server.open_connections == 1


async def test_closing_ends_idle_connections_though_somebody_still_holds_an_answer() -> None:
    with bedrock_server([bedrock.answer("whole")]) as server:
        one = given_client(client(server.base_url), None, 4)
        answer = one.calls.converse_stream(**REQUEST)
        assert len(list(answer["stream"])) > 0
        assert server.journal.open_connections == 1
        one.close()
        await anyio.to_thread.run_sync(server.wait_until, lambda journal: journal.open_connections == 0)
        del answer


async def test_the_callers_handlers_see_our_calls() -> None:
    with bedrock_server([bedrock.answer("a")]) as server:
        theirs: Any = client(server.base_url)
        one = given_client(theirs, None, 4)
        theirs.meta.events.register(
            "before-sign.bedrock-runtime", lambda request, **_: request.headers.add_header("x-team", "blue")
        )
        pump = Pump(Threads(1), lambda: (one.calls.converse(**REQUEST), None), headers={"X-Call": "1"})
        await pump.answer()
        sent = server.journal[0].headers
        assert (sent["x-team"], sent["x-call"]) == ("blue", "1")
        assert "x-call" in sent["authorization"]  # it is signed with the rest


# ------------------------------------------------------------------------------------- a botocore that hides its own


async def test_where_a_release_hides_its_connections_streams_can_be_aborted_all_the_same() -> None:
    with bedrock_server([HANGING]) as server:
        hiding: Any = client(server.base_url)
        hiding._endpoint.http_session = _Hidden(hiding._endpoint.http_session)
        with pytest.warns(UserWarning, match="hides its connections"):
            one = given_client(hiding, None, 4)
        threads = Threads(1)
        pump = Pump(threads, streaming(one.calls))
        await pump.answer()
        events = await pump.batch()
        while len(events) < 2:
            events += await pump.batch()
        pump.abort()
        await unused(threads)
        assert events == [START, DELTA]
        await anyio.to_thread.run_sync(server.wait_for_closed)


class _Hidden:
    """A session of which nothing is known but that it sends."""

    def __init__(self, session: Any) -> None:
        self.send = session.send
        self.close = session.close
