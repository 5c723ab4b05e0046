"""What a caller may give as a prompt, as call options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypedDict, cast, get_args

from ..errors import ConfigError
from ..loop import to_v3_tool_choice
from ..protocol import CallOptions, JSONObject, Message, SystemMessage, ToolDefinition, from_json, user

MessageLike: TypeAlias = "Message | Mapping[str, object]"
Prompt: TypeAlias = "str | Sequence[MessageLike] | Mapping[str, object] | CallOptions"
"""A text, messages, or V3 JSON: messages as JSON, or whole call options as JSON."""


class CallKeywords(TypedDict, total=False):
    """Fields of `CallOptions` as keyword arguments. tool_choice may be a word: "auto", "none", "required"."""

    max_output_tokens: int | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    presence_penalty: float | None
    frequency_penalty: float | None
    seed: int | None
    stop_sequences: Sequence[str] | None
    tool_choice: object
    provider_tools: Sequence[ToolDefinition]
    reasoning: str | None
    include_raw_chunks: bool | None
    headers: Mapping[str, str | None] | None
    provider_options: Mapping[str, JSONObject] | None


CALL_KEYWORDS = frozenset(CallKeywords.__annotations__)


def call_options(
    prompt: Prompt | None,
    *,
    system: str | None,
    messages: Sequence[MessageLike],
    metadata: JSONObject | None,
    given: Mapping[str, Any],
) -> CallOptions:
    """The options of a turn. ConfigError for a prompt that is none.

    messages come first, then the prompt; `system` takes the place of system messages at their beginning, so that a
    conversation can be continued under the same or another one.
    """
    options = _options(prompt) if isinstance(prompt, CallOptions | Mapping) else CallOptions(_messages(prompt))
    history = (*_parsed(messages, "messages"), *options.prompt)
    if system is not None:
        at = next((index for index, one in enumerate(history) if not isinstance(one, SystemMessage)), len(history))
        history = (SystemMessage(system), *history[at:])
    if all(isinstance(one, SystemMessage) for one in history):
        raise ConfigError("there is nothing to answer: give a prompt, or messages that end with what the user said")
    changes: dict[str, Any] = {name: value for name, value in given.items() if name in CALL_KEYWORDS}
    if metadata is not None:
        changes["metadata"] = metadata
    if "provider_tools" in changes:
        changes["tools"] = (*(options.tools or ()), *changes.pop("provider_tools"))
    if "tool_choice" in changes:
        changes["tool_choice"] = _tool_choice(changes["tool_choice"])
    return options.replace(prompt=history, **changes)


def _tool_choice(choice: object) -> object:
    found = to_v3_tool_choice(choice)
    if found is None and choice is not None:
        raise ConfigError(
            'tool_choice is "auto", "none", "required", or {"type": "tool", "toolName": name} for one tool'
        )
    return found


def _options(prompt: CallOptions | Mapping[str, object]) -> CallOptions:
    return prompt if isinstance(prompt, CallOptions) else from_json(CallOptions, prompt)


def _messages(prompt: object) -> tuple[Message, ...]:
    if prompt is None:
        return ()
    if isinstance(prompt, str):
        if not prompt.strip():
            raise ConfigError("the prompt is empty")
        return (user(prompt),)
    return _parsed(prompt, "prompt")


def _parsed(given: object, where: str) -> tuple[Message, ...]:
    if given == ():
        return ()
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise ConfigError(f"{where} is a list of messages, not {type(given).__name__}")
    return tuple(_message(one, f"{where}[{index}]") for index, one in enumerate(given))


def _message(one: object, where: str) -> Message:
    if isinstance(one, get_args(Message)):
        return cast(Message, one)
    if not isinstance(one, Mapping):
        raise ConfigError(f"{where} is a message or its JSON, not {type(one).__name__}")
    content = one.get("content")
    if isinstance(content, str) and one.get("role") in ("user", "assistant"):  # as many write a text
        one = {**one, "content": [{"type": "text", "text": content}]}
    message: Message = from_json(Message, one)
    return message
