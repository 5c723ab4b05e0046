"""The guard of a tool loop's context: what to reclaim of a history before it overflows the model's window.

The planner decides on figures alone; an adapter for each shape of message reads the history and applies the plan. No
I/O, no model: whoever runs the loop asks the guard before each step and tells it what the provider counted.
"""

from .converse import ConverseGuard, ConverseMessage
from .planner import (
    DEFAULT_LOOP_GUARD_LOW_WATER_RATIO,
    DEFAULT_LOOP_GUARD_PROTECTED_TAIL,
    EntryKind,
    LoopGuardEntry,
    LoopGuardPlan,
    LoopGuardPolicy,
    plan_loop_guard_reclaim,
)
from .prompts import PromptGuard
from .turn import Reclaimed

__all__ = [
    "DEFAULT_LOOP_GUARD_LOW_WATER_RATIO",
    "DEFAULT_LOOP_GUARD_PROTECTED_TAIL",
    "ConverseGuard",
    "ConverseMessage",
    "EntryKind",
    "LoopGuardEntry",
    "LoopGuardPlan",
    "LoopGuardPolicy",
    "PromptGuard",
    "Reclaimed",
    "plan_loop_guard_reclaim",
]
