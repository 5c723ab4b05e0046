"""Exactly one outcome for every call, however it ends, in both calls, bare and through ten layers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import anyio.to_thread
import pytest

from neurolink_mw.pipeline import Outcome, wrap_model
from neurolink_mw.protocol import (
    CallContext,
    CallOptions,
    ErrorPart,
    Finish,
    FinishReason,
    Kind,
    LanguageModel,
    PartStream,
    StreamPart,
    StreamResult,
    TextDelta,
)
from neurolink_mw.testing import ScriptedModel

from .builders import ASKED, COST, STOP, Member, Watch, answer, chain, collected, dropping, parts, read, run, watched

pytestmark = pytest.mark.anyio

DEPTHS = [0, 10]
deep = pytest.mark.parametrize("depth", DEPTHS)
both = pytest.mark.parametrize("kind", ["generate", "stream"])


class Broken(Exception):
    pass


class Consumer(Exception):
    pass


def kinds_of_failure(outcome: Outcome) -> tuple[str, type[BaseException] | None]:
    return outcome.status, None if outcome.error is None else type(outcome.error)


# -- whole


@deep
@both
async def test_a_call_that_is_answered_is_ok(kind: Kind, depth: int) -> None:
    model, watch, _ = watched(answer(), depth)
    await run(model, kind)
    outcome = watch.only
    assert (outcome.status, outcome.kind, outcome.answered_by, outcome.error) == ("ok", kind, "model", None)
    assert (outcome.attempts, outcome.model_calls, outcome.usage, outcome.answer_usage) == (1, 1, COST, COST)
    assert outcome.finish_reason == FinishReason("stop")
    assert (outcome.provider, outcome.model_id) == ("scripted", "scripted-1")
    assert outcome.duration > 0


@deep
@both
async def test_a_call_that_fails_before_it_is_answered_is_an_error(kind: Kind, depth: int) -> None:
    error = Broken()
    model, watch, _ = watched(error, depth)
    with pytest.raises(Broken):
        await run(model, kind)
    outcome = watch.only
    assert (outcome.status, outcome.answered_by, outcome.error) == ("error", None, error)
    assert outcome.finish_reason is None
    assert outcome.answer_usage is None


@deep
@both
async def test_an_answer_whose_finish_reason_is_error_is_an_error(kind: Kind, depth: int) -> None:
    model, watch, _ = watched(answer(reason="error"), depth)
    await run(model, kind)
    assert watch.only.status == "error"


@both
async def test_what_is_raised_besides_exceptions_is_an_error_too(kind: Kind) -> None:
    class Stop(BaseException):
        pass

    model, watch, _ = watched(Stop(), 1)
    with pytest.raises(Stop):
        await run(model, kind)
    assert kinds_of_failure(watch.only) == ("error", Stop)


@both
async def test_a_member_that_raises_is_an_error_of_the_call(kind: Kind) -> None:
    async def fail(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        raise Broken

    watch = Watch()
    with pytest.raises(Broken):
        await run(chain(ScriptedModel("Hi"), [Member(transform_params=fail)], watch=watch), kind)
    assert kinds_of_failure(watch.only) == ("error", Broken)
    assert watch.only.attempts == 0


@both
async def test_a_member_that_returns_nothing_is_an_error_of_the_call(kind: Kind) -> None:
    async def forget(model: LanguageModel, options: CallOptions) -> None:
        pass

    watch = Watch()
    with pytest.raises(Exception, match="NoneType"):
        await run(chain(ScriptedModel("Hi"), [Member(wrap_generate=forget, wrap_stream=forget)], watch=watch), kind)
    assert watch.only.status == "error"


# -- streams


@deep
async def test_a_stream_counts_the_parts_that_the_caller_was_given(depth: int) -> None:
    model, watch, _ = watched(parts("a", "b"), depth)
    assert len(await read(model)) == watch.only.parts == 6


@deep
async def test_an_error_part_is_an_error_and_the_outcome_carries_it(depth: int) -> None:
    script = parts("a", finish=None)
    model, watch, _ = watched([*script, ErrorPart(Broken()), Finish(FinishReason("error"), COST)], depth)
    await read(model)
    assert kinds_of_failure(watch.only) == ("error", Broken)
    assert watch.only.finish_reason == FinishReason("error")


async def test_an_error_part_is_an_error_whatever_the_finish_says() -> None:
    model, watch, _ = watched([*parts("a", finish=None), ErrorPart(Broken()), STOP], 0)
    await read(model)
    assert kinds_of_failure(watch.only) == ("error", Broken)


async def test_an_error_part_that_came_as_data_is_an_exception_in_the_outcome() -> None:
    failed = ErrorPart({"type": "overloaded", "message": "secret"})
    model, watch, _ = watched([*parts("a", finish=None), failed, Finish(FinishReason("error"))], 0)
    await read(model)
    assert str(watch.only.error) == "the stream reported an error of type overloaded"


@deep
async def test_a_stream_that_raises_in_the_middle_is_an_error(depth: int) -> None:
    model, watch, inside = watched([*parts("a", finish=None), Broken()], depth)
    with pytest.raises(Broken):
        await read(model)
    assert kinds_of_failure(watch.only) == ("error", Broken)
    assert watch.only.parts == 4
    assert inside.calls[0].closed == 1


@deep
async def test_a_stream_without_a_finish_is_no_whole_answer(depth: int) -> None:
    model, watch, _ = watched(parts("a", finish=None), depth)
    await read(model)
    assert (watch.only.status, watch.only.finish_reason, watch.only.answer_usage) == ("error", None, None)


@deep
async def test_a_consumer_that_stops_at_the_finish_has_a_whole_answer(depth: int) -> None:
    model, watch, inside = watched(parts("a"), depth)
    async with (await model.do_stream(ASKED)).stream as stream:
        async for part in stream:
            if isinstance(part, Finish):
                break
    assert watch.only.status == "ok"
    assert inside.calls[0].closed == 1


@deep
async def test_the_outcome_is_told_before_the_finish_is_passed_on(depth: int) -> None:
    model, watch, _ = watched(parts("a"), depth)
    async with (await model.do_stream(ASKED)).stream as stream:
        async for part in stream:
            assert len(watch.outcomes) == isinstance(part, Finish)


async def test_what_comes_after_the_finish_changes_nothing() -> None:
    async def go_on(stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield part
        yield TextDelta("0", "late")
        yield Finish(FinishReason("error"))
        raise Broken

    async def babble(model: LanguageModel, options: CallOptions) -> StreamResult:
        return (await model.do_stream(options)).through(go_on)

    watch = Watch()
    with pytest.raises(Broken):
        await read(chain(ScriptedModel([parts("a")]), [Member(wrap_stream=babble)], watch=watch))
    assert (watch.only.status, watch.only.parts, watch.only.error) == ("ok", 5, None)


@deep
async def test_a_stream_left_early_is_abandoned(depth: int) -> None:
    model, watch, inside = watched(parts("a", "b", "c"), depth)
    async with (await model.do_stream(ASKED)).stream as stream:
        async for part in stream:
            if isinstance(part, TextDelta):
                break
    assert (watch.only.status, watch.only.parts, watch.only.answered_by) == ("abandoned", 3, None)
    assert inside.calls[0].closed == 1


@deep
async def test_a_consumer_that_raises_abandons_the_stream(depth: int) -> None:
    model, watch, inside = watched(parts("a", "b"), depth)

    async def consume() -> None:
        async with (await model.do_stream(ASKED)).stream as stream:
            async for _ in stream:
                raise Consumer

    with pytest.raises(Consumer):
        await consume()
    assert (watch.only.status, watch.only.error) == ("abandoned", None)
    assert inside.calls[0].closed == 1


@deep
async def test_a_stream_closed_before_it_was_read_is_abandoned(depth: int) -> None:
    model, watch, inside = watched(parts("a"), depth)
    await (await model.do_stream(ASKED)).stream.aclose()
    assert (watch.only.status, watch.only.parts) == ("abandoned", 0)
    assert inside.calls[0].closed == 1


@deep
async def test_closing_twice_is_one_outcome(depth: int) -> None:
    model, watch, inside = watched(parts("a"), depth)
    stream = (await model.do_stream(ASKED)).stream
    await stream.aclose()
    await stream.aclose()
    assert watch.only.status == "abandoned"
    assert inside.calls[0].closed == 1


@deep
async def test_closing_a_stream_that_was_read_out_changes_nothing(depth: int) -> None:
    model, watch, inside = watched(parts("a"), depth)
    stream = (await model.do_stream(ASKED)).stream
    async for _ in stream:
        pass
    await stream.aclose()
    assert watch.only.status == "ok"
    assert inside.calls[0].closed == 1


@deep
async def test_a_stream_dropped_before_it_was_read_is_abandoned(depth: int) -> None:
    model, watch, inside = watched(parts("a"), depth)
    with dropping():
        await model.do_stream(ASKED)
        await collected(lambda: watch.outcomes)
    assert (watch.only.status, watch.only.parts) == ("abandoned", 0)
    assert inside.calls[0].closed == 1


@deep
async def test_a_stream_dropped_in_the_middle_is_abandoned_and_its_parts_are_counted(depth: int) -> None:
    model, watch, inside = watched(parts("a", "b", "c"), depth)

    async def read_some() -> None:
        async for part in (await model.do_stream(ASKED)).stream:
            if isinstance(part, TextDelta):
                return

    with dropping():
        await read_some()
        await collected(lambda: watch.outcomes)
    assert (watch.only.status, watch.only.parts) == ("abandoned", 3)
    assert inside.calls[0].closed == 1


@deep
async def test_a_reader_that_closes_its_iterator_abandons_the_stream(depth: int) -> None:
    model, watch, inside = watched(parts("a"), depth)
    iterator = (await model.do_stream(ASKED)).stream.__aiter__()
    await iterator.__anext__()
    await iterator.aclose()  # type: ignore[attr-defined]
    assert (watch.only.status, watch.only.parts) == ("abandoned", 1)
    assert inside.calls[0].closed == 1


async def test_a_stream_dropped_in_another_thread_is_abandoned() -> None:
    model, watch, inside = watched(parts("a"), 3)
    with dropping():
        held = [await model.do_stream(ASKED)]
        await anyio.to_thread.run_sync(held.clear)
        await collected(lambda: watch.outcomes)
    assert watch.only.status == "abandoned"
    assert inside.calls[0].closed == 1


def test_a_stream_dropped_after_its_loop_has_ended_is_told_to_sync_listeners() -> None:
    watch = Watch()
    held: list[StreamResult] = []

    async def leave_open() -> None:
        held.append(await chain(ScriptedModel([parts("a")]), [], watch=watch).do_stream(ASKED))

    anyio.run(leave_open)
    with dropping():
        held.clear()
    assert watch.only.status == "abandoned"


# -- what an outcome says


@both
async def test_the_outcome_has_the_metadata_and_the_request_id_of_the_call(kind: Kind) -> None:
    model, watch, _ = watched(answer(), 0)
    context = CallContext(request_id="r-1")
    await run(model, kind, ASKED.replace(metadata={"tenant": "acme"}, context=context))
    assert (watch.only.request_id, watch.only.metadata) == ("r-1", {"tenant": "acme"})


@both
async def test_a_call_without_a_context_has_a_request_id_of_its_own(kind: Kind) -> None:
    watch = Watch()
    model = chain(ScriptedModel("Hi", repeat=True), [], watch=watch)
    await run(model, kind)
    await run(model, kind)
    first, second = (outcome.request_id for outcome in watch.outcomes)
    assert first != second
    assert first == watch.outcomes[0].request_id != ""


async def test_an_outcome_names_the_model_as_the_caller_sees_it() -> None:
    watch = Watch()
    await wrap_model(ScriptedModel("Hi"), [watch], provider="p", model_id="m").do_generate(ASKED)
    assert (watch.only.provider, watch.only.model_id) == ("p", "m")


async def test_the_repr_of_an_outcome_has_no_content() -> None:
    model, watch, _ = watched(Broken("the prompt"), 0)
    with pytest.raises(Broken):
        await model.do_generate(ASKED)
    assert repr(watch.only).startswith("Outcome(generate, error, attempts=1, duration=0.")
    assert "the prompt" not in repr(watch.only)
