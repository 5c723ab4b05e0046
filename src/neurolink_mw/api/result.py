"""What `generate` returns, and `stream` in the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from ..errors import ConfigError
from ..loop import PendingApproval, StepResult, StoppedBy, TurnRecord, TurnResult, messages_of
from ..loop.mark import is_of_a_turn
from ..loop.silence import silenced, silenced_messages
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
        """The reasoning of all steps, joined."""
        return "".join(one.text for step in self.steps for one in step.content if isinstance(one, Reasoning))

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


def as_generated_behind(
    answer: GenerateResult, record: TurnRecord, given: Sequence[Message], output: Output[T] | None
) -> Generated[T]:
    """The turn as it left the middlewares around it. record: of the turn that they had run last.

    Where they took something out of what the model said, or answered themselves, the steps and the conversation do not
    say it either; what tools did stays.
    """
    turn = record.result
    if turn is not None and _words(answer.content) == _words(turn.shown):
        unchanged = as_generated(turn, output)
        return replace(unchanged, finish_reason=answer.finish_reason, provider_metadata=answer.provider_metadata)
    content = _behind_tools(answer.content)
    return Generated(
        content,
        answer.finish_reason,
        "answer" if turn is None else turn.stopped_by,
        record.usage if record.steps else answer.usage,
        tuple(map(silenced, record.steps)),
        tuple(record.tool_executions),
        (*silenced_messages(record.messages or given, given), *messages_of(content)),
        () if turn is None else turn.approvals,
        None,
        tuple(answer.warnings),
        answer.provider_metadata,
        answer.response,
        output,
    )


def _words(content: Iterable[Content]) -> list[tuple[str, str]]:
    return [(one.type, one.text) for one in content if isinstance(one, Text | Reasoning)]


def _behind_tools(content: Sequence[Content]) -> tuple[Content, ...]:
    """The last answer: what stands behind the last result of the turn's tools, without calls that were not answered."""
    results = (at for at, one in enumerate(content, 1) if isinstance(one, ToolResult) and is_of_a_turn(one))
    last = content[max(results, default=0) :]
    return tuple(one for one in last if not (isinstance(one, ToolCall) and is_of_a_turn(one)))
