"""Connections: when one is kept for the next call, when it is closed, and how a waiting read ends."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import anyio
import anyio.to_thread
import pytest

from neurolink_mw.errors import ServerError
from neurolink_mw.protocol import TextDelta, collect
from neurolink_mw.testing.wire import HOLD, SseReply, openai, openai_server

from ..leaving import close_while_another_reads
from ..serving import asked, ended, size
from ..streams import read
from .builders import CHUNK, HI, STOP, model

pytestmark = pytest.mark.anyio


async def test_a_connection_is_used_again_after_whole_answers_streams_and_errors(http: ModuleType) -> None:
    with openai_server([openai.answer("a"), openai.answer("b")]) as server:
        server.push(openai.error(500, "no"))
        server.push(openai.answer("c"))
        async with http.AsyncClient() as client, model(server, http_client=client) as one:
            await one.do_generate(HI)
            await read(one, HI)
            with pytest.raises(ServerError):
                await one.do_stream(HI)
            await one.do_generate(HI)
        assert server.connections_total == 1


async def test_a_reader_that_stops_at_the_finish_part_leaves_a_usable_connection() -> None:
    with openai_server([openai.answer("a"), openai.answer("b")]) as server:
        async with model(server) as one:
            async with (await one.do_stream(HI)).stream as stream:
                async for part in stream:
                    if part.type == "finish":
                        break
            await one.do_generate(HI)
        assert server.connections_total == 1


async def test_the_socket_of_a_stream_that_is_left_early_is_closed(http: ModuleType) -> None:
    with openai_server([SseReply([CHUNK, CHUNK, HOLD, STOP]), openai.answer("b")]) as server:
        async with http.AsyncClient() as client, model(server, http_client=client) as one:
            async with (await one.do_stream(HI)).stream as stream:
                async for part in stream:
                    if isinstance(part, TextDelta):
                        break
            assert (await ended(server)).outcome == "client-closed"
            await one.do_generate(HI)
        assert server.connections_total == 2


async def test_a_stream_that_is_closed_unread_frees_its_socket() -> None:
    with openai_server([SseReply([CHUNK, HOLD, STOP])]) as server:
        async with model(server) as one:
            result = await one.do_stream(HI)
            await result.stream.aclose()
            await result.stream.aclose()
            assert (await ended(server)).outcome == "client-closed"


async def test_closing_from_another_task_ends_a_waiting_read(http: ModuleType) -> None:
    with openai_server([SseReply([CHUNK, HOLD, STOP])]) as server:
        async with http.AsyncClient() as client, model(server, http_client=client) as one:
            await close_while_another_reads((await one.do_stream(HI)).stream)
            assert (await ended(server)).outcome == "client-closed"


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_cancelled_call_closes_its_socket_first(streamed: bool, http: ModuleType) -> None:
    reply = SseReply([openai.chunk({"role": "assistant"}), HOLD]) if streamed else openai.text("x", delay=HOLD)
    with openai_server([reply]) as server:
        async with http.AsyncClient() as client, model(server, http_client=client) as one:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.do_stream if streamed else one.do_generate, HI)
                await asked(server)
                tasks.cancel_scope.cancel()
            assert (await ended(server)).outcome == "client-closed"


async def test_a_reader_that_is_cancelled_closes_the_socket_first() -> None:
    with openai_server([SseReply([CHUNK, HOLD, STOP])]) as server:
        async with model(server) as one:
            stream = (await one.do_stream(HI)).stream
            waiting = anyio.Event()

            async def reader() -> None:
                async for part in stream:
                    if isinstance(part, TextDelta):
                        waiting.set()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(reader)
                await waiting.wait()
                tasks.cancel_scope.cancel()
            assert (await ended(server)).outcome == "client-closed"
            await stream.aclose()


async def test_a_body_that_stays_open_behind_done_does_not_hold_the_answer_back() -> None:
    with openai_server([SseReply([CHUNK, STOP, "data: [DONE]\n\n", HOLD], done=False)]) as server:
        async with model(server) as one:
            assert collect(await read(one, HI)).finish_reason.unified == "stop"
            assert (await ended(server)).outcome == "client-closed"


async def test_a_connection_that_breaks_behind_done_does_not_spoil_the_answer() -> None:
    reply = SseReply([CHUNK, STOP])
    with openai_server([replace(reply, reset_after=size(reply))]) as server:
        async with model(server) as one:
            assert collect(await read(one, HI)).finish_reason.unified == "stop"


async def test_a_model_closes_its_own_client_and_may_be_used_again() -> None:
    with openai_server([openai.answer("a"), openai.answer("b")]) as server:
        one = model(server)
        async with one:
            await one.do_generate(HI)
        await anyio.to_thread.run_sync(server.wait_until, lambda journal: journal.open_connections == 0)
        async with one:
            await one.do_generate(HI)
        assert server.connections_total == 2
