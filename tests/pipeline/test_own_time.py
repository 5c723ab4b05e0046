"""A member's time limit: only its own time counts, and what takes longer ends as its place says."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator

import anyio
import anyio.to_thread
import pytest

from neurolink_mw.events import MemberFailed
from neurolink_mw.pipeline import Use
from neurolink_mw.protocol import CallOptions, GenerateResult, Kind, LanguageModel, PartStream, StreamPart
from neurolink_mw.testing import Pause, ScriptedModel

from .builders import (
    ASKED,
    Hook,
    Layer,
    Member,
    Watch,
    chain,
    collected,
    dropping,
    hooked,
    parts,
    read,
    run,
    said,
    streaming,
    text_of,
)

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])
REFUSED = "This request could not be checked, so it was refused."
LIMIT = 0.02
OVER = 0.05
"""Longer than the limit: the clock is the real one, and only here do tests wait for it."""


async def hang(model: LanguageModel, options: CallOptions) -> GenerateResult:
    await anyio.sleep_forever()
    raise AssertionError


async def ask_and_hang(model: LanguageModel, options: CallOptions) -> GenerateResult:
    await model.do_generate(options)
    await anyio.sleep_forever()
    raise AssertionError


async def hog(model: LanguageModel, options: CallOptions) -> GenerateResult:
    result = await model.do_generate(options)
    time.sleep(OVER)  # noqa: ASYNC251  # what cannot be interrupted
    return result


SLOW: list[Hook] = [hang, ask_and_hang, hog]
slow = pytest.mark.parametrize("hook", SLOW, ids=lambda hook: hook.__name__)


# -- what takes too long


@both
@slow
async def test_what_takes_too_long_is_skipped(kind: Kind, hook: Hook) -> None:
    watch, inside = Watch(), ScriptedModel("Hi")
    assert await text_of(chain(inside, [Use(hooked(hook), on_error="skip", timeout=LIMIT)], watch=watch), kind) == "Hi"
    assert [(finding.error, finding.handling) for finding in failures(watch)] == [("TimeoutError", "skip")]
    assert len(inside.calls) == 1


def failures(watch: Watch) -> list[MemberFailed]:
    return [finding for finding in watch.only.findings if isinstance(finding, MemberFailed)]


@both
@slow
async def test_or_denies_the_call(kind: Kind, hook: Hook) -> None:
    assert (
        await text_of(chain(ScriptedModel("Hi"), [Use(hooked(hook), on_error="deny", timeout=LIMIT)]), kind) == REFUSED
    )


@both
@slow
async def test_or_is_raised_with_the_name_and_the_limit(kind: Kind, hook: Hook) -> None:
    with pytest.raises(TimeoutError, match=r"^member took more than 0\.02 s of its own time$"):
        await run(chain(ScriptedModel("Hi"), [Use(hooked(hook), timeout=LIMIT)]), kind)


@both
async def test_a_hook_on_the_way_in_counts(kind: Kind) -> None:
    async def hang_on_the_way_in(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        await anyio.sleep_forever()
        return options

    member = Member(transform_params=hang_on_the_way_in)
    assert await text_of(chain(ScriptedModel("Hi"), [Use(member, on_error="skip", timeout=LIMIT)]), kind) == "Hi"


async def test_a_stream_that_hangs_in_the_member_goes_on_without_it() -> None:
    async def hang_after_two(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        source = stream.__aiter__()
        yield await anext(source)
        yield await anext(source)
        await anext(source)
        await anyio.sleep_forever()

    inside = ScriptedModel([parts("a", "b")])
    model = chain(inside, [Use(streaming(hang_after_two), on_error="skip", timeout=LIMIT)])
    assert await read(model) == parts("a", "b")
    assert (len(inside.calls), inside.calls[0].closed) == (1, 1)


async def test_code_in_a_stream_that_cannot_be_interrupted_loses_no_part() -> None:
    async def hog_once(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        async for part in stream:
            if part.type == "text-delta":
                time.sleep(OVER)  # noqa: ASYNC251
            yield part

    watch = Watch()
    model = chain(
        ScriptedModel([parts("a", "b")]), [Use(streaming(hog_once), on_error="skip", timeout=LIMIT)], watch=watch
    )
    assert await read(model) == parts("a", "b")
    assert [finding.error for finding in failures(watch)] == ["TimeoutError"]


async def test_the_time_of_one_call_adds_up_over_the_parts() -> None:
    async def a_little_each(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        async for part in stream:
            await anyio.sleep(LIMIT / 3)
            yield part

    with pytest.raises(TimeoutError):
        await read(chain(ScriptedModel([parts(*"abcdef")]), [Use(streaming(a_little_each), timeout=LIMIT)]))


@both
async def test_who_overran_while_the_model_worked_for_it_is_cancelled_when_it_waits_again(kind: Kind) -> None:
    """The time was up before the model was asked, in code that cannot be interrupted."""

    async def hog_ask_hang(model: LanguageModel, options: CallOptions) -> GenerateResult:
        time.sleep(OVER)  # noqa: ASYNC251
        await model.do_generate(options)
        await anyio.sleep_forever()
        raise AssertionError

    model = chain(ScriptedModel("Hi", delay=LIMIT), [Use(hooked(hog_ask_hang), on_error="skip", timeout=LIMIT)])
    with anyio.fail_after(5):
        assert await text_of(model, kind) == "Hi"


# -- what does not count


@both
async def test_a_slow_model_is_not_the_members_time(kind: Kind) -> None:
    inside = ScriptedModel("Hi", delay=OVER)
    assert await text_of(chain(inside, [Use(Layer(), on_error="deny", timeout=LIMIT)]), kind) == "Hi"


@both
async def test_nor_is_a_timeout_of_the_model(kind: Kind) -> None:
    watch, inside = Watch(), ScriptedModel([TimeoutError("the model's")])
    model = chain(inside, [Use(Layer(), on_error="skip", timeout=60)], watch=watch)
    with pytest.raises(TimeoutError, match="the model's"):
        await run(model, kind)
    assert watch.only.findings == ()


async def test_nor_is_a_model_that_streams_slowly() -> None:
    inside = ScriptedModel([[*parts("a", finish=None), Pause(OVER), *parts("b")[-1:]]])
    assert said(await read(chain(inside, [Use(Layer(), on_error="deny", timeout=LIMIT)]))) == "a"


async def test_nor_is_a_reader_who_takes_his_time() -> None:
    inside = ScriptedModel([parts("a")])
    seen = []
    async with (await chain(inside, [Use(Layer(), on_error="deny", timeout=LIMIT)]).do_stream(ASKED)).stream as stream:
        async for part in stream:
            seen.append(part)
            if len(seen) == 2:
                await anyio.sleep(OVER)
    assert seen == parts("a")


@both
async def test_two_calls_of_the_model_at_once_stop_the_clock_until_both_are_back(kind: Kind) -> None:
    async def hedge(model: LanguageModel, options: CallOptions) -> GenerateResult:
        results: list[GenerateResult] = []

        async def ask() -> None:
            results.append(await model.do_generate(options))
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(ask)
        return results[0]

    inside = ScriptedModel("Hi", delay=OVER, repeat=True)
    assert await text_of(chain(inside, [Use(hooked(hedge), on_error="deny", timeout=LIMIT)]), kind) == "Hi"


# -- what it must not disturb


async def test_a_limit_of_the_readers_own_around_one_read_is_his() -> None:
    inside = ScriptedModel([[*parts("a", finish=None), Pause(30.0)]])
    async with (await chain(inside, [Use(Layer(), timeout=30.0)]).do_stream(ASKED)).stream as stream:
        for _ in range(4):
            with anyio.fail_after(5):
                await anext(stream)
        with anyio.move_on_after(LIMIT) as patience:
            await anext(stream)
        assert patience.cancelled_caught
    assert inside.calls[0].closed == 1


async def test_reads_may_come_from_different_tasks() -> None:
    stream = (await chain(ScriptedModel([parts("a")]), [Use(Layer(), timeout=30.0)]).do_stream(ASKED)).stream
    seen: list[StreamPart] = []

    async def one() -> None:
        seen.append(await anext(stream))

    for _ in range(len(parts("a"))):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one)
    await stream.aclose()
    assert seen == parts("a")


async def test_a_dropped_stream_is_not_kept_by_its_timer() -> None:
    watch = Watch()
    with dropping():
        model = chain(ScriptedModel([parts("a")]), [Use(Layer(), timeout=3600)], watch=watch)
        stream = (await model.do_stream(ASKED)).stream
        await anext(stream)
        del stream
        await collected(lambda: watch.outcomes)
    assert watch.only.status == "abandoned"


# -- in a worker thread


class Sync(Layer):
    """Sync hooks that block."""

    def __init__(self, event: threading.Event) -> None:
        super().__init__()
        self.event = event
        self.thread: int | None = None

    def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:  # type: ignore[override]
        self.thread = threading.get_ident()
        self.event.wait(5)
        return options


@both
async def test_blocking_runs_sync_hooks_in_a_thread(kind: Kind) -> None:
    member = Sync(done := threading.Event())
    done.set()
    assert await text_of(chain(ScriptedModel("Hi"), [Use(member, blocking=True)]), kind) == "Hi"
    assert member.thread not in (None, threading.get_ident())


@both
async def test_one_that_takes_too_long_is_left_behind_there(kind: Kind) -> None:
    member = Sync(done := threading.Event())
    place = Use(member, blocking=True, on_error="skip", timeout=LIMIT)
    try:
        with anyio.fail_after(4):
            assert await text_of(chain(ScriptedModel("Hi"), [place]), kind) == "Hi"
    finally:
        done.set()


@both
async def test_a_denial_in_a_thread_denies(kind: Kind) -> None:
    def deny(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        raise options.context.deny("no", "I cannot.")

    place = Use(Member(transform_params=deny, needs_scope=True), blocking=True)
    assert await text_of(chain(ScriptedModel("Hi"), [place]), kind) == "I cannot."


@both
async def test_a_sync_hook_may_return_the_inner_call(kind: Kind) -> None:
    member = Member(
        wrap_generate=lambda model, options: model.do_generate(options),
        wrap_stream=lambda model, options: model.do_stream(options),
    )
    assert await text_of(chain(ScriptedModel("Hi"), [Use(member, blocking=True, timeout=60)]), kind) == "Hi"
