"""Entries, prompts and conversations for the guard, and what must hold of any history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from neurolink_mw.loop_guard import ConverseMessage, LoopGuardEntry
from neurolink_mw.protocol import (
    AssistantMessage,
    Message,
    TextOutput,
    ToolCallPart,
    ToolMessage,
    ToolOutput,
    ToolResultPart,
)

Dict: TypeAlias = "dict[str, Any]"

# ------------------------------------------------------------------------------------------------------ entries


def task(tokens: int = 100) -> LoopGuardEntry:
    return LoopGuardEntry("other", tokens)


def call(tokens: int = 100) -> LoopGuardEntry:
    return LoopGuardEntry("tool_call", tokens)


def result(tokens: int = 1000, preview: int | None = None) -> LoopGuardEntry:
    return LoopGuardEntry("tool_result", tokens, preview)


def batch(results: int = 1, tokens: int = 1000, preview: int | None = None) -> list[LoopGuardEntry]:
    return [call(), *[result(tokens, preview)] * results]


# ------------------------------------------------------------------------------------------------------ prompts


def asked(*ids: str) -> AssistantMessage:
    return AssistantMessage([ToolCallPart(id, "read", {"path": id}) for id in ids])


def answered(*ids: str, output: ToolOutput | str = "x" * 4000) -> ToolMessage:
    said = TextOutput(output) if isinstance(output, str) else output
    return ToolMessage([ToolResultPart(id, "read", said) for id in ids])


def exchange(*ids: str, output: ToolOutput | str = "x" * 4000) -> list[Message]:
    return [asked(*ids), answered(*ids, output=output)]


def ids_of(messages: Sequence[Message]) -> list[str]:
    """The calls that are still there, in order."""
    return [
        part.tool_call_id
        for message in messages
        if isinstance(message, AssistantMessage)
        for part in message.content
        if isinstance(part, ToolCallPart)
    ]


# ------------------------------------------------------------------------------------------------ conversations


CACHE_POINT = {"cachePoint": {"type": "default"}}
IMAGE = {"image": {"format": "png", "source": {"bytes": b"1"}}}


def says(role: str, *blocks: Dict | str) -> Dict:
    return {"role": role, "content": [{"text": one} if isinstance(one, str) else one for one in blocks]}


def use(id: str) -> Dict:
    return {"toolUse": {"toolUseId": id, "name": "read", "input": {"path": id}}}


def answer(id: str, *content: Dict, status: str = "success") -> Dict:
    return {"toolResult": {"toolUseId": id, "content": list(content) or [{"text": "x" * 4000}], "status": status}}


def steps(*ids: str) -> list[Dict]:
    """An exchange for each id."""
    return [message for id in ids for message in (says("assistant", use(id)), says("user", answer(id)))]


def blocks(message: ConverseMessage, kind: str) -> list[Dict]:
    content = message["content"]
    assert isinstance(content, list)
    return [block[kind] for block in content if kind in block]


def assert_sound(conversation: Sequence[ConverseMessage]) -> None:
    """What Converse asks of a conversation: roles alternate, and each use is answered in the next message, once."""
    roles = [message["role"] for message in conversation]
    assert roles == [("user", "assistant")[index % 2] for index in range(len(roles))]
    for before, after in zip([says("assistant"), *conversation], conversation, strict=False):
        uses = [use["toolUseId"] for use in blocks(before, "toolUse")]
        assert uses == [one["toolUseId"] for one in blocks(after, "toolResult")]
        assert after["content"], "a message without content"
