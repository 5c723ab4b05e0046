"""A tool that keeps failing is left alone for the rest of the turn."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from neurolink_mw.protocol import ErrorTextOutput, ToolCall, ToolOutcome, ToolRunner
from neurolink_mw.tools import Breaker, Tool

from .builders import Turn, call, explicit, wrapped

pytestmark = pytest.mark.anyio

OPEN = ErrorTextOutput("The tool 'tool' failed too often and is not run again: go on without it.")


class Scripted:
    """A tool that fails where the input says so."""

    def __init__(self) -> None:
        self.ran = 0

    async def __call__(self, given: Any) -> object:
        self.ran += 1
        how = given["how"]
        if how == "raise":
            raise ValueError
        if how == "return":
            return ErrorTextOutput("no")
        if how == "hang":
            await anyio.sleep_forever()
        return "ok"

    def tool(self, name: str = "tool", **settings: Any) -> Tool:
        schema = {"type": "object", "properties": {"how": {"type": "string"}}, "required": ["how"]}
        return explicit(self, name, input_schema=schema, timeout=0.02, **settings)


async def answered(turn: Turn, *how: str, name: str = "tool") -> list[str | None]:
    """Calls one after another, as in steps of their own."""
    seen: list[str | None] = []
    for one in how:
        seen.append((await turn.one(call(name, {"how": one}))).status)
    return seen


async def test_after_so_many_failures_in_a_row_it_is_not_run_again() -> None:
    scripted = Scripted()
    turn = Turn(scripted.tool(), breaker=Breaker(3))
    assert await answered(turn, "raise", "return", "hang", "ok") == ["error", "error", "timeout", "error"]
    assert scripted.ran == 3
    done = await turn.report(call("tool", {"how": "ok"}))
    assert (done.output, done.status, done.tries) == (OPEN, "error", 0)


async def test_a_success_starts_the_count_anew() -> None:
    scripted = Scripted()
    turn = Turn(scripted.tool(), breaker=Breaker(2))
    await answered(turn, "raise", "ok", "raise", "ok", "raise", "raise", "ok")
    assert scripted.ran == 6


async def test_unless_all_failures_of_the_turn_count() -> None:
    scripted = Scripted()
    turn = Turn(scripted.tool(), breaker=Breaker(2, consecutive=False))
    await answered(turn, "raise", "ok", "raise", "ok", "ok")
    assert scripted.ran == 3


async def test_by_default_the_fifth_failure_in_a_row_is_the_last() -> None:
    scripted = Scripted()
    await answered(Turn(scripted.tool()), *["raise"] * 9)
    assert scripted.ran == 5


async def test_it_can_be_taken_away() -> None:
    scripted = Scripted()
    await answered(Turn(scripted.tool(), breaker=None), *["raise"] * 9)
    assert scripted.ran == 9


async def test_each_tool_has_a_count_of_its_own() -> None:
    scripted, other = Scripted(), Scripted()
    turn = Turn(scripted.tool(), other.tool("other"), breaker=Breaker(1))
    await answered(turn, "raise", "raise")
    assert await answered(turn, "ok", name="other") == ["ok"]
    assert (scripted.ran, other.ran) == (1, 1)


async def test_and_each_turn() -> None:
    scripted = Scripted()
    made = scripted.tool()
    for _ in range(3):
        await answered(Turn(made, breaker=Breaker(1)), "raise")
    assert scripted.ran == 3


async def test_invalid_input_is_no_failure_of_the_tool() -> None:
    scripted = Scripted()
    turn = Turn(scripted.tool(), breaker=Breaker(1))
    for given in ({"how": 5}, "{", "[]"):
        assert (await turn.one(call("tool", given))).status == "error"
    assert await answered(turn, "ok") == ["ok"]


async def test_nor_is_it_a_success() -> None:
    scripted = Scripted()
    turn = Turn(scripted.tool(), breaker=Breaker(2))
    await answered(turn, "raise")
    await turn.one(call("tool", "{"))
    await answered(turn, "raise", "ok")
    assert scripted.ran == 2


async def test_the_tries_of_one_call_are_one_failure() -> None:
    scripted = Scripted()
    turn = Turn(scripted.tool(retries=2, retry_delay=0), breaker=Breaker(2))
    await answered(turn, "raise", "raise", "ok")
    assert scripted.ran == 6


async def test_what_a_middleware_answers_without_the_tool_does_not_count() -> None:
    async def hook(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        return ToolOutcome(ErrorTextOutput("not today"), "error") if closed else await runner.run(call)

    scripted, closed = Scripted(), True
    turn = Turn(scripted.tool(), breaker=Breaker(1), around=wrapped(hook))
    await answered(turn, "ok", "ok")
    closed = False
    assert await answered(turn, "ok") == ["ok"]


async def test_the_others_of_a_batch_that_have_begun_are_finished() -> None:
    scripted = Scripted()
    turn = Turn(scripted.tool(), breaker=Breaker(1))
    await turn.answer(*[call("tool", {"how": "raise"})] * 4)
    assert scripted.ran == 4
    await turn.answer(*[call("tool", {"how": "ok"})] * 4)
    assert (scripted.ran, turn.outcomes()) == (4, ["error"] * 4)
