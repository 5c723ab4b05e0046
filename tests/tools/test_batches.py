"""The calls of a step are answered together: a few at once, each with one outcome, in the order of the calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from neurolink_mw.protocol import ErrorTextOutput, ExecutionDenied, TextOutput, ToolCall, ToolOutcome, ToolRunner
from neurolink_mw.tools import Answering, Tool, tool

from .builders import OPTIONS, Turn, asyncio_only, call, explicit, text_of, wrapped

pytestmark = pytest.mark.anyio


class Meeting:
    """A tool that waits until it is let go, and counts how many are in it."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self.order: list[object] = []
        self.doors: dict[object, anyio.Event] = {}

    async def __call__(self, given: Any) -> str:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.order.append(given["n"])
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        if given["n"] in self.doors:
            await self.doors[given["n"]].wait()
        self.inside -= 1
        for door in self.doors.values():
            door.set()
        return str(given["n"])


def numbered(count: int) -> list[ToolCall]:
    return [call("tool", {"n": index}, f"c{index}") for index in range(count)]


@pytest.mark.parametrize("parallel", [1, 3, 8])
async def test_so_many_run_at_once_and_no_more(parallel: int) -> None:
    meeting = Meeting()
    await Turn(explicit(meeting), parallel=parallel).answer(*numbered(12))
    assert meeting.most == parallel
    assert sorted(meeting.order, key=str) == sorted(range(12), key=str)


async def test_one_at_a_time_they_run_in_the_order_of_the_calls() -> None:
    meeting = Meeting()
    await Turn(explicit(meeting), parallel=1).answer(*numbered(5))
    assert meeting.order == [0, 1, 2, 3, 4]


async def test_results_are_in_the_order_of_the_calls_whatever_ends_first() -> None:
    meeting = Meeting()
    meeting.doors = {0: anyio.Event()}  # the first ends when another has ended
    answered = await Turn(explicit(meeting)).answer(*numbered(3))
    assert [one.outcome for one in answered] == [ToolOutcome(TextOutput(text)) for text in "012"]
    assert [one.report().tool_call_id for one in answered] == ["c0", "c1", "c2"]


async def test_no_calls_are_answered_at_once() -> None:
    assert list(await Turn().answer()) == []


async def test_a_call_that_has_its_outcome_already_is_left_alone() -> None:
    refused = ToolOutcome(ExecutionDenied("no"), "denied")
    turn = Turn(explicit(lambda given: "ran"))
    calls = [
        Answering(call(), OPTIONS, step=0, available=["tool"], outcome=refused),
        Answering(call(), OPTIONS, step=0, available=["tool"]),
    ]
    await turn.executor.answer(calls, lambda runner: runner)
    assert calls[0].outcome is refused
    assert calls[0].report().tries == 0
    assert calls[1].outcome == ToolOutcome(TextOutput("ran"))


async def test_failures_of_siblings_are_isolated() -> None:
    """Entry L03 of the field bugs."""

    @tool
    def ok(n: int) -> str:
        return "one"

    @tool
    def boom() -> None:
        raise KeyError

    @tool
    async def slow() -> str:
        await anyio.sleep(0.05)
        return "three"

    @tool
    async def self_cancel() -> None:
        raise asyncio.CancelledError

    turn = Turn(ok, boom, slow, self_cancel)
    answered = await turn.answer(call("ok", {"n": 1}), call("boom"), call("slow"), call("self_cancel"))
    assert turn.outcomes() == ["ok", "error", "ok", "error"]
    outputs = [one.report().output for one in answered]
    assert outputs[0::2] == [TextOutput("one"), TextOutput("three")]
    assert "KeyError" in text_of(outputs[1])


async def test_a_call_of_a_tool_that_was_taken_away_is_answered_and_its_tool_does_not_run() -> None:
    """Entry L02 of the field bugs."""
    ran = []

    def weather(given: object) -> str:
        ran.append(given)
        return "ok"

    turn = Turn(explicit(weather, "weather"), explicit(weather, "mail"))
    await turn.answer(call("weather"), call("mail"), available=["weather"])
    assert turn.outcomes() == ["ok", "error"]
    await turn.answer(call("weather"), call("mail"), available=[])
    assert turn.outcomes() == ["error", "error"]
    assert len(ran) == 1


async def test_an_unknown_name_is_an_error_for_that_call_alone() -> None:
    """Entry L07 of the field bugs."""
    turn = Turn(explicit(lambda given: "sites", "list_sites"))
    answered = await turn.answer(call("get_sites"), call("list_sites"))
    assert turn.outcomes() == ["error", "ok"]
    assert "list_sites" in text_of(answered[0].report().output)


# -- a middleware that fails


def failing(error: BaseException, *, on: str = "bad") -> Any:
    async def hook(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        if runner.name == on:
            raise error
        return await runner.run(call)

    return wrapped(hook)


@pytest.mark.parametrize("alone", [True, False])
async def test_what_a_middleware_raises_is_raised_as_it_is(alone: bool) -> None:
    error = RuntimeError("of the middleware")
    turn = Turn(explicit(lambda given: "ok"), explicit(lambda given: "ok", "bad"), around=failing(error))
    with pytest.raises(RuntimeError) as raised:
        await turn.answer(call("bad"), *[call()] * (0 if alone else 2))
    assert raised.value is error
    assert turn.outcomes()[0] == "cancelled"
    assert None not in turn.outcomes()


async def test_the_other_calls_are_cancelled_then_and_what_was_done_is_kept() -> None:
    async def forever(given: object) -> None:
        await anyio.sleep_forever()

    async def once_the_first_is_done(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        if runner.name == "bad":
            await done.wait()
            raise RuntimeError
        outcome = await runner.run(call)
        done.set()
        return outcome

    done = anyio.Event()
    tools: list[Tool] = [
        explicit(lambda given: "ok", "quick"),
        explicit(forever, "forever"),
        explicit(lambda given: "ok", "bad"),
    ]
    turn = Turn(*tools, around=wrapped(once_the_first_is_done), parallel=3)
    with pytest.raises(RuntimeError):
        await turn.answer(call("quick"), call("forever"), call("bad"), call("forever"))
    assert turn.outcomes() == ["ok", "cancelled", "cancelled", "cancelled"]
    assert turn.answering[3].report().output == ErrorTextOutput("The call was cancelled before it had a result.")


async def test_of_several_that_fail_the_first_is_raised() -> None:
    async def hook(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        raise RuntimeError(call.tool_call_id)

    turn = Turn(explicit(lambda given: "ok"), around=wrapped(hook), parallel=1)
    with pytest.raises(RuntimeError, match="c0"):
        await turn.answer(*numbered(3))
    assert turn.outcomes() == ["cancelled"] * 3


@pytest.mark.parametrize("count", [1, 2])
@asyncio_only
async def test_a_cancellation_that_a_middleware_raises_itself_is_a_failure_of_it(count: int) -> None:
    turn = Turn(explicit(lambda given: "ok"), around=failing(asyncio.CancelledError("mine"), on="tool"))
    with pytest.raises(asyncio.CancelledError, match="mine"):
        await turn.answer(*[call()] * count)
    assert None not in turn.outcomes()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_failing_tool_of_many_leaves_no_task_behind() -> None:
    ended: list[str] = []

    def noting(name: str) -> Callable[[object], Any]:
        async def execute(given: object) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                ended.append(name)

        return execute

    async def hook(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        if runner.name == "bad":
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            raise RuntimeError
        return await runner.run(call)

    turn = Turn(explicit(noting("a"), "a"), explicit(noting("b"), "b"), explicit(len, "bad"), around=wrapped(hook))
    with pytest.raises(RuntimeError):
        await turn.answer(call("a"), call("b"), call("bad"))
    assert sorted(ended) == ["a", "b"]
