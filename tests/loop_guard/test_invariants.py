"""What holds of every history, whatever is in it."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from neurolink_mw.loop_guard import (
    ConverseGuard,
    ConverseMessage,
    LoopGuardEntry,
    LoopGuardPlan,
    LoopGuardPolicy,
    PromptGuard,
    plan_loop_guard_reclaim,
)
from neurolink_mw.protocol import (
    AssistantMessage,
    ContentOutput,
    JsonOutput,
    Message,
    OutputImageData,
    OutputText,
    SystemMessage,
    TextOutput,
    TextPart,
    ToolApprovalResponsePart,
    ToolCallPart,
    ToolMessage,
    ToolOutput,
    ToolPart,
    ToolResultPart,
    user,
)

from .builders import CACHE_POINT, IMAGE, Dict, answer, asked, assert_sound, blocks, says, use

thorough = settings(max_examples=300, deadline=None, database=None, derandomize=True)

policies = st.builds(
    LoopGuardPolicy,
    st.integers(0, 20_000),
    fixed_overhead_tokens=st.integers(0, 2000),
    protected_tail_count=st.integers(0, 6),
    calibration=st.floats(0.5, 4),
    tail_relief=st.booleans(),
)
sizes = st.sampled_from([10, 1500, 3000, 9000])

# --------------------------------------------------------------------------------------------------------- entries

entries_ = st.lists(
    st.builds(
        LoopGuardEntry,
        st.sampled_from(["other", "tool_call", "tool_call", "tool_result", "tool_result"]),
        st.integers(0, 3000),
        st.none() | st.integers(0, 3000),
    ),
    max_size=25,
)


@given(entries_, policies)
@thorough
def test_a_plan_keeps_the_rules(entries: list[LoopGuardEntry], policy: LoopGuardPolicy) -> None:
    plan = plan_loop_guard_reclaim(entries, policy)
    tail = len(entries) - policy.protected_tail_count
    assert plan.fire == bool(plan.truncate or plan.drop or plan.relief)
    for listed in (plan.truncate, plan.drop, plan.relief):
        assert list(listed) == sorted(set(listed))
    assert not {*plan.truncate} & {*plan.drop}
    assert all(0 < index < tail for index in (*plan.truncate, *plan.drop))
    assert all(max(tail, 1) <= index for index in plan.relief)
    assert policy.tail_relief or not plan.relief
    saved = sum(entries[index].tokens for index in plan.drop)
    for index in (*plan.truncate, *plan.relief):
        saved += entries[index].tokens - (entries[index].preview_tokens or 0)
    assert plan.projected_tokens == plan.total_tokens - saved
    if plan.fire:
        assert plan.is_over_threshold
    assert plan.shortfall == (max(0, plan.projected_tokens - plan.low_water_tokens) if plan.is_over_threshold else 0)


@given(entries_, policies)
@thorough
def test_what_is_dropped_is_runs_of_calls_with_all_the_results_behind_them(
    entries: list[LoopGuardEntry], policy: LoopGuardPolicy
) -> None:
    drop = plan_loop_guard_reclaim(entries, policy).drop
    kinds = "".join({"other": "o", "tool_call": "c", "tool_result": "r"}[entry.kind] for entry in entries)
    for index in drop:
        # The run of the same kind is dropped as a whole, and so is the other half of the batch.
        neighbours = [place for place in (index - 1, index + 1) if 0 <= place < len(kinds)]
        for place in neighbours:
            belongs = kinds[place] == kinds[index] or kinds[min(index, place)] + kinds[max(index, place)] == "cr"
            assert not belongs or place in drop
    text = "".join(kinds[index] for index in drop)
    assert text.count("cr") >= (1 if text else 0)
    assert not text or (text[0], text[-1]) == ("c", "r")


@given(entries_, policies)
@thorough
def test_planning_again_after_a_plan_does_not_fire(entries: list[LoopGuardEntry], policy: LoopGuardPolicy) -> None:
    plan = plan_loop_guard_reclaim(entries, policy)
    shortened = {*plan.truncate, *plan.relief}
    left = [
        entry.replace(tokens=entry.preview_tokens) if index in shortened else entry
        for index, entry in enumerate(entries)
        if index not in plan.drop
    ]
    again = plan_loop_guard_reclaim(left, policy)
    assert again.total_tokens == plan.projected_tokens
    assert not again.fire


# --------------------------------------------------------------------------------------------------------- prompts


@st.composite
def outputs(draw: st.DrawFn) -> ToolOutput:
    text = "x" * draw(sizes)
    image = OutputImageData(bytes(10), "image/png")
    kinds: list[ToolOutput] = [TextOutput(text), JsonOutput({"a": text}), ContentOutput((OutputText(text), image))]
    return draw(st.sampled_from(kinds))


@st.composite
def prompts(draw: st.DrawFn) -> tuple[Message, ...]:
    """Exchanges, some parallel, some answered in several messages or not quite, with talk in between."""
    messages: list[Message] = [*draw(st.sampled_from([[], [SystemMessage("Be brief.")]])), user("task")]
    for number in range(draw(st.integers(0, 8))):
        ids = [f"{number}-{index}" for index in range(draw(st.integers(1, 3)))]
        parts: list[ToolPart] = [ToolResultPart(id, "read", draw(outputs())) for id in ids]
        kind = draw(st.sampled_from(["whole", "whole", "whole", "split", "lost", "approved", "talk"]))
        if kind == "talk":
            messages += [AssistantMessage([TextPart("so far")]), user("go on")]
            continue
        messages.append(asked(*ids))
        if kind == "split":
            messages += [ToolMessage([part]) for part in parts]
        elif kind == "lost":
            messages += [ToolMessage(parts[1:])] if parts[1:] else []
        else:
            messages.append(ToolMessage([*parts, *[ToolApprovalResponsePart("a", True)] * (kind == "approved")]))
    return tuple(messages)


def pairs(messages: Sequence[Message]) -> Counter[tuple[str, str]]:
    """Calls and results by id."""
    parts = [part for message in messages if not isinstance(message, SystemMessage) for part in message.content]
    return Counter((part.type, part.tool_call_id) for part in parts if isinstance(part, ToolCallPart | ToolResultPart))


@given(prompts(), policies)
@thorough
def test_no_prompt_loses_half_a_pair_or_its_order(prompt: tuple[Message, ...], policy: LoopGuardPolicy) -> None:
    reclaimed = PromptGuard(policy).reclaim(prompt)
    messages, plan = reclaimed.messages, reclaimed.plan
    assert (messages is prompt) == (not plan.fire)
    gone = pairs(prompt) - pairs(messages)
    assert {id for type, id in gone if type == "tool-call"} == {id for type, id in gone if type == "tool-result"}
    assert all(prompt.count(message) for message in messages if not isinstance(message, ToolMessage))
    head = 1 + next(index for index, message in enumerate(prompt) if message.role == "user")
    assert all(kept is given for kept, given in zip(messages[:head], prompt[:head], strict=True))
    tail = min(policy.protected_tail_count, len(prompt) - head)
    if tail and not plan.relief:
        assert all(kept is given for kept, given in zip(messages[-tail:], prompt[-tail:], strict=True))
    order = [id for message in messages for id in pairs([message])]
    assert order == [id for message in prompt for id in pairs([message]) if id in order]


@given(prompts(), policies)
@thorough
def test_a_prompt_after_a_reclaim_costs_what_was_projected(
    prompt: tuple[Message, ...], policy: LoopGuardPolicy
) -> None:
    first = PromptGuard(policy).reclaim(prompt)
    again = PromptGuard(policy).reclaim(first.messages)
    assert_settled(first.plan, again.plan)


def assert_settled(first: LoopGuardPlan, again: LoopGuardPlan) -> None:
    assert again.total_tokens == first.projected_tokens
    assert not again.fire


# --------------------------------------------------------------------------------------------------- conversations


@st.composite
def conversations(draw: st.DrawFn) -> list[Dict]:
    """Sound conversations: exchanges, some parallel, some with user text, images or cache points beside the results."""
    messages = [says("user", "task", *draw(st.sampled_from([[], [CACHE_POINT]])))]
    for number in range(draw(st.integers(0, 8))):
        if draw(st.integers(0, 4)) == 0:
            messages += [says("assistant", "so far"), says("user", "go on")]
            continue
        ids = [f"{number}-{index}" for index in range(draw(st.integers(1, 3)))]
        text = "x" * draw(sizes)
        content: Dict = draw(st.sampled_from([{"text": text}, {"json": {"a": text}}]))
        before: list[Dict | str] = draw(st.sampled_from([[], ["looking"]]))
        beside: list[Dict | str] = draw(st.sampled_from([[], [], ["user text"], [CACHE_POINT], [IMAGE, "see"]]))
        messages.append(says("assistant", *before, *map(use, ids)))
        messages.append(says("user", *[answer(id, content) for id in ids], *beside))
    return messages


def talk(messages: Sequence[ConverseMessage]) -> list[str]:
    """All that users said beside results."""
    return [text for message in messages if message["role"] == "user" for text in map(str, blocks(message, "text"))]


@given(conversations(), policies)
@thorough
def test_every_conversation_stays_sound(conversation: list[Dict], policy: LoopGuardPolicy) -> None:
    before = copy.deepcopy(conversation)
    reclaimed = ConverseGuard(policy).reclaim(conversation)
    assert conversation == before
    assert (reclaimed.messages is conversation) == (not reclaimed.plan.fire)
    assert_sound(reclaimed.messages)
    task = conversation[0]["content"]
    first = reclaimed.messages[0]["content"]
    assert isinstance(first, list)
    assert first[: len(task)] == task
    assert talk(reclaimed.messages) == talk(conversation)


@given(conversations(), policies)
@thorough
def test_a_conversation_after_a_reclaim_costs_what_was_projected(
    conversation: list[Dict], policy: LoopGuardPolicy
) -> None:
    first = ConverseGuard(policy).reclaim(conversation)
    again = ConverseGuard(policy).reclaim(first.messages)
    assert_settled(first.plan, again.plan)


@given(prompts(), conversations(), policies)
@thorough
def test_after_an_overflow_the_same_holds(
    prompt: tuple[Message, ...], conversation: list[Dict], policy: LoopGuardPolicy
) -> None:
    shorter = PromptGuard(policy).reclaim_after_overflow(prompt)
    gone = pairs(prompt) - pairs(prompt if shorter is None else shorter.messages)
    assert {id for type, id in gone if type == "tool-call"} == {id for type, id in gone if type == "tool-result"}
    reclaimed = ConverseGuard(policy).reclaim_after_overflow(conversation)
    assert_sound(conversation if reclaimed is None else reclaimed.messages)
    for one in (shorter, reclaimed):
        if one is not None:
            assert one.plan.projected_tokens < one.plan.total_tokens
