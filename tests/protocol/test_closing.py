"""A stream owns its closing: whoever leaves it, and however, the source is freed once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import anyio
import pytest

from neurolink_mw.protocol import Closer, PartStream, StreamPart, TextDelta

from .builders import HELLO, Connection, layered, passed_on, read, unchanged

pytestmark = pytest.mark.anyio

depths = pytest.mark.parametrize("layers", [0, 1, 2, 3, 10])


@depths
async def test_closing_an_unread_stream_frees_its_source_once(layers: int) -> None:
    connection = Connection()
    await layered(connection.stream(), layers).aclose()
    assert connection.closed == 1


@depths
async def test_closing_twice_frees_once(layers: int) -> None:
    connection = Connection()
    stream = layered(connection.stream(), layers)
    await stream.aclose()
    await stream.aclose()
    async with stream:
        pass
    assert connection.closed == 1


async def test_closing_every_stream_of_a_chain_frees_once() -> None:
    connection = Connection()
    source = connection.stream()
    middle = source.through(passed_on)
    outer = middle.map(unchanged)
    for stream in (middle, source, outer):
        await stream.aclose()
    assert connection.closed == 1


@depths
async def test_a_stream_that_is_left_by_break_frees_its_source(layers: int) -> None:
    connection = Connection(held=True)
    async with layered(connection.stream(), layers) as stream:
        async for part in stream:
            if isinstance(part, TextDelta):
                break
        assert connection.closed == 0
    assert (connection.closed, connection.left) == (1, True)


@depths
async def test_a_stream_that_is_left_by_an_exception_frees_its_source(layers: int) -> None:
    connection = Connection(held=True)
    with pytest.raises(ValueError, match="mine"):  # noqa: PT012  # raised by the consumer
        async with layered(connection.stream(), layers) as stream:
            await anext(stream)
            raise ValueError("mine")
    assert (connection.closed, connection.left) == (1, True)


@depths
async def test_a_stream_that_is_left_by_cancellation_frees_its_source(layers: int) -> None:
    connection = Connection(held=True)
    async with anyio.create_task_group() as tasks:

        async def reader() -> None:
            async with layered(connection.stream(), layers) as stream:
                await read(stream)

        tasks.start_soon(reader)
        await connection.waiting.wait()
        tasks.cancel_scope.cancel()
    assert (connection.closed, connection.left) == (1, True)


async def test_what_an_author_does_at_the_end_runs_before_the_source_is_freed() -> None:
    events: list[str] = []

    def author(name: str) -> Callable[[PartStream], AsyncIterator[StreamPart]]:
        async def through(parts: PartStream) -> AsyncIterator[StreamPart]:
            try:
                async for part in parts:
                    yield part
            finally:
                await anyio.lowlevel.checkpoint()
                events.append(name)

        return through

    async def close() -> None:
        events.append("source")

    async with PartStream(Connection().parts(), close=close).through(author("in")).through(author("out")) as stream:
        await anext(stream)
    assert events == ["out", "in", "source"]


async def test_a_source_without_a_close_function_is_closed_by_its_generator() -> None:
    connection = Connection()
    async with layered(PartStream(connection.parts())) as stream:
        await anext(stream)
    assert connection.left


async def test_a_source_that_ends_is_freed_at_once() -> None:
    connection = Connection()
    stream = layered(connection.stream())
    await read(stream)
    assert connection.closed == 1
    await stream.aclose()
    assert connection.closed == 1


async def test_a_source_that_fails_is_freed_at_once_and_its_error_is_what_the_reader_gets() -> None:
    closed = []

    async def source() -> AsyncIterator[StreamPart]:
        yield HELLO[0]
        raise OSError("reset")

    async def close() -> None:
        closed.append(True)
        raise ValueError("nothing left to close")

    with pytest.raises(OSError, match="reset"):
        await read(PartStream(source(), close=close))
    assert closed == [True]


async def test_an_adapters_own_closer_and_the_streams_close_are_one() -> None:
    connection = Connection()
    closer = Closer(connection.close)

    async def adapter() -> AsyncIterator[StreamPart]:
        async for part in connection.parts():
            yield part
        await closer()

    async with PartStream(adapter(), close=closer) as stream:
        await read(stream)
    assert connection.closed == 1


# ------------------------------------------------------------------------------------------------ from another task


async def closing_while_read(stream: PartStream, connection: Connection) -> list[str]:
    """What the reader of a stream sees that another task closes while its read waits."""
    events: list[str] = []
    async with anyio.create_task_group() as tasks:

        async def reader() -> None:
            try:
                async for part in stream:
                    events.append(part.type)
            except Exception as error:
                events.append(type(error).__name__)

        tasks.start_soon(reader)
        await connection.waiting.wait()
        await stream.aclose()
        events.append("closed")
    return events


@depths
async def test_a_read_that_waits_ends_when_another_task_closes_the_stream(layers: int) -> None:
    connection = Connection(held=True)
    events = await closing_while_read(layered(connection.stream(), layers), connection)
    assert events == [*(part.type for part in HELLO), "ClosedResourceError", "closed"]
    assert (connection.closed, connection.left) == (1, True)


async def test_the_reader_learns_that_its_stream_was_closed_also_where_the_source_just_ends() -> None:
    connection = Connection()

    async def source() -> AsyncIterator[StreamPart]:
        connection.waiting.set()
        await connection.freed.wait()
        for part in HELLO[:0]:
            yield part

    events = await closing_while_read(PartStream(source(), close=connection.close), connection)
    assert events == ["ClosedResourceError", "closed"]


async def test_a_stream_that_is_read_and_has_no_close_function_refuses_to_be_closed() -> None:
    connection = Connection(held=True)
    stream = layered(PartStream(connection.parts()))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, stream)
        await connection.waiting.wait()
        with pytest.raises(RuntimeError, match=r"cancel the reader, or give PartStream\(source, close=\.\.\.\) one"):
            await stream.aclose()
        tasks.cancel_scope.cancel()
    await stream.aclose()
    assert connection.left


async def test_a_refused_close_leaves_the_reader_alone() -> None:
    connection = Connection(held=True)
    stream = PartStream(connection.parts())
    async with anyio.create_task_group() as tasks:

        async def reader() -> None:
            with pytest.raises(OSError, match="shut down"):
                await read(stream)

        tasks.start_soon(reader)
        await connection.waiting.wait()
        with pytest.raises(RuntimeError):
            await stream.aclose()
        await connection.close()


async def test_an_inner_stream_that_another_task_reads_is_closed_with_the_outer_one() -> None:
    connection = Connection(held=True)
    inner = connection.stream()
    outer = inner.through(passed_on)
    async with anyio.create_task_group() as tasks:

        async def reader() -> None:
            with pytest.raises(anyio.ClosedResourceError):
                await read(inner)

        tasks.start_soon(reader)
        await connection.waiting.wait()
        await outer.aclose()
    assert (connection.closed, connection.left) == (1, True)


async def test_two_tasks_may_close_one_stream() -> None:
    connection = Connection(held=True)
    stream = layered(connection.stream())
    await anext(stream)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.aclose)
        tasks.start_soon(stream.aclose)
    assert connection.closed == 1


# ---------------------------------------------------------------------------------------------- closing that goes wrong


async def fail() -> None:
    raise ValueError("cannot close")


def failing_at_its_end(message: str) -> Callable[[PartStream], AsyncIterator[StreamPart]]:
    async def through(parts: PartStream) -> AsyncIterator[StreamPart]:
        try:
            async for part in parts:
                yield part
        finally:
            raise KeyError(message)

    return through


async def test_a_close_function_that_fails_says_so_and_the_generators_are_closed() -> None:
    connection = Connection(held=True)
    with pytest.raises(ValueError, match="cannot close"):
        async with layered(PartStream(connection.parts(), close=fail)) as stream:
            await anext(stream)
    assert connection.left


async def test_a_generator_that_fails_at_its_end_says_so_and_the_source_is_freed() -> None:
    connection = Connection(held=True)
    stream = connection.stream().through(failing_at_its_end("inner")).through(failing_at_its_end("outer"))
    await anext(stream)
    with pytest.raises(KeyError, match="outer"):
        await stream.aclose()
    assert (connection.closed, connection.left) == (1, True)


async def test_a_stream_whose_close_failed_is_closed() -> None:
    stream = PartStream(Connection().parts(), close=fail)
    with pytest.raises(ValueError, match="cannot close"):
        await stream.aclose()
    await stream.aclose()
    with pytest.raises(anyio.ClosedResourceError):
        await anext(stream)


async def test_closing_finishes_in_a_task_that_is_already_cancelled() -> None:
    done = anyio.Event()

    async def slowly() -> None:
        await anyio.lowlevel.checkpoint()
        done.set()

    stream = PartStream(Connection().parts(), close=slowly)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await stream.aclose()
    assert done.is_set()


async def test_closing_runs_on_after_a_native_cancellation(anyio_backend_name: str) -> None:
    if anyio_backend_name != "asyncio":
        pytest.skip("trio has only cancel scopes")
    import asyncio

    connection = Connection(held=True)
    started = asyncio.Event()

    async def lingering(parts: PartStream) -> AsyncIterator[StreamPart]:
        try:
            async for part in parts:
                yield part
        finally:
            started.set()
            await asyncio.Event().wait()

    stream = connection.stream().through(lingering)
    await anext(stream)
    closing = asyncio.create_task(stream.aclose())
    await started.wait()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert (connection.closed, connection.left) == (1, True)


def chain_of(length: int) -> tuple[Connection, PartStream]:
    connection = Connection()
    return connection, layered(connection.stream(), length)


async def test_a_chain_of_many_layers_is_closed_without_recursion() -> None:
    connection, stream = chain_of(1500)
    await stream.aclose()
    assert connection.closed == 1


async def test_a_closer_runs_its_function_once() -> None:
    closer = Closer(fail)
    with pytest.raises(ValueError, match="cannot close"):
        await closer()
    await closer()
    assert closer.done


@depths
async def test_who_reads_on_after_the_stream_was_closed_between_two_reads_is_told(layers: int) -> None:
    stream = layered(PartStream.of(HELLO), layers)
    seen = 0
    with pytest.raises(anyio.ClosedResourceError):  # noqa: PT012  # a quiet end would look like a whole answer
        async for _ in stream:
            seen += 1
            await stream.aclose()
    assert seen == 1


async def test_a_second_close_waits_until_the_first_is_done() -> None:
    started, go = anyio.Event(), anyio.Event()
    order: list[str] = []

    async def close() -> None:
        started.set()
        with anyio.CancelScope(shield=True):
            await go.wait()
        order.append("closed")

    stream = PartStream(passed_on(PartStream.of(())), close=close)

    async def second() -> None:
        await started.wait()
        async with anyio.create_task_group() as inner:
            inner.start_soon(stream.aclose)
            await anyio.lowlevel.checkpoint()
            go.set()
        order.append("second")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.aclose)
        tasks.start_soon(second)
    assert order == ["closed", "second"]
