"""When a turn stops before the model is done with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from typing import TypeAlias

from .step import StepResult

StopCondition: TypeAlias = Callable[[Sequence[StepResult]], bool | Awaitable[bool]]
"""Asked after each step whose tools have run; true ends the turn."""


def step_count_is(count: int) -> StopCondition:
    """After so many steps."""
    return lambda steps: len(steps) >= count


def has_tool_call(*names: str) -> StopCondition:
    """After a step that called one of these tools, which have run by then. To end a turn without running the tool, use
    `terminal_tools`."""
    return lambda steps: bool(steps) and any(call.tool_name in names for call in steps[-1].tool_calls)


async def is_stopped(conditions: Sequence[StopCondition], steps: Sequence[StepResult]) -> bool:
    """Whether any of them says so."""
    for condition in conditions:
        said = condition(tuple(steps))
        if await said if isawaitable(said) else said:
            return True
    return False
