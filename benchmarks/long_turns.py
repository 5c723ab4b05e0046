"""A turn of 200 steps whose tool returns 20 KiB each time: what a step costs, and how much memory the turn takes at its
height, against the loop by hand, whose conversation only grows."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from typing import Final

from neurolink_mw import generate, tool
from neurolink_mw.loop import ContextGuard

from .by_hand import QUESTION, script, turns_by_hand
from .chains import Scripted
from .figure import Figure, Floor, Goal, Measured
from .measure import Contender, Effort, race, series_of

_STEPS: Final = 200
_OUTPUT: Final = ("a line of text\n" * 2_000)[: 20 * 1024]
_WINDOWS: Final = (128_000, 32_000)


@tool
async def read(path: str) -> str:
    """Read a file."""
    return path + _OUTPUT[len(path) :]  # another text each time, or it would take its memory once


_ANSWERS: Final = script(read, [{"path": f"file-{number}"} for number in range(_STEPS - 1)])


def measure(effort: Effort) -> Measured:
    return asyncio.run(_measure(effort))


async def _measure(effort: Effort) -> Measured:
    hand = "by hand"
    contenders = {hand: turns_by_hand(Scripted(_ANSWERS).do_generate, [read], steps=_STEPS)}
    contenders |= {_name(window): _guarded(window) for window in _WINDOWS}
    taken = await race(contenders, effort)
    heights = {name: series_of([await _height(one) for _ in range(effort.rounds)]) for name, one in contenders.items()}
    figures: Measured = []
    for window in _WINDOWS:
        name = _name(window)
        figures += [
            Figure(f"long_turns.a step, {name}", taken[name], "us/step", Floor(hand, taken[hand])),
            Figure(f"long_turns.memory, {name}", heights[name], "KB", Floor(hand, heights[hand]), goal=Goal(1.5)),
        ]
    return figures


def _name(window: int) -> str:
    return f"window of {window // 1000}k tokens"


def _guarded(window: int) -> Contender:
    model, guard = Scripted(_ANSWERS), ContextGuard(limits={"*": window})

    async def run(times: int) -> None:
        for _ in range(times):
            await generate(model, QUESTION, tools=[read], context_guard=guard)

    return Contender(run, units=_STEPS)


async def _height(one: Contender) -> float:
    """The most memory that one turn takes, in KB."""
    gc.collect()
    tracemalloc.start()
    running = one.run(1)
    assert running is not None
    await running
    _, height = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return height / 1024
