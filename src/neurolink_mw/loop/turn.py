"""The decisions of a turn: what each step asks, and what its answer leads to. It calls no model; the two drivers do, so
that a turn that is generated and one that is streamed decide alike."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TypeGuard

from ..errors import ContextOverflowError, PolicyDenied, TurnError
from ..events import StepEnded, ToolExecuted
from ..pipeline.enclosing import listener_of, output_is_judged
from ..pipeline.tool_hooks import around_tools
from ..protocol import (
    DETACHED,
    CallContext,
    CallOptions,
    CallWarning,
    Content,
    ErrorPart,
    ErrorTextOutput,
    ExecutionDenied,
    FinishReason,
    GenerateResult,
    LanguageModel,
    Text,
    ToolApprovalRequest,
    ToolCall,
    ToolOutcome,
    ToolOutput,
    with_context,
)
from ..protocol.stream_result import as_exception
from ..tools import Answering, ToolExecutor, approval_id, parsed_or_text
from .asking import Asking, Step, StepKind
from .limit import apology, gathered, with_text
from .mark import denial_reason, marked_call, shown_call, shown_result
from .messages import messages_of, tool_message
from .pending import Pending, find_pending
from .result import PendingApproval, StoppedBy, TurnRecord, TurnResult
from .settings import TurnSettings
from .silence import silenced, silenced_messages
from .step import StepResult, StepToolCall, StepToolResult
from .stop import is_stopped

_log = logging.getLogger(__name__)

_CUT = frozenset({"length", "content-filter", "error"})
_NOT_RUN = ErrorTextOutput("The call was not run.")


class Turn:
    """One turn. `begin()`; then for each `next_step()` a call of its model, whose answer goes to `ended(step, answer)`;
    `result()` when there is no further step."""

    def __init__(
        self, model: LanguageModel, options: CallOptions, settings: TurnSettings, record: TurnRecord | None = None
    ) -> None:
        if options.context is DETACHED:  # its steps are of one request
            options = with_context(options, CallContext())
        self.record = record or TurnRecord()
        self.record.messages = tuple(options.prompt)
        self._model = model
        self._options = options
        self._settings = settings
        self._tools = ToolExecutor(settings.tools, settings.tool_settings)
        self._asking = Asking(model, options, settings, self.record)
        self._terminal = frozenset(settings.terminal_tools)
        self._tell = listener_of(model, options.context)
        self._kind: StepKind | None = "usual"
        self._asked_again = False
        self._stopped_by: StoppedBy = "answer"
        self._answer = GenerateResult()
        self._approvals: tuple[PendingApproval, ...] = ()
        self._terminal_call: ToolCall | None = None
        self._shown: list[Content] = []
        self._warnings: list[CallWarning] = []

    async def begin(self) -> None:
        """Answer the calls that the conversation left open: those that somebody has approved are run now."""
        pending = find_pending(self.record.messages)
        if pending is not None:
            await self._settle(pending)

    async def next_step(self) -> Step | None:
        """The step to come; None where the turn is over."""
        return None if self._kind is None else await self._asking.step(self._kind)

    def refit(self, step: Step, error: ContextOverflowError) -> None:
        """Shorten a step that the provider refused as too long, or raise that error with the figures."""
        self._asking.refit(step, error)

    # -- what an answer leads to

    def is_terminal(self, tool_name: str) -> bool:
        """Whether a call of this tool ends the turn, and is shown to nobody."""
        return tool_name in self._terminal

    async def ended(self, step: Step, answer: GenerateResult) -> None:
        """Take a step's answer: run its tools, or end the turn."""
        self._asking.observed(answer.usage.input_tokens.total)
        calls = tuple(one for one in answer.content if _is_own(one))
        terminal = next((call for call in calls if call.tool_name in self._terminal), None)
        calls = tuple(call for call in calls if call.tool_name not in self._terminal)
        number = len(self.record.steps)
        if step.kind == "last":
            self._end_at_limit(step, answer, calls)
        elif answer.finish_reason.unified in _CUT or terminal is not None or step.kind == "again":
            self._end_without_tools(step, answer, calls, terminal)
        elif calls:
            await self._run_tools(step, answer, calls)
        else:
            self._end_without_calls(step, answer)
        record = self.record.steps[number]
        if self._tell is not None:
            context = self._options.context
            self._tell(
                StepEnded(
                    context.request_id, number, record.finish_reason.unified, len(record.tool_calls), record.usage
                )
            )

    def failed(self, step: Step, error: Exception) -> None:
        """Take the failure of a step that the turn can do without. Raises any other."""
        if step.kind == "usual":
            raise error
        _log.warning("the step of a turn that was to get an answer out of it failed: %s", type(error).__name__)
        self._kind = None
        if step.kind == "last":
            self._apologize(step)

    def error(self, cause: Exception) -> Exception:
        """What a turn raises that failed for this cause: a `TurnError` with what was done before, or the cause itself,
        where nothing was. A denial is no failure."""
        done = self.record.steps or self.record.tool_executions
        if not done or isinstance(cause, PolicyDenied | TurnError):
            return cause
        count = len(self.record.steps)
        return self._with_record(f"the turn failed after {count} step{'' if count == 1 else 's'}: {cause}")

    def shown_error(self, part: ErrorPart) -> ErrorPart:
        """An error of a step's stream as one of the turn."""
        cause = as_exception(part.error)
        error = self.error(cause) if isinstance(cause, Exception) else cause
        if error is cause:
            return part
        error.__cause__ = cause
        return part.replace(error=error)

    def overdue(self) -> TurnError:
        """What a turn raises that has had its time."""
        error = self._with_record(f"the turn was not done after {self._settings.deadline:g} s")
        error.__cause__ = TimeoutError("the deadline of the turn")
        return error

    def _with_record(self, message: str) -> TurnError:
        record = self.record
        steps, messages = tuple(record.steps), record.messages
        if output_is_judged(self._options.context):  # by somebody who will never see an answer of this turn
            steps, messages = tuple(map(silenced, steps)), silenced_messages(messages, self._options.prompt)
        return TurnError(
            message, steps=steps, usage=record.usage, messages=messages, tool_executions=record.tool_executions
        )

    def result(self) -> TurnResult:
        """What the turn came to."""
        record, answer = self.record, self._answer
        record.result = TurnResult(
            tuple(answer.content),
            answer.finish_reason,
            self._stopped_by,
            record.usage,
            tuple(record.steps),
            tuple(record.tool_executions),
            record.messages,
            self._approvals,
            self._terminal_call,
            tuple(self._warnings),
            answer.provider_metadata,
            answer.response,
            tuple(self._shown),
        )
        return record.result

    # -- ways to go on

    async def _run_tools(self, step: Step, answer: GenerateResult, calls: tuple[ToolCall, ...]) -> None:
        options = with_context(step.options, step.options.context.for_tool())
        answering = [
            Answering(
                marked_call(call, step.number),
                options,
                step=step.number,
                available=step.available,
                outcome=None if (denied := denial_reason(call)) is None else _denied(denied),
            )
            for call in calls
        ]
        try:
            await self._tools.answer(answering, around_tools(step.model, options))
        except BaseException:
            # Once a tool has started, what it did is part of the conversation. Before that, nothing has happened.
            self._take(step, answer, answering, keep=any(one.tries for one in answering))
            raise
        self._take(step, answer, answering, keep=True)
        waiting = [one for one in answering if one.asks]
        if waiting:
            self._approvals = tuple(
                PendingApproval(approval_id(one.call.tool_call_id), original)
                for one, original in zip(answering, calls, strict=True)
                if one.asks
            )
            self._end("approval", answer)
        elif await is_stopped(self._settings.conditions, self.record.steps):
            self._end("stop-condition", answer)
        elif len(self.record.steps) >= self._settings.max_steps:
            self._end_or_ask_last(answer)
        else:
            self._kind = "usual"

    def _take(self, step: Step, answer: GenerateResult, answering: Sequence[Answering], *, keep: bool) -> None:
        """Add a step and what became of its calls to the conversation. keep: unless nothing has happened."""
        done, outputs = self._answered(answering)
        self._add_step(step, answer, [one.call for one in answering], done, outputs)
        if not keep:
            return
        for one in answering:
            if one.outcome is not None:
                self._report(one)
        messages = messages_of(answer.content)
        if done:
            messages.append(tool_message(done, outputs))
        self.record.messages = (*self.record.messages, *messages)
        shown: list[Content] = [
            shown_result(call, output, step.number) for call, output in zip(done, outputs, strict=True)
        ]
        shown += [
            ToolApprovalRequest(approval_id(one.call.tool_call_id), shown_call(one.call, step.number).tool_call_id)
            for one in answering
            if one.asks
        ]
        self._show(step, answer, shown)

    def _end_without_calls(self, step: Step, answer: GenerateResult) -> None:
        """The model is done, whatever it calls that; but one that says nothing and means to call tools is asked once
        more, without any."""
        self._add_step(step, answer)
        self._show(step, answer)
        said = any(isinstance(one, Text) and one.text.strip() for one in answer.content)
        wants_tools = answer.finish_reason.unified == "tool-calls"
        approvals = any(isinstance(one, ToolApprovalRequest) for one in answer.content)
        may_ask = bool(step.available) and len(self.record.steps) < self._settings.max_steps and not self._asked_again
        if wants_tools and not said and not approvals and may_ask:
            self._asked_again, self._kind, self._answer = True, "again", _as_done(answer)
            return
        if approvals:
            self._end("approval", answer)
        else:
            self._end("answer", _as_done(answer) if wants_tools else answer)
        self._add_messages(answer)

    def _end_without_tools(
        self, step: Step, answer: GenerateResult, calls: tuple[ToolCall, ...], terminal: ToolCall | None
    ) -> None:
        """Nothing is run: the answer was cut, or it is given by a terminal tool. Calls are left out of the history,
        where nothing would answer them."""
        cut = answer.finish_reason.unified in _CUT
        self._add_step(step, _without_terminal(answer, self._terminal), calls)
        if calls:
            names = ", ".join(call.tool_name for call in calls)
            why = "the answer was cut" if cut else "the turn ended with it"
            self._warnings.append(CallWarning("other", message=f"calls were not run, since {why}: {names}"))
        bare = answer.replace(content=tuple(one for one in answer.content if not _is_own(one)))
        self._show(step, answer, [shown_result(call, _NOT_RUN, step.number) for call in calls])
        if terminal is not None and not cut:
            self._terminal_call = terminal
            self._end("terminal-tool", bare.replace(finish_reason=FinishReason("stop", answer.finish_reason.raw)))
        else:
            self._end("answer", bare if cut else _as_done(bare))
        self._add_messages(bare)

    def _end_or_ask_last(self, answer: GenerateResult) -> None:
        """At the limit: what was said so far is the answer; where that is nothing, the model is asked for one."""
        text = gathered(self.record.steps)
        self._end("step-limit", with_text(_without_calls(answer), text))
        if not text:
            self._kind = "last"

    def _end_at_limit(self, step: Step, answer: GenerateResult, calls: tuple[ToolCall, ...]) -> None:
        self._add_step(step, answer, calls)
        bare = _without_calls(answer)
        self._show(step, answer, [shown_result(call, _NOT_RUN, step.number) for call in calls])
        if not bare.text.strip() or answer.finish_reason.unified in _CUT - {"length"}:
            self._apologize(step)
            return
        self._end("step-limit", bare)
        self._add_messages(bare)

    def _apologize(self, step: Step) -> None:
        steps = self.record.steps
        text = Text(apology(steps, self._settings.max_steps))
        step.shown = (*step.shown, text)
        self._shown.append(text)
        answer = self._answer.replace(content=(text,))
        self._end("step-limit", answer)
        self._add_messages(answer)

    def _end(self, by: StoppedBy, answer: GenerateResult) -> None:
        if by == "step-limit":
            answer = answer.replace(finish_reason=FinishReason("tool-calls", "step-limit"))
        self._kind, self._stopped_by, self._answer = None, by, answer

    # -- keeping the record

    def _add_step(
        self,
        step: Step,
        answer: GenerateResult,
        calls: Sequence[ToolCall] = (),
        answered: Sequence[ToolCall] = (),
        outputs: Sequence[ToolOutput] = (),
    ) -> None:
        self._warnings += answer.warnings
        self.record.steps.append(
            StepResult(
                len(self.record.steps),
                tuple(answer.content),
                answer.text,
                tuple(StepToolCall(one.tool_name, one.tool_call_id, parsed_or_text(one.input)) for one in calls),
                tuple(
                    StepToolResult(one.tool_name, one.tool_call_id, output)
                    for one, output in zip(answered, outputs, strict=True)
                ),
                answer.finish_reason,
                answer.usage,
                tuple(answer.warnings),
                answer.response,
                answer.provider_metadata,
                step.plan,
            )
        )

    def _add_messages(self, answer: GenerateResult) -> None:
        self.record.messages = (*self.record.messages, *messages_of(answer.content))

    def _show(self, step: Step, answer: GenerateResult, more: Sequence[Content] = ()) -> None:
        step.shown = more
        self._shown += [
            shown_call(one, step.number) if _is_own(one) else one
            for one in answer.content
            if not (isinstance(one, ToolCall) and one.tool_name in self._terminal)
        ]
        self._shown += more

    def _report(self, one: Answering) -> None:
        done = one.report()
        self.record.tool_executions.append(done)
        if self._tell is not None:
            self._tell(
                ToolExecuted(
                    self._options.context.request_id,
                    done.tool_name,
                    done.tool_call_id,
                    done.status,
                    done.duration,
                    done.step,
                )
            )

    # -- calls of an earlier turn

    async def _settle(self, pending: Pending) -> None:
        """Run or refuse the calls that waited for an approval, and put their results where they belong."""
        options = with_context(self._options, self._options.context.for_tool())
        answering = [
            Answering(
                call, options, step=0, available=self._asking.available, approved=True, outcome=pending.refusal(call)
            )
            for call in pending.calls
        ]
        try:
            await self._tools.answer(answering, around_tools(self._model, options, judged=False))
        except BaseException:
            if any(one.tries for one in answering):
                self._place(pending, answering)
            raise
        self._place(pending, answering)

    def _place(self, pending: Pending, answering: Sequence[Answering]) -> None:
        for one in answering:
            self._report(one)
        calls, outputs = self._answered(answering)
        self.record.messages = pending.answered(self.record.messages, calls, outputs)

    def _answered(self, answering: Sequence[Answering]) -> tuple[list[ToolCall], list[ToolOutput]]:
        """The calls that have an outcome, and their outputs as the conversation holds them."""
        calls = [one.call for one in answering if one.outcome is not None]
        outputs = [self._tools.in_conversation(one.outcome.output) for one in answering if one.outcome is not None]
        return calls, outputs


def _is_own(one: Content) -> TypeGuard[ToolCall]:
    """Whether it is a call for the turn to answer; the provider's own tools have run already."""
    return isinstance(one, ToolCall) and not one.provider_executed


def _denied(reason: str) -> ToolOutcome:
    return ToolOutcome(ExecutionDenied(reason or None), "denied")


def _as_done(answer: GenerateResult) -> GenerateResult:
    """An answer without calls is the last one, whatever the provider calls it."""
    reason = answer.finish_reason
    return answer.replace(finish_reason=FinishReason("stop", reason.raw)) if reason.unified == "tool-calls" else answer


def _without_calls(answer: GenerateResult) -> GenerateResult:
    return answer.replace(
        content=tuple(one for one in answer.content if not isinstance(one, ToolCall) or one.provider_executed)
    )


def _without_terminal(answer: GenerateResult, terminal: frozenset[str]) -> GenerateResult:
    return answer.replace(
        content=tuple(one for one in answer.content if not (isinstance(one, ToolCall) and one.tool_name in terminal))
    )
