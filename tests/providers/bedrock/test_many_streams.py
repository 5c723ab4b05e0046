"""Many streams at one time: all are served, and those that nobody reads to the end leave nothing."""

from __future__ import annotations

import gc
import threading
from time import monotonic

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from neurolink_mw.protocol import StreamResult, collect
from neurolink_mw.providers.bedrock import Threads
from neurolink_mw.testing.wire import EventsReply, Pause, Reply, bedrock, bedrock_server

from ..leaving import AT_THE_END, BEFORE_CONTENT, BEFORE_HEADERS, IN_MID_STREAM, Leave, sockets
from ..streams import read
from .wire_builders import DELTA, END, HANGING, HEADERS_ONLY, HI, NO_HEADERS, START, idle, model, until, unused

pytestmark = pytest.mark.anyio

FLOODING = EventsReply([START, *[DELTA] * 1_500, *END])
FINISHED = bedrock.answer("all of it")
AT_ONCE = 50
# A close that waits for the thread would take until the read times out, which is 30 s.
SOON_S = 15.0


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
            await unused(threads)
            assert len(collect(await read(one, HI)).text) == 1_500
            lengths = [len(collect([part async for part in result.stream]).text) for result in results]
        assert lengths == [1_500] * 16
        await idle(threads, server)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # that they were dropped
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
                await unused(threads)
        await idle(threads, server)
        gc.collect()
        await anyio.to_thread.run_sync(until, lambda: threads.alive == 0)
        await anyio.to_thread.run_sync(until, lambda: sockets() <= before)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("neurolink-bedrock-close")]
