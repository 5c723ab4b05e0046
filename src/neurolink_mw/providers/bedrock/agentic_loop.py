"""The tool loop for conversations in Converse's own shape: messages in, chunks out.

It decides nothing itself. Each step is a call of a model of the common protocol, so that middlewares around the model
apply; tool choice, tools, batches, the context budget and the answer at the limit are those of `loop`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias, Unpack

import anyio

from ...errors import BridgeShapeError, ConfigError
from ...loop import PendingApproval, StepResult, StepToolCall, StoppedBy, TurnRecord
from ...loop.result import turn_mark
from ...loop.settings import TurnKeywords, TurnSettings, turn_settings
from ...loop.stream import TurnStream, stream_turn
from ...pipeline.marks import with_entry
from ...protocol import (
    AssistantMessage,
    CallOptions,
    CallWarning,
    Closer,
    ErrorPart,
    Finish,
    FinishReason,
    LanguageModel,
    Message,
    PartStream,
    StreamPart,
    Usage,
)
from ...protocol.stream_result import as_exception
from ...tools import Tool, ToolExecution
from .bridge import bedrock_conversation_from_v3_prompt, build_v3_prompt_from_bedrock
from .chunks import AgenticLoopChunk, ChunkStream

__all__ = ["AgenticLoop", "AgenticLoopChunk", "AgenticLoopResult", "run_agentic_loop"]

StopReason: TypeAlias = Literal["aborted", "step-cap"]


@dataclass(frozen=True)
class AgenticLoopResult:
    """What a turn came to, however it ended.

    text: of the last step. tool_calls: those the model made of the turn's tools, terminal ones left out;
    tool_executions: what became of each. usage: the sum over the completed steps. finish_reason: why the last step
    ended; `error` after a failure, `other` where the turn was cancelled or closed. stop_reason: "step-cap" at the limit
    of steps, "aborted" where it was cancelled or closed. stopped_by: why a turn ended that came to its end. messages:
    the conversation as V3 messages. approvals: calls that wait for one. error: what failed.
    """

    text: str = field(repr=False)
    finish_reason: FinishReason
    stop_reason: StopReason | None
    stopped_by: StoppedBy | None
    usage: Usage
    steps: tuple[StepResult, ...] = field(repr=False)
    tool_executions: tuple[ToolExecution, ...] = field(repr=False)
    messages: tuple[Message, ...] = field(repr=False)
    approvals: tuple[PendingApproval, ...] = ()
    warnings: tuple[CallWarning, ...] = ()
    error: Exception | None = None
    _given: Given | None = field(default=None, repr=False)

    @property
    def aborted(self) -> bool:
        """Whether the turn was cancelled, or closed before its end."""
        return self.stop_reason == "aborted"

    @property
    def tool_calls(self) -> tuple[StepToolCall, ...]:
        """The calls of all steps."""
        return tuple(call for step in self.steps for call in step.tool_calls)

    @cached_property
    def conversation(self) -> list[Mapping[str, object]]:
        """The conversation to go on with, in Converse's shape: what was given, as it was, then what the turn added.
        Every tool use has its result. BridgeShapeError where calls wait for an approval, which Converse has no form
        for, and for content of another provider that it cannot carry."""
        return list(self._bridged.conversation)

    @cached_property
    def _bridged(self) -> _Bridged:
        if self.approvals:
            raise BridgeShapeError(
                "calls wait for an approval, and a Converse conversation cannot say so: go on from `messages`, with "
                "the message behind them that `approve()` or `deny()` of each of `approvals` makes"
            )
        given, messages = self._given, self.messages
        if given is not None and given.is_the_beginning_of(messages):
            return given.gone_on_with(messages)
        whole = bedrock_conversation_from_v3_prompt(messages)
        return _Bridged(whole.conversation, whole.warnings)

    def with_bridge_warnings(self) -> AgenticLoopResult:
        """With those of what the turn added and `conversation` cannot say."""
        try:
            further = self._bridged.warnings
        except BridgeShapeError:  # as `conversation` raises
            return self
        return replace(self, warnings=(*self.warnings, *(one for one in further if one not in self.warnings)))


class _Bridged(NamedTuple):
    conversation: Sequence[Mapping[str, object]]
    warnings: tuple[CallWarning, ...] = ()


@dataclass(frozen=True)
class Given:
    """A conversation as it was given, and what it is as V3 messages."""

    conversation: tuple[Mapping[str, object], ...]
    prompt: tuple[Message, ...]

    def is_the_beginning_of(self, messages: Sequence[Message]) -> bool:
        """Whether nothing of it was changed, so that it need not be converted back."""
        at = len(self.prompt)
        kept = len(messages) >= at and all(now is before for now, before in zip(messages, self.prompt, strict=False))
        ends_with_user = bool(self.conversation) and self.conversation[-1].get("role") == "user"
        return kept and (len(messages) == at or (ends_with_user and isinstance(messages[at], AssistantMessage)))

    def gone_on_with(self, messages: Sequence[Message]) -> _Bridged:
        """As it was given, and behind it what `messages` have beyond it."""
        if len(messages) == len(self.prompt):
            return _Bridged(self.conversation)
        # What was given is converted too, so that documents that came later are not named like those in it.
        before, whole = map(bedrock_conversation_from_v3_prompt, (self.prompt, messages))
        added = whole.conversation[len(before.conversation) :]
        further = tuple(warning for warning in whole.warnings if warning not in before.warnings)
        return _Bridged((*self.conversation, *added), further)


class AgenticLoop:
    """One turn. stream: its chunks; nothing runs that the reader did not ask for. result: once the stream has ended,
    failed, or was closed or cancelled."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        closer = Closer(run.close)
        self.parts = PartStream(run.parts(closer), close=closer)
        """The turn as V3 parts, instead of `stream`."""
        self.stream = ChunkStream(self.parts)

    @property
    def settled(self) -> bool:
        """Whether there is a result."""
        return self._run.result is not None

    @property
    def result(self) -> AgenticLoopResult:
        """What the turn came to. ConfigError while it runs."""
        if self._run.result is None:
            raise ConfigError("the loop has no result yet: read its stream to the end, or close it")
        return self._run.result

    async def finish(self) -> Finish:
        """The last part of the turn, for `bedrock_chunks_to_v3_stream`."""
        result = self.result
        stopped_by = "error" if result.error is not None else result.stopped_by or "aborted"
        mark = turn_mark(len(result.steps), stopped_by)
        return Finish(result.finish_reason, result.usage, with_entry(None, mark))


def run_agentic_loop(
    model: LanguageModel,
    conversation: Sequence[Mapping[str, object]],
    *,
    system: str | Sequence[Mapping[str, object]] = "",
    tools: Sequence[Tool] = (),
    options: CallOptions | None = None,
    **settings: Unpack[TurnKeywords],
) -> AgenticLoop:
    """A turn over a conversation in Converse's shape, as chunks.

        loop = run_agentic_loop(model, [{"role": "user", "content": [{"text": "Hi"}]}], system="Be brief.", tools=[...])
        async for chunk in loop.stream:
            print(chunk.content, end="")
        history = loop.result.conversation

    model: any model, most often a `BedrockModel` with middlewares around it. conversation: Converse messages; they are
    not changed, and belong to this call alone. system: a text, or Converse system blocks. options: everything of the
    calls but the prompt. settings: see `neurolink_mw.loop.TurnSettings`.

    Nothing happens before the first chunk is asked for. What fails is raised by the stream after the chunks that came
    before it: bare where no step was done, else a `TurnError`. The loop itself tries nothing again; a `retry` around
    the model does, and only before the first chunk. BridgeShapeError for a conversation that cannot cross.
    """
    if options is not None and options.prompt:
        raise ConfigError("options.prompt: the prompt of a loop is its conversation; give options without one")
    prompt = tuple(build_v3_prompt_from_bedrock(system, conversation))
    call = CallOptions(prompt) if options is None else options.replace(prompt=prompt)
    return AgenticLoop(_Run(model, call, turn_settings(tools, settings), Given(tuple(conversation), prompt)))


class _Run:
    """The loop as it goes. It does not know its stream, which may be dropped."""

    def __init__(self, model: LanguageModel, options: CallOptions, settings: TurnSettings, given: Given) -> None:
        self.result: AgenticLoopResult | None = None
        self._model = model
        self._options = options
        self._settings = settings
        self._given = given
        self._record = TurnRecord()
        self._record.begin(options.prompt)
        self._opening: anyio.CancelScope | None = None
        self._turn: TurnStream | None = None
        self._is_read = False
        self._failed: Exception | None = None

    async def parts(self, closer: Closer) -> AsyncIterator[StreamPart]:
        """The parts of the turn. It begins with the first that is asked for."""
        self._is_read = True
        try:
            with anyio.CancelScope() as self._opening:
                self._turn = await stream_turn(self._model, self._options, self._settings, self._record)
            if self._turn is None or closer.done:
                raise anyio.ClosedResourceError
            async for part in self._turn.stream:
                if isinstance(part, ErrorPart):
                    error = as_exception(part.error)
                    self._failed = error if isinstance(error, Exception) else None
                elif isinstance(part, Finish):
                    self._settle()
                yield part
        except Exception as error:
            if closer.done:  # by another task, while this one was reading
                raise anyio.ClosedResourceError from None
            self._failed = self._failed or error
            raise
        finally:
            try:
                await closer()
                if self._turn is not None:
                    await self._turn.stream.aclose()  # one that was opened while this was closed
            finally:
                self._settle()  # after that: what its tools did until now is part of it

    async def close(self) -> None:
        """Stop where the turn is."""
        if self._opening is not None:
            self._opening.cancel()
        try:
            if self._turn is not None:
                await self._turn.stream.aclose()
        finally:
            if not self._is_read:  # else its reader does, who may have to see a tool end
                self._settle()

    def _settle(self) -> None:
        if self.result is None:
            self.result = loop_result(self._record, self._failed, self._given)


def loop_result(record: TurnRecord, error: Exception | None = None, given: Given | None = None) -> AgenticLoopResult:
    """What a turn came to, by its record. error: what failed; a turn that did not fail and has no result was left."""
    turn, steps = record.result, tuple(record.steps)
    if turn is not None and error is None:
        reason, stopped_by = turn.finish_reason, turn.stopped_by
        text, approvals, warnings = turn.text, turn.approvals, turn.warnings
    else:
        reason, stopped_by = FinishReason("other" if error is None else "error"), None
        text, approvals = next((step.text for step in reversed(steps) if step.text), ""), ()
        warnings = tuple(warning for step in steps for warning in step.warnings)
    stop: StopReason | None = None
    if stopped_by == "step-limit":
        stop = "step-cap"
    elif turn is None and error is None:
        stop = "aborted"
    return AgenticLoopResult(
        text,
        reason,
        stop,
        stopped_by,
        record.usage,
        steps,
        tuple(record.tool_executions),
        record.messages,
        approvals,
        warnings,
        error,
        given,
    ).with_bridge_warnings()
