"""A turn as anybody would write it by hand, over a chain or over closures: the floor of turns.

It checks nothing, guards nothing and keeps no record but the conversation, which is what a turn cannot do without.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias

from neurolink_mw.protocol import (
    AssistantMessage,
    AssistantPart,
    CallOptions,
    Content,
    FinishReason,
    GenerateResult,
    Message,
    Text,
    TextOutput,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolDefinition,
    ToolMessage,
    ToolResultPart,
    user,
)
from neurolink_mw.tools import Tool

from .chains import RESULT, Call
from .measure import Contender

Function: TypeAlias = Callable[..., Awaitable[str]]

QUESTION: Final = "Do I need an umbrella in Oslo?"
CALLS_TOOLS: Final = FinishReason("tool-calls")


async def turn(call: Call, functions: Mapping[str, Function], tools: Sequence[ToolDefinition] | None) -> list[Message]:
    """Ask, run what is called, and ask again until there is an answer. The conversation with that answer."""
    messages: list[Message] = [user(QUESTION)]
    while True:
        answer = await call(CallOptions(tuple(messages), tools=tools))
        messages.append(AssistantMessage(tuple(_part(one) for one in answer.content)))
        calls = [one for one in answer.content if isinstance(one, ToolCall)]
        if not calls:
            return messages
        results = []
        for one in calls:
            output = TextOutput(await functions[one.tool_name](**json.loads(one.input)))
            results.append(ToolResultPart(one.tool_call_id, one.tool_name, output))
        messages.append(ToolMessage(tuple(results)))


def _part(one: Content) -> AssistantPart:
    if isinstance(one, ToolCall):
        return ToolCallPart(one.tool_call_id, one.tool_name, json.loads(one.input))
    assert isinstance(one, Text)
    return TextPart(one.text)


def turns_by_hand(call: Call, tools: Sequence[Tool] = (), *, steps: int = 1) -> Contender:
    """Times such turns; `steps` for a figure of a step."""
    functions: dict[str, Function] = {tool.name: tool.function for tool in tools if tool.function is not None}
    definitions = tuple(tool.definition for tool in tools) or None

    async def run(times: int) -> None:
        for _ in range(times):
            await turn(call, functions, definitions)

    return Contender(run, units=steps)


def calling(tool: Tool, input: Mapping[str, object], id: str = "call-0") -> GenerateResult:
    """An answer that calls a tool."""
    return GenerateResult((ToolCall(id, tool.name, json.dumps(input)),), CALLS_TOOLS)


def script(tool: Tool, inputs: Sequence[Mapping[str, object]]) -> list[GenerateResult]:
    """The answers of one turn: a call for each input, then a text."""
    return [*(calling(tool, input, f"call-{number}") for number, input in enumerate(inputs)), RESULT]
