"""A tool that ignores its cancellation does not keep the turn. It is left to itself, and what becomes of it is logged
by its type alone."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import anyio
import pytest
from anyio import to_thread

from neurolink_mw.protocol import TextOutput

from .builders import SECRET, Hang, Stubborn, Turn, asyncio_only, call, explicit, hanging_threads, said, until
from .test_failures import cancelled_while

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[Stubborn, Hang], ids=["async", "sync"])
async def hung(request: pytest.FixtureRequest) -> AsyncIterator[Stubborn | Hang]:
    """A function that goes on until it is released."""
    made: Stubborn | Hang = request.param()
    yield made
    made.released.set()
    await until(lambda: made.ended == made.started)


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name.startswith("neurolink_mw")]


PATIENCE = 0.1
"""Seconds in which a thread has surely begun."""

LEFT = "the tool 'tool' was cancelled and goes on all the same: it is left to itself"


async def test_its_time_is_over_all_the_same(hung: Stubborn | Hang, caplog: pytest.LogCaptureFixture) -> None:
    with anyio.fail_after(4):
        assert (await said(explicit(hung, timeout=PATIENCE))).status == "timeout"
    assert (hung.started, hung.ended) == (1, 0)
    assert messages(caplog) == [LEFT]


@pytest.mark.parametrize("count", [1, 2])
async def test_the_turn_is_cancelled_all_the_same(hung: Stubborn | Hang, count: int) -> None:
    turn = Turn(explicit(hung))
    with anyio.fail_after(4):
        await cancelled_while(turn, *[call()] * count, when=lambda: hung.started == count)
    assert turn.outcomes() == ["cancelled"] * count
    assert hung.ended == 0


async def test_it_may_be_tried_again_meanwhile(hung: Stubborn | Hang) -> None:
    assert (await said(explicit(hung, timeout=PATIENCE, retries=1, retry_delay=0))).status == "timeout"
    assert (hung.started, hung.ended) == (2, 0)


async def test_what_it_says_later_changes_nothing(hung: Stubborn | Hang, caplog: pytest.LogCaptureFixture) -> None:
    turn = Turn(explicit(hung, timeout=PATIENCE))
    await turn.one(call())
    hung.released.set()
    await until(lambda: hung.ended)
    assert turn.outcomes() == ["timeout"]
    assert messages(caplog) == [LEFT]


async def test_how_it_fails_later_is_logged_by_type_alone(
    hung: Stubborn | Hang, caplog: pytest.LogCaptureFixture
) -> None:
    hung.error = ValueError(SECRET)
    await said(explicit(hung, timeout=PATIENCE), {"password": SECRET})
    hung.released.set()
    await until(lambda: len(messages(caplog)) == 2)
    assert messages(caplog) == [LEFT, "the tool 'tool', which had been left to itself, ended with ValueError"]
    assert all(one.levelno == logging.WARNING for one in caplog.records)
    assert SECRET not in caplog.text


async def test_even_the_end_of_the_process_is_only_logged_there(
    hung: Stubborn | Hang, caplog: pytest.LogCaptureFixture
) -> None:
    hung.error = SystemExit(3)
    await said(explicit(hung, timeout=PATIENCE))
    hung.released.set()
    await until(lambda: len(messages(caplog)) == 2)
    assert messages(caplog)[1].endswith("ended with SystemExit")


async def test_one_that_stops_when_it_is_told_leaves_no_word(caplog: pytest.LogCaptureFixture) -> None:
    assert (await said(explicit(lambda given: anyio.sleep_forever(), timeout=0.02))).status == "timeout"
    assert messages(caplog) == []


async def test_a_thread_that_was_left_takes_no_place_from_others() -> None:
    limiter = to_thread.current_default_thread_limiter()
    before, limiter.total_tokens = limiter.total_tokens, 1
    try:
        with hanging_threads() as hang, anyio.fail_after(4):
            assert (await said(explicit(hang, timeout=PATIENCE))).status == "timeout"
            assert (await said(explicit(lambda given: "ok"))).output == TextOutput("ok")
            assert await to_thread.run_sync(lambda: "theirs") == "theirs"
            assert hang.ended == 0
    finally:
        limiter.total_tokens = before


async def test_a_tool_that_finds_no_free_thread_has_its_time_too(caplog: pytest.LogCaptureFixture) -> None:
    limiter = to_thread.current_default_thread_limiter()
    before, limiter.total_tokens = limiter.total_tokens, 1
    ran: list[object] = []
    try:
        async with anyio.create_task_group() as tasks:
            with hanging_threads() as hang:
                tasks.start_soon(to_thread.run_sync, hang, None)
                await until(lambda: hang.started)
                assert (await said(explicit(ran.append, timeout=0.02))).status == "timeout"
    finally:
        limiter.total_tokens = before
    assert ran == []
    assert messages(caplog) == []  # nothing was left behind


@asyncio_only
async def test_an_answer_that_is_closed_cancels_its_tool() -> None:
    started, ended = anyio.Event(), anyio.Event()

    async def tidy(given: object) -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    turn = Turn(explicit(tidy))
    answering = turn.answer(call())
    answering.send(None)  # by hand, as by an event loop that is torn down
    with anyio.fail_after(4):
        await started.wait()
        answering.close()
        await ended.wait()
    assert turn.outcomes() == ["cancelled"]
