"""One call through N layers, against N nested closures."""

from __future__ import annotations

import asyncio

from .chains import SIZES, Transforming, WrappingGenerate, WrappingStream, calling, chain, closures
from .figure import Figure, Floor, Goal, Measured
from .measure import Effort, race

_GOALS = {"wrap_generate": 1.5, "transform_params + wrap_generate": 4.0}


def measure(effort: Effort) -> Measured:
    return asyncio.run(_measure(effort))


async def _measure(effort: Effort) -> Measured:
    kinds = {
        "wrap_generate": WrappingGenerate,
        "transform_params + wrap_generate": Transforming,
        "no hook for this call": WrappingStream,
    }
    contenders = closures(SIZES)
    for name, kind in kinds.items():
        contenders |= {f"{name}/{n}": calling(chain(kind, n).do_generate) for n in SIZES}
    taken = await race(contenders, effort)
    figures: Measured = []
    for name in kinds:
        for n in SIZES:
            free = name not in _GOALS  # a layer without the hook is to cost what no layer costs
            floor = "closures/0" if free else f"closures/{n}"
            goal = Goal(1.2) if free else Goal(_GOALS[name]) if n == 10 else None
            figures.append(
                Figure(f"generate.{name}", taken[f"{name}/{n}"], "us/call", Floor(floor, taken[floor]), n, goal)
            )
    return figures
