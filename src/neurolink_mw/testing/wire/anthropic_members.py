"""The members that requests of Anthropic's Messages may have, as the types of its SDK (2.14) declare them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Host = Literal["anthropic", "bedrock", "vertex"]
"""Whose address a request goes to: each spells the model, the stream and the betas in its own way."""


class Members(NamedTuple):
    """The names an object must have, and those it may have."""

    required: tuple[str, ...]
    optional: tuple[str, ...]


def members(required: str, optional: str = "") -> Members:
    return Members(tuple(required.split()), tuple(optional.split()))


SAMPLING: Final = ("temperature", "top_k", "top_p")
"""The SDK's types have these no more; the API takes them."""

REQUEST: Final = members(
    "max_tokens messages",
    "billing_policy cache_control compaction container context_management diagnostics fallback_credit_token fallbacks "
    "inference_geo mcp_servers metadata output_config service_tier speed stop_sequences system thinking thread "
    f"tool_choice tools {' '.join(SAMPLING)}",
)

HOSTED: Final[Mapping[Host, Members]] = {
    "anthropic": members("model", "stream"),
    # The SDK puts what is a header elsewhere into the body (`lib/bedrock/_client.py`).
    "bedrock": members("anthropic_version", "anthropic_beta user_profile_id"),
    "vertex": members("anthropic_version", "anthropic_beta stream"),
}
"""What each address adds to `REQUEST`. On Bedrock and Vertex the path names the model."""

BETAS: Final[Mapping[str, tuple[str, ...]]] = {
    "context_management": ("context-management-", "compact-"),
    "mcp_servers": ("mcp-client-",),
}
"""Members that are unknown to the API unless a beta with one of these beginnings is asked for."""

MESSAGE: Final[Mapping[str, Members]] = {
    "user": members("role content"),
    "assistant": members("role content"),
    "system": members("role", "content clear_at output_config"),
}
"""By role. A system message among the others may bring settings alone."""

BLOCKS: Final[Mapping[str, Members]] = {
    "text": members("text", "cache_control citations"),
    "image": members("source", "cache_control transformations"),
    "document": members("source", "cache_control citations context title"),
    "search_result": members("content source title", "cache_control citations"),
    "thinking": members("signature thinking"),
    "redacted_thinking": members("data"),
    "tool_use": members("id input name", "cache_control caller toolset_name"),
    "tool_result": members("tool_use_id", "cache_control content is_error toolset_name"),
    "server_tool_use": members("id input name", "cache_control caller"),
    "web_search_tool_result": members("content tool_use_id", "cache_control caller"),
    "web_fetch_tool_result": members("content tool_use_id", "cache_control caller"),
    "advisor_tool_result": members("content tool_use_id", "cache_control"),
    "code_execution_tool_result": members("content tool_use_id", "cache_control"),
    "bash_code_execution_tool_result": members("content tool_use_id", "cache_control"),
    "text_editor_code_execution_tool_result": members("content tool_use_id", "cache_control"),
    "tool_search_tool_result": members("content tool_use_id", "cache_control"),
    "mcp_tool_use": members("id input name server_name", "cache_control"),
    "mcp_tool_result": members("tool_use_id", "cache_control content is_error"),
    "container_upload": members("file_id", "cache_control"),
    "compaction": members("", "cache_control content encrypted_content signature tool_changes"),
    "tool_addition": members("tool", "cache_control"),
    "tool_removal": members("tool", "cache_control"),
    "mcp_tool_listing": members("mcp_server_name tools"),
    "fallback": members("from to", "trigger"),
}
"""By type, `type` itself left out."""

ROLES: Final[Mapping[str, str]] = {
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_use": "assistant",
    "server_tool_use": "assistant",
    "mcp_tool_use": "assistant",
    "tool_result": "user",
}
"""Kinds of blocks that only one role may say."""

TOOL: Final = members(
    "input_schema name",
    "allowed_callers cache_control defer_loading description eager_input_streaming input_examples strict",
)
"""A tool of the caller's own (`custom`), `type` left out."""

THINKING: Final[Mapping[str, Members]] = {
    "enabled": members("budget_tokens", "block_binding display"),
    "adaptive": members("", "block_binding display"),
    "between_tools": members(""),
    "disabled": members(""),
}
"""By type, `type` itself left out."""

CHOICES: Final[Mapping[str, Members]] = {
    "auto": members("", "disable_parallel_tool_use"),
    "any": members("", "disable_parallel_tool_use"),
    "tool": members("name", "disable_parallel_tool_use"),
    "none": members(""),
}
"""By type, `type` itself left out."""
