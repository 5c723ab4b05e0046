"""Events of a ConverseStream against boto3 iterated by hand, one thread a stream.

The server is another process, so that its work is not counted as the client's.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from statistics import quantiles
from typing import Any, Final

import boto3
from botocore.config import Config

from neurolink_mw.protocol import CallOptions
from neurolink_mw.providers.bedrock import BedrockModel, BedrockTurnModel

from .bedrock_server import EVENTS
from .chains import WrappingStream, members
from .child import serving
from .figure import Figure, Floor, Goal, Measured
from .measure import Contender, Effort, race, series_of

MODEL_ID: Final = "anthropic.claude-sonnet-4-6"
ASKED: Final = CallOptions.from_text("Hello")
_BODY: Final = {"modelId": MODEL_ID, "messages": [{"role": "user", "content": [{"text": "Hello"}]}]}
_STREAMS: Final = 64


def measure(effort: Effort) -> Measured:
    with serving("benchmarks.bedrock_server", "burst") as base_url:
        figures = asyncio.run(_burst("", base_url, effort, Goal(1.3), Goal(1.4)))
        with one_core():
            figures += asyncio.run(_burst(", on one core", base_url, effort, Goal(1.35)))
    with serving("benchmarks.bedrock_server", "paced") as base_url:
        figures += _paced(base_url, effort)
    return figures


@contextmanager
def one_core() -> Iterator[None]:
    """This thread, and those that it starts, on one core."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def client(base_url: str) -> Any:
    return boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=base_url,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"total_max_attempts": 1}, max_pool_connections=_STREAMS),
    )


def iterated(by_hand: Any) -> Callable[[], Awaitable[None]]:
    """The floor: boto3's own iteration, which blocks."""

    async def once() -> None:
        for _event in by_hand.converse_stream(**_BODY)["stream"]:
            pass

    return once


async def _burst(
    where: str, base_url: str, effort: Effort, model_goal: Goal, turn_goal: Goal | None = None
) -> Measured:
    async with BedrockModel(MODEL_ID, client=client(base_url)) as model:
        turn = BedrockTurnModel(model, middlewares=members(WrappingStream, 3))

        async def ours() -> None:
            async for _part in (await model.do_stream(ASKED)).stream:
                pass

        async def bridged() -> None:
            async for _part in (await turn.do_stream(ASKED)).stream:
                pass

        taken = await race(
            {"boto3": repeated(iterated(client(base_url))), "model": repeated(ours), "turn": repeated(bridged)}, effort
        )
    floor = Floor("boto3, iterated", taken["boto3"])
    return [
        Figure(f"bedrock.model{where}", taken["model"], "us/event", floor, 0, model_goal),
        Figure(f"bedrock.turn and layers{where}", taken["turn"], "us/event", floor, 3, turn_goal),
    ]


def repeated(once: Callable[[], Awaitable[None]]) -> Contender:
    async def run(times: int) -> None:
        for _ in range(times):
            await once()

    return Contender(run, units=EVENTS)


def _paced(base_url: str, effort: Effort) -> Measured:
    """64 streams at once, an event every 10 ms in each: how long all take, and when the first events come."""
    streams, rounds = (8, 1) if effort.is_quick else (_STREAMS, min(effort.rounds, 5))
    bare: list[tuple[float, float]] = []
    ours: list[tuple[float, float]] = []
    for _ in range(rounds):
        bare.append(_by_threads(base_url, streams))
        ours.append(asyncio.run(_by_tasks(base_url, streams)))
    wall, first = (series_of([one[at] for one in ours]) for at in (0, 1))
    floor_wall, floor_first = (series_of([one[at] for one in bare]) for at in (0, 1))
    late = series_of([mine - theirs for mine, theirs in zip(first.rounds, floor_first.rounds, strict=True)])
    name = "a thread each"
    return [
        Figure(f"bedrock.{streams} paced streams", wall, "s", Floor(name, floor_wall), goal=Goal(1.15)),
        Figure("bedrock.first event later, p95", late, "ms", goal=Goal(150, of="value")),
    ]


def _by_threads(base_url: str, streams: int) -> tuple[float, float]:
    """Seconds until all have ended, and milliseconds until 95 of 100 have begun."""
    by_hand, firsts = client(base_url), []
    started = time.perf_counter()

    def read() -> None:
        events = iter(by_hand.converse_stream(**_BODY)["stream"])
        next(events)
        firsts.append(time.perf_counter() - started)
        for _event in events:
            pass

    threads = [threading.Thread(target=read) for _ in range(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started, _p95(firsts)


async def _by_tasks(base_url: str, streams: int) -> tuple[float, float]:
    firsts: list[float] = []
    async with BedrockModel(MODEL_ID, client=client(base_url)) as model:
        started = time.perf_counter()

        async def read() -> None:
            parts = aiter((await model.do_stream(ASKED)).stream)
            await anext(parts)
            firsts.append(time.perf_counter() - started)
            async for _part in parts:
                pass

        async with asyncio.TaskGroup() as tasks:
            for _ in range(streams):
                tasks.create_task(read())
        return time.perf_counter() - started, _p95(firsts)


def _p95(seconds: list[float]) -> float:
    return quantiles(seconds, n=20)[-1] * 1000
