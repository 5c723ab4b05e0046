"""The child process of `open_streams`: `python -m benchmarks.open_streams_probe NAME COUNT` prints its JSON."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from time import process_time
from typing import Final, Protocol, TypeAlias, cast

from neurolink_mw.protocol import LanguageModel, StreamPart

from .chains import OPTIONS, Mapping, Scoped, Wrapping, WrappingStream, chain, source
from .measure import MICROSECONDS

STREAMS: Final = 1000
FLOOR: Final = "generators/10"
_WARM_UP: Final = 50


class Readable(Protocol):
    """A stream, or a generator."""

    def __aiter__(self) -> AsyncIterator[StreamPart]: ...

    async def aclose(self) -> None: ...


Open: TypeAlias = Callable[[], Awaitable[Readable]]


@dataclass(frozen=True)
class Opener:
    """n: layers. make: a function that opens one stream."""

    n: int
    make: Callable[[], Open]


def _generators(n: int) -> Open:
    async def opened() -> Readable:
        parts = closing(source())
        for _ in range(n - 1):
            parts = closing(parts)
        return parts

    return opened


async def closing(parts: AsyncIterator[StreamPart]) -> AsyncGenerator[StreamPart, None]:
    """A layer of the floor. One that holds a connection has to see to it that the next one in is closed."""
    async with aclosing(cast("AsyncGenerator[StreamPart, None]", parts)):
        async for part in parts:
            yield part


def _streams(model: LanguageModel) -> Open:
    async def opened() -> Readable:
        return (await model.do_stream(OPTIONS)).stream

    return opened


OPENERS: Final[dict[str, Opener]] = {
    FLOOR: Opener(10, lambda: _generators(10)),
    "through": Opener(10, lambda: _streams(chain(WrappingStream, 10))),
    "map": Opener(10, lambda: _streams(chain(Mapping, 10))),
    "through + boundary": Opener(10, lambda: _streams(chain(Wrapping, 10, around=[Scoped()]))),
    "no layers": Opener(0, lambda: _streams(chain(Wrapping, 0))),
}


class Crowd:
    """So many tasks, each of which holds a stream that it has read one part of."""

    def __init__(self, open_one: Open, count: int) -> None:
        self._open = open_one
        self._waited_for = count
        self._all_began = asyncio.Event()
        self._leave = asyncio.Event()
        self._tasks = [asyncio.create_task(self._read()) for _ in range(count)]

    async def began(self) -> None:
        await self._all_began.wait()

    async def leave(self) -> None:
        self._leave.set()
        await asyncio.gather(*self._tasks)

    async def _read(self) -> None:
        parts = await self._open()
        async for _part in parts:
            break
        self._waited_for -= 1
        if not self._waited_for:
            self._all_began.set()
        await self._leave.wait()
        await parts.aclose()


async def probe(open_one: Open, count: int) -> dict[str, float]:
    await _hold(open_one, _WARM_UP)
    gc.collect()
    gc.disable()
    microseconds = await _hold(open_one, count)
    gc.enable()
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    crowd = Crowd(open_one, count)
    await crowd.began()
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    await crowd.leave()
    return {"us": microseconds, "kb": (after - before) / count / 1024}


async def _hold(open_one: Open, count: int) -> float:
    """CPU microseconds per stream until all have their first part."""
    started = process_time()
    crowd = Crowd(open_one, count)
    await crowd.began()
    taken = process_time() - started
    await crowd.leave()
    return taken * MICROSECONDS / count


if __name__ == "__main__":
    print(json.dumps(asyncio.run(probe(OPENERS[sys.argv[1]].make(), int(sys.argv[2])))))
