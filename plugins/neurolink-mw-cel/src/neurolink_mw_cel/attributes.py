"""What a rule may look at: each attribute of a request, with the name and the type that it has in an expression."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from neurolink_mw import CallOptions
from neurolink_mw.protocol import FilePart, FunctionTool, ProviderTool, UnknownPart
from neurolink_mw.roles import Request

if TYPE_CHECKING:
    import cel

_PLAIN_PARAMS = (
    *("max_output_tokens", "temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty"),
    *("seed", "stop_sequences", "reasoning", "include_raw_chunks"),
)
PARAMS = (*_PLAIN_PARAMS, "response_format")
"""The keys that `params` may have. One that the caller did not set is absent."""


def _params(options: CallOptions) -> dict[str, object]:
    params = {name: value for name in _PLAIN_PARAMS if (value := getattr(options, name)) is not None}
    if options.response_format is not None:
        params["response_format"] = options.response_format.type
    return params


def _tool_names(options: CallOptions) -> list[str]:
    return [_name_of(tool) for tool in options.tools or ()]


def _name_of(tool: FunctionTool | ProviderTool | UnknownPart) -> str:
    """A tool of a type that is not known yet is seen too, so that a list of allowed names does not let it pass."""
    return str(tool.data.get("name", "")) if isinstance(tool, UnknownPart) else tool.name


def _files(options: CallOptions) -> Iterator[str]:
    for message in options.prompt:
        if message.role in ("user", "assistant"):
            yield from (part.media_type for part in message.content if isinstance(part, FilePart))


READERS: Mapping[str, Callable[[Request], object]] = MappingProxyType(
    {
        "provider": lambda request: request.provider,
        "model": lambda request: request.model_id,
        "kind": lambda request: request.kind,
        "text": lambda request: request.text,
        "text_length": lambda request: len(request.text),
        "messages": lambda request: len(request.options.prompt),
        "files": lambda request: list(_files(request.options)),
        "tools": lambda request: _tool_names(request.options),
        "provider_tools": lambda request: [
            tool.id for tool in request.options.tools or () if isinstance(tool, ProviderTool)
        ],
        "tool_choice": lambda request: (
            request.options.tool_choice.type if request.options.tool_choice is not None else "auto"
        ),
        "chosen_tool": lambda request: (
            (request.options.tool_choice.tool_name or "") if request.options.tool_choice is not None else ""
        ),
        "params": lambda request: _params(request.options),
        "metadata": lambda request: request.metadata,
        "provider_options": lambda request: request.options.provider_options or {},
    }
)

OPEN = frozenset({"metadata", "provider_options"})
"""Attributes whose keys are the caller's own, so that nothing about them is known before a call."""

SAMPLE: Mapping[str, object] = MappingProxyType(
    {
        **dict.fromkeys(("provider", "model", "text", "chosen_tool"), "a"),
        "kind": "generate",
        "tool_choice": "auto",
        **dict.fromkeys(("text_length", "messages"), 1),
        **{name: ["a"] for name in ("files", "tools", "provider_tools")},
        "params": {
            **dict.fromkeys(("max_output_tokens", "top_k", "seed"), 1),
            **dict.fromkeys(("temperature", "top_p", "presence_penalty", "frequency_penalty"), 1.0),
            **dict.fromkeys(("reasoning", "response_format"), "a"),
            "stop_sequences": ["a"],
            "include_raw_chunks": False,
        },
        "metadata": {},
        "provider_options": {},
    }
)
"""A value of the right type for each, to try expressions with."""


def context_of(request: Request, wanted: Collection[str]) -> cel.Context:
    """The attributes of a request that rules look at. One that CEL cannot hold (a text with half a character) is left
    out: the rules that need it then cannot be evaluated, and all others can."""
    import cel  # slow to import (its command comes with it), so not before there is a rule

    context = cel.Context()
    for name in wanted:
        try:
            context.add_variable(name, READERS[name](request))
        except ValueError:
            continue
    return context
