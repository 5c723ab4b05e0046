"""The planner decides on figures: when it fires, what it takes, and what it never touches."""

from __future__ import annotations

import math

import pytest

from neurolink_mw.errors import ConfigError
from neurolink_mw.loop_guard import (
    DEFAULT_LOOP_GUARD_LOW_WATER_RATIO,
    DEFAULT_LOOP_GUARD_PROTECTED_TAIL,
    LoopGuardEntry,
    LoopGuardPlan,
    LoopGuardPolicy,
    plan_loop_guard_reclaim,
)

from .builders import batch, call, result, task


def plan(entries: list[LoopGuardEntry], available: int = 10_000, tail: int = 0, **settings: float) -> LoopGuardPlan:
    policy = LoopGuardPolicy(available, protected_tail_count=tail)
    return plan_loop_guard_reclaim(entries, policy.replace(**settings))


def test_the_defaults_are_those_of_the_policy() -> None:
    policy = LoopGuardPolicy(1)
    assert policy.low_water_ratio == DEFAULT_LOOP_GUARD_LOW_WATER_RATIO == 0.6
    assert policy.protected_tail_count == DEFAULT_LOOP_GUARD_PROTECTED_TAIL == 4
    assert (policy.threshold_ratio, policy.calibration, policy.tail_relief) == (0.85, 1.0, False)


# -------------------------------------------------------------------------------------------------- when it fires


def test_at_the_threshold_nothing_happens_and_one_token_more_fires() -> None:
    at = [task(), *batch(tokens=8300)]
    over = [task(), *batch(tokens=8301)]
    assert (plan(at).fire, plan(over).fire) == (False, True)


def test_a_plan_that_does_not_fire_lists_nothing_and_tells_the_figures() -> None:
    quiet = plan([task(), *batch(preview=10)], fixed_overhead_tokens=500)
    assert (quiet.fire, quiet.truncate, quiet.drop, quiet.relief, quiet.shortfall) == (False, (), (), (), 0)
    assert (quiet.total_tokens, quiet.projected_tokens) == (1700, 1700)
    assert (quiet.budget_tokens, quiet.threshold_tokens, quiet.low_water_tokens) == (10_000, 8500, 6000)
    assert quiet.headroom_tokens == 8300


def test_overhead_counts() -> None:
    entries = [task(), *batch(tokens=8000)]
    assert not plan(entries).fire
    assert plan(entries, fixed_overhead_tokens=500).fire


def test_calibration_lowers_the_marks() -> None:
    entries = [task(), *batch(tokens=5000)]
    calibrated = plan(entries, calibration=2.0)
    assert calibrated.fire
    assert (calibrated.budget_tokens, calibrated.threshold_tokens, calibrated.low_water_tokens) == (5000, 4250, 3000)


@pytest.mark.parametrize(
    ("calibration", "budget"), [(0.5, 9000), (9.0, 3000), (0.0, 9000), (-1.0, 9000), (math.nan, 9000), (math.inf, 9000)]
)
def test_calibration_is_kept_between_one_and_three(calibration: float, budget: int) -> None:
    assert plan([task()], available=9000, calibration=calibration).budget_tokens == budget


@pytest.mark.parametrize("available", [0, -5])
def test_where_nothing_fits_all_that_may_go_goes(available: int) -> None:
    reclaimed = plan([task(), *batch(), *batch()], available=available)
    assert (reclaimed.drop, reclaimed.budget_tokens, reclaimed.shortfall) == ((1, 2, 3, 4), 0, 100)


def test_no_entries_are_no_history() -> None:
    assert plan([], fixed_overhead_tokens=9000).shortfall == 3000
    assert not plan([]).fire


# ------------------------------------------------------------------------------------------------------- previews


def test_the_oldest_results_become_previews_until_the_low_water_mark() -> None:
    reclaimed = plan([task(), *batch(4, 2500, 500)])
    assert (reclaimed.truncate, reclaimed.drop) == ((2, 3, 4), ())
    assert (reclaimed.projected_tokens, reclaimed.shortfall) == (4200, 0)


def test_a_preview_that_is_no_smaller_is_not_made() -> None:
    reclaimed = plan([task(), *batch(tokens=4000, preview=4000), *batch(tokens=4000, preview=9000), *batch(4, 500, 10)])
    assert reclaimed.truncate == (6, 7, 8, 9)


def test_only_results_are_previewed() -> None:
    reclaimed = plan([task(), LoopGuardEntry("tool_call", 9000, 10), LoopGuardEntry("other", 100, 10)])
    assert not reclaimed.fire


# --------------------------------------------------------------------------------------------------------- batches


def test_whole_batches_go_oldest_first_where_previews_do_not_do() -> None:
    reclaimed = plan([task(), *batch(tokens=2900), *batch(2, 1400), *batch(tokens=2900)])
    assert reclaimed.drop == (1, 2)
    assert reclaimed.projected_tokens == 5900 + 100


def test_a_batch_counts_as_what_its_previews_left_of_it_and_is_not_previewed_as_well() -> None:
    reclaimed = plan([task(4000), *batch(tokens=3000, preview=1000), *batch(tokens=3000, preview=1000)])
    assert (reclaimed.truncate, reclaimed.drop) == ((4,), (1, 2))
    assert reclaimed.projected_tokens == 4000 + 1100


def test_one_batch_may_have_several_calls_and_several_results() -> None:
    entries = [task(), call(), call(), result(4000), result(4000), *batch(tokens=500)]
    assert plan(entries).drop == (1, 2, 3, 4)


def test_two_batches_side_by_side_are_two() -> None:
    assert plan([task(), *batch(tokens=4000), *batch(tokens=5000)]).drop == (1, 2)


def test_calls_without_results_are_never_dropped() -> None:
    assert not plan([task(), call(9000), LoopGuardEntry("other", 100), result(100)]).fire


def test_results_without_calls_are_never_dropped() -> None:
    assert not plan([task(), result(9000), *batch(tokens=100)], tail=2).fire


def test_a_batch_that_straddles_the_protected_tail_is_left_whole() -> None:
    entries = [task(), call(), result(4000), result(4000), result(1000)]
    assert plan(entries, tail=1).drop == ()
    assert plan(entries, tail=1).shortfall == 9200 - 6000
    assert plan(entries, tail=0).drop == (1, 2, 3, 4)


def test_results_in_front_of_the_tail_are_previewed_though_their_batch_straddles_it() -> None:
    reclaimed = plan([task(), *batch(3, 3000, 100)], tail=1)
    assert reclaimed.truncate == (2, 3)


def test_a_batch_that_begins_with_the_task_is_left_whole() -> None:
    assert plan([call(), result(9000), *batch(tokens=100)], tail=2).drop == ()


def test_the_task_is_never_previewed() -> None:
    assert not plan([result(9000, 10)]).fire


def test_a_user_in_between_is_never_dropped() -> None:
    entries = [task(), *batch(tokens=4000), LoopGuardEntry("other", 4000), *batch(tokens=4000)]
    assert plan(entries).drop == (1, 2, 4, 5)


# -------------------------------------------------------------------------------------------------------- the tail


def test_the_newest_entries_are_never_touched() -> None:
    newest = [*batch(tokens=5000, preview=10), *batch(tokens=5000)]
    reclaimed = plan([task(), *batch(tokens=100), *newest], tail=4)
    assert (reclaimed.truncate, reclaimed.drop, reclaimed.relief) == ((), (1, 2), ())
    assert reclaimed.shortfall == 10_300 - 6000


def test_nothing_to_reclaim_does_not_fire_and_says_how_much_is_missing() -> None:
    helpless = plan([task(), *batch(tokens=9000, preview=10)], tail=4)
    assert (helpless.fire, helpless.shortfall, helpless.headroom_tokens) == (False, 9200 - 6000, 800)
    assert helpless.is_over_threshold


def test_relief_previews_the_tail_when_nothing_else_is_left() -> None:
    entries = [task(), *batch(tokens=100), *batch(2, 5000, 500), result(100, 50)]
    relieved = plan(entries, tail=4, tail_relief=True)
    assert (relieved.drop, relieved.relief) == ((1, 2), (4,))
    assert (relieved.projected_tokens, relieved.shortfall) == (5800, 0)


def test_relief_is_not_used_where_the_rest_suffices() -> None:
    relieved = plan([task(), *batch(tokens=8000), *batch(tokens=1000, preview=10)], tail=2, tail_relief=True)
    assert (relieved.drop, relieved.relief) == ((1, 2), ())


# ------------------------------------------------------------------------------------------------------ the policy


@pytest.mark.parametrize(
    ("threshold", "low_water"), [(0.5, 0.6), (1.1, 0.6), (0.85, 0.0), (0.85, -1.0), (math.nan, 0.6), (0.85, math.nan)]
)
def test_ratios_that_cannot_work_are_refused(threshold: float, low_water: float) -> None:
    with pytest.raises(ConfigError, match="0 < low_water_ratio <= threshold_ratio <= 1"):
        LoopGuardPolicy(1, threshold_ratio=threshold, low_water_ratio=low_water)


@pytest.mark.parametrize("name", ["fixed_overhead_tokens", "protected_tail_count"])
def test_negative_counts_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"LoopGuardPolicy\.{name} is at least 0, not -1"):
        LoopGuardPolicy(1).replace(**{name: -1})


def test_ratios_may_be_equal_and_whole() -> None:
    assert plan([task(100)], available=100, threshold_ratio=1.0, low_water_ratio=1.0).headroom_tokens == 0
