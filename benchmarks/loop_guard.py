"""What keeping a history within the window costs: planning, and a step of a long turn that needs nothing reclaimed.

The floor adds up what the same entries, or messages, cost: who guards a history does at least that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from neurolink_mw.loop_guard import LoopGuardEntry, LoopGuardPolicy, PromptGuard, plan_loop_guard_reclaim
from neurolink_mw.protocol import (
    AssistantMessage,
    Message,
    TextOutput,
    ToolCallPart,
    ToolMessage,
    ToolResultPart,
    estimate_message_tokens,
    user,
)

from .figure import Figure, Floor, Goal, Measured
from .measure import Contender, Effort, race

_ENTRIES: Final = 10_000
_EXCHANGES: Final = 200


def measure(effort: Effort) -> Measured:
    return asyncio.run(_measure(effort))


async def _measure(effort: Effort) -> Measured:
    entries, prompt = _entries(), _prompt()
    crowded = LoopGuardPolicy(1_000_000)  # previews everywhere, and four fifths of the batches go
    roomy = LoopGuardPolicy(10**9)
    guard = PromptGuard(roomy)
    taken = await race(
        {
            "adding up entries": _repeated(lambda: _sum(entries)),
            "firing": _repeated(lambda: plan_loop_guard_reclaim(entries, crowded)),
            "quiet": _repeated(lambda: plan_loop_guard_reclaim(entries, roomy)),
            "estimating messages": _repeated(lambda: [estimate_message_tokens(message) for message in prompt]),
            "step": _repeated(lambda: guard.reclaim(prompt)),
        },
        effort,
    )
    adding = Floor("adding up entries", taken["adding up entries"])
    planning = Goal(5_000, of="value", where_floor_took=220)
    estimating = Floor("estimating messages", taken["estimating messages"])
    return [
        Figure("loop_guard.planning 10,000 entries", taken["firing"], "us", adding, goal=planning),
        Figure("loop_guard.planning 10,000 entries that fit", taken["quiet"], "us", adding),
        Figure("loop_guard.a step, 400 messages known and fitting", taken["step"], "us", estimating, goal=Goal(0.5)),
    ]


def _entries() -> list[LoopGuardEntry]:
    exchange = [LoopGuardEntry("tool_call", 50), LoopGuardEntry("tool_result", 5_000, 600)]
    return [LoopGuardEntry("other", 100), *(exchange * (_ENTRIES // 2))][:_ENTRIES]


def _prompt() -> tuple[Message, ...]:
    messages: list[Message] = [user("Look into everything there is.")]
    for number in range(_EXCHANGES):
        id = f"call-{number}"
        messages.append(AssistantMessage([ToolCallPart(id, "read", {"path": f"file-{number}"})]))
        messages.append(ToolMessage([ToolResultPart(id, "read", TextOutput("a line of text\n" * 1_000))]))
    return tuple(messages)


def _sum(entries: Sequence[LoopGuardEntry]) -> int:
    total = 0
    for entry in entries:
        total += entry.tokens
    return total


def _repeated(once: Callable[[], object]) -> Contender:
    def run(times: int) -> None:
        for _ in range(times):
            once()

    return Contender(run)
