"""The pump: a blocking stream read by a thread for a task, one thread only while there are bytes to wait for."""

from __future__ import annotations

import contextvars
import gc
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import anyio
import anyio.to_thread
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neurolink_mw.providers.bedrock.pump import Answer, Event, Pump
from neurolink_mw.providers.bedrock.threads import NoThread, Threads

from .wire_builders import until

pytestmark = pytest.mark.anyio

Call = Callable[[], tuple[Answer, Iterable[Event] | None]]


class Source:
    """A stream that hands out events, and may block until it is closed."""

    def __init__(self, events: Iterable[Event], *, blocks: bool = False, fails: BaseException | None = None) -> None:
        self._events = events
        self._blocks = blocks
        self._fails = fails
        self.closed = 0
        self.ended = threading.Event()
        self.blocked = threading.Event()

    def __iter__(self) -> Iterator[Event]:
        yield from self._events
        if self._blocks:
            self.blocked.set()
            self.ended.wait()
            raise ValueError("read of a closed stream")
        if self._fails is not None:
            raise self._fails

    def close(self) -> None:
        self.closed += 1
        self.ended.set()

    def __call__(self) -> tuple[Answer, Iterable[Event]]:
        return {"head": 1}, self


def numbered(count: int) -> list[Event]:
    return [{"n": number} for number in range(count)]


async def read(pump: Pump) -> list[Any]:
    read: list[Any] = []
    while batch := await pump.batch():
        read += [event["n"] for event in batch]
    return read


async def test_the_answer_comes_first_then_every_event_in_order() -> None:
    source = Source(numbered(1000))
    pump = Pump(Threads(1), source)
    assert await pump.answer() == {"head": 1}
    assert await read(pump) == list(range(1000))
    assert pump.failure is None
    assert source.closed == 1


async def test_a_call_without_a_stream_is_its_answer_alone() -> None:
    pump = Pump(Threads(1), lambda: ({"whole": True}, None))
    assert await pump.answer() == {"whole": True}
    assert await pump.batch() == []


async def test_a_call_that_fails_has_no_answer_and_says_why() -> None:
    failure = ValueError("no")

    def call() -> tuple[Answer, None]:
        raise failure

    pump = Pump(Threads(1), call)
    assert await pump.answer() is None
    assert pump.failure is failure
    assert failure.__traceback__ is None


async def test_a_stream_that_fails_gives_what_came_before_and_says_why() -> None:
    failure = OSError("cut")
    pump = Pump(Threads(1), Source(numbered(3), fails=failure))
    await pump.answer()
    assert await read(pump) == [0, 1, 2]
    assert pump.failure is failure


async def test_the_thread_is_given_back_when_the_reader_stops_and_taken_again_when_it_goes_on() -> None:
    threads = Threads(1)
    first = Pump(threads, Source(numbered(500)), bound=16, low=4)
    await first.answer()
    await anyio.to_thread.run_sync(until, lambda: threads.busy == 0)
    second = Pump(threads, Source(numbered(10)))
    await second.answer()
    assert await read(second) == list(range(10))
    assert await read(first) == list(range(500))


async def test_no_more_is_read_ahead_than_the_bound() -> None:
    made: list[int] = []

    def events() -> Iterator[Event]:
        for number in range(1000):
            made.append(number)
            yield {"n": number}

    threads = Threads(1)
    pump = Pump(threads, Source(events()), bound=16, low=4)
    await pump.answer()
    await anyio.to_thread.run_sync(until, lambda: threads.busy == 0)
    assert len(made) == 16
    pump.abort()


async def test_the_context_of_the_task_is_that_of_the_thread() -> None:
    request = contextvars.ContextVar("request", default="none")

    def events() -> Iterator[Event]:
        yield from ({"n": request.get()} for _ in range(40))

    request.set("mine")
    pump = Pump(Threads(2), lambda: ({"head": request.get()}, Source(events())), bound=8, low=2)
    request.set("later")
    assert await pump.answer() == {"head": "mine"}
    assert await read(pump) == ["mine"] * 40


async def test_a_reader_that_always_finds_events_lets_others_run_and_can_be_cancelled() -> None:
    def events() -> Iterator[Event]:
        while True:
            yield {"n": 1}

    threads = Threads(1)
    pump = Pump(threads, Source(events()))
    await pump.answer()
    with anyio.move_on_after(0.02) as patience:
        while await pump.batch():
            pass
    assert patience.cancelled_caught
    pump.abort()
    await anyio.to_thread.run_sync(until, lambda: threads.busy == 0)


@given(count=st.integers(0, 300), bound=st.integers(1, 40), low=st.integers(0, 40), slow=st.sets(st.integers(0, 20)))
@settings(max_examples=40, deadline=None)
def test_every_event_comes_once_and_in_order_whatever_the_bounds(
    count: int, bound: int, low: int, slow: set[int]
) -> None:
    async def main() -> list[Any]:
        pump = Pump(Threads(1, idle_s=0.01), Source(numbered(count)), bound=bound, low=min(low, bound - 1))
        await pump.answer()
        read: list[Any] = []
        while batch := await pump.batch():
            read += [event["n"] for event in batch]
            if len(read) % 21 in slow:  # a reader that gives the thread time to park
                await anyio.wait_all_tasks_blocked()
        return read

    assert anyio.run(main) == list(range(count))


# ---------------------------------------------------------------------------------------------------- aborting


async def test_a_stream_without_a_known_socket_is_asked_once_to_end_itself() -> None:
    threads, source = Threads(1), Source(numbered(2), blocks=True)
    pump = Pump(threads, source)
    await pump.answer()
    await anyio.to_thread.run_sync(source.blocked.wait)
    pump.abort()
    pump.abort()
    await anyio.to_thread.run_sync(until, lambda: threads.busy == 0)
    assert source.closed == 1
    with pytest.raises(anyio.ClosedResourceError):
        await pump.batch()


async def test_a_waiting_reader_is_told_of_the_abort() -> None:
    source = Source([], blocks=True)
    pump = Pump(Threads(1), source)
    await pump.answer()
    async with anyio.create_task_group() as tasks:

        async def reader() -> None:
            with pytest.raises(anyio.ClosedResourceError):
                await pump.batch()

        tasks.start_soon(reader)
        await anyio.wait_all_tasks_blocked()
        pump.abort()


async def test_a_parked_stream_is_closed_where_it_is_aborted() -> None:
    threads, source = Threads(1), Source(numbered(100))
    pump = Pump(threads, source, bound=8, low=2)
    await pump.answer()
    await anyio.to_thread.run_sync(until, lambda: threads.busy == 0)
    pump.abort()
    assert source.closed == 1


async def test_a_stream_that_waits_for_a_thread_again_is_closed_where_it_is_aborted() -> None:
    threads, source, busy = Threads(1), Source(numbered(100)), Source([], blocks=True)
    pump = Pump(threads, source, bound=8, low=2)
    await pump.answer()
    await anyio.to_thread.run_sync(until, lambda: threads.busy == 0)
    other = Pump(threads, busy)
    await other.answer()
    await pump.batch()
    pump.abort()
    assert source.closed == 1
    other.abort()


async def test_a_call_that_is_aborted_before_it_has_a_thread_is_never_made() -> None:
    threads, busy, made = Threads(1), Source([], blocks=True), list[int]()
    blocking = Pump(threads, busy)
    await blocking.answer()
    pump = Pump(threads, lambda: made.append(1) or ({}, None))  # type: ignore[func-returns-value]
    pump.abort()
    with pytest.raises(anyio.ClosedResourceError):
        await pump.answer()
    blocking.abort()
    await anyio.to_thread.run_sync(until, lambda: threads.busy == 0)
    assert made == []


async def test_a_stream_that_is_opened_after_the_abort_is_closed_unread() -> None:
    source, asked, opening = Source(numbered(3)), threading.Event(), threading.Event()

    def call() -> tuple[Answer, Iterable[Event]]:
        asked.set()
        opening.wait()
        return {}, source

    threads = Threads(1)
    pump = Pump(threads, call)
    await anyio.to_thread.run_sync(asked.wait)
    pump.abort()
    opening.set()
    await anyio.to_thread.run_sync(until, lambda: threads.busy == 0)
    assert source.closed == 1


# ----------------------------------------------------------------------------------------------- waiting for a thread


async def test_a_call_that_gets_no_thread_in_time_fails() -> None:
    threads, busy = Threads(1, wait_s=0.02), Source([], blocks=True)
    blocking = Pump(threads, busy)
    await blocking.answer()
    pump = Pump(threads, lambda: ({}, None))
    assert await pump.answer() is None
    assert isinstance(pump.failure, NoThread)
    assert str(pump.failure).startswith("none of the pool's 1 threads became free within 0.02 s")
    blocking.abort()


async def test_a_parked_stream_that_gets_no_thread_in_time_gives_what_it_has_and_fails() -> None:
    threads, busy, source = Threads(1, wait_s=0.02), Source([], blocks=True), Source(numbered(100))
    pump = Pump(threads, source, bound=8, low=2)
    await pump.answer()
    await anyio.to_thread.run_sync(until, lambda: threads.busy == 0)
    blocking = Pump(threads, busy)
    await blocking.answer()
    assert await read(pump) == list(range(8))
    assert isinstance(pump.failure, NoThread)
    assert source.closed == 1
    blocking.abort()


# ---------------------------------------------------------------------------------------------------- leaving nothing


def test_a_stream_whose_event_loop_has_ended_gives_its_thread_back(anyio_backend: str) -> None:
    threads, go = Threads(1), threading.Event()

    def events() -> Iterator[Event]:
        go.wait()
        yield {"n": 1}
        raise AssertionError("read on for nobody")

    source = Source(events())

    async def left_waiting() -> Pump:
        pump = Pump(threads, source)
        await pump.answer()
        pump._bell.arm()  # a reader that waits, and that the loop's end leaves so
        return pump

    pump = anyio.run(left_waiting, backend=anyio_backend)
    go.set()
    until(lambda: threads.busy == 0)
    assert source.closed == 1
    assert pump.failure is None


async def test_a_finished_pump_keeps_nothing_of_the_call() -> None:
    class Request:
        pass

    request = Request()
    alive = weakref.ref(request)

    def calling(request: Request) -> Call:
        return lambda: ({"head": request is not None}, Source(numbered(3)))

    pump = Pump(Threads(1), calling(request))
    del request
    await pump.answer()
    await read(pump)
    gc.collect()
    assert alive() is None
