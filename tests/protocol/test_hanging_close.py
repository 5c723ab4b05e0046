"""What hangs while a stream is closed is given up, and the rest is still closed. The clocks here jump."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
import trio.testing

from neurolink_mw.protocol import PartStream, StreamPart

from .builders import Connection, JumpingLoop, layered, read

pytestmark = pytest.mark.anyio
BOUND_S = 30


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    if request.param == "asyncio":
        return "asyncio", {"loop_factory": JumpingLoop}
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


async def hang() -> None:
    await anyio.Event().wait()


async def hanging_at_its_end(parts: PartStream) -> AsyncIterator[StreamPart]:
    try:
        async for part in parts:
            yield part
    finally:
        await hang()


async def test_a_close_function_that_hangs_is_given_up() -> None:
    connection = Connection(held=True)
    stream = layered(PartStream(connection.parts(), close=hang))
    await anext(stream)
    with anyio.fail_after(BOUND_S):
        await stream.aclose()
    assert connection.left


async def test_a_generator_that_hangs_at_its_end_does_not_keep_the_source_from_being_freed() -> None:
    connection = Connection(held=True)
    freed_whole: list[bool] = []

    async def close() -> None:
        await anyio.lowlevel.checkpoint()
        freed_whole.append(True)

    stream = PartStream(connection.parts(), close=close).through(hanging_at_its_end).through(hanging_at_its_end)
    await anext(stream)
    with anyio.fail_after(BOUND_S):
        await stream.aclose()
    assert freed_whole == [True]
    assert connection.left


async def test_a_reader_that_does_not_leave_is_given_up_with_advice() -> None:
    connection = Connection(held=True)

    async def useless() -> None:
        connection.closed += 1

    stream = layered(PartStream(connection.parts(), close=useless))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, stream)
        await connection.waiting.wait()
        with anyio.fail_after(BOUND_S), pytest.raises(RuntimeError, match="its close function has to end the read"):
            await stream.aclose()
        assert connection.closed == 1
        tasks.cancel_scope.cancel()


async def test_a_close_function_that_hangs_while_a_read_waits_is_given_up() -> None:
    connection = Connection(held=True)

    async def aborts_and_hangs() -> None:
        await connection.close()
        await hang()

    stream = PartStream(connection.parts(), close=aborts_and_hangs)
    async with anyio.create_task_group() as tasks:

        async def reader() -> None:
            with pytest.raises(anyio.ClosedResourceError):
                await read(stream)

        tasks.start_soon(reader)
        await connection.waiting.wait()
        with anyio.fail_after(BOUND_S):
            await stream.aclose()
    assert connection.left


async def test_a_generator_that_closes_itself_while_it_is_read_is_refused_and_does_not_hang() -> None:
    connection = Connection(held=True)
    outer: list[PartStream] = []

    async def closes_its_own_result(parts: PartStream) -> AsyncIterator[StreamPart]:
        async for part in parts:
            await outer[0].aclose()
            yield part

    outer.append(connection.stream().through(closes_its_own_result))
    with anyio.fail_after(BOUND_S), pytest.raises(RuntimeError, match="still waits"):
        await read(outer[0])
    assert connection.closed == 1
