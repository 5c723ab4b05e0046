"""A stream that nobody closed is closed on its event loop, and a warning says so."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
import anyio.to_thread
import pytest
import trio

from neurolink_mw.protocol import CallOptions, Closer, PartStream, StreamPart, TextDelta, primed
from neurolink_mw.protocol.stream_result import StreamResult
from neurolink_mw.testing import HOLD, ScriptedModel

from .builders import HELLO, Connection, collect_garbage, layered, passed_on, plainly, read

pytestmark = pytest.mark.anyio

OPTIONS = CallOptions.from_text("hi")
DROPPED = "a stream was dropped before its end: leave it by `async with"

depths = pytest.mark.parametrize("layers", [0, 1, 2, 3, 10])


class Warned:
    """The warnings of a block. A started generator is also warned about by trio itself."""

    def __enter__(self) -> Warned:
        self._recorder = warnings.catch_warnings(record=True)
        self._all = self._recorder.__enter__()
        warnings.simplefilter("always")
        return self

    def __exit__(self, *exc: object) -> None:
        collect_garbage()
        self._recorder.__exit__(None, None, None)

    @property
    def ours(self) -> list[str]:
        return [str(w.message) for w in self._all if w.category is ResourceWarning and DROPPED in str(w.message)]

    @property
    def count(self) -> int:
        return len(self._all)


async def freed_within_a_second(connection: Connection) -> None:
    with anyio.fail_after(1):
        await connection.freed.wait()
    assert connection.closed == 1


async def until_idle() -> None:
    for _ in range(20):
        await anyio.lowlevel.checkpoint()


@depths
async def test_an_unread_stream_that_is_dropped_is_closed_within_a_second_with_a_warning(layers: int) -> None:
    connection = Connection()
    stream = layered(connection.stream(), layers)
    with Warned() as warned:
        del stream
        collect_garbage()
        await freed_within_a_second(connection)
    assert len(warned.ours) == 1


@depths
async def test_a_started_stream_that_is_dropped_is_closed_within_a_second_with_a_warning(layers: int) -> None:
    connection = Connection(held=True)
    stream = layered(connection.stream(), layers, plainly)
    await anext(stream)
    with Warned() as warned:
        del stream
        collect_garbage()
        await freed_within_a_second(connection)
    assert len(warned.ours) == 1


async def test_an_authors_generator_that_closes_its_stream_does_so_when_it_is_dropped() -> None:
    connection = Connection(held=True)
    stream = layered(connection.stream(), author=passed_on)
    await anext(stream)
    with Warned():  # on trio it warns by itself; on asyncio all is closed in order
        del stream
        collect_garbage()
        await freed_within_a_second(connection)
        await until_idle()
    assert (connection.closed, connection.left) == (1, True)


async def test_a_primed_stream_that_is_dropped_is_closed_within_a_second_with_a_warning() -> None:
    connection = Connection(held=True)
    result = await primed(StreamResult(layered(connection.stream(), author=plainly)))
    with Warned() as warned:
        del result
        collect_garbage()
        await freed_within_a_second(connection)
    assert len(warned.ours) == 1


async def test_a_loop_that_is_left_by_break_without_closing_is_cleaned_up_after() -> None:
    connection = Connection(held=True)

    async def careless() -> None:
        async for part in layered(connection.stream(), author=plainly):
            if isinstance(part, TextDelta):
                break

    with Warned() as warned:
        await careless()
        collect_garbage()
        await freed_within_a_second(connection)
    assert len(warned.ours) == 1


@pytest.mark.parametrize("layers", [0, 10])
async def test_a_stream_stays_open_while_somebody_iterates_it_without_a_handle(layers: int) -> None:
    model = ScriptedModel(["Hello"])
    seen: list[StreamPart] = []
    with Warned() as warned:
        async for part in layered((await model.do_stream(OPTIONS)).stream, layers):
            collect_garbage()
            assert model.calls[0].closed == 0
            seen.append(part)
    assert [part.type for part in seen] == ["stream-start", "text-start", "text-delta", "text-end", "finish"]
    assert model.calls[0].closed == 1
    assert warned.count == 0


async def test_a_stream_dropped_while_only_its_iterator_is_alive_waits_for_that() -> None:
    connection = Connection(held=True)
    iterator = layered(connection.stream(), author=plainly).__aiter__()
    collect_garbage()
    assert await anext(iterator) == HELLO[0]
    assert connection.closed == 0
    with Warned() as warned:
        del iterator
        collect_garbage()
        await freed_within_a_second(connection)
    assert len(warned.ours) == 1


async def test_a_stream_dropped_in_another_thread_is_closed_on_its_own_loop() -> None:
    connection = Connection()
    closed_in: list[int] = []

    async def close() -> None:
        closed_in.append(threading.get_ident())
        await connection.close()

    box = [layered(PartStream(connection.parts(), close=close))]
    with Warned() as warned:
        await anyio.to_thread.run_sync(box.clear)
        await freed_within_a_second(connection)
    assert closed_in == [threading.get_ident()]
    assert len(warned.ours) == 1


async def test_a_stream_that_was_made_outside_of_any_loop_is_closed_on_the_one_where_it_is_dropped() -> None:
    connection = Connection()
    box = await anyio.to_thread.run_sync(lambda: [connection.stream()])
    with Warned() as warned:
        box.clear()
        await freed_within_a_second(connection)
    assert len(warned.ours) == 1


async def test_a_dropped_stream_is_closed_where_warnings_are_errors_too(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda info: raised.append(info.exc_type))
    connection = Connection()
    box = [connection.stream()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        box.clear()
        await freed_within_a_second(connection)
    assert raised == [ResourceWarning]


async def test_a_thousand_dropped_streams_leave_nothing_open() -> None:
    open_streams = 1000
    all_closed = anyio.Event()

    async def close() -> None:
        nonlocal open_streams
        await anyio.lowlevel.checkpoint()
        open_streams -= 1
        if open_streams == 0:
            all_closed.set()

    async def source() -> AsyncIterator[StreamPart]:
        for part in HELLO:
            yield part

    with Warned() as warned:
        for index in range(1000):
            stream = layered(PartStream(source(), close=close), index % 4, plainly)
            if index % 2:
                await anext(stream)
            del stream
        collect_garbage()
        with anyio.fail_after(10):
            await all_closed.wait()
    assert len(warned.ours) == 1000


class Sealed(Exception):
    pass


@pytest.mark.parametrize("error", [Sealed, BaseException])
async def test_a_close_that_fails_in_the_background_harms_nobody(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    tried, other = anyio.Event(), Connection()

    async def fail() -> None:
        tried.set()
        raise error("my secret")

    box = [PartStream(Connection().parts(), close=fail), other.stream()]
    with Warned():
        box.clear()
        with anyio.fail_after(1):
            await tried.wait()
        await freed_within_a_second(other)
    assert error.__name__ in caplog.text
    assert "my secret" not in caplog.text


# ------------------------------------------------------------------------------------------------------------- silence


@depths
async def test_a_stream_that_was_read_to_its_end_and_dropped_is_no_reason_to_warn(layers: int) -> None:
    connection = Connection()
    stream = layered(connection.stream(), layers)
    with Warned() as warned:
        await read(stream)
        del stream
        collect_garbage()
        await until_idle()
    assert connection.closed == 1
    assert warned.count == 0


@depths
async def test_a_stream_whose_source_failed_and_that_was_dropped_is_no_reason_to_warn(layers: int) -> None:
    connection = Connection()

    async def source() -> AsyncIterator[StreamPart]:
        yield HELLO[0]
        raise OSError("reset")

    stream = layered(PartStream(source(), close=connection.close), layers)
    with Warned() as warned:
        with pytest.raises(OSError, match="reset"):
            await read(stream)
        del stream
        collect_garbage()
        await until_idle()
    assert connection.closed == 1
    assert warned.count == 0


async def test_an_adapter_that_calls_its_own_closer_is_silent_and_leaves_no_late_task() -> None:
    connection = Connection()
    closer = Closer(connection.close)

    async def adapter() -> AsyncIterator[StreamPart]:
        async for part in connection.parts():
            yield part
        await closer()

    with Warned() as warned:
        assert await read(PartStream(adapter(), close=closer)) == HELLO
        collect_garbage()
        await until_idle()
    assert connection.closed == 1
    assert warned.count == 0


async def test_a_closed_stream_that_is_dropped_is_no_reason_to_warn() -> None:
    connection = Connection()
    stream = layered(connection.stream())
    await anext(stream)
    await stream.aclose()
    with Warned() as warned:
        del stream
        collect_garbage()
        await until_idle()
    assert connection.closed == 1
    assert warned.count == 0


async def test_a_stream_with_nothing_to_close_may_be_dropped() -> None:
    with Warned() as warned:
        box = [layered(PartStream.of(HELLO))]
        box.clear()
        collect_garbage()
        await until_idle()
    assert warned.count == 0


# --------------------------------------------------------------------------------------------------- after the loop


def run_on_asyncio(fn: Callable[[], Awaitable[PartStream]]) -> PartStream:
    async def main() -> PartStream:
        return await fn()

    return asyncio.run(main())


def run_on_trio(fn: Callable[[], Awaitable[PartStream]]) -> PartStream:
    made: PartStream = trio.run(fn)
    return made


class Farewell(Closer):
    """A closer that notes how it was left."""

    __slots__ = ("events",)

    def __init__(self) -> None:
        self.events: list[str] = []
        super().__init__(self._note)

    async def _note(self) -> None:
        self.events.append("closed")

    def without_loop(self) -> None:
        super().without_loop()
        self.events.append("without loop")


@pytest.mark.parametrize("run", [run_on_asyncio, run_on_trio])
def test_a_stream_dropped_after_its_loop_ended_is_told_so_and_warns(
    run: Callable[[Callable[[], Awaitable[PartStream]]], PartStream],
) -> None:
    farewell = Farewell()

    async def make() -> PartStream:
        return layered(PartStream(Connection().parts(), close=farewell))

    box = [run(make)]
    with Warned() as warned:
        box.clear()
    assert len(warned.ours) == 1
    assert farewell.events == ["without loop"]
    assert farewell.done


def test_a_stream_that_never_saw_a_loop_is_told_so_and_warns() -> None:
    farewell = Farewell()
    box = [PartStream(Connection().parts(), close=farewell)]
    with Warned() as warned:
        box.clear()
    assert len(warned.ours) == 1
    assert farewell.events == ["without loop"]


async def test_a_held_model_that_is_dropped_is_closed() -> None:
    model = ScriptedModel([[*HELLO[:2], HOLD]])
    stream = (await model.do_stream(OPTIONS)).stream
    await anext(stream)
    with Warned() as warned:
        del stream
        collect_garbage()
        with anyio.fail_after(1):
            await model.calls[0]._closing.wait()
    assert model.calls[0].closed == 1
    assert len(warned.ours) == 1


def test_streams_that_are_held_when_a_trio_program_ends_are_closed_without_a_task() -> None:
    """After trio's main task no task may begin; a stream that is dropped only then must not break the run."""
    without_loop: list[bool] = []

    class Abort(Closer):
        __slots__ = ()

        def without_loop(self) -> None:
            super().without_loop()
            without_loop.append(True)

    async def held() -> AsyncIterator[StreamPart]:
        yield TextDelta("0", "a")
        await anyio.sleep_forever()

    async def never() -> None:
        raise AssertionError("nothing can be awaited any more")

    def stream() -> PartStream:
        return PartStream(held(), close=Abort(never))

    async def holder() -> AsyncIterator[None]:
        kept = [stream() for _ in range(20)]
        try:
            yield
        finally:  # which trio runs when its main task is done
            del kept
            collect_garbage()
            for _ in range(3):  # while trio still runs what was sent to it
                await trio.lowlevel.cancel_shielded_checkpoint()

    async def main() -> AsyncIterator[None]:
        generator = holder()
        await anext(generator)
        return generator

    with Warned():
        trio.run(main)
    assert without_loop == [True] * 20
