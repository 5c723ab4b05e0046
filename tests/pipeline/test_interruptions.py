"""Calls that are closed by another task, or cancelled: told apart, and told once, bare and through ten layers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from contextlib import aclosing, suppress

import anyio
import anyio.to_thread
import pytest

from neurolink_mw.protocol import CallOptions, GenerateResult, Kind, LanguageModel, PartStream, StreamPart, StreamResult
from neurolink_mw.testing import HOLD, ScriptedModel

from .builders import (
    ASKED,
    Member,
    Watch,
    answer,
    chain,
    closed_while_read,
    parts,
    read,
    read_into,
    run,
    until,
    watched,
)

pytestmark = pytest.mark.anyio

DEPTHS = [0, 10]
deep = pytest.mark.parametrize("depth", DEPTHS)
both = pytest.mark.parametrize("kind", ["generate", "stream"])


# -- closed from another task while a read waits


@deep
async def test_closed_by_another_task_while_a_read_waits_it_is_abandoned_and_the_reader_told(depth: int) -> None:
    model, watch, inside = watched([*parts("a", finish=None), HOLD], depth)
    stream = (await model.do_stream(ASKED)).stream
    await closed_while_read(stream, after=4)
    assert (watch.only.status, watch.only.error, watch.only.parts) == ("abandoned", None, 4)
    assert inside.calls[0].closed == 1


class QuietSource:
    """A source that simply ends when it is closed, as a socket read by lines does."""

    provider, model_id = "quiet", "quiet-1"

    def __init__(self, *, closable: bool = True) -> None:
        self.closing = anyio.Event()
        self.closable = closable

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        return answer()

    async def do_stream(self, options: CallOptions) -> StreamResult:
        async def play() -> AsyncIterator[StreamPart]:
            for part in parts("a", finish=None):
                yield part
            await self.closing.wait()

        async def close() -> None:
            self.closing.set()

        return StreamResult(PartStream(play(), close=close if self.closable else None))


@deep
async def test_a_source_that_just_ends_when_it_is_closed_is_abandoned_all_the_same(depth: int) -> None:
    watch = Watch()
    stream = (await chain(QuietSource(), [], watch=watch, depth=depth).do_stream(ASKED)).stream
    await closed_while_read(stream, after=4)
    assert watch.only.status == "abandoned"


async def test_a_member_that_hides_the_closing_does_not_turn_it_into_an_end() -> None:
    async def hide(stream: PartStream) -> AsyncIterator[StreamPart]:
        with suppress(anyio.ClosedResourceError):
            async for part in stream:
                yield part

    async def hiding(model: LanguageModel, options: CallOptions) -> StreamResult:
        return (await model.do_stream(options)).through(hide)

    watch = Watch()
    inside = ScriptedModel([[*parts("a", finish=None), HOLD]])
    stream = (await chain(inside, [Member(wrap_stream=hiding)], watch=watch).do_stream(ASKED)).stream
    await closed_while_read(stream, after=4)
    assert watch.only.status == "abandoned"


@deep
@pytest.mark.parametrize("nested", [False, True])
async def test_a_read_that_nothing_can_end_is_not_closed_and_goes_on(depth: int, nested: bool) -> None:
    watch, source = Watch(), QuietSource(closable=False)
    inner = chain(source, [], watch=Watch("inner")) if nested else source
    stream = (await chain(inner, [], watch=watch, depth=depth).do_stream(ASKED)).stream
    seen: list[StreamPart] = []

    async def reader() -> None:
        await read_into(seen, stream)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader)
        await until(lambda: len(seen) == 4)
        with pytest.raises(RuntimeError, match="no close function"):
            await stream.aclose()
        assert watch.outcomes == []
        source.closing.set()
    assert watch.only.status == "error"


async def test_a_reader_that_is_cancelled_while_it_is_closed_stays_cancelled() -> None:
    model, watch, _ = watched([*parts("a", finish=None), HOLD], 0)
    stream = (await model.do_stream(ASKED)).stream
    seen: list[StreamPart] = []
    passed: list[str] = []

    async def reader(scope: anyio.CancelScope) -> None:
        with scope:
            await read_into(seen, stream)
        passed.append("cancelled" if scope.cancelled_caught else "ended")

    async with anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()
        tasks.start_soon(reader, scope)
        await until(lambda: len(seen) == 4)
        scope.cancel()
        await stream.aclose()
    assert passed == ["cancelled"]
    assert len(watch.outcomes) == 1


# -- cancelled


@deep
@both
async def test_a_call_cancelled_while_it_waits_is_cancelled(kind: Kind, depth: int) -> None:
    class Slow(ScriptedModel):
        async def do_generate(self, options: CallOptions) -> GenerateResult:
            entered.set()
            await anyio.sleep_forever()
            raise AssertionError

        async def do_stream(self, options: CallOptions) -> StreamResult:
            entered.set()
            await anyio.sleep_forever()
            raise AssertionError

    entered = anyio.Event()
    watch = Watch()
    model = chain(Slow("Hi"), [], watch=watch, depth=depth)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, model, kind)
        await entered.wait()
        tasks.cancel_scope.cancel()
    assert (watch.only.status, watch.only.answered_by) == ("cancelled", None)


async def test_a_call_cancelled_in_the_task_group_of_a_member_is_cancelled() -> None:
    async def race(model: LanguageModel, options: CallOptions) -> GenerateResult:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            tasks.start_soon(anyio.sleep_forever)
            scope.cancel()
        raise AssertionError

    watch = Watch()
    with anyio.CancelScope() as scope:
        await chain(ScriptedModel("Hi"), [Member(wrap_generate=race)], watch=watch).do_generate(ASKED)
    assert watch.only.status == "cancelled"


async def test_cancellations_that_come_in_a_group_are_cancelled() -> None:
    async def group(model: LanguageModel, options: CallOptions) -> GenerateResult:
        scope.cancel()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class() as error:
            raise BaseExceptionGroup("two tasks", [error, error]) from None
        raise AssertionError

    watch = Watch()
    model = chain(ScriptedModel("Hi"), [Member(wrap_generate=group)], watch=watch)
    with anyio.CancelScope() as scope, suppress(BaseExceptionGroup):
        await model.do_generate(ASKED)
    assert watch.only.status == "cancelled"


@deep
async def test_a_stream_cancelled_while_it_waits_for_a_part_is_cancelled(depth: int) -> None:
    model, watch, inside = watched([*parts("a", finish=None), HOLD], depth)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, model)
        await until(lambda: inside.calls and inside.calls[0].read == 4)
        tasks.cancel_scope.cancel()
    assert (watch.only.status, watch.only.parts) == ("cancelled", 4)
    assert inside.calls[0].closed == 1


@deep
async def test_a_consumer_cancelled_between_two_parts_cancels_the_stream(depth: int) -> None:
    model, watch, inside = watched(parts("a", "b"), depth)
    with anyio.CancelScope() as scope:
        async with (await model.do_stream(ASKED)).stream as stream:
            async for _ in stream:
                scope.cancel()
                await anyio.sleep_forever()
    assert (watch.only.status, watch.only.parts) == ("cancelled", 1)
    assert inside.calls[0].closed == 1


@deep
async def test_a_consumer_cancelled_before_it_reads_cancels_the_stream(depth: int) -> None:
    model, watch, inside = watched(parts("a"), depth)
    with anyio.CancelScope() as scope:
        async with (await model.do_stream(ASKED)).stream:
            scope.cancel()
            await anyio.sleep_forever()
    assert watch.only.status == "cancelled"
    assert inside.calls[0].closed == 1


async def test_a_stream_closed_by_aclosing_is_cancelled_with_its_consumer() -> None:
    model, watch, _ = watched(parts("a"), 0)
    with anyio.CancelScope() as scope:
        async with aclosing((await model.do_stream(ASKED)).stream):
            scope.cancel()
            await anyio.sleep_forever()
    assert watch.only.status == "cancelled"


async def test_a_consumer_cancelled_inside_a_task_group_cancels_the_stream() -> None:
    model, watch, _ = watched(parts("a"), 0)
    with anyio.CancelScope() as scope:
        async with (await model.do_stream(ASKED)).stream, anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            tasks.start_soon(anyio.sleep_forever)
            scope.cancel()
    assert watch.only.status == "cancelled"


async def test_a_stream_closed_after_a_cancellation_is_only_abandoned() -> None:
    model, watch, _ = watched(parts("a"), 0)
    stream = (await model.do_stream(ASKED)).stream
    with anyio.CancelScope() as scope:
        scope.cancel()
        await anyio.sleep_forever()
    await stream.aclose()
    assert watch.only.status == "abandoned"


async def test_scopes_further_in_are_cancelled_with_the_outermost_one() -> None:
    outer, inner = Watch("outer"), Watch("inner")
    model = chain(chain(ScriptedModel([parts("a")]), [], watch=inner), [], watch=outer)
    with anyio.CancelScope() as scope:
        async with (await model.do_stream(ASKED)).stream as stream:
            async for _ in stream:
                scope.cancel()
                await anyio.sleep_forever()
    assert outer.only.status == inner.only.status == "cancelled"


async def test_a_call_whose_coroutine_is_thrown_away_is_abandoned() -> None:
    class Parked:
        def __await__(self) -> Generator[None, None, None]:
            yield

    async def park(model: LanguageModel, options: CallOptions) -> GenerateResult:
        await Parked()
        raise AssertionError

    watch = Watch()
    model = chain(ScriptedModel("Hi"), [Member(wrap_generate=park, wrap_stream=park)], watch=watch)
    for call in (model.do_generate(ASKED), model.do_stream(ASKED)):
        started = call.__await__()
        next(started)
        started.close()
    assert [outcome.status for outcome in watch.outcomes] == ["abandoned", "abandoned"]
