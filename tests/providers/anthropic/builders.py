"""Builders of prompts, and of the native requests that are made of them: each is checked against the SDK's types."""

from __future__ import annotations

from typing import Any

from neurolink_mw.protocol import (
    AssistantMessage,
    AssistantPart,
    CallOptions,
    CallWarning,
    FunctionTool,
    Message,
    ProviderTool,
    ReasoningPart,
    ResponseFormat,
    SystemMessage,
    TextOutput,
    TextPart,
    ToolCallPart,
    ToolMessage,
    ToolOutput,
    ToolResultPart,
    UserMessage,
    UserPart,
)
from neurolink_mw.providers.anthropic.request import build_request

from .sdk_types import check_request

Json = dict[str, Any]

HAIKU = "claude-haiku-4-5"
SONNET_4 = "claude-sonnet-4-20250514"
SONNET_46 = "claude-sonnet-4-6"
OPUS_5 = "claude-opus-5"
OPUS_55 = "claude-opus-5-5"

PNG = b"\x89PNG\r\n\x1a\n"
MARK: Json = {"type": "ephemeral"}
LOOK = FunctionTool("look", {"type": "object", "properties": {"q": {"type": "string"}}}, "does look")
CITY: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FINDER = ProviderTool("anthropic.web_search_20250305", "finder")
RUNNER = ProviderTool("anthropic.code_execution_20250825", "runner")


def own(**options: Any) -> Json:
    return {"anthropic": options}


def _own(options: Json) -> Json | None:
    return own(**options) if options else None


def said(*parts: UserPart | str, **options: Any) -> UserMessage:
    return UserMessage([TextPart(part) if isinstance(part, str) else part for part in parts], _own(options))


def answered(*parts: AssistantPart | str, **options: Any) -> AssistantMessage:
    return AssistantMessage([TextPart(part) if isinstance(part, str) else part for part in parts], _own(options))


def instructed(text: str, **options: Any) -> SystemMessage:
    return SystemMessage(text, _own(options))


def thought(text: str = "hm", **options: Any) -> ReasoningPart:
    return ReasoningPart(text, _own(options))


def called(
    id: str = "c1", name: str = "look", input: Any = None, *, by_server: bool | None = None, **options: Any
) -> ToolCallPart:
    return ToolCallPart(id, name, {"q": "x"} if input is None else input, by_server, _own(options))


def result(id: str = "c1", output: ToolOutput | str = "found", name: str = "look", **options: Any) -> ToolResultPart:
    return ToolResultPart(id, name, TextOutput(output) if isinstance(output, str) else output, _own(options))


def told(*results: ToolResultPart, **options: Any) -> ToolMessage:
    return ToolMessage(results, _own(options))


def options(*prompt: Message, **more: Any) -> CallOptions:
    return CallOptions(prompt or (said("Hi"),), **more)


def as_json(schema: Any = None, **more: Any) -> ResponseFormat:
    return ResponseFormat("json", CITY if schema is None else schema, **more)


def request(call: CallOptions, model_id: str = HAIKU, **settings: Any) -> tuple[Json, list[str | None]]:
    """The native request, checked, and the features that its warnings name."""
    native, warnings = warned(call, model_id, **settings)
    return native, [warning.feature for warning in warnings]


def warned(call: CallOptions, model_id: str = HAIKU, **settings: Any) -> tuple[Json, tuple[CallWarning, ...]]:
    native, warnings = build_request(model_id, call, **settings)
    check_request(native)
    return native, warnings


def quiet(call: CallOptions, model_id: str = HAIKU, **settings: Any) -> Json:
    """The native request of a call that nothing had to be left out of."""
    native, warnings = warned(call, model_id, **settings)
    assert not warnings, warnings
    return native


def messages_of(*prompt: Message, **more: Any) -> list[Json]:
    messages: list[Json] = quiet(options(*prompt, **more))["messages"]
    return messages


def content_of(*parts: UserPart | str) -> list[Json]:
    """The blocks of one user message."""
    content: list[Json] = messages_of(said(*parts))[0]["content"]
    return content
