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
from ..pipeline.marks import with_entry
from ..protocol import (
    Accumulator,
    CallOptions,
    Closer,
    Content,
    ErrorPart,
    Finish,
    FinishReason,
    GenerateResult,
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
from ..protocol.parts import BLOCK_ENDS, BLOCK_STARTS, END_OF, BlockEnd, BlockStart
from ..protocol.stream_result import as_exception
from ..tools import Tool
from .asking import Step
from .generate import ask
from .mark import call_mark, shown_call, step_id
from .messages import unique
from .result import TurnRecord, TurnResult, turn_mark, turn_metadata
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


_INTERRUPTED = "interrupted"


class _StreamLoop:
    def __init__(self, turn: Turn, deadline: float | None) -> None:
        self.turn = turn
        self._deadline = math.inf if deadline is None else anyio.current_time() + deadline
        self._step: Step | None = None
        self._opened: StreamResult | None = None  # of that step; None where it gave nothing to read
        self._shown = _Shown(0, turn)
        self._working: anyio.CancelScope | None = None  # around what is done between two streams
        self._closed = False

    async def open_first(self) -> StreamResult:
        """Everything up to the first content, so that what fails there is raised."""
        with anyio.CancelScope(deadline=self._deadline):
            try:
                await self.turn.begin()
                await self._open_next()
            except Exception as error:
                if (failure := self.turn.error(error)) is None:
                    raise
                try:
                    raise failure from error
                finally:
                    del failure  # a frame that holds the error that refers to it would wait for the collector
            assert self._opened is not None  # a turn has a first step, and it may not fail
            return self._opened
        raise self.turn.overdue()

    async def close(self) -> None:
        """Stop where the turn is: what waits for a part or for a tool ends."""
        self._closed = True
        if self._working is not None:
            self._working.cancel()
        await self._close_opened()

    async def _close_opened(self) -> None:
        if self._opened is not None:
            await self._opened.stream.aclose()

    async def parts(self, closer: Closer) -> AsyncIterator[StreamPart]:
        """The stream of the turn."""
        started, failure, raw = False, None, None
        try:
            while (step := self._step) is not None:
                if self._opened is not None:
                    shown = self._shown = _Shown(step.number, self.turn)
                    whole = Accumulator()
                    try:
                        async for part in self._within_time(self._opened.stream, step):
                            whole.feed(part)
                            cls = part.__class__
                            if cls is TextDelta:
                                yield shown.delta(cast(TextDelta, part))
                            elif cls is StreamStart:
                                if not started:
                                    started = True
                                    yield part
                            elif cls is ErrorPart and step.kind != "usual":
                                raise as_exception(cast(ErrorPart, part).error)
                            elif cls is not Finish and (changed := shown.part(part)) is not None:
                                yield changed
                    except Exception as error:
                        if whole.errors and step.kind == "usual" and not self._closed:
                            raw = _INTERRUPTED  # it has told of a failure, and what comes after one is no news
                            break
                        if self._closed or not self.turn.forgives(step, error):
                            raise
                        await self._close_opened()
                        self.turn.go_without(step, error, whole.result())
                    else:
                        answer = self._answer(whole)
                        if whole.errors:  # it has said so; a step that failed is none that was done
                            raw = answer.finish_reason.raw or _INTERRUPTED
                            break
                        await self._work(partial(self.turn.ended, step, answer))
                    for end in shown.ends():
                        yield end
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
            await self._close_opened()  # one that was opened while this was closed
        for part in self._end(started, failure, raw):
            yield part
        failure = None  # a frame that holds the error that refers to it would wait for the collector

    def _answer(self, whole: Accumulator) -> GenerateResult:
        """What a step's stream adds up to."""
        answer, opened = whole.result(), self._opened
        if answer.response is not None or opened is None:
            return answer
        return answer.replace(response=opened.response)

    def _end(self, started: bool, failure: Exception | None, raw: str | None) -> Iterator[StreamPart]:
        """The last parts. failure: why the turn failed, where the model did not say so itself; raw: its reason, where
        it did."""
        if not started:
            yield StreamStart()
        if failure is None and raw is None:
            result = self.turn.result()
            yield Finish(result.finish_reason, result.usage, turn_metadata(result, self.turn.record.run))
            return
        yield from self._shown.ends()
        if failure is not None:
            yield self.turn.shown_error(ErrorPart(failure))
        record = self.turn.record
        mark = with_entry(None, turn_mark(len(record.steps), "error"))
        yield Finish(FinishReason("error", raw or _INTERRUPTED), record.usage, mark)

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
            if not self.turn.forgives(step, error):
                raise
            self.turn.go_without(step, error)

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
        patience = math.inf if step.patience is None else anyio.current_time() + step.patience
        if self._deadline == patience == math.inf:
            return stream.__aiter__()
        error = self.turn.overdue if self._deadline <= patience else TimeoutError
        return _Limited(stream.__aiter__(), min(self._deadline, patience), error)


class _Limited:
    """Parts up to a moment. No generator, so that whoever stops reading leaves nothing to close."""

    def __init__(self, parts: AsyncIterator[StreamPart], deadline: float, error: Callable[[], Exception]) -> None:
        self._parts = parts
        self._deadline = deadline
        self._error = error

    def __aiter__(self) -> AsyncIterator[StreamPart]:
        return self

    async def __anext__(self) -> StreamPart:
        with anyio.CancelScope(deadline=self._deadline):
            return await self._parts.__anext__()
        raise self._error()


class _Shown:
    """The parts of one step's stream as those of the turn's."""

    def __init__(self, step: int, turn: Turn) -> None:
        self._step = step
        self._turn = turn
        self._ids: dict[str, str] = {}
        self._hidden: set[str] = set()
        self._kept: set[str] = set()
        self._calls: set[str] = set()
        self._inputs: dict[str, str] = {}  # of calls that are not whole yet, to the ids that they have here
        self._open: dict[tuple[type, str], BlockEnd] = {}

    def delta(self, part: TextDelta) -> TextDelta:
        """The part that most are, for which a new one is made without going through `replace`."""
        id = self._ids.get(part.id) or self._id(part.id)
        return TextDelta(id, part.delta, part.provider_metadata, part.extra)

    def part(self, part: StreamPart) -> StreamPart | None:
        """Any other part; None leaves it out."""
        shown = self._of_turn(part)
        cls = shown.__class__
        if cls in BLOCK_STARTS:
            id = cast("BlockStart", shown).id
            self._open[END_OF[cls], id] = END_OF[cls](id)
        elif cls in BLOCK_ENDS:
            self._open.pop((cls, cast("BlockEnd", shown).id), None)
        return shown

    def ends(self) -> Iterator[StreamPart]:
        """The ends of blocks that the model left open."""
        yield from self._open.values()
        self._open.clear()

    def _of_turn(self, part: StreamPart) -> StreamPart | None:
        if isinstance(part, ToolCall):
            id = self._inputs.pop(part.tool_call_id, None) or unique(part.tool_call_id, self._calls)
            if id != part.tool_call_id:
                part = part.replace(tool_call_id=id)
            if part.provider_executed:
                return part
            return None if self._turn.is_terminal(part.tool_name) else shown_call(part, self._step)
        if isinstance(part, ToolInputStart):
            id = self._inputs[part.id] = unique(part.id, self._calls)
            self._hidden.discard(part.id)  # of another call that had this id
            self._kept.discard(part.id)
            if part.provider_executed:
                self._kept.add(part.id)
                return part.replace(id=id)
            if self._turn.is_terminal(part.tool_name):
                self._hidden.add(part.id)
                return None
            metadata = call_mark(part.provider_metadata, self._step, id)
            return part.replace(id=step_id(self._step, id), provider_executed=True, provider_metadata=metadata)
        if isinstance(part, ToolInputDelta | ToolInputEnd):
            if part.id in self._hidden:
                return None
            id = self._inputs.get(part.id, part.id)
            return part.replace(id=id if part.id in self._kept else step_id(self._step, id))
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
