"""The decisions of a turn: what each step asks, and what its answer leads to. It calls no model; the two drivers do, so
that a turn that is generated and one that is streamed decide alike."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ..errors import ContextOverflowError, PolicyDenied, TurnError
from ..pipeline.enclosing import listener_of, output_is_judged
from ..pipeline.tap import is_turn
from ..pipeline.tool_hooks import around_tools, replaced_input
from ..protocol import (
    DETACHED,
    CallContext,
    CallOptions,
    CallWarning,
    Content,
    ErrorPart,
    ErrorTextOutput,
    FinishReason,
    GenerateResult,
    LanguageModel,
    Text,
    ToolApprovalRequest,
    ToolCall,
    ToolOutput,
    with_context,
)
from ..protocol.stream_result import as_exception
from ..tools import Answering, ToolExecutor, approval_id
from .asking import Asking, Step, StepKind
from .keeping import Keeping
from .limit import apology, gathered, with_text
from .mark import denial_of, is_own, marked_call, shown_call, shown_result
from .messages import tool_message, with_calls, with_unique_calls
from .pending import Pending, find_pending, without_answers
from .result import PendingApproval, StoppedBy, TurnRecord, TurnResult
from .settings import TurnSettings
from .silence import silenced, silenced_messages
from .stop import is_stopped

_log = logging.getLogger(__name__)

_CUT = frozenset({"length", "content-filter", "error"})
# Raw reasons of an answer that is not at its end: Anthropic, while it runs tools of its own for long.
_PAUSED = frozenset({"pause_turn"})
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
        self.record.begin(options.prompt)
        self._model = model
        self._options = options
        self._settings = settings
        self._terminal = frozenset(settings.terminal_tools)
        self._tools = ToolExecutor(settings.tools, settings.tool_settings)
        self._asking = Asking(model, options, settings, self.record)
        context = options.context
        self._kept = Keeping(self.record, lambda: context.request_id, listener_of(model, context), self._terminal)
        self._kind: StepKind | None = "usual"
        self._asked_again = False
        self._stopped_by: StoppedBy = "answer"
        self._answer = GenerateResult()
        self._approvals: tuple[PendingApproval, ...] = ()
        self._terminal_call: ToolCall | None = None

    async def begin(self) -> None:
        """Answer the calls that the conversation left open: those that somebody has approved are run now."""
        pending = find_pending(self.record.messages)
        if pending is not None and is_turn(self._model):  # whose own calls these may be
            pending = pending.of_tools(self._asking.available)
        if pending is not None:
            await self._settle(pending)
        if not is_turn(self._model):
            self.record.messages = without_answers(self.record.messages)

    async def next_step(self) -> Step | None:
        """The step to come; None where the turn is over."""
        return None if self._kind is None else await self._asking.step(self._kind)

    def refit(self, step: Step, error: ContextOverflowError) -> None:
        """Shorten a step that the provider refused as too long, or raise that error with the figures."""
        self._asking.refit(step, error)

    def is_terminal(self, tool_name: str) -> bool:
        """Whether a call of this tool ends the turn, and is shown to nobody."""
        return tool_name in self._terminal

    # -- what an answer leads to

    async def ended(self, step: Step, answer: GenerateResult) -> None:
        """Take a step's answer: run its tools, or end the turn."""
        self._asking.observed(answer.usage.input_tokens.total)
        answer = with_unique_calls(answer)
        own = [one for one in answer.content if is_own(one)]
        calls = [call for call in own if call.tool_name not in self._terminal]
        cut = answer.finish_reason.unified in _CUT
        if step.kind != "usual" or cut or len(calls) < len(own):
            self._end_without_tools(step, answer, calls, None if cut else _first_of(own, self._terminal))
        elif calls:
            await self._run_tools(step, answer, calls)
        elif answer.finish_reason.raw in _PAUSED:
            await self._go_on(step, answer)
        elif self._says_nothing(step, answer):
            self._ask_again(step, answer)
        else:
            self._end_without_tools(step, answer)

    def forgives(self, step: Step, error: Exception) -> bool:
        """Whether the turn can do without a step that failed. It cannot do without its time, nor against a refusal."""
        return step.kind != "usual" and not isinstance(error, PolicyDenied | TurnError)

    def go_without(self, step: Step, error: Exception, begun: GenerateResult | None = None) -> None:
        """End without a step that failed. begun: what of its answer has been given out already."""
        _log.warning("the step of a turn that was to get an answer out of it failed: %s", type(error).__name__)
        self._kind = None
        if begun is not None:
            self._kept.show(step, begun)
        if step.kind == "last":
            self._apologize(step)

    async def _run_tools(self, step: Step, answer: GenerateResult, calls: Sequence[ToolCall]) -> None:
        options = with_context(step.options, step.options.context.for_tool())
        answering = [
            Answering(
                marked_call(call, step.number),
                options,
                step=step.number,
                available=step.available,
                outcome=denial_of(call),
            )
            for call in calls
        ]
        around = around_tools(step.model, options)
        try:
            await self._tools.answer(answering, around, around.judge)
        except BaseException:
            # Once a tool has started, what it did is part of the conversation. Before that, nothing has happened.
            if any(one.tries for one in answering):
                self._keep_calls(step, answer, answering)
            else:
                self._kept.step(step, answer, calls)
            raise
        answer = self._keep_calls(step, answer, answering)
        asks = any(one.asks for one in answering)
        if asks or _asks(answer):
            self._approvals = _pending_in(answer, [one.call for one in answering if one.asks])
            self._end("approval", answer)
        elif await is_stopped(self._settings.conditions, self.record.steps):
            self._end("stop-condition", answer)
        elif len(self.record.steps) >= self._settings.max_steps:
            self._end_or_ask_last(answer)

    async def _go_on(self, step: Step, answer: GenerateResult) -> None:
        """The model has paused, and goes on when it is asked again with what it has said."""
        self._kept.step(step, answer)
        self._kept.messages(answer)
        self._kept.show(step, answer)
        if await is_stopped(self._settings.conditions, self.record.steps):
            self._end("stop-condition", answer)
        elif len(self.record.steps) >= self._settings.max_steps:
            self._end_or_ask_last(answer)

    def _keep_calls(self, step: Step, answer: GenerateResult, answering: Sequence[Answering]) -> GenerateResult:
        """A step and what became of its calls become part of the conversation. Returns the answer with the inputs that
        policies have put in place of the model's."""
        for one in answering:
            replaced = replaced_input(step.options.context, one.call.tool_call_id)
            if replaced is not None:
                one.call = one.call.replace(input=replaced)
        answer = with_calls(answer, {one.call.tool_call_id: one.call.input for one in answering})
        done, outputs = self._answered(answering)
        for one in answering:
            if one.outcome is not None:
                self._kept.execution(one)
        self._kept.step(step, answer, [one.call for one in answering], done, outputs)
        self._kept.messages(answer)
        if done:
            self.record.messages = (*self.record.messages, tool_message(done, outputs))
        shown: list[Content] = [
            shown_result(call, output, step.number) for call, output in zip(done, outputs, strict=True)
        ]
        shown += [
            ToolApprovalRequest(approval_id(one.call.tool_call_id), shown_call(one.call, step.number).tool_call_id)
            for one in answering
            if one.asks
        ]
        self._kept.show(step, answer, shown)
        return answer

    def _answered(self, answering: Sequence[Answering]) -> tuple[list[ToolCall], list[ToolOutput]]:
        """The calls that have an outcome, and their outputs as the conversation holds them."""
        done = [(one.call, one.outcome) for one in answering if one.outcome is not None]
        return [call for call, _ in done], [self._tools.in_conversation(outcome.output) for _, outcome in done]

    # -- ways to end

    def _says_nothing(self, step: Step, answer: GenerateResult) -> bool:
        """Whether the model means to call tools, and neither does nor says anything: then it is asked once more."""
        wants_tools = answer.finish_reason.unified == "tool-calls" and bool(step.available)
        may_ask = not self._asked_again and len(self.record.steps) + 1 < self._settings.max_steps
        return wants_tools and may_ask and not answer.text.strip() and not _asks(answer)

    def _ask_again(self, step: Step, answer: GenerateResult) -> None:
        self._kept.step(step, answer)
        self._kept.show(step, answer)
        self._asked_again, self._kind, self._answer = True, "again", _as_done(answer)

    def _end_without_tools(
        self, step: Step, answer: GenerateResult, calls: Sequence[ToolCall] = (), terminal: ToolCall | None = None
    ) -> None:
        """The model is done, or its answer was cut, or a terminal tool gives it. Calls that come all the same are not
        run, and left out of the history, where nothing would answer them."""
        cut = answer.finish_reason.unified in _CUT
        if calls:
            names = ", ".join(call.tool_name for call in calls)
            why = "the answer was cut" if cut else "the turn ended with it"
            self._kept.warnings.append(CallWarning("other", message=f"calls were not run, since {why}: {names}"))
        bare = answer.replace(content=tuple(one for one in answer.content if not is_own(one)))
        self._kept.step(step, answer, calls)
        self._kept.show(step, answer, [shown_result(call, _NOT_RUN, step.number) for call in calls])
        if step.kind == "last" and not _is_an_answer(bare):
            self._apologize(step)
            return
        if step.kind == "last":
            self._end("step-limit", bare)
        elif terminal is not None:
            self._terminal_call = terminal
            self._end("terminal-tool", bare.replace(finish_reason=FinishReason("stop", answer.finish_reason.raw)))
        elif _asks(bare):
            self._approvals = _pending_in(bare, ())
            self._end("approval", bare)
        else:
            self._end("answer", bare if cut else _as_done(bare))
        self._kept.messages(bare)

    def _end_or_ask_last(self, answer: GenerateResult) -> None:
        """At the limit: what was said so far is the answer; where that is nothing, the model is asked for one."""
        text = gathered(self.record.steps)
        bare = answer.replace(content=tuple(one for one in answer.content if not is_own(one)))
        self._end("step-limit", with_text(bare, text))
        if not text:
            self._kind = "last"

    def _apologize(self, step: Step) -> None:
        text = Text(apology(self.record.steps, self._settings.max_steps))
        step.shown = (*step.shown, text)
        self._kept.shown.append(text)
        answer = self._answer.replace(content=(text,))
        self._end("step-limit", answer)
        self._kept.messages(answer)

    def _end(self, by: StoppedBy, answer: GenerateResult) -> None:
        if by == "step-limit" and answer.finish_reason.unified != "content-filter":
            answer = answer.replace(finish_reason=FinishReason("tool-calls", "step-limit"))
        self._kind, self._stopped_by, self._answer = None, by, answer

    # -- what comes of it

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
            tuple(self._kept.warnings),
            answer.provider_metadata,
            answer.response,
            tuple(self._kept.shown),
        )
        return record.result

    def error(self, cause: Exception) -> TurnError | None:
        """What a turn raises in place of a failure: it has what was done before. None where nothing was; and a refusal
        is no failure."""
        done = self.record.steps or self.record.tool_executions
        if not done or isinstance(cause, PolicyDenied | TurnError):
            return None
        count = len(self.record.steps)
        return self._with_record(f"the turn failed after {count} step{'' if count == 1 else 's'}: {cause}")

    def shown_error(self, part: ErrorPart) -> ErrorPart:
        """An error of a step's stream as one of the turn."""
        cause = as_exception(part.error)
        error = self.error(cause) if isinstance(cause, Exception) else None
        if error is None:
            return part
        error.__cause__ = cause
        return part.replace(error=error)

    def overdue(self) -> TurnError:
        """What a turn raises that has had its time."""
        error = self._with_record(f"the turn was not done after {self._settings.deadline or 0:g} s")
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

    # -- calls of an earlier turn

    async def _settle(self, pending: Pending) -> None:
        """Run or refuse the calls that waited for an approval, and put their results where they belong."""
        options = with_context(self._options, self._options.context.for_tool())
        available = self._asking.available
        answering = [
            Answering(call, options, step=0, available=available, approved=True, outcome=pending.refusal(call))
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
            self._kept.execution(one)
        self.record.messages = pending.answered(self.record.messages, *self._answered(answering))


def _first_of(calls: Sequence[ToolCall], names: frozenset[str]) -> ToolCall | None:
    return next((call for call in calls if call.tool_name in names), None)


def _asks(answer: GenerateResult) -> bool:
    """Whether somebody further in asks for an approval: the provider, for a tool of its own, or a turn."""
    return any(isinstance(one, ToolApprovalRequest) for one in answer.content)


def _pending_in(answer: GenerateResult, own: Sequence[ToolCall]) -> tuple[PendingApproval, ...]:
    """What waits for an approval: calls of the turn's own, and those that an answer asks for."""
    calls = {one.tool_call_id: one for one in answer.content if isinstance(one, ToolCall)}
    asked = [one for one in answer.content if isinstance(one, ToolApprovalRequest) and one.tool_call_id in calls]
    return (
        *(PendingApproval(approval_id(call.tool_call_id), calls.get(call.tool_call_id, call)) for call in own),
        *(PendingApproval(one.approval_id, calls[one.tool_call_id]) for one in asked),
    )


def _is_an_answer(answer: GenerateResult) -> bool:
    return answer.finish_reason.unified == "content-filter" or (
        bool(answer.text.strip()) and answer.finish_reason.unified != "error"
    )


def _as_done(answer: GenerateResult) -> GenerateResult:
    """An answer without calls is the last one, whatever the provider calls it."""
    reason = answer.finish_reason
    return answer.replace(finish_reason=FinishReason("stop", reason.raw)) if reason.unified == "tool-calls" else answer
