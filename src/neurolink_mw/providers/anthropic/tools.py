"""V3 to native: tools, and the choice among them. Pure.

Options of a tool, in its `provider_options["anthropic"]`: `cacheControl`, `deferLoading`, `allowedCallers`,
`eagerInputStreaming`; those of one that Anthropic defines are in its `args`.
"""

from __future__ import annotations

from typing import Final

from ...protocol import CallOptions, CallWarning, FunctionTool, ProviderTool
from ..common.json_values import plain
from ..common.tools import checked_choice, object_schema
from .cache import CacheMarks
from .errors import ErrorReader
from .limits import Capabilities
from .native_values import Block
from .options import ProviderOptions, part_options
from .provider_tools import provider_tool_block
from .tool_names import ToolNames, native_name

_OPTIONS: Final = {
    "allowedCallers": "allowed_callers",
    "deferLoading": "defer_loading",
    "eagerInputStreaming": "eager_input_streaming",
}


def native_tools(
    options: CallOptions,
    own: ProviderOptions,
    capabilities: Capabilities,
    marks: CacheMarks,
    errors: ErrorReader,
    warnings: list[CallWarning],
    *,
    stream: bool = False,
) -> list[Block]:
    """The tools of a call that the API has a form for. stream: inputs are to be streamed as the model writes them."""
    tools: list[Block] = []
    for index, tool in enumerate(options.tools or ()):
        place = f"tools[{index}]"
        if isinstance(tool, FunctionTool):
            native = _function(tool, place, capabilities, errors, warnings)
            if stream and own.tool_streaming:
                native.setdefault("eager_input_streaming", True)
            marks.set_on(native, place, tool.provider_options)
            tools.append(native)
        elif isinstance(tool, ProviderTool):
            block = provider_tool_block(tool, place, errors, warnings)
            if block is not None:
                marks.set_on(block, place)
                tools.append(block)
        else:
            details = f"{place} was left out: the API does not have it"
            warnings.append(CallWarning("unsupported", f"tool of type {tool.type}", details))
    return tools


def native_choice(
    options: CallOptions,
    own: ProviderOptions,
    names: ToolNames,
    errors: ErrorReader,
    warnings: list[CallWarning],
    *,
    has_tools: bool,
    can_force: bool = True,
) -> Block | None:
    """The member `tool_choice`; None where nothing is to be said. can_force: not so where the model was told to
    think, and with models that refuse it; the choice is then left to the model, with a warning.

    Raises InvalidRequestError for a choice that names no tool.
    """
    choice = checked_choice(options.tool_choice, lambda name: names.takes(names.native(name)), errors)
    if not has_tools or (choice is None and own.parallel is None):
        return None
    native: Block = {"type": "auto"}
    if choice is not None and choice.type == "none":
        return {"type": "none"}
    if choice is not None and choice.type != "auto":
        if not can_force:
            details = f"sent as auto instead of {choice.type}: this model takes no forced choice, at least now"
            warnings.append(CallWarning("unsupported", "toolChoice", details))
        elif choice.type == "required":
            native = {"type": "any"}
        else:
            native = {"type": "tool", "name": names.native(choice.tool_name or "")}
    if own.parallel is not None:
        native["disable_parallel_tool_use"] = not own.parallel
    return native


def _function(
    tool: FunctionTool, place: str, capabilities: Capabilities, errors: ErrorReader, warnings: list[CallWarning]
) -> Block:
    native: Block = {"name": native_name(tool.name)}
    if tool.description is not None and tool.description.strip():
        native["description"] = tool.description
    native["input_schema"] = object_schema(tool.input_schema, f"{place}.input_schema", errors)
    if tool.input_examples:
        native["input_examples"] = [
            plain(example.input, f"{place}.input_examples[{number}]", errors)
            for number, example in enumerate(tool.input_examples)
        ]
    if tool.strict is not None:
        if capabilities.strict:
            native["strict"] = tool.strict
        elif tool.strict:
            details = f"{place} was sent without it: this model does not take it"
            warnings.append(CallWarning("unsupported", "strict", details))
    own = part_options(tool.provider_options)
    for option, member in _OPTIONS.items():
        if (item := own.get(option)) is not None:
            native[member] = plain(item, place, errors)
    for option in sorted(own.keys() - _OPTIONS.keys() - {"cacheControl", "cache_control"}):
        details = f"{place}: {option!r} is no option of a tool and was left out"
        warnings.append(CallWarning("unsupported", option, details))
    return native
