"""pluggy's part in a call, which is none, and what it costs to build a chain again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from neurolink_mw import Pipeline
from neurolink_mw.pipeline import wrap_model
from neurolink_mw.plugins import Registry, hookimpl, load_plugins

from .chains import OPTIONS, PARTS, AtOnce, Wrapping, members, nested_closures
from .figure import Figure, Floor, Goal, Measured
from .measure import Contender, Effort, Series, race, series_of

_MEMBERS = 20
_CALLS = 10


def measure(effort: Effort) -> Measured:
    return asyncio.run(_measure(effort))


async def _measure(effort: Effort) -> Measured:
    registry = load_plugins([_Listener()])
    pipeline = Pipeline(members(Wrapping, _MEMBERS), model=AtOnce(), registry=registry, statistics=True)
    per_call, per_part = await _hook_calls(registry, pipeline)
    figures: Measured = [
        Figure("plugins.hook calls in a call", per_call, "hook calls/call", n=_MEMBERS, goal=Goal(0, of="value")),
        Figure("plugins.hook calls in a part", per_part, "hook calls/part", n=_MEMBERS, goal=Goal(0, of="value")),
    ]
    twenty = members(Wrapping, _MEMBERS)
    taken = await race(
        {
            "building closures": _repeated(lambda: nested_closures(_MEMBERS)),
            "wrap_model": _repeated(lambda: wrap_model(AtOnce(), twenty)),
            "Pipeline.wrap": _repeated(lambda: pipeline.wrap(AtOnce())),
            "Pipeline": _repeated(lambda: Pipeline(twenty, model=AtOnce(), registry=registry)),
        },
        effort,
    )
    floor = Floor(f"building closures/{_MEMBERS}", taken["building closures"])
    for name in ("wrap_model", "Pipeline.wrap", "Pipeline"):
        figures.append(
            Figure(f"plugins.building a chain by {name}", taken[name], "us", floor, _MEMBERS, Goal(1000, of="value"))
        )
    return figures


class _Listener:
    """A plugin that listens to whatever there is to hear, so that there would be something to call."""

    @hookimpl
    def pipeline_built(self, pipeline: object) -> None:
        return None

    @hookimpl
    def on_event(self, event: object) -> None:
        return None


async def _hook_calls(registry: Registry, pipeline: Pipeline) -> tuple[Series, Series]:
    """What pluggy itself counts while calls run."""
    counted = 0

    def before(hook_name: str, hook_impls: Any, arguments: Any) -> None:
        nonlocal counted
        counted += 1

    def after(outcome: Any, hook_name: str, hook_impls: Any, arguments: Any) -> None:
        return None

    stop: Callable[[], None] = registry.manager.add_hookcall_monitoring(before, after)
    try:
        for _ in range(_CALLS):
            await pipeline.model.do_generate(OPTIONS)
        in_calls, counted = counted, 0
        for _ in range(_CALLS):
            async for _part in (await pipeline.model.do_stream(OPTIONS)).stream:
                pass
        return series_of([in_calls / _CALLS]), series_of([counted / (_CALLS * len(PARTS))])
    finally:
        stop()


def _repeated(once: Callable[[], object]) -> Contender:
    def run(times: int) -> None:
        for _ in range(times):
            once()

    return Contender(run)
