"""The bridge between Bedrock's own shapes and the common protocol: conversations, tool schemas, and the chunks of an
agentic loop. What crosses it crosses whole, or is named: by a warning, or by `BridgeShapeError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...errors import BridgeShapeError, InvalidRequestError, ProtocolError
from ...protocol import JSON, CallOptions, CallWarning, Message, from_json
from .capabilities import capabilities_of
from .chunks import bedrock_chunks_to_v3_stream, bedrock_v3_stream_to_chunks
from .errors import ErrorReader
from .history import prompt_of
from .messages import native_messages
from .request import UNSENT

__all__ = [
    "BedrockConversation",
    "bedrock_chunks_to_v3_stream",
    "bedrock_conversation_from_v3_prompt",
    "bedrock_v3_stream_to_chunks",
    "build_v3_prompt_from_bedrock",
    "is_text_only_bedrock_conversation",
    "unsent_bedrock_middleware_options",
    "unwrap_bedrock_tool_input_schema",
]


@dataclass(frozen=True)
class BedrockConversation:
    """A prompt in Converse's shape. system: the texts of the system blocks, a blank line between them; system_blocks:
    the blocks, cache points included. conversation: the messages. warnings: what could not cross as it was."""

    system: str = field(repr=False)
    system_blocks: list[dict[str, object]] = field(repr=False)
    conversation: list[dict[str, object]] = field(repr=False)
    warnings: tuple[CallWarning, ...] = ()


def build_v3_prompt_from_bedrock(
    system_prompt: str | Sequence[Mapping[str, object]], conversation: Sequence[Mapping[str, object]]
) -> list[Message]:
    """A Converse conversation as a V3 prompt, the system prompt first.

    system_prompt: a text (blank means none), or Converse system blocks. Every kind of block crosses; what V3 has no
    place for travels in the part's `provider_options["bedrock"]`. Tool results get the name of the nearest tool use
    before them with their id. BridgeShapeError, which names the place, for what is no Converse conversation.
    """
    return list(prompt_of(system_prompt, conversation))


def bedrock_conversation_from_v3_prompt(
    prompt: Sequence[Message | Mapping[str, object]], model_id: str | None = None
) -> BedrockConversation:
    """The inverse of `build_v3_prompt_from_bedrock`, for what a middleware made of the prompt.

    prompt: messages, or their JSON. It follows the rules of a request: results stand first and in the order of their
    calls, messages of one role are joined, blank texts are left out. BridgeShapeError, which names the place, for what
    Converse cannot carry, such as a tool call without a result.
    """
    warnings: list[CallWarning] = []
    messages = [_message(one, number) for number, one in enumerate(prompt)]
    try:
        native = native_messages(messages, model_id, ErrorReader("bedrock", model_id), warnings)
    except InvalidRequestError as error:
        raise BridgeShapeError(str(error)) from None
    texts = [text for block in native.system if isinstance(text := block.get("text"), str)]
    return BedrockConversation("\n\n".join(texts), native.system, native.messages, tuple(warnings))


def _message(given: Message | Mapping[str, object], number: int) -> Message:
    if not isinstance(given, Mapping):
        return given
    try:
        return from_json(Message, given)
    except ProtocolError as error:
        raise BridgeShapeError(f"prompt[{number}].{error}") from None


def unsent_bedrock_middleware_options(
    params: CallOptions | Mapping[str, object], model_id: str | None = None
) -> list[str]:
    """Names of the options that are set and that no Converse request can carry, in snake_case.

    params: call options, or their JSON. 0 and False count as set, None and empty lists do not. model_id: `top_k` and
    `reasoning` cross for some models alone; without an id they are not named. A request that carries what is named has
    a warning for each.
    """

    def is_set(name: str) -> bool:
        given = _given(params, name)
        return given is not None and given not in ([], (), {})

    unsent = [name for name in UNSENT if is_set(name)]
    if model_id is not None:
        capabilities = capabilities_of(model_id)
        if is_set("top_k") and not capabilities.top_k:
            unsent.append("top_k")
        level = _given(params, "reasoning")
        asks = level is not None and level not in ("none", "provider-default")
        if asks and (capabilities.thinking is None or not capabilities.reasons):
            unsent.append("reasoning")
    return sorted(unsent)


def _given(params: CallOptions | Mapping[str, object], name: str) -> object:
    return getattr(params, name) if isinstance(params, CallOptions) else params.get(_camel(name), params.get(name))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def unwrap_bedrock_tool_input_schema(input_schema: Mapping[str, JSON] | None) -> JSON:
    """The JSON Schema in a tool's `inputSchema`, which is `{"json": schema}` on the wire. A bare schema is returned as
    it is, None as None."""
    if input_schema is not None and set(input_schema) == {"json"}:
        return input_schema["json"]
    return input_schema


def is_text_only_bedrock_conversation(conversation: Sequence[Mapping[str, object]]) -> bool:
    """Whether every block of every message is plain text. The bridge itself does not ask: all kinds cross."""
    contents = (message.get("content") if isinstance(message, Mapping) else None for message in conversation)
    return all(
        isinstance(block, Mapping) and set(block) == {"text"} and isinstance(block["text"], str)
        for content in contents
        for block in (content if isinstance(content, Sequence) else (None,))
    )
