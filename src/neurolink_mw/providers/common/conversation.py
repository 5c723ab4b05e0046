"""The messages of a request while they are put together: roles alternate, and calls are paired. Pure.

Converse and Anthropic's API want every call answered exactly once at the beginning of the very next message, which is
the user's. V3 has a message for each, and lets others stand between them. So blocks are added in the prompt's order,
and a result goes to the message after the one that holds its call, wherever it stands in the prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ...protocol import CallWarning
from .error_maker import ErrorMaker

Block: TypeAlias = dict[str, object]


class _Call(NamedTuple):
    order: int
    place: str


class _Message:
    __slots__ = ("answered", "blocks", "calls", "members", "results", "role")

    def __init__(self, role: str, members: Mapping[str, object]) -> None:
        self.role = role
        self.members = members
        self.blocks: list[Block] = []
        self.calls: dict[str, _Call] = {}
        self.answered: set[str] = set()
        self.results: list[tuple[int, list[Block]]] = []

    def native(self) -> Block:
        in_order = sorted(self.results, key=lambda result: result[0])
        content = [*(block for _, some in in_order for block in some), *self.blocks]
        return {"role": self.role, **({"content": content} if content else {}), **self.members}


class Conversation:
    """`add` blocks and results in the prompt's order, then take `messages()`. service: who takes no call without a
    result."""

    def __init__(self, service: str, errors: ErrorMaker, warnings: list[CallWarning]) -> None:
        self._service = service
        self._errors = errors
        self._warnings = warnings
        self._messages: list[_Message] = []

    @property
    def is_empty(self) -> bool:
        return not self._messages

    def add(self, role: str, block: Block) -> list[Block]:
        """A block of the role's message: the last one, where it is of this role, else a new one. Returns the blocks
        that it has become the last of."""
        last = self._messages[-1] if self._messages else None
        if last is None or last.role != role or last.members:
            last = _Message(role, {})
            self._messages.append(last)
        last.blocks.append(block)
        return last.blocks

    def add_message(self, role: str, blocks: list[Block], members: Mapping[str, object]) -> None:
        """A message with members of its own, which is joined with no other."""
        message = _Message(role, members)
        message.blocks.extend(blocks)
        self._messages.append(message)

    def add_call(self, id: str, block: Block, place: str) -> list[Block]:
        """A call that the next message has to answer. id: the one that its result has."""
        blocks = self.add("assistant", block)
        message = self._messages[-1]
        if id in message.calls:
            raise self._errors.refused(f"{place}: a second call with the id of {message.calls[id].place}")
        message.calls[id] = _Call(len(message.calls), place)
        return blocks

    def awaits(self, id: str, place: str) -> bool:
        """Whether the nearest assistant message before holds such a call, not answered yet. A result of none is to be
        left out, and has its warning by this."""
        at = self._asking()
        asking = None if at is None else self._messages[at]
        if asking is not None and id in asking.calls and id not in asking.answered:
            return True
        again = asking is not None and id in asking.calls
        said = "answers a call again" if again else "answers no call of the assistant message before it"
        details = f"{place} {said} and was left out"
        self._warnings.append(CallWarning("unsupported", "tool result without a call", details))
        return False

    def add_result(self, id: str, block: Block) -> list[Block]:
        """The answer to a call that is awaited. Returns the blocks that it is the last of."""
        at = self._asking()
        assert at is not None
        asking = self._messages[at]
        asking.answered.add(id)
        if at + 1 == len(self._messages) or self._messages[at + 1].role != "user":
            self._messages.insert(at + 1, _Message("user", {}))
        self._messages[at + 1].results.append((asking.calls[id].order, blocks := [block]))
        return blocks

    def _asking(self) -> int | None:
        """Where the nearest assistant message is."""
        return next((n for n in reversed(range(len(self._messages))) if self._messages[n].role == "assistant"), None)

    def messages(self) -> list[Block]:
        """The messages. Raises InvalidRequestError that names the place of a call without a result."""
        for message in self._messages:
            for id, call in message.calls.items():
                if id not in message.answered:
                    raise self._errors.refused(
                        f"{call.place}: the tool call has no result, and {self._service} takes no call without one: "
                        "add a tool message that answers it"
                    )
        return [message.native() for message in self._messages]


def begun_with(messages: Sequence[Block], is_result: Callable[[Block], bool]) -> list[Block]:
    """The first blocks of those of the assistant's messages that its next answer goes on with: behind results of tools,
    or a text that was begun for it. is_result: of a block of the user's messages.

    A model that thinks by a budget wants one of them to be a thought.
    """
    first: list[Block] = []
    for message in reversed(messages):
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        if message["role"] == "assistant":
            first += blocks[:1]
        elif message["role"] == "user" and not any(map(is_result, blocks)):
            break
    return first
