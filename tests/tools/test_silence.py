"""What a tool is given, what it says and how it fails is in results alone: no log and no repr shows it."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from neurolink_mw.protocol import TextOutput, ToolCall, ToolOutcome, ToolRunner
from neurolink_mw.tools import Tool, ToolError, ToolSettings, deny, tool
from neurolink_mw.tools.input import InvalidInput, read_input
from neurolink_mw.tools.runner import Runner

from .builders import OPTIONS, SECRET, Turn, call, explicit, wrapped

pytestmark = pytest.mark.anyio


def leaking(kind: str) -> Any:
    def execute(given: object) -> object:
        if kind == "raise":
            raise ValueError(SECRET)
        if kind == "tool-error":
            raise ToolError(SECRET)
        return SECRET if kind == "text" else {"a": SECRET} if kind == "json" else object()

    return explicit(execute, input_schema={"type": "object", "properties": {"password": {"type": "string"}}})


@pytest.mark.parametrize("kind", ["raise", "tool-error", "text", "json", "unknown"])
async def test_a_call_that_runs(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[object] = []

    async def look(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        seen.extend([runner, call])
        return await runner.run(call)

    turn = Turn(leaking(kind), around=wrapped(look))
    (answered,) = await turn.answer(call("tool", {"password": SECRET}))
    shown = [answered, answered.report(), answered.outcome, turn.executor, *seen]
    assert SECRET not in " ".join(map(repr, shown))
    assert SECRET not in caplog.text


@pytest.mark.parametrize("text", [f'{{"password": ["{SECRET}"]}}', f'{{"{SECRET}', SECRET])
async def test_a_call_that_is_refused(text: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    turn = Turn(leaking("text"))
    (answered,) = await turn.answer(call("tool", text))
    assert SECRET not in f"{answered!r} {answered.report()!r} {answered.outcome!r}"
    assert SECRET not in caplog.text


async def test_a_denial(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    turn = Turn(explicit(len, needs_approval=True), approve=lambda call: deny(SECRET))
    (answered,) = await turn.answer(call("tool", {"a": SECRET}))
    assert SECRET not in f"{answered!r} {answered.report()!r} {deny(SECRET)!r}"
    assert SECRET not in caplog.text


def test_a_default_of_a_typed_function_is_in_its_schema_alone() -> None:
    @tool
    def login(password: str = SECRET) -> None: ...

    assert SECRET not in repr(login)
    assert SECRET not in repr(ToolSettings())


def test_words_for_the_model_do_not_quote_the_input() -> None:
    made = Tool(name="x", input_schema={"type": "object", "properties": {"a": {"type": "integer"}}})
    for text in (f'{{"a": "{SECRET}"}}', f'{{"a": {SECRET}}}'):
        with pytest.raises(InvalidInput) as refused:
            read_input(made, call("x", text))
        assert SECRET not in str(refused.value)
        assert refused.value.__cause__ is None


def test_a_runner_shows_its_input_to_nobody() -> None:
    assert SECRET not in repr(Runner(explicit(len), call("tool", {"a": SECRET}), {"a": SECRET}, OPTIONS, None))
    assert SECRET not in repr(ToolOutcome(TextOutput(SECRET)))
