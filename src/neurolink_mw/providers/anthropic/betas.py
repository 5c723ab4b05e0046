"""Which names of the header `anthropic-beta` a request needs, read off its body. Pure.

A beta is asked for only where what needs it is in the SDK's `types.beta` and not in its stable `types`: gateways and
other clouds refuse names that they do not know. The names are those of the SDK's AnthropicBetaParam; which feature has
which is in the pages of the features at platform.claude.com. `speed` is the exception: it is in the stable types, which
say themselves that some models want its beta.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

MEMBERS: Final[Mapping[str, str]] = {
    "billing_policy": "user-profiles-billing-2026-10-01",
    "compaction": "compact-2026-09-04",
    "context_management": "context-management-2025-06-27",
    "fallback_credit_token": "fallback-credit-2026-07-01",
    "fallbacks": "server-side-fallback-2026-07-01",
    "mcp_servers": "mcp-client-2025-04-04",
    "speed": "fast-mode-2026-02-01",
    "thread": "message-threads-2026-08-12",
}
"""By member of a request."""

TOOLS: Final[Mapping[str, str]] = {
    "advisor_20260301": "advisor-tool-2026-03-01",
    "bash_20241022": "computer-use-2024-10-22",
    "computer_20241022": "computer-use-2024-10-22",
    "computer_20250124": "computer-use-2025-01-24",
    "computer_20251124": "computer-use-2025-11-24",
    "mcp_toolset": "mcp-client-2025-11-20",
    "text_editor_20241022": "computer-use-2024-10-22",
}
"""By type of tool."""

BLOCKS: Final[Mapping[str, str]] = {
    "advisor_tool_result": "advisor-tool-2026-03-01",
    "compaction": "compact-2026-01-12",
    "fallback": "server-side-fallback-2026-07-01",
    "mcp_tool_listing": "mcp-client-2026-09-15",
    "mcp_tool_result": "mcp-client-2025-04-04",
    "mcp_tool_use": "mcp-client-2025-04-04",
    "tool_addition": "mid-conversation-tool-changes-2026-07-01",
    "tool_removal": "mid-conversation-tool-changes-2026-07-01",
}
"""By type of content block."""

SYSTEM_MESSAGES: Final[Mapping[str, str]] = {
    "clear_at": "mid-conversation-system-clear-at-2026-08-21",
    "output_config": "mid-conversation-output-config-2026-07-01",
}
"""By member of a message of the role `system`."""

THINKING: Final[Mapping[str, str]] = {"block_binding": "thinking-binding-controls-2026-08-01"}
OUTPUT_CONFIG: Final[Mapping[str, str]] = {"task_budget": "task-budgets-2026-03-13"}

_COMPACT_EDIT: Final = "compact_20260112"
# Versions of one client: the newest one that is needed stands for those before it.
_MCP: Final = ("mcp-client-2025-04-04", "mcp-client-2025-11-20", "mcp-client-2026-09-15")


def needed_betas(native: Mapping[str, object]) -> set[str]:
    """The betas without which the API would not take this body."""
    needed = {beta for member, beta in MEMBERS.items() if member in native}
    needed.update(_of(native.get("thinking"), THINKING))
    needed.update(_of(native.get("output_config"), OUTPUT_CONFIG))
    thinking = native.get("thinking")
    if isinstance(thinking, Mapping) and thinking.get("display") == "updates":
        needed.add("thinking-display-updates-2026-08-18")
    management = native.get("context_management")
    for edit in _objects(management.get("edits") if isinstance(management, Mapping) else None):
        if edit.get("type") == _COMPACT_EDIT:
            needed.add(BLOCKS["compaction"])
    for tool in _objects(native.get("tools")):
        kind = tool.get("type")
        if isinstance(kind, str) and kind in TOOLS:
            needed.add(TOOLS[kind])
        if kind == "mcp_toolset" and "tools" in tool:
            needed.add(BLOCKS["mcp_tool_listing"])
    for message in _objects(native.get("messages")):
        if message.get("role") == "system":
            needed.update(_of(message, SYSTEM_MESSAGES))
        for block in _objects(message.get("content")):
            kind = block.get("type")
            if isinstance(kind, str) and kind in BLOCKS:
                needed.add(BLOCKS[kind])
            if kind == "compaction" and ("signature" in block or "tool_changes" in block):
                needed.add(MEMBERS["compaction"])
    needed.difference_update([version for version in _MCP if version in needed][:-1])
    return needed


def _of(item: object, table: Mapping[str, str]) -> Iterator[str]:
    return (table[name] for name in item if name in table) if isinstance(item, Mapping) else iter(())


def _objects(items: object) -> list[Mapping[str, object]]:
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
