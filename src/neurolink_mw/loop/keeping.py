"""What is kept of a turn as it goes: its record, what its answer shows, and what its plugins are told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ..events import Event, StepEnded, ToolExecuted
from ..protocol import CallWarning, Content, GenerateResult, ToolCall, ToolOutput
from ..tools import Answering, parsed_or_text
from .asking import Step
from .mark import is_own, shown_call
from .messages import messages_of
from .result import TurnRecord
from .step import StepResult, StepToolCall, StepToolResult


class Keeping:
    """shown: the content of the turn's answer so far; warnings: of all steps. hidden: names of tools whose calls are
    shown to nobody; tell: who hears of events."""

    def __init__(
        self,
        record: TurnRecord,
        request_id: Callable[[], str],
        tell: Callable[[Event], None] | None,
        hidden: Collection[str],
    ) -> None:
        self.record = record
        self.shown: list[Content] = []
        self.warnings: list[CallWarning] = []
        self._request_id = request_id
        self._tell = tell
        self._hidden = hidden

    def step(
        self,
        step: Step,
        answer: GenerateResult,
        calls: Sequence[ToolCall] = (),
        answered: Sequence[ToolCall] = (),
        outputs: Sequence[ToolOutput] = (),
    ) -> None:
        """A step is done. calls: of the turn's tools; answered, outputs: those of them that have a result, and it."""
        self.warnings += answer.warnings
        kept = StepResult(
            step.number,
            tuple(one for one in answer.content if not self._is_hidden(one)),
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
        self.record.steps.append(kept)
        if self._tell is not None:
            reason = kept.finish_reason.unified
            self._tell(StepEnded(self._request_id(), kept.step_number, reason, len(kept.tool_calls), kept.usage))

    def execution(self, call: Answering) -> None:
        """A call has its result."""
        done = call.report()
        self.record.tool_executions.append(done)
        if self._tell is not None:
            id, name = done.tool_call_id, done.tool_name
            self._tell(ToolExecuted(self._request_id(), name, id, done.status, done.duration, done.step))

    def messages(self, answer: GenerateResult) -> None:
        """An answer goes into the conversation."""
        self.record.messages = (*self.record.messages, *messages_of(answer.content))

    def show(self, step: Step, answer: GenerateResult, more: Sequence[Content] = ()) -> None:
        """An answer, and what stands behind it, become part of the turn's."""
        step.shown = more
        self.shown += [
            shown_call(one, step.number) if is_own(one) else one for one in answer.content if not self._is_hidden(one)
        ]
        self.shown += more

    def _is_hidden(self, one: Content) -> bool:
        return isinstance(one, ToolCall) and one.tool_name in self._hidden
