"""The guard for conversations in the form of Bedrock's Converse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ..protocol.tokens import MESSAGE_TOKENS
from .converse_blocks import Block, blocks_of, estimate_block_tokens, previewed
from .planner import LoopGuardPolicy
from .turn import Piece, TurnGuard

ConverseMessage: TypeAlias = Mapping[str, object]
"""`{"role": "user" | "assistant", "content": [blocks]}`, with bytes where boto3 takes bytes."""


class ConverseGuard(TurnGuard[ConverseMessage]):
    """Keeps the conversation of one turn within the window; make one for each turn.

    The task is everything up to the first user message. What is given is never changed: messages that stay are the
    same objects, and a conversation that fits is the same list. Roles alternate afterwards as they did before: text
    that a user message held beside results that went is added to the user message before it.
    """

    def __init__(self, policy: LoopGuardPolicy, *, factor: float = 1.0) -> None:
        super().__init__(policy, _Conversations(factor))


class _Conversations:
    def __init__(self, factor: float) -> None:
        self._factor = factor

    def head(self, messages: Sequence[ConverseMessage]) -> int:
        return next((index for index, one in enumerate(messages, 1) if one.get("role") == "user"), 1)

    def size(self, message: ConverseMessage) -> int:
        return len(blocks_of(message))

    def pieces(self, message: ConverseMessage) -> tuple[Piece, ...]:
        blocks = blocks_of(message)
        calls, results = _ids(blocks, "toolUse"), _ids(blocks, "toolResult")
        if message.get("role") != "user" or not results:
            tokens = MESSAGE_TOKENS + self._tokens(blocks)
            asks = not set(calls) <= set(results)  # what a server's tool answered itself is no call of ours
            return (Piece("tool_call" if asks else "other", tokens, calls, results),)
        answers = [block for block in blocks if "toolResult" in block]
        others = [block for block in blocks if "toolResult" not in block]
        piece = Piece("tool_result", MESSAGE_TOKENS + self._tokens(answers), calls, results)
        if all("cachePoint" in block for block in others):
            return (piece,)
        return piece, Piece("other", self._tokens(others))

    def preview(self, message: ConverseMessage) -> ConverseMessage:
        blocks = blocks_of(message)
        shorter = [previewed(block) for block in blocks]
        unchanged = all(now is before for now, before in zip(shorter, blocks, strict=True))
        return message if unchanged else {**message, "content": shorter}

    def rest(self, message: ConverseMessage) -> ConverseMessage:
        return {**message, "content": [block for block in blocks_of(message) if "toolResult" not in block]}

    def join(self, runs: Sequence[Sequence[ConverseMessage]]) -> list[ConverseMessage]:
        joined: list[ConverseMessage] = []
        for first, *more in runs:
            if joined and joined[-1].get("role") == first.get("role"):
                joined[-1] = {**joined[-1], "content": [*blocks_of(joined[-1]), *blocks_of(first)]}
            else:
                joined.append(first)
            joined += more
        return joined

    def _tokens(self, blocks: Sequence[Block]) -> int:
        return sum(estimate_block_tokens(block, self._factor) for block in blocks)


def _ids(blocks: Sequence[Block], kind: str) -> tuple[str, ...]:
    bodies = [block[kind] for block in blocks if kind in block]
    return tuple(str(body.get("toolUseId")) for body in bodies if isinstance(body, Mapping))
