"""`lifecycle`: your functions at the start, at each piece of text and at the end of every call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.middlewares.lifecycle_kit import ANSWER, ASKED, COST, Event, Told, call, parts, read

from neurolink_mw import CallOptions, GenerateResult, LanguageModel, Middleware, Stage, wrap_model
from neurolink_mw.config import Pipeline
from neurolink_mw.errors import RateLimitError
from neurolink_mw.middlewares.lifecycle import Finished, Lifecycle, Started
from neurolink_mw.protocol import (
    ErrorPart,
    Finish,
    FinishReason,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamStart,
    TextDelta,
)
from neurolink_mw.testing import HOLD, ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def told() -> Told:
    return Told()


# ------------------------------------------------------------------------------------------------ what is told, when


async def test_a_generated_answer_is_told_at_its_start_and_its_end(told: Told) -> None:
    await wrap_model(ScriptedModel([ANSWER]), [told.lifecycle()]).do_generate(ASKED.replace(metadata={"tenant": "a"}))
    started, finished = told.events
    assert isinstance(started, Started)
    assert (started.kind, started.provider, started.model_id) == ("generate", "scripted", "scripted-1")
    assert started.metadata == {"tenant": "a"}
    assert isinstance(finished, Finished)
    assert (finished.status, finished.text, finished.usage) == ("ok", "one two", COST)
    assert finished.finish_reason == FinishReason("stop")
    assert 0 < finished.duration < 60
    assert started.request_id == finished.request_id != ""


async def test_a_stream_is_told_piece_by_piece_with_numbers_from_zero(told: Told) -> None:
    await read(wrap_model(ScriptedModel([parts("a", "", "b")]), [told.lifecycle()]))
    assert told.kinds == ["Started", "Chunk", "Chunk", "Finished"]
    _, first, second, finished = told.events
    assert [(one.text_delta, one.sequence_number, one.type) for one in (first, second)] == [
        ("a", 0, "text"),
        ("b", 1, "text"),
    ]
    assert (finished.text, finished.usage, finished.finish_reason) == ("ab", COST, FinishReason("stop"))


async def test_only_text_is_a_chunk(told: Told) -> None:
    script = [StreamStart(), ReasoningStart("r"), ReasoningDelta("r", "hm"), ReasoningEnd("r"), *parts("a")[1:]]
    await read(wrap_model(ScriptedModel([script]), [told.lifecycle()]))
    assert told.kinds == ["Started", "Chunk", "Finished"]


async def test_a_chunk_is_told_before_it_is_passed_on_and_the_end_before_the_caller_sees_it() -> None:
    journal: list[str] = []

    async def note(event: Event) -> None:
        await anyio.lowlevel.checkpoint()
        journal.append(f"told {type(event).__name__}")

    member = Lifecycle(on_start=note, on_chunk=note, on_finish=note)
    result = await wrap_model(ScriptedModel([parts("a", "b")]), [member]).do_stream(ASKED)
    async with result.stream as stream:
        async for part in stream:
            if isinstance(part, TextDelta | Finish):
                journal.append(f"saw {type(part).__name__}")
    assert journal == ["told Started", *("told Chunk", "saw TextDelta") * 2, "told Finished", "saw Finish"]


async def test_a_failure_is_told_before_the_caller_sees_it() -> None:
    journal: list[str] = []
    model = wrap_model(ScriptedModel([RateLimitError("x")]), [Lifecycle(on_error=lambda _: journal.append("told"))])
    try:
        await model.do_generate(ASKED)
    except RateLimitError:
        journal.append("saw")
    assert journal == ["told", "saw"]


async def _async_callback(event: Event) -> None:
    _seen.append(event)


def _sync_callback(event: Event) -> None:
    _seen.append(event)


class _AsyncObject:
    async def __call__(self, event: Event) -> None:
        _seen.append(event)


def _returns_an_awaitable(event: Event) -> Awaitable[None]:
    return _async_callback(event)


_seen: list[Event] = []


@pytest.mark.parametrize("callback", [_async_callback, _sync_callback, _AsyncObject(), _returns_an_awaitable])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_callback_is_any_kind_of_callable_and_is_called_once(
    callback: Callable[[Event], object], streamed: bool
) -> None:
    _seen.clear()
    member = Lifecycle(on_start=callback, on_finish=callback)
    await call(wrap_model(ScriptedModel([ANSWER]), [member]), streamed)
    assert [type(event) for event in _seen] == [Started, Finished]


async def test_callbacks_are_named_in_a_configuration_as_module_and_function() -> None:
    _seen.clear()
    named = f"{__name__}:_sync_callback"
    config = {"middlewares": [{"id": "lifecycle", "config": {"on_finish": named}}]}
    await Pipeline.from_config(config).wrap(ScriptedModel([ANSWER])).do_generate(ASKED)
    assert [type(event) for event in _seen] == [Finished]


# ------------------------------------------------------------------------- exactly one end, however the call ends


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_failure_of_the_model_is_told_with_the_error_itself(told: Told, streamed: bool) -> None:
    error = RateLimitError("too many", status=429)
    with pytest.raises(RateLimitError):
        await call(wrap_model(ScriptedModel([error]), [told.lifecycle()]), streamed)
    assert told.kinds == ["Started", "Failed"]
    failed = told.events[-1]
    assert failed.error is error
    assert failed.recoverable
    assert 0 < failed.duration < 60


async def test_a_failure_in_the_middle_of_a_stream_is_told(told: Told) -> None:
    script = [*parts("a")[:3], RateLimitError("cut")]
    with pytest.raises(RateLimitError):
        await read(wrap_model(ScriptedModel([script]), [told.lifecycle()]))
    assert told.kinds == ["Started", "Chunk", "Failed"]


async def test_an_error_part_is_a_failure_and_no_finish(told: Told) -> None:
    error = RateLimitError("cut")
    script = [*parts("a")[:4], ErrorPart(error), Finish(FinishReason("error"))]
    await read(wrap_model(ScriptedModel([script]), [told.lifecycle()]))
    assert told.kinds == ["Started", "Chunk", "Failed"]
    assert told.events[-1].error is error


async def test_a_finish_with_the_reason_error_is_a_failure(told: Told) -> None:
    await wrap_model(
        ScriptedModel([ANSWER.replace(finish_reason=FinishReason("error"))]), [told.lifecycle()]
    ).do_generate(ASKED)
    assert told.kinds == ["Started", "Failed"]


async def test_a_stream_that_the_caller_leaves_is_finished_with_what_had_come(told: Told) -> None:
    result = await wrap_model(ScriptedModel([parts("a", "b")]), [told.lifecycle()]).do_stream(ASKED)
    async with result.stream as stream:
        async for part in stream:
            if isinstance(part, TextDelta):
                break
    assert told.kinds == ["Started", "Chunk", "Finished"]
    assert (told.events[-1].status, told.events[-1].text) == ("abandoned", "a")


async def test_a_stream_that_is_never_read_is_finished_too(told: Told) -> None:
    result = await wrap_model(ScriptedModel([parts("a")]), [told.lifecycle()]).do_stream(ASKED)
    await result.stream.aclose()
    assert [(type(event), event.status) for event in told.events[1:]] == [(Finished, "abandoned")]


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_cancelled_call_is_finished_as_cancelled(told: Told, streamed: bool) -> None:
    script: list[Any] = [*parts("a")[:3], HOLD]
    model = wrap_model(ScriptedModel([script]), [told.lifecycle()])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, model, streamed)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert told.kinds[-1] == "Finished"
    assert told.kinds.count("Finished") + told.kinds.count("Failed") == 1
    assert told.events[-1].status == "cancelled"


async def test_one_error_object_of_two_calls_is_told_for_each(told: Told) -> None:
    """A failure that is kept and raised again, as by an open circuit, is another failed call."""
    error = RateLimitError("still too many")
    model = wrap_model(ScriptedModel([error], repeat=True), [told.lifecycle()])
    for _ in range(2):
        with pytest.raises(RateLimitError):
            await model.do_generate(ASKED)
    assert told.kinds == ["Started", "Failed"] * 2


async def test_an_error_is_told_once_through_a_pipeline_within_a_pipeline(told: Told) -> None:
    member = told.lifecycle()
    inner = wrap_model(ScriptedModel([RateLimitError("x")]), [member])
    with pytest.raises(RateLimitError):
        await wrap_model(inner, [member]).do_generate(ASKED)
    assert told.kinds.count("Failed") == 1


async def test_an_error_that_was_wrapped_on_its_way_is_told_once(told: Told) -> None:
    class Wrapping(Middleware):
        async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
            try:
                return await model.do_generate(options)
            except RateLimitError as error:
                raise LookupError("no answer") from error

    member = told.lifecycle()
    inner = wrap_model(ScriptedModel([RateLimitError("x")]), [member])
    with pytest.raises(LookupError):
        await wrap_model(inner, [member, Wrapping()]).do_generate(ASKED)
    assert told.kinds.count("Failed") == 1


async def test_the_start_is_told_once_where_somebody_further_out_tries_again(told: Told) -> None:
    class Twice(Middleware):
        stage = Stage.EDGE

        async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
            await model.do_generate(options)
            return await model.do_generate(options)

    await wrap_model(ScriptedModel(["first", "second"]), [Twice(), told.lifecycle()]).do_generate(ASKED)
    assert told.kinds == ["Started", "Finished"]
    assert told.events[-1].text == "second"
