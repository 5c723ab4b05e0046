"""Calls of an answer and the results of those that the service ran itself: between native blocks and V3. Pure.

V3 has one shape for all of them, so what a tool said is shown as V3 shows it: its name as the caller gave it, the
members of a result in camelCase, the tools within code execution as one tool with a `type` in its input. `native_call`
and `native_content` are the way back. What that way would lose stays in metadata, and goes back from there:

- on a call `caller`, `toolsetName` and whatever else a block had beside its id, name and input;
- on a result the same, `type` where it is another than the tool's own, and `content` where the shown result does not
  lead back to it;
- on both, for a tool of an MCP server, `type: "mcp-tool-use"` and `serverName`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, cast

from ...protocol import JSON, JSONObject, ToolCall, ToolInputStart, ToolResult
from ...protocol.tokens import json_text
from ..common.readings import AnswerIds, words
from .naming import camel_keys, snake_keys
from .options import KEY

SERVER_TOOL: Final = "server_tool_use"
MCP_TOOL: Final = "mcp_tool_use"
MCP_RESULT: Final = "mcp_tool_result"
SHOWN_MCP: Final = "mcp-tool-use"
_CALLS: Final = frozenset({"tool_use", SERVER_TOOL, MCP_TOOL})

_CODE: Final = "code_execution"
_SUB_TOOLS: Final = frozenset({"bash_code_execution", "text_editor_code_execution"})
_SEARCH_TOOL: Final = "tool_search_tool"
_SEARCH_RESULT: Final = "tool_search_tool_result"
_REFERENCES: Final = "tool_search_tool_search_result"
_RESULT: Final = "_tool_result"
# Their members are shown in camelCase. What a program has put out keeps its names, and so does what is not known here.
_RENAMED: Final = frozenset({"web_search_tool_result", "web_fetch_tool_result", "advisor_tool_result"})
_READ_OF_CALL: Final = frozenset({"type", "id", "name", "input", "server_name"})
_READ_OF_RESULT: Final = frozenset({"type", "tool_use_id", "content"})
_READ_OF_MCP_RESULT: Final = _READ_OF_RESULT | {"is_error"}


class Called(NamedTuple):
    """A call without its input. native_name: of the tool, where the service ran it. sub_tool: the tool within code
    execution, which its input begins with."""

    id: str
    name: str
    native_name: str
    sub_tool: str | None = None
    of_server: bool | None = None
    dynamic: bool | None = None
    metadata: JSONObject | None = None

    def start(self) -> ToolInputStart:
        return ToolInputStart(self.id, self.name, self.of_server, self.dynamic)

    def call(self, input: str) -> ToolCall:
        return ToolCall(self.id, self.name, input, self.of_server, self.dynamic, self.metadata)

    def input_text(self, input: object) -> str:
        """The input of a block as JSON text; "" for none, and for an empty object, which stands where none came."""
        if isinstance(input, str):
            return input
        if not isinstance(input, Mapping) or not input:
            return "" if input is None or input == {} else json_text(input)
        return json_text(input if self.sub_tool is None else {"type": self.sub_tool, **input})

    def no_input(self) -> str:
        """The JSON text of an input without members."""
        return "{}" if self.sub_tool is None else json_text({"type": self.sub_tool})


class ToolReader:
    """Reads the calls and results of one answer. tool_names: native names to the caller's."""

    def __init__(self, tool_names: Mapping[str, str], ids: AnswerIds) -> None:
        self._tool_names = tool_names
        self._ids = ids
        self._calls: dict[str, Called] = {}

    def call(self, block: Mapping[str, object]) -> Called | None:
        """The call that a block makes, of those that `is_call` takes; None where it names no tool."""
        name = words(block.get("name"))
        if name is None:
            return None
        kind = block["type"]
        native_id = words(block.get("id")) or f"call-{len(self._calls)}"
        id = self._ids.take(native_id)
        own = _others(block, _READ_OF_CALL)
        if kind == MCP_TOOL:
            server = words(block.get("server_name"))
            own = {"type": SHOWN_MCP, **({} if server is None else {"serverName": server}), **own}
            called = Called(id, name, name, None, True, True, {KEY: own})
        elif kind == SERVER_TOOL:
            sub_tool = name if name in _SUB_TOOLS else None
            called = Called(id, self._shown(name), name, sub_tool, True, metadata=_metadata(own))
        else:
            called = Called(id, self._tool_names.get(name, name), name, metadata=_metadata(own))
        self._calls[native_id] = called
        return called

    def result(self, block: Mapping[str, object]) -> ToolResult:
        """What a tool that the service ran said. Its call may be in an earlier answer: that of a turn that paused."""
        kind = cast(str, block["type"])
        native_id = words(block.get("tool_use_id")) or ""
        called = self._calls.get(native_id)
        id = native_id if called is None else called.id
        content = cast(JSON, block.get("content"))
        is_error = block.get("is_error")
        if kind == MCP_RESULT:
            own = _others(block, _READ_OF_MCP_RESULT)
            server = ((called.metadata or {}).get(KEY) if called is not None else None) or {"type": SHOWN_MCP}
            own = {**cast(JSONObject, server), **own}
            name = "mcp" if called is None else called.name
            error = is_error if isinstance(is_error, bool) else None
            return ToolResult(id, name, content, error, dynamic=True, provider_metadata={KEY: own})
        own = _others(block, _READ_OF_RESULT)
        shown = _shown_content(kind, content)
        if native_content(kind, shown) != content:
            own["content"] = content
        if called is None or result_type(called.native_name) != kind:
            own["type"] = kind
        name = self._shown(_name_of_result(kind)) if called is None else called.name
        failed = _is_error(content) or is_error is True
        return ToolResult(id, name, shown, failed or None, provider_metadata=_metadata(own))

    def _shown(self, native_name: str) -> str:
        family = _CODE if native_name in _SUB_TOOLS else native_name
        return self._tool_names.get(native_name) or self._tool_names.get(family, family)


def is_call(kind: object) -> bool:
    """Whether blocks of this type are calls, whoever runs them."""
    return isinstance(kind, str) and kind in _CALLS


def is_result(kind: object) -> bool:
    """Whether blocks of this type are results of a tool that the service ran."""
    return isinstance(kind, str) and kind.endswith(_RESULT)


def result_type(native_name: str) -> str:
    """The type of the block in which the result of a server tool comes."""
    return _SEARCH_RESULT if native_name.startswith(_SEARCH_TOOL) else f"{native_name}{_RESULT}"


def native_call(native_name: str, input: JSON) -> tuple[str, JSON]:
    """The native name and input of a server tool's call, from the name that the caller's tool has there and the input
    that was shown."""
    if native_name == _CODE and isinstance(input, Mapping) and input.get("type") in _SUB_TOOLS:
        return cast(str, input["type"]), {name: item for name, item in input.items() if name != "type"}
    return native_name, input


def native_content(kind: str, shown: JSON) -> JSON:
    """The content of a result block of this type, from the result that was shown."""
    if kind == _SEARCH_RESULT and isinstance(shown, list | tuple):
        return {"type": _REFERENCES, "tool_references": snake_keys(shown)}
    if kind in _RENAMED or kind == _SEARCH_RESULT or (isinstance(shown, Mapping) and "errorCode" in shown):
        return snake_keys(shown)
    return shown


def _shown_content(kind: str, content: JSON) -> JSON:
    if kind in _RENAMED or _is_error(content):
        return camel_keys(content)
    if kind == _SEARCH_RESULT and isinstance(content, Mapping) and content.get("type") == _REFERENCES:
        return camel_keys(content.get("tool_references"))
    return content


def _is_error(content: JSON) -> bool:
    return isinstance(content, Mapping) and str(content.get("type")).endswith(f"{_RESULT}_error")


def _name_of_result(kind: str) -> str:
    return kind.removesuffix(_RESULT)


def _others(block: Mapping[str, object], read: frozenset[str]) -> dict[str, JSON]:
    """What a block says beside that, in camelCase."""
    rest = {name: item for name, item in block.items() if name not in read and item is not None}
    return dict(cast(JSONObject, camel_keys(rest)))


def _metadata(own: JSONObject) -> JSONObject | None:
    return {KEY: own} if own else None
