"""Connections: when one is kept for the next call, when it is closed, how a waiting read ends, and many at one time."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
import trio

from neurolink_mw.errors import ServerError
from neurolink_mw.protocol import TextDelta, collect
from neurolink_mw.testing.wire import HOLD, Pause, Reply, StreamReply, anthropic, anthropic_server

from ..leaving import (
    AT_THE_END,
    BEFORE_CONTENT,
    BEFORE_HEADERS,
    IN_MID_STREAM,
    Leave,
    close_while_another_reads,
    sockets,
)
from ..serving import all_closed, asked, ended, size
from ..streams import read
from .wire_builders import BLOCK_START, DELTA, END, HANGING, HEADERS_ONLY, HI, NO_HEADERS, START, STREAMED, model, own

pytestmark = pytest.mark.anyio

CLIENTS = pytest.mark.parametrize("make", [own, model], ids=["own", "given"])
BIG = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x" * 10_000}}
FLOODING = StreamReply([START, BLOCK_START, *[BIG] * 800, *END])
FINISHED = anthropic.answer("all of it").streamed()


# ----------------------------------------------------------------------------------------------- kept and closed


@CLIENTS
async def test_a_connection_is_used_again_after_whole_answers_streams_and_errors(make: Any) -> None:
    with anthropic_server([anthropic.answer("a"), anthropic.answer("b")]) as server:
        server.push(anthropic.error(500, "no"))
        server.push(anthropic.answer("c"))
        async with make(server) as one:
            await one.do_generate(HI)
            await read(one, HI)
            with pytest.raises(ServerError):
                await one.do_stream(HI)
            await one.do_generate(HI)
        assert server.connections_total == 1


async def test_a_reader_that_stops_at_the_finish_part_leaves_a_usable_connection() -> None:
    with anthropic_server([anthropic.answer("a"), anthropic.answer("b")]) as server:
        async with model(server) as one:
            async with (await one.do_stream(HI)).stream as stream:
                async for part in stream:
                    if part.type == "finish":
                        break
            await one.do_generate(HI)
        assert server.connections_total == 1


@CLIENTS
async def test_the_socket_of_a_stream_that_is_left_early_is_closed(make: Any) -> None:
    with anthropic_server([HANGING, anthropic.answer("b")]) as server:
        async with make(server) as one:
            async with (await one.do_stream(HI)).stream as stream:
                async for part in stream:
                    if isinstance(part, TextDelta):
                        break
            assert (await ended(server)).outcome == "client-closed"
            await one.do_generate(HI)
        assert server.connections_total == 2


async def test_a_stream_that_is_closed_unread_frees_its_socket() -> None:
    with anthropic_server([HANGING]) as server:
        async with model(server) as one:
            result = await one.do_stream(HI)
            await result.stream.aclose()
            await result.stream.aclose()
            assert (await ended(server)).outcome == "client-closed"


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # that it was dropped, trio's own too
@pytest.mark.parametrize("begun", [False, True])
async def test_a_stream_that_is_dropped_frees_its_socket(begun: bool) -> None:
    with anthropic_server([HANGING]) as server:
        async with model(server) as one:
            stream = (await one.do_stream(HI)).stream
            if begun:
                await anext(aiter(stream))
            del stream
            gc.collect()
            assert (await ended(server)).outcome == "client-closed"


async def test_a_body_that_stays_open_behind_the_end_does_not_hold_the_answer_back() -> None:
    with anthropic_server([StreamReply([START, BLOCK_START, DELTA, *END, HOLD])]) as server:
        async with model(server) as one:
            assert collect(await read(one, HI)).finish_reason.unified == "stop"
            assert (await ended(server)).outcome == "client-closed"


async def test_a_connection_that_breaks_behind_the_end_does_not_spoil_the_answer() -> None:
    reply = StreamReply([START, BLOCK_START, DELTA, *END])
    with anthropic_server([replace(reply, reset_after=size(reply))]) as server:
        async with model(server) as one:
            assert collect(await read(one, HI)).finish_reason.unified == "stop"


# ------------------------------------------------------------------------------------------- cancelled while it waits


@CLIENTS
@STREAMED
async def test_a_call_that_is_cancelled_before_the_headers_closes_its_socket(streamed: bool, make: Any) -> None:
    with anthropic_server([NO_HEADERS]) as server:
        async with make(server) as one:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.do_stream if streamed else one.do_generate, HI)
                await asked(server)
                tasks.cancel_scope.cancel()
            assert (await ended(server)).outcome == "client-closed"


@CLIENTS
@pytest.mark.parametrize(
    ("reply", "streamed"),
    [
        pytest.param(HEADERS_ONLY, True, id="before the first event"),
        pytest.param(StreamReply([START, BLOCK_START, HOLD]), True, id="before content"),
        pytest.param(replace(anthropic.answer("x").whole(), pause_at={20: HOLD}, framing="chunked"), False, id="whole"),
    ],
)
async def test_a_call_that_is_cancelled_while_the_answer_comes_closes_its_socket(
    reply: Reply, streamed: bool, make: Any
) -> None:
    with anthropic_server([reply]) as server:
        async with make(server) as one:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.do_stream if streamed else one.do_generate, HI)
                await asked(server)
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()
            assert (await ended(server)).outcome == "client-closed"


@CLIENTS
async def test_a_reader_that_is_cancelled_closes_the_socket_first(make: Any) -> None:
    with anthropic_server([HANGING]) as server:
        async with make(server) as one:
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


@CLIENTS
async def test_closing_from_another_task_ends_a_waiting_read(make: Any) -> None:
    with anthropic_server([HANGING]) as server:
        async with make(server) as one:
            await close_while_another_reads((await one.do_stream(HI)).stream)
            assert (await ended(server)).outcome == "client-closed"


# ------------------------------------------------------------------------------------------------ many at one time


@CLIENTS
async def test_sixty_four_streams_at_one_time_are_all_served(make: Any) -> None:
    paced = anthropic.answer(deltas=["one ", Pause(0.02), "two ", Pause(0.02), "three"])
    texts: list[str] = []
    with anthropic_server([paced], repeat="last") as server:
        async with make(server) as one:

            async def ask() -> None:
                texts.append(collect(await read(one, HI)).text)

            async with anyio.create_task_group() as tasks:
                for _ in range(64):
                    tasks.start_soon(ask)
    assert texts == ["one two three"] * 64


def living(backend: str) -> tuple[int, set[str]]:
    """How many tasks there are, and which threads; those that a thread pool keeps for the next call are not told."""
    tasks = trio.lowlevel.current_statistics().tasks_living if backend == "trio" else len(asyncio.all_tasks())
    pooled = ("AnyIO worker thread", "Trio thread", "asyncio_")
    return tasks, {thread.name for thread in threading.enumerate() if not thread.name.startswith(pooled)}


async def settled(state: Callable[[], object], wanted: object) -> None:
    """Until `state()` is what is wanted; it depends on what the loop and other threads do."""
    with anyio.move_on_after(5):
        while state() != wanted:
            await anyio.lowlevel.checkpoint()
    assert state() == wanted


AT_ONCE = 50
# A close that waits for the server would wait for ever.
SOON_S = 10.0


async def abandon(reply: Reply, ways: list[Leave], make: Any, backend: str) -> None:
    """Leave a hundred streams in these ways, and see that nothing stays."""
    tasks_before, threads_before = living(backend)
    sockets_before = sockets()
    with anthropic_server([reply], repeat="last") as server:
        async with make(server) as one:
            for _ in range(100 // AT_ONCE):
                started = monotonic()
                async with anyio.create_task_group() as tasks:
                    for number in range(AT_ONCE):
                        tasks.start_soon(ways[number % len(ways)], one)
                gc.collect()
                await settled(lambda: living(backend)[0], tasks_before)
                assert monotonic() - started < SOON_S
            if reply is not FINISHED:  # after which connections are kept for the next call
                await all_closed(server)
        await all_closed(server)
    await settled(sockets, sockets_before)
    await settled(lambda: living(backend), (tasks_before, threads_before))


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # that they were dropped
@CLIENTS
@pytest.mark.parametrize(
    ("reply", "ways"),
    [
        pytest.param(HANGING, IN_MID_STREAM, id="hanging"),
        pytest.param(HEADERS_ONLY, BEFORE_CONTENT, id="headers only"),
        pytest.param(NO_HEADERS, BEFORE_HEADERS, id="no headers"),
        pytest.param(FLOODING, IN_MID_STREAM, id="flooding"),
        pytest.param(FINISHED, AT_THE_END, id="finished"),
    ],
)
async def test_a_hundred_abandoned_streams_of_a_kind_leave_nothing(
    reply: Reply, ways: list[Leave], make: Any, anyio_backend: str
) -> None:
    await abandon(reply, ways, make, anyio_backend)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # that they were dropped
@pytest.mark.parametrize("reply", [HANGING, FLOODING], ids=["hanging", "flooding"])
async def test_a_hundred_abandoned_streams_of_frames_leave_nothing(reply: StreamReply, anyio_backend: str) -> None:
    await abandon(replace(reply, coding="eventstream"), IN_MID_STREAM, partial(model, host="bedrock"), anyio_backend)
