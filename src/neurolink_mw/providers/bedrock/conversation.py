"""The messages of a Converse request while they are put together, with their cache points. Pure."""

from __future__ import annotations

from ...protocol import CallWarning
from ..common.conversation import Conversation
from .errors import ErrorReader
from .native_values import Block


class ConverseConversation(Conversation):
    """A conversation whose cache points stand behind what they belong to."""

    def __init__(self, errors: ErrorReader, warnings: list[CallWarning]) -> None:
        super().__init__("Converse", errors, warnings)
        self._last: list[Block] = []  # where a cache point after what was added last belongs

    def add(self, role: str, block: Block) -> list[Block]:
        if not is_blank(block):
            self._last = super().add(role, block)
        return self._last

    def awaits(self, id: str, place: str) -> bool:
        self.forget()
        return super().awaits(id, place)

    def add_result(self, id: str, block: Block) -> list[Block]:
        self._last = super().add_result(id, block)
        return self._last

    def add_cache_point(self, block: Block) -> None:
        """A cache point after what was added last. After nothing there is nothing to cache."""
        if self._last:
            self._last.append(block)

    def forget(self) -> None:
        """The next cache point does not belong to what stands before."""
        self._last = []


def is_blank(block: Block) -> bool:
    """Whether it is a text that says nothing, which Converse refuses."""
    return set(block) == {"text"} and isinstance(text := block["text"], str) and not text.strip()
