"""Whatever tools do, and whenever the turn is cancelled: every call has exactly one outcome, in the order of the
calls."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neurolink_mw.errors import PolicyDenied
from neurolink_mw.protocol import ErrorTextOutput, ToolCall, ToolOutcome, ToolRunner
from neurolink_mw.tools import Breaker, Tool, ToolContext, ToolError, deny

from .builders import Turn, call, explicit, wrapped

thorough = settings(max_examples=150, deadline=None, database=None, derandomize=True)

# Each behaviour of a tool, and what its calls come to when nothing else happens.
BEHAVIOURS = {
    "ok": "ok",
    "slow": "ok",
    "sync": "ok",
    "error": "error",
    "tool-error": "error",
    "returned": "error",
    "unserializable": "error",
    "timeout": "timeout",
    "self-cancel": "error",
    "invalid": "error",
    "misfit": "error",
    "unknown": "error",
    "denied": "denied",
    "refused": "denied",
}
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}
INPUTS = {"invalid": "{", "misfit": '{"n": "x"}'}

names = st.sampled_from(sorted(BEHAVIOURS))
batches = st.lists(names, max_size=10)


async def behave(name: str, given: object, context: ToolContext) -> object:
    """What a tool of that name does, and then says of which call it was."""
    if name == "slow":
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
    if name == "error":
        raise KeyError
    if name == "tool-error":
        raise ToolError("no", retry=True)
    if name == "returned":
        return ErrorTextOutput("no")
    if name == "unserializable":
        return object()
    if name == "timeout":
        await anyio.sleep_forever()
    if name == "self-cancel":
        raise asyncio.CancelledError
    return context.call.tool_call_id


def in_a_thread(given: object, context: ToolContext) -> object:
    return context.call.tool_call_id


async def refuse(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
    if runner.name == "refused":
        raise PolicyDenied("no", code="no")
    return await runner.run(call)


def turn_of(*, parallel: int = 8, breaker: Breaker | None = None) -> Turn:
    tools: list[Tool] = [
        explicit(
            in_a_thread if name == "sync" else partial(behave, name),
            name,
            input_schema=SCHEMA,
            timeout=0.005 if name == "timeout" else None,
            needs_approval=name == "denied",
        )
        for name in BEHAVIOURS
        if name != "unknown"
    ]
    return Turn(*tools, around=wrapped(refuse), parallel=parallel, breaker=breaker, approve=lambda call: deny("no"))


def calls_of(batch: list[str]) -> list[ToolCall]:
    return [call(name, INPUTS.get(name), f"c{index}") for index, name in enumerate(batch)]


def assert_sound(turn: Turn, batch: list[str]) -> None:
    reports = [one.report() for one in turn.answering]  # which asserts that there is an outcome
    assert [one.tool_call_id for one in reports] == [f"c{index}" for index in range(len(batch))]
    assert [one.tool_name for one in reports] == batch
    assert not any(one.asks for one in turn.answering)
    for one in reports:
        if one.status == "ok":
            assert one.output.value == one.tool_call_id  # type: ignore[union-attr]


@given(batches, st.integers(1, 4))
@thorough
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_for_any_mix_of_behaviours(backend: str, batch: list[str], parallel: int) -> None:
    async def go() -> None:
        turn = turn_of(parallel=parallel)
        await turn.answer(*calls_of(batch))
        assert turn.outcomes() == [BEHAVIOURS[name] for name in batch]
        assert_sound(turn, batch)

    anyio.run(go, backend=backend)


@given(st.lists(batches, min_size=1, max_size=4), st.integers(1, 3), st.booleans())
@thorough
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_for_any_breaker(backend: str, steps: list[list[str]], failures: int, consecutive: bool) -> None:
    async def go() -> None:
        turn = turn_of(breaker=Breaker(failures, consecutive))
        for batch in steps:
            await turn.answer(*calls_of(batch))
            for status, name in zip(turn.outcomes(), batch, strict=True):
                assert status in {BEHAVIOURS[name], "error"}
            assert_sound(turn, batch)

    anyio.run(go, backend=backend)


@given(batches, st.integers(1, 4), st.integers(0, 40))
@thorough
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_for_a_cancellation_at_any_point(backend: str, batch: list[str], parallel: int, after: int) -> None:
    async def go() -> None:
        turn = turn_of(parallel=parallel)

        async def cancel() -> None:
            for _ in range(after):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel)
            await turn.answer(*calls_of(batch))
        for status, name in zip(turn.outcomes(), batch, strict=True):
            assert status in {BEHAVIOURS[name], "cancelled"}
        assert_sound(turn, batch)

    anyio.run(go, backend=backend)


@given(batches, st.integers(1, 4), st.integers(0, 9))
@thorough
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_for_a_middleware_that_fails_at_any_call(backend: str, batch: list[str], parallel: int, at: int) -> None:
    async def fail(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        if call.tool_call_id == f"c{at}":
            raise RuntimeError(call.tool_call_id)
        return await refuse(runner, call)

    async def go() -> None:
        turn = turn_of(parallel=parallel)
        turn.around = wrapped(fail)
        if at < len(batch) and batch[at] not in {"invalid", "misfit", "unknown", "denied"}:
            with pytest.raises(RuntimeError, match=f"^c{at}$"):
                await turn.answer(*calls_of(batch))
            assert turn.outcomes()[at] == "cancelled"
        else:
            await turn.answer(*calls_of(batch))
        for status, name in zip(turn.outcomes(), batch, strict=True):
            assert status in {BEHAVIOURS[name], "cancelled"}
        assert_sound(turn, batch)

    anyio.run(go, backend=backend)
