"""Calls that a conversation left open: they waited for an approval, and the prompt brings it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pydantic_core

from ..protocol import (
    AssistantMessage,
    ErrorTextOutput,
    ExecutionDenied,
    Message,
    ToolApprovalResponsePart,
    ToolCall,
    ToolCallPart,
    ToolMessage,
    ToolOutcome,
    ToolOutput,
    ToolPart,
    ToolResultPart,
)
from ..tools import approved_call_id

_NEVER_RUN = ToolOutcome(ErrorTextOutput("The call was never run: nobody approved it."), "cancelled")


@dataclass(frozen=True)
class Pending:
    """The newest calls of a conversation, where some have no result. at: the message that made them. calls: the open
    ones. answers: what was said to them, by their ids."""

    at: int
    order: tuple[str, ...]
    calls: tuple[ToolCall, ...]
    answers: Mapping[str, ToolApprovalResponsePart]

    def of_tools(self, names: Collection[str]) -> Pending | None:
        """The same for the calls of these tools alone; None where none of them is open."""
        calls = tuple(call for call in self.calls if call.tool_name in names)
        return replace(self, calls=calls) if calls else None

    def refusal(self, call: ToolCall) -> ToolOutcome | None:
        """What a call is answered with that nobody approved; None for one that may run."""
        answer = self.answers.get(call.tool_call_id)
        if answer is None:
            return _NEVER_RUN
        return None if answer.approved else ToolOutcome(ExecutionDenied(answer.reason), "denied")

    def answered(
        self, messages: Sequence[Message], calls: Sequence[ToolCall], outputs: Sequence[ToolOutput]
    ) -> tuple[Message, ...]:
        """The conversation with results for these calls: one message behind the one that made them, in its order."""
        results = {
            call.tool_call_id: ToolResultPart(call.tool_call_id, call.tool_name, output)
            for call, output in zip(calls, outputs, strict=True)
        }
        others: list[ToolPart] = []
        rest: list[Message] = []
        for message in messages[self.at + 1 :]:
            if not isinstance(message, ToolMessage):
                rest.append(message)
                continue
            for part in message.content:
                if isinstance(part, ToolResultPart) and part.tool_call_id in self.order:
                    results.setdefault(part.tool_call_id, part)
                else:
                    others.append(part)
        ordered = [results[id] for id in self.order if id in results]
        return (*messages[: self.at + 1], ToolMessage((*ordered, *others)), *rest)


def without_answers(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The conversation without what was said to approvals of ours: that has done its work, or came too late, and no
    provider knows of it."""
    kept = (_without_answers(one) if isinstance(one, ToolMessage) else one for one in messages)
    return tuple(message for message in kept if message is not None)


def _without_answers(message: ToolMessage) -> ToolMessage | None:
    kept = tuple(
        part
        for part in message.content
        if not isinstance(part, ToolApprovalResponsePart) or approved_call_id(part.approval_id) is None
    )
    if len(kept) == len(message.content):
        return message
    return message.replace(content=kept) if kept else None


def find_pending(messages: Sequence[Message]) -> Pending | None:
    """The open calls of the newest message with calls; None where all have results."""
    for at in reversed(range(len(messages))):
        message = messages[at]
        if not isinstance(message, AssistantMessage):
            continue
        calls = [part for part in message.content if isinstance(part, ToolCallPart) and not part.provider_executed]
        if calls:
            return _pending(messages, at, calls)
    return None


def _pending(messages: Sequence[Message], at: int, calls: Sequence[ToolCallPart]) -> Pending | None:
    parts = [part for one in messages[at + 1 :] if isinstance(one, ToolMessage) for part in one.content]
    done = {part.tool_call_id for part in parts if isinstance(part, ToolResultPart)}
    still_open = [call for call in calls if call.tool_call_id not in done]
    if not still_open:
        return None
    answers: dict[str, ToolApprovalResponsePart] = {}
    for said in parts:
        id = approved_call_id(said.approval_id) if isinstance(said, ToolApprovalResponsePart) else None
        if (
            isinstance(said, ToolApprovalResponsePart)
            and id is not None
            and (id not in answers or answers[id].approved)
        ):
            answers[id] = said  # a no stands, whatever else was said
    return Pending(at, tuple(call.tool_call_id for call in calls), tuple(map(_as_call, still_open)), answers)


def _as_call(part: ToolCallPart) -> ToolCall:
    text = part.input if isinstance(part.input, str) else pydantic_core.to_json(part.input).decode()
    return ToolCall(part.tool_call_id, part.tool_name, text, provider_metadata=part.provider_options)
