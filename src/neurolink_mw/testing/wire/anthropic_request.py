"""A request of Anthropic's Messages taken apart, as far as its rules ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from neurolink_mw.testing.wire.anthropic_members import BLOCKS, MESSAGE, Host

Json = Mapping[str, object]

SYSTEM_BLOCKS: Final = frozenset({"text", "tool_addition", "tool_removal"})


class Malformed(ValueError):
    """A member does not have the form it must have. The message is the one the API answers, place included."""


@dataclass(frozen=True)
class Block:
    """One block, with its place, such as `messages.0.content.1`."""

    place: str
    kind: str
    value: Json

    def named(self, name: str) -> str:
        """The place of a member, as the API writes it: `messages.0.content.1.text.citations`."""
        return f"{self.place}.{self.kind}.{name}"

    def inner(self) -> Iterator[Block]:
        """The blocks in the content of a tool's result; a text in their place is no block, and may be empty."""
        content = self.value.get("content")
        if self.kind == "tool_result" and not isinstance(content, str):
            yield from blocks(content, self.named("content"))


@dataclass(frozen=True)
class Message:
    """One message, with its place among the `messages`. A text in place of the blocks is one text block."""

    index: int
    role: str
    blocks: tuple[Block, ...]
    settings: bool = False
    """Whether it brings settings (`output_config`), as a system message may without any content."""


@dataclass(frozen=True)
class Turn:
    """What the API makes of messages of one role in a row: one turn, with the place of its first message."""

    index: int
    role: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Request:
    """The parts of a request that its rules are about."""

    body: Json
    host: Host
    betas: frozenset[str]
    messages: tuple[Message, ...]
    system: tuple[Block, ...]
    tools: tuple[Json, ...]
    tool_choice: Json | None
    thinking: Json | None

    @property
    def thinks(self) -> bool:
        return self.thinking is not None and self.thinking.get("type") in ("enabled", "adaptive")

    def turns(self) -> list[Turn]:
        """The messages of the user and the assistant; consecutive ones of one role are combined."""
        grouped = [list(run) for _, run in groupby(self.messages, key=lambda message: message.role)]
        return [
            Turn(run[0].index, run[0].role, tuple(block for message in run for block in message.blocks))
            for run in grouped
            if run[0].role != "system"
        ]


def request_of(body: Json, *, host: Host = "anthropic", betas: Sequence[str] = ()) -> Request:
    """Take a request body apart.

    Raises:
        Malformed: see there.
    """
    named = body.get("anthropic_beta") if host != "anthropic" else ()
    asked = {*betas, *(str(beta) for beta in _list(named or (), "anthropic_beta"))}
    return Request(
        body=body,
        host=host,
        betas=frozenset(asked),
        messages=tuple(_message(index, one) for index, one in enumerate(_objects(body["messages"], "messages"))),
        system=_system(body.get("system")),
        tools=_objects([] if body.get("tools") is None else body["tools"], "tools"),
        tool_choice=_object(body.get("tool_choice"), "tool_choice"),
        thinking=_object(body.get("thinking"), "thinking"),
    )


def blocks(value: object, place: str) -> tuple[Block, ...]:
    """The blocks of a content, of which None is none.

    Raises:
        Malformed: see there.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        return (Block(place, "text", {"type": "text", "text": value}),)
    return tuple(_block(f"{place}.{position}", one) for position, one in enumerate(_objects(value, place)))


def mapping(value: object) -> Json:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def _block(place: str, value: Json) -> Block:
    kind = value.get("type")
    if not isinstance(kind, str):
        raise Malformed(f"{place}.type: Field required")
    if kind not in BLOCKS:
        known = ", ".join(f"'{name}'" for name in BLOCKS)
        raise Malformed(
            f"{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {known}"
        )
    return Block(place, kind, value)


def _message(index: int, message: Json) -> Message:
    role = message.get("role")
    if role is None:
        raise Malformed(f"messages.{index}.role: Field required")
    if role not in MESSAGE:
        raise Malformed(f'messages: Unexpected role "{role}". Allowed roles are "user", "assistant" or "system".')
    for name in MESSAGE[str(role)].required:
        if name not in message:
            raise Malformed(f"messages.{index}.{name}: Field required")
    known = {*MESSAGE[str(role)].required, *MESSAGE[str(role)].optional}
    for name in message:
        if name not in known:
            raise Malformed(f"messages.{index}.{name}: Extra inputs are not permitted")
    said = blocks(message.get("content"), f"messages.{index}.content")
    for block in said:
        if role == "system" and block.kind not in SYSTEM_BLOCKS:
            raise Malformed(f"{block.place}: `{block.kind}` blocks are not allowed in `system` messages")
    return Message(index, str(role), said, settings=bool(message.get("output_config")))


def _system(value: object) -> tuple[Block, ...]:
    if value is None or isinstance(value, str):
        return ()
    found = blocks(value, "system")
    for block in found:
        if block.kind != "text":
            raise Malformed(f"{block.place}.type: Input should be 'text'")
    return found


def _object(value: object, place: str) -> Json | None:
    if value is not None and not isinstance(value, Mapping):
        raise Malformed(f"{place}: Input should be an object")
    return value


def _list(value: object, place: str) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        raise Malformed(f"{place}: Input should be a valid array")
    return value


def _objects(value: object, place: str) -> tuple[Json, ...]:
    found = _list(value, place)
    for position, item in enumerate(found):
        if not isinstance(item, Mapping):
            raise Malformed(f"{place}.{position}: Input should be an object")
    return tuple(mapping(item) for item in found)
