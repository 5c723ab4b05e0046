"""Streams and their reader share a task: what a stream does between two parts, its reader feels."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar, copy_context

import anyio

from ...protocol import CallOptions, PartStream, StreamPart, collect
from .agreement import said_in
from .material import saying_in
from .subject import Subject, Trial
from .wording import require, show_error, show_parts

_PIECES = ("Hel", "lo, ", "wor", "ld.")
_ROOM_S = 0.2  # for a second stream to open, where a limit does not keep it waiting for the first


NO_SCOPE_AROUND_A_YIELD = (
    "Put no timeout, cancel scope or task group around a `yield`: around a single await it is harmless"
)


async def check_one_task_may_read_streams_in_turns(subject: Subject) -> None:
    """Part by part from one and the other, the first opened ends first: a cancel scope around a `yield` breaks then."""
    alone = await subject.ask("stream", saying_in(*_PIECES))
    async with subject.fresh(saying_in(*_PIECES)) as trial:
        came = await _read_in_turns(trial, subject.options)
    expected = show_parts(alone.parts)
    for parts, raised in came:
        shown = f"{show_parts(parts)}{f', then {show_error(raised)}' if raised else ''}"
        require(
            type(raised) is type(alone.raised) and said_in(collect(parts)) == said_in(collect(alone.parts)),
            f"one task reads two streams in turns: {shown} comes from one of them, and alone {expected}. "
            f"{NO_SCOPE_AROUND_A_YIELD}",
        )


async def _read_in_turns(trial: Trial, options: CallOptions) -> list[tuple[list[StreamPart], Exception | None]]:
    """What came of each of two streams; nothing where the second does not open while the first is read."""
    streams: list[PartStream] = []
    try:
        with anyio.move_on_after(_ROOM_S) as room:
            for _ in range(2):
                streams.append((await trial.model.do_stream(options)).stream)
        if room.cancelled_caught:
            return []
    except Exception as error:
        return [([], error)]
    finally:
        if len(streams) < 2:
            for stream in streams:
                await stream.aclose()
    came: list[tuple[list[StreamPart], Exception | None]] = []
    reading: dict[int, list[StreamPart]] = {0: [], 1: []}
    while reading:
        for index, parts in list(reading.items()):
            raised = None
            try:
                parts.append(await streams[index].__anext__())
                continue
            except StopAsyncIteration:
                pass
            except Exception as error:
                raised = error
            came.append((reading.pop(index), raised))
    for stream in streams:
        await stream.aclose()
    return came


async def check_context_variables_stay_as_they_were(subject: Subject) -> None:
    """A variable that is set in a stream's generator is seen by its reader, and stays when that leaves."""
    advice = "Set one around a single await, and reset it before the hook returns and before each `yield`"
    async with subject.fresh(saying_in(*_PIECES)) as trial:
        before = _context()
        await trial.generate(subject.options)
        changed = _changed(before)
        require(not changed, f"do_generate set {changed} for its caller. {advice}")
    async with subject.fresh(saying_in(*_PIECES)) as trial:
        before = _context()
        with suppress(Exception):  # which other checks are about
            async with (await trial.model.do_stream(subject.options)).stream as stream:
                for _ in range(3):
                    await stream.__anext__()
                changed = _changed(before)
        changed = changed or _changed(before)
        require(not changed, f"after three parts of a stream, its reader finds {changed} set. {advice}")


def _context() -> Mapping[ContextVar[object], object]:
    return dict(copy_context())


def _changed(before: Mapping[ContextVar[object], object]) -> str:
    now, missing = _context(), object()
    return ", ".join(sorted(var.name for var in now if now[var] is not before.get(var, missing)))
