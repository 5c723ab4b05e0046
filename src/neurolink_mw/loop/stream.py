"""A turn that is streamed: every step is a `do_stream`, and the reader's pulls drive everything. No task of the loop's
own stands behind the stream, so cancelling or closing it stops the turn where it is."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack, cast

import anyio

from ..errors import ConfigError
from ..protocol import (
    Accumulator,
    CallOptions,
    Closer,
    Content,
    ErrorPart,
    Finish,
    FinishReason,
    LanguageModel,
    PartStream,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    RequestInfo,
    ResponseInfo,
    StreamPart,
    StreamResult,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolApprovalRequest,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
    primed,
)
from ..tools import Tool
from .asking import Step
from .generate import ask
from .mark import call_mark, shown_call, step_id
from .result import TurnRecord, TurnResult, turn_metadata
from .settings import TurnKeywords, TurnSettings, turn_settings
from .turn import Turn


@dataclass(frozen=True)
class TurnStream:
    """A turn that is being streamed. stream: one stream of all steps, with the turn's own calls and their results;
    ids are `{step}-{id}`. record: how far the turn has come, with its result once it has ended."""

    stream: PartStream
    record: TurnRecord
    request: RequestInfo | None = None
    response: ResponseInfo | None = None

    @property
    def result(self) -> TurnResult:
        """What the turn came to. ConfigError while it runs, and where it did not come to its end."""
        if self.record.result is None:
            raise ConfigError("the turn has no result: read its stream to the end; `record` says how far it came")
        return self.record.result


async def run_stream_loop(
    model: LanguageModel,
    options: CallOptions,
    *,
    tools: Sequence[Tool] = (),
    record: TurnRecord | None = None,
    **settings: Unpack[TurnKeywords],
) -> TurnStream:
    """`run_generate_loop` as a stream: the same decisions, over `do_stream` only.

    What fails before the first content is raised; later failures are an `error` part, a `TurnError` with what was done
    where steps were completed, and the stream ends with the reason `error`.
    """
    return await stream_turn(model, options, turn_settings(tools, settings), record)


async def stream_turn(
    model: LanguageModel, options: CallOptions, settings: TurnSettings, record: TurnRecord | None
) -> TurnStream:
    """`run_stream_loop` with settings that were checked already."""
    if not callable(getattr(model, "do_stream", None)):
        raise ConfigError(f"a streamed turn needs a model with do_stream, and {type(model).__name__} has none")
    loop = _StreamLoop(Turn(model, options, settings, record), settings.deadline)
    first = await loop.open_first()
    closer = Closer(loop.close)
    return TurnStream(PartStream(loop.parts(closer), close=closer), loop.turn.record, first.request, first.response)


class _StreamLoop:
    def __init__(self, turn: Turn, deadline: float | None) -> None:
        self.turn = turn
        self._deadline = math.inf if deadline is None else anyio.current_time() + deadline
        self._step: Step | None = None
        self._opened: StreamResult | None = None  # of that step; None where it gave nothing to read
        self._working: anyio.CancelScope | None = None  # around what is done between two streams
        self._closed = False

    async def open_first(self) -> StreamResult:
        """Everything up to the first content, so that what fails there is raised."""
        with anyio.CancelScope(deadline=self._deadline):
            try:
                await self.turn.begin()
                await self._open_next()
            except Exception as error:
                failure = self.turn.error(error)
                if failure is error:
                    raise
                raise failure from error
            assert self._opened is not None  # a turn has a first step, and it may not fail
            return self._opened
        raise self.turn.overdue()

    async def close(self) -> None:
        """Stop where the turn is: what waits for a part or for a tool ends."""
        self._closed = True
        if self._working is not None:
            self._working.cancel()
        if self._opened is not None:
            await self._opened.stream.aclose()

    async def parts(self, closer: Closer) -> AsyncIterator[StreamPart]:
        """The stream of the turn."""
        started, failure = False, None
        try:
            while (step := self._step) is not None:
                if (opened := self._opened) is not None:
                    shown = _Shown(step.number, self.turn)
                    whole = Accumulator()
                    try:
                        async for part in self._within_time(opened.stream, step):
                            whole.feed(part)
                            cls = part.__class__
                            if cls is TextDelta:
                                yield shown.delta(cast(TextDelta, part))
                            elif cls is StreamStart:
                                if not started:
                                    started = True
                                    yield part
                            elif cls is not Finish and (changed := shown.part(part)) is not None:
                                yield changed
                    except Exception:
                        if self._closed or step.kind == "usual":
                            raise
                    answer = whole.result()
                    if answer.response is None and opened.response is not None:
                        answer = answer.replace(response=opened.response)
                    await self._work(partial(self.turn.ended, step, answer))
                for item in step.shown:
                    for part in _as_parts(item, step.number):
                        yield part
                await self._work(self._open_next)
        except GeneratorExit:
            raise
        except Exception as error:
            if self._closed:
                raise anyio.ClosedResourceError from None
            failure = error
        finally:
            await closer()
        for part in self._end(started, failure):
            yield part

    def _end(self, started: bool, failure: Exception | None) -> Iterator[StreamPart]:
        """The last parts."""
        if not started:
            yield StreamStart()
        if failure is None:
            result = self.turn.result()
            yield Finish(result.finish_reason, result.usage, turn_metadata(result))
            return
        error = self.turn.error(failure)
        if error is not failure:
            error.__cause__ = failure
        yield ErrorPart(error)
        yield Finish(FinishReason("error", "interrupted"), self.turn.record.usage)

    async def _open_next(self) -> None:
        """Begin the next step, if there is one."""
        self._opened = None
        step = self._step = await self.turn.next_step()
        if step is None:
            return

        async def begin(options: CallOptions) -> StreamResult:
            result = await step.model.do_stream(options)
            if not isinstance(result, StreamResult):
                raise ConfigError(f"do_stream of the model returned {type(result).__name__}, not a StreamResult")
            return await primed(result)

        try:
            self._opened = await ask(self.turn, step, begin)
        except Exception as error:
            self.turn.failed(step, error)

    async def _work(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something between two streams, as long as nobody closes this one and there is time."""
        with anyio.CancelScope(deadline=self._deadline) as self._working:
            await work()
        stopped, self._working = self._working.cancelled_caught, None
        if self._closed:
            raise anyio.ClosedResourceError
        if stopped:
            raise self.turn.overdue()

    def _within_time(self, stream: PartStream, step: Step) -> AsyncIterator[StreamPart]:
        """The parts of a step's stream. Without a limit nothing stands between."""
        deadline = self._deadline
        if step.patience is not None:
            deadline = min(deadline, anyio.current_time() + step.patience)
        return stream.__aiter__() if deadline == math.inf else self._limited(stream.__aiter__(), deadline)

    async def _limited(self, parts: AsyncIterator[StreamPart], deadline: float) -> AsyncIterator[StreamPart]:
        while True:
            with anyio.CancelScope(deadline=deadline) as patience:
                try:
                    part = await parts.__anext__()
                except StopAsyncIteration:
                    return
            if patience.cancelled_caught:
                raise self.turn.overdue()
            yield part


class _Shown:
    """The parts of one step's stream as those of the turn's."""

    def __init__(self, step: int, turn: Turn) -> None:
        self._step = step
        self._turn = turn
        self._ids: dict[str, str] = {}
        self._hidden: set[str] = set()
        self._kept: set[str] = set()

    def delta(self, part: TextDelta) -> TextDelta:
        """The part that most are, for which a new one is made without going through `replace`."""
        id = self._ids.get(part.id) or self._id(part.id)
        return TextDelta(id, part.delta, part.provider_metadata, part.extra)

    def part(self, part: StreamPart) -> StreamPart | None:
        if isinstance(part, ToolCall):
            if part.provider_executed:
                return part
            return None if self._turn.is_terminal(part.tool_name) else shown_call(part, self._step)
        if isinstance(part, ToolInputStart):
            if part.provider_executed:
                self._kept.add(part.id)
                return part
            if self._turn.is_terminal(part.tool_name):
                self._hidden.add(part.id)
                return None
            metadata = call_mark(part.provider_metadata, self._step, part.id)
            return part.replace(id=self._id(part.id), provider_executed=True, provider_metadata=metadata)
        if isinstance(part, ToolInputDelta | ToolInputEnd):
            if part.id in self._hidden:
                return None
            return part if part.id in self._kept else part.replace(id=self._id(part.id))
        if isinstance(part, TextStart | TextEnd | ReasoningStart | ReasoningDelta | ReasoningEnd):
            return part.replace(id=self._id(part.id))
        if isinstance(part, ErrorPart):
            return self._turn.shown_error(part)
        return part

    def _id(self, id: str) -> str:
        known = self._ids[id] = step_id(self._step, id)
        return known


def _as_parts(item: Content, step: int) -> Iterator[StreamPart]:
    """What a turn adds to a step, as parts."""
    if isinstance(item, Text):
        id = step_id(step, "limit")
        yield TextStart(id)
        yield TextDelta(id, item.text)
        yield TextEnd(id)
    else:
        assert isinstance(item, ToolResult | ToolApprovalRequest)
        yield item
