"""What the Messages API refuses in the messages themselves: blocks, roles, texts, and how calls and results pair."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise, takewhile
from typing import Final

from neurolink_mw.testing.wire.anthropic_members import BLOCKS, ROLES
from neurolink_mw.testing.wire.anthropic_request import Block, Request, Turn

CALL_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
CALL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,200}")
STRINGS: Final = ("text", "thinking", "signature", "data", "name", "title")
OBJECTS: Final = ("input", "source")
THOUGHTS: Final = ("thinking", "redacted_thinking")

Faults = Iterator[str]


def spelling(request: Request) -> Faults:
    """The members of blocks, and who may say which kind. A thought has no `cache_control` among its members."""
    if not request.messages:
        yield "messages: at least one message is required"
    for message in request.messages:
        for block in message.blocks:
            role = ROLES.get(block.kind, message.role)
            if role != message.role:
                yield f"messages.{message.index}: `{block.kind}` blocks can only be in `{role}` messages"
            for one in (block, *block.inner()):
                yield from _block(one)
    for block in request.system:
        yield from _block(block)


def system_messages(request: Request) -> Faults:
    """A system message stands behind what the user said, and before the assistant's answer or at the end.

    An assistant may be the first to speak: the API takes that since it combines messages of one role.
    """
    roles = [message.role for message in request.messages]
    for before, message in zip((None, *request.messages), request.messages, strict=False):
        if message.role != "system":
            continue
        following = roles[message.index + 1 : message.index + 2]
        if following not in ([], ["assistant"]):
            yield f"messages.{message.index}: role 'system' must precede an 'assistant' message or end the array"
        served = before is not None and before.role == "assistant" and _ends_served(before.blocks)
        if before is None or (before.role != "user" and not served):
            yield (
                f"messages.{message.index}: role 'system' must follow a 'user' message or an 'assistant' message that "
                "ends in a server tool use"
            )


def texts(request: Request) -> Faults:
    """No message is empty, save an assistant's at the end, and no text is blank."""
    last = request.messages[-1] if request.messages else None
    for message in request.messages:
        empty = not message.blocks or [block.value.get("text") for block in message.blocks] == [""]
        if empty and not message.settings and not (message is last and message.role == "assistant"):
            yield (
                f"messages.{message.index}: all messages must have non-empty content except for the optional final "
                "assistant message"
            )
        elif not empty:
            for block in message.blocks:
                for one in (block, *block.inner()):
                    yield from _text(one, "messages")
    for block in request.system:
        yield from _text(block, "system")


def thoughts(request: Request) -> Faults:
    """A thought carries the signature it was given, and something comes behind it."""
    for message in request.messages:
        for block in message.blocks:
            if block.kind == "thinking" and not block.value.get("signature"):
                yield f"{block.place}: Invalid `signature` in `thinking` block"
            if block.kind == "redacted_thinking" and not block.value.get("data"):
                yield f"{block.place}: Invalid `data` in `redacted_thinking` block"
    for turn in request.turns():
        if turn.role == "assistant" and turn.blocks and turn.blocks[-1].kind in THOUGHTS:
            yield f"messages.{turn.index}: The final block in an assistant message cannot be `{turn.blocks[-1].kind}`."


def leading_thought(request: Request) -> Faults:
    """With a budget for thinking, an answer that goes on behind results of tools, or is begun for the model, has begun
    with a thought. Adaptive thinking does without it.
    """
    unfinished = list(_unfinished(request.turns()))
    if (request.thinking or {}).get("type") != "enabled" or not unfinished:
        return
    starts = [turn.blocks[0] for turn in unfinished if turn.blocks]
    if starts and not any(block.kind in THOUGHTS for block in starts):
        yield (
            f"{starts[0].place}.type: Expected `thinking` or `redacted_thinking`, but found `{starts[0].kind}`. When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceding the "
            "lastmost set of `tool_use` and `tool_result` blocks)."
        )


def unique_calls(request: Request) -> Faults:
    """No id comes twice in a conversation."""
    seen: set[str] = set()
    for message in request.messages:
        for block in message.blocks:
            if block.kind not in ("tool_use", "server_tool_use", "mcp_tool_use"):
                continue
            if _id(block) in seen:
                yield f"{block.place}: `tool_use` ids must be unique"
            seen.add(_id(block))


def pairing(request: Request) -> Faults:
    """Each call is answered once at the beginning of the very next turn, and nothing else is answered."""
    nobody = Turn(-1, "", ())
    for before, turn in pairwise((nobody, *request.turns(), nobody)):
        calls = [_id(block) for block in before.blocks if block.kind == "tool_use"]
        leading = [_answered(block) for block in takewhile(lambda block: block.kind == "tool_result", turn.blocks)]
        missing = [identity for identity in calls if identity not in leading]
        if missing:
            yield (
                f"messages.{before.index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )
        yield from _unasked(turn, calls)


def served_results(request: Request) -> Faults:
    """The result of a tool that the API ran stands behind its call, in this turn or a later one."""
    seen: dict[str, set[str]] = {"server_tool_use": set(), "mcp_tool_use": set()}
    for message in request.messages:
        for block in message.blocks:
            if block.kind in seen:
                seen[block.kind].add(_id(block))
            elif block.kind.endswith("_tool_result"):
                call = "mcp_tool_use" if block.kind == "mcp_tool_result" else "server_tool_use"
                if _answered(block) not in seen[call]:
                    yield (
                        f"{block.place}: unexpected `tool_use_id` found in `{block.kind}` blocks: {_answered(block)}. "
                        f"Each `{block.kind}` block must have a corresponding `{call}` block before it."
                    )


def final_assistant_text(request: Request) -> Faults:
    """An answer that is begun for the model goes on right behind its last character."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != "assistant" or not last.blocks:
        return
    text = last.blocks[-1].value.get("text")
    if isinstance(text, str) and text != text.rstrip():
        yield "messages: final assistant content cannot end with trailing whitespace"


def _unfinished(turns: list[Turn]) -> Iterator[Turn]:
    """The turns of the assistant that its next answer continues, the last one first."""
    for turn in reversed(turns):
        if turn.role == "assistant":
            yield turn
        elif not any(block.kind == "tool_result" for block in turn.blocks):
            return


def _unasked(turn: Turn, calls: list[str]) -> Faults:
    answered: set[str] = set()
    for block in turn.blocks:
        if block.kind != "tool_result":
            continue
        identity = _answered(block)
        if identity not in calls:
            yield (
                f"{block.place}: unexpected `tool_use_id` found in `tool_result` blocks: {identity}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        elif identity in answered:
            yield (
                f"{block.place}: each tool_use must have a single result. Found multiple `tool_result` blocks with "
                f"id: {identity}"
            )
        answered.add(identity)


def _block(block: Block) -> Faults:
    declared = BLOCKS[block.kind]
    for name in declared.required:
        if name not in block.value:
            yield f"{block.named(name)}: Field required"
    known = {*declared.required, *declared.optional, "type"}
    for name in block.value:
        if name not in known:
            yield f"{block.named(name)}: Extra inputs are not permitted"
    for name in declared.required:
        if name not in block.value:
            continue
        value = block.value[name]
        # The source of a search result is a text.
        wants_text = name in STRINGS or (name, block.kind) == ("source", "search_result")
        if wants_text and not isinstance(value, str):
            yield f"{block.named(name)}: Input should be a valid string"
        if name in OBJECTS and not wants_text and not isinstance(value, Mapping):
            yield f"{block.named(name)}: Input should be a valid dictionary"
    if "id" in block.value and "id" in declared.required:
        yield from _matches(block, "id", CALL_ID)
    if block.kind == "tool_use" and isinstance(block.value.get("name"), str):
        yield from _matches(block, "name", CALL_NAME)


def _matches(block: Block, name: str, pattern: re.Pattern[str]) -> Faults:
    if not pattern.fullmatch(str(block.value[name])):
        yield f"{block.named(name)}: String should match pattern '^{pattern.pattern}$'"


def _text(block: Block, where: str) -> Faults:
    text = block.value.get("text") if block.kind == "text" else None
    if text == "":
        yield f"{where}: text content blocks must be non-empty"
    elif isinstance(text, str) and not text.strip():
        yield f"{where}: text content blocks must contain non-whitespace text"


def _ends_served(blocks: tuple[Block, ...]) -> bool:
    return bool(blocks) and (blocks[-1].kind == "server_tool_use" or blocks[-1].kind.endswith("_tool_result"))


def _id(block: Block) -> str:
    return str(block.value.get("id"))


def _answered(block: Block) -> str:
    return str(block.value.get("tool_use_id"))
