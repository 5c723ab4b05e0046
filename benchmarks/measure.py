"""How time is taken: contenders in turn, round by round, in CPU time, and figures computed within each round.

A busy machine slows everybody down, so a time means little by itself. A quotient or a difference of two contenders
that ran within the same tenth of a second means something; the median over the rounds drops the round that was
disturbed.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from statistics import median
from time import process_time
from typing import TypeAlias

Body: TypeAlias = Callable[[int], "Awaitable[None] | None"]
"""Does its operation so many times."""

MICROSECONDS = 1e6


@dataclass(frozen=True)
class Effort:
    """How long to measure. rounds: how often each contender runs; sample_seconds: how much CPU time a run takes."""

    rounds: int = 9
    sample_seconds: float = 0.03

    @property
    def is_quick(self) -> bool:
        return self.rounds < 7


FULL = Effort()
QUICK = Effort(rounds=3, sample_seconds=0.002)


@dataclass(frozen=True)
class Contender:
    """Something to be timed. units: what one operation consists of, where that is counted (the parts of a stream)."""

    run: Body
    units: int = 1


@dataclass(frozen=True)
class Series:
    """One number per round. Arithmetic is done round by round, so that only neighbours in time are compared."""

    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.rounds)

    @property
    def spread(self) -> float:
        """Between the quartiles, as a share of the median: how much the rounds disagree."""
        ordered = sorted(self.rounds)
        quarter = len(ordered) // 4
        return abs((ordered[-1 - quarter] - ordered[quarter]) / self.median) if self.median else 0.0

    def __add__(self, other: Series) -> Series:
        return self._with(other, lambda mine, theirs: mine + theirs)

    def __sub__(self, other: Series) -> Series:
        return self._with(other, lambda mine, theirs: mine - theirs)

    def __truediv__(self, other: Series | float) -> Series:
        return self._with(other, lambda mine, theirs: mine / theirs)

    def _with(self, other: Series | float, combine: Callable[[float, float], float]) -> Series:
        others = other.rounds if isinstance(other, Series) else (other,) * len(self.rounds)
        return Series(tuple(combine(mine, theirs) for mine, theirs in zip(self.rounds, others, strict=True)))


async def race(contenders: Mapping[str, Contender], effort: Effort) -> dict[str, Series]:
    """CPU microseconds per unit of each contender. They run in turn, and each round begins with another one."""
    gc.collect()
    gc.freeze()  # what was imported is not looked at again before every sample
    times = {name: await _times_for(one.run, effort.sample_seconds) for name, one in contenders.items()}
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for number in range(effort.rounds):
        for name in _rotated(names, number):
            contender = contenders[name]
            seconds = await _cpu_seconds(contender.run, times[name])
            taken[name].append(seconds * MICROSECONDS / (times[name] * contender.units))
    gc.unfreeze()
    return {name: Series(tuple(values)) for name, values in taken.items()}


def series_of(samples: Sequence[float]) -> Series:
    return Series(tuple(samples))


async def _times_for(run: Body, seconds: float) -> int:
    """How many operations fill a sample. The runs that find out are the warm-up."""
    times = 1
    await _cpu_seconds(run, times)
    while True:
        taken = await _cpu_seconds(run, times)
        if taken >= seconds / 2:
            return max(1, round(times * seconds / taken))
        times *= 2


async def _cpu_seconds(run: Body, times: int) -> float:
    """The same for everybody: what earlier runs left behind is collected before, and nothing is collected meanwhile."""
    gc.collect()
    gc.disable()
    try:
        started = process_time()
        running = run(times)
        if isawaitable(running):
            await running
        return process_time() - started
    finally:
        gc.enable()


def _rotated(names: Sequence[str], by: int) -> list[str]:
    start = by % len(names)
    return [*names[start:], *names[:start]]
