"""What other tool loops got wrong in the field, as figures: each case is a public bug report."""

from __future__ import annotations

import pytest

from neurolink_mw.loop_guard import (
    ConverseGuard,
    LoopGuardEntry,
    LoopGuardPlan,
    LoopGuardPolicy,
    PromptGuard,
    plan_loop_guard_reclaim,
)
from neurolink_mw.protocol import JsonOutput, Message, TextOutput, ToolOutput, user

from .builders import assert_sound, blocks, call, exchange, result, says, steps, task

EIGHTY = LoopGuardPolicy(0, threshold_ratio=0.8, low_water_ratio=0.6, protected_tail_count=4)


def plan(entries: list[LoopGuardEntry], window: int, **settings: float) -> LoopGuardPlan:
    return plan_loop_guard_reclaim(entries, EIGHTY.replace(available_input_tokens=window, **settings))


def test_dropping_message_by_message_parted_a_parallel_batch() -> None:
    """https://github.com/cline/cline/pull/7225: the unit of dropping is the whole batch. Stopping after entry 4 would
    be enough, and would leave result 5 without its call."""
    entries = [task(500), call(200), result(6000), call(300), result(5000), result(5000)]
    entries += [call(200), result(3000), call(200), result(2500)]
    reclaimed = plan(entries, 20_000)
    assert (reclaimed.fire, reclaimed.truncate, reclaimed.drop) == (True, (), (1, 2, 3, 4, 5))
    assert reclaimed.projected_tokens == 6400


def test_trigger_and_target_were_one_number_so_every_step_rewrote_the_history() -> None:
    """https://github.com/QwenLM/qwen-code/issues/8452: the target lies well below the trigger, and a step that does not
    fire changes nothing."""
    history = [task(1000), *[call(100), result(1900)] * 39]
    fired = {}
    for step in range(1, 25):
        history += [call(100), result(1900)]
        reclaimed = plan(history, 100_000)
        if reclaimed.fire:
            fired[step] = (len(reclaimed.drop) // 2, reclaimed.projected_tokens)
        history = [entry for index, entry in enumerate(history) if index not in reclaimed.drop]
    assert fired == {1: (11, 59_000), 12: (11, 59_000), 23: (11, 59_000)}


def test_cutting_only_at_a_user_message_found_no_place_to_cut() -> None:
    """https://github.com/strands-agents/harness-sdk/issues/2173: cuts fall between batches; the task stays."""
    reclaimed = plan([task(100), *[call(50), result(950)] * 6], 6000)
    assert (reclaimed.truncate, reclaimed.drop) == ((), (1, 2, 3, 4, 5, 6))
    assert reclaimed.projected_tokens == 3100


def test_a_conversation_of_nothing_but_tool_results_is_cut_between_exchanges() -> None:
    """The same case as messages: roles still alternate, and the newest exchanges and the task are left."""
    text = {"text": "x" * 1900}  # less than a preview, so that only dropping helps
    conversation = [says("user", "Review this change"), *steps(*(f"t{n}" for n in range(1, 7)))]
    for message in conversation:
        for one in blocks(message, "toolResult"):
            one["content"] = [text]
    kept = ConverseGuard(EIGHTY.replace(available_input_tokens=3000)).reclaim(conversation).messages
    assert_sound(kept)
    assert kept[0] is conversation[0]
    assert [use["toolUseId"] for message in kept for use in blocks(message, "toolUse")] == ["t4", "t5", "t6"]


OVERHEAD = 9_000 + 25_000
TWELVE = [task(1000), *[call(100), result(4900, 520)] * 12]


def test_system_prompt_and_tool_schemas_were_not_counted() -> None:
    """https://github.com/cloudflare/agents/issues/1538: overhead counts towards the trigger and the target."""
    reclaimed = plan(TWELVE, 100_000, fixed_overhead_tokens=OVERHEAD)
    assert (reclaimed.fire, reclaimed.total_tokens, reclaimed.drop) == (True, 95_000, ())
    assert reclaimed.truncate == (2, 4, 6, 8, 10, 12, 14, 16)
    assert reclaimed.projected_tokens <= 60_000


def test_without_overhead_the_same_history_fits() -> None:
    assert not plan(TWELVE, 100_000).fire


def test_a_larger_prompt_reported_by_the_provider_wins_over_the_estimate() -> None:
    assert plan(TWELVE, 100_000, calibration=96_000 / 60_000).fire


@pytest.mark.parametrize(
    "output", [TextOutput("x" * 19_600), JsonOutput({"rows": ["x" * 19_588]})], ids=["text", "json"]
)
def test_results_that_are_json_count_like_text(output: ToolOutput) -> None:
    exchanges = [one for number in range(12) for one in exchange(str(number), output=output)]
    prompt: tuple[Message, ...] = (user("x" * 4000), *exchanges)
    guard = PromptGuard(EIGHTY.replace(available_input_tokens=100_000))
    assert guard.reclaim(prompt).messages is prompt
    assert guard.reclaim(prompt, OVERHEAD).plan.truncate == (2, 4, 6, 8, 10, 12, 14, 16)
