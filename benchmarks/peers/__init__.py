"""Other libraries, by the same clock in the same run: what a call and a part cost through N of their middlewares.

A peer is a module here with `PACKAGE`, the distribution that it needs, and `contenders(n)`. Nothing is imported until
it is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from ..chains import SIZES, Wrapping, calling, chain, closures, generators, streaming
from ..figure import Figure, Floor, Measured, Skipped
from ..measure import Contender, Effort, Series, race

PEERS: Final = {
    "langchain": "langchain",
    "litellm": "litellm",
    "pydantic_ai": "pydantic-ai-slim",
    "strands": "strands-agents",
}
"""The module of each peer, and the distribution that it needs."""

_OURS = "wrap_model"


def measure(name: str, effort: Effort) -> Measured:
    try:
        installed = version(PEERS[name])
    except PackageNotFoundError:
        return [Skipped(f"peers.{name}", f"{PEERS[name]} is not installed: pip install 'neurolink-mw[peers]'")]
    module = import_module(f"{__name__}.{name}")
    return asyncio.run(_measure(f"{name} {installed}", module.contenders, effort))


async def _measure(peer: str, make: Callable[[int], Awaitable[dict[str, Contender]]], effort: Effort) -> Measured:
    contenders = closures(SIZES) | generators(SIZES)
    theirs = {n: await make(n) for n in SIZES}
    for n in SIZES:
        model = chain(Wrapping, n)
        contenders |= {f"call: {_OURS}/{n}": calling(model.do_generate), f"part: {_OURS}/{n}": streaming(model)}
        contenders |= {f"{name}/{n}": contender for name, contender in theirs[n].items()}
    taken = await race(contenders, effort)
    figures: Measured = []
    for name in theirs[0]:
        per = name.partition(":")[0]
        floor, ours = "closures" if per == "call" else "generators", f"{per}: {_OURS}"
        title, unit = f"peers.{peer}, {name}", f"us/{per}"
        for n in SIZES:
            at = Floor(f"{floor}/{n}", taken[f"{floor}/{n}"])
            figures.append(Figure(title, taken[f"{name}/{n}"], unit, at, n, ours=taken[f"{ours}/{n}"]))
        # A peer does more around a call than a chain does. What one layer more costs is the same question to all.
        theirs_more, floor_more, ours_more = (_per_layer(taken, one) for one in (name, floor, ours))
        at = Floor(f"{floor}, per layer", floor_more)
        figures.append(Figure(f"{title}, per layer", theirs_more, unit, at, ours=ours_more))
    return figures


def _per_layer(taken: Mapping[str, Series], name: str) -> Series:
    few, many = SIZES[0], SIZES[-1]
    return (taken[f"{name}/{many}"] - taken[f"{name}/{few}"]) / (many - few)
