"""V3 to native: tools that Anthropic defines, by id. Pure.

An id is `anthropic.` and the type that the API knows the tool by. The API wants each under a name of its own, whatever
the caller calls it: the table is that of ToolUnionParam in the SDK's `types` and `types.beta`. A type that is not in
it is passed on where it ends in a date, since the name is then what stands before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ...protocol import CallWarning, ProviderTool
from ..common.json_values import plain
from .errors import ErrorReader
from .native_values import Block, snaked

PREFIX: Final = "anthropic."

NAMES: Final[Mapping[str, str | None]] = {
    "advisor_20260301": "advisor",
    "bash_20241022": "bash",
    "bash_20250124": "bash",
    "browser_toolset_20260801": None,
    "code_execution_20250522": "code_execution",
    "code_execution_20250825": "code_execution",
    "code_execution_20260120": "code_execution",
    "code_execution_20260521": "code_execution",
    "computer_20241022": "computer",
    "computer_20250124": "computer",
    "computer_20251124": "computer",
    "computer_toolset_20260801": None,
    "mcp_toolset": None,
    "memory_20250818": "memory",
    "text_editor_20241022": "str_replace_editor",
    "text_editor_20250124": "str_replace_editor",
    "text_editor_20250429": "str_replace_based_edit_tool",
    "text_editor_20250728": "str_replace_based_edit_tool",
    "tool_search_tool_bm25": "tool_search_tool_bm25",
    "tool_search_tool_bm25_20251119": "tool_search_tool_bm25",
    "tool_search_tool_regex": "tool_search_tool_regex",
    "tool_search_tool_regex_20251119": "tool_search_tool_regex",
    "web_fetch_20250910": "web_fetch",
    "web_fetch_20260209": "web_fetch",
    "web_fetch_20260309": "web_fetch",
    "web_fetch_20260318": "web_fetch",
    "web_search_20250305": "web_search",
    "web_search_20260209": "web_search",
    "web_search_20260318": "web_search",
}
"""The name of each type; None for a set of tools, which has none."""

SERVER_TOOLS: Final = frozenset(
    {
        *("advisor", "bash_code_execution", "code_execution", "text_editor_code_execution"),
        *("tool_search_tool_bm25", "tool_search_tool_regex", "web_fetch", "web_search"),
    }
)
"""Names of the tools that the API runs itself: those of ServerToolUseBlock."""

_DATED = re.compile(r"(\w+?)_\d{8}")
_SHORT_SEARCH = re.compile(r"tool_search_(?=bm25|regex)")  # as the AI SDK names them


def native_type(id: str) -> str | None:
    """The type of a tool by its id; None where it is none of Anthropic's, or one whose name cannot be told."""
    if not id.startswith(PREFIX):
        return None
    kind = _SHORT_SEARCH.sub("tool_search_tool_", id.removeprefix(PREFIX))
    return kind if kind in NAMES or _DATED.fullmatch(kind) else None


def native_tool_name(kind: str) -> str | None:
    """The name that the API knows a type by; None for a set of tools."""
    if kind in NAMES:
        return NAMES[kind]
    dated = _DATED.fullmatch(kind)
    return None if dated is None or kind.split("_")[-2] == "toolset" else dated[1]


def provider_tool_block(
    tool: ProviderTool, place: str, errors: ErrorReader, warnings: list[CallWarning]
) -> Block | None:
    """The native form of a tool that Anthropic defines; None, with a warning, where it has none."""
    kind = native_type(tool.id)
    if kind is None:
        details = f"{place} was left out: not a tool of Anthropic's that this version knows, by a name of its own"
        warnings.append(CallWarning("unsupported", f"provider-defined tool {tool.id}", details))
        return None
    native: Block = {"type": kind}
    name = native_tool_name(kind)
    if name is not None:
        native["name"] = name
    args = snaked(plain(tool.args, f"{place}.args", errors))
    assert isinstance(args, dict)
    return {**args, **native}
