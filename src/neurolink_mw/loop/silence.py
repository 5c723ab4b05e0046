"""A turn without what the model said in it, for where that may not be told: somebody around the turn judges it, and
has not."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..protocol import AssistantMessage, AssistantPart, Message, ToolCallPart, ToolMessage, ToolResultPart
from .step import StepResult


def silenced(step: StepResult) -> StepResult:
    """A step without its words and files. What it called and cost stays."""
    return step.replace(content=(), text="", response=None, provider_metadata=None)


def silenced_messages(messages: Sequence[Message], given: Sequence[Message]) -> tuple[Message, ...]:
    """A conversation that holds tool calls with their results only, beside the messages that were given."""
    known = set(map(id, given))
    parts = [part for message in messages if isinstance(message, ToolMessage) for part in message.content]
    answered = {part.tool_call_id for part in parts if isinstance(part, ToolResultPart)}
    kept = (message if id(message) in known else _calls_only(message, answered) for message in messages)
    return tuple(message for message in kept if message is not None)


def _calls_only(message: Message, answered: Collection[str]) -> Message | None:
    if not isinstance(message, AssistantMessage):
        return message
    kept = tuple(part for part in message.content if _is_answered(part, answered))
    return message.replace(content=kept, provider_options=None, extra=None) if kept else None


def _is_answered(part: AssistantPart, answered: Collection[str]) -> bool:
    return isinstance(part, ToolCallPart) and not part.provider_executed and part.tool_call_id in answered
