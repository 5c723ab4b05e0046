"""V3 to native: marks of the prompt cache. Pure.

A mark on a block has everything before it cached. The API takes four of them in a request; they are counted over the
system blocks, then the messages, then the tools, and those beyond are left out with a warning that names where they
were. Automatic caching (`cacheControl` on the call) is one of the four.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...protocol import CallWarning
from ..common.json_values import plain
from ..common.prompt import some
from .errors import ErrorReader
from .native_values import Block
from .options import part_options

MOST_MARKS: Final = 4
UNCACHEABLE: Final = frozenset({"fallback", "mcp_tool_listing", "redacted_thinking", "thinking"})
"""Types of blocks that have no member `cache_control`."""


class CacheMarks:
    """The marks of one request, counted. `tell` when all of them are set."""

    __slots__ = ("_beyond", "_errors", "_left", "_misplaced")

    def __init__(self, errors: ErrorReader, *, automatic: bool = False) -> None:
        self._errors = errors
        self._left = MOST_MARKS - automatic
        self._beyond: list[str] = []
        self._misplaced: list[str] = []

    def set_on(self, block: Block, place: str, *said: Mapping[str, object] | None) -> None:
        """Mark a block as the first of these provider options says that says anything; one mark is enough for it.

        A native block of the caller's may have one already, which is counted like the others.
        """
        given = block.pop("cache_control", None)
        if isinstance(given, dict):
            self._put(block, given, place)
            return
        for provider_options in said:
            control = self._wanted(provider_options, place)
            if control is not None:
                self._put(block, control, place)
                return

    def set_on_last(self, blocks: Sequence[Block], place: str, said: Mapping[str, object] | None) -> None:
        """Mark the last of a message's blocks that can be. One that is marked already is enough."""
        control = self._wanted(said, place)
        if control is None:
            return
        last = next((block for block in reversed(blocks) if block.get("type") not in UNCACHEABLE), None)
        if last is None:
            self._misplaced.append(place)
        elif "cache_control" not in last:
            self._put(last, control, place)

    def tell(self, warnings: list[CallWarning]) -> None:
        if self._misplaced:
            details = f"{some(self._misplaced)}: there is no block that the API caches up to; the mark was left out"
            warnings.append(CallWarning("unsupported", "cache_control on non-cacheable context", details))
        if self._beyond:
            details = f"{some(self._beyond)}: left out, since a request has at most {MOST_MARKS} of these marks"
            warnings.append(CallWarning("unsupported", "cacheControl breakpoint limit", details))

    def _wanted(self, provider_options: Mapping[str, object] | None, place: str) -> Block | None:
        own = part_options(provider_options)
        control = own.get("cacheControl", own.get("cache_control"))
        if control is None:
            return None
        native = plain(control, place, self._errors)
        if not isinstance(native, dict):
            raise self._errors.refused(f'{place}: cacheControl is an object such as {{"type": "ephemeral"}}')
        return native

    def _put(self, block: Block, control: Block, place: str) -> None:
        if block.get("type") in UNCACHEABLE:
            self._misplaced.append(place)
        elif self._left:
            self._left -= 1
            block["cache_control"] = control
        else:
            self._beyond.append(place)
