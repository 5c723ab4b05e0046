"""V3 to native: a call as the body of a chat-completions request. Pure.

The format is OpenAI's POST /chat/completions, as its API reference describes it and other servers copy it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from ...protocol import JSON, CallOptions, CallWarning, FunctionTool, JSONObject, ProviderTool
from ..common.tools import checked_choice
from .errors import ErrorReader
from .messages import native_messages
from .options import ProviderOptions, read_provider_options

DEFAULT_PROVIDER: Final = "openai-compatible"

# Native parameter by V3 option; `repair.py` reads it the other way round.
SETTINGS: Final = {
    "max_output_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "seed": "seed",
}


def build_request(
    model_id: str,
    options: CallOptions,
    *,
    provider: str = DEFAULT_PROVIDER,
    stream: bool = False,
    include_usage: bool = True,
    supports_structured_outputs: bool = False,
    extra_body: JSONObject | None = None,
) -> tuple[dict[str, JSON], tuple[CallWarning, ...]]:
    """The body of a request, and what of the call it could not express.

    provider: the name that provider options are looked up under. stream: ask for events; include_usage: and for the
    tokens they cost. supports_structured_outputs: the server knows `json_schema`. extra_body: merged over everything
    but `stream`, then the call's own `extraBody`; a null in it is sent.

    None means unset; 0, "" and [] are sent. `options.metadata` and `options.context` never are. Raises
    InvalidRequestError that names the place, as in `prompt[0].content[1]`, for what this format cannot carry.
    """
    errors = ErrorReader(provider, model_id)
    own = read_provider_options(options, provider, errors)
    warnings: list[CallWarning] = []
    native: dict[str, JSON] = {"model": model_id}
    for name, parameter in SETTINGS.items():
        setting = getattr(options, name)
        if setting is not None:
            native[parameter] = setting
    if options.stop_sequences is not None:
        native["stop"] = list(options.stop_sequences)
    if options.top_k is not None:
        warnings.append(CallWarning("unsupported", "topK", "chat completions have no top_k"))
    if options.reasoning is not None and options.reasoning != "provider-default":
        native["reasoning_effort"] = options.reasoning
    response_format = _response_format(options, own, supports_structured_outputs, warnings)
    if response_format is not None:
        native["response_format"] = response_format
    native.update(own.fields)
    native["messages"] = native_messages(options.prompt, provider, errors, warnings)
    tools = _tools(options, warnings)
    if tools:
        native["tools"] = tools
        if (choice := _tool_choice(options, errors)) is not None:
            native["tool_choice"] = choice
    # Without this a stream says nothing of its cost. It is part of OpenAI's format; `repair.py` takes it back where a
    # server refuses it, so asking costs those servers one request and everyone else nothing.
    if stream and include_usage:
        native["stream_options"] = {"include_usage": True}
    native.update(extra_body or {})
    native.update(own.extra_body)
    if isinstance(many := native.get("n"), int) and many > 1:
        raise errors.refused("n: a call has one answer; make several calls for several answers")
    for name, number in native.items():
        if isinstance(number, float) and not math.isfinite(number):
            raise errors.refused(f"{name}: {number} is no number that JSON can hold")
    # Which of the two calls this is, the caller has said by making it.
    if stream:
        native["stream"] = True
    else:
        native.pop("stream", None)
        native.pop("stream_options", None)
    return native, tuple(warnings)


def _response_format(
    options: CallOptions, own: ProviderOptions, supported: bool, warnings: list[CallWarning]
) -> dict[str, JSON] | None:
    wanted = options.response_format
    if wanted is None or wanted.type != "json":
        return None
    if wanted.schema is None:
        return {"type": "json_object"}
    if not supported:
        details = "sent as json_object: set supports_structured_outputs=True where the server knows json_schema"
        warnings.append(CallWarning("unsupported", "responseFormat", details))
        return {"type": "json_object"}
    schema: dict[str, JSON] = {"schema": wanted.schema, "strict": own.strict, "name": wanted.name or "response"}
    if wanted.description is not None:
        schema["description"] = wanted.description
    return {"type": "json_schema", "json_schema": schema}


def _tools(options: CallOptions, warnings: list[CallWarning]) -> list[JSON]:
    tools: list[JSON] = []
    for tool in options.tools or ():
        if isinstance(tool, FunctionTool):
            function: dict[str, JSON] = {"name": tool.name}
            if tool.description is not None:
                function["description"] = tool.description
            function["parameters"] = tool.input_schema
            if tool.strict is not None:
                function["strict"] = tool.strict
            tools.append({"type": "function", "function": function})
        elif isinstance(tool, ProviderTool):
            warnings.append(CallWarning("unsupported", f"provider-defined tool {tool.id}"))
        else:
            warnings.append(CallWarning("unsupported", f"tool of type {tool.type}"))
    if any(isinstance(tool, FunctionTool) and tool.input_examples for tool in options.tools or ()):
        details = "left out: the middleware add_tool_input_examples writes them into the tools' descriptions"
        warnings.append(CallWarning("unsupported", "inputExamples", details))
    return tools


def _tool_choice(options: CallOptions, errors: ErrorReader) -> JSON:
    declared = {tool.name for tool in options.tools or () if isinstance(tool, FunctionTool)}
    choice = checked_choice(options.tool_choice, declared.__contains__, errors)
    if choice is None or choice.type != "tool":
        return None if choice is None else choice.type
    named: Mapping[str, JSON] = {"name": choice.tool_name}
    return {"type": "function", "function": named}
