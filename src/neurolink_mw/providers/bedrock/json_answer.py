"""V3 to native: how a JSON answer is asked for, and how it can be told afterwards. Pure.

`structured.choose_answer_way` decides. Where the answer comes by a tool, that is `json` where it is the only one, and
`final_result` beside others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...protocol import CallOptions, CallWarning, JSONObject, ResponseFormat
from ...structured import (
    FINAL_RESULT_DESCRIPTION,
    FINAL_RESULT_INSTRUCTION,
    FINAL_RESULT_TOOL_NAME,
    AnswerTool,
    answer_schema,
    append_json_schema_instruction,
    choose_answer_way,
    strict_losses,
    strict_schema,
)
from ...structured.final_result import ANSWER_TOOL_DESCRIPTION, ANSWER_TOOL_NAME, is_described_as_answer, wanted_schema
from ..common.json_values import json_text, plain
from .capabilities import Capabilities
from .errors import ErrorReader
from .native_values import Block
from .options import ProviderOptions
from .tool_ids import native_names


class JsonAnswer(NamedTuple):
    """What a request says for a JSON answer. format: `outputConfig.textFormat`. tool: what is appended to the tools.
    choice: `toolChoice`, instead of the caller's. system: what ends the system blocks."""

    format: Block | None = None
    tool: Block | None = None
    choice: Block | None = None
    system: Block | None = None


def json_answer(
    options: CallOptions,
    tools: Sequence[Block],
    own: ProviderOptions,
    capabilities: Capabilities,
    errors: ErrorReader,
    warnings: list[CallWarning],
    *,
    thinking: bool,
) -> JsonAnswer:
    """What makes the model answer as the call's schema says. tools: native, of the call. thinking: a choice cannot be
    forced. Raises ConfigError for what is no schema."""
    wanted, schema = options.response_format, wanted_schema(options)
    if wanted is None or schema is None or _has_format(own.members):
        return JsonAnswer()
    losses = strict_losses(schema)
    native = _is_native(own, capabilities, losses)
    way = choose_answer_way(
        has_tools=bool(tools),
        native=native,
        native_with_tools=native,
        can_force=not thinking,
        calls_forbidden=options.tool_choice is not None and options.tool_choice.type == "none",
        name_taken=_is_taken(FINAL_RESULT_TOOL_NAME, options, errors),
    )
    if way == "native":
        warnings.extend(CallWarning("compatibility", "responseFormat", loss) for loss in losses)
        return JsonAnswer(format=_text_format(wanted, strict_schema(schema), errors))
    if way == "instruction":
        details = "asked for in words alone: the call's own tools leave this model no other way to give JSON"
        warnings.append(CallWarning("compatibility", "responseFormat", details))
        text = append_json_schema_instruction((), schema)[0].content
        return JsonAnswer(system={"text": text})
    wrapped = answer_schema(schema)
    warnings.extend(CallWarning("compatibility", "responseFormat", one) for one in wrapped.warnings)
    alone = way == "forced-tool" and not tools
    described = ANSWER_TOOL_DESCRIPTION if alone else FINAL_RESULT_DESCRIPTION
    if wanted.description is not None and wanted.description.strip():
        described = f"{described} It is: {wanted.description.strip()}"
    name = ANSWER_TOOL_NAME if alone else FINAL_RESULT_TOOL_NAME
    input_schema = plain(wrapped.schema, "response_format.schema", errors)
    tool: Block = {"toolSpec": {"name": name, "description": described, "inputSchema": {"json": input_schema}}}
    if way == "forced-tool":
        return JsonAnswer(tool=tool, choice={"any": {}} if alone else {"tool": {"name": name}})
    return JsonAnswer(tool=tool, system={"text": FINAL_RESULT_INSTRUCTION.strip()})


def answer_tool_of(options: CallOptions, native: Mapping[str, object]) -> AnswerTool | None:
    """The tool that carries the answer to a request; None where it comes as text. native: what was sent."""
    schema, output, config = wanted_schema(options), native.get("outputConfig"), native.get("toolConfig")
    if schema is None or (isinstance(output, Mapping) and "textFormat" in output):
        return None
    tools = config.get("tools") if isinstance(config, Mapping) else None
    last = tools[-1] if isinstance(tools, Sequence) and tools else {}
    spec = last.get("toolSpec") if isinstance(last, Mapping) else None
    name = spec.get("name") if isinstance(spec, Mapping) else None
    described = spec.get("description") if isinstance(spec, Mapping) else None
    if not is_described_as_answer(described):
        return None
    return AnswerTool(str(name), answer_schema(schema).key)


def comes_by_tool(options: CallOptions, own: ProviderOptions, capabilities: Capabilities) -> bool:
    """Whether a tool is declared for the answer, or other tools are."""
    schema = wanted_schema(options)
    if schema is None or _has_format(own.members):
        return False
    return not _is_native(own, capabilities, strict_losses(schema))


def _is_native(own: ProviderOptions, capabilities: Capabilities, losses: Sequence[str]) -> bool:
    """By itself where nothing of the schema is lost; a tool carries all of it."""
    return own.structured_output == "native" or (
        own.structured_output is None and capabilities.json_schema and not losses
    )


def _has_format(members: Mapping[str, object]) -> bool:
    given = members.get("outputConfig")
    return isinstance(given, Mapping) and "textFormat" in given


def _is_taken(name: str, options: CallOptions, errors: ErrorReader) -> bool:
    return name in native_names(options.tools or (), errors)


def _text_format(wanted: ResponseFormat, schema: JSONObject, errors: ErrorReader) -> Block:
    native: dict[str, object] = {"schema": json_text(schema, "response_format.schema", errors)}
    if wanted.name is not None:
        native["name"] = wanted.name
    if wanted.description is not None:
        native["description"] = wanted.description
    return {"type": "json_schema", "structure": {"jsonSchema": native}}
