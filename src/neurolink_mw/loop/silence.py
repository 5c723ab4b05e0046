"""A turn without what the model said in it, for where that may not be told: somebody around the turn judges it, and
has not."""

from __future__ import annotations

from collections.abc import Sequence

from ..protocol import AssistantMessage, Message, ReasoningPart, TextPart
from .step import StepResult


def silenced(step: StepResult) -> StepResult:
    """A step without its words. What it called and cost stays."""
    return step.replace(content=(), text="", response=None, provider_metadata=None)


def silenced_messages(messages: Sequence[Message], given: Sequence[Message]) -> tuple[Message, ...]:
    """A conversation that holds tool calls and results only, beside the messages that were given."""
    known = set(map(id, given))
    kept = (message if id(message) in known else _calls_only(message) for message in messages)
    return tuple(message for message in kept if message is not None)


def _calls_only(message: Message) -> Message | None:
    if not isinstance(message, AssistantMessage):
        return message
    kept = tuple(part for part in message.content if not isinstance(part, TextPart | ReasoningPart))
    return message.replace(content=kept) if kept else None
