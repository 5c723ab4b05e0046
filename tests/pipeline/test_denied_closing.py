"""A stream that is refused is closed and told once, however it is left."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest

from neurolink_mw.errors import PolicyDenied
from neurolink_mw.pipeline import wrap_model
from neurolink_mw.protocol import CallOptions, PartStream, StreamPart
from neurolink_mw.testing import HOLD, ScriptedModel

from .builders import (
    ASKED,
    NO_TOKENS,
    Layer,
    Watch,
    chain,
    closed_while_read,
    collected,
    denying_at,
    dropping,
    parts,
    policy,
    read,
    said,
    streaming,
)

pytestmark = pytest.mark.anyio


async def test_what_the_model_opened_is_closed_before_the_refusal() -> None:
    inside = ScriptedModel([[*parts("a", finish=None), HOLD]])
    async with (await wrap_model(inside, [denying_at(3), Layer()]).do_stream(ASKED)).stream as stream:
        async for part in stream:
            if part.type == "text-delta" and said([part]) == "I cannot.":
                assert inside.calls[0].closed == 1
    assert inside.calls[0].closed == 1


@pytest.mark.parametrize("left_at", range(3, 7))
async def test_a_consumer_may_leave_in_the_middle_of_a_refusal(left_at: int) -> None:
    watch, inside = Watch(), ScriptedModel([[*parts("a", finish=None), HOLD]])
    async with (await chain(inside, [denying_at(3)], watch=watch).do_stream(ASKED)).stream as stream:
        for _ in range(left_at + 1):
            await anext(stream)
    assert (watch.only.status, inside.calls[0].closed) == ("denied", 1)
    assert isinstance(watch.only.error, PolicyDenied)


async def test_a_refusal_that_is_dropped_in_the_middle_is_told_once() -> None:
    watch, inside = Watch(), ScriptedModel([[*parts("a", finish=None), HOLD]])
    with dropping():
        stream = (await chain(inside, [denying_at(2)], watch=watch).do_stream(ASKED)).stream
        for _ in range(4):
            await anext(stream)
        del stream
        await collected(lambda: watch.outcomes)
    assert watch.only.status == "denied"


@pytest.mark.parametrize("dropped", [False, True])
async def test_a_refused_stream_that_nobody_reads_was_refused(dropped: bool) -> None:
    watch = Watch()
    with dropping():
        stream = (await chain(ScriptedModel([]), [policy()], watch=watch).do_stream(ASKED)).stream
        if not dropped:
            await stream.aclose()
        del stream
        await collected(lambda: watch.outcomes)
    outcome = watch.only
    assert (outcome.status, type(outcome.error), outcome.usage) == ("denied", PolicyDenied, NO_TOKENS)


async def test_who_denies_while_it_is_closed_does_not_hurt_the_one_who_leaves() -> None:
    async def guard(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        try:
            async for part in stream:
                yield part
        finally:
            raise options.context.deny("no", "I cannot.")

    watch, inside = Watch(), ScriptedModel([parts("a", "b")])
    async with (await chain(inside, [streaming(guard), Layer()], watch=watch).do_stream(ASKED)).stream as stream:
        await anext(stream)
        await anext(stream)
    assert (watch.only.status, inside.calls[0].closed) == ("denied", 1)


async def test_a_stream_whose_consumer_is_cancelled_while_it_waits_is_cancelled_though_denied() -> None:
    async def wait(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield part
            options.context.deny("no", "I cannot.")
            entered.set()
            await anyio.sleep_forever()

    entered, watch, inside = anyio.Event(), Watch(), ScriptedModel([parts("a")])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, chain(inside, [streaming(wait)], watch=watch))
        await entered.wait()
        tasks.cancel_scope.cancel()
    assert (watch.only.status, inside.calls[0].closed) == ("cancelled", 1)


async def test_a_refusal_closed_from_another_task_while_the_model_hangs() -> None:
    watch, inside = Watch(), ScriptedModel([[*parts("a", finish=None), HOLD]])
    stream = (await chain(inside, [denying_at(9)], watch=watch).do_stream(ASKED)).stream
    await closed_while_read(stream, after=4)
    assert (watch.only.status, inside.calls[0].closed) == ("abandoned", 1)
