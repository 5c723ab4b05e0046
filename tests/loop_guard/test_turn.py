"""What a guard learns during its turn: calibration, overflow, warnings, and what it knows of messages already."""

from __future__ import annotations

import logging
import math

import pytest

from neurolink_mw.loop_guard import ConverseGuard, LoopGuardPolicy, PromptGuard
from neurolink_mw.protocol import Message, user

from .builders import Dict, answer, exchange, ids_of, says, steps, use

PROMPT: tuple[Message, ...] = (user("task"), *exchange("a"), *exchange("b"), *exchange("c"))
ESTIMATE = PromptGuard(LoopGuardPolicy(10**6)).reclaim(PROMPT).plan.total_tokens


def guard(available: int = 10_000, **settings: float) -> PromptGuard:
    return PromptGuard(LoopGuardPolicy(available).replace(**settings))


# ---------------------------------------------------------------------------------------------------- calibration


def test_what_the_provider_counted_corrects_the_estimate() -> None:
    one = guard()
    one.reclaim(PROMPT, 1000)
    one.observed((ESTIMATE + 1000) * 1.5)
    assert one.policy.calibration == 1.5
    assert one.reclaim(PROMPT).plan.budget_tokens == 6666


@pytest.mark.parametrize("observed", [None, 0, -5, math.nan, math.inf])
def test_a_count_that_was_not_reported_leaves_the_correction_as_it_is(observed: float | None) -> None:
    one = guard(calibration=2.0)
    one.reclaim(PROMPT)
    one.observed(observed)
    assert one.policy.calibration == 2.0


@pytest.mark.parametrize(("observed", "calibration"), [(1, 1.0), (10**9, 3.0)])
def test_the_correction_is_kept_between_one_and_three(observed: int, calibration: float) -> None:
    one = guard()
    one.reclaim(PROMPT)
    one.observed(observed)
    assert one.policy.calibration == calibration


def test_a_count_before_the_first_request_says_nothing() -> None:
    one = guard()
    one.observed(1000)
    assert one.policy.calibration == 1.0


def test_the_correction_is_by_what_was_sent_after_a_reclaim() -> None:
    one = guard(3000, protected_tail_count=0)
    sent = one.reclaim(PROMPT).plan.projected_tokens
    assert sent < ESTIMATE
    one.observed(sent * 2)
    assert one.policy.calibration == 2.0


def test_the_tokenizer_s_factor_counts() -> None:
    finer = PromptGuard(LoopGuardPolicy(10**6), factor=2.0).reclaim(PROMPT).plan.total_tokens
    assert ESTIMATE * 1.9 < finer < ESTIMATE * 2


def test_overhead_is_that_of_the_policy_and_of_the_request() -> None:
    assert guard(fixed_overhead_tokens=100).reclaim(PROMPT, 10).plan.total_tokens == ESTIMATE + 110


# ------------------------------------------------------------------------------------------------ what is known


def test_a_preview_is_made_once_however_often_it_is_asked_for() -> None:
    one = guard(3000)
    first, second = one.reclaim(PROMPT).messages, one.reclaim(PROMPT).messages
    assert first[2] is second[2] is not PROMPT[2]


def test_right_after_a_reclaim_there_is_nothing_to_reclaim() -> None:
    one = guard(3000)
    first = one.reclaim(PROMPT)
    again = one.reclaim(first.messages)
    assert (first.plan.fire, again.plan.fire) == (True, False)
    assert again.messages is first.messages
    assert again.plan.total_tokens == first.plan.projected_tokens


def test_a_conversation_s_message_that_grew_is_looked_at_again() -> None:
    conversation = [says("user", "task"), says("assistant", use("a"), use("b")), says("user", answer("a"))]
    one = ConverseGuard(LoopGuardPolicy(10_000))
    before = one.reclaim(conversation).plan.total_tokens
    conversation[2]["content"].append(answer("b"))
    assert one.reclaim(conversation).plan.total_tokens == before + 1000


# ------------------------------------------------------------------------------------------------------- overflow


def test_after_an_overflow_the_estimate_is_taken_to_have_been_too_low() -> None:
    one = guard(6000, protected_tail_count=2)
    assert not one.reclaim(PROMPT).plan.fire
    reclaimed = one.reclaim_after_overflow(PROMPT)
    assert reclaimed is not None
    assert reclaimed.plan.projected_tokens <= 0.6 * ESTIMATE
    assert one.policy.calibration == pytest.approx(6000 / ESTIMATE)


def test_an_overflow_that_no_estimate_explains_reclaims_all_the_same() -> None:
    one = guard(1_000_000)
    reclaimed = one.reclaim_after_overflow(PROMPT)
    assert reclaimed is not None
    assert reclaimed.plan.fire
    assert one.policy.calibration == 3.0
    assert one.policy.available_input_tokens == 3 * ESTIMATE


def test_the_numbers_of_the_error_are_used() -> None:
    one = guard(10_000)
    reclaimed = one.reclaim_after_overflow(PROMPT, prompt_tokens=2 * ESTIMATE, limit_tokens=6000)
    assert one.policy.calibration == 2.0
    assert one.policy.available_input_tokens == 3900  # the window less the answer's share
    assert reclaimed is not None
    assert reclaimed.plan.low_water_tokens == 1170


def test_a_limit_above_what_is_available_says_nothing_new() -> None:
    one = guard(5000)
    one.reclaim_after_overflow(PROMPT, prompt_tokens=2 * ESTIMATE, limit_tokens=8000)
    assert one.policy.available_input_tokens == 5000


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_is_none_is_ignored(limit: int) -> None:
    one = guard(5000)
    one.reclaim_after_overflow(PROMPT, prompt_tokens=2 * ESTIMATE, limit_tokens=limit)
    assert one.policy.available_input_tokens == 5000


def test_what_was_refused_is_not_tried_again_in_this_turn() -> None:
    one = guard(1_000_000)
    one.reclaim_after_overflow(PROMPT, prompt_tokens=ESTIMATE)
    assert one.reclaim(PROMPT).plan.fire


def test_one_great_result_in_the_tail_becomes_a_preview_after_an_overflow() -> None:
    prompt = (user("task"), *exchange("a", output="x" * 40_000))
    one = guard(12_000)
    assert one.reclaim(prompt).messages == prompt
    reclaimed = one.reclaim_after_overflow(prompt)
    assert reclaimed is not None
    assert reclaimed.plan.relief == (2,)
    assert ids_of(reclaimed.messages) == ["a"]
    assert not one.policy.tail_relief


def test_where_nothing_can_be_reclaimed_there_is_no_second_try() -> None:
    assert guard().reclaim_after_overflow((user("x" * 40_000),)) is None
    assert guard().reclaim_after_overflow(()) is None


def test_a_conversation_recovers_from_an_overflow_the_same_way() -> None:
    conversation: list[Dict] = [says("user", "task"), *steps("a", "b", "c")]
    one = ConverseGuard(LoopGuardPolicy(1_000_000))
    reclaimed = one.reclaim_after_overflow(conversation)
    assert reclaimed is not None
    assert len(reclaimed.messages) < len(conversation)


# ------------------------------------------------------------------------------------------------------- warnings

HELPLESS = (user("secret " * 2000), *exchange("a"))


def test_a_history_that_cannot_be_helped_is_a_warning_of_figures_alone(caplog: pytest.LogCaptureFixture) -> None:
    guard(3000).reclaim(HELPLESS)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "3000" in record.getMessage()
    assert "secret" not in record.getMessage()


def test_the_warning_comes_once_until_it_fits_again(caplog: pytest.LogCaptureFixture) -> None:
    one = guard(3000)
    for prompt in (HELPLESS, HELPLESS, HELPLESS[1:], HELPLESS):
        one.reclaim(prompt)
    assert len(caplog.records) == 2


def test_a_reclaim_that_helps_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert guard(3000).reclaim(PROMPT).plan.fire
    assert not caplog.records
