"""The ways in which a caller leaves a stream, and what must not be left of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from neurolink_mw.protocol import CallOptions, LanguageModel, PartStream, StreamResult, TextDelta

from .streams import read

HI = CallOptions.from_text("Hi")
Leave = Callable[[LanguageModel], Coroutine[Any, Any, None]]


async def begun(one: LanguageModel) -> StreamResult:
    result = await one.do_stream(HI)
    await anext(aiter(result.stream))
    return result


async def close_begun(one: LanguageModel) -> None:
    await (await begun(one)).stream.aclose()


async def close_unread(one: LanguageModel) -> None:
    await (await one.do_stream(HI)).stream.aclose()


async def drop(one: LanguageModel) -> None:
    await begun(one)


async def drop_unread(one: LanguageModel) -> None:
    await one.do_stream(HI)


async def cancel(one: LanguageModel) -> None:
    """While the stream is read, or before it has begun."""
    with anyio.move_on_after(0.01):
        async for _ in (await one.do_stream(HI)).stream:
            pass


async def cancel_whole(one: LanguageModel) -> None:
    with anyio.move_on_after(0.01):
        await one.do_generate(HI)


async def finish(one: LanguageModel) -> None:
    await read(one, HI)


IN_MID_STREAM: list[Leave] = [close_begun, close_unread, drop, drop_unread, cancel]
BEFORE_CONTENT: list[Leave] = [cancel]
BEFORE_HEADERS: list[Leave] = [cancel, cancel_whole]
AT_THE_END: list[Leave] = [finish, close_begun, close_unread, drop, drop_unread]


async def close_while_another_reads(stream: PartStream) -> None:
    """Close a stream that waits for what comes after its first text: the one that reads it is told."""
    waiting = anyio.Event()

    async def read_on() -> None:
        async for part in stream:
            if isinstance(part, TextDelta):
                waiting.set()

    async def reader() -> None:
        with pytest.raises(anyio.ClosedResourceError):
            await read_on()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader)
        await waiting.wait()
        await anyio.lowlevel.checkpoint()
        await stream.aclose()


def sockets() -> int:
    """How many this process holds."""
    open_files = Path("/proc/self/fd")
    found = 0
    for number in os.listdir(open_files):
        with suppress(OSError):
            found += os.readlink(open_files / number).startswith("socket:")
    return found
