"""Many streams at one time: all are served, and those that nobody reads to the end leave nothing."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from neurolink_mw.protocol import StreamResult, collect
from neurolink_mw.providers.bedrock import BedrockModel, Threads
from neurolink_mw.testing.wire import EventsReply, Pause, Reply, ScriptedServer, bedrock, bedrock_server

from .wire_builders import DELTA, END, HANGING, HEADERS_ONLY, HI, NO_HEADERS, START, model, read, until

pytestmark = pytest.mark.anyio

FLOODING = EventsReply([START, *[DELTA] * 1_500, *END])
FINISHED = bedrock.answer("all of it")
AT_ONCE = 50
# A close that waits for the thread would take until the read times out, which is 30 s.
SOON_S = 15.0


async def settled(threads: Threads, server: ScriptedServer) -> None:
    await anyio.to_thread.run_sync(until, lambda: threads.busy == 0)
    await anyio.to_thread.run_sync(server.wait_until, lambda journal: journal.open_connections == 0)


def sockets() -> int:
    open_files = Path("/proc/self/fd")
    found = 0
    for number in os.listdir(open_files):
        with suppress(OSError):
            found += os.readlink(open_files / number).startswith("socket:")
    return found


async def test_sixty_four_streams_at_one_time_are_all_served() -> None:
    paced = bedrock.answer(deltas=["one ", Pause(0.02), "two ", Pause(0.02), "three"])
    texts: list[str] = []
    with bedrock_server([paced], repeat="last") as server:
        async with model(server, threads=64) as one:

            async def call() -> None:
                texts.append(collect(await read(one, HI)).text)

            async with anyio.create_task_group() as tasks:
                for _ in range(64):
                    tasks.start_soon(call)
    assert texts == ["one two three"] * 64


async def test_streams_that_wait_for_their_readers_keep_no_thread_from_others() -> None:
    with bedrock_server([FLOODING], repeat="last") as server:
        threads = Threads(2)
        async with model(server, threads=threads) as one:
            # Eight times as many as there are threads, each with a reader that stops after the first content.
            results: list[StreamResult] = [await one.do_stream(HI) for _ in range(16)]
            await anyio.to_thread.run_sync(until, lambda: threads.busy == 0)
            assert len(collect(await read(one, HI)).text) == 1_500
            lengths = [len(collect([part async for part in result.stream]).text) for result in results]
        assert lengths == [1_500] * 16
        await settled(threads, server)


Leave = Callable[[BedrockModel], Coroutine[Any, Any, None]]


async def begun(one: BedrockModel) -> StreamResult:
    result = await one.do_stream(HI)
    await anext(aiter(result.stream))
    return result


async def close_begun(one: BedrockModel) -> None:
    await (await begun(one)).stream.aclose()


async def close_unread(one: BedrockModel) -> None:
    await (await one.do_stream(HI)).stream.aclose()


async def drop(one: BedrockModel) -> None:
    await begun(one)


async def drop_unread(one: BedrockModel) -> None:
    await one.do_stream(HI)


async def cancel(one: BedrockModel) -> None:
    """While the stream is read, or before it has begun."""
    with anyio.move_on_after(0.01):
        async for _ in (await one.do_stream(HI)).stream:
            pass


async def cancel_whole(one: BedrockModel) -> None:
    with anyio.move_on_after(0.01):
        await one.do_generate(HI)


async def finish(one: BedrockModel) -> None:
    await read(one, HI)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # that they were dropped
@pytest.mark.parametrize(
    ("reply", "ways"),
    [
        pytest.param(HANGING, [close_begun, close_unread, drop, drop_unread, cancel], id="hanging"),
        pytest.param(HEADERS_ONLY, [cancel], id="headers only"),
        pytest.param(NO_HEADERS, [cancel, cancel_whole], id="no headers"),
        pytest.param(FLOODING, [close_begun, close_unread, drop, drop_unread, cancel], id="flooding"),
        pytest.param(FINISHED, [finish, close_begun, close_unread, drop, drop_unread], id="finished"),
    ],
)
async def test_a_hundred_abandoned_streams_of_a_kind_leave_nothing(reply: Reply, ways: list[Leave]) -> None:
    with bedrock_server([reply], repeat="last") as server:
        threads = Threads(AT_ONCE, idle_s=0.05)
        before = sockets()
        async with model(server, threads=threads) as one:
            for _ in range(100 // AT_ONCE):
                started = monotonic()
                async with anyio.create_task_group() as tasks:
                    for number in range(AT_ONCE):
                        tasks.start_soon(ways[number % len(ways)], one)
                assert monotonic() - started < SOON_S
                gc.collect()
                await anyio.to_thread.run_sync(until, lambda: threads.busy == 0)
        await settled(threads, server)
        gc.collect()
        await anyio.to_thread.run_sync(until, lambda: threads.alive == 0)
        await anyio.to_thread.run_sync(until, lambda: sockets() <= before)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("neurolink-bedrock-close")]
