"""Closing: however a stream is left, what the model opened is closed, once, through any number of layers."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import AsyncIterator

import anyio
import pytest

from neurolink_mw.pipeline import Middleware, Outcome, Statistics, wrap_model
from neurolink_mw.protocol import (
    CallOptions,
    ErrorPart,
    GenerateResult,
    Kind,
    LanguageModel,
    PartStream,
    StreamPart,
    StreamResult,
)
from neurolink_mw.testing import HOLD, ScriptedModel

from .builders import (
    ASKED,
    STOP,
    Layer,
    Member,
    Watch,
    answer,
    chain,
    collected,
    dropping,
    layers,
    parts,
    read,
    run,
    until,
)

pytestmark = pytest.mark.anyio

CHAINS = ["bare", "watched", "timed", "nested"]
chains = pytest.mark.parametrize("make", CHAINS)


class Broken(Exception):
    pass


def around(model: LanguageModel, make: str) -> LanguageModel:
    """Ten layers, without a scope, with one, with clocks, and one chain around another."""
    if make == "bare":
        return wrap_model(model, layers(10))
    if make == "timed":
        return wrap_model(model, layers(10), statistics=Statistics())
    if make == "nested":
        return chain(chain(model, [], watch=Watch("inner"), depth=5), [], watch=Watch("outer"), depth=5)
    return chain(model, [], watch=Watch(), depth=10)


@chains
@pytest.mark.parametrize("reads", [0, 1, 3])
async def test_leaving_closes_once(make: str, reads: int) -> None:
    model = ScriptedModel([parts("a", "b")])
    async with (await around(model, make).do_stream(ASKED)).stream as stream:
        for _ in range(reads):
            await stream.__anext__()
    assert model.calls[0].closed == 1


@chains
async def test_a_stream_that_is_read_out_is_closed_once(make: str) -> None:
    model = ScriptedModel([parts("a")])
    await read(around(model, make))
    assert model.calls[0].closed == 1


@chains
async def test_a_stream_that_fails_is_closed_once(make: str) -> None:
    model = ScriptedModel([[*parts("a", finish=None), Broken()]])
    with pytest.raises(Broken):
        await read(around(model, make))
    assert model.calls[0].closed == 1


@chains
async def test_a_read_that_is_cancelled_closes_once(make: str) -> None:
    model = ScriptedModel([[*parts("a", finish=None), HOLD]])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, around(model, make))
        await until(lambda: model.calls and model.calls[0].read == 4)
        tasks.cancel_scope.cancel()
    assert model.calls[0].closed == 1


@chains
async def test_closing_from_another_task_while_a_read_waits_closes_once(make: str) -> None:
    model = ScriptedModel([[*parts("a", finish=None), HOLD]])
    stream = (await around(model, make).do_stream(ASKED)).stream
    seen: list[StreamPart] = []
    left: list[str] = []

    async def reader() -> None:
        try:
            async for part in stream:
                seen.append(part)
        except anyio.ClosedResourceError:
            left.append("closed")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader)
        await until(lambda: len(seen) == 4)
        await stream.aclose()
        assert model.calls[0].closed == 1
    assert left == ["closed"]


@chains
async def test_a_closed_stream_gives_no_more_parts(make: str) -> None:
    stream = (await around(ScriptedModel([parts("a")]), make).do_stream(ASKED)).stream
    await stream.aclose()
    with pytest.raises(anyio.ClosedResourceError):
        await stream.__anext__()


@chains
async def test_a_thousand_abandoned_streams_leave_none_open(make: str) -> None:
    model = ScriptedModel([parts("a", "b")], repeat=True)
    wrapped = around(model, make)

    async def abandon(reads: int) -> None:
        stream = (await wrapped.do_stream(ASKED)).stream
        for _ in range(reads):
            await stream.__anext__()

    with dropping():
        for number in range(1000):
            await abandon(number % 3)
        await collected(lambda: all(call.closed for call in model.calls))
    assert [call.closed for call in model.calls] == [1] * 1000


# -- when something goes wrong on the way


class OpensAndFails(Middleware):
    needs_scope = True

    def __init__(self, error: BaseException | None) -> None:
        super().__init__()
        self.error = error

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        await model.do_stream(options)
        result = await model.do_stream(options)
        if self.error is not None:
            raise self.error
        await anyio.sleep_forever()
        return result


@pytest.mark.parametrize("nested", [True, False])
async def test_streams_opened_by_a_member_that_then_fails_are_closed_before_the_error_gets_out(nested: bool) -> None:
    inside = ScriptedModel([parts("a")], repeat=True)
    model = wrap_model(inside, [OpensAndFails(Broken()), Layer()])
    with pytest.raises(Broken) as caught:
        await (chain(model, [], watch=Watch()) if nested else model).do_stream(ASKED)
    assert caught.value is not None
    assert [call.closed for call in inside.calls] == [1, 1]


async def test_streams_opened_by_a_member_that_is_then_cancelled_are_closed() -> None:
    inside = ScriptedModel([parts("a")], repeat=True)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await wrap_model(inside, [OpensAndFails(None)]).do_stream(ASKED)
    assert [call.closed for call in inside.calls] == [1, 1]


async def test_a_stream_that_a_member_drops_is_closed_while_the_answer_is_still_read() -> None:
    async def second_best(model: LanguageModel, options: CallOptions) -> StreamResult:
        await model.do_stream(options)
        return await model.do_stream(options)

    inside = ScriptedModel([parts("a")], repeat=True)
    with dropping():
        result = await chain(inside, [Member(wrap_stream=second_best)], watch=Watch()).do_stream(ASKED)
        await collected(lambda: inside.calls[0].closed)
    assert inside.calls[1].closed == 0
    await result.stream.aclose()


async def test_a_stream_opened_by_a_member_that_returns_something_else_is_closed() -> None:
    async def confuse(model: LanguageModel, options: CallOptions) -> GenerateResult:
        held.append(await model.do_stream(options))
        return answer()

    held: list[StreamResult] = []
    inside = ScriptedModel([parts("a")])
    with pytest.raises(Exception, match="not a StreamResult"):
        await chain(inside, [Member(wrap_stream=confuse)], watch=Watch()).do_stream(ASKED)
    assert inside.calls[0].closed == 1


async def test_a_member_that_fails_in_the_middle_of_a_stream_closes_it() -> None:
    async def fail(stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield part
            raise Broken

    async def failing(model: LanguageModel, options: CallOptions) -> StreamResult:
        return (await model.do_stream(options)).through(fail)

    inside = ScriptedModel([parts("a")])
    with pytest.raises(Broken):
        await read(chain(inside, [*layers(3), Member("failing", wrap_stream=failing)], watch=Watch()))
    assert inside.calls[0].closed == 1


class BadlyClosed:
    """A model whose stream fails, and whose close function fails as well."""

    provider, model_id = "bad", "bad-1"

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        return answer()

    async def do_stream(self, options: CallOptions) -> StreamResult:
        async def play() -> AsyncIterator[StreamPart]:
            yield parts("a")[0]
            raise Broken

        async def close() -> None:
            raise OSError("socket")

        return StreamResult(PartStream(play(), close=close))


@chains
async def test_the_error_that_the_caller_gets_is_the_first_one_though_closing_fails_too(make: str) -> None:
    with pytest.raises(Broken):
        async for _ in (await around(BadlyClosed(), make).do_stream(ASKED)).stream:
            pass


async def test_the_outcome_is_told_though_closing_fails() -> None:
    watch = Watch()
    stream = (await chain(BadlyClosed(), [], watch=watch).do_stream(ASKED)).stream
    with pytest.raises(OSError, match="socket"):
        await stream.aclose()
    assert watch.only.status == "abandoned"


# -- what a call leaves behind


class Marker:
    """Something that only the call's own options hold."""


def marked(held: list[weakref.ref[Marker]]) -> CallOptions:
    marker = Marker()
    held.append(weakref.ref(marker))
    return ASKED.replace(headers={"marker": marker})


class Leaves:
    """A model that keeps nothing of a call, not even its own exception in a variable."""

    provider, model_id = "leaves", "leaves-1"

    def __init__(self, how: str) -> None:
        self.how = how

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        if self.how != "answers":
            raise Broken
        return answer()

    async def do_stream(self, options: CallOptions) -> StreamResult:
        if self.how == "fails":
            raise Broken
        return StreamResult(PartStream(self._play()))

    async def _play(self) -> AsyncIterator[StreamPart]:
        for part in parts("a", finish=None):
            yield part
        if self.how == "breaks":
            raise Broken
        if self.how == "sends an error":
            yield ErrorPart(Broken())
        yield STOP
        if self.how == "breaks late":
            raise Broken


@pytest.mark.parametrize("kind", ["generate", "stream"])
@pytest.mark.parametrize("how", ["answers", "fails", "breaks", "breaks late", "sends an error"])
@pytest.mark.parametrize("make", ["watched", "timed", "nested", "at_end"])
async def test_a_call_that_has_ended_leaves_nothing_to_the_garbage_collector(kind: Kind, how: str, make: str) -> None:
    held: list[weakref.ref[Marker]] = []

    async def register(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        def told(outcome: Outcome) -> None:
            assert options.context

        options.context.at_end(told)
        return options

    model: LanguageModel = Leaves(how)
    if make == "at_end":
        model = wrap_model(model, [Member(transform_params=register), *layers(3)])
    elif make == "watched":
        model = wrap_model(model, [listening_to_nothing(), *layers(3)])
    elif make == "timed":
        model = around(model, "timed")
    else:
        model = wrap_model(around(model, "timed"), [listening_to_nothing()])

    async def call() -> None:
        with contextlib.suppress(Broken):
            await run(model, kind, marked(held))

    gc.collect()
    gc.disable()
    try:
        await call()
        assert [ref() for ref in held] == [None]
    finally:
        gc.enable()


def listening_to_nothing() -> Middleware:
    return Member("ear", bind=lambda build: build.observe(lambda outcome: None))
