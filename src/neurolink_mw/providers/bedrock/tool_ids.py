"""Ids and names of tools in the spelling that Converse takes. Pure.

An id is 1 to 64 of `[a-zA-Z0-9_.:-]`, a name 1 to 64 of `[a-zA-Z0-9_-]` (the service model's patterns). Mistral's
models take ids of exactly nine letters or digits and give longer ones themselves. What fits stays as it is; what does
not is derived from a digest, so that the same id becomes the same one in every request and no two become one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

from ...protocol import FunctionTool, ToolDefinition
from .errors import ErrorReader

_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
_SHORT_ID = re.compile(r"[a-zA-Z0-9]{9}")
_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_.:-]+")
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]+")
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class NativeIds:
    """The ids of one request or one answer. short: of nine letters or digits."""

    __slots__ = ("_by_id", "_short", "_taken")

    def __init__(self, short: bool = False) -> None:
        self._short = short
        self._by_id: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, id: str) -> str:
        """The native id of a call; the same each time."""
        known = self._by_id.get(id)
        if known is not None:
            return known
        attempt = 0
        while (native := self._candidate(id, attempt)) in self._taken:
            attempt += 1
        self._by_id[id] = native
        self._taken.add(native)
        return native

    def _candidate(self, id: str, attempt: int) -> str:
        pattern = _SHORT_ID if self._short else _ID
        if not attempt and pattern.fullmatch(id):
            return id
        digest = hashlib.sha256(f"{attempt}/{id}".encode("utf-8", "surrogatepass")).hexdigest()
        if self._short:
            return _in_digits(int(digest, 16), 9)
        return f"{_NOT_IN_IDS.sub('', id)[:47]}-{digest[:16]}"


def native_name(name: str) -> str:
    """A tool's name with what Converse does not take left out; `tool` where nothing is left."""
    return _NOT_IN_NAMES.sub("", name)[:64] or "tool"


def native_names(tools: Iterable[ToolDefinition], errors: ErrorReader) -> dict[str, str]:
    """The declared names by their native ones. Raises InvalidRequestError where two would be one."""
    names: dict[str, str] = {}
    for index, tool in enumerate(tools):
        if isinstance(tool, FunctionTool):
            native = native_name(tool.name)
            if native in names:
                raise errors.refused(
                    f"tools[{index}]: {tool.name!r} and {names[native]!r} are both {native!r} here, where a name is up "
                    "to 64 letters, digits, underscores and hyphens: rename one"
                )
            names[native] = tool.name
    return names


def _in_digits(number: int, length: int) -> str:
    out = []
    for _ in range(length):
        number, digit = divmod(number, len(_DIGITS))
        out.append(_DIGITS[digit])
    return "".join(out)
