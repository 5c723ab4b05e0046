"""A request of Converse taken apart, as far as its rules ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Json = Mapping[str, object]

ROLES: Final = ("user", "assistant", "system")
FORCED_THINKING: Final = ("enabled", "adaptive")


@dataclass(frozen=True)
class Message:
    """One message, with its place among the `messages`."""

    index: int
    role: str
    blocks: tuple[Json, ...]

    def at(self, position: int) -> str:
        return f"messages.{self.index}.content.{position}"

    def of(self, kind: str) -> Iterator[tuple[int, Json]]:
        """The blocks of one kind, each with its position."""
        for position, block in enumerate(self.blocks):
            if kind in block:
                yield position, mapping(block[kind])

    def calls(self) -> list[str]:
        """The ids of the calls that the client has to answer."""
        return [_id(call) for _, call in self.of("toolUse") if not _is_served(call)]

    def served(self) -> list[str]:
        """The ids of the calls that the service has run itself."""
        return [_id(call) for _, call in self.of("toolUse") if _is_served(call)]

    def answered(self) -> list[str]:
        """The ids of the calls that have a result here."""
        return [_id(result) for _, result in self.of("toolResult")]

    def documents(self) -> Iterator[Json]:
        """The documents, those within tool results included."""
        for _, document in self.of("document"):
            yield document
        for _, result in self.of("toolResult"):
            for block in items(result.get("content")):
                if "document" in block:
                    yield mapping(block["document"])


@dataclass(frozen=True)
class Conversation:
    """The parts of a request that its rules are about. `tool_config` is None where there is none. thinks: it is asked
    to; thinks_by_budget: for so many tokens."""

    messages: tuple[Message, ...]
    system: tuple[Json, ...]
    tool_config: Json | None
    tools: tuple[Json, ...]
    tool_choice: Json | None
    thinks: bool
    thinks_by_budget: bool


def conversation_of(body: Json) -> Conversation:
    """Take a request body apart.

    Raises:
        ValueError: a member does not have the form it must have; the message names it.
    """
    config = _optional(body, "toolConfig", "toolConfig")
    extra = _optional(body, "additionalModelRequestFields", "additionalModelRequestFields") or {}
    thinking = mapping(extra.get("thinking")).get("type")
    return Conversation(
        messages=tuple(_message(index, one) for index, one in enumerate(objects(body["messages"], "messages"))),
        system=objects(body.get("system", []), "system"),
        tool_config=config,
        tools=() if config is None else objects(config.get("tools", []), "toolConfig.tools"),
        tool_choice=None if config is None else _optional(config, "toolChoice", "toolConfig.toolChoice"),
        thinks=thinking in FORCED_THINKING,
        thinks_by_budget=thinking == "enabled",
    )


def names(tools: Sequence[Json]) -> list[str]:
    """The names of the tools, in order; a cache point has none."""
    declared = (mapping(tool.get("toolSpec") or tool.get("systemTool")) for tool in tools)
    return [str(tool["name"]) for tool in declared if "name" in tool]


def mapping(value: object) -> Json:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> list[Json]:
    """The objects in the value where it is a list, else none."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def objects(value: object, place: str) -> tuple[Json, ...]:
    """The items of a list of objects.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise ValueError(f"{place} must be a list of objects")
    return tuple(value)


def _message(index: int, message: Json) -> Message:
    role = message.get("role")
    if role not in ROLES:
        raise ValueError(f"messages.{index}.role must be one of {', '.join(ROLES)}")
    return Message(index, str(role), objects(message.get("content", []), f"messages.{index}.content"))


def _optional(owner: Json, name: str, place: str) -> Json | None:
    value = owner.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"{place} must be an object")
    return value


def _id(block: Json) -> str:
    return str(block.get("toolUseId"))


def _is_served(call: Json) -> bool:
    return call.get("type") == "server_tool_use"
