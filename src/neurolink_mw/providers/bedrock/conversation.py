"""The messages of a Converse request while they are put together: roles alternate, and calls are paired. Pure.

Converse wants every tool use answered exactly once at the beginning of the very next message, which is the user's. V3
has a message for each, and lets others stand between them. So blocks are added in the prompt's order, and a result goes
to the message after the one that holds its call, wherever it stands in the prompt.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...protocol import CallWarning
from .errors import ErrorReader
from .native_values import Block

_UNANSWERED: Final = "has no result, and Converse takes no call without one: add a tool message that answers it"


class _Call(NamedTuple):
    order: int
    place: str


class _Message:
    __slots__ = ("answered", "blocks", "calls", "results", "role")

    def __init__(self, role: str) -> None:
        self.role = role
        self.blocks: list[Block] = []
        self.calls: dict[str, _Call] = {}
        self.answered: set[str] = set()
        self.results: list[tuple[int, list[Block]]] = []

    def native(self) -> dict[str, object]:
        in_order = sorted(self.results, key=lambda result: result[0])
        return {"role": self.role, "content": [*(block for _, some in in_order for block in some), *self.blocks]}


class Conversation:
    """`add` blocks and results in the prompt's order, then take `messages()`."""

    def __init__(self, errors: ErrorReader, warnings: list[CallWarning]) -> None:
        self._errors = errors
        self._warnings = warnings
        self._messages: list[_Message] = []
        self._last: list[Block] = []  # where a cache point after what was added last belongs

    @property
    def is_empty(self) -> bool:
        return not self._messages

    def add(self, role: str, block: Block) -> None:
        """A block of the role's message: the last one, where it is of this role, else a new one."""
        if not self._messages or self._messages[-1].role != role:
            self._messages.append(_Message(role))
        self._last = self._messages[-1].blocks
        self._last.append(block)

    def add_call(self, id: str, block: Block, place: str) -> None:
        """A call that the next message has to answer. id: the one that its result has."""
        self.add("assistant", block)
        message = self._messages[-1]
        if id in message.calls:
            raise self._errors.refused(f"{place}: a second call with the id of {message.calls[id].place}")
        message.calls[id] = _Call(len(message.calls), place)

    def add_result(self, id: str, block: Block, place: str) -> None:
        """The answer to a call of the nearest assistant message before. One that answers none is left out."""
        at = next((n for n in reversed(range(len(self._messages))) if self._messages[n].role == "assistant"), None)
        asking = None if at is None else self._messages[at]
        call = None if asking is None else asking.calls.get(id)
        if at is None or asking is None or call is None or id in asking.answered:
            said = "answers no call of the assistant message before it" if call is None else "answers a call again"
            details = f"{place} {said} and was left out"
            self._warnings.append(CallWarning("unsupported", "tool result without a call", details))
            self._last = []
            return
        asking.answered.add(id)
        if at + 1 == len(self._messages) or self._messages[at + 1].role != "user":
            self._messages.insert(at + 1, _Message("user"))
        self._last = [block]
        self._messages[at + 1].results.append((call.order, self._last))

    def add_cache_point(self, block: Block) -> None:
        """A cache point after what was added last. After nothing there is nothing to cache."""
        if self._last:
            self._last.append(block)

    def forget(self) -> None:
        """The next cache point does not belong to what stands before."""
        self._last = []

    def messages(self) -> list[dict[str, object]]:
        """The messages. Raises InvalidRequestError that names the place of a call without a result."""
        for message in self._messages:
            for id, call in message.calls.items():
                if id not in message.answered:
                    raise self._errors.refused(f"{call.place}: the tool call {_UNANSWERED}")
        return [message.native() for message in self._messages]
