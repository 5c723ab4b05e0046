"""Observers: told everything once, and never able to change what the caller gets."""

from __future__ import annotations

import logging
import threading
from typing import Any

import anyio
import pytest
from tests.pipeline.builders import ASKED, Retry, collected, dropping, read, until
from trio.testing import MockClock

from neurolink_mw.errors import ConfigError, ServerError
from neurolink_mw.pipeline import Outcome, Stage, Surroundings, Use, wrap_model
from neurolink_mw.protocol import Kind, LanguageModel, StreamPart, collect
from neurolink_mw.roles import Observer
from neurolink_mw.testing import HOLD, ScriptedModel

from .builders import Policy, Rewrites, Watch, bomb, text, whole

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])
on_a_clock_that_jumps = pytest.mark.parametrize(
    "anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})], ids=["trio"]
)


class Attempts(Watch):
    per = "attempt"


async def run(model: LanguageModel, kind: Kind) -> Any:
    return await model.do_generate(ASKED) if kind == "generate" else collect(await read(model))


def outcomes(watch: Watch) -> list[str]:
    return [outcome.status for outcome in watch.outcomes]


# -- per call


@both
async def test_per_call_it_is_told_once_what_the_caller_gets(kind: Kind) -> None:
    watch = Watch()
    model = wrap_model(ScriptedModel(["calm"]), [watch, Policy(bomb), Rewrites(str.upper, 1)])
    await run(model, kind)
    assert (outcomes(watch), watch.only.kind, watch.only.attempts) == (["ok"], kind, 1)


async def test_it_sees_the_parts_that_the_caller_sees_those_of_a_refusal_included() -> None:
    watch = Watch()
    seen = await read(wrap_model(ScriptedModel([whole(text("a bomb"))]), [watch, Policy(bomb)]))
    assert (watch.parts, outcomes(watch)) == (seen, ["denied"])
    assert collect(watch.parts).text == "No."


@both
async def test_it_is_told_of_a_failure(kind: Kind) -> None:
    watch = Watch()
    with pytest.raises(ServerError):
        await run(wrap_model(ScriptedModel([ServerError("down")]), [watch]), kind)
    assert (outcomes(watch), type(watch.only.error)) == (["error"], ServerError)


@both
async def test_of_a_cancellation(kind: Kind) -> None:
    watch = Watch()
    inside = ScriptedModel([[*whole(text("a"), finish=None), HOLD]])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, wrap_model(inside, [watch]), kind)
        await until(lambda: inside.calls and inside.calls[0].read == 4)
        tasks.cancel_scope.cancel()
    assert outcomes(watch) == ["cancelled"]


async def test_of_a_stream_that_is_left() -> None:
    watch = Watch()
    async with (await wrap_model(ScriptedModel(["Hi"]), [watch]).do_stream(ASKED)).stream as stream:
        await anext(stream)
    assert (outcomes(watch), len(watch.parts)) == (["abandoned"], 1)


@pytest.mark.parametrize("members", [{}, {"on_error": "skip", "max_failures": 2}])
async def test_of_a_stream_that_is_dropped(members: Any) -> None:
    watch = Watch()
    with dropping():
        stream = (await wrap_model(ScriptedModel(["Hi"]), [Use(watch, **members)]).do_stream(ASKED)).stream
        await anext(stream)
        del stream
        await collected(lambda: watch.outcomes)
    assert outcomes(watch) == ["abandoned"]


def test_one_that_may_rest_is_told_also_where_nothing_can_be_awaited() -> None:
    watch = Watch()
    model = wrap_model(ScriptedModel(["Hi"]), [Use(watch, max_failures=2)])
    left: list[Any] = []

    async def begin() -> None:
        left.append((await model.do_stream(ASKED)).stream)

    anyio.run(begin)
    with dropping():
        left.clear()
    assert outcomes(watch) == ["abandoned"]


# -- per attempt


@both
async def test_per_attempt_it_is_told_of_each_with_its_own_outcome(kind: Kind) -> None:
    calls, attempts = Watch(), Attempts("attempts")
    inside = ScriptedModel([ServerError("down"), ServerError("down"), "Hi"])
    assert (await run(wrap_model(inside, [calls, Retry(3), attempts]), kind)).text == "Hi"
    assert (outcomes(attempts), outcomes(calls)) == (["error", "error", "ok"], ["ok"])
    assert [one.attempts for one in attempts.outcomes] == [1, 1, 1]
    assert calls.only.attempts == 3


async def test_its_parts_are_those_of_the_model() -> None:
    attempts, parts = Attempts("attempts"), whole(text("hi"))
    seen = await read(wrap_model(ScriptedModel([parts]), [Rewrites(str.upper, 1), attempts]))
    assert (attempts.parts, collect(seen).text) == (parts, "HI")


def test_it_stands_at_the_provider() -> None:
    assert (Watch.stage, Attempts.stage) == (Stage.OBSERVE, Stage.PROVIDER)


# -- failing


class Fails(Observer):
    def __init__(self, at: str, how: str) -> None:
        super().__init__()
        self.at, self.how, self.asked = at, how, 0

    async def _later(self) -> None:
        await anyio.sleep_forever() if self.how == "hangs" else self._fail()

    def _fail(self) -> None:
        raise RuntimeError("secret")

    def on_outcome(self, outcome: Outcome) -> Any:
        self.asked += 1
        if self.at == "outcome":
            return self._fail() if self.how == "raises" else self._later()
        return None

    def on_part(self, part: StreamPart) -> None:
        if self.at == "part":
            self._fail()


class FailsPerAttempt(Fails):
    per = "attempt"


@both
@pytest.mark.parametrize("cls", [Fails, FailsPerAttempt])
@pytest.mark.parametrize(("at", "how"), [("outcome", "raises"), ("outcome", "raises later"), ("part", "raises")])
async def test_one_that_raises_changes_no_byte(
    kind: Kind, cls: type[Fails], at: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    parts = whole(text("a", "b"))
    model = wrap_model(ScriptedModel([parts]), [cls(at, how)])
    got = await model.do_generate(ASKED) if kind == "generate" else await read(model)
    assert got == (collect(parts) if kind == "generate" else parts)
    assert "secret" not in caplog.text


@both
@on_a_clock_that_jumps
@pytest.mark.parametrize("cls", [Fails, FailsPerAttempt])
@pytest.mark.parametrize(("timeout", "patience"), [(None, 5), (30, 30)])
async def test_one_that_hangs_delays_the_call_by_its_deadline_at_most(
    kind: Kind, cls: type[Fails], timeout: float | None, patience: float
) -> None:
    before = anyio.current_time()
    model = wrap_model(ScriptedModel(["Hi"]), [Use(cls("outcome", "hangs"), timeout=timeout)])
    assert (await run(model, kind)).text == "Hi"
    assert anyio.current_time() - before == pytest.approx(patience, abs=0.1)


@both
@pytest.mark.parametrize("cls", [Fails, FailsPerAttempt])
@pytest.mark.parametrize("how", ["raises", "raises later"])
async def test_one_that_failed_too_often_is_left_alone_for_a_while(kind: Kind, cls: type[Fails], how: str) -> None:
    now = [0.0]
    observer = cls("outcome", how)
    model = wrap_model(
        ScriptedModel(["Hi"], repeat=True),
        [Use(observer, max_failures=2)],
        surroundings=Surroundings(clock=lambda: now[0]),
    )
    for _ in range(4):
        await run(model, kind)
    assert observer.asked == 2
    now[0] = 31.0
    for _ in range(2):
        await run(model, kind)
    assert observer.asked == 3


@both
async def test_a_sync_one_may_run_in_a_thread(kind: Kind) -> None:
    threads: list[threading.Thread] = []

    class Threaded(Observer):
        def on_outcome(self, outcome: Outcome) -> None:
            threads.append(threading.current_thread())

    await run(wrap_model(ScriptedModel(["Hi"]), [Use(Threaded(), blocking=True)]), kind)
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


@both
async def test_one_instance_in_two_chains_is_told_of_both(kind: Kind) -> None:
    calls, attempts = Watch(), Attempts("attempts")
    models = [wrap_model(ScriptedModel([said], model_id=said), [calls, attempts]) for said in ("one", "two")]
    for model in models:
        await run(model, kind)
    for watch in (calls, attempts):
        assert [outcome.model_id for outcome in watch.outcomes] == ["one", "two"]


async def test_two_calls_at_once_through_one_chain_are_told_apart() -> None:
    attempts = Attempts("attempts")
    model = wrap_model(ScriptedModel(["Hi"], repeat=True), [attempts])
    async with anyio.create_task_group() as tasks:
        for kind in ("generate", "stream"):
            tasks.start_soon(run, model, kind)
    assert sorted(outcome.kind for outcome in attempts.outcomes) == ["generate", "stream"]


# -- what is refused


def test_one_that_is_told_nothing_is_refused() -> None:
    class Idle(Observer):
        pass

    with pytest.raises(ConfigError, match="neither on_outcome nor on_part: it would never be told a thing"):
        wrap_model(ScriptedModel([]), [Idle()])


@pytest.mark.parametrize("where", ["call", "attempt"])
def test_an_async_on_part_is_refused_since_nothing_may_delay_a_part(where: Any) -> None:
    class Slow(Observer):
        per = where

        async def on_part(self, part: StreamPart) -> None:  # type: ignore[override]
            pass

    with pytest.raises(ConfigError, match="on_part is a sync function, since nothing may delay a part"):
        wrap_model(ScriptedModel([]), [Slow()])


def test_per_is_call_or_attempt() -> None:
    with pytest.raises(ConfigError, match='per is "call" or "attempt"'):
        type("Odd", (Observer,), {"per": "step"})


@pytest.mark.parametrize(
    ("rules", "advice"),
    [
        ({"on_error": "deny"}, 'on_error can only be "skip"'),
        ({"on_error": "raise"}, 'on_error can only be "skip"'),
        ({"mode": "shadow"}, 'mode is "enforce" or "off"'),
    ],
)
def test_rules_that_would_let_it_change_something_are_refused(rules: Any, advice: str) -> None:
    with pytest.raises(ConfigError, match=advice):
        Use(Watch(), **rules)


@pytest.mark.parametrize("rule", [{"timeout": 1.0}, {"max_failures": 2}, {"blocking": True}])
def test_rules_about_on_outcome_are_refused_where_there_is_none(rule: Any) -> None:
    class Parts(Observer):
        def on_part(self, part: StreamPart) -> None:
            pass

    with pytest.raises(ConfigError, match="is about on_outcome, which it does not have"):
        Use(Parts(), **rule)


def test_blocking_is_refused_for_one_that_is_async() -> None:
    class Awaits(Observer):
        async def on_outcome(self, outcome: Outcome) -> None:
            pass

    with pytest.raises(ConfigError, match="blocking moves a sync on_outcome to a worker thread"):
        Use(Awaits(), blocking=True)


async def test_it_is_told_nothing_where_its_place_is_off(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    watch = Watch()
    await run(wrap_model(ScriptedModel(["Hi"]), [Use(watch, mode="off")]), "generate")
    assert watch.outcomes == []
