"""What a role costs, and what the host's rules for a place do.

A transform is held against its bare function, applied to each delta by hand; what a rule adds, against ten closures or
ten generators, as in `host`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Final, Literal

from neurolink_mw.pipeline import Member, Outcome, Use, wrap_model
from neurolink_mw.protocol import CallOptions, LanguageModel, PartStream, StreamPart, StreamResult, TextDelta
from neurolink_mw.roles import (
    Hold,
    Observer,
    RequestPolicy,
    ResponsePolicy,
    Streaming,
    TextTransform,
    Verdict,
    Window,
    allow,
)
from neurolink_mw.roles.views import Request, View

from .chains import AtOnce, Scoped, Wrapping, calling, closures, generators, members, streaming
from .figure import Figure, Floor, Goal, Measured
from .host import FLOOR_TOOK
from .measure import Contender, Effort, Series, race

_LAYERS: Final = 10
_EMAIL: Final = re.compile(r"[\w.+-]{1,30}@[\w-]{1,20}\.\w{2,10}")


class _Told(Observer):
    def on_outcome(self, outcome: Outcome) -> None:
        self.last = outcome


class _Shown(_Told):
    def on_part(self, part: StreamPart) -> None:
        return None


class _Asks(RequestPolicy):
    def check(self, request: Request) -> Verdict:
        return allow()


class _Holds(ResponsePolicy):
    def check(self, view: View) -> Verdict:
        return allow()


class _Looks(_Holds):
    streaming: Streaming = Window(16, stride=200)


class _Redacts(TextTransform):
    lookahead = 64

    def transform(self, text: str) -> str:
        return _EMAIL.sub("[email]", text)


class _ByHand:
    """A model whose text deltas go through the bare function one by one: what anybody would write, and what misses an
    address that two deltas share."""

    provider, model_id = "benchmark", "by-hand"

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.do_generate = model.do_generate

    async def do_stream(self, options: CallOptions) -> StreamResult:
        result = await self._model.do_stream(options)
        return StreamResult(PartStream(_by_hand(result.stream)))


async def _by_hand(parts: PartStream) -> AsyncIterator[StreamPart]:
    async for part in parts:
        if part.__class__ is TextDelta:
            part = part.replace(delta=_EMAIL.sub("[email]", part.delta))
        yield part


def measure(effort: Effort) -> Measured:
    return [
        *asyncio.run(_added("call", effort)),
        *asyncio.run(_added("part", effort)),
        *asyncio.run(_transform(effort)),
    ]


async def _added(per: Literal["call", "part"], effort: Effort) -> Measured:
    """What a role or a rule adds to a chain that has a scope already."""
    contenders = closures([_LAYERS]) if per == "call" else generators([_LAYERS])
    (floor_name,) = contenders

    def timed(*more: Member | Use, plain: int = _LAYERS) -> Contender:
        model = wrap_model(AtOnce(), [Scoped(), *more, *members(Wrapping, plain)])
        return calling(model.do_generate) if per == "call" else streaming(model)

    def ruled(**rules: object) -> Contender:
        return timed(*(Use(one, **rules) for one in members(Wrapping, _LAYERS)), plain=0)  # type: ignore[arg-type]

    contenders |= {
        "plain": timed(),
        "observer": timed(_Told()),
        "parts observer": timed(_Shown()),
        "deny": ruled(on_error="deny"),
        "skip": ruled(on_error="skip"),
        "timeout": ruled(timeout=5),
        "request policy": timed(_Asks()),
        "hold": timed(_Holds()),
        "window": timed(_Looks()),
    }
    taken = await race(contenders, effort)
    floor = Floor(floor_name, taken[floor_name])

    def figure(what: str, value: Series, at_most: float | None = None) -> Figure:
        goal = None if at_most is None else Goal(at_most, of="value", where_floor_took=FLOOR_TOOK[per])
        return Figure(f"roles.{what}", value, f"us/{per}", floor, _LAYERS, goal)

    def added(name: str, to: str = "plain") -> Series:
        return taken[name] - taken[to]

    figures: Measured = [
        figure(f'on_error = "deny", added to a {per} by each layer', added("deny") / _LAYERS, 1.0),
        figure(f'on_error = "skip", added to a {per} by each layer', added("skip") / _LAYERS, 1.0),
        figure(f"timeout, added to a {per} by each layer", added("timeout") / _LAYERS, 8.0 if per == "call" else 6.0),
        figure(f"response policy, {Hold()}, added to a {per}", added("hold")),
        figure(f"response policy, {_Looks.streaming}, added to a {per}", added("window")),
    ]
    if per == "call":
        figures.insert(0, figure("observer, added to a call", added("observer"), 2.5))
        figures.append(figure("request policy, added to a call", added("request policy")))
    else:
        figures.insert(0, figure("observer, added to a part", added("parts observer"), 0.15))
    return figures


async def _transform(effort: Effort) -> Measured:
    """All but what the stream itself costs, so that the two ways are compared and nothing else."""
    contenders = {
        "bare": streaming(wrap_model(AtOnce(), [Scoped()])),
        "function": streaming(wrap_model(_ByHand(AtOnce()), [Scoped()])),
        "transform": streaming(wrap_model(AtOnce(), [Scoped(), _Redacts()])),
    }
    taken = await race(contenders, effort)
    floor = Floor("bare function, each delta", taken["function"] - taken["bare"])
    cost = taken["transform"] - taken["bare"]
    return [Figure("roles.text transform, added to a part", cost, "us/part", floor, 1, Goal(2.5))]
