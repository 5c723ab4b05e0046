"""Names and ids of tools in the spelling that the API takes, and the caller's names for the provider's tools. Pure.

A name is 1 to 128 of `[a-zA-Z0-9_-]`, an id any number of them. What fits stays as it is. An id that does not, such as
another provider's, is derived from a digest, so that it becomes the same one in every request.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

from ...protocol import FunctionTool, ProviderTool, ToolDefinition
from .errors import ErrorReader
from .provider_tools import SERVER_TOOLS, native_tool_name, native_type

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_OTHERS = re.compile(r"[^a-zA-Z0-9_-]+")
_LONGEST_NAME = 128


def native_id(id: str) -> str:
    """The native id of a call; the same each time."""
    if _ID.fullmatch(id):
        return id
    digest = hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{_OTHERS.sub('', id)[:47]}-{digest[:16]}"


def native_name(name: str) -> str:
    """A tool's name with what the API does not take left out; `tool` where nothing is left."""
    return _OTHERS.sub("", name)[:_LONGEST_NAME] or "tool"


class ToolNames:
    """The names of one call's tools. Raises InvalidRequestError where two would be one."""

    __slots__ = ("_by_caller", "_by_native")

    def __init__(self, tools: Iterable[ToolDefinition], errors: ErrorReader) -> None:
        self._by_caller: dict[str, str] = {}
        self._by_native: dict[str, str] = {}
        for index, tool in enumerate(tools):
            native = _declared(tool)
            if native is None or not isinstance(tool, FunctionTool | ProviderTool):
                continue
            if native in self._by_native:
                raise errors.refused(
                    f"tools[{index}]: {tool.name!r} and {self._by_native[native]!r} are both {native!r} here: rename "
                    "one; a tool that the provider defines has the provider's name, and a name is up to 128 letters, "
                    "digits, underscores and hyphens"
                )
            self._by_native[native] = tool.name
            self._by_caller.setdefault(tool.name, native)

    def native(self, name: str) -> str:
        """The native name for a name of the caller's, declared or not."""
        return self._by_caller.get(name) or native_name(name)

    def server(self, name: str) -> str | None:
        """The native name of a tool that the API runs itself; None where it is none that is known."""
        native = self._by_caller.get(name, name)
        return native if native in SERVER_TOOLS else None

    def takes(self, name: str) -> bool:
        """Whether one of the tools has this name, here or with the caller."""
        return name in self._by_native or name in self._by_caller

    def renamed(self) -> Mapping[str, str]:
        """The caller's names by the native ones, where they differ."""
        return {native: name for native, name in self._by_native.items() if native != name}


def _declared(tool: ToolDefinition) -> str | None:
    if isinstance(tool, FunctionTool):
        return native_name(tool.name)
    kind = native_type(tool.id) if isinstance(tool, ProviderTool) else None
    return None if kind is None else native_tool_name(kind)
