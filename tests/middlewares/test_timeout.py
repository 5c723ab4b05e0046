"""`timeout`: what a limit measures, what it raises, and that nothing stays open; alone and together with `retry`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import anyio
import anyio.to_thread
import pytest
from tests.pipeline.builders import ASKED, Layer, Watch, closed_while_read, parts, read, read_into, run, until

from neurolink_mw import (
    CallOptions,
    GenerateResult,
    LanguageModel,
    Middleware,
    PartStream,
    Pipeline,
    Stage,
    StreamResult,
    Use,
    When,
    wrap_model,
)
from neurolink_mw.errors import ConfigError, ProviderTimeoutError, RateLimitError
from neurolink_mw.middlewares.retry import Retry
from neurolink_mw.middlewares.timeout import Timeout
from neurolink_mw.pipeline import explain
from neurolink_mw.pipeline.own_time import OwnTime
from neurolink_mw.plugins import load_plugins
from neurolink_mw.protocol import Closer, Kind, StreamPart, StreamStart, TextDelta, TextStart
from neurolink_mw.providers.openai_compatible import OpenAICompatibleModel
from neurolink_mw.testing import HOLD, Pause, ScriptedModel, check_middleware, wire
from neurolink_mw.testing.wire import SseReply, openai, openai_server

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("kind", ["generate", "stream"])
each_limit = pytest.mark.parametrize("limit", ["call", "attempt"])

SHORT = 0.02
ENOUGH = 0.1  # for an answer that is there, on a machine that has more to do
LONG = 30.0

BEFORE_CONTENT: list[Any] = [StreamStart(), TextStart("0"), HOLD]
AFTER_CONTENT: list[Any] = [StreamStart(), TextStart("0"), TextDelta("0", "half"), HOLD]


def only(limit: str, seconds: float) -> Timeout:
    return Timeout(call=seconds) if limit == "call" else Timeout(attempt=seconds)


# -- what it raises


@both
@each_limit
@pytest.mark.parametrize("script", [[HOLD], BEFORE_CONTENT, AFTER_CONTENT])
async def test_what_takes_too_long_is_ended_and_closed(kind: Kind, limit: str, script: list[Any]) -> None:
    model, watch = ScriptedModel([script]), Watch()
    with pytest.raises(ProviderTimeoutError):
        await run(wrap_model(model, [watch, only(limit, SHORT)]), kind)
    assert (watch.only.status, watch.only.attempts) == ("error", 1)
    assert isinstance(watch.only.error, ProviderTimeoutError)
    assert model.calls[0].closed == (kind == "stream")


@both
@each_limit
async def test_a_model_that_does_not_even_begin_is_ended(kind: Kind, limit: str) -> None:
    with pytest.raises(ProviderTimeoutError):
        await run(wrap_model(ScriptedModel(["late"], delay=LONG), [only(limit, SHORT)]), kind)


@both
@pytest.mark.parametrize(
    ("limit", "said", "retryable"),
    [("call", "the call took more than 0.02 s", False), ("attempt", "an attempt took more than 0.02 s", True)],
)
async def test_the_error_says_who_was_asked_which_limit_it_was_and_whether_to_try_again(
    kind: Kind, limit: str, said: str, retryable: bool
) -> None:
    model = wrap_model(ScriptedModel([BEFORE_CONTENT], provider="acme", model_id="slow-1"), [only(limit, SHORT)])
    with pytest.raises(ProviderTimeoutError) as caught:
        await run(model, kind)
    error = caught.value
    assert (str(error), error.retryable, error.provider, error.model_id) == (said, retryable, "acme", "slow-1")
    assert error.__cause__ is None


@both
@each_limit
async def test_what_is_done_in_time_is_passed_on_as_it_is(kind: Kind, limit: str) -> None:
    model = wrap_model(ScriptedModel([parts("a", "b")], repeat=True), [only(limit, LONG)])
    if kind == "generate":
        assert (await model.do_generate(ASKED)).text == "ab"
    else:
        assert await read(model) == parts("a", "b")


@both
@pytest.mark.parametrize("own", [TimeoutError("of the model"), ProviderTimeoutError("of the model")], ids=repr)
async def test_a_timeout_of_the_models_own_is_no_limit_of_ours(kind: Kind, own: Exception) -> None:
    script: list[Any] = [StreamStart(), own]
    with pytest.raises(type(own)) as caught:
        await run(wrap_model(ScriptedModel([script]), [Timeout(call=LONG, attempt=LONG)]), kind)
    assert caught.value is own


# -- what it measures


async def test_waits_for_the_parts_of_a_stream_add_up() -> None:
    slow: list[Any] = [step for _ in range(20) for step in (Pause(SHORT), TextDelta("0", "x"))]
    model = ScriptedModel([[StreamStart(), TextStart("0"), *slow]])
    seen: list[StreamPart] = []
    stream = (await wrap_model(model, [Timeout(call=3.5 * SHORT)]).do_stream(ASKED)).stream
    with pytest.raises(ProviderTimeoutError):
        await read_into(seen, stream)
    assert 2 <= len(seen) <= 5
    assert model.calls[0].closed == 1


async def test_pauses_of_the_reader_do_not_count() -> None:
    model = wrap_model(ScriptedModel([parts("a")]), [Timeout(call=ENOUGH, attempt=ENOUGH)])
    async with (await model.do_stream(ASKED)).stream as stream:
        got = []
        async for part in stream:
            if part == TextDelta("0", "a"):
                await anyio.sleep(1.5 * ENOUGH)  # the pause itself is what is tested
            got.append(part)
    assert got == parts("a")


@each_limit
async def test_after_a_pause_of_the_reader_the_limit_still_holds(limit: str) -> None:
    model = ScriptedModel([AFTER_CONTENT])
    async with (await wrap_model(model, [only(limit, ENOUGH)]).do_stream(ASKED)).stream as stream:
        async for part in stream:
            if isinstance(part, TextDelta):
                break
        await anyio.sleep(1.5 * ENOUGH)
        with pytest.raises(ProviderTimeoutError):
            await anext(aiter(stream))


@both
async def test_code_that_never_awaits_is_judged_when_it_is_done_and_what_it_opened_is_closed(kind: Kind) -> None:
    def blocking(options: CallOptions) -> Any:
        time.sleep(2 * SHORT)
        return parts("late")

    model = ScriptedModel([blocking])
    with pytest.raises(ProviderTimeoutError):
        await run(wrap_model(model, [Timeout(call=SHORT)]), kind)
    assert model.calls[0].closed == (kind == "stream")


class Unclosable:
    """A model whose streams never go on, and cannot be closed without a fault."""

    provider, model_id = "unclosable", "unclosable-1"

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        raise NotImplementedError

    async def do_stream(self, options: CallOptions) -> StreamResult:
        async def hang() -> AsyncIterator[StreamPart]:
            yield StreamStart()
            await anyio.sleep_forever()

        async def close() -> None:
            raise OSError("already gone")

        return StreamResult(PartStream(hang(), close=Closer(close)))


@each_limit
async def test_a_close_that_fails_does_not_hide_the_timeout(limit: str) -> None:
    with pytest.raises(ProviderTimeoutError):
        await read_into([], (await wrap_model(Unclosable(), [only(limit, SHORT)]).do_stream(ASKED)).stream)


# -- timers


class Recording(asyncio.SelectorEventLoop):
    """An event loop that keeps the timers which limits set: on asyncio they have no other way to end a wait."""

    def __init__(self) -> None:
        super().__init__()
        self.timers: list[asyncio.TimerHandle] = []

    def call_later(  # type: ignore[override]  # the callback is only looked at
        self, delay: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        handle = super().call_later(delay, callback, *args, context=context)
        if callback.__module__ == OwnTime.__module__:
            self.timers.append(handle)
        return handle


recorded = pytest.mark.parametrize("anyio_backend", [("asyncio", {"loop_factory": Recording})], ids=["asyncio"])


def timers() -> list[asyncio.TimerHandle]:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Recording)
    return loop.timers


@recorded
@pytest.mark.parametrize("ends", ["generated", "read", "left early", "unread", "failed"])
async def test_no_timer_outlives_its_call(ends: str) -> None:
    script: list[Any] = [StreamStart(), RateLimitError("x")] if ends == "failed" else parts("a", "b")
    model = wrap_model(ScriptedModel([script]), [Timeout(call=LONG, attempt=LONG)])
    if ends == "generated":
        await model.do_generate(ASKED)
    else:
        stream = (await model.do_stream(ASKED)).stream
        with suppress(RateLimitError):
            if ends in ("read", "failed"):
                await read_into([], stream)
            elif ends == "left early":
                await anext(aiter(stream))
        await stream.aclose()
    assert timers()
    assert all(timer.cancelled() for timer in timers())


@recorded
async def test_while_the_reader_pauses_no_timer_runs_over_and_over() -> None:
    model = wrap_model(ScriptedModel([AFTER_CONTENT]), [Timeout(call=SHORT)])
    async with (await model.do_stream(ASKED)).stream as stream:
        await anext(aiter(stream))
        await anyio.sleep(5 * SHORT)
        assert len(timers()) <= 2


# -- streams that end otherwise


@each_limit
async def test_a_stream_that_is_left_unread_is_closed(limit: str) -> None:
    model = ScriptedModel([parts("a")])
    await (await wrap_model(model, [only(limit, LONG)]).do_stream(ASKED)).stream.aclose()
    assert model.calls[0].closed == 1


@each_limit
async def test_a_stream_may_be_read_by_another_task_and_closed_by_a_third(limit: str) -> None:
    model, watch = ScriptedModel([AFTER_CONTENT]), Watch()
    stream = (await wrap_model(model, [watch, only(limit, LONG)]).do_stream(ASKED)).stream
    await closed_while_read(stream, after=3)
    assert watch.only.status == "abandoned"
    assert model.calls[0].closed == 1


@both
async def test_a_cancellation_is_no_timeout(kind: Kind) -> None:
    model, watch = ScriptedModel([AFTER_CONTENT]), Watch()
    limited = wrap_model(model, [watch, Timeout(call=LONG, attempt=LONG)])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, limited, kind)
        await until(lambda: model.calls and model.calls[0].read == 3)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert watch.only.status == "cancelled"


async def test_a_deadline_of_the_caller_comes_first() -> None:
    with anyio.move_on_after(SHORT) as patience:
        await read(wrap_model(ScriptedModel([AFTER_CONTENT]), [Timeout(call=LONG, attempt=LONG)]))
    assert patience.cancelled_caught


async def test_calls_at_once_have_limits_of_their_own() -> None:
    def reply(options: CallOptions) -> Any:
        text = options.prompt[0].content[0].text  # type: ignore[union-attr]  # a user's text
        return AFTER_CONTENT if text == "slow" else parts("quick")

    model = wrap_model(ScriptedModel([reply], repeat=True), [Timeout(call=ENOUGH)])
    ended: list[str] = []

    async def ask(text: str) -> None:
        try:
            await read(model, CallOptions.from_text(text))
            ended.append(text)
        except ProviderTimeoutError:
            ended.append(f"{text}, timed out")

    async with anyio.create_task_group() as tasks:
        for text in ("slow", "quick", "slow", "quick"):
            tasks.start_soon(ask, text)
    assert ended == ["quick", "quick", "slow, timed out", "slow, timed out"]


# -- where it stands


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (
            {"call": 60, "attempt": 20},
            [
                ("timeout", "EDGE", "the call takes at most 60 s"),
                ("timeout.attempt", "LIMIT", "an attempt takes at most 20 s"),
            ],
        ),
        ({"call": 60}, [("timeout", "EDGE", "the call takes at most 60 s")]),
        ({"attempt": 2.5}, [("timeout", "LIMIT", "an attempt takes at most 2.5 s")]),
    ],
)
def test_each_limit_has_its_place_and_none_stands_there_without_one(
    options: dict[str, Any], shown: list[tuple[str, str, str]]
) -> None:
    views = explain(wrap_model(ScriptedModel([]), [Timeout(**options)])).members
    assert [(view.id, view.stage, view.rules) for view in views] == shown


class RateLimit(Middleware):
    stage = Stage.LIMIT - 50


class CircuitBreaker(Middleware):
    stage = Stage.LIMIT


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({"call": 1, "attempt": 1}, ("timeout", "retry", "circuit_breaker", "rate_limit", "timeout.attempt")),
        ({"attempt": 1}, ("retry", "circuit_breaker", "rate_limit", "timeout")),
    ],
)
def test_the_limit_of_an_attempt_stands_inside_of_what_makes_attempts_wait(
    options: dict[str, Any], ids: tuple[str, ...]
) -> None:
    model = wrap_model(ScriptedModel([]), [Timeout(**options), RateLimit(), CircuitBreaker(), Retry()])
    assert explain(model).request_order == (*ids, "scripted:scripted-1")


def test_both_places_go_by_one_condition_and_one_switch() -> None:
    timeout = Timeout(call=1, attempt=1)
    elsewhere = explain(wrap_model(ScriptedModel([]), [Use(timeout, when=When(provider="acme")), Layer()]))
    off = explain(wrap_model(ScriptedModel([]), [Use(timeout, mode="off"), Layer()]))
    for explained in (elsewhere, off):
        assert [id for id, _ in explained.left_out] == ["timeout", "timeout.attempt"]


@pytest.mark.parametrize("config", [{"call": 1, "attempt": 1}, {"call": 1}, {"attempt": 1}])
def test_in_a_configuration_both_are_switched_off_by_one_name(config: dict[str, Any]) -> None:
    source = {"middlewares": [{"id": "timeout", "config": config}, "logging"]}
    pipeline = Pipeline.from_config(source, registry=load_plugins(environ={}))
    assert pipeline.wrap(ScriptedModel([]), overrides={"disable": ["timeout"]}).chain.ids == ("logging",)  # type: ignore[attr-defined]


def test_one_that_limits_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="timeout limits nothing: set call, attempt or both, in seconds"):
        Timeout()


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), "long"])
@each_limit
def test_a_limit_that_is_no_time_is_refused(limit: str, seconds: Any) -> None:
    with pytest.raises(ConfigError, match=f"Timeout.{limit}: "):
        only(limit, seconds)


@both
async def test_one_instance_may_stand_in_two_pipelines(kind: Kind) -> None:
    timeout = Timeout(call=SHORT, attempt=LONG)
    slow, quick = ScriptedModel([BEFORE_CONTENT], repeat=True), ScriptedModel([parts("a")], repeat=True)
    first, second = wrap_model(slow, [timeout]), wrap_model(quick, [timeout])
    with pytest.raises(ProviderTimeoutError):
        await run(first, kind)
    await run(second, kind)


# -- together with retry


def guarded(model: LanguageModel, watch: Watch, **limits: Any) -> LanguageModel:
    return wrap_model(model, [watch, Timeout(**limits), Retry(delay=0)])


@both
@pytest.mark.parametrize("script", [[HOLD], BEFORE_CONTENT])
async def test_an_attempt_that_took_too_long_is_closed_and_tried_again(kind: Kind, script: list[Any]) -> None:
    model, watch = ScriptedModel([script, script, parts("at last")]), Watch()
    limited = guarded(model, watch, attempt=ENOUGH, call=LONG)
    if kind == "generate":
        assert (await limited.do_generate(ASKED)).text == "at last"
    else:
        assert await read(limited) == parts("at last")
        assert [call.closed for call in model.calls] == [1, 1, 1]
    assert (watch.only.status, watch.only.attempts) == ("ok", 3)


@both
async def test_when_every_attempt_took_too_long_the_last_ones_error_is_raised(kind: Kind) -> None:
    model, watch = ScriptedModel([BEFORE_CONTENT], repeat=True), Watch()
    with pytest.raises(ProviderTimeoutError, match="an attempt"):
        await run(guarded(model, watch, attempt=SHORT, call=LONG), kind)
    assert (watch.only.status, watch.only.attempts) == ("error", 3)
    assert {call.closed for call in model.calls} == {int(kind == "stream")}


async def test_an_attempt_that_took_too_long_after_its_first_content_is_not_tried_again() -> None:
    model, watch = ScriptedModel([AFTER_CONTENT]), Watch()
    seen: list[StreamPart] = []
    stream = (await guarded(model, watch, attempt=ENOUGH).do_stream(ASKED)).stream
    with pytest.raises(ProviderTimeoutError):
        await read_into(seen, stream)
    assert seen == AFTER_CONTENT[:3]
    assert (watch.only.attempts, model.calls[0].closed) == (1, 1)


@both
async def test_the_limit_of_the_call_ends_the_wait_before_the_next_attempt(kind: Kind) -> None:
    model, watch = ScriptedModel([RateLimitError("busy", retry_after=50)]), Watch()
    with pytest.raises(ProviderTimeoutError, match="the call"):
        await run(guarded(model, watch, call=ENOUGH), kind)
    assert (watch.only.status, watch.only.attempts, len(model.calls)) == ("error", 1, 1)


@both
async def test_the_limit_of_the_call_ends_an_attempt_and_is_not_tried_again(kind: Kind) -> None:
    model, watch = ScriptedModel([RateLimitError("busy"), BEFORE_CONTENT]), Watch()
    with pytest.raises(ProviderTimeoutError, match="the call"):
        await run(guarded(model, watch, call=ENOUGH, attempt=LONG), kind)
    assert (watch.only.status, watch.only.attempts) == ("error", 2)
    assert model.calls[1].closed == (kind == "stream")


@both
async def test_a_call_that_is_cancelled_in_its_second_attempt_asks_nothing_more(kind: Kind) -> None:
    model, watch = ScriptedModel([RateLimitError("busy"), BEFORE_CONTENT]), Watch()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, guarded(model, watch, call=LONG, attempt=LONG), kind)
        await until(lambda: len(model.calls) == 2 and model.calls[1].read == 2)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert (watch.only.status, watch.only.attempts, len(model.calls)) == ("cancelled", 2, 2)
    assert model.calls[1].closed == (kind == "stream")


async def test_over_http_the_socket_of_an_attempt_that_took_too_long_is_closed_before_the_next() -> None:
    hanging = SseReply([openai.chunk({"role": "assistant"}), wire.HOLD])
    with openai_server([hanging, openai.answer("at last")]) as server:
        async with OpenAICompatibleModel("m", base_url=server.base_url, api_key="k") as inner:
            watch = Watch()
            # Long enough for the answer of a loaded machine.
            got = await read(guarded(inner, watch, attempt=0.5))
        ended = await anyio.to_thread.run_sync(server.wait_for_closed, 0)
        assert (len(server.journal), ended.outcome) == (2, "client-closed")
    assert "".join(part.delta for part in got if isinstance(part, TextDelta)) == "at last"
    assert (watch.only.status, watch.only.attempts) == ("ok", 2)


def test_it_keeps_the_contract_of_middlewares() -> None:
    check_middleware(lambda: Timeout(call=60, attempt=60))
