"""A JSON Schema in words: for models and servers that know no response format, or ignore it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..protocol import JSONObject, Message, SystemMessage
from .plain import plain_schema

# A value, not an object: an array, a number or a text may be what the schema describes.
_INSTRUCTION = (
    "Your final answer must be exactly one JSON value that is valid against the JSON Schema below, and nothing else: "
    "no words before or after it, and no code fence around it.\nJSON Schema: "
)


def append_json_schema_instruction(messages: Sequence[Message], schema: JSONObject | bool) -> tuple[Message, ...]:
    """The same messages, with the instruction to answer with JSON that fits the schema.

    It is added to the end of the last system message, after a blank line; that message keeps everything else, its
    provider options included. A system message of its own it gets, in front, only where there is none: several
    OpenAI-compatible servers read no system message but the first. The schema is compact and in its author's order,
    since models write their keys in that order. ConfigError for what is no schema.
    """
    text = json.dumps(plain_schema(schema), ensure_ascii=False, separators=(",", ":"))
    instruction = f"{_INSTRUCTION}{text}"
    added = list(messages)
    for index in reversed(range(len(added))):
        message = added[index]
        if isinstance(message, SystemMessage):
            before = f"{message.content}\n\n" if message.content.strip() else ""
            added[index] = message.replace(content=f"{before}{instruction}")
            return tuple(added)
    return (SystemMessage(instruction), *added)
