"""Statistics: one record per call, and the time of each member is its own and nobody else's."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import AsyncIterator

import anyio
import pytest

from neurolink_mw.pipeline import CallRecord, MemberRecord, Middleware, Outcome, Statistics, Use, wrap_model
from neurolink_mw.protocol import CallOptions, GenerateResult, Kind, LanguageModel, PartStream, StreamPart, StreamResult
from neurolink_mw.testing import ScriptedModel

from .builders import (
    ASKED,
    Cached,
    Layer,
    Member,
    Watch,
    answer,
    chain,
    collected,
    dropping,
    only_when,
    parts,
    read,
    run,
)

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])

WORK = 0.02
"""Seconds that a busy member spends at each of its places: far above what the host takes."""


class Broken(Exception):
    pass


def work() -> None:
    until = time.perf_counter() + WORK
    while time.perf_counter() < until:
        pass


class Busy(Middleware):
    """Works before and after what is further in, and at each part."""

    def __init__(self, id: str = "busy") -> None:
        super().__init__()
        self.id = id  # type: ignore[misc]

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        work()
        result = await model.do_generate(options)
        work()
        return result

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        async def busily(stream: PartStream) -> AsyncIterator[StreamPart]:
            async for part in stream:
                work()
                yield part

        work()
        return (await model.do_stream(options)).through(busily)


class BusyModel(ScriptedModel):
    async def do_generate(self, options: CallOptions) -> GenerateResult:
        work()
        return await super().do_generate(options)


async def record(
    model: LanguageModel, members: list[Middleware | Use], kind: Kind = "generate", options: CallOptions = ASKED
) -> CallRecord:
    watch = Watch()
    with contextlib.suppress(Broken):
        await run(chain(model, members, watch=watch, statistics=Statistics()), kind, options)
    found = watch.only.record
    assert found is not None
    return CallRecord(found.members[1:], found.model)


def by_id(found: CallRecord) -> dict[str, MemberRecord]:
    return {row.id: row for row in (*found.members, found.model)}


def is_idle(row: MemberRecord) -> bool:
    return row.self_seconds < WORK / 2


# -- own time


@pytest.mark.parametrize(("kind", "places"), [("generate", 2), ("stream", 5)])
async def test_the_time_of_a_busy_member_is_its_own(kind: Kind, places: int) -> None:
    script = [parts("a", "b", finish=None)[1:]]
    rows = by_id(await record(ScriptedModel(script), [Layer("outer"), Busy(), Layer("inner")], kind))
    assert places * WORK <= rows["busy"].self_seconds
    assert is_idle(rows["outer"])
    assert is_idle(rows["inner"])
    assert is_idle(rows["model"])


async def test_the_time_of_the_model_is_the_models() -> None:
    rows = by_id(await record(BusyModel("Hi"), [Layer("outer"), Layer("inner")]))
    assert rows["model"].self_seconds >= WORK
    assert is_idle(rows["outer"])
    assert is_idle(rows["inner"])


async def test_what_is_further_in_is_not_charged_to_a_neighbour_of_a_member_without_hooks() -> None:
    rows = by_id(await record(BusyModel("Hi"), [Layer("outer"), Member("idle")]))
    assert is_idle(rows["outer"])
    assert rows["idle"] == MemberRecord("idle", 0, 0.0, 0.0, "not-reached")


async def test_what_is_further_in_is_not_charged_to_a_neighbour_of_a_member_with_a_condition() -> None:
    rows = by_id(await record(BusyModel("Hi"), [Layer("outer"), only_when(Layer("cold"), options={"temperature": 0})]))
    assert is_idle(rows["outer"])
    assert is_idle(rows["cold"])


@both
async def test_what_is_further_in_is_not_charged_to_a_member_with_the_other_hook_only(kind: Kind) -> None:
    only_streams = Member("only_streams", wrap_stream=Layer().wrap_stream)
    only_generates = Member("only_generates", wrap_generate=Layer().wrap_generate)
    rows = by_id(await record(ScriptedModel("Hi"), [Layer("outer"), only_streams, only_generates, Busy("busy")], kind))
    assert is_idle(rows["outer"])
    assert is_idle(rows["only_streams"])
    assert is_idle(rows["only_generates"])
    assert rows["busy"].self_seconds >= WORK


async def test_a_stream_that_is_generated_further_in_is_charged_to_who_did_the_work() -> None:
    async def simulate(model: LanguageModel, options: CallOptions) -> StreamResult:
        return StreamResult.of(await model.do_generate(options))

    members: list[Middleware | Use] = [
        Layer("outer"),
        Member("simulates", wrap_stream=simulate),
        Member("only_streams", wrap_stream=Layer().wrap_stream),
        Busy(),
    ]
    rows = by_id(await record(ScriptedModel("Hi"), members, "stream"))
    assert is_idle(rows["simulates"])
    assert rows["busy"].self_seconds >= 2 * WORK
    assert (rows["only_streams"].calls, rows["only_streams"].status) == (0, "not-reached")


async def test_calls_that_skip_a_member_once_and_not_again_charge_nobody_else() -> None:
    async def twice(model: LanguageModel, options: CallOptions) -> GenerateResult:
        await model.do_generate(options)
        return await model.do_generate(options.replace(temperature=0))

    cold = only_when(Layer("cold"), options={"temperature": 0})
    rows = by_id(await record(ScriptedModel("Hi", repeat=True), [Member("twice", wrap_generate=twice), cold, Busy()]))
    assert is_idle(rows["twice"])
    assert (rows["cold"].calls, rows["busy"].calls) == (1, 2)
    assert rows["busy"].self_seconds >= 4 * WORK


async def test_a_member_that_asks_both_ways_is_not_charged_for_either() -> None:
    async def both_ways(model: LanguageModel, options: CallOptions) -> StreamResult:
        await read(model, options)
        return StreamResult.of(await model.do_generate(options))

    only_streams = Member("only_streams", wrap_stream=Layer().wrap_stream)
    members: list[Middleware | Use] = [Member("asks", wrap_stream=both_ways), only_streams, Busy()]
    rows = by_id(await record(ScriptedModel("Hi", repeat=True), members, "stream"))
    assert is_idle(rows["asks"])
    assert is_idle(rows["only_streams"])
    assert (rows["only_streams"].calls, rows["busy"].calls) == (1, 2)


async def test_calls_that_run_at_once_never_give_a_negative_time() -> None:
    async def hedge(model: LanguageModel, options: CallOptions) -> GenerateResult:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, model, "generate", options)
            tasks.start_soon(run, model, "generate", options)
        return answer()

    found = await record(ScriptedModel("Hi", repeat=True, delay=0.001), [Member("hedge", wrap_generate=hedge)])
    assert found.members[0].self_seconds >= 0
    assert found.model.calls == 2


async def test_a_helper_call_is_nobodys_work() -> None:
    async def judge(model: LanguageModel, options: CallOptions) -> GenerateResult:
        await model.do_generate(options.for_helper(options.prompt))
        return await model.do_generate(options)

    rows = by_id(await record(ScriptedModel("Hi", repeat=True), [Member("judge", wrap_generate=judge), Layer("inner")]))
    assert (rows["inner"].calls, rows["model"].calls) == (1, 1)


# -- statuses


def statuses(found: CallRecord) -> dict[str, str]:
    return {row.id: row.status for row in (*found.members, found.model)}


@both
async def test_members_that_passed_a_call_on_are_ok(kind: Kind) -> None:
    found = await record(ScriptedModel("Hi"), [Layer("a"), Layer("b")], kind)
    assert statuses(found) == {"a": "ok", "b": "ok", "model": "ok"}
    assert [row.calls for row in (*found.members, found.model)] == [1, 1, 1]


@both
async def test_a_member_that_answered_is_said_to_and_nobody_further_in_was_reached(kind: Kind) -> None:
    found = await record(ScriptedModel("never"), [Layer("a"), Cached(answer()), Layer("b")], kind)
    assert statuses(found) == {"a": "ok", "cached": "answered", "b": "not-reached", "model": "not-reached"}


@both
async def test_a_member_whose_condition_did_not_hold_was_not_reached(kind: Kind) -> None:
    found = await record(ScriptedModel("Hi"), [only_when(Layer("cold"), options={"temperature": 0}), Layer("b")], kind)
    assert statuses(found) == {"cold": "not-reached", "b": "ok", "model": "ok"}


@both
async def test_an_error_is_one_of_everybody_that_it_passed(kind: Kind) -> None:
    members: list[Middleware | Use] = [
        Member("rescues", wrap_generate=rescue, wrap_stream=rescue_stream),
        Layer("b"),
        only_when(Layer("cold"), options={"temperature": 0}),
    ]
    found = await record(ScriptedModel([Broken()]), members, kind)
    assert statuses(found) == {"rescues": "ok", "b": "error", "cold": "not-reached", "model": "error"}


async def rescue(model: LanguageModel, options: CallOptions) -> GenerateResult:
    with pytest.raises(Broken):
        await model.do_generate(options)
    return answer()


async def rescue_stream(model: LanguageModel, options: CallOptions) -> StreamResult:
    with pytest.raises(Broken):
        await model.do_stream(options)
    return StreamResult.of(answer())


async def test_an_error_of_a_call_that_a_member_had_no_part_in_is_not_its_own() -> None:
    async def twice(model: LanguageModel, options: CallOptions) -> GenerateResult:
        await model.do_generate(options.replace(temperature=0))
        return await rescue(model, options)

    cold = only_when(Layer("cold"), options={"temperature": 0})
    found = await record(ScriptedModel(["Hi", Broken()]), [Member("twice", wrap_generate=twice), cold])
    assert statuses(found) == {"twice": "ok", "cold": "ok", "model": "error"}


async def test_an_error_in_the_middle_of_a_stream_is_one_of_everybody_that_it_passed() -> None:
    found = await record(ScriptedModel([[*parts("a", finish=None), Broken()]]), [Layer("a")], "stream")
    assert statuses(found) == {"a": "error", "model": "error"}


async def test_a_member_that_only_listens_has_observed() -> None:
    watch = Watch()
    await chain(ScriptedModel("Hi"), [], watch=watch, statistics=Statistics()).do_generate(ASKED)
    assert watch.only.record is not None
    assert watch.only.record.members[0].status == "observed"


async def test_a_cancelled_member_did_not_fail() -> None:
    async def wait(model: LanguageModel, options: CallOptions) -> GenerateResult:
        scope.cancel()
        await anyio.sleep_forever()
        raise AssertionError

    watch, statistics = Watch(), Statistics()
    model = chain(ScriptedModel("Hi"), [Member("waits", wrap_generate=wait)], watch=watch, statistics=statistics)
    with anyio.CancelScope() as scope:
        await model.do_generate(ASKED)
    assert statistics.totals().by_status == {"cancelled": 1}
    assert [member.errors for member in statistics.totals().members if member.id == "waits"] == [0]


async def test_a_chain_without_statistics_keeps_no_record() -> None:
    watch = Watch()
    await chain(ScriptedModel("Hi"), [Layer()], watch=watch).do_generate(ASKED)
    assert watch.only.record is None


# -- totals


async def test_totals_add_up_calls_of_both_kinds_by_how_they_ended() -> None:
    statistics = Statistics()
    model = wrap_model(
        ScriptedModel([answer(), parts("a"), Broken(), answer(reason="error")]), [Layer("a")], statistics=statistics
    )
    await model.do_generate(ASKED)
    await read(model)
    with pytest.raises(Broken):
        await model.do_generate(ASKED)
    await model.do_generate(ASKED)
    totals = statistics.totals()
    assert (totals.calls, totals.by_status, totals.parts) == (4, {"ok": 2, "error": 2}, 5)
    assert totals.seconds > 0
    assert [(member.id, member.calls, member.errors) for member in totals.members] == [("a", 4, 1), ("model", 4, 1)]


async def test_totals_count_who_answered() -> None:
    statistics = Statistics()
    model = wrap_model(ScriptedModel("Hi"), [Cached(answer(), None)], statistics=statistics)
    await model.do_generate(ASKED)
    await model.do_generate(ASKED)
    assert [(member.id, member.calls, member.answered) for member in statistics.totals().members] == [
        ("cached", 2, 1),
        ("model", 1, 0),
    ]


async def test_a_stream_lasts_until_it_ends() -> None:
    statistics = Statistics()
    async with (await wrap_model(ScriptedModel("Hi"), [], statistics=statistics).do_stream(ASKED)).stream as stream:
        assert statistics.totals().calls == 0
        work()
        async for _ in stream:
            pass
    assert statistics.totals().seconds >= WORK


async def test_a_dropped_stream_counts_as_abandoned() -> None:
    statistics = Statistics()
    with dropping():
        await wrap_model(ScriptedModel("Hi"), [], statistics=statistics).do_stream(ASKED)
        await collected(lambda: statistics.totals().calls)
    assert statistics.totals().by_status == {"abandoned": 1}


async def test_totals_are_a_copy_and_can_be_cleared() -> None:
    statistics = Statistics()
    model = wrap_model(ScriptedModel("Hi", repeat=True), [Layer("a")], statistics=statistics)
    await model.do_generate(ASKED)
    before = statistics.totals()
    await model.do_generate(ASKED)
    assert (before.calls, before.members[0].calls, before.by_status) == (1, 1, {"ok": 1})
    statistics.clear()
    assert (statistics.totals().calls, statistics.totals().members) == (0, [])


async def test_two_chains_may_share_statistics() -> None:
    statistics = Statistics()
    for id in ("a", "b"):
        await wrap_model(ScriptedModel("Hi"), [Layer(id), Layer("shared")], statistics=statistics).do_generate(ASKED)
    counts = {member.id: member.calls for member in statistics.totals().members}
    assert counts == {"a": 1, "b": 1, "shared": 2, "model": 2}


async def test_the_lifetime_of_a_stream_includes_the_callers_own_time_between_reads() -> None:
    statistics = Newest()
    model = wrap_model(ScriptedModel(["hello"]), [Layer("outer"), Layer("inner")], statistics=statistics)
    async with (await model.do_stream(ASKED)).stream as stream:
        await stream.__anext__()
        work()
        async for _ in stream:
            pass
    assert statistics.newest is not None
    for row in (*statistics.newest.members, statistics.newest.model):
        assert row.self_seconds < WORK <= row.open_seconds


class Newest(Statistics):
    """Statistics that also keep the newest record."""

    newest: CallRecord | None = None

    def add(self, outcome: Outcome) -> None:
        super().add(outcome)
        self.newest = outcome.record


def test_no_call_is_lost_when_threads_count_at_once() -> None:
    statistics = Statistics()
    model = wrap_model(ScriptedModel("Hi", repeat=True), [Layer("a")], statistics=statistics)

    async def calls() -> None:
        for _ in range(100):
            await model.do_generate(ASKED)

    threads = [threading.Thread(target=anyio.run, args=(calls,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    totals = statistics.totals()
    assert (totals.calls, totals.by_status, totals.members[0].calls) == (400, {"ok": 400}, 400)
