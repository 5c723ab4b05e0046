"""A streamed part through N layers, against N nested async generators."""

from __future__ import annotations

import asyncio

from .chains import SIZES, Mapping, WrappingGenerate, WrappingStream, chain, generators, streaming
from .figure import Figure, Floor, Goal, Measured
from .measure import Effort, race

_GOALS = {"through": 1.2, "map": 0.75}


def measure(effort: Effort) -> Measured:
    return asyncio.run(_measure(effort))


async def _measure(effort: Effort) -> Measured:
    kinds = {"through": WrappingStream, "map": Mapping, "no hook for this call": WrappingGenerate}
    contenders = generators(SIZES)
    for name, kind in kinds.items():
        contenders |= {f"{name}/{n}": streaming(chain(kind, n)) for n in SIZES}
    taken = await race(contenders, effort)
    figures: Measured = []
    for name in kinds:
        for n in SIZES:
            free = name not in _GOALS
            floor = f"{name}/0" if free else f"generators/{n}"  # a chain of no members is the bare model
            goal = Goal(1.2) if free else Goal(_GOALS[name]) if n == 10 else None
            figures.append(
                Figure(
                    f"stream.{name}",
                    taken[f"{name}/{n}"],
                    "us/part",
                    Floor("the bare model" if free else floor, taken[floor]),
                    n,
                    goal,
                )
            )
    return figures
