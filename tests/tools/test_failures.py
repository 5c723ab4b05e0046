"""A tool that fails is a result that the model reads. Only what stops the turn itself goes outwards."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from neurolink_mw.protocol import ErrorTextOutput, TextOutput, ToolOutcome
from neurolink_mw.tools import ToolError, tool

from .builders import Turn, asyncio_only, call, explicit, failed, said, until

pytestmark = pytest.mark.anyio

PLACE: contextvars.ContextVar[str] = contextvars.ContextVar("place", default="nowhere")


class Unsaid(Exception):
    def __str__(self) -> str:
        raise RuntimeError("even this fails")


def raising(error: BaseException, *, sync: bool = False) -> Any:
    async def execute(given: object) -> None:
        raise error

    def execute_in_a_thread(given: object) -> None:
        raise error

    return explicit(execute_in_a_thread if sync else execute)


both = pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])


# -- exceptions


@both
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such city"), "The tool 'tool' failed with ValueError: no such city"),
        (KeyError(), "The tool 'tool' failed with KeyError"),
        (KeyError("city"), "The tool 'tool' failed with KeyError: 'city'"),
        (TimeoutError(), "The tool 'tool' failed with TimeoutError"),
        (Unsaid(), "The tool 'tool' failed with Unsaid"),
        (ExceptionGroup("two", [ValueError("x"), KeyError()]), "failed with ExceptionGroup: two (2 sub-exceptions)"),
        (ExceptionGroup("a", [ExceptionGroup("b", [ValueError("x")])]), "The tool 'tool' failed with ValueError: x"),
        (ExceptionGroup("tasks", [ToolError("Ask again.")]), "Ask again."),
        (OSError("a\udcff"), "The tool 'tool' failed with OSError: a?"),
        (asyncio.CancelledError(), "The tool 'tool' failed with CancelledError"),
        (asyncio.CancelledError("mine"), "The tool 'tool' failed with CancelledError: mine"),
    ],
)
async def test_an_exception_is_told_by_its_type_and_its_message(error: BaseException, text: str, sync: bool) -> None:
    assert (await failed(raising(error, sync=sync))).endswith(text)


@both
async def test_a_stop_iteration_is_a_failure_like_any_other(sync: bool) -> None:
    assert "StopIteration" in await failed(raising(StopIteration(), sync=sync))


@both
async def test_a_tool_error_is_told_in_its_own_words(sync: bool) -> None:
    assert await failed(raising(ToolError("Ask for another city."), sync=sync)) == "Ask for another city."
    assert await failed(raising(ToolError(""), sync=sync)) == "The tool 'tool' failed."


async def test_an_assertion_within_a_typed_function_is_a_failure_too() -> None:
    @tool
    async def check(number: int) -> None:
        assert number > 3, "too small"

    assert (await failed(check, {"number": 1})).startswith("The tool 'check' failed with AssertionError: too small")


@both
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("others", [0, 2])
async def test_the_end_of_the_process_goes_outwards(kind: type[BaseException], others: int, sync: bool) -> None:
    async def quick(given: object) -> str:
        return "ok"

    turn = Turn(raising(kind(), sync=sync), explicit(quick, "quick"))
    with pytest.raises(kind):
        await turn.answer(call(), *[call("quick")] * others)
    assert turn.outcomes()[0] == "cancelled"
    assert None not in turn.outcomes()


@both
async def test_so_does_a_group_that_holds_it(sync: bool) -> None:
    group = BaseExceptionGroup("tasks", [BaseExceptionGroup("more", [KeyboardInterrupt()]), ValueError()])
    with pytest.raises(BaseExceptionGroup) as raised:
        await said(raising(group, sync=sync))
    assert raised.group_contains(KeyboardInterrupt)


async def test_a_group_of_cancellations_that_nobody_asked_for_is_a_failure() -> None:
    text = await failed(raising(BaseExceptionGroup("tasks", [asyncio.CancelledError()])))
    assert text == "The tool 'tool' failed with CancelledError"


class Held(Exception):
    """One whose life can be watched."""


async def test_an_exception_does_not_wait_for_the_garbage_collector() -> None:
    seen: list[weakref.ref[Held]] = []

    async def execute(given: object) -> None:
        error = Held()
        seen.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    gc.collect()
    gc.disable()
    try:
        await failed(explicit(execute))
        assert seen[0]() is None
    finally:
        gc.enable()


# -- time


async def test_a_tool_that_never_answers_has_had_its_time() -> None:
    made = explicit(lambda given: anyio.sleep_forever(), timeout=0.02)
    assert await said(made) == ToolOutcome(ErrorTextOutput("The tool 'tool' had no result after 0.02 s."), "timeout")


async def test_the_time_of_a_turns_tools_holds_where_a_tool_sets_none() -> None:
    assert (await said(explicit(lambda given: anyio.sleep_forever()), timeout=0.02)).status == "timeout"
    released = anyio.Event()

    async def patient(given: object) -> str:
        released.set()
        await anyio.sleep(0.05)
        return "ok"

    assert (await said(explicit(patient, timeout=5), timeout=0.01)).status == "ok"


async def test_a_tool_is_cancelled_when_its_time_is_over_and_may_tidy_up() -> None:
    tidied = []

    async def tidy(given: object) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            tidied.append(True)

    assert (await said(explicit(tidy, timeout=0.02))).status == "timeout"
    assert tidied == [True]


async def test_a_time_limit_of_the_tools_own_is_an_error_and_not_a_timeout() -> None:
    async def own(given: object) -> None:
        with anyio.fail_after(0.01):
            await anyio.sleep_forever()

    assert "failed with TimeoutError" in await failed(explicit(own, timeout=5))


# -- cancellations


async def cancelled_while(turn: Turn, *calls: Any, when: Callable[[], object]) -> None:
    """Cancel the turn when something has happened. It is raised, as a cancellation."""
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(until_then, when, scope.cancel)
            await turn.answer(*calls)
            raise AssertionError("it was not cancelled")
    assert scope.cancelled_caught


async def until_then(condition: Callable[[], object], then: Callable[[], object]) -> None:
    await until(condition)
    then()


@pytest.mark.parametrize("count", [1, 3])
async def test_the_turns_own_cancellation_is_raised_and_every_call_is_answered(count: int) -> None:
    started = []

    async def forever(given: object) -> None:
        started.append(given)
        await anyio.sleep_forever()

    turn = Turn(explicit(forever), parallel=2)
    await cancelled_while(turn, *[call()] * count, when=lambda: len(started) == min(2, count))
    assert turn.outcomes() == ["cancelled"] * count
    output = turn.answering[0].report().output
    assert output == ErrorTextOutput("The call was cancelled before it had a result.")


async def test_a_turn_that_is_cancelled_already_runs_nothing_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    async def forever(given: object) -> None:
        await anyio.sleep_forever()

    turn = Turn(explicit(forever), explicit(lambda given: "ok", "sync"))
    for calls in ([call()], [call("sync")], [call(), call("sync")]) * 4:  # trio starts its tasks in any order
        with anyio.CancelScope() as scope:
            scope.cancel()
            await turn.answer(*calls)
        assert scope.cancelled_caught
        assert turn.outcomes() == ["cancelled"] * len(calls)
    assert caplog.text == ""  # nothing was left behind


async def test_what_was_done_before_it_is_kept() -> None:
    waiting = anyio.Event()

    async def quick(given: object) -> str:
        return "done"

    async def forever(given: object) -> None:
        waiting.set()
        await anyio.sleep_forever()

    turn = Turn(explicit(quick, "quick"), explicit(forever, "forever"), parallel=1)
    await cancelled_while(turn, call("quick"), call("forever"), call("quick"), when=waiting.is_set)
    assert turn.outcomes() == ["ok", "cancelled", "cancelled"]
    assert [one.tries for one in turn.answering] == [1, 1, 0]


@asyncio_only
async def test_a_cancellation_by_the_event_loop_is_the_turns_own_as_well() -> None:
    started = asyncio.Event()

    async def forever(given: object) -> None:
        started.set()
        await anyio.sleep_forever()

    turn = Turn(explicit(forever))
    task = asyncio.create_task(turn.one(call()))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert turn.outcomes() == ["cancelled"]


@asyncio_only
async def test_a_tool_that_awaits_what_somebody_else_cancelled_has_failed() -> None:
    async def joined(given: object) -> None:
        other = asyncio.create_task(asyncio.sleep(60))
        asyncio.get_running_loop().call_soon(other.cancel)
        await other

    turn = Turn(explicit(joined), explicit(lambda given: "ok", "other"))
    await turn.answer(call(), call("other"), call())
    assert turn.outcomes() == ["error", "ok", "error"]


@asyncio_only
async def test_so_has_one_that_cancels_its_own_task() -> None:
    async def gone(given: object) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    assert "failed with CancelledError" in await failed(explicit(gone))


async def test_a_timeout_leaves_no_trace_that_makes_a_later_failure_look_like_a_cancellation() -> None:
    tries = []

    async def first_slow_then_cancelled(given: object) -> None:
        tries.append(given)
        if len(tries) == 1:
            await anyio.sleep_forever()
        raise asyncio.CancelledError

    made = explicit(first_slow_then_cancelled, timeout=0.02, retries=1, retry_delay=0)
    assert "failed with CancelledError" in await failed(made)


# -- threads


async def test_a_sync_function_runs_in_a_thread_and_sees_the_callers_context_variables() -> None:
    PLACE.set("here")

    def where(given: object) -> str:
        return f"{PLACE.get()} {threading.current_thread() is threading.main_thread()}"

    assert (await said(explicit(where))).output == TextOutput("here False")


async def test_an_async_function_sees_them_too_and_changes_none_of_them() -> None:
    PLACE.set("here")

    async def where(given: object) -> str:
        seen = PLACE.get()
        PLACE.set("there")
        return seen

    assert (await said(explicit(where))).output == TextOutput("here")
    assert PLACE.get() == "here"


async def test_what_a_sync_function_returns_is_awaited_where_it_can_be() -> None:
    async def later() -> str:
        await anyio.lowlevel.checkpoint()
        return "later"

    class Later:
        def __await__(self) -> Any:
            return later().__await__()

    made: list[Callable[[object], Awaitable[str]]] = [lambda given: later(), lambda given: Later()]
    for execute in made:
        assert (await said(explicit(execute))).output == TextOutput("later")


async def test_sync_functions_run_side_by_side() -> None:
    meeting = threading.Barrier(3, timeout=5)

    def meet(given: object) -> str:
        meeting.wait()
        return "met"

    turn = Turn(explicit(meet))
    await turn.answer(call(), call(), call())
    assert turn.outcomes() == ["ok"] * 3
