"""Around a tool: it runs once, as it was called, and what became of it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio

from ...pipeline import wrap_model
from ...pipeline.tool_hooks import around_tools
from ...protocol import CallContext, ExecutionDenied, TextOutput, ToolCall, ToolOutcome, with_context
from .cancelling import MOST_WAITS, CancelledAt
from .material import PLAIN
from .miniature import CALL, FOUND, LookUp, ask_turn, calling
from .plain import KINDS
from .subject import Subject, opened, require_no_failure_of_its_own
from .upstream import Upstream
from .wording import require, show, show_error

Run: TypeAlias = Callable[[ToolCall, ToolOutcome], Coroutine[Any, Any, ToolOutcome]]

_FED = "around the steps of a turn, and the model calls a tool"


async def check_a_tool_is_no_trouble(subject: Subject) -> None:
    for kind in KINDS:
        seen = await ask_turn(subject, "steps", kind, calling(CALL))
        findings = [finding for outcome in seen.outcomes for finding in outcome.findings]
        advice = "Return what `await tool.run(call)` returned, or another ToolOutcome, whatever the tool said"
        require_no_failure_of_its_own(seen.raised, findings, f"do_{kind}, {_FED}", advice)


async def check_a_tool_runs_once_for_a_call(subject: Subject) -> None:
    for kind in KINDS:
        seen = await ask_turn(subject, "steps", kind, calling(CALL))
        require(
            len(seen.ran) <= 1,
            f"do_{kind}, {_FED}: it ran {len(seen.ran)} times, and had not failed. A tool may pay or send something: "
            f"run it again only where its outcome is an error, and somebody asked for that",
        )


async def check_a_call_reaches_the_tool_as_it_was_made(subject: Subject) -> None:
    for kind in KINDS:
        for call in (await ask_turn(subject, "steps", kind, calling(CALL))).ran:
            require(
                (call.tool_call_id, call.tool_name) == (CALL.tool_call_id, CALL.tool_name),
                f"do_{kind}, {_FED}: what reaches the tool is the call {show(call.tool_call_id)} of "
                f"{show(call.tool_name)}. Change its input alone: call.replace(input=...)",
            )


async def check_a_denied_tool_call_stays_denied(subject: Subject) -> None:
    """Somebody further in said no."""
    async with _around_a_tool(subject) as run:
        outcome = await _outcome(run, CALL, ToolOutcome(ExecutionDenied("closed"), "denied"))
    require(
        outcome is None or outcome.status == "denied",
        f"around a tool, and somebody further in denies the call: the model is told {_told(outcome)}. Pass a denied "
        f'outcome on: `if outcome.status == "denied": return outcome`',
    )


async def check_a_cancellation_comes_out_of_a_tool(subject: Subject) -> None:
    for place in range(1, MOST_WAITS):
        raised: Exception | None = None
        async with _around_a_tool(subject) as run:
            with anyio.CancelScope() as scope:
                running = CancelledAt(run(CALL, FOUND), scope, place)
                try:
                    await running
                except Exception as error:
                    raised = error
        if running.waits < place:  # it came to its end without a wait at that place
            return
        instead = f"raised {show_error(raised)}" if raised is not None else "went on as if nothing had happened"
        require(
            scope.cancelled_caught or not running.delivered,
            f"around a tool, and the turn is cancelled at wait number {place}: it {instead}. Catch Exception and never "
            f"BaseException, or raise the cancellation again",
        )


async def check_tools_at_once_do_not_mix(subject: Subject) -> None:
    calls = [CALL.replace(tool_call_id=f"call-{n}", input=f'{{"word": "word {n}"}}') for n in range(3)]
    alone: dict[str, ToolOutcome | None] = {}
    for call in calls:
        async with _around_a_tool(subject) as run:
            alone[call.tool_call_id] = await _outcome(run, call, _saying(call))
    at_once: dict[str, ToolOutcome | None] = {}
    async with _around_a_tool(subject) as run, anyio.create_task_group() as tasks:

        async def answer(call: ToolCall) -> None:
            at_once[call.tool_call_id] = await _outcome(run, call, _saying(call))

        for call in calls:
            tasks.start_soon(answer, call)
    for id, outcome in alone.items():
        require(
            at_once[id] == outcome,
            f"three tools at once: the call {show(id)} comes to {_told(at_once[id])}, and alone to {_told(outcome)}. "
            f"Keep what belongs to one call in local variables of the hook",
        )


@asynccontextmanager
async def _around_a_tool(subject: Subject) -> AsyncIterator[Run]:
    """What a fresh member, around the steps of a turn, makes of a call whose tool comes to the given outcome."""
    member, upstream = subject.factory(), Upstream([PLAIN])
    async with opened(member):
        model = wrap_model(upstream, [member], surroundings=subject.surroundings, lint="off")
        step = with_context(subject.options, CallContext().child(step=0))

        async def run(call: ToolCall, outcome: ToolOutcome) -> ToolOutcome:
            return await around_tools(model, step)(LookUp(step, [], outcome)).run(call)

        yield run


async def _outcome(run: Run, call: ToolCall, outcome: ToolOutcome) -> ToolOutcome | None:
    """None where it fails, which another check is about."""
    try:
        return await run(call, outcome)
    except Exception:
        return None


def _saying(call: ToolCall) -> ToolOutcome:
    return ToolOutcome(TextOutput(f"what {call.tool_call_id} says"))


def _told(outcome: ToolOutcome | None) -> str:
    if outcome is None:
        return "nothing"
    output = outcome.output
    return f"{outcome.status} ({show(output.value) if isinstance(output, TextOutput) else output.type})"
