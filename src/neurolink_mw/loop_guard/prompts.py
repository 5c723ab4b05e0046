"""The guard for prompts of the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from ..protocol import (
    PREVIEW_LIMITS,
    AssistantMessage,
    Message,
    ToolApprovalResponsePart,
    ToolCallPart,
    ToolMessage,
    ToolPart,
    ToolResultPart,
    UnknownPart,
    UserMessage,
    estimate_message_tokens,
    excerpt_output,
)
from .planner import LoopGuardPolicy
from .turn import Piece, TurnGuard


class PromptGuard(TurnGuard[Message]):
    """Keeps the prompts of one turn within the window; make one for each turn.

    The task is everything up to the first user message. Messages that stay are the same objects, and a prompt that
    fits is the same tuple. factor: the tokenizer's, see `token_factor`.
    """

    def __init__(self, policy: LoopGuardPolicy, *, factor: float = 1.0) -> None:
        super().__init__(policy, _Prompts(factor))


class _Prompts:
    def __init__(self, factor: float) -> None:
        self._factor = factor

    def head(self, messages: Sequence[Message]) -> int:
        return next((index for index, one in enumerate(messages, 1) if isinstance(one, UserMessage)), 1)

    def size(self, message: Message) -> int:
        return len(message.content)

    def pieces(self, message: Message) -> tuple[Piece, ...]:
        tokens = estimate_message_tokens(message, factor=self._factor)
        if not isinstance(message, AssistantMessage | ToolMessage):
            return (Piece("other", tokens),)
        calls = [part for part in message.content if isinstance(part, ToolCallPart)]
        results = tuple(part.tool_call_id for part in message.content if isinstance(part, ToolResultPart))
        bound = any(_is_bound(part) for part in message.content)
        ids = tuple(call.tool_call_id for call in calls)
        if isinstance(message, AssistantMessage):
            asks = any(not call.provider_executed for call in calls)
            return (Piece("tool_call" if asks else "other", tokens, ids, results, bound),)
        return (Piece("tool_result" if results else "other", tokens, ids, results, bound),)

    def preview(self, message: Message) -> Message:
        if not isinstance(message, ToolMessage):
            return message
        parts = tuple(_previewed(part) for part in message.content)
        unchanged = all(now is before for now, before in zip(parts, message.content, strict=True))
        return message if unchanged else message.replace(content=parts)

    def rest(self, message: Message) -> Message:
        return message  # never asked: every message here is one piece

    def join(self, runs: Sequence[Sequence[Message]]) -> tuple[Message, ...]:
        return tuple(chain.from_iterable(runs))


def _is_bound(part: object) -> bool:
    """An approval names no call, so nothing says which batch it belongs to; newer parts about tools may be the same."""
    return isinstance(part, ToolApprovalResponsePart) or (
        isinstance(part, UnknownPart) and part.type.startswith("tool-")
    )


def _previewed(part: ToolPart) -> ToolPart:
    if not isinstance(part, ToolResultPart):
        return part
    output = excerpt_output(part.output, PREVIEW_LIMITS, files="describe")
    return part if output is part.output else part.replace(output=output)
