"""The conversation: what a step's answer and the results of its tools become in the next prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..pipeline.marks import entry, is_of_a_turn, without_entry
from ..protocol import (
    AssistantMessage,
    AssistantPart,
    Content,
    File,
    FilePart,
    GenerateResult,
    Message,
    Reasoning,
    ReasoningPart,
    Text,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolMessage,
    ToolOutput,
    ToolResult,
    ToolResultPart,
    UnknownPart,
)
from ..tools import parsed_or_text
from .mark import output_of


def messages_of(content: Iterable[Content]) -> list[Message]:
    """An answer as messages of the next prompt. What a turn further in ran becomes assistant / tool / assistant again,
    since the model that made those calls must find their results where it expects them. An answer that says nothing
    makes no message: providers refuse an empty one.
    """
    messages: list[Message] = []
    said: list[AssistantPart] = []
    results: list[ToolResultPart] = []
    for one in content:
        if isinstance(one, ToolResult) and is_of_a_turn(one):
            results.append(ToolResultPart(_original_id(one), one.tool_name, output_of(one)))
            continue
        if results:  # what follows was said after them
            messages += [AssistantMessage(said), ToolMessage(results)]
            said, results = [], []
        part = _part(one)
        if part is not None:
            said.append(part)
    if said:
        messages.append(AssistantMessage(said))
    if results:
        messages.append(ToolMessage(results))
    return messages


def with_unique_calls(answer: GenerateResult) -> GenerateResult:
    """The answer with another id for each call that repeats one. Results are known by them, and approvals: two calls of
    one id would be answered as one."""
    calls = answer.tool_calls
    if len({call.tool_call_id for call in calls}) == len(calls):
        return answer
    taken: set[str] = set()
    return answer.replace(
        content=[
            one.replace(tool_call_id=unique(one.tool_call_id, taken)) if isinstance(one, ToolCall) else one
            for one in answer.content
        ]
    )


def unique(id: str, taken: set[str]) -> str:
    """An id that is not taken yet, and is from here on: itself, or with a number."""
    made, number = id, 2
    while made in taken:
        made, number = f"{id}~{number}", number + 1
    taken.add(made)
    return made


def with_calls(answer: GenerateResult, inputs: Mapping[str, str]) -> GenerateResult:
    """The answer with these inputs in its calls, by their ids."""
    content = tuple(
        one.replace(input=inputs[one.tool_call_id])
        if isinstance(one, ToolCall) and inputs.get(one.tool_call_id, one.input) != one.input
        else one
        for one in answer.content
    )
    return answer.replace(content=content)


def tool_message(calls: Sequence[ToolCall], outputs: Sequence[ToolOutput]) -> ToolMessage:
    """The results of a step, in the order of its calls."""
    return ToolMessage(
        tuple(
            ToolResultPart(call.tool_call_id, call.tool_name, output)
            for call, output in zip(calls, outputs, strict=True)
        )
    )


def _part(one: Content) -> AssistantPart | None:
    if isinstance(one, Text):
        if not one.text and one.provider_metadata is None:
            return None
        return TextPart(one.text, without_entry(one.provider_metadata), one.extra)
    if isinstance(one, Reasoning):
        return ReasoningPart(one.text, without_entry(one.provider_metadata), one.extra)
    if isinstance(one, ToolCall):
        own = is_of_a_turn(one)
        return ToolCallPart(
            _original_id(one) if own else one.tool_call_id,
            one.tool_name,
            parsed_or_text(one.input),
            None if own else one.provider_executed,
            without_entry(one.provider_metadata),
            one.extra,
        )
    if isinstance(one, ToolResult):
        if one.preliminary:
            return None
        return ToolResultPart(
            one.tool_call_id, one.tool_name, output_of(one), without_entry(one.provider_metadata), one.extra
        )
    if isinstance(one, File):
        return FilePart(one.media_type, one.data, provider_options=one.provider_metadata, extra=one.extra)
    return one if isinstance(one, UnknownPart) else None  # sources and requests for approval are no part of a prompt


def _original_id(part: ToolCall | ToolResult) -> str:
    id = entry(part.provider_metadata).get("id")
    return id if isinstance(id, str) else part.tool_call_id
