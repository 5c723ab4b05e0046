"""The conversation: what a step's answer and the results of its tools become in the next prompt."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ..protocol import (
    AssistantMessage,
    AssistantPart,
    Content,
    File,
    FilePart,
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
from .mark import entry, is_of_a_turn, output_of, without_entry


def messages_of(content: Iterable[Content], *, without_calls: Collection[str] = ()) -> list[Message]:
    """An answer as messages of the next prompt. What a turn further in ran becomes assistant / tool / assistant again,
    since the model that made those calls must find their results where it expects them.

    without_calls: ids of calls that are left out, since nothing will answer them. An answer that says nothing makes no
    message: providers refuse an empty one.
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
        if part is not None and not (isinstance(one, ToolCall) and one.tool_call_id in without_calls):
            said.append(part)
    if said:
        messages.append(AssistantMessage(said))
    if results:
        messages.append(ToolMessage(results))
    return messages


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
