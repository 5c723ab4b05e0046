"""Whole turns by `generate()` and `stream()`, against the loop that anybody would write by hand around as many closures
or generators."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from neurolink_mw import Tool, generate, stream, tool
from neurolink_mw.pipeline import Middleware, wrap_model
from neurolink_mw.protocol import LanguageModel

from .by_hand import QUESTION, script, turns_by_hand
from .chains import (
    PARTS,
    AtOnce,
    Scripted,
    WrappingGenerate,
    WrappingStream,
    chain,
    generators,
    members,
    nested_closures,
)
from .figure import Figure, Floor, Goal, Measured
from .measure import Contender, Effort, race

_SIZES: Final = (0, 10)
_LAYERS: Final = 10


@tool
async def weather(city: str) -> str:
    """The weather of a city."""
    return f"Rain in {city}, 7 degrees."


_ANSWERS: Final = script(weather, [{"city": "Oslo"}])


def measure(effort: Effort) -> Measured:
    return [*asyncio.run(_generated(effort)), *asyncio.run(_streamed(effort))]


def generating(model: LanguageModel, tools: Sequence[Tool] = (), middlewares: Sequence[Middleware] = ()) -> Contender:
    """Times turns."""

    async def run(times: int) -> None:
        for _ in range(times):
            await generate(model, QUESTION, tools=tools, middlewares=middlewares)

    return Contender(run)


def streaming_turns(model: LanguageModel) -> Contender:
    """Times parts of turns that are read to their end, and whose result is asked for."""

    async def run(times: int) -> None:
        for _ in range(times):
            async with stream(model, QUESTION) as turn:
                async for _part in turn:
                    pass
                await turn.result()

    return Contender(run, units=len(PARTS))


async def _generated(effort: Effort) -> Measured:
    one_step, two_steps = "one step by hand", "two steps by hand"
    contenders = {f"{one_step}/{n}": turns_by_hand(nested_closures(n)) for n in _SIZES}
    contenders |= {f"one step/{n}": generating(chain(WrappingGenerate, n)) for n in _SIZES}
    contenders |= {
        "one step, given": generating(AtOnce(), middlewares=members(WrappingGenerate, _LAYERS)),
        f"{two_steps}/{_LAYERS}": turns_by_hand(nested_closures(_LAYERS, Scripted(_ANSWERS).do_generate), [weather]),
        "two steps": generating(wrap_model(Scripted(_ANSWERS), members(WrappingGenerate, _LAYERS)), [weather]),
    }
    taken = await race(contenders, effort)

    def figure(what: str, name: str, floor: str, n: int, goal: Goal | None = None) -> Figure:
        at = f"{floor}/{n}"
        return Figure(f"turns.generate, {what}", taken[name], "us/turn", Floor(at, taken[at]), n, goal)

    goal = Goal(60, of="value", where_floor_took=4.1)
    return [
        figure("one step", "one step/0", one_step, 0),
        figure("one step", "one step/10", one_step, _LAYERS, goal),
        figure("one step, middlewares=[...] at each call", "one step, given", one_step, _LAYERS, goal),
        figure("two steps and a tool", "two steps", two_steps, _LAYERS),
    ]


async def _streamed(effort: Effort) -> Measured:
    contenders = generators(_SIZES)
    contenders |= {f"stream/{n}": streaming_turns(chain(WrappingStream, n)) for n in _SIZES}
    taken = await race(contenders, effort)
    goals = {0: Goal(2, of="value", where_floor_took=0.074), 10: Goal(3, of="value", where_floor_took=0.88)}
    figures: Measured = []
    for n in _SIZES:
        floor = Floor(f"generators/{n}", taken[f"generators/{n}"])
        figures.append(Figure("turns.stream, one step", taken[f"stream/{n}"], "us/part", floor, n, goals[n]))
    return figures
