"""Turns that are generated and turns that are streamed, with the same questions put to both."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pytest

from neurolink_mw import Tool, tool
from neurolink_mw.loop import TurnResult, run_generate_loop, run_stream_loop
from neurolink_mw.protocol import (
    AssistantMessage,
    CallOptions,
    Content,
    ErrorPart,
    FinishReason,
    GenerateResult,
    InputTokens,
    LanguageModel,
    Message,
    OutputTokens,
    Text,
    ToolCall,
    ToolCallPart,
    ToolMessage,
    ToolResultPart,
    Usage,
    collect,
)
from neurolink_mw.testing import ScriptedModel, check_stream

ASKED = CallOptions.from_text("What is the weather?")
COST = Usage(InputTokens(10, 10, 0, 0), OutputTokens(2, 2, 0))

Drive: TypeAlias = Callable[..., Awaitable[TurnResult]]


async def generated(
    model: LanguageModel, options: CallOptions = ASKED, *, tools: Sequence[Tool] = (), **settings: Any
) -> TurnResult:
    return await run_generate_loop(model, options, tools=tools, **settings)


async def streamed(
    model: LanguageModel, options: CallOptions = ASKED, *, tools: Sequence[Tool] = (), **settings: Any
) -> TurnResult:
    """The turn as a stream. Its parts have to be well-formed and to add up to what the turn shows."""
    turn = await run_stream_loop(model, options, tools=tools, **settings)
    parts = [part async for part in turn.stream]
    check_stream(parts)
    for part in parts:
        if isinstance(part, ErrorPart):
            assert isinstance(part.error, BaseException)
            raise part.error
    assert tuple(collect(parts).content) == turn.result.shown
    return turn.result


both_ways = pytest.mark.parametrize("drive", [generated, streamed])


def call(id: str = "c1", name: str = "look", /, **given: object) -> ToolCall:
    return ToolCall(id, name, json.dumps(given))


def says(*content: Content | str, reason: str | None = None, usage: Usage = COST) -> GenerateResult:
    """An answer. It ends with `tool-calls` where it has calls, unless `reason` says otherwise."""
    made = tuple(Text(one) if isinstance(one, str) else one for one in content)
    usual = "tool-calls" if any(isinstance(one, ToolCall) for one in made) else "stop"
    return GenerateResult(made, FinishReason(reason or usual), usage)


def script(*replies: Any) -> ScriptedModel:
    return ScriptedModel(replies)


@tool
async def look(at: str = "sky") -> str:
    """Look at something."""
    return f"saw {at}"


def working(name: str, work: Callable[..., object], **settings: Any) -> Tool:
    """A tool that takes anything."""
    return Tool(name=name, input_schema={"type": "object"}, execute=work, **settings)


def sent(model: ScriptedModel, step: int) -> CallOptions:
    return model.calls[step].options


def outputs(messages: Sequence[Message]) -> Mapping[str, tuple[str, object]]:
    """The results of a conversation by the ids of their calls: what kind, and what they say."""
    return {
        part.tool_call_id: (part.output.type, getattr(part.output, "value", getattr(part.output, "reason", None)))
        for message in messages
        if isinstance(message, ToolMessage)
        for part in message.content
        if isinstance(part, ToolResultPart)
    }


def check_paired(messages: Sequence[Message]) -> None:
    """Each batch of calls has exactly one result each, in order, in the message right behind it."""
    for at, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            assert message.content, "an empty message"
            calls = [
                part.tool_call_id
                for part in message.content
                if isinstance(part, ToolCallPart) and not part.provider_executed
            ]
            if calls:
                behind = messages[at + 1] if at + 1 < len(messages) else None
                assert isinstance(behind, ToolMessage), "calls without results"
                assert len(set(calls)) == len(calls), "two calls of one id"
                assert [part.tool_call_id for part in behind.content if isinstance(part, ToolResultPart)] == calls
        elif isinstance(message, ToolMessage):
            assert isinstance(messages[at - 1], AssistantMessage), "results without calls"
