"""What a figure is: a cost, the floor it is held against, and the goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .measure import Series

Measure: TypeAlias = Literal["ratio", "value"]


@dataclass(frozen=True)
class Goal:
    """What a figure may be at most. `of`: its ratio to the floor, or its value in its own unit.

    where_floor_took: for a goal in units of time, what the floor took on the machine that the goal was set on. A goal
    of 1.2 us where the floor took 0.74 us is a goal of 1.62 floors, on a machine of any speed.
    """

    at_most: float
    of: Measure = "ratio"
    where_floor_took: float | None = None

    @property
    def as_ratio(self) -> float | None:
        """The same goal in floors; None where it cannot be said so."""
        if self.of == "ratio":
            return self.at_most
        return None if self.where_floor_took is None else self.at_most / self.where_floor_took

    def __str__(self) -> str:
        if self.as_ratio is None:
            return f"<= {self.at_most:g}"
        said = f"<= {self.as_ratio:.3g}x"
        return said if self.of == "ratio" else f"{said} ({self.at_most:g})"

    def as_json(self) -> dict[str, object]:
        return {"of": self.of, "at_most": self.at_most, "where_floor_took": self.where_floor_took}


@dataclass(frozen=True)
class Lead:
    """A goal for ours in the figure of another library: at least so many times what ours costs."""

    at_least: float

    def __str__(self) -> str:
        return f">= {self.at_least:g} x ours"

    def as_json(self) -> dict[str, object]:
        return {"of": "times_ours", "at_least": self.at_least}


@dataclass(frozen=True)
class Floor:
    """What is compared with: the cheapest thing that does the same, by the same clock in the same run."""

    name: str
    value: Series


@dataclass(frozen=True)
class Figure:
    """name: `group.what`. n: middlewares in the chain. Only figures that count things have no floor. ours: for the
    figure of another library, what the same costs here with as many."""

    name: str
    value: Series
    unit: str
    floor: Floor | None = None
    n: int | None = None
    goal: Goal | Lead | None = None
    ours: Series | None = None

    @property
    def ratio(self) -> Series | None:
        return None if self.floor is None else self.value / self.floor.value

    @property
    def times_ours(self) -> Series | None:
        return None if self.ours is None else self.value / self.ours

    @property
    def is_met(self) -> bool | None:
        """Whether the goal is reached; None where there is none."""
        if self.goal is None:
            return None
        if isinstance(self.goal, Lead):
            return self.times_ours is not None and self.times_ours.median >= self.goal.at_least
        if self.goal.as_ratio is None:
            return self.value.median <= self.goal.at_most
        return self.ratio is not None and self.ratio.median <= self.goal.as_ratio

    def as_json(self) -> dict[str, object]:
        ratio = self.ratio
        return {
            "name": self.name,
            "n": self.n,
            "value": _digits(self.value.median),
            "unit": self.unit,
            "spread": _digits(self.value.spread),
            "floor": None
            if self.floor is None
            else {"name": self.floor.name, "value": _digits(self.floor.value.median)},
            "ratio": None if ratio is None else _digits(ratio.median),
            "goal": None if self.goal is None else self.goal.as_json(),
            "met": self.is_met,
            "times_ours": None if self.times_ours is None else _digits(self.times_ours.median),
        }


@dataclass(frozen=True)
class Skipped:
    """Something that could not be measured here, and why."""

    name: str
    why: str

    def as_json(self) -> dict[str, object]:
        return {"name": self.name, "why": self.why}


Measured: TypeAlias = "list[Figure | Skipped]"


def _digits(number: float) -> float:
    return float(f"{number:.4g}")
