"""What the host adds where something asks for it: the boundary, statistics, an observer.

Each is the difference between two chains that are alike but for that one thing.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from neurolink_mw.pipeline import Middleware, Statistics
from neurolink_mw.protocol import LanguageModel

from .chains import Observing, ObservingParts, Scoped, Wrapping, calling, chain, closures, generators, streaming
from .figure import Figure, Floor, Goal, Measured
from .measure import Contender, Effort, Series, race

_LAYERS = 10
FLOOR_TOOK = {"call": 0.74, "part": 0.66}
"""Ten closures, ten generators, where the goals in microseconds were set."""


def measure(effort: Effort) -> Measured:
    return [*asyncio.run(_measure("call", effort)), *asyncio.run(_measure("part", effort))]


async def _measure(per: Literal["call", "part"], effort: Effort) -> Measured:
    contenders = closures([_LAYERS]) if per == "call" else generators([_LAYERS])
    (floor_name,) = contenders

    def timed(model: LanguageModel) -> Contender:
        return calling(model.do_generate) if per == "call" else streaming(model)

    def with_(*around: Middleware) -> Contender:
        return timed(chain(Wrapping, _LAYERS, around=around))

    contenders |= {
        "plain": with_(),
        "scoped": with_(Scoped()),
        "observed": with_(Observing()),
        "parts observed": with_(ObservingParts()),
        "no layers": timed(chain(Wrapping, 0)),
        "scoped, no layers": timed(chain(Wrapping, 0, around=[Scoped()])),
        "statistics": timed(chain(Wrapping, _LAYERS, statistics=Statistics())),
        "statistics, no layers": timed(chain(Wrapping, 0, statistics=Statistics())),
    }
    taken = await race(contenders, effort)
    floor = Floor(floor_name, taken[floor_name])

    def figure(what: str, value: Series, at_most: float | None = None, *, n: int = _LAYERS) -> Figure:
        goal = None if at_most is None else Goal(at_most, of="value", where_floor_took=FLOOR_TOOK[per])
        return Figure(f"host.{what}", value, f"us/{per}", floor, n, goal)

    boundary = 1.2 if per == "call" else 0.15
    layers = taken["plain"] - taken["no layers"]
    per_layer = (taken["statistics"] - taken["statistics, no layers"] - layers) / _LAYERS
    figures: Measured = [
        figure(f"boundary, added to a {per}", taken["scoped, no layers"] - taken["no layers"], boundary, n=0),
        figure(f"boundary, added to a {per}", taken["scoped"] - taken["plain"], boundary),
        figure(f"statistics, added to a {per} by each layer", per_layer, 0.3 if per == "part" else None),
        figure(f"observer of outcomes, added to a {per}", taken["observed"] - taken["plain"]),
    ]
    if per == "part":
        figures.append(figure("observer of parts, added to a part", taken["parts observed"] - taken["observed"]))
    return [*figures, figure(f"chain and boundary, a {per}", taken["scoped"])]
