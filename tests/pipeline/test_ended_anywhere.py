"""However a stream ends, and whoever stands in the way: one outcome, and what the model opened is closed once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Literal

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neurolink_mw.errors import ServerError
from neurolink_mw.pipeline import Member as AnyMember
from neurolink_mw.pipeline import Use, wrap_model
from neurolink_mw.protocol import CallOptions, LanguageModel, PartStream, StreamPart, StreamResult
from neurolink_mw.testing import HOLD, ScriptedModel

from .builders import ASKED, Handler, Hook, Layer, Member, Retry, Watch, chain, denying_at, parts, read_into, streaming

PARTS = parts("a", "b", "c")
Ending = Literal["read out", "left", "failed", "cancelled", "closed", "held and cancelled", "held and closed"]


async def lazy(model: LanguageModel, options: CallOptions) -> StreamResult:
    async def play() -> AsyncIterator[StreamPart]:
        async with (await model.do_stream(options)).stream as stream:
            async for part in stream:
                yield part

    return StreamResult(PartStream(play()))


async def leave_open(model: LanguageModel, options: CallOptions) -> StreamResult:
    await anext((await model.do_stream(options)).stream)
    raise ZeroDivisionError


async def fail_in_the_middle(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
    source = stream.__aiter__()
    yield await anext(source)
    await anext(source)
    raise ZeroDivisionError


def with_hook(hook: Hook) -> Callable[[str], Member]:
    return lambda id: Member(id, wrap_stream=hook)


KINDS: dict[str, Callable[[str], AnyMember]] = {
    "layer": Layer,
    "retry": lambda id: Retry(2, id),
    "handler": lambda id: Handler(id=id),
    "lazy": with_hook(lazy),
    "leaves open": with_hook(leave_open),
    "fails": lambda id: streaming(fail_in_the_middle, id),
    "policy": lambda id: denying_at(2, id=id),
}
places = st.tuples(st.sampled_from(sorted(KINDS)), st.sampled_from(["skip", "deny"]), st.booleans())
chains = st.lists(st.lists(places, min_size=1, max_size=3), min_size=1, max_size=3)


def script(ending: Ending, at: int) -> list[object]:
    tail: list[object] = [ServerError("down")] if ending == "failed" else [HOLD] if ending.startswith("held") else []
    return [*PARTS[:at], *tail] if tail else [*PARTS]


async def end(model: LanguageModel, ending: Ending, at: int) -> None:
    if "cancelled" not in ending and "closed" not in ending:
        async with (await model.do_stream(ASKED)).stream as stream:
            for _ in range(at if ending == "left" else 100):
                await anext(stream)
        return
    opened: list[PartStream] = []

    async def reader() -> None:
        async with (await model.do_stream(ASKED)).stream as stream:
            opened.append(stream)
            await read_into([], stream)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader)
        for _ in range(at + 6):
            await anyio.lowlevel.checkpoint()
        if "closed" in ending and opened:
            with suppress(RuntimeError):  # where a member reads by itself, nothing can end its read
                await opened[0].aclose()
        tasks.cancel_scope.cancel()


def expected(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(expected(one) for one in error.exceptions)
    return isinstance(error, ServerError | ZeroDivisionError | StopAsyncIteration | anyio.ClosedResourceError)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(max_examples=150, deadline=None)
@given(chains=chains, ending=st.sampled_from(Ending.__args__), at=st.integers(0, len(PARTS)))  # type: ignore[attr-defined]
def test_one_outcome_and_all_closed_once(
    backend: str, chains: list[list[tuple[str, Literal["skip", "deny"], bool]]], ending: Ending, at: int
) -> None:
    async def play() -> None:
        watch, inside = Watch(), ScriptedModel([script(ending, at)], repeat=True)  # type: ignore[list-item]
        model: LanguageModel = inside
        for level, around in enumerate(chains):
            members = [
                Use(KINDS[kind](f"m{level}-{index}"), on_error=rule, timeout=60 if limited else None)
                for index, (kind, rule, limited) in enumerate(around)
            ]
            model = wrap_model(model, members)
        try:
            with anyio.fail_after(4):
                await end(chain(model, [], watch=watch), ending, at)
        except Exception as error:
            if not expected(error):
                raise
        assert len(watch.outcomes) == 1
        assert [call.closed for call in inside.calls] == [1] * len(inside.calls)

    anyio.run(play, backend=backend)
