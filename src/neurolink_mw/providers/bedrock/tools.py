"""V3 to native: tools and the choice among them as `toolConfig`. Pure.

Converse has no choice `none`, and refuses calls and results in a conversation that comes without `toolConfig`. So where
the history holds any, the tools stay, without a choice, and the model is told in words not to call them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ...protocol import CallOptions, CallWarning, FunctionTool, ProviderTool
from ..common.json_values import plain
from ..common.tools import checked_choice, object_schema
from .capabilities import Capabilities
from .errors import ErrorReader
from .json_answer import JsonAnswer
from .native_values import Block
from .options import part_options
from .tool_ids import native_name, native_names

NO_CALLS: Final = "Do not call any tool now. Answer in text."

_SYSTEM_TOOLS: Final = ("bedrock.", "amazon.")


class ToolPlan(NamedTuple):
    """config: `toolConfig`, None where no tools are sent. forbidden: the model is to be told to call none."""

    config: dict[str, object] | None
    forbidden: bool = False

    def with_answer(self, answer: JsonAnswer, *, tools: Sequence[Block]) -> ToolPlan:
        """The plan with the tool that carries a JSON answer behind the others. tools: those that are declared."""
        if answer.tool is None:
            return self
        config = {**(self.config or {}), "tools": [*tools, answer.tool]}
        return ToolPlan(config) if answer.choice is None else ToolPlan({**config, "toolChoice": answer.choice})


def native_tools(
    options: CallOptions, capabilities: Capabilities, errors: ErrorReader, warnings: list[CallWarning]
) -> list[Block]:
    """The tools of a call that Converse has a form for, each followed by its cache point.

    Raises InvalidRequestError where two names are one here.
    """
    declared = options.tools or ()
    native_names(declared, errors)
    tools: list[Block] = []
    for index, tool in enumerate(declared):
        place = f"tools[{index}]"
        if isinstance(tool, FunctionTool):
            tools.append(_tool_spec(tool, place, capabilities, errors, warnings))
            point = part_options(tool.provider_options).get("cachePoint")
            if point is not None:
                if not isinstance(point, Mapping):
                    raise errors.refused(f'{place}: cachePoint is an object such as {{"type": "default"}}')
                tools.append({"cachePoint": plain(point, place, errors)})
        elif isinstance(tool, ProviderTool) and tool.id.startswith(_SYSTEM_TOOLS):
            tools.append({"systemTool": {"name": tool.id.partition(".")[2]}})
        else:
            feature = f"tool {tool.id}" if isinstance(tool, ProviderTool) else f"tool of type {tool.type}"
            warnings.append(CallWarning("unsupported", feature, f"{place} was left out: Converse does not have it"))
    if any(isinstance(tool, FunctionTool) and tool.input_examples for tool in declared):
        details = "left out: the middleware add_tool_input_examples writes them into the tools' descriptions"
        warnings.append(CallWarning("unsupported", "inputExamples", details))
    return tools


def plan_tools(
    options: CallOptions,
    tools: list[Block],
    messages: Sequence[Mapping[str, object]],
    errors: ErrorReader,
    warnings: list[CallWarning],
    *,
    thinking: bool = False,
) -> ToolPlan:
    """The tools and the choice among them. messages: the native conversation. thinking: a choice cannot be forced, and
    is left to the model with a warning. Raises InvalidRequestError for a choice that names no tool."""
    declared = {tool.name for tool in options.tools or () if isinstance(tool, FunctionTool)}
    choice = checked_choice(options.tool_choice, declared.__contains__, errors)
    if not tools:
        return ToolPlan(None)
    if choice is None:
        return ToolPlan({"tools": tools})
    if choice.type == "none":
        forbidden = has_tool_blocks(messages)
        return ToolPlan({"tools": tools} if forbidden else None, forbidden)
    native: dict[str, object] = {"auto": {}}
    if thinking and choice.type != "auto":
        details = f"sent as auto instead of {choice.type}: this model takes no forced choice while it reasons"
        warnings.append(CallWarning("unsupported", "toolChoice", details))
    elif choice.type == "required":
        native = {"any": {}}
    elif choice.type == "tool":
        native = {"tool": {"name": native_name(choice.tool_name or "")}}
    return ToolPlan({"tools": tools, "toolChoice": native})


def has_tool_blocks(messages: Sequence[Mapping[str, object]]) -> bool:
    """Whether a native conversation holds calls or results."""
    return any(
        "toolUse" in block or "toolResult" in block
        for message in messages
        if isinstance(content := message.get("content"), list)
        for block in content
    )


def with_no_calls(messages: list[dict[str, object]]) -> list[dict[str, object]]:
    """The conversation with a text at the end of the last user message that asks for no calls."""
    last = max((n for n, message in enumerate(messages) if message["role"] == "user"), default=None)
    if last is None:
        return messages
    content = messages[last]["content"]
    assert isinstance(content, list)
    asked = {**messages[last], "content": [*content, {"text": NO_CALLS}]}
    return [*messages[:last], asked, *messages[last + 1 :]]


def _tool_spec(
    tool: FunctionTool, place: str, capabilities: Capabilities, errors: ErrorReader, warnings: list[CallWarning]
) -> Block:
    spec: dict[str, object] = {"name": native_name(tool.name)}
    if tool.description is not None and tool.description.strip():
        spec["description"] = tool.description
    spec["inputSchema"] = {"json": object_schema(tool.input_schema, f"{place}.input_schema", errors)}
    if tool.strict is not None:
        if capabilities.strict:
            spec["strict"] = tool.strict
        elif tool.strict:
            details = f"{place} was sent without it: this model does not take it"
            warnings.append(CallWarning("unsupported", "strict", details))
    return {"toolSpec": spec}
