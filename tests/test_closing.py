"""Leaving a stream closes its HTTP connection, however it is left and through any number of layers. The server's
journal is the witness."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
import pytest

from neurolink_mw import CallOptions, LanguageModel, Middleware, PartStream, StreamResult, wrap_model
from neurolink_mw.middlewares.logging import Logging
from neurolink_mw.protocol import StreamPart
from neurolink_mw.providers.openai_compatible import OpenAICompatibleModel
from neurolink_mw.testing import wire
from neurolink_mw.testing.wire import openai

pytestmark = pytest.mark.anyio

OPTIONS = CallOptions.from_text("hi")
HELD = openai.stream_text(["Hel", wire.HOLD, "lo"])
"""A stream whose second piece never comes, unless it is released."""


class Layer(Middleware):
    def __init__(self, id: str) -> None:
        super().__init__()
        self.id = id  # type: ignore[misc]  # ten of one class in one chain

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return (await model.do_stream(options)).through(pass_on)


async def pass_on(parts: PartStream) -> AsyncIterator[StreamPart]:
    async for part in parts:
        yield part


def no_layers(model: LanguageModel) -> LanguageModel:
    return model


def ten_layers(model: LanguageModel) -> LanguageModel:
    return wrap_model(model, [Layer(f"layer-{number}") for number in range(10)])


def ten_layers_with_a_scope(model: LanguageModel) -> LanguageModel:
    return wrap_model(model, [Logging(), *(Layer(f"layer-{number}") for number in range(10))])


Wrap = Callable[[LanguageModel], LanguageModel]
everywhere = pytest.mark.parametrize("wrap", [no_layers, ten_layers, ten_layers_with_a_scope])


@pytest.fixture
def server() -> Iterator[wire.ScriptedServer]:
    with wire.openai_server([HELD], repeat="last") as server:
        yield server


@asynccontextmanager
async def opened(server: wire.ScriptedServer, wrap: Wrap) -> AsyncIterator[PartStream]:
    """A stream from the server, and proof that leaving the block left its connection closed."""
    async with OpenAICompatibleModel("m", base_url=server.base_url) as bare:
        result = await wrap(bare).do_stream(OPTIONS)
        assert server.open_connections == 1
        try:
            yield result.stream
        finally:
            # The client has closed its socket by now; the server needs a moment to notice.
            with anyio.CancelScope(shield=True):
                exchange = await anyio.to_thread.run_sync(server.wait_for_closed)
        assert exchange.outcome == "client-closed"
        assert open_sockets_to(server) == 0


def open_sockets_to(server: wire.ScriptedServer) -> int:
    """Client sockets of this process that are connected to the server, as the kernel sees them."""
    mine = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if target.startswith("socket:["):
            mine.add(target[8:-1])
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return sum(row[9] in mine and int(row[2].split(":")[1], 16) == server.port for row in rows)


@everywhere
async def test_leaving_the_block_in_mid_stream(server: wire.ScriptedServer, wrap: Wrap) -> None:
    async with opened(server, wrap) as stream, stream:
        async for part in stream:
            if part.type == "text-delta":
                break


@everywhere
async def test_closing_a_stream_that_was_never_read(server: wire.ScriptedServer, wrap: Wrap) -> None:
    async with opened(server, wrap) as stream:
        await stream.aclose()


@everywhere
async def test_an_exception_in_the_consumer(server: wire.ScriptedServer, wrap: Wrap) -> None:
    async with opened(server, wrap) as stream:
        with pytest.raises(LookupError):  # noqa: PT012  # the body is what is tested
            async with stream:
                await stream.__anext__()
                raise LookupError


@everywhere
async def test_closing_from_another_task_while_a_read_waits(server: wire.ScriptedServer, wrap: Wrap) -> None:
    reader_got: list[type[BaseException]] = []
    waiting = anyio.Event()

    async def read(stream: PartStream) -> None:
        try:
            async for part in stream:
                if part.type == "text-delta":
                    waiting.set()
        except anyio.ClosedResourceError as error:
            reader_got.append(type(error))

    async with opened(server, wrap) as stream, anyio.create_task_group() as tasks:
        tasks.start_soon(read, stream)
        await waiting.wait()
        await anyio.lowlevel.checkpoint()
        await stream.aclose()
    assert reader_got == [anyio.ClosedResourceError]


@everywhere
async def test_cancelling_a_consumer_that_waits(server: wire.ScriptedServer, wrap: Wrap) -> None:
    async with opened(server, wrap) as stream, anyio.create_task_group() as tasks:

        async def read() -> None:
            async with stream:
                async for part in stream:
                    if part.type == "text-delta":
                        tasks.cancel_scope.cancel()

        tasks.start_soon(read)


@everywhere
@pytest.mark.parametrize("reads", [0, 3])
async def test_dropping_a_stream_closes_it_within_a_second(server: wire.ScriptedServer, wrap: Wrap, reads: int) -> None:
    async def drop(model: LanguageModel) -> None:
        iterator = (await model.do_stream(OPTIONS)).stream.__aiter__()
        for _ in range(reads):
            await iterator.__anext__()

    async with OpenAICompatibleModel("m", base_url=server.base_url) as bare:
        with pytest.warns(ResourceWarning):  # noqa: PT031  # it comes from the collector, or from the late close
            await drop(wrap(bare))
            gc.collect()
            exchange = await anyio.to_thread.run_sync(lambda: server.wait_for_closed(timeout=1))
    assert exchange.outcome == "client-closed"


async def test_a_thousand_abandoned_streams_leave_no_socket_task_or_thread() -> None:
    with wire.openai_server([HELD], repeat="last") as server:
        # One blocking wait first, so that its worker thread is there before anything is counted.
        await anyio.to_thread.run_sync(lambda: server.wait_until(lambda journal: not journal))
        before = threading.active_count(), len(anyio.get_running_tasks())
        async with OpenAICompatibleModel("m", base_url=server.base_url) as bare:
            model = ten_layers_with_a_scope(bare)
            for _ in range(20):
                async with anyio.create_task_group() as tasks:
                    for _ in range(50):
                        tasks.start_soon(abandon, model)
        await anyio.to_thread.run_sync(lambda: server.wait_until(everybody_left))
        assert len(server.journal) == 1000
        assert {one.outcome for one in server.journal} == {"client-closed"}
        assert open_sockets_to(server) == 0
        assert threading.active_count() <= before[0]
        assert len(anyio.get_running_tasks()) == before[1]


async def abandon(model: LanguageModel) -> None:
    async with (await model.do_stream(OPTIONS)).stream as stream:
        await stream.__anext__()


def everybody_left(journal: wire.Journal) -> bool:
    return all(exchange.outcome != "open" for exchange in journal)
