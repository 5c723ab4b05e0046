"""A member that fails in a stream and is skipped: the model's parts come out exactly, or the failure is raised."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Literal

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.errors import ServerError
from neurolink_mw.events import MemberFailed
from neurolink_mw.pipeline import Use
from neurolink_mw.protocol import (
    CallOptions,
    LanguageModel,
    PartStream,
    RequestInfo,
    StreamPart,
    StreamResult,
    TextDelta,
    primed,
)
from neurolink_mw.testing import ScriptedModel

from .builders import (
    ASKED,
    Hook,
    Member,
    OwnFault,
    Watch,
    answer,
    chain,
    failing_after,
    parts,
    read,
    read_into,
    said,
    skipped_generator,
    streaming,
)

pytestmark = pytest.mark.anyio

PARTS = parts("a", "b", "c")


def skipped(hook: Hook) -> Use:
    return Use(Member(wrap_stream=hook, needs_scope=True), on_error="skip")


# -- exact


@pytest.mark.parametrize("count", range(len(PARTS) + 1))
async def test_a_member_that_fails_after_it_passed_parts_on_unchanged_leaves_no_trace(count: int) -> None:
    watch, inside = Watch(), ScriptedModel([PARTS])
    assert await read(chain(inside, [failing_after(count)], watch=watch)) == PARTS
    assert (len(inside.calls), inside.calls[0].closed) == (1, 1)
    assert (watch.only.status, watch.only.answered_by) == ("ok", "model")
    assert [type(finding) for finding in watch.only.findings] == ([MemberFailed] if count < len(PARTS) else [])


@pytest.mark.parametrize(("count", "taken"), [(0, 1), (0, 3), (2, 2), (0, len(PARTS)), (3, len(PARTS) - 3)])
async def test_what_it_took_and_did_not_pass_on_is_given_out(count: int, taken: int) -> None:
    inside = ScriptedModel([PARTS])
    assert await read(chain(inside, [failing_after(count, taken=taken)])) == PARTS
    assert (len(inside.calls), inside.calls[0].closed) == (1, 1)


async def test_a_member_that_fails_in_the_call_after_it_read_ahead_is_skipped_too() -> None:
    async def peek(model: LanguageModel, options: CallOptions) -> StreamResult:
        async with (await model.do_stream(options)).stream as stream:
            await anext(stream)
            await anext(stream)
            raise OwnFault

    inside = ScriptedModel([answer("Hi").replace(request=RequestInfo({"asked": True}))])
    result = await chain(inside, [skipped(peek)]).do_stream(ASKED)
    async with result.stream as stream:
        assert said([part async for part in stream]) == "Hi"
    assert result.request == RequestInfo({"asked": True})
    assert (len(inside.calls), inside.calls[0].closed) == (1, 1)


async def test_an_answer_that_was_generated_for_a_stream_stands() -> None:
    async def simulate(model: LanguageModel, options: CallOptions) -> StreamResult:
        await model.do_generate(options)

        async def play() -> AsyncIterator[StreamPart]:
            if options:
                raise OwnFault
            yield PARTS[0]

        return StreamResult(PartStream(play()))

    inside = ScriptedModel(["Hi"])
    assert said(await read(chain(inside, [skipped(simulate)]))) == "Hi"
    assert len(inside.calls) == 1


async def test_a_member_that_fails_before_it_asks_while_it_is_read_is_skipped() -> None:
    async def lazy(model: LanguageModel, options: CallOptions) -> StreamResult:
        async def play() -> AsyncIterator[StreamPart]:
            if options:
                raise OwnFault
            yield PARTS[0]

        return StreamResult(PartStream(play()))

    watch, inside = Watch(), ScriptedModel([PARTS])
    assert await read(chain(inside, [skipped(lazy)], watch=watch)) == PARTS
    assert (len(inside.calls), inside.calls[0].closed, watch.only.answered_by) == (1, 1, "model")


async def test_one_that_asks_while_it_is_read_is_exact_too() -> None:
    async def lazy(model: LanguageModel, options: CallOptions) -> StreamResult:
        async def play() -> AsyncIterator[StreamPart]:
            async with (await model.do_stream(options)).stream as stream:
                yield await anext(stream)
                yield await anext(stream)
                raise OwnFault

        return StreamResult(PartStream(play()))

    inside = ScriptedModel([PARTS])
    assert await read(chain(inside, [skipped(lazy)])) == PARTS
    assert (len(inside.calls), inside.calls[0].closed) == (1, 1)


async def test_a_skipped_member_may_clean_up_as_badly_as_it_likes() -> None:
    async def outer(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        yield await anext(stream.__aiter__())
        raise OwnFault

    async def inner(stream: PartStream) -> AsyncIterator[StreamPart]:
        try:
            async for part in stream:
                yield part
        finally:
            raise OwnFault

    async def wrap(model: LanguageModel, options: CallOptions) -> StreamResult:
        result = (await model.do_stream(options)).through(inner)
        return result.through(lambda stream: outer(stream, options))

    inside = ScriptedModel([PARTS])
    assert await read(chain(inside, [skipped(wrap)])) == PARTS
    assert inside.calls[0].closed == 1


# -- too late


CHANGES: dict[str, Callable[[list[StreamPart]], list[StreamPart]]] = {
    "changed": lambda seen: [*seen[:-1], TextDelta("0", "x")],
    "left out": lambda seen: seen[1:],
    "made": lambda seen: [*seen, TextDelta("0", "x")],
    "out of order": lambda seen: [seen[0], seen[2], seen[1]],
    "twice": lambda seen: [*seen, seen[-1]],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_after_a_part_that_is_not_the_models_next_the_failure_is_raised(
    change: Callable[[list[StreamPart]], list[StreamPart]],
) -> None:
    async def change_and_fail(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        source = stream.__aiter__()
        for part in change([await anext(source) for _ in range(3)]):
            yield part
        raise OwnFault

    watch, inside = Watch(), ScriptedModel([PARTS])
    seen: list[StreamPart] = []
    stream = (await chain(inside, [skipped_generator(change_and_fail)], watch=watch).do_stream(ASKED)).stream
    with pytest.raises(OwnFault):
        await read_into(seen, stream)
    assert seen == change(PARTS[:3])
    assert (watch.only.status, inside.calls[0].closed, len(inside.calls)) == ("error", 1, 1)
    assert [finding.handling for finding in watch.only.findings if isinstance(finding, MemberFailed)] == ["raise"]


async def test_a_member_that_turned_to_another_stream_in_the_middle_cannot_be_taken_out() -> None:
    async def switch(model: LanguageModel, options: CallOptions) -> StreamResult:
        first = await model.do_stream(options)

        async def play() -> AsyncIterator[StreamPart]:
            async with first.stream as stream:
                yield await anext(stream)
            async with (await model.do_stream(options)).stream as stream:
                await anext(stream)
                yield await anext(stream)
                raise OwnFault

        return StreamResult(PartStream(play()))

    inside = ScriptedModel([parts("a"), parts("b")])
    seen: list[StreamPart] = []
    with pytest.raises(OwnFault):
        await read_into(seen, (await chain(inside, [skipped(switch)]).do_stream(ASKED)).stream)
    assert [call.closed for call in inside.calls] == [1, 1]


async def test_nor_can_one_that_turned_to_another_in_vain() -> None:
    async def switch(model: LanguageModel, options: CallOptions) -> StreamResult:
        first = await model.do_stream(options)

        async def play() -> AsyncIterator[StreamPart]:
            async with first.stream as stream:
                yield await anext(stream)
            with suppress(ServerError):
                await model.do_stream(options)
            raise OwnFault

        return StreamResult(PartStream(play()))

    inside = ScriptedModel([parts("a"), ServerError("down")])
    seen: list[StreamPart] = []
    with pytest.raises(OwnFault):
        await read_into(seen, (await chain(inside, [skipped(switch)]).do_stream(ASKED)).stream)
    assert (len(seen), inside.calls[0].closed) == (1, 1)


# -- attempts that were given up


async def test_an_attempt_that_was_given_up_is_closed_when_the_next_one_begins() -> None:
    closed: list[int] = []

    async def again(model: LanguageModel, options: CallOptions) -> StreamResult:
        with suppress(ServerError):
            return await primed(await model.do_stream(options))
        result = await primed(await model.do_stream(options))
        closed.append(inside.calls[0].closed)
        return result

    inside = ScriptedModel([[*PARTS[:1], ServerError("down")], PARTS])
    assert await read(chain(inside, [skipped(again)])) == PARTS
    assert (closed, [call.closed for call in inside.calls]) == ([1], [1, 1])


@pytest.mark.parametrize("closed_first", [False, True])
async def test_one_that_is_given_up_is_closed_once_there_is_no_way_back(closed_first: bool) -> None:
    closed: list[int] = []

    async def fall_back(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        await anext(stream.__aiter__())
        if closed_first:
            await stream.aclose()
        yield TextDelta("0", "instead")
        await stream.aclose()
        closed.append(inside.calls[0].closed)

    inside = ScriptedModel([PARTS])
    await read(chain(inside, [skipped_generator(fall_back)]))
    assert (closed, inside.calls[0].closed) == ([1], 1)


async def test_of_two_attempts_the_last_one_stands_where_the_member_fails() -> None:
    async def again(model: LanguageModel, options: CallOptions) -> StreamResult:
        await (await model.do_stream(options)).stream.aclose()
        await model.do_stream(options)
        raise OwnFault

    inside = ScriptedModel([parts("a"), parts("b")])
    assert said(await read(chain(inside, [skipped(again)]))) == "b"
    assert [call.closed for call in inside.calls] == [1, 1]


async def test_if_the_last_one_failed_its_failure_is_raised() -> None:
    async def again(model: LanguageModel, options: CallOptions) -> StreamResult:
        await (await model.do_stream(options)).stream.aclose()
        with suppress(ServerError):
            await model.do_stream(options)
        raise OwnFault

    inside = ScriptedModel([parts("a"), ServerError("down")])
    with pytest.raises(ServerError, match="down"):
        await read(chain(inside, [skipped(again)]))
    assert inside.calls[0].closed == 1


# -- the model fails


@pytest.mark.parametrize("hides", [False, True])
async def test_a_model_that_breaks_off_is_not_the_members_failure(hides: bool) -> None:
    async def hide(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        try:
            async for part in stream:
                yield part
        except ServerError:
            if hides:
                raise OwnFault from None
            raise

    watch, inside = Watch(), ScriptedModel([[*PARTS[:3], ServerError("down")]])
    seen: list[StreamPart] = []
    stream = (await chain(inside, [skipped_generator(hide)], watch=watch).do_stream(ASKED)).stream
    with pytest.raises(ServerError, match="down"):
        await read_into(seen, stream)
    assert (seen, watch.only.status, inside.calls[0].closed) == (PARTS[:3], "error", 1)
    assert len(watch.only.findings) == hides


async def test_a_stream_that_ends_without_a_finish_ends_so_for_the_caller_too() -> None:
    watch = Watch()
    assert await read(chain(ScriptedModel([PARTS[:-1]]), [failing_after(2)], watch=watch)) == PARTS[:-1]
    assert watch.only.status == "error"


# -- deny and raise in the middle


async def test_deny_refuses_in_the_middle() -> None:
    async def fail(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        yield await anext(stream.__aiter__())
        raise OwnFault

    watch, inside = Watch(), ScriptedModel([PARTS])
    seen = await read(chain(inside, [Use(streaming(fail), on_error="deny")], watch=watch))
    assert said(seen) == "This request could not be checked, so it was refused."
    assert (watch.only.status, inside.calls[0].closed) == ("denied", 1)


# -- whatever it does

Step = Literal["pass", "take", "drop", "change", "add", "fail"]


def playing(steps: Sequence[Step]) -> Use:
    """A member that passes on, takes without passing on yet, leaves out, changes, adds, fails."""

    async def play(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        source, held = stream.__aiter__(), []
        for step in steps:
            if step == "fail":
                raise OwnFault
            if step == "add":
                yield TextDelta("0", "added")
                continue
            try:
                held.append(await anext(source))
            except StopAsyncIteration:
                break
            if step == "drop":
                held.pop()
            elif step == "change":
                held.pop()
                yield TextDelta("0", "changed")
            elif step == "pass":
                yield held.pop(0)
        for part in held:
            yield part
        async for part in source:
            yield part

    return skipped_generator(play)


steps = st.lists(st.sampled_from(["pass", "pass", "pass", "take", "drop", "change", "add", "fail"]), max_size=10)


@given(steps=steps)
def test_what_comes_out_is_what_the_model_said_or_the_failure_is_raised_after_a_change(steps: list[Step]) -> None:
    async def play() -> None:
        inside, seen = ScriptedModel([PARTS]), list[StreamPart]()
        stream = (await chain(inside, [playing(steps)]).do_stream(ASKED)).stream
        failed = False
        try:
            await read_into(seen, stream)
        except OwnFault:
            failed = True
        assert (len(inside.calls), inside.calls[0].closed) == (1, 1)
        if failed:
            assert seen != PARTS[: len(seen)]
        elif not {"drop", "change", "add"} & set(steps):
            assert seen == PARTS

    anyio.run(play)
