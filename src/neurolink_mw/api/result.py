"""What `generate` returns, and `stream` in the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from ..errors import ConfigError
from ..loop import PendingApproval, StepResult, StoppedBy, TurnRecord, TurnResult, messages_of
from ..loop.recorded import is_refusal
from ..loop.silence import silenced, silenced_messages
from ..pipeline.marks import is_of_a_turn, without_entry
from ..protocol import (
    CallWarning,
    Content,
    FinishReason,
    GenerateResult,
    JSONObject,
    Message,
    Reasoning,
    ResponseInfo,
    Text,
    ToolApprovalRequest,
    ToolCall,
    ToolResult,
    Usage,
)
from ..tools import ToolExecution
from .output import Output

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Generated(Generic[T]):
    """The answer of a turn.

    text: of the last step; content: all that it says, in parts. output: the text as what `output=` asked for. steps,
    tool_executions: what was done on the way. usage: the sum over the steps. finish_reason: why the last step ended;
    stopped_by: why the turn did. messages: the conversation to go on with, this answer included. approvals: calls that
    wait for an approval. terminal_call: of the terminal tool that ended the turn. warnings: what could not be done as
    asked.
    """

    content: tuple[Content, ...] = field(repr=False)
    finish_reason: FinishReason
    stopped_by: StoppedBy
    usage: Usage
    steps: tuple[StepResult, ...] = field(repr=False)
    tool_executions: tuple[ToolExecution, ...] = field(repr=False)
    messages: tuple[Message, ...] = field(repr=False)
    approvals: tuple[PendingApproval, ...]
    terminal_call: ToolCall | None
    warnings: tuple[CallWarning, ...]
    provider_metadata: JSONObject | None = field(repr=False)
    response: ResponseInfo | None
    _output: Output[T] | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """The text of the answer."""
        return "".join(one.text for one in self.content if isinstance(one, Text))

    @property
    def reasoning_text(self) -> str:
        """The reasoning of all steps, joined; of the answer, where the steps do not tell."""
        said = [one.text for step in self.steps for one in step.content if isinstance(one, Reasoning)]
        return "".join(said or (one.text for one in self.content if isinstance(one, Reasoning)))

    @property
    def tools_used(self) -> tuple[str, ...]:
        """Names of the tools that ran and did not fail, each once."""
        return tuple(dict.fromkeys(one.tool_name for one in self.tool_executions if one.status == "ok"))

    @property
    def output(self) -> T:
        """The answer as `output=` asked for it. SchemaValidationError with what is wrong, where the text is none;
        ConfigError where nothing was asked for."""
        if self._output is None:
            raise ConfigError("there is no output: say what it is with generate(output=...)")
        return self._output.read(self.text, self.finish_reason)


def as_generated(turn: TurnResult, output: Output[T] | None) -> Generated[T]:
    """The turn as its caller gets it."""
    return Generated(
        turn.content,
        turn.finish_reason,
        turn.stopped_by,
        turn.usage,
        turn.steps,
        turn.tool_executions,
        turn.messages,
        turn.approvals,
        turn.terminal_call,
        turn.warnings,
        turn.provider_metadata,
        turn.response,
        output,
    )


def as_generated_around(
    answer: GenerateResult, record: TurnRecord, given: Sequence[Message], output: Output[T] | None
) -> Generated[T]:
    """The turn as it left the middlewares around it. record: of its run that the answer comes from.

    Where they changed or refused what the model said, or answered themselves, neither the steps nor the conversation
    tell what it was; what tools did stays.
    """
    turn = record.result
    if turn is not None and _is_answer_of(answer, turn):
        more = tuple(one for one in answer.warnings if one not in turn.warnings)
        return replace(
            as_generated(turn, output),
            finish_reason=answer.finish_reason,
            usage=answer.usage,
            warnings=(*turn.warnings, *more),
            provider_metadata=without_entry(answer.provider_metadata),
            response=answer.response or turn.response,
        )
    content = _last_answer(answer.content)
    approvals: tuple[PendingApproval, ...] = ()
    refused = is_refusal(answer.provider_metadata, answer.finish_reason)
    if refused:
        messages = (*silenced_messages(record.messages or given, given), *messages_of(content))
    else:
        approvals = _still_asked(answer, () if turn is None else turn.approvals)
        messages = (*given, *messages_of(_with_answered_calls(answer.content)))
    by_approval = turn is not None and turn.stopped_by == "approval" and not approvals
    return Generated(
        content,
        answer.finish_reason,
        "answer" if turn is None or by_approval or refused else turn.stopped_by,
        answer.usage,
        tuple(map(silenced, record.steps)),
        tuple(record.tool_executions),
        messages,
        approvals,
        None,
        tuple(answer.warnings),
        without_entry(answer.provider_metadata),
        answer.response,
        output,
    )


def _is_answer_of(answer: GenerateResult, turn: TurnResult) -> bool:
    """Whether an answer is that of a turn, unchanged. Calls may have overtaken text that was held back, and be marked
    as denied."""
    return _compared(answer.content) == _compared(turn.shown)


def _compared(content: Iterable[Content]) -> tuple[list[Content], dict[tuple[str, str], Content]]:
    rest: list[Content] = []
    tools: dict[tuple[str, str], Content] = {}
    for one in content:
        if isinstance(one, ToolCall | ToolResult):
            tools[one.type, one.tool_call_id] = one.replace(provider_metadata=without_entry(one.provider_metadata))
        else:
            rest.append(one)
    return rest, tools


def _last_answer(content: Sequence[Content]) -> tuple[Content, ...]:
    """What stands behind the last result of the turn's tools; all that is said, where nothing is said there."""
    results = (at for at, one in enumerate(content, 1) if isinstance(one, ToolResult) and is_of_a_turn(one))
    last = content[max(results, default=0) :]
    if not any(isinstance(one, Text) for one in last):
        last = [one for one in content if isinstance(one, Text | Reasoning)]
    return tuple(
        one
        for one in last
        if not ((isinstance(one, ToolCall) and is_of_a_turn(one)) or isinstance(one, ToolApprovalRequest))
    )


def _with_answered_calls(content: Sequence[Content]) -> list[Content]:
    """An answer without those of the turn's calls that have neither a result nor somebody to approve them."""
    known = {one.tool_call_id for one in content if isinstance(one, ToolResult | ToolApprovalRequest)}
    return [
        one
        for one in content
        if not (isinstance(one, ToolCall) and is_of_a_turn(one) and one.tool_call_id not in known)
    ]


def _still_asked(answer: GenerateResult, approvals: Iterable[PendingApproval]) -> tuple[PendingApproval, ...]:
    asked = {one.approval_id for one in answer.content if isinstance(one, ToolApprovalRequest)}
    return tuple(one for one in approvals if one.approval_id in asked)
