"""Structured output beside real tools, in Anthropic's shapes. Pure.

The API's own ways are to constrain the text, or to force one tool, which takes the caller's tools away. So where a
model does not take a format beside tools, `final_result` is added to the caller's tools and the choice left on auto:
the model calls what it needs and gives its answer, as that tool's input, when it is done. The texts and names are in
`structured`, which other providers share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...protocol import JSONObject
from ...structured import (
    FINAL_RESULT_DESCRIPTION,
    FINAL_RESULT_INSTRUCTION,
    FINAL_RESULT_TOOL_NAME,
    answer_schema,
    stringify_answer,
    tool_answer_instruction,
)
from .native_values import Block

__all__ = [
    "FINAL_RESULT_INSTRUCTION",
    "FINAL_RESULT_TOOL_NAME",
    "ToolsWithAnswer",
    "append_final_result_instruction",
    "append_final_result_tool",
    "append_tool_answer_instruction",
    "build_final_result_tool",
    "stringify_final_result_input",
    "tool_answer_instruction",
]


class ToolsWithAnswer(NamedTuple):
    """tools: with `final_result` at the end where it was applied, else as they were given."""

    tools: list[Block] | None
    applied: bool


def build_final_result_tool(schema: JSONObject | bool) -> Block:
    """The tool `final_result`, whose input fits the schema: self-contained, with an object at its root.

    Another root is put under the key that `structured.answer_schema` tells. Raises ConfigError for what is no schema.
    """
    return {
        "name": FINAL_RESULT_TOOL_NAME,
        "description": FINAL_RESULT_DESCRIPTION,
        "input_schema": dict(answer_schema(schema).schema),
    }


def append_final_result_tool(
    tools: Sequence[Mapping[str, object]] | None, schema: JSONObject | bool
) -> ToolsWithAnswer:
    """A new list with `final_result` behind the tools. It is not applied, and the tools stay as they are, where there
    are none to preserve or one of them has that name: hiding a tool of the caller's would break its turn."""
    given = None if tools is None else [dict(tool) for tool in tools]
    if not given or any(tool.get("name") == FINAL_RESULT_TOOL_NAME for tool in given):
        return ToolsWithAnswer(given, False)
    return ToolsWithAnswer([*given, build_final_result_tool(schema)], True)


def append_tool_answer_instruction(system: str | Sequence[Mapping[str, object]] | None, name: str) -> str | list[Block]:
    """The system value with the instruction to answer through the tool `name`.

    A string gets it after a blank line. Blocks get a new one at the end: none is edited, since one that carries
    `cache_control` ends a cached prefix, which would be lost with every turn. Without a system it stands alone.
    """
    instruction = tool_answer_instruction(name)
    if system is None or isinstance(system, str):
        return f"{system}{instruction}" if system and system.strip() else instruction.strip()
    return [*(dict(block) for block in system), {"type": "text", "text": instruction.strip()}]


def append_final_result_instruction(system: str | Sequence[Mapping[str, object]] | None) -> str | list[Block]:
    """The system value with the instruction to answer through `final_result`."""
    return append_tool_answer_instruction(system, FINAL_RESULT_TOOL_NAME)


def stringify_final_result_input(text: str) -> str:
    """The answer as canonical JSON text, from the input of `final_result` as it was streamed. What does not parse, such
    as an answer that was cut, stays as it is, so that it can still be repaired."""
    return stringify_answer(text)
