"""What to reclaim of a history that grows with every tool call, decided on figures alone. Pure, linear, and the same
for every shape of message."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

from ..errors import ConfigError
from ..protocol import Value, value

DEFAULT_LOOP_GUARD_LOW_WATER_RATIO: Final = 0.6
"""How far down a reclaim goes. Well below the mark at which it fires, so that the steps after it leave the history,
and with it the provider's cached prefix, alone."""

DEFAULT_LOOP_GUARD_PROTECTED_TAIL: Final = 4
"""So many of the newest entries are never touched."""

EntryKind: TypeAlias = Literal["other", "tool_call", "tool_result"]


@value
class LoopGuardEntry(Value):
    """One entry of a history, oldest first; the first one is the task. preview_tokens: what is left of a tool result
    when it is shortened to a preview; unset where that cannot be."""

    kind: EntryKind
    tokens: int
    preview_tokens: int | None = None


@value
class LoopGuardPolicy(Value):
    """When to reclaim, how much, and what stays.

    available_input_tokens: what a prompt may take; 0 or less means that nothing fits. fixed_overhead_tokens: what of it
    goes to system prompt and tools. threshold_ratio, low_water_ratio: shares of what is available, at which a reclaim
    fires and down to which it goes. protected_tail_count: newest entries that are left alone. calibration: observed
    tokens to estimated ones, kept between 1 and 3; what is no positive number counts as 1. tail_relief: whether results
    in the protected tail may be previewed too, when nothing else is left.

    Raises ConfigError for ratios that are not 0 < low_water_ratio <= threshold_ratio <= 1 and for negative counts.
    """

    available_input_tokens: int
    fixed_overhead_tokens: int = 0
    threshold_ratio: float = 0.85
    low_water_ratio: float = DEFAULT_LOOP_GUARD_LOW_WATER_RATIO
    protected_tail_count: int = DEFAULT_LOOP_GUARD_PROTECTED_TAIL
    calibration: float = 1.0
    tail_relief: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.low_water_ratio <= self.threshold_ratio <= 1:
            raise ConfigError(
                "LoopGuardPolicy needs 0 < low_water_ratio <= threshold_ratio <= 1, "
                f"not {self.low_water_ratio} and {self.threshold_ratio}"
            )
        for name in ("fixed_overhead_tokens", "protected_tail_count"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"LoopGuardPolicy.{name} is at least 0, not {getattr(self, name)}")


@value
class LoopGuardPlan(Value):
    """What to do, as sorted indices of entries. All figures are in the estimate's own tokens, overhead included.

    fire: whether there is anything to do; if not, the history stays as it is. truncate: results to shorten to their
    previews. drop: entries of whole batches. relief: results of the protected tail to shorten as well.
    total_tokens, projected_tokens: before and after. shortfall: by how much a history that was over the threshold is
    still over the low-water mark. budget_tokens: what is available, by the calibrated estimate; threshold_tokens and
    low_water_tokens are the marks.
    """

    fire: bool
    truncate: tuple[int, ...]
    drop: tuple[int, ...]
    projected_tokens: int
    shortfall: int
    relief: tuple[int, ...] = ()
    total_tokens: int = 0
    budget_tokens: int = 0
    threshold_tokens: int = 0
    low_water_tokens: int = 0

    @property
    def is_over_threshold(self) -> bool:
        """Whether the history was beyond the mark before the plan."""
        return self.total_tokens > self.threshold_tokens

    @property
    def headroom_tokens(self) -> int:
        """What is left of the budget after the plan; negative where the request is not expected to fit."""
        return self.budget_tokens - self.projected_tokens


def plan_loop_guard_reclaim(entries: Sequence[LoopGuardEntry], policy: LoopGuardPolicy) -> LoopGuardPlan:
    """Decide what to reclaim, oldest first and only down to the low-water mark.

    First results become previews where that makes them smaller; then whole batches go, at what is left of them. Entry 0
    and the protected tail are never touched. A batch is a run of calls and the run of results behind it: it goes whole
    or not at all, since providers refuse a call without its result and a result without its call.
    """
    available = max(0, policy.available_input_tokens)
    scale = calibration_of(policy.calibration)
    budget, threshold, low_water = (
        math.floor(available * ratio / scale) for ratio in (1, policy.threshold_ratio, policy.low_water_ratio)
    )
    costs = [entry.tokens for entry in entries]
    total = projected = policy.fixed_overhead_tokens + sum(costs)
    truncate: list[int] = []
    drop: list[int] = []
    relief: list[int] = []
    if total > threshold:
        tail = max(1, len(entries) - policy.protected_tail_count)
        truncate, projected = _previewed(entries, costs, range(1, tail), projected, low_water)
        for first, end in batches_of(entries):
            if projected <= low_water or end > tail:
                break
            if first > 0:
                projected -= sum(costs[first:end])
                drop += range(first, end)
        if drop:
            gone = set(drop)
            truncate = [index for index in truncate if index not in gone]
        if policy.tail_relief:
            relief, projected = _previewed(entries, costs, range(tail, len(entries)), projected, low_water)
    return LoopGuardPlan(
        fire=bool(truncate or drop or relief),
        truncate=tuple(truncate),
        drop=tuple(drop),
        projected_tokens=projected,
        shortfall=max(0, projected - low_water) if total > threshold else 0,
        relief=tuple(relief),
        total_tokens=total,
        budget_tokens=budget,
        threshold_tokens=threshold,
        low_water_tokens=low_water,
    )


def calibration_of(ratio: float) -> float:
    """A ratio of observed to estimated tokens as far as it is believed: from 1, since an estimate that was too high
    does no harm, to 3; 1 for what is no positive number."""
    return min(3.0, max(1.0, ratio)) if math.isfinite(ratio) else 1.0


def _previewed(
    entries: Sequence[LoopGuardEntry], costs: list[int], among: range, projected: int, low_water: int
) -> tuple[list[int], int]:
    """The oldest results that bring the total down to the mark as previews, and the total then. `costs` follows."""
    chosen: list[int] = []
    for index in among:
        if projected <= low_water:
            break
        entry = entries[index]
        preview = entry.preview_tokens
        if preview is not None and preview < costs[index] and entry.kind == "tool_result":
            projected -= costs[index] - preview
            costs[index] = preview
            chosen.append(index)
    return chosen, projected


def batches_of(entries: Sequence[LoopGuardEntry]) -> Iterator[tuple[int, int]]:
    """Where batches begin and end, oldest first. Calls without a result right behind them are none."""
    first: int | None = None  # where a run of calls began
    before = "other"
    for index, entry in enumerate(entries):
        kind = entry.kind
        if kind == before:
            continue
        if before == "tool_result" and first is not None:
            yield first, index
        if kind != "tool_result":
            first = index if kind == "tool_call" else None
        before = kind
    if before == "tool_result" and first is not None:
        yield first, len(entries)
