"""A turn in miniature: two steps and one tool, as the tool loop drives them. It asks a pipeline for what stands around
tools, and shows calls and results with the marks of a turn, so that a member can be tried around steps and turns."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

import anyio.lowlevel

from ...pipeline import Outcome, wrap_model
from ...pipeline.marks import entry, with_entry
from ...pipeline.tool_hooks import around_tools
from ...protocol import (
    DETACHED,
    SPECIFICATION_VERSION,
    AssistantMessage,
    CallContext,
    CallOptions,
    ExecutionDenied,
    Finish,
    FinishReason,
    GenerateResult,
    JSONObject,
    Kind,
    LanguageModel,
    Message,
    PartStream,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamPart,
    StreamResult,
    StreamStart,
    TextDelta,
    TextEnd,
    TextOutput,
    TextStart,
    ToolCall,
    ToolCallPart,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolMessage,
    ToolOutcome,
    ToolResult,
    ToolResultPart,
    collect,
    with_context,
)
from ..scripted import ScriptedReply
from .material import saying
from .subject import Subject, Watch, opened
from .upstream import Upstream

Where: TypeAlias = Literal["steps", "turn"]
PLACES: tuple[Where, Where] = ("steps", "turn")

CALL = ToolCall("call-1", "look_up", '{"word": "zebra"}')
FOUND = ToolOutcome(TextOutput("an animal"))


def calling(*calls: ToolCall) -> ScriptedReply:
    """A model that makes these calls, and answers when it has their results."""

    def reply(options: CallOptions) -> GenerateResult:
        has_results = any(isinstance(message, ToolMessage) for message in options.prompt)
        return saying("It is an animal.") if has_results else GenerateResult(calls, FinishReason("tool-calls"))

    return reply


class LookUp:
    """The tool: it waits once, and says what it is told to. ran: the calls that reached it."""

    name = "look_up"

    def __init__(self, options: CallOptions, ran: list[ToolCall], outcome: ToolOutcome) -> None:
        self.options = options
        self._ran = ran
        self._outcome = outcome

    async def run(self, call: ToolCall) -> ToolOutcome:
        if not self.options.context.helper:  # where a judge is asked, who is the turn itself
            self._ran.append(call)
        await anyio.lowlevel.checkpoint()
        return self._outcome


class Miniature:
    """The turn as a model."""

    specification_version = SPECIFICATION_VERSION
    provider, model_id = "scripted", "miniature"
    is_turn = True

    def __init__(self, model: LanguageModel, outcome: ToolOutcome = FOUND) -> None:
        self.model = model
        self.ran: list[ToolCall] = []
        self._outcome = outcome
        self._opened: list[PartStream] = []

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        step = _step(options, 0)
        first = await self.model.do_generate(step)
        calls = _own_calls(first)
        if not calls:
            return first
        results = await self._run(calls, step)
        last = await self.model.do_generate(_answered(step, calls, results))
        shown = [_shown(one, 0) if isinstance(one, ToolCall) and one in calls else one for one in first.content]
        return last.replace(content=(*shown, *results, *last.content))

    async def do_stream(self, options: CallOptions) -> StreamResult:
        step = _step(options, 0)
        first = await self.model.do_stream(step)
        stream = PartStream(self._parts(first.stream, step), close=first.stream.aclose)
        self._opened.append(stream)
        return StreamResult(stream)

    async def close_what_is_left(self) -> None:
        for stream in self._opened:
            await stream.aclose()

    async def _parts(self, first: PartStream, step: CallOptions) -> AsyncIterator[StreamPart]:
        parts: list[StreamPart] = []
        async for part in first:
            parts.append(part)
            if not isinstance(part, Finish):
                yield _of_step(part, 0)
        calls = _own_calls(collect(parts))
        if not calls:
            if isinstance(parts[-1], Finish):
                yield parts[-1]
            return
        results = await self._run(calls, step)
        for result in results:
            yield result
        async with (await self.model.do_stream(_answered(step, calls, results))).stream as last:
            async for part in last:
                if not isinstance(part, StreamStart):
                    yield _of_step(part, 1)

    async def _run(self, calls: Sequence[ToolCall], step: CallOptions) -> list[ToolResult]:
        return [await self._answer(call, step) for call in calls]

    async def _answer(self, call: ToolCall, step: CallOptions) -> ToolResult:
        outcome = ToolOutcome(ExecutionDenied(), "denied")
        if not is_denied(call):
            tool = around_tools(self.model, step)(LookUp(step, self.ran, self._outcome))
            outcome = await tool.run(call.replace(provider_metadata=_mark(call, 0)))
        said = outcome.output.value if isinstance(outcome.output, TextOutput) else outcome.status
        failed = None if outcome.status == "ok" else True
        return ToolResult(f"0-{call.tool_call_id}", call.tool_name, said, failed, provider_metadata=_mark(call, 0))


@dataclass(frozen=True)
class Turned:
    """One turn, as its caller saw it. ran: the calls that reached the tool."""

    kind: Kind
    answer: GenerateResult | None
    raised: Exception | None
    ran: tuple[ToolCall, ...]
    outcomes: tuple[Outcome, ...]


@asynccontextmanager
async def in_miniature(
    subject: Subject, where: Where, *replies: ScriptedReply, outcome: ToolOutcome = FOUND
) -> AsyncIterator[tuple[Miniature, LanguageModel, Watch]]:
    """A fresh member around the steps of a turn, or around the turn: the turn, what to ask, and who watches it."""
    member, upstream, watch = subject.factory(), Upstream(replies), Watch()

    def around(model: LanguageModel) -> LanguageModel:
        return wrap_model(model, [watch, member], surroundings=subject.surroundings, lint="off")

    async with opened(member):
        turn = Miniature(around(upstream) if where == "steps" else upstream, outcome)
        try:
            yield turn, around(turn) if where == "turn" else turn, watch
        finally:
            await turn.close_what_is_left()
            await upstream.close_what_is_left()


async def ask_turn(
    subject: Subject, where: Where, kind: Kind, *replies: ScriptedReply, outcome: ToolOutcome = FOUND
) -> Turned:
    """One turn of a fresh member, to its end."""
    async with in_miniature(subject, where, *replies, outcome=outcome) as (turn, model, watch):
        answer, raised = None, None
        try:
            if kind == "generate":
                answer = await model.do_generate(subject.options)
            else:
                async with (await model.do_stream(subject.options)).stream as stream:
                    answer = collect([part async for part in stream])
        except Exception as error:
            raised = error
        return Turned(kind, answer, raised, tuple(turn.ran), tuple(watch.outcomes))


def is_denied(call: ToolCall) -> bool:
    """Whether a policy has said no to a call."""
    return "denied" in entry(call.provider_metadata)


def _step(options: CallOptions, number: int) -> CallOptions:
    context = CallContext() if options.context is DETACHED else options.context
    return with_context(options, context.child(step=number))


def _own_calls(answer: GenerateResult) -> list[ToolCall]:
    return [call for call in answer.tool_calls if not call.provider_executed]


def _answered(step: CallOptions, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> CallOptions:
    asked = AssistantMessage([ToolCallPart(one.tool_call_id, one.tool_name, _parsed(one.input)) for one in calls])
    said = ToolMessage(
        [
            ToolResultPart(call.tool_call_id, call.tool_name, TextOutput(str(result.result)))
            for call, result in zip(calls, results, strict=True)
        ]
    )
    prompt: tuple[Message, ...] = (*step.prompt, asked, said)
    return step.replace(prompt=prompt, context=step.context.child(step=1))


def _parsed(text: str) -> JSONObject:
    try:
        value: JSONObject = json.loads(text)
    except ValueError:
        return {}
    return value


def _mark(call: ToolCall, step: int) -> JSONObject:
    return with_entry(call.provider_metadata, {"step": step, "id": call.tool_call_id})


def _shown(call: ToolCall, step: int) -> ToolCall:
    return call.replace(
        tool_call_id=f"{step}-{call.tool_call_id}", provider_executed=True, provider_metadata=_mark(call, step)
    )


_BLOCKS = (TextStart, TextDelta, TextEnd, ReasoningStart, ReasoningDelta, ReasoningEnd, ToolInputDelta, ToolInputEnd)


def _of_step(part: StreamPart, step: int) -> StreamPart:
    if isinstance(part, ToolCall) and not part.provider_executed:
        return _shown(part, step)
    if isinstance(part, ToolInputStart) and not part.provider_executed:
        mark = with_entry(part.provider_metadata, {"step": step, "id": part.id})
        return part.replace(id=f"{step}-{part.id}", provider_executed=True, provider_metadata=mark)
    return part.replace(id=f"{step}-{part.id}") if isinstance(part, _BLOCKS) else part
