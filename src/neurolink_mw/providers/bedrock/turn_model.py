"""A whole Bedrock turn as a model that owns its outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Unpack

from ...errors import ConfigError
from ...loop import TurnResult
from ...loop.recorded import RecordedTurn, RunRecord, Runs, is_refusal, run_that_counts, with_runs
from ...loop.result import turn_metadata
from ...loop.settings import TurnKeywords, TurnSettings, turn_settings
from ...loop.silence import silenced, silenced_messages
from ...pipeline import Member, Use, wrap_model
from ...pipeline.marks import entry, with_entry
from ...protocol import (
    SPECIFICATION_VERSION,
    CallOptions,
    ErrorPart,
    Finish,
    FinishReason,
    GenerateResult,
    JSONObject,
    LanguageModel,
    Message,
    PartStream,
    StreamPart,
    StreamResult,
    SupportedUrls,
    Usage,
    supported_urls,
)
from ...protocol.stream_result import as_exception
from ...tools import Tool
from .agentic_loop import AgenticLoopResult, loop_result


@dataclass(frozen=True)
class BedrockTurn:
    """A generated turn. answer: as it left the middlewares. loop: the run of the loop that counts; None where a
    middleware answered by itself."""

    answer: GenerateResult
    loop: AgenticLoopResult | None = field(repr=False)


class BedrockTurnStream:
    """A turn that is streamed. result: with its stream."""

    def __init__(self, result: StreamResult, turn: _OwnedTurn) -> None:
        self.result = result.replace(stream=result.stream.map(turn.part))
        self._turn = turn

    @property
    def stream(self) -> PartStream:
        return self.result.stream

    @property
    def loop(self) -> AgenticLoopResult | None:
        """As in `BedrockTurn`, once the stream is over: of one that failed or was closed, how far the loop came.
        ConfigError before that."""
        last = self._turn.last
        if last is not None:
            return self._turn.loop(last.provider_metadata, last.finish_reason, last.usage)
        if not self.stream.is_over:
            raise ConfigError("the turn has no outcome yet: read its stream to the end, or close it")
        return self._turn.as_far_as_it_came()


class BedrockTurnModel:
    """A turn as a model, with middlewares around it that cannot rewrite what happened.

        turn = BedrockTurnModel(BedrockModel("anthropic.claude-sonnet-4-6"), tools=[weather], middlewares=[Audit()])
        result = await turn.do_generate(CallOptions.from_text("Do I need an umbrella?"))

    Where the loop ran to its end, its finish reason and usage are those of the answer, whatever a middleware made of
    them; the content and the parts may be replaced. A refusal alone wins: `content-filter`, with the loop's own reason
    as the raw one; what the model said in a run that was refused is told nowhere. Where no run came to its end (a
    middleware answered by itself, or recovered from a failure), the middleware's answer stands. Of several runs the one
    counts whose answer was returned, else the last that came to its end; budgets and costs of the steps see them all.

    model: of the steps; wrap it for middlewares on each step. settings: see `neurolink_mw.loop.TurnSettings`.
    Middlewares put around this model from outside are not owned: their finish and usage stand.
    """

    specification_version = SPECIFICATION_VERSION
    is_turn = True

    def __init__(
        self,
        model: LanguageModel,
        *,
        tools: Sequence[Tool] = (),
        middlewares: Sequence[Member | Use] = (),
        **settings: Unpack[TurnKeywords],
    ) -> None:
        self._settings = turn_settings(tools, settings)
        self._turn: LanguageModel = RecordedTurn(model)
        if middlewares:
            self._turn = wrap_model(self._turn, middlewares)

    @property
    def provider(self) -> str:
        return self._turn.provider

    @property
    def model_id(self) -> str:
        return self._turn.model_id

    @property
    def supported_urls(self) -> SupportedUrls:
        return supported_urls(self._turn)

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        """The answer of the whole turn. Raises what the middlewares let through: see `run_generate_loop`."""
        return (await self.run_generate(options)).answer

    async def do_stream(self, options: CallOptions) -> StreamResult:
        """The same in parts, as they come."""
        return (await self.run_stream(options)).result

    async def run_generate(self, options: CallOptions) -> BedrockTurn:
        """`do_generate`, and what the loop did."""
        turn = _OwnedTurn(options.prompt, self._settings)
        answer = await self._turn.do_generate(with_runs(options, self._turn, turn.runs))
        owned = turn.owned(answer.provider_metadata, answer.finish_reason)
        if owned is not None:
            reason, metadata, result = owned
            answer = answer.replace(finish_reason=reason, usage=result.usage, provider_metadata=metadata)
        return BedrockTurn(answer, turn.loop(answer.provider_metadata, answer.finish_reason, answer.usage))

    async def run_stream(self, options: CallOptions) -> BedrockTurnStream:
        """`do_stream`, and what the loop did."""
        turn = _OwnedTurn(options.prompt, self._settings)
        result = await self._turn.do_stream(with_runs(options, self._turn, turn.runs))
        return BedrockTurnStream(result, turn)

    def __repr__(self) -> str:
        return f"BedrockTurnModel({self._turn!r}, {len(self._settings.tools)} tools)"


class _OwnedTurn:
    """What a call's runs of the loop say of its outcome. It belongs to the call: turns on one model never meet."""

    def __init__(self, given: Sequence[Message], settings: TurnSettings) -> None:
        self.runs = Runs(settings)
        self.last: Finish | None = None  # of its stream
        self._failure: BaseException | None = None  # that its stream told of
        self._given = given

    def part(self, part: StreamPart) -> StreamPart:
        """A part of the stream. The last one is as the loop has it, unless the stream has told of a failure."""
        cls = part.__class__
        if cls is ErrorPart:
            assert isinstance(part, ErrorPart)
            self._failure = self._failure or as_exception(part.error)
        elif cls is Finish:
            assert isinstance(part, Finish)
            if self._failure is None and (owned := self.owned(part.provider_metadata, part.finish_reason)) is not None:
                reason, metadata, result = owned
                part = part.replace(finish_reason=reason, usage=result.usage, provider_metadata=metadata)
            self.last = part
        return part

    def owned(
        self, metadata: JSONObject | None, reason: FinishReason
    ) -> tuple[FinishReason, JSONObject, TurnResult] | None:
        """The finish reason, metadata and result of the run that counts; None where none came to its end."""
        record = run_that_counts(metadata, self.runs.records)
        if record is None or record.result is None:
            return None
        result = record.result
        refused = _is_refused(metadata, reason, result)
        reason = FinishReason("content-filter", result.finish_reason.unified) if refused else result.finish_reason
        mark = entry(turn_metadata(result, record.run))
        return reason, with_entry(metadata, mark), result

    def loop(self, metadata: JSONObject | None, reason: FinishReason, usage: Usage) -> AgenticLoopResult | None:
        """What the run that counts came to. reason, usage: of the answer."""
        if self._failure is not None:
            return self.as_far_as_it_came()
        record = run_that_counts(metadata, self.runs.records)
        if not _is_refused(metadata, reason, None if record is None else record.result):
            return None if record is None else self._told(record)
        record = record or (self.runs.records[-1] if self.runs.records else None)  # one that the refusal has cut short
        if record is None:
            return None
        # A step that was refused is none that was done, and has cost something all the same.
        return replace(self._quiet(loop_result(record)), finish_reason=reason, stop_reason=None, usage=usage)

    def as_far_as_it_came(self) -> AgenticLoopResult | None:
        """What the last run had come to when the turn failed or was closed."""
        record = self.runs.records[-1] if self.runs.records else None
        return None if record is None else self._told(record)

    def _told(self, record: RunRecord) -> AgenticLoopResult:
        failure = self._failure if isinstance(self._failure, Exception) else None
        result = loop_result(record, failure)
        unjudged = record.is_judged and (record.result is None or failure is not None)
        return self._quiet(result) if record.is_denied or unjudged else result

    def _quiet(self, result: AgenticLoopResult) -> AgenticLoopResult:
        """Without what the model said."""
        messages = silenced_messages(result.messages, self._given)
        return replace(result, text="", steps=tuple(map(silenced, result.steps)), messages=messages)


def _is_refused(metadata: JSONObject | None, reason: FinishReason, result: TurnResult | None) -> bool:
    """Whether a policy around the turn has refused the call. What one of a step refuses is the loop's answer."""
    own = result is not None and is_refusal(result.provider_metadata, result.finish_reason)
    return is_refusal(metadata, reason) and not own
