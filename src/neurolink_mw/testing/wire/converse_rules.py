"""What Converse refuses although it is spelled well: the rules that botocore's own validator does not know.

Where the service's message is known from public reports it is used, because clients read it. The rules of pairing,
white space and thinking are those of Anthropic's models, the strictest behind Converse.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Final

from neurolink_mw.testing.wire.converse_conversation import (
    Conversation,
    Json,
    Message,
    conversation_of,
    items,
    mapping,
    names,
)

NAME: Final = re.compile(r"[a-zA-Z0-9_-]+")
TOOL_USE_ID: Final = re.compile(r"[a-zA-Z0-9_.:-]+")
DOCUMENT_NAME: Final = re.compile(r"(?!.*\s\s)[a-zA-Z0-9\s()\[\]-]{1,200}", re.DOTALL)
DOCUMENT_LIMIT: Final = 5

Faults = Iterator[str]


def faults(body: Json, *, stored_prompt: bool = False) -> list[str]:
    """Every breach in a request body, the one the service would report first at the front; empty where it is sound.

    Args:
        body: the JSON of the request.
        stored_prompt: the model id names a prompt of Prompt management, which may bring the messages itself.
    """
    if not body.get("messages"):
        if not stored_prompt:
            return [MUST_START]
        body = {**body, "messages": []}
    try:
        conversation = conversation_of(body)
    except ValueError as error:
        return [f"Malformed input request: {error}, please reformat your input and try again."]
    return [fault for rule in RULES for fault in rule(conversation)]


MUST_START: Final = (
    "A conversation must start with a user message. Try again with a conversation that starts with a user message."
)


def spelling(conversation: Conversation) -> Faults:
    """Names and ids, which botocore sends whatever they look like."""
    for number, tool in enumerate(conversation.tools, 1):
        for kind in ("toolSpec", "systemTool"):
            if kind in tool:
                yield from _constrained(
                    mapping(tool[kind]).get("name"), NAME, f"toolConfig.tools.{number}.member.{kind}.name"
                )
    for message in conversation.messages:
        for kind in ("toolUse", "toolResult"):
            for position, block in message.of(kind):
                place = f"messages.{message.index + 1}.member.content.{position + 1}.member.{kind}"
                yield from _constrained(block.get("toolUseId"), TOOL_USE_ID, f"{place}.toolUseId")
                if kind == "toolUse":
                    yield from _constrained(block.get("name"), NAME, f"{place}.name")


def roles(conversation: Conversation) -> Faults:
    """The user begins, and user and assistant take turns. A system message may stand between any two of them."""
    spoken = [message.role for message in conversation.messages if message.role != "system"]
    if conversation.messages and conversation.messages[0].role != "user":
        yield MUST_START
    if any(role == following for role, following in pairwise(spoken)):
        yield (
            "A conversation must alternate between user and assistant roles. Make sure the conversation alternates "
            "between user and assistant roles and try again."
        )


def texts(conversation: Conversation) -> Faults:
    """No message is empty and no text is blank, although models answer both."""
    for position, block in enumerate(conversation.system):
        if _is_blank(block):
            yield _blank("SystemContentBlock", f"system.{position}")
    for message in conversation.messages:
        if not message.blocks:
            yield (
                f"The content field in the Message object at messages.{message.index} is empty. Add a ContentBlock "
                "object to the content field and try again."
            )
        for position, block in enumerate(message.blocks):
            if _is_blank(block):
                yield _blank("ContentBlock", message.at(position))


def tool_blocks_have_a_configuration(conversation: Conversation) -> Faults:
    held = (message.of(kind) for message in conversation.messages for kind in ("toolUse", "toolResult"))
    if conversation.tool_config is None and any(next(blocks, None) for blocks in held):
        yield "The toolConfig field must be defined when using toolUse and toolResult content blocks."


def tool_configuration(conversation: Conversation) -> Faults:
    """At least one tool, each named once and with an object schema, and a choice among them."""
    if conversation.tool_config is None:
        return
    declared = names(conversation.tools)
    if not declared:
        yield "The toolConfig.tools field is empty. Add a tool to the field, or remove toolConfig, and try again."
    for name in _repeated(declared):
        yield f"The toolConfig.tools field contains the tool name {name} more than once."
    for index, tool in enumerate(conversation.tools):
        if "toolSpec" in tool:
            yield from _schema(mapping(tool["toolSpec"]), f"toolConfig.tools.{index}.toolSpec.inputSchema.json")
    choice = conversation.tool_choice
    if choice is None:
        return
    if len(choice) != 1 or not choice.keys() <= {"auto", "any", "tool"}:
        yield "The toolConfig.toolChoice field must be one of auto, any and tool."
    elif "tool" in choice and (name := str(mapping(choice["tool"]).get("name"))) not in declared:
        yield f"The tool {name} at toolConfig.toolChoice.tool is not among toolConfig.tools."
    if not choice.keys() <= {"auto"} and conversation.thinks:
        yield "Thinking may not be enabled when tool_choice forces tool use."


def leading_thought(conversation: Conversation) -> Faults:
    """With a budget for thinking, an answer that goes on behind tool results, or is begun for the model, has begun with
    a thought."""
    starts: list[tuple[Message, Json]] = []
    for message in reversed(conversation.messages):
        if message.role == "assistant":
            starts += [(message, block) for block in message.blocks[:1]]
        elif message.role == "user" and not message.answered():
            break
    if conversation.thinks_by_budget and starts and not any("reasoningContent" in block for _, block in starts):
        message, block = starts[0]
        yield (
            f"{message.at(0)}.type: Expected `thinking` or `redacted_thinking`, but found `{next(iter(block), None)}`. "
            "When `thinking` is enabled, a final `assistant` message must start with a thinking block."
        )


def tool_uses(conversation: Conversation) -> Faults:
    """Only the assistant calls tools, each call under an id of its own, with an object as the input."""
    for message in conversation.messages:
        calls = list(message.of("toolUse"))
        if calls and message.role != "assistant":
            yield (
                f"{message.role.capitalize()} messages cannot contain tool uses. Please remove the tool uses and try "
                "again."
            )
        for identity in _repeated([str(call.get("toolUseId")) for _, call in calls]):
            yield f"messages.{message.index}.content: `tool_use` ids must be unique, but {identity} is there twice."
        for position, call in calls:
            if not isinstance(call.get("input"), Mapping):
                yield _not_an_object(f"{message.at(position)}.toolUse.input")


def tool_results(conversation: Conversation) -> Faults:
    """A result holds what its kind says: an object as json, a text that is not blank, and something when it failed."""
    for message in conversation.messages:
        for position, result in message.of("toolResult"):
            place = f"{message.at(position)}.toolResult"
            blocks = items(result.get("content"))
            if not blocks and result.get("status") == "error":
                yield f"The content field at {place} cannot be empty when status value is error."
            for inner, block in enumerate(blocks):
                if "json" in block and not isinstance(block["json"], Mapping):
                    yield _not_an_object(f"{place}.content.{inner}.json")
                if _is_blank(block):
                    yield _blank("ToolResultContentBlock", f"{place}.content.{inner}")


def pairing(conversation: Conversation) -> Faults:
    """Each call is answered once in the very next message, whose results come first, and nothing else is answered.

    Calls the service ran itself (`server_tool_use`) are answered in their own message, or not at all.
    """
    nobody = Message(-1, "user", ())
    for before, message in zip((nobody, *conversation.messages), (*conversation.messages, nobody), strict=True):
        calls = before.calls() if before.role == "assistant" else []
        served = before.served() if message.role == "user" else message.served()
        results = [identity for identity in message.answered() if identity not in served]
        if Counter(calls) == Counter(results):
            yield from _order(message, len(calls))
        elif len(results) > len(calls):
            yield (
                f"The number of toolResult blocks at messages.{before.index + 1}.content exceeds the number of toolUse "
                "blocks of previous turn."
            )
        else:
            found = f", but found: {', '.join(results)}" if results else ""
            missing = [identity for identity in calls if identity not in results]
            yield (
                f"Expected toolResult blocks at messages.{before.index + 1}.content for the following Ids: "
                f"{', '.join(missing)}{found}"
            )


def documents(conversation: Conversation) -> Faults:
    """At most five documents, of the user's, with different names of few characters, and a text beside them."""
    named = [str(document.get("name")) for message in conversation.messages for document in message.documents()]
    if any(not DOCUMENT_NAME.fullmatch(name) for name in named):
        yield (
            "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, "
            "parentheses, and square brackets. The name can't contain more than one consecutive whitespace character."
        )
    if _repeated(named):
        yield "Messages can't contain duplicate document names. Rename the document and retry your request."
    if len(named) > DOCUMENT_LIMIT:
        yield f"You can't include more than {DOCUMENT_LIMIT} documents in a request."
    for message in conversation.messages:
        if next(message.of("document"), None) is None:
            continue
        if message.role != "user":
            yield f"You can only include documents if the role is user, but messages.{message.index} is not."
        elif not any("text" in block for block in message.blocks):
            yield "A text block must be included when using documents. Add a text block and retry your request."


def final_assistant_text(conversation: Conversation) -> Faults:
    """An answer that is begun for the model goes on right behind its last character."""
    last = conversation.messages[-1] if conversation.messages else None
    if last is None or last.role != "assistant" or not last.blocks:
        return
    text = last.blocks[-1].get("text")
    if isinstance(text, str) and text != text.rstrip():
        yield "messages: final assistant content cannot end with trailing whitespace"


RULES: Final[tuple[Callable[[Conversation], Faults], ...]] = (
    spelling,
    roles,
    texts,
    tool_blocks_have_a_configuration,
    tool_configuration,
    leading_thought,
    tool_uses,
    tool_results,
    pairing,
    documents,
    final_assistant_text,
)


def _order(message: Message, count: int) -> Faults:
    others = {
        position for position, block in enumerate(message.blocks) if not block.keys() & {"toolResult", "cachePoint"}
    }
    late = [position for position, _ in message.of("toolResult") if others and position > min(others)]
    if message.role == "user" and late:
        yield (
            f"messages.{message.index}: Did not find {count} `tool_result` block(s) at the beginning of this message. "
            "Messages following `tool_use` blocks must begin with a matching number of `tool_result` blocks."
        )


def _schema(tool: Json, place: str) -> Faults:
    schema = mapping(tool.get("inputSchema")).get("json")
    if not isinstance(schema, Mapping):
        yield _not_an_object(place)
    elif schema.get("type") != "object":
        yield f"The value at {place}.type must be one of the following: object."


def _constrained(value: object, pattern: re.Pattern[str], place: str) -> Faults:
    text = value if isinstance(value, str) else ""
    if len(text) > 64:
        broken = "Member must have length less than or equal to 64"
    elif not pattern.fullmatch(text):
        broken = f"Member must satisfy regular expression pattern: {pattern.pattern}"
    else:
        return
    yield f"1 validation error detected: Value '{text}' at '{place}' failed to satisfy constraint: {broken}"


def _is_blank(block: Json) -> bool:
    text = block.get("text")
    return isinstance(text, str) and not text.strip()


def _blank(kind: str, place: str) -> str:
    return f"The text field in the {kind} object at {place} is blank. Add text to the text field, and try again."


def _not_an_object(place: str) -> str:
    return f"The format of the value at {place} is invalid. Provide a json object for the field and try again."


def _repeated(values: list[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]
