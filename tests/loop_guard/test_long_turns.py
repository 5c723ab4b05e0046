"""Whole turns against a model whose tokenizer is not the estimate's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from neurolink_mw.loop_guard import LoopGuardPolicy, PromptGuard
from neurolink_mw.protocol import (
    Message,
    ModelLimits,
    TextOutput,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    available_input_tokens,
    user,
)

from .builders import exchange

OUTPUT = "a line of what a tool says\n" * (20 * 1024 // 27)
STEPS = 200


def counted(messages: Sequence[Message]) -> int:
    """What the provider counts: a token for three characters."""
    tokens = 0
    for message in messages:
        for part in message.content:
            if isinstance(part, TextPart):
                tokens += math.ceil(len(part.text) / 3)
            elif isinstance(part, ToolResultPart) and isinstance(part.output, TextOutput):
                tokens += math.ceil(len(part.output.value) / 3)
            elif isinstance(part, ToolCallPart):
                tokens += 20
    return tokens


@dataclass
class Turn:
    """How a turn went: how many steps began with another prefix than the step before, and the longest prompt."""

    changes: int = 0
    longest: int = 0


def run(available: int) -> Turn:
    guard, turn = PromptGuard(LoopGuardPolicy(available)), Turn()
    history: tuple[Message, ...] = (user("Look into everything there is."),)
    before: Sequence[Message] = ()
    for step in range(STEPS):
        sent = guard.reclaim(history).messages
        guard.observed(counted(sent))
        turn.longest = max(turn.longest, counted(sent))
        turn.changes += any(now is not earlier for now, earlier in zip(sent, before, strict=False))
        before, history = sent, (*sent, *exchange(str(step), output=OUTPUT))
    return turn


@pytest.mark.parametrize("window", [32_000, 64_000, 128_000, 200_000])
def test_no_window_overflows(window: int) -> None:
    available = available_input_tokens(ModelLimits(window))
    assert run(available).longest <= available


def test_a_large_window_keeps_its_prefix_on_more_than_four_steps_of_five() -> None:
    assert run(available_input_tokens(ModelLimits(128_000))).changes < STEPS / 4
