"""What the model opened for a member with rules is closed once, whoever ends the stream and when."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import anyio
import pytest

from neurolink_mw.pipeline import Use
from neurolink_mw.protocol import CallOptions, LanguageModel, PartStream, StreamPart, StreamResult
from neurolink_mw.testing import HOLD, ScriptedModel

from .builders import (
    ASKED,
    Layer,
    Member,
    OwnFault,
    Watch,
    chain,
    closed_while_read,
    collected,
    dropping,
    failing_after,
    parts,
    read,
    read_into,
    streaming,
    until,
)

pytestmark = pytest.mark.anyio

PARTS = parts("a", "b", "c")


RULES: list[dict[str, Any]] = [{"on_error": "skip"}, {"on_error": "deny"}, {"timeout": 60}]
rules = pytest.mark.parametrize("rule", RULES, ids=lambda rule: next(iter(rule)) + str(next(iter(rule.values()))))


@rules
@pytest.mark.parametrize("left_after", range(len(PARTS) + 1))
async def test_a_consumer_may_leave_at_each_part(rule: dict[str, Any], left_after: int) -> None:
    inside = ScriptedModel([PARTS])
    async with (await chain(inside, [Use(Layer(), **rule)], watch=Watch()).do_stream(ASKED)).stream as stream:
        for _ in range(left_after):
            await anext(stream)
    assert inside.calls[0].closed == 1


@pytest.mark.parametrize("left_after", range(1, len(PARTS)))
async def test_also_after_the_member_was_skipped(left_after: int) -> None:
    inside = ScriptedModel([PARTS])
    async with (await chain(inside, [failing_after(1, taken=2)]).do_stream(ASKED)).stream as stream:
        for _ in range(left_after):
            await anext(stream)
    assert inside.calls[0].closed == 1


@rules
@pytest.mark.parametrize("read_before", [0, 2])
async def test_a_stream_that_is_dropped_is_closed(rule: dict[str, Any], read_before: int) -> None:
    watch, inside = Watch(), ScriptedModel([PARTS])
    with dropping():
        stream = (await chain(inside, [Use(Layer(), **rule)], watch=watch).do_stream(ASKED)).stream
        for _ in range(read_before):
            await anext(stream)
        del stream
        await collected(lambda: watch.outcomes)
    assert (watch.only.status, inside.calls[0].closed) == ("abandoned", 1)


@rules
@pytest.mark.parametrize("skips", [False, True])
async def test_a_stream_that_is_closed_by_another_task_while_a_read_waits(rule: dict[str, Any], skips: bool) -> None:
    watch, inside = Watch(), ScriptedModel([[*PARTS[:4], HOLD]])
    place = failing_after(1) if skips else Use(Layer(), **rule)
    stream = (await chain(inside, [place], watch=watch).do_stream(ASKED)).stream
    await closed_while_read(stream, after=4)
    assert (watch.only.status, inside.calls[0].closed) == ("abandoned", 1)
    assert [finding for finding in watch.only.findings if not skips] == []


@rules
@pytest.mark.parametrize("skips", [False, True])
async def test_a_stream_whose_reader_is_cancelled(rule: dict[str, Any], skips: bool) -> None:
    watch, inside = Watch(), ScriptedModel([[*PARTS[:4], HOLD]])
    place = failing_after(1) if skips else Use(Layer(), **rule)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, chain(inside, [place], watch=watch))
        await until(lambda: inside.calls and inside.calls[0].read == 4)
        tasks.cancel_scope.cancel()
    assert (watch.only.status, inside.calls[0].closed) == ("cancelled", 1)


@rules
async def test_a_member_that_fails_while_it_is_closed_does_not_keep_anything_open(rule: dict[str, Any]) -> None:
    async def fail_at_the_end(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        try:
            async for part in stream:
                yield part
        finally:
            raise OwnFault

    watch, inside = Watch(), ScriptedModel([PARTS])
    stream = (await chain(inside, [Use(streaming(fail_at_the_end), **rule)], watch=watch).do_stream(ASKED)).stream
    await anext(stream)
    with suppress(OwnFault):
        await stream.aclose()
    assert (watch.only.status, inside.calls[0].closed) == ("abandoned", 1)


# -- a model whose stream nothing can end


@rules
async def test_a_read_that_nothing_can_end_is_not_closed_and_goes_on(rule: dict[str, Any]) -> None:
    class Unclosable(ScriptedModel):
        async def do_stream(self, options: CallOptions) -> StreamResult:
            async def play() -> AsyncIterator[StreamPart]:
                for part in PARTS[:4]:
                    yield part
                await go_on.wait()
                for part in PARTS[4:]:
                    yield part

            return StreamResult(PartStream(play()))

    go_on, watch = anyio.Event(), Watch()
    stream = (await chain(Unclosable([]), [Use(Layer(), **rule)], watch=watch).do_stream(ASKED)).stream
    seen: list[StreamPart] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_into, seen, stream)
        await until(lambda: len(seen) == 4)
        with pytest.raises(RuntimeError, match="no close function"):
            await stream.aclose()
        assert watch.outcomes == []
        go_on.set()
    assert (seen, watch.only.status) == (PARTS, "ok")


@rules
async def test_nor_is_one_of_a_member_that_reads_by_itself(rule: dict[str, Any]) -> None:
    """As without rules: its stream is no view of the model's, and has no close function."""

    async def lazy(model: LanguageModel, options: CallOptions) -> StreamResult:
        async def play() -> AsyncIterator[StreamPart]:
            async with (await model.do_stream(options)).stream as stream:
                async for part in stream:
                    yield part

        return StreamResult(PartStream(play()))

    inside, watch = ScriptedModel([[*PARTS[:4], HOLD]]), Watch()
    stream = (await chain(inside, [Use(Member(wrap_stream=lazy), **rule)], watch=watch).do_stream(ASKED)).stream
    seen: list[StreamPart] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read_into, seen, stream)
        await until(lambda: len(seen) == 4)
        with pytest.raises(RuntimeError, match="no close function"):
            await stream.aclose()
        assert watch.outcomes == []
        tasks.cancel_scope.cancel()
    assert (watch.only.status, inside.calls[0].closed) == ("cancelled", 1)
