"""Calls, a turn's executor around some tools, and tools that hang."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel
import orjson
import pytest

from neurolink_mw.protocol import CallOptions, ErrorTextOutput, ToolCall, ToolOutcome, ToolOutput, ToolRunner
from neurolink_mw.tools import Answering, Around, Tool, ToolExecution, ToolExecutor, ToolSettings

asyncio_only = pytest.mark.parametrize("anyio_backend", ["asyncio"])
"""For what only asyncio has, such as cancelling a task."""

OPTIONS = CallOptions.from_text("Hello")
SECRET = "hunter2"
"""What no log and no repr may show."""

Hook: TypeAlias = Callable[[ToolRunner, ToolCall], Awaitable[ToolOutcome]]


def call(name: str = "tool", given: object = None, id: str = "c0") -> ToolCall:
    """A call. given: text as the model wrote it, or what it wrote as JSON; None for an object with nothing in it."""
    return ToolCall(id, name, given if isinstance(given, str) else orjson.dumps(given or {}).decode())


def explicit(execute: Callable[..., object] | None, name: str = "tool", **settings: Any) -> Tool:
    """A tool by hand that takes any object."""
    return Tool(name=name, execute=execute, **{"input_schema": {"type": "object"}, **settings})


def unwrapped(runner: ToolRunner) -> ToolRunner:
    return runner


def wrapped(*hooks: Hook) -> Around:
    """What a pipeline with these `wrap_tool` puts around a tool, the first one outermost."""

    def around(runner: ToolRunner) -> ToolRunner:
        for hook in reversed(hooks):
            runner = _Wrapped(hook, runner)
        return runner

    return around


class _Wrapped:
    def __init__(self, hook: Hook, inner: ToolRunner) -> None:
        self._hook = hook
        self._inner = inner
        self.name = inner.name
        self.options = inner.options

    async def run(self, call: ToolCall) -> ToolOutcome:
        return await self._hook(self._inner, call)


class Turn:
    """A turn with some tools. `answer` gives back the calls as they went."""

    def __init__(self, *tools: Tool, around: Around = unwrapped, **settings: Any) -> None:
        self.executor = ToolExecutor(tools, ToolSettings(**settings))
        self.around = around
        self.answering: Sequence[Answering] = ()

    async def answer(
        self, *calls: ToolCall, approved: bool = False, available: Sequence[str] | None = None
    ) -> Sequence[Answering]:
        names = list(self.executor.tools) if available is None else available
        self.answering = [Answering(one, OPTIONS, step=0, available=names, approved=approved) for one in calls]
        await self.executor.answer(self.answering, self.around)
        return self.answering

    async def one(self, one: ToolCall, **how: Any) -> ToolOutcome:
        """The outcome of one call."""
        (answered,) = await self.answer(one, **how)
        assert answered.outcome is not None
        return answered.outcome

    async def report(self, one: ToolCall, **how: Any) -> ToolExecution:
        (answered,) = await self.answer(one, **how)
        return answered.report()

    def outcomes(self) -> list[str | None]:
        """The status of each call, in order; None for one that has no outcome."""
        return [None if one.outcome is None else one.outcome.status for one in self.answering]


async def said(tool: Tool, given: object = None, **settings: Any) -> ToolOutcome:
    """What a tool says to one input, in a turn of its own."""
    return await Turn(tool, **settings).one(call(tool.name, given))


async def failed(tool: Tool, given: object = None, **settings: Any) -> str:
    """The text of a failure."""
    outcome = await said(tool, given, **settings)
    assert outcome.status == "error"
    return text_of(outcome.output)


def text_of(output: ToolOutput) -> str:
    assert isinstance(output, ErrorTextOutput)
    return output.value


async def until(condition: Callable[[], object]) -> None:
    """Give the other tasks and threads their turns until something has happened."""
    with anyio.fail_after(5):
        while not condition():  # noqa: ASYNC110  # threads set no events of ours
            await anyio.sleep(0.001)


@contextmanager
def hanging_threads() -> Iterator[Hang]:
    """A sync function that hangs until the end of the test."""
    hang = Hang()
    try:
        yield hang
    finally:
        hang.released.set()


class Hang:
    def __init__(self, error: BaseException | None = None) -> None:
        self.released = threading.Event()
        self.started = 0
        self.ended = 0
        self.error = error

    def __call__(self, given: object) -> str:
        self.started += 1
        self.released.wait(5)
        self.ended += 1
        if self.error is not None:
            raise self.error
        return "late"


class Stubborn:
    """An async function that ignores its cancellation until it is let go."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.released = anyio.Event()
        self.started = 0
        self.ended = 0
        self.error = error

    async def __call__(self, given: object) -> str:
        self.started += 1
        while not self.released.is_set():
            with suppress(anyio.get_cancelled_exc_class()), anyio.CancelScope(shield=True):
                await self.released.wait()
        self.ended += 1
        if self.error is not None:
            raise self.error
        return "late"
