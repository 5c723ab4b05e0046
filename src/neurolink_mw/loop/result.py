"""What a turn comes to, and the record of it while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ..pipeline.marks import with_entry
from ..protocol import (
    JSON,
    NO_USAGE,
    CallWarning,
    Content,
    FinishReason,
    JSONObject,
    Message,
    Reasoning,
    ResponseInfo,
    Text,
    ToolApprovalResponsePart,
    ToolCall,
    ToolMessage,
    Usage,
    Value,
    value,
)
from ..tools import ToolExecution
from .step import StepResult

StoppedBy: TypeAlias = Literal["answer", "stop-condition", "step-limit", "terminal-tool", "approval"]


@value
class PendingApproval(Value):
    """A call that waits for somebody's yes or no. Put the message that `approve` or `deny` makes behind the turn's
    messages, and go on; one message for each call that waits."""

    approval_id: str
    call: ToolCall

    def approve(self) -> ToolMessage:
        """The call may run."""
        return ToolMessage((ToolApprovalResponsePart(self.approval_id, True),))

    def deny(self, reason: str | None = None) -> ToolMessage:
        """The call does not run. The model reads the reason."""
        return ToolMessage((ToolApprovalResponsePart(self.approval_id, False, reason),))


@value
class TurnResult(Value):
    """A whole turn.

    content: the answer of the last step; `text` is its text, `reasoning_text` the reasoning of all steps. stopped_by:
    why the turn ended; "answer" where the model was done. usage: the sum over the steps. messages: the conversation
    to go on with, the given messages first; old tool results are shortened or gone where the context guard had to
    make room. tool_executions: what became of each call, in order. approvals: calls that wait for an approval.
    terminal_call: the call of a terminal tool that ended the turn. shown: content of all steps, with the turn's own
    calls and their results, as `TurnModel` gives it.
    """

    content: tuple[Content, ...]
    finish_reason: FinishReason
    stopped_by: StoppedBy
    usage: Usage
    steps: tuple[StepResult, ...]
    tool_executions: tuple[ToolExecution, ...]
    messages: tuple[Message, ...]
    approvals: tuple[PendingApproval, ...] = ()
    terminal_call: ToolCall | None = None
    warnings: tuple[CallWarning, ...] = ()
    provider_metadata: JSONObject | None = None
    response: ResponseInfo | None = None
    shown: tuple[Content, ...] = ()

    @property
    def text(self) -> str:
        """The text of the answer."""
        return "".join(one.text for one in self.content if isinstance(one, Text))

    @property
    def reasoning_text(self) -> str:
        """The reasoning of all steps, joined."""
        return "".join(one.text for step in self.steps for one in step.content if isinstance(one, Reasoning))

    @property
    def tools_used(self) -> tuple[str, ...]:
        """Names of the tools that ran and did not fail, each once."""
        return tuple(dict.fromkeys(one.tool_name for one in self.tool_executions if one.status == "ok"))


@dataclass(eq=False)
class TurnRecord:
    """A turn as far as it has come. Whoever gives one to a turn can read it afterwards however the turn ended: also
    after a cancellation, which carries nothing.

    messages: the conversation so far, with one result for every call. result: of a turn that came to its end. run: what
    tells it from other runs, where what stands around a turn may have it run more than once.
    """

    steps: list[StepResult] = field(default_factory=list, repr=False)
    tool_executions: list[ToolExecution] = field(default_factory=list, repr=False)
    messages: tuple[Message, ...] = field(default=(), repr=False)
    result: TurnResult | None = field(default=None, repr=False)
    run: str | None = field(default=None, repr=False)

    def begin(self, messages: Sequence[Message]) -> None:
        """A turn starts: what another one left here is forgotten."""
        self.steps, self.tool_executions, self.messages, self.result = [], [], tuple(messages), None

    @property
    def usage(self) -> Usage:
        """What the completed steps cost; unset where one of them did not say."""
        return total_usage(self.steps)


def total_usage(steps: Sequence[StepResult]) -> Usage:
    """The sum over steps."""
    if not steps:
        return NO_USAGE
    total = steps[0].usage
    for step in steps[1:]:
        total += step.usage
    return total


def turn_metadata(result: TurnResult, run: str | None = None) -> JSONObject:
    """The metadata of a turn as an answer: the last step's, and the mark by which budgets and cost know that its usage
    is the sum of steps that they have counted."""
    return with_entry(result.provider_metadata, turn_mark(len(result.steps), result.stopped_by, run))


def turn_mark(steps: int, stopped_by: str, run: str | None = None) -> JSONObject:
    """What marks usage as the sum of that of steps. run: see `TurnRecord`."""
    mark: dict[str, JSON] = {"steps": steps, "stopped_by": stopped_by}
    if run is not None:
        mark["run"] = run
    return {"turn": mark}
