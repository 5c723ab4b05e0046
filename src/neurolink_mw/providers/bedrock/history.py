"""Native to V3: a Converse conversation as a prompt, so that `messages` makes the same conversation of it again. Pure.

What V3 has no place for stays with the part, in `provider_options["bedrock"]`: signatures, cache points, the status of
a result, and whole blocks of kinds that V3 does not have (`block`, in parts of type `custom`). Bytes are bytes in
files, and base64 once wherever JSON is due.

What comes back otherwise, because Converse or a model would refuse it as it was:

- blank texts, messages without content, and reasoning without a signature are left out, and a cache point right after
  one of them moves to the block before it
- tool results stand first in their message and in the order of their calls; adjacent messages of one role are one
- a blank or empty tool result says `(no output)`
- a tool's input that is no object becomes `{"rawInvalidInput": input}`; ids and names that Converse does not take are
  made to fit; a document's name that is taken gets a number
- a string as the system prompt comes back as one block
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from ...errors import BridgeShapeError
from ...protocol import (
    JSON,
    AssistantMessage,
    AssistantPart,
    Message,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCallPart,
    ToolMessage,
    ToolPart,
    ToolResultPart,
    UserMessage,
    UserPart,
)
from .history_parts import foreign_part, output_of, part_of_file, with_cache_point
from .messages import SERVER_TOOL
from .native_values import restored, stored
from .options import KEY
from .readings import redaction

_FILES = frozenset({"image", "document", "video", "audio"})
_Part = TypeVar("_Part", bound=AssistantPart | UserPart | ToolPart)


def prompt_of(
    system: str | Sequence[Mapping[str, object]] | None, conversation: Sequence[Mapping[str, object]]
) -> tuple[Message, ...]:
    """A conversation as a V3 prompt. system: a text, where blank means none, or Converse's system blocks.

    A tool result gets the name of the nearest tool use before it with its id. Raises BridgeShapeError that names the
    place, as in `conversation[2].content[0]`, for what is no Converse conversation: nothing is skipped.
    """
    if not isinstance(conversation, Sequence):
        raise BridgeShapeError(f"a conversation is a list of messages, not {type(conversation).__name__}")
    reader = _Reader()
    for index, message in enumerate(conversation):
        reader.read(message, f"conversation[{index}]")
    return (*_system_of(system), *reader.prompt)


class _Reader:
    def __init__(self) -> None:
        self.prompt: list[Message] = []
        self._names: dict[str, str] = {}

    def read(self, message: object, place: str) -> None:
        if not isinstance(message, Mapping):
            raise BridgeShapeError(f"{place}: a message is an object, not {type(message).__name__}")
        _only(message, {"role", "content"}, place)
        role, content = message.get("role"), message.get("content")
        if not isinstance(content, list | tuple):
            raise BridgeShapeError(f"{place}.content is a list of blocks, not {type(content).__name__}")
        blocks = [_block(block, f"{place}.content[{number}]") for number, block in enumerate(content)]
        if role == "assistant":
            self._assistant(blocks, place)
        elif role == "user":
            self._user(blocks, place)
        elif role == "system":
            self.prompt.extend(_system_messages([block for *_, block in blocks], place, {"role": "system"}))
        else:
            raise BridgeShapeError(f"{place}.role is user, assistant or system")

    def _assistant(self, blocks: list[_Named], place: str) -> None:
        parts: list[AssistantPart] = []
        for number, (kind, body, block) in enumerate(blocks):
            where = f"{place}.content[{number}]"
            if kind == "toolUse":
                parts.append(self._call(body, where))
            elif kind == "toolResult":
                parts.append(self._result(body, where, {"serverTool": True}))
            elif kind == "reasoningContent":
                parts.append(_reasoning(body) or foreign_part(block))
            elif kind == "citationsContent":
                parts.append(_cited(body) or foreign_part(block))
            else:
                _add(parts, kind, body, block)
        self.prompt.append(AssistantMessage(parts))

    def _user(self, blocks: list[_Named], place: str) -> None:
        results: list[ToolPart] = []
        said: list[UserPart] = []
        after_result = False
        for number, (kind, body, block) in enumerate(blocks):
            if kind == "toolResult":
                results.append(self._result(body, f"{place}.content[{number}]", {}))
                after_result = True
            elif kind == "cachePoint" and after_result and with_cache_point(results[-1], body) is not None:
                results[-1] = with_cache_point(results[-1], body) or results[-1]
                after_result = False
            else:
                _add(said, kind, body, block)
                after_result = False
        if results:
            self.prompt.append(ToolMessage(results))
        if said or not results:
            self.prompt.append(UserMessage(said))

    def _call(self, body: object, place: str) -> ToolCallPart:
        use = _object(body, place)
        _only(use, {"toolUseId", "name", "input", "type"}, place)
        id, name, kind = _word(use, "toolUseId", place), _word(use, "name", place), use.get("type")
        if kind not in (None, SERVER_TOOL):
            raise BridgeShapeError(f"{place}: a tool use of another type than {SERVER_TOOL!r}")
        self._names[id] = name
        own = {KEY: {"type": SERVER_TOOL}} if kind else None
        return ToolCallPart(id, name, _json(use.get("input"), f"{place}.input"), True if kind else None, own)

    def _result(self, body: object, place: str, own: dict[str, object]) -> ToolResultPart:
        result = _object(body, place)
        _only(result, {"toolUseId", "content", "status", "type"}, place)
        id, content = _word(result, "toolUseId", place), result.get("content")
        name = self._names.get(id)
        if name is None:
            raise BridgeShapeError(f"{place}: a tool result without a tool use of its id before it, so without a name")
        if not isinstance(content, list | tuple):
            raise BridgeShapeError(f"{place}.content is a list of blocks, not {type(content).__name__}")
        pieces = [_block(piece, f"{place}.content[{number}]") for number, piece in enumerate(content)]
        for member in ("status", "type"):
            if member in result:
                own[member] = _word(result, member, place)
        output = output_of([block for *_, block in pieces], failed=own.get("status") == "error")
        return ToolResultPart(id, name, output, {KEY: stored(own)} if own else None)


_Named = tuple[str, object, Mapping[str, object]]
"""A block's kind, its body, and the block itself."""


def _system_of(system: str | Sequence[Mapping[str, object]] | None) -> list[SystemMessage]:
    if system is None or isinstance(system, str):
        return [SystemMessage(system)] if system is not None and system.strip() else []
    if not isinstance(system, Sequence):
        raise BridgeShapeError(f"system is a text or a list of blocks, not {type(system).__name__}")
    return _system_messages([_block(block, f"system[{n}]")[2] for n, block in enumerate(system)], "system", {})


def _system_messages(
    blocks: Sequence[Mapping[str, object]], place: str, own: Mapping[str, object]
) -> list[SystemMessage]:
    """Each text is a message; a cache point belongs to the one before it, and other blocks stand for themselves."""
    messages: list[SystemMessage] = []
    for block in blocks:
        kind, body = next(iter(block.items()))
        options: dict[str, object] = dict(own)
        if kind == "cachePoint" and messages:
            marked = with_cache_point(messages[-1], body)
            if marked is not None:
                messages[-1] = marked
                continue
        text = body if kind == "text" and isinstance(body, str) else None
        if text is None:
            options["block"] = block
        messages.append(SystemMessage(text or "", {KEY: stored(options)} if options else None))
    return messages


def _add(parts: list[_Part], kind: str, body: object, block: Mapping[str, object]) -> None:
    """A block that users and models alike may say."""
    if kind == "text" and isinstance(body, str):
        part: object = TextPart(body)
    elif kind == "cachePoint" and parts and (marked := with_cache_point(parts[-1], body)) is not None:
        parts[-1] = marked
        return
    else:
        part = (part_of_file(kind, block) if kind in _FILES else None) or foreign_part(block)
    parts.append(part)  # type: ignore[arg-type]  # all of these are parts of both


def _reasoning(body: object) -> ReasoningPart | None:
    if not isinstance(body, Mapping) or len(body) != 1:
        return None
    redacted = body.get("redactedContent")
    if isinstance(redacted, bytes):
        return ReasoningPart("", redaction(redacted))
    said = body.get("reasoningText")
    if not isinstance(said, Mapping) or not said.keys() <= {"text", "signature"}:
        return None
    text, signature = said.get("text"), said.get("signature")
    if not isinstance(text, str) or not isinstance(signature, str | None):
        return None
    return ReasoningPart(text, None if signature is None else {KEY: {"signature": signature}})


def _cited(body: object) -> TextPart | None:
    """Cited text as a text, where it is one piece: what else there is goes along whole."""
    if not isinstance(body, Mapping) or body.keys() != {"content", "citations"}:
        return None
    pieces, citations = body["content"], body["citations"]
    only = pieces[0] if isinstance(pieces, list) and len(pieces) == 1 else None
    text = only.get("text") if isinstance(only, Mapping) and len(only) == 1 else None
    if not isinstance(text, str) or not text.strip() or not isinstance(citations, list) or not citations:
        return None
    kept = stored(citations)
    return TextPart(text, {KEY: {"citations": kept}}) if restored(kept) == citations else None


def _block(block: object, place: str) -> _Named:
    if not isinstance(block, Mapping) or len(block) != 1:
        raise BridgeShapeError(f"{place}: a content block is an object with one member, its kind")
    kind = next(iter(block))
    try:
        stored(block)
    except TypeError as error:
        raise BridgeShapeError(f"{place}: {error}, and bytes aside a block is JSON") from None
    except RecursionError:
        raise BridgeShapeError(f"{place}: is nested too deeply") from None
    return kind, block[kind], block


def _object(body: object, place: str) -> Mapping[str, object]:
    if not isinstance(body, Mapping):
        raise BridgeShapeError(f"{place}: the block's body is an object, not {type(body).__name__}")
    return body


def _word(body: Mapping[str, object], name: str, place: str) -> str:
    word = body.get(name)
    if not isinstance(word, str):
        raise BridgeShapeError(f"{place}.{name} is a string, not {type(word).__name__}")
    return word


def _only(body: Mapping[str, object], known: set[str], place: str) -> None:
    for name in sorted(body.keys() - known):
        raise BridgeShapeError(f"{place}.{name} is a member that the common protocol has no place for")


def _json(data: object, place: str) -> JSON:
    if _holds_bytes(data):
        raise BridgeShapeError(f"{place} holds bytes, which JSON has no form for")
    return data  # type: ignore[return-value]  # JSON, as found out


def _holds_bytes(data: object) -> bool:
    if isinstance(data, Mapping):
        return any(map(_holds_bytes, data.values()))
    return any(map(_holds_bytes, data)) if isinstance(data, list | tuple) else isinstance(data, bytes | bytearray)
