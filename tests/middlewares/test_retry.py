"""`retry`: which failures are tried again, after how long, and that a failed attempt leaves no trace in an answer."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.pipeline.builders import ASKED, Watch, parts, read, read_into, run, until

from neurolink_mw import CallOptions, GenerateResult, LanguageModel, Middleware, Stage, Use, wrap_model
from neurolink_mw.errors import (
    ConfigError,
    ConnectionFailed,
    ContextOverflowError,
    InvalidRequestError,
    OverloadedError,
    PolicyDenied,
    ProviderError,
    RateLimitError,
    ServerError,
    StreamInterruptedError,
)
from neurolink_mw.events import Event
from neurolink_mw.events import Retry as RetryEvent
from neurolink_mw.middlewares.retry import Retry
from neurolink_mw.pipeline import Surroundings, explain
from neurolink_mw.protocol import (
    ErrorPart,
    Finish,
    FinishReason,
    Kind,
    ReasoningStart,
    ResponseMetadata,
    StreamPart,
    StreamStart,
    TextDelta,
    TextStart,
    ToolInputDelta,
    ToolInputStart,
    check_grammar,
)
from neurolink_mw.providers.openai_compatible import OpenAICompatibleModel
from neurolink_mw.roles import RequestPolicy, Verdict, deny
from neurolink_mw.testing import HOLD, ScriptedModel, check_middleware
from neurolink_mw.testing.wire import SseReply, openai, openai_server

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("kind", ["generate", "stream"])

PREAMBLE: list[Any] = [StreamStart(), ResponseMetadata(id="given up"), TextStart("0"), TextDelta("0", "")]


class Passing:
    """Time that passes while somebody sleeps, and no other."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()
        self.waits.append(seconds)
        self.now += seconds


def retrying(
    model: LanguageModel,
    time: Passing | None = None,
    *members: Middleware | Use,
    random: Callable[[], float] = lambda: 1.0,
    events: Callable[[Event], None] | None = None,
    **options: Any,
) -> LanguageModel:
    """A model with a retry around it that waits in no time, and as long as it may."""
    time = time or Passing()
    retry = Retry(sleep=time.sleep, random=random, **options)
    surroundings = Surroundings(clock=time.clock, events=events)
    return wrap_model(model, [*members, retry], surroundings=surroundings)


def busy(retry_after: float | None = None) -> RateLimitError:
    return RateLimitError("slow down", status=429, retry_after=retry_after)


# -- what is tried again


@both
async def test_a_failure_that_may_pass_is_tried_again(kind: Kind) -> None:
    model, watch = ScriptedModel([busy(), busy(), "at last"]), Watch()
    await run(retrying(model, None, watch), kind)
    assert len(model.calls) == 3
    assert (watch.only.status, watch.only.attempts, watch.only.model_calls) == ("ok", 3, 3)


@both
@pytest.mark.parametrize("attempts", [1, 2, 3])
async def test_after_the_last_attempt_its_failure_is_raised(kind: Kind, attempts: int) -> None:
    model, watch = ScriptedModel([ServerError(f"failure {number}") for number in range(1, 5)]), Watch()
    with pytest.raises(ServerError, match=f"failure {attempts}"):
        await run(retrying(model, None, watch, attempts=attempts), kind)
    assert (watch.only.status, watch.only.attempts) == ("error", attempts)


class Elsewhere(Exception):
    """An error of another library that says whether to try again."""

    def __init__(self, retryable: object) -> None:
        self.retryable = retryable


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (RateLimitError("x"), 2),
        (OverloadedError("x"), 2),
        (ConnectionFailed("x"), 2),
        (ProviderError("x", retryable=True), 2),
        (Elsewhere(True), 2),
        (RateLimitError("quota used up", retryable=False), 1),
        (InvalidRequestError("x"), 1),
        (ContextOverflowError("x"), 1),
        (ProviderError("x"), 1),
        (Elsewhere("yes"), 1),
        (ValueError("x"), 1),
        (TimeoutError("x"), 1),
        (ConfigError("x"), 1),
    ],
    ids=repr,
)
async def test_only_what_says_that_it_may_pass_is_tried_again(error: Exception, asked: int) -> None:
    model = ScriptedModel([error, "at last"])
    if asked == 1:
        with pytest.raises(type(error)):
            await retrying(model).do_generate(ASKED)
    else:
        assert (await retrying(model).do_generate(ASKED)).text == "at last"
    assert len(model.calls) == asked


@pytest.mark.parametrize(("error", "asked"), [(OverloadedError("x"), 2), (RateLimitError("x"), 1)])
async def test_only_the_errors_that_are_named_are_tried_again_with_what_derives_from_them(
    error: Exception, asked: int
) -> None:
    model = ScriptedModel([error, error])
    with pytest.raises(type(error)):
        await retrying(model, attempts=2, on=["ServerError", "ConnectionFailed"]).do_generate(ASKED)
    assert len(model.calls) == asked


async def test_an_error_that_is_named_and_will_not_pass_is_not_tried_again() -> None:
    model = ScriptedModel([RateLimitError("quota used up", retryable=False)])
    with pytest.raises(RateLimitError):
        await retrying(model, on=["RateLimitError"]).do_generate(ASKED)


@pytest.mark.parametrize(
    ("on", "said"),
    [
        (["RateLimitEror"], "retry.on: there is no such error; did you mean 'RateLimitError'?"),
        (["PolicyDenied"], "retry.on: there is no such error"),
        (["retryable"], "retry.on: there is no such error"),
        ([], "retry.on: name at least one error"),
    ],
)
def test_an_error_that_does_not_exist_is_refused(on: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Retry(on=on)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    "options", [{"attempts": 0}, {"delay": -1}, {"factor": 0.5}, {"deadline": 0}, {"on": "sometimes"}, {"retries": 3}]
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"Retry.{next(iter(options))}"):
        Retry(**options)


class Insistent(PolicyDenied):
    retryable = True


@both
@pytest.mark.parametrize("refusal", [PolicyDenied("no", code="no"), Insistent("no", code="no")], ids=repr)
async def test_a_refusal_by_a_policy_is_never_tried_again(kind: Kind, refusal: PolicyDenied) -> None:
    model, watch = ScriptedModel([refusal]), Watch()
    await run(retrying(model, None, watch), kind)
    assert (watch.only.status, watch.only.attempts) == ("denied", 1)


@both
async def test_a_refusal_further_in_passes(kind: Kind) -> None:
    class Closed(RequestPolicy):
        asked = 0

        def check(self, request: object) -> Verdict:
            self.asked += 1
            return deny("closed")

    policy, model, watch = Closed(), ScriptedModel([]), Watch()
    await run(retrying(model, None, watch, Use(policy, priority=Stage.LIMIT)), kind)
    assert (policy.asked, watch.only.status) == (1, "denied")


# -- how long it waits


async def test_the_longest_wait_doubles_up_to_its_cap() -> None:
    time, model = Passing(), ScriptedModel([busy()], repeat=True)
    with pytest.raises(RateLimitError):
        await retrying(model, time, attempts=8).do_generate(ASKED)
    assert time.waits == [0.5, 1, 2, 4, 8, 16, 20]


async def test_the_wait_is_any_part_of_the_longest() -> None:
    time, model = Passing(), ScriptedModel([busy()], repeat=True)
    drawn = iter([0.0, 0.25, 0.5])
    waiting = retrying(model, time, random=lambda: next(drawn), attempts=4, delay=1, factor=10, max_delay=50)
    with pytest.raises(RateLimitError):
        await waiting.do_generate(ASKED)
    assert time.waits == [0, 2.5, 25]


async def test_even_a_hundred_attempts_have_a_longest_wait() -> None:
    time, model = Passing(), ScriptedModel([busy()], repeat=True)
    with pytest.raises(RateLimitError):
        await retrying(model, time, attempts=100, factor=10).do_generate(ASKED)
    assert time.waits[-1] == 20


@pytest.mark.parametrize("drawn", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("asked", [0.0, 0.1, 2.0, 60.0])
async def test_it_waits_at_least_as_long_as_it_was_asked_to_and_a_little_more(asked: float, drawn: float) -> None:
    time, model = Passing(), ScriptedModel([busy(asked), "at last"])
    await retrying(model, time, random=lambda: drawn).do_generate(ASKED)
    (wait,) = time.waits
    assert asked <= wait == max(asked, 0.5 * drawn) + 0.5 * drawn


@both
async def test_what_is_asked_for_is_too_long_and_the_error_says_how_long(kind: Kind) -> None:
    time, model = Passing(), ScriptedModel([busy(61)])
    with pytest.raises(RateLimitError) as caught:
        await run(retrying(model, time), kind)
    assert (time.waits, caught.value.retry_after) == ([], 61)


@pytest.mark.parametrize("asked", [float("nan"), float("inf")])
async def test_a_wait_that_is_no_time_is_too_long(asked: float) -> None:
    time = Passing()
    with pytest.raises(RateLimitError):
        await retrying(ScriptedModel([busy(asked)]), time).do_generate(ASKED)
    assert time.waits == []


@pytest.mark.parametrize("asked", [-5, "soon", None])
async def test_a_wait_that_says_nothing_is_none(asked: Any) -> None:
    time = Passing()
    await retrying(ScriptedModel([busy(asked), "at last"]), time, random=lambda: 0.5).do_generate(ASKED)
    assert time.waits[0] < 1


async def test_a_wait_that_would_end_after_the_deadline_is_not_begun() -> None:
    time, model = Passing(), ScriptedModel([busy()], repeat=True)
    with pytest.raises(RateLimitError):
        await retrying(model, time, attempts=10, deadline=4).do_generate(ASKED)
    assert time.waits == [0.5, 1, 2]


async def test_the_time_of_the_attempts_counts_against_the_deadline() -> None:
    time = Passing()

    def slow(options: CallOptions) -> BaseException:
        time.now += 3
        return busy()

    model = ScriptedModel([slow], repeat=True)
    with pytest.raises(RateLimitError):
        await retrying(model, time, deadline=4).do_generate(ASKED)
    assert time.waits == [0.5]


async def test_what_is_asked_for_ends_after_the_deadline_and_the_error_goes_out_at_once() -> None:
    time = Passing()
    with pytest.raises(RateLimitError) as caught:
        await retrying(ScriptedModel([busy(3600)]), time, max_retry_after=7200, deadline=30).do_generate(ASKED)
    assert (time.waits, caught.value.retry_after) == ([], 3600)


# -- streams


@pytest.mark.parametrize(
    "failure", [OverloadedError("x"), ErrorPart(OverloadedError("x"))], ids=["raised", "an error part"]
)
@pytest.mark.parametrize("seen", range(len(PREAMBLE) + 1))
async def test_a_stream_that_fails_before_its_first_content_leaves_no_trace(
    failure: ErrorPart | BaseException, seen: int
) -> None:
    model, watch = ScriptedModel([[*PREAMBLE[:seen], failure], parts("whole")]), Watch()
    got = await read(retrying(model, None, watch))
    check_grammar(got)
    assert got == parts("whole")
    assert [call.closed for call in model.calls] == [1, 1]
    assert (watch.only.status, watch.only.attempts) == ("ok", 2)


@pytest.mark.parametrize("begun", [[ReasoningStart("r")], [ToolInputStart("t", "find"), ToolInputDelta("t", "")]])
async def test_what_only_announces_content_is_none(begun: list[StreamPart]) -> None:
    model = ScriptedModel([[StreamStart(), *begun, busy()], parts("whole")])
    assert await read(retrying(model)) == parts("whole")


@pytest.mark.parametrize(
    "begun",
    [
        [TextStart("0"), *(TextDelta("0", text) for text in "abcd")],
        [ToolInputStart("t", "find"), ToolInputDelta("t", '{"a')],
    ],
    ids=["in a text", "in the input of a tool"],
)
@pytest.mark.parametrize("as_part", [False, True])
async def test_after_the_first_content_a_failure_passes(begun: list[StreamPart], as_part: bool) -> None:
    broken = StreamInterruptedError("the connection broke")
    rest: list[Any] = [ErrorPart(broken), Finish(FinishReason("error"))] if as_part else [broken]
    model, watch = ScriptedModel([[StreamStart(), *begun, *rest]]), Watch()
    stream = (await retrying(model, None, watch).do_stream(ASKED)).stream
    seen: list[StreamPart] = []
    if as_part:
        await read_into(seen, stream)
    else:
        with pytest.raises(StreamInterruptedError):
            await read_into(seen, stream)
    assert seen[: len(begun) + 1] == [StreamStart(), *begun]
    assert len(model.calls) == 1
    assert (watch.only.status, watch.only.error) == ("error", broken)
    await stream.aclose()
    assert model.calls[0].closed == 1


async def test_a_stream_that_is_whole_passes_part_by_part() -> None:
    model = ScriptedModel([[*parts("a", finish=None)[:-1], HOLD]])
    stream = (await retrying(model).do_stream(ASKED)).stream
    async with stream:
        async for part in stream:
            if part == TextDelta("0", "a"):
                break
    assert model.calls[0].closed == 1


# -- cancellation


@both
async def test_a_call_that_is_cancelled_while_it_waits_asks_nothing_more(kind: Kind) -> None:
    model, watch = ScriptedModel([busy(50)]), Watch()
    told: list[Event] = []
    slow = wrap_model(model, [watch, Retry()], surroundings=Surroundings(events=told.append))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, slow, kind)
        await until(lambda: any(isinstance(one, RetryEvent) for one in told))
        with anyio.fail_after(1):
            tasks.cancel_scope.cancel()
            await anyio.sleep_forever()
    assert len(model.calls) == 1
    assert (watch.only.status, watch.only.attempts) == ("cancelled", 1)


@both
async def test_a_call_that_is_cancelled_during_an_attempt_is_not_tried_again(kind: Kind) -> None:
    model, watch = ScriptedModel([[StreamStart(), HOLD]]), Watch()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, retrying(model, None, watch), kind)
        await until(lambda: model.calls and model.calls[0].read)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert len(model.calls) == 1
    assert watch.only.status == "cancelled"
    assert model.calls[0].closed == (kind == "stream")


# -- what it tells, and what it keeps


async def test_each_wait_is_told_with_what_failed_and_no_words_of_it() -> None:
    told: list[Event] = []
    failures = [RateLimitError("secret", status=429, retry_after=3), ConnectionFailed("secret"), Elsewhere(True)]
    model = ScriptedModel([*failures, "at last"])
    await retrying(model, events=told.append, attempts=4).do_generate(ASKED)
    retries = [one for one in told if isinstance(one, RetryEvent)]
    assert [(one.by, one.attempt, one.delay, one.error, one.status) for one in retries] == [
        ("retry", 1, 3.5, "RateLimitError", 429),
        ("retry", 2, 1, "ConnectionFailed", None),
        ("retry", 3, 2, "Elsewhere", None),
    ]
    assert {one.request_id for one in told} == {retries[0].request_id} != {""}
    assert "secret" not in repr(told)


async def test_nothing_is_told_where_nothing_is_tried_again() -> None:
    told: list[Event] = []
    with pytest.raises(RateLimitError):
        await retrying(ScriptedModel([busy()]), events=told.append, attempts=1).do_generate(ASKED)
    assert [type(one).__name__ for one in told] == ["CallEnded"]


async def test_one_instance_in_two_pipelines_tells_each_its_own_and_goes_by_each_ones_clock() -> None:
    time = Passing()
    retry = Retry(sleep=time.sleep, random=lambda: 1.0, deadline=10)
    far: list[Event] = []
    near: list[Event] = []

    def hasty() -> float:
        time.now += 20
        return time.now

    failing = [ScriptedModel([busy(), busy(), "at last"], model_id=name) for name in ("far", "near")]
    one = wrap_model(failing[0], [retry], surroundings=Surroundings(clock=time.clock, events=far.append))
    other = wrap_model(failing[1], [retry], surroundings=Surroundings(clock=hasty, events=near.append))
    assert (await one.do_generate(ASKED)).text == "at last"
    with pytest.raises(RateLimitError):
        await other.do_generate(ASKED)
    assert [len([event for event in told if isinstance(event, RetryEvent)]) for told in (far, near)] == [2, 0]


async def test_calls_at_once_count_their_own_attempts() -> None:
    def until_third() -> Callable[[CallOptions], Any]:
        asked: dict[str, int] = {}

        def reply(options: CallOptions) -> Any:
            text = options.prompt[0].content[0].text  # type: ignore[union-attr]  # a user's text
            asked[text] = asked.get(text, 0) + 1
            return f"answer to {text}" if asked[text] == 3 else busy()

        return reply

    model = retrying(ScriptedModel([until_third()], repeat=True))
    answers: set[str] = set()

    async def ask(text: str) -> None:
        answers.add((await model.do_generate(CallOptions.from_text(text))).text)

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(ask, str(number))
    assert answers == {f"answer to {number}" for number in range(20)}


async def test_a_failure_does_not_carry_those_before_it() -> None:
    model = ScriptedModel([ServerError("the first"), ServerError("the last")])
    with pytest.raises(ServerError) as caught:
        await retrying(model, attempts=2).do_generate(ASKED)
    assert "the first" not in "".join(traceback.format_exception(caught.value))


async def test_a_request_goes_into_each_attempt_as_it_came() -> None:
    model = ScriptedModel([busy(), "at last"])
    await retrying(model).do_generate(ASKED)
    assert [call.options.replace(context=ASKED.context) for call in model.calls] == [ASKED, ASKED]


async def test_the_models_own_answer_is_passed_on_as_it_is() -> None:
    given = GenerateResult((), FinishReason("length"))
    assert await retrying(ScriptedModel([given])).do_generate(ASKED) is given


def test_it_shows_where_it_stands_and_how_often_it_tries() -> None:
    model = wrap_model(ScriptedModel([]), [Retry(attempts=5)])
    (view,) = explain(model).members
    assert (view.id, view.stage, view.rules) == ("retry", "RETRY", "up to 5 attempts")


def test_it_costs_no_scope_where_nobody_listens() -> None:
    assert not wrap_model(ScriptedModel([]), [Retry()]).scoped  # type: ignore[attr-defined]


def test_a_retry_around_a_model_that_retries_already_is_refused() -> None:
    inner = wrap_model(ScriptedModel([]), [Retry()])
    with pytest.raises(ConfigError, match="attempts multiply"):
        wrap_model(inner, [Retry()])


# -- over HTTP


@both
@pytest.mark.parametrize(
    ("headers", "least"),
    [
        ({"retry-after": "2"}, 2),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:07 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 7),
    ],
)
async def test_a_server_that_asks_to_wait_gets_one_more_request_after_that(
    kind: Kind, headers: dict[str, str], least: float
) -> None:
    time = Passing()
    with openai_server([openai.error(429, "slow down", headers=headers), openai.answer("at last")]) as server:
        async with OpenAICompatibleModel("m", base_url=server.base_url, api_key="k") as inner:
            await run(retrying(inner, time, random=lambda: 0.0), kind)
        assert (len(server.journal), time.waits) == (2, [least])


@both
async def test_a_server_that_stays_overloaded_gets_as_many_requests_as_there_are_attempts(kind: Kind) -> None:
    time = Passing()
    with openai_server([openai.error(529, "overloaded")], repeat="last") as server:
        async with OpenAICompatibleModel("m", base_url=server.base_url, api_key="k") as inner:
            with pytest.raises(OverloadedError):
                await run(retrying(inner, time), kind)
        assert len(server.journal) == 3


async def test_a_server_that_asks_for_an_hour_gets_no_further_request() -> None:
    time = Passing()
    with openai_server([openai.error(429, "slow down", headers={"retry-after": "3600"})]) as server:
        async with OpenAICompatibleModel("m", base_url=server.base_url, api_key="k") as inner:
            with pytest.raises(RateLimitError) as caught:
                await retrying(inner, time, deadline=30).do_generate(ASKED)
        assert (len(server.journal), time.waits, caught.value.retry_after) == (1, [], 3600)


async def test_an_error_as_the_first_event_of_a_stream_is_not_seen() -> None:
    overloaded = {"error": {"message": "Overloaded", "type": "overloaded_error"}}
    with openai_server([SseReply([overloaded]), openai.answer("whole")]) as server:
        async with OpenAICompatibleModel("m", base_url=server.base_url, api_key="k") as inner:
            got = await read(retrying(inner))
        assert len(server.journal) == 2
    check_grammar(got)
    assert [part.type for part in got].count("stream-start") == 1
    assert "".join(part.delta for part in got if isinstance(part, TextDelta)) == "whole"


async def test_a_connection_that_breaks_after_four_deltas_is_not_tried_again() -> None:
    deltas = [openai.chunk({"content": text}) for text in "abcd"]
    with openai_server([SseReply(deltas, done=False)]) as server:
        async with OpenAICompatibleModel("m", base_url=server.base_url, api_key="k") as inner:
            got: list[StreamPart] = []
            async with (await retrying(inner).do_stream(ASKED)).stream as stream:
                await read_into(got, stream)
        assert len(server.journal) == 1
    assert [part.delta for part in got if isinstance(part, TextDelta)] == list("abcd")
    (failure,) = [part.error for part in got if isinstance(part, ErrorPart)]
    assert isinstance(failure, StreamInterruptedError)


def test_it_keeps_the_contract_of_middlewares() -> None:
    check_middleware(lambda: Retry(delay=0))
