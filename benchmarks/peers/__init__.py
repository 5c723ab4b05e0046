"""Other libraries, by the same clock in the same run: what a call, a turn and a part cost through N of their
middlewares.

A peer is a module here with `contenders(n)`, whose names begin with what they are compared with: see `_LIKE`. Nothing
is imported until it is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from ..by_hand import turns_by_hand
from ..chains import SIZES, Wrapping, calling, chain, closures, generators, nested_closures, streaming
from ..figure import Figure, Floor, Lead, Measured, Skipped
from ..measure import Contender, Effort, Series, race
from ..turns import generating, streaming_turns

PEERS: Final = {
    "langchain": "langchain",
    "litellm": "litellm",
    "pydantic_ai": "pydantic-ai-slim",
    "strands": "strands-agents",
}
"""The module of each peer, and the distribution that it needs."""

_LEADS: Final = {"langchain": 35, "litellm": 25, "pydantic_ai": 35, "strands": 3.5}
"""How many times what ours costs a turn of theirs costs at least, through ten middlewares."""


@dataclass(frozen=True)
class _Like:
    """What is like what a peer does. floor, ours: contenders, but for the number of layers."""

    unit: str
    floor: str
    ours: str


_LIKE: Final = {
    "call": _Like("us/call", "closures", "call: wrap_model"),
    "turn": _Like("us/turn", "one step by hand", "turn: generate"),
    "part": _Like("us/part", "generators", "part: wrap_model"),
    "part of a turn": _Like("us/part", "generators", "part of a turn: stream"),
}
"""An agent is compared with a turn, for it does more around a call than a chain does."""


def measure(name: str, effort: Effort) -> Measured:
    try:
        installed = version(PEERS[name])
    except PackageNotFoundError:
        return [Skipped(f"peers.{name}", f"{PEERS[name]} is not installed: pip install 'neurolink-mw[peers]'")]
    module = import_module(f"{__name__}.{name}")
    return asyncio.run(_measure(f"{name} {installed}", module.contenders, Lead(_LEADS[name]), effort))


async def _measure(
    peer: str, make: Callable[[int], Awaitable[dict[str, Contender]]], lead: Lead, effort: Effort
) -> Measured:
    contenders = closures(SIZES) | generators(SIZES)
    theirs = {n: await make(n) for n in SIZES}
    for n in SIZES:
        model = chain(Wrapping, n)
        contenders |= {
            f"one step by hand/{n}": turns_by_hand(nested_closures(n)),
            f"call: wrap_model/{n}": calling(model.do_generate),
            f"turn: generate/{n}": generating(model),
            f"part: wrap_model/{n}": streaming(model),
            f"part of a turn: stream/{n}": streaming_turns(model),
        }
        contenders |= {f"{name}/{n}": contender for name, contender in theirs[n].items()}
    taken = await race(contenders, effort)
    figures: Measured = []
    for name in theirs[0]:
        per = name.partition(":")[0]
        like = _LIKE[per]
        title = f"peers.{peer}, {name}"
        for n in SIZES:
            at = Floor(f"{like.floor}/{n}", taken[f"{like.floor}/{n}"])
            goal = lead if per == "turn" and n == 10 else None
            figures.append(Figure(title, taken[f"{name}/{n}"], like.unit, at, n, goal, taken[f"{like.ours}/{n}"]))
        # A peer may do more around a call than we do. What one layer more costs is the same question to all.
        theirs_more, floor_more, ours_more = (_per_layer(taken, one) for one in (name, like.floor, like.ours))
        at = Floor(f"{like.floor}, per layer", floor_more)
        figures.append(Figure(f"{title}, per layer", theirs_more, like.unit, at, ours=ours_more))
    return figures


def _per_layer(taken: Mapping[str, Series], name: str) -> Series:
    few, many = SIZES[0], SIZES[-1]
    return (taken[f"{name}/{many}"] - taken[f"{name}/{few}"]) / (many - few)
