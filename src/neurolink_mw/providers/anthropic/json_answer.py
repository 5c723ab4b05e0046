"""V3 to native: how a JSON answer is asked for, and how it can be told afterwards. Pure.

`structured.choose_answer_way` decides. Where the answer comes by a tool, that is `json` where it is the only one, and
`final_result` beside others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...protocol import CallOptions, CallWarning, JSONObject, ResponseFormat
from ...structured import (
    FINAL_RESULT_TOOL_NAME,
    AnswerTool,
    answer_schema,
    append_json_schema_instruction,
    choose_answer_way,
    strict_losses,
    strict_schema,
)
from ...structured.final_result import ANSWER_TOOL_DESCRIPTION, ANSWER_TOOL_NAME, is_described_as_answer, wanted_schema
from .limits import Capabilities
from .native_values import Block
from .options import ProviderOptions
from .structured_output import append_final_result_instruction, build_final_result_tool
from .tool_names import ToolNames


class Asked(NamedTuple):
    """A request's members as far as a JSON answer has to do with them. format: of `output_config`."""

    system: list[Block]
    tools: list[Block]
    choice: Block | None
    format: Block | None = None


def ask_for_json(
    asked: Asked,
    options: CallOptions,
    own: ProviderOptions,
    capabilities: Capabilities,
    names: ToolNames,
    warnings: list[CallWarning],
    *,
    can_force: bool,
    cites: bool,
    stream: bool,
) -> Asked:
    """The members with what makes the model answer as the call's schema says; as they are where it has none.

    can_force: a choice may be forced. cites: documents are cited, which the API refuses beside a format. stream: inputs
    are to be streamed as the model writes them. Raises ConfigError for what is no schema.
    """
    wanted = options.response_format
    if wanted is None or wanted.type != "json":
        return asked
    if wanted.schema is None:
        details = "left out: the API has no JSON output without a schema; say one, or ask for JSON in the prompt"
        warnings.append(CallWarning("unsupported", "responseFormat", details))
        return asked
    if "format" in own.output_config:  # said in the API's own words
        return asked
    mode = own.structured_output
    losses = strict_losses(wanted.schema)
    native = mode == "outputFormat" or (mode == "auto" and capabilities.json_format and not cites and not losses)
    forbidden = options.tool_choice is not None and options.tool_choice.type == "none"
    way = choose_answer_way(
        has_tools=bool(asked.tools),
        native=native,
        native_with_tools=native,
        can_force=can_force,
        calls_forbidden=forbidden,
        name_taken=names.takes(FINAL_RESULT_TOOL_NAME),
    )
    if way == "native":
        warnings.extend(CallWarning("compatibility", "responseFormat", loss) for loss in losses)
        return asked._replace(format={"type": "json_schema", "schema": dict(strict_schema(wanted.schema))})
    if way == "instruction":
        details = (
            "asked for in words alone: this model gives JSON by a tool, and the call's own tools leave no other way"
        )
        warnings.append(CallWarning("compatibility", "responseFormat", details))
        text = append_json_schema_instruction((), wanted.schema)[0].content
        return asked._replace(system=[*asked.system, {"type": "text", "text": text}])
    tool = _answer_tool(wanted, alone=way == "forced-tool" and not asked.tools, warnings=warnings)
    if stream and own.tool_streaming:
        tool["eager_input_streaming"] = True
    tools = [*asked.tools, tool]
    if way == "forced-tool":
        choice: Block = {"type": "tool", "name": tool["name"]} if asked.tools else {"type": "any"}
        return asked._replace(tools=tools, choice={**choice, "disable_parallel_tool_use": True})
    system = append_final_result_instruction(asked.system)
    assert isinstance(system, list)  # as blocks were given
    return asked._replace(tools=tools, system=system)


def answer_tool_of(options: CallOptions, native: Mapping[str, object]) -> AnswerTool | None:
    """The tool that carries the answer to a request; None where it comes as text. native: the request's body."""
    schema = wanted_schema(options)
    output, tools = native.get("output_config"), native.get("tools")
    if schema is None or (isinstance(output, Mapping) and "format" in output):
        return None
    last = tools[-1] if isinstance(tools, Sequence) and tools else None
    described = last.get("description") if isinstance(last, Mapping) else None
    if not is_described_as_answer(described):
        return None
    return AnswerTool(str(last["name"] if isinstance(last, Mapping) else ""), answer_schema(schema).key)


def _answer_tool(wanted: ResponseFormat, *, alone: bool, warnings: list[CallWarning]) -> Block:
    schema: JSONObject = wanted.schema or {}
    tool = build_final_result_tool(schema)
    warnings.extend(CallWarning("compatibility", "responseFormat", one) for one in answer_schema(schema).warnings)
    if alone:
        tool = {**tool, "name": ANSWER_TOOL_NAME, "description": ANSWER_TOOL_DESCRIPTION}
    if wanted.description is not None and wanted.description.strip():
        tool["description"] = f"{tool['description']} It is: {wanted.description.strip()}"
    return tool
