"""Calls at once: one chain, one options object, no shared state."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import anyio
import pytest

from neurolink_mw.pipeline import Middleware, Statistics
from neurolink_mw.protocol import (
    CallOptions,
    GenerateResult,
    Kind,
    LanguageModel,
    Slot,
    StreamPart,
    StreamResult,
    TextDelta,
    Usage,
    collect,
    user_text,
)
from neurolink_mw.testing import ScriptedModel

from .builders import ASKED, COST, Member, Watch, answer, chain, parts, run

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])


@both
async def test_two_calls_with_one_options_object_are_two_scopes(kind: Kind) -> None:
    watch, model = Watch(), ScriptedModel([answer()], repeat=True, delay=0.001)
    wrapped = chain(model, [], watch=watch, depth=3)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, wrapped, kind)
        tasks.start_soon(run, wrapped, kind)
    assert [(one.status, one.attempts, one.usage) for one in watch.outcomes] == [("ok", 1, COST)] * 2
    assert watch.outcomes[0].request_id != watch.outcomes[1].request_id


@both
async def test_one_call_cancelled_leaves_the_other_alone(kind: Kind) -> None:
    watch = Watch()
    wrapped = chain(ScriptedModel([answer()], repeat=True, delay=0.001), [], watch=watch)

    async def impatient() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await run(wrapped, kind)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(impatient)
        tasks.start_soon(run, wrapped, kind)
    assert sorted(one.status for one in watch.outcomes) == ["cancelled", "ok"]


class Shouts(Middleware):
    """Says for each delta which call it belongs to, from what the call's own context holds."""

    name = Slot("name", "")

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        options.context.set(self.name, user_text(options.prompt))
        return options

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        def shout(part: StreamPart) -> StreamPart:
            if isinstance(part, TextDelta):
                return part.replace(delta=f"{options.context.get(self.name)}:{part.delta} ")
            return part

        return (await model.do_stream(options)).map(shout)


class Echoes(ScriptedModel):
    async def do_stream(self, options: CallOptions) -> StreamResult:
        self._replies = [parts(*(f"{user_text(options.prompt)}.{index}" for index in range(5)))]
        return await super().do_stream(options)


async def test_a_hundred_streams_read_in_turns_keep_to_themselves() -> None:
    watch, inside, statistics = Watch(), Echoes([], repeat=True), Statistics()
    wrapped = chain(inside, [Shouts()], watch=watch, depth=5, statistics=statistics)
    names = [f"c{index}" for index in range(100)]
    seen: dict[str, list[StreamPart]] = {name: [] for name in names}
    async with contextlib.AsyncExitStack() as stack:
        readers: dict[str, AsyncIterator[StreamPart]] = {}
        for name in names:
            result = await wrapped.do_stream(CallOptions.from_text(name))
            readers[name] = (await stack.enter_async_context(result.stream)).__aiter__()
        while readers:
            for name, reader in list(readers.items()):
                try:
                    seen[name].append(await reader.__anext__())
                except StopAsyncIteration:
                    del readers[name]
    for name in names:
        assert collect(seen[name]).text == "".join(f"{name}:{name}.{index} " for index in range(5))
    assert {(one.status, one.parts, one.attempts) for one in watch.outcomes} == {("ok", 9, 1)}
    assert len({one.request_id for one in watch.outcomes}) == len(watch.outcomes) == 100
    assert [call.closed for call in inside.calls] == [1] * 100
    assert {member.id: member.calls for member in statistics.totals().members}["shouts"] == 100


async def test_attempts_that_run_at_once_in_one_call_are_all_counted() -> None:
    async def hedge(model: LanguageModel, options: CallOptions) -> GenerateResult:
        answers: list[GenerateResult] = []

        async def ask() -> None:
            answers.append(await model.do_generate(options))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(ask)
        return answers[0]

    watch = Watch()
    model = chain(ScriptedModel([answer()], repeat=True, delay=0.001), [Member(wrap_generate=hedge)], watch=watch)
    await model.do_generate(ASKED)
    assert (watch.only.attempts, watch.only.model_calls, watch.only.usage) == (2, 2, COST + COST)


async def test_a_hedge_that_loses_is_an_attempt_whose_cost_is_unknown() -> None:
    async def race(model: LanguageModel, options: CallOptions) -> GenerateResult:
        answers: list[GenerateResult] = []

        async def ask() -> None:
            answers.append(await model.do_generate(options))
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(ask)
        return answers[0]

    class Sleepy(ScriptedModel):
        async def do_generate(self, options: CallOptions) -> GenerateResult:
            first = not self.calls
            result = await super().do_generate(options)
            if not first:
                await anyio.sleep_forever()
            return result

    watch = Watch()
    sleepy = Sleepy([answer()], repeat=True, delay=0.001)
    await chain(sleepy, [Member(wrap_generate=race)], watch=watch).do_generate(ASKED)
    assert (watch.only.status, watch.only.answer_usage) == ("ok", COST)
    assert (watch.only.attempts, watch.only.usage) == (2, Usage())


@both
async def test_an_outcome_belongs_to_its_own_call(kind: Kind) -> None:
    watch = Watch()
    wrapped = chain(ScriptedModel([answer()], repeat=True, delay=0.001), [], watch=watch)
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(run, wrapped, kind, ASKED.replace(metadata={"number": number}))
    assert sorted(one.metadata["number"] for one in watch.outcomes if one.metadata) == list(range(20))  # type: ignore[type-var]


async def test_a_stream_that_was_read_out_stays_empty_and_has_ended_once() -> None:
    watch = Watch()
    stream = (await chain(ScriptedModel([answer()]), [], watch=watch).do_stream(ASKED)).stream
    assert len([part async for part in stream]) == 5
    assert [part async for part in stream] == []
    await stream.aclose()
    assert len(watch.outcomes) == 1
