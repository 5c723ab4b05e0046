"""The tool by which a model gives its answer as JSON while it keeps its other tools: its names, texts and schema."""

from __future__ import annotations

from typing import Final

from ..protocol import CallOptions, JSONObject
from ..protocol.tokens import json_text
from .by_schema import by_schema
from .inline_refs import inline_refs
from .repair import parsed
from .root import Wrapped, wrap_root

FINAL_RESULT_TOOL_NAME: Final = "final_result"
"""The name under which the tool is appended to the caller's. It never shows in an answer."""

FINAL_RESULT_DESCRIPTION: Final = (
    "Returns the final structured result. You MUST call this tool once you have gathered all the information you need, "
    "and only then. Its arguments are the result itself: data that matches the schema of this tool."
)

ANSWER_TOOL_NAME: Final = "json"
"""The name of the answer's tool where it is the only one of a call."""

ANSWER_TOOL_DESCRIPTION: Final = "Give the answer by calling this tool: its input is the answer."


def is_described_as_answer(description: object) -> bool:
    """Whether a tool's description is that of an answer's tool. A tool of the caller's may have one of the names."""
    return isinstance(description, str) and description.startswith((ANSWER_TOOL_DESCRIPTION, FINAL_RESULT_DESCRIPTION))


def wanted_schema(options: CallOptions) -> JSONObject | None:
    """The schema that the answer to a call has to fit; None where the call has none."""
    wanted = options.response_format
    return None if wanted is None or wanted.type != "json" else wanted.schema


def tool_answer_instruction(name: str) -> str:
    """The instruction to answer through the tool `name`, to stand at the end of a system text.

    It begins with a blank line, to be appended as it is. Where there is no system text it is used stripped.
    """
    return (
        f"\n\nIMPORTANT: Give your final answer by calling the tool `{name}`, with the whole answer as its arguments. "
        f"Do not write the final answer as plain text: only what `{name}` is called with is read."
    )


FINAL_RESULT_INSTRUCTION: Final = tool_answer_instruction(FINAL_RESULT_TOOL_NAME)


@by_schema
def answer_schema(schema: JSONObject | bool) -> Wrapped:
    """A schema as the input of a tool: `$ref`s inlined, no `$schema`, and an object at its root.

    `Wrapped.key` says where in that object the answer is, for `AnswerTool`; `Wrapped.warnings` what could not be
    inlined. ConfigError as in `inline_refs` and `wrap_root`; the schema that is given is not changed.
    """
    inlined = inline_refs(schema)
    wrapped = wrap_root(inlined.schema)
    # Providers read a tool's input by one draft, and some refuse the keyword.
    bare = {key: item for key, item in wrapped.schema.items() if key != "$schema"}
    return Wrapped(bare, wrapped.key, inlined.warnings)


def stringify_answer(text: str) -> str:
    """An answer as canonical JSON text: compact, its keys in the model's order. What is not JSON stays as it is, such
    as an answer that was cut, so that it can still be repaired."""
    value = parsed(text)
    return text if value is None else json_text(value[0])
