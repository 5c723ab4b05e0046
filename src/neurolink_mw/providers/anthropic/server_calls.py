"""V3 to native: calls that the API ran itself, and their results, as an earlier answer had them. Pure.

They stand in the assistant's message, each in a block of its kind. `server_tools` says what is in their metadata, and
leads back from what V3 shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from ...protocol import (
    JSON,
    ErrorJsonOutput,
    ErrorTextOutput,
    JSONObject,
    JsonOutput,
    TextOutput,
    ToolCallPart,
    ToolResultPart,
)
from ..common.json_values import plain
from .errors import ErrorReader
from .naming import snake_keys
from .native_values import Block
from .options import part_options
from .server_tools import (
    MCP_RESULT,
    MCP_TOOL,
    SERVER_TOOL,
    SHOWN_MCP,
    is_result,
    native_call,
    native_content,
    result_type,
)
from .tool_names import ToolNames, native_id
from .tool_results import foreign_block

_MCP: Final = frozenset({SHOWN_MCP, MCP_TOOL, MCP_RESULT})


class ServerCalls:
    """The calls of one prompt that the provider ran. unknown: the places of those that this API does not know."""

    def __init__(self, names: ToolNames, errors: ErrorReader) -> None:
        self.unknown: list[str] = []
        self._names = names
        self._errors = errors
        self._kinds: dict[str, str | None] = {}  # of the result, by the call's id; None: the call was left out

    def is_known(self, part: ToolResultPart) -> bool:
        """Whether a result of an assistant message is one of these, and not one of a tool of the caller's."""
        return part.tool_call_id in self._kinds or self._kind_of(part) is not None

    def call(self, part: ToolCallPart, place: str) -> Block | None:
        """The block of a call; None where this API has no such tool."""
        own = part_options(part.provider_options)
        block = foreign_block(part.provider_options, place, self._errors)
        if block is not None:
            self._kinds[part.tool_call_id] = result_type(str(block.get("name", "")))
            return block
        if own.get("type") in _MCP:
            return self._mcp_call(part, own, place)
        name = self._names.server(part.tool_name)
        if name is None:
            self._kinds[part.tool_call_id] = None
            self.unknown.append(place)
            return None
        name, input = native_call(name, self._input(part, place))
        self._kinds[part.tool_call_id] = result_type(name)
        native: Block = {"type": SERVER_TOOL, "id": native_id(part.tool_call_id), "name": name, "input": input}
        return {**native, **self._caller(own, place)}

    def result(self, part: ToolResultPart, place: str) -> Block | None:
        """The block of a result; None where its call was left out."""
        own = part_options(part.provider_options)
        block = foreign_block(part.provider_options, place, self._errors)
        if block is not None:
            return block
        kind = self._kind_of(part) or self._kinds.get(part.tool_call_id)
        if kind is None:
            return None
        shown, failed = self._shown(part, place)
        native: Block = {"type": kind, "tool_use_id": native_id(part.tool_call_id)}
        if kind == MCP_RESULT:
            return {**native, "is_error": failed, "content": self._checked(shown, place, or_text=True)}
        kept = own.get("content")
        content = native_content(kind, shown) if kept is None else plain(kept, place, self._errors)
        return {**native, "content": self._checked(content, place), **self._caller(own, place)}

    def _checked(self, content: object, place: str, *, or_text: bool = False) -> object:
        """Content that can be the service's own."""
        blocks = content if isinstance(content, list) else [content]
        if or_text and isinstance(content, str):
            return content
        if all(isinstance(block, Mapping) and isinstance(block.get("type"), str) for block in blocks):
            return content
        raise self._errors.refused(
            f"{place}.output: what a tool of the provider said goes back as it came: as an object with a type, or a "
            "list of them"
        )

    def _mcp_call(self, part: ToolCallPart, own: JSONObject, place: str) -> Block:
        server = own.get("serverName")
        if not isinstance(server, str):
            raise self._errors.refused(f"{place}: serverName of a call of an MCP server's tool is a string")
        self._kinds[part.tool_call_id] = MCP_RESULT
        input = self._input(part, place)
        named: Block = {"id": native_id(part.tool_call_id), "name": part.tool_name, "server_name": server}
        return {"type": MCP_TOOL, **named, "input": input}

    def _input(self, part: ToolCallPart, place: str) -> JSON:
        input = cast(JSON, plain(part.input, f"{place}.input", self._errors))
        return input if isinstance(input, Mapping) else {"rawInvalidInput": input}

    def _kind_of(self, part: ToolResultPart) -> str | None:
        kind = part_options(part.provider_options).get("type")
        if kind in _MCP:
            return MCP_RESULT
        return kind if isinstance(kind, str) and is_result(kind) else None

    def _caller(self, own: JSONObject, place: str) -> Block:
        caller = own.get("caller")
        if not isinstance(caller, Mapping):
            return {}
        return {"caller": snake_keys(cast(JSON, plain(caller, place, self._errors)))}

    def _shown(self, part: ToolResultPart, place: str) -> tuple[JSON, bool]:
        output = part.output
        if isinstance(output, JsonOutput | ErrorJsonOutput | TextOutput | ErrorTextOutput):
            shown = cast(JSON, plain(output.value, f"{place}.output", self._errors))
            return shown, isinstance(output, ErrorJsonOutput | ErrorTextOutput)
        allowed = "json, error-json, text or error-text"
        raise self._errors.refused(
            f"{place}.output: what a tool of the provider said is sent back as {allowed}, not as {output.type!r}"
        )
