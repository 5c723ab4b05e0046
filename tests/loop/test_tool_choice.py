"""Which tool choice each step is sent."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

import anyio
import pytest

from neurolink_mw.loop import StepChanges, StepInfo, resolve_step_tool_choice, to_v3_tool_choice
from neurolink_mw.protocol import ToolChoice

from .builders import ASKED, Drive, both_ways, call, look, says, script, sent

pytestmark = pytest.mark.anyio

ONE = {"type": "tool", "toolName": "look"}


async def resolve(step: int, choice: object, **given: Any) -> object:
    return await resolve_step_tool_choice(step=step, tool_choice=choice, max_steps=10, model=script(), **given)


@pytest.mark.parametrize(
    "forced", ["required", ONE, ToolChoice("required"), ToolChoice("tool", "look"), {"type": "any"}]
)
async def test_a_forced_choice_holds_for_the_first_step_and_then_the_model_chooses(forced: object) -> None:
    assert await resolve(0, forced) == forced
    assert await resolve(1, forced) == "auto"


async def test_a_forced_choice_holds_for_as_many_steps_as_asked() -> None:
    assert [await resolve(step, "required", tool_choice_steps=2) for step in range(3)] == [
        "required",
        "required",
        "auto",
    ]


async def test_a_forced_choice_that_holds_for_no_step_is_none() -> None:
    assert await resolve(0, "required", tool_choice_steps=0) == "auto"


@pytest.mark.parametrize("choice", ["auto", "none", None])
async def test_what_is_not_forced_passes_through_at_every_step(choice: object) -> None:
    assert [await resolve(step, choice) for step in range(3)] == [choice] * 3


async def test_the_choice_of_the_hook_wins_also_late_in_the_turn() -> None:
    assert await resolve(5, "auto", prepare_step=lambda info: {"toolChoice": "required"}) == "required"
    assert await resolve(0, "required", prepare_step=lambda info: StepChanges(tool_choice="none")) == "none"


async def test_a_hook_that_returns_no_choice_leaves_it_to_the_rule() -> None:
    assert await resolve(0, "required", prepare_step=lambda info: None) == "required"
    assert await resolve(1, "required", prepare_step=lambda info: {"system": "Be brief."}) == "auto"


async def test_the_hook_is_told_where_the_turn_is() -> None:
    told: list[StepInfo] = []
    await resolve(3, "auto", prepare_step=told.append, steps=())
    assert [(info.step_number, info.max_steps, tuple(info.steps)) for info in told] == [(3, 10, ())]


async def test_the_choice_of_a_tool_that_is_not_declared_becomes_auto(caplog: pytest.LogCaptureFixture) -> None:
    assert await resolve(0, ONE, declared_tools={"other"}) == "auto"
    assert "names 'look', which is not sent" in caplog.text


async def test_a_hook_that_names_a_tool_that_is_not_declared_has_said_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert (
        await resolve(0, "required", prepare_step=lambda info: {"toolChoice": ONE}, declared_tools=["other"])
        == "required"
    )
    assert "prepare_step names 'look'" in caplog.text


async def test_without_declared_tools_nothing_is_checked() -> None:
    assert await resolve(0, ONE) == ONE
    assert await resolve(0, ONE, declared_tools=["look"]) == ONE


class AbortError(Exception):
    """As browsers call it."""


@pytest.mark.parametrize("failure", [ValueError, AbortError, asyncio.CancelledError, TimeoutError])
async def test_a_hook_that_fails_says_nothing_whatever_its_error_is_called(
    failure: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    async def prepare(info: StepInfo) -> None:
        raise failure("the user's secret")

    assert await resolve(0, "required", prepare_step=prepare) == "required"
    assert failure.__name__ in caplog.text
    assert "secret" not in caplog.text


async def test_a_cancellation_while_the_hook_waits_is_raised() -> None:
    waits = anyio.Event()

    async def prepare(info: StepInfo) -> None:
        waits.set()
        await anyio.sleep_forever()

    ended: list[object] = []
    async with anyio.create_task_group() as tasks:

        async def ask() -> None:
            ended.append(await resolve(0, "auto", prepare_step=prepare))

        tasks.start_soon(ask)
        await waits.wait()
        tasks.cancel_scope.cancel()
    assert ended == []


async def test_a_cancellation_is_raised_also_where_the_hook_turns_it_into_something_else() -> None:
    waits = anyio.Event()

    async def prepare(info: StepInfo) -> None:
        try:
            waits.set()
            await anyio.sleep_forever()
        finally:
            raise ValueError("and now for something else")

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_after, waits, scope)
            await resolve(0, "auto", prepare_step=prepare)
            pytest.fail("it went on")
    assert scope.cancelled_caught


async def _cancel_after(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("auto", ToolChoice("auto")),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        (ONE, ToolChoice("tool", "look")),
        ({"type": "tool", "tool_name": "look"}, ToolChoice("tool", "look")),
        (ToolChoice("tool", "look"), ToolChoice("tool", "look")),
        ("whatever", None),
        (None, None),
        (3, None),
    ],
)
async def test_every_spelling_becomes_the_object(given: object, made: ToolChoice | None) -> None:
    assert to_v3_tool_choice(given) == made


# -- in a turn


@both_ways
@pytest.mark.parametrize(
    ("choice", "settings", "expected"),
    [
        (ToolChoice("required"), {}, ["required", "auto", "auto"]),
        (ToolChoice("tool", "look"), {}, ["tool", "auto", "auto"]),
        (ToolChoice("required"), {"tool_choice_steps": 2}, ["required", "required", "auto"]),
        (
            ToolChoice("auto"),
            {"prepare_step": lambda info: {"toolChoice": "required"} if info.step_number == 2 else None},
            ["auto", "auto", "required"],
        ),
    ],
)
async def test_each_step_is_sent_the_choice_as_an_object(
    drive: Drive, choice: ToolChoice, settings: dict[str, Any], expected: list[str]
) -> None:
    model = script(says(call("c1")), says(call("c2")), "done")
    result = await drive(model, ASKED.replace(tool_choice=choice), tools=[look], **settings)
    choices = [sent(model, step).tool_choice for step in range(3)]
    assert [one.type for one in choices if one is not None] == expected
    assert result.text == "done"


@both_ways
async def test_the_options_of_the_turn_are_not_changed_so_that_a_second_turn_is_the_same(drive: Drive) -> None:
    options = ASKED.replace(tool_choice=ToolChoice("required"))
    for _ in range(2):
        model = script(says(call()), "done")
        await drive(model, options, tools=[look])
        choices = [sent(model, step).tool_choice for step in range(2)]
        assert choices == [ToolChoice("required"), ToolChoice("auto")]


@both_ways
async def test_without_tools_no_choice_is_sent(drive: Drive) -> None:
    model = script("done")
    await drive(model, ASKED.replace(tool_choice=ToolChoice("required")))
    assert sent(model, 0).tool_choice is None
    assert sent(model, 0).tools is None


@both_ways
async def test_the_tools_of_the_step_are_those_that_a_choice_is_checked_against(
    drive: Drive, caplog: pytest.LogCaptureFixture
) -> None:
    model = script("done")
    choice = ToolChoice("tool", "look")
    with caplog.at_level(logging.WARNING):
        await drive(
            model,
            ASKED.replace(tool_choice=choice),
            tools=[look, replace(look, name="glance")],
            prepare_step=lambda info: {"activeTools": ["glance"]},
        )
    assert sent(model, 0).tool_choice == ToolChoice("auto")
    assert "not sent" in caplog.text
