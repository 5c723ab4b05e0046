"""`stream`: the same turn in parts, as they come."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from types import TracebackType
from typing import Any, Generic, Self, Unpack, overload

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from ..errors import ConfigError
from ..loop import TurnRecord
from ..loop.stream import TurnStream, stream_turn
from ..protocol import Accumulator, ErrorPart, JSONObject, PartStream, StreamPart, TextDelta
from ..protocol.stream_result import as_exception
from ..tools import Tool
from .call import Call, Keywords
from .generate import require_no_loop
from .prompt import MessageLike, Prompt
from .result import Generated, T
from .steps import Members, Model, model_of_steps


class Streamed(Generic[T]):
    """A turn that is streamed: `async with stream(...) as turn`.

    Iterate over it for the parts, or over `text_deltas()` for the text as it comes, of all steps; `await result()` is
    what `generate` would have returned. What fails is raised after the parts that came before it. Leaving the block
    stops the turn where it is.
    """

    def __init__(self, call: Call[T], model: Model, middlewares: Members) -> None:
        self._call = call
        self._model = model
        self._middlewares = middlewares
        self._stack = AsyncExitStack()
        self._turn: TurnStream | None = None
        self._whole: Accumulator | None = None
        self._parts: AsyncGenerator[StreamPart, None] | None = None
        self._result: Generated[T] | None = None
        self._left = False

    async def __aenter__(self) -> Self:
        if self._parts is not None:
            raise ConfigError("a streamed turn is entered once: call stream(...) again")
        async with AsyncExitStack() as stack:
            steps = await stack.enter_async_context(model_of_steps(self._model, self._middlewares))
            around = self._call.around_turn(steps)
            if around is None:
                call = self._call
                self._turn = await stream_turn(steps.model, call.options, call.settings_for(steps), call.record)
                parts = self._turn.stream
            else:
                self._whole = Accumulator()
                model, options = around
                parts = (await model.do_stream(options)).stream
            await stack.enter_async_context(parts)
            self._parts = self._read(parts)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left = True
        try:
            await self._stack.__aexit__(kind, error, trace)
        finally:
            if self._parts is not None:
                await self._parts.aclose()

    def __aiter__(self) -> AsyncIterator[StreamPart]:
        """The parts, each once, however often this is asked."""
        if self._parts is None or self._left:
            raise ConfigError("a streamed turn is read within its block: async with stream(...) as turn")
        return self._parts

    def text_deltas(self) -> AsyncIterator[str]:
        """The text as it comes."""
        return _TextDeltas(aiter(self))

    async def result(self) -> Generated[T]:
        """The whole turn; what has not been read yet is read now. Raises what failed."""
        if self._result is None and not self._left:
            async for _ in self:
                pass
        if self._result is None:
            raise ConfigError("the turn failed or was left before its end, so it has no result")
        return self._result

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come: it was read to its end, or left."""
        return self._left or self._result is not None

    async def _read(self, parts: PartStream) -> AsyncGenerator[StreamPart, None]:
        whole, failure = self._whole, None
        async for part in parts:
            if whole is not None:
                whole.feed(part)
            if failure is None:
                if isinstance(part, ErrorPart):
                    failure = as_exception(part.error)  # the rest ends the stream, and its outcome
                else:
                    yield part
        if failure is not None:
            try:
                raise failure
            finally:
                failure = None  # a frame that holds the error that refers to it would wait for the collector
        if whole is not None:
            self._result = self._call.generated_around(whole.result())
        elif self._turn is not None:
            self._result = self._call.generated(self._turn.result)


class _TextDeltas:
    """The text of some parts. No generator, so that whoever stops reading leaves nothing to close."""

    def __init__(self, parts: AsyncIterator[StreamPart]) -> None:
        self._parts = parts

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        while True:
            part = await anext(self._parts)
            if isinstance(part, TextDelta) and part.delta:
                return part.delta


@overload
def stream(
    model: Model,
    prompt: Prompt | None = None,
    *,
    output: type[T],
    system: str | None = None,
    messages: Sequence[MessageLike] = (),
    tools: Sequence[Tool] = (),
    middlewares: Members = (),
    turn_middlewares: Members = (),
    metadata: JSONObject | None = None,
    record: TurnRecord | None = None,
    **settings: Unpack[Keywords],
) -> Streamed[T]: ...


@overload
def stream(
    model: Model,
    prompt: Prompt | None = None,
    *,
    output: object = None,
    system: str | None = None,
    messages: Sequence[MessageLike] = (),
    tools: Sequence[Tool] = (),
    middlewares: Members = (),
    turn_middlewares: Members = (),
    metadata: JSONObject | None = None,
    record: TurnRecord | None = None,
    **settings: Unpack[Keywords],
) -> Streamed[Any]: ...


def stream(
    model: Model,
    prompt: Prompt | None = None,
    *,
    output: object = None,
    system: str | None = None,
    messages: Sequence[MessageLike] = (),
    tools: Sequence[Tool] = (),
    middlewares: Members = (),
    turn_middlewares: Members = (),
    metadata: JSONObject | None = None,
    record: TurnRecord | None = None,
    **settings: Unpack[Keywords],
) -> Streamed[Any]:
    """`generate` in parts, as they come.

        async with stream("openai-compatible:gpt-5", "Do I need an umbrella in Oslo?", tools=[weather]) as turn:
            async for text in turn.text_deltas():
                print(text, end="")
        print((await turn.result()).usage)

    The arguments are those of `generate`, and so are its decisions. Parts are those of V3; the ids of a step's parts
    are `{step}-{id}`, and the turn's own tool calls and results are among them. What fails before the first content is
    raised on entering the block, later failures after the parts that came before.
    """
    call: Call[Any] = Call(
        prompt,
        system=system,
        messages=messages,
        tools=tools,
        output=output,
        turn_middlewares=turn_middlewares,
        metadata=metadata,
        record=record,
        given=settings,
    )
    return Streamed(call, model, middlewares)


class SyncStreamed:
    """`Streamed` for scripts: `with stream_sync(...) as turn`, then iterate. The turn runs on an event loop in a
    thread of its own, and only while it is read."""

    def __init__(self, turn: Streamed[Any]) -> None:
        self._turn = turn
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._portal = stack.enter_context(start_blocking_portal())
            stack.enter_context(self._portal.wrap_async_context_manager(self._turn))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def __iter__(self) -> Iterator[StreamPart]:
        """The parts."""
        while (part := self._open().call(self._next)) is not None:
            yield part

    def text_deltas(self) -> Iterator[str]:
        """The text as it comes."""
        for part in self:
            if isinstance(part, TextDelta) and part.delta:
                yield part.delta

    def result(self) -> Generated[Any]:
        """The whole turn; what has not been read yet is read now. Raises what failed."""
        return anyio.run(self._turn.result) if self._turn.is_over else self._open().call(self._turn.result)

    async def _next(self) -> StreamPart | None:
        return await anext(aiter(self._turn), None)

    def _open(self) -> BlockingPortal:
        if self._portal is None:
            raise ConfigError("a streamed turn is read within its block: with stream_sync(...) as turn")
        return self._portal


def stream_sync(model: Model, prompt: Prompt | None = None, **arguments: Any) -> SyncStreamed:
    """`stream` for scripts. ConfigError where an event loop runs already."""
    require_no_loop("stream_sync", "async with stream(...)")
    return SyncStreamed(stream(model, prompt, **arguments))
