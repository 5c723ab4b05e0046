"""Who listens: told once, sync or async, and never able to change what the caller gets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import anyio
import pytest

from neurolink_mw.errors import ConfigError
from neurolink_mw.events import CacheLookup
from neurolink_mw.pipeline import BuildContext, Middleware, Outcome, Surroundings, Use, When, wrap_model
from neurolink_mw.protocol import CallOptions, GenerateResult, Kind, LanguageModel, StreamPart, StreamResult
from neurolink_mw.testing import HOLD, ScriptedModel

from .builders import (
    ASKED,
    Layer,
    Member,
    Watch,
    answer,
    chain,
    closed_while_read,
    collected,
    dropping,
    layers,
    only_when,
    parts,
    read,
    run,
)

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])


class Broken(Exception):
    pass


class Listens(Middleware):
    def __init__(self, on_outcome: object = None, *, on_part: object = None, deadline: float = 5.0) -> None:
        super().__init__()
        self.asked = (on_outcome, on_part, deadline)

    def bind(self, build: BuildContext) -> None:
        on_outcome, on_part, deadline = self.asked
        build.observe(on_outcome, on_part=on_part, deadline=deadline)  # type: ignore[arg-type]


def listening(id: str, on_outcome: object = None, **more: object) -> Listens:
    member = Listens(on_outcome, **more)  # type: ignore[arg-type]
    member.id = id  # type: ignore[misc]
    return member


async def fail_async(outcome: Outcome) -> None:
    raise Broken


def fail(outcome: Outcome) -> None:
    raise Broken


async def hang(outcome: Outcome) -> None:
    await anyio.sleep_forever()


# -- outcomes


@both
async def test_sync_and_async_listeners_are_told_the_same_outcome_from_the_inside_out(kind: Kind) -> None:
    told: list[tuple[str, Outcome]] = []

    async def later(outcome: Outcome) -> None:
        await anyio.lowlevel.checkpoint()
        told.append(("inner", outcome))

    outer = listening("outer", lambda outcome: told.append(("outer", outcome)))
    await run(wrap_model(ScriptedModel("Hi"), [outer, *layers(3), listening("inner", later)]), kind)
    assert [id for id, _ in told] == ["inner", "outer"]
    assert told[0][1] is told[1][1]


@both
@pytest.mark.parametrize("broken", [fail, fail_async])
async def test_a_listener_that_raises_changes_nothing_and_is_logged_without_content(
    kind: Kind, broken: Callable[[Outcome], object], caplog: pytest.LogCaptureFixture
) -> None:
    watch = Watch()
    model = wrap_model(ScriptedModel("Hi"), [watch, listening("broken", broken)])
    await run(model, kind)
    assert watch.only.status == "ok"
    assert [record.getMessage() for record in caplog.records] == ["broken failed on an outcome: Broken"]


@both
async def test_a_listener_that_hangs_is_left_behind_after_its_deadline(
    kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    watch = Watch()
    with anyio.fail_after(2):
        await run(wrap_model(ScriptedModel("Hi"), [watch, listening("slow", hang, deadline=0)]), kind)
    assert watch.only.status == "ok"
    assert [record.getMessage() for record in caplog.records] == ["slow was not done with an outcome after 0 s"]


@both
async def test_listeners_are_told_to_the_end_though_the_call_was_cancelled(kind: Kind) -> None:
    told: list[str] = []

    async def slowly(outcome: Outcome) -> None:
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        told.append(outcome.status)

    async def wait(model: LanguageModel, options: CallOptions) -> GenerateResult:
        entered.set()
        await anyio.sleep_forever()
        raise AssertionError

    entered = anyio.Event()
    waiting = Member("waiting", wrap_generate=wait, wrap_stream=wait)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, wrap_model(ScriptedModel("Hi"), [listening("slow", slowly), waiting]), kind)
        await entered.wait()
        tasks.cancel_scope.cancel()
    assert told == ["cancelled"]


def test_a_task_of_asyncio_that_is_cancelled_while_one_listener_waits_still_tells_the_others() -> None:
    told: list[str] = []

    async def main() -> None:
        entered = asyncio.Event()

        async def wait(outcome: Outcome) -> None:
            entered.set()
            await asyncio.sleep(60)

        async def note(outcome: Outcome) -> None:
            await asyncio.sleep(0)
            told.append("async")

        members = [
            listening("sync", lambda outcome: told.append("sync")),
            listening("async", note),
            listening("waits", wait),
        ]
        task = asyncio.create_task(run(wrap_model(ScriptedModel("Hi"), members), "generate"))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert told == ["async", "sync"]


@both
async def test_an_outcome_is_told_once_though_the_program_is_stopped_while_it_is_told(kind: Kind) -> None:
    def stop(outcome: Outcome) -> None:
        raise KeyboardInterrupt

    watch = Watch()
    with pytest.raises(KeyboardInterrupt):
        await run(wrap_model(ScriptedModel("Hi"), [watch, listening("stops", stop)]), kind)
    assert len(watch.outcomes) == 1


@both
async def test_a_listener_that_raises_a_cancellation_by_itself_changes_nothing(kind: Kind) -> None:
    def cancelled(_: object) -> None:
        raise asyncio.CancelledError  # as the result of a cancelled future does

    class Raises(Middleware):
        def bind(self, build: BuildContext) -> None:
            build.observe(cancelled, on_part=cancelled)

    watch = Watch()
    await run(wrap_model(ScriptedModel("Hi"), [watch, Raises()]), kind)
    assert watch.only.status == "ok"


async def test_an_async_listener_that_raises_the_cancellation_of_asyncio_changes_nothing() -> None:
    async def cancelled(outcome: Outcome) -> None:
        raise asyncio.CancelledError

    watch = Watch()
    await run(wrap_model(ScriptedModel("Hi"), [watch, listening("cancelled", cancelled)]), "generate")
    assert watch.only.status == "ok"


def test_a_listener_that_awaits_what_was_cancelled_changes_nothing() -> None:
    async def main() -> None:
        left = asyncio.create_task(asyncio.sleep(60))
        left.cancel()

        async def wait(outcome: Outcome) -> None:
            await left

        watch = Watch()
        await run(wrap_model(ScriptedModel("Hi"), [watch, listening("waits", wait)]), "generate")
        assert watch.only.status == "ok"

    asyncio.run(main())


@both
async def test_who_is_told_an_outcome_cannot_deny_the_call_any_more(kind: Kind) -> None:
    def deny(outcome: Outcome) -> None:
        raise outcome.context.deny("late")

    watch = Watch()
    for denied in ("refuse", "raise"):
        watch.outcomes.clear()
        members = [watch, listening("denies", deny)]
        await run(wrap_model(ScriptedModel("Hi"), members, denied=denied), kind)
        assert watch.only.status == "ok"


async def test_an_async_listener_of_a_dropped_stream_is_told_on_the_loop() -> None:
    told: list[str] = []

    async def note(outcome: Outcome) -> None:
        await anyio.lowlevel.checkpoint()
        told.append(outcome.status)

    with dropping():
        await wrap_model(ScriptedModel([parts("a")]), [listening("async", note)]).do_stream(ASKED)
        await collected(lambda: told)
    assert told == ["abandoned"]


def test_who_is_told_of_a_stream_that_outlives_its_loop_cannot_deny_the_call_any_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def deny(outcome: Outcome) -> None:
        raise outcome.context.deny("late")

    held: list[StreamResult] = []

    async def leave_open() -> None:
        held.append(await wrap_model(ScriptedModel([parts("a")]), [listening("denies", deny)]).do_stream(ASKED))

    anyio.run(leave_open)
    with dropping():
        held.clear()
    assert "denies failed on an outcome: ConfigError" in caplog.text


def test_an_async_listener_of_a_stream_that_outlives_its_loop_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    held: list[StreamResult] = []
    watch = Watch()

    async def leave_open() -> None:
        members = [watch, listening("async", fail_async)]
        held.append(await wrap_model(ScriptedModel([parts("a")]), members).do_stream(ASKED))

    anyio.run(leave_open)
    with dropping():
        held.clear()
    assert watch.only.status == "abandoned"
    assert "async is async and was not told an outcome" in caplog.text


async def test_a_member_that_takes_no_part_listens_to_nothing() -> None:
    watch, other = Watch(), Watch("other")
    await wrap_model(ScriptedModel("Hi"), [watch, only_when(other, provider="bedrock")]).do_generate(ASKED)
    assert len(watch.outcomes) == 1
    assert other.outcomes == []


async def test_one_listener_in_two_chains_is_told_by_both() -> None:
    watch = Watch()
    for text in ("a", "b"):
        await wrap_model(ScriptedModel(text), [watch]).do_generate(ASKED)
    assert len(watch.outcomes) == 2


# -- parts


async def test_a_listener_sees_the_parts_that_the_caller_gets() -> None:
    seen: list[StreamPart] = []
    got = await read(wrap_model(ScriptedModel([parts("a", "b")]), [listening("ear", on_part=seen.append), *layers(3)]))
    assert len(seen) == len(got) == 6
    assert all(one is other for one, other in zip(seen, got, strict=True))


async def test_a_listener_that_raises_on_a_part_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail_on(part: StreamPart) -> None:
        raise Broken

    seen: list[StreamPart] = []
    members = [listening("deaf", on_part=fail_on), listening("ear", on_part=seen.append)]
    assert len(await read(wrap_model(ScriptedModel([parts("a")]), members))) == len(seen) == 5
    assert caplog.messages == ["deaf failed on a part: Broken"] * 5


@pytest.mark.parametrize("reads", [0, 1])
async def test_a_stream_with_a_listener_to_its_parts_is_closed_like_any_other(reads: int) -> None:
    watch, inside = Watch(), ScriptedModel([parts("a", "b")])
    model = wrap_model(inside, [watch, listening("ear", on_part=lambda part: None)])
    async with (await model.do_stream(ASKED)).stream as stream:
        for _ in range(reads):
            await stream.__anext__()
    assert (watch.only.status, watch.only.parts) == ("abandoned", reads)
    assert inside.calls[0].closed == 1


async def test_a_stream_with_a_listener_to_its_parts_can_be_closed_while_it_is_read() -> None:
    heard: list[StreamPart] = []
    inside = ScriptedModel([[*parts("a", finish=None), HOLD]])
    model = wrap_model(inside, [listening("ear", on_part=heard.append)])
    await closed_while_read((await model.do_stream(ASKED)).stream, after=4)
    assert (len(heard), inside.calls[0].closed) == (4, 1)


def test_an_async_listener_to_parts_is_refused() -> None:
    async def later(part: StreamPart) -> None:
        pass

    with pytest.raises(ConfigError, match="ear: on_part is a sync function"):
        wrap_model(ScriptedModel("Hi"), [listening("ear", on_part=later)])


def test_a_listener_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(ConfigError, match="ear: on_outcome is a function, not str"):
        wrap_model(ScriptedModel("Hi"), [listening("ear", "print")])


# -- what a member may ask for when it is bound


def bound(surroundings: Surroundings | None = None) -> BuildContext:
    contexts: list[BuildContext] = []
    wrap_model(ScriptedModel("Hi"), [Member("asking", bind=contexts.append)], surroundings=surroundings)
    (context,) = contexts
    return context


def test_a_member_is_bound_once_for_each_chain() -> None:
    built: list[BuildContext] = []
    member = Member("asking", bind=built.append)
    inner = wrap_model(ScriptedModel("Hi"), [member])
    wrap_model(inner, [Watch()])
    assert [context.id for context in built] == ["asking"]


LOOKUP = CacheLookup("a-request", "caching", hit=True)


def test_models_stores_time_and_events_come_from_the_host() -> None:
    judge, store = ScriptedModel("yes"), object()
    events: list[object] = []
    models, stores = {"judge": judge}, {"memory:": store}
    around = Surroundings(models.__getitem__, stores.__getitem__, clock=lambda: 7.0, events=events.append)
    build = bound(around)
    assert (build.model("judge"), build.store("memory:"), build.clock()) == (judge, store, 7.0)
    build.events(LOOKUP)
    assert events == [LOOKUP]


def test_without_a_host_names_cannot_be_looked_up_and_that_is_said() -> None:
    build = bound()
    with pytest.raises(ConfigError, match="'judge' cannot be looked up by name here: build the chain with a Pipeline"):
        build.model("judge")
    with pytest.raises(ConfigError, match="'memory:' cannot be looked up by its address here"):
        build.store("memory:")
    build.events(LOOKUP)


@pytest.fixture(autouse=True)
def _logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="neurolink_mw")


async def test_nobody_listens_and_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    await chain(ScriptedModel([answer()]), [Layer()]).do_generate(ASKED)
    assert caplog.messages == []


def paying(listener: Middleware) -> Use:
    return Use(listener, when=When(metadata={"tier": "paid"}))


async def test_a_conditional_listener_is_told_only_of_calls_that_its_condition_holds_for() -> None:
    told: list[Outcome] = []
    seen: list[StreamPart] = []

    class Ear(Middleware):
        def bind(self, build: BuildContext) -> None:
            build.observe(told.append, on_part=seen.append)

    model = wrap_model(ScriptedModel(["a"], repeat=True), [paying(Ear())])
    for tier in ("free", "paid"):
        options = CallOptions.from_text("hi").replace(metadata={"tier": tier})
        await model.do_generate(options)
        async with (await model.do_stream(options)).stream as stream:
            given = [part async for part in stream]
    assert [outcome.metadata for outcome in told] == [{"tier": "paid"}] * 2
    assert seen == given


async def test_a_condition_of_a_listener_that_cannot_be_decided_fails_the_call_with_one_outcome() -> None:
    told: list[Outcome] = []

    class Ear(Middleware):
        def bind(self, build: BuildContext) -> None:
            build.observe(told.append)

    class Deaf(Ear):
        pass

    def undecided(options: CallOptions) -> bool:
        raise LookupError

    model = wrap_model(ScriptedModel(["a"], repeat=True), [Ear(), Use(Deaf(), when=When(custom=undecided))])
    for call in (model.do_generate, model.do_stream):
        with pytest.raises(LookupError):
            await call(CallOptions.from_text("hi"))
    assert [(outcome.status, type(outcome.error)) for outcome in told] == [("error", LookupError)] * 2
