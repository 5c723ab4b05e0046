"""Builders of native messages and events, what a stream of them adds up to, and botocore's own validator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from neurolink_mw.protocol import (
    AssistantMessage,
    AssistantPart,
    CallOptions,
    CallWarning,
    FunctionTool,
    Message,
    StreamPart,
    TextOutput,
    TextPart,
    ToolCallPart,
    ToolMessage,
    ToolOutput,
    ToolResultPart,
    UserMessage,
    UserPart,
    check_grammar,
)
from neurolink_mw.providers.bedrock.errors import ErrorReader
from neurolink_mw.providers.bedrock.messages import NativeConversation, native_messages
from neurolink_mw.providers.bedrock.request import build_request
from neurolink_mw.providers.bedrock.stream import ConverseStream, NativeEvent

Json = dict[str, Any]

CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"
HAIKU = "anthropic.claude-3-haiku-20240307-v1:0"
NOVA = "amazon.nova-lite-v1:0"
MISTRAL = "mistral.mistral-large-2402-v1:0"
GPT_OSS = "openai.gpt-oss-20b-1:0"

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
POINT: Json = {"type": "default"}
LOOK = FunctionTool("look", {"type": "object", "properties": {"q": {"type": "string"}}}, "does look")

# ----------------------------------------------------------------------------------------------------------- prompts


def own(**options: Any) -> Json:
    return {"bedrock": options}


def own_metadata(metadata: Any) -> Json:
    """What an answer or a part says under our name."""
    under: Json = metadata["bedrock"]
    return under


def said(*parts: UserPart | str, **options: Any) -> UserMessage:
    return UserMessage(
        [TextPart(part) if isinstance(part, str) else part for part in parts], own(**options) if options else None
    )


def answered(*parts: AssistantPart | str) -> AssistantMessage:
    return AssistantMessage([TextPart(part) if isinstance(part, str) else part for part in parts])


def called(id: str = "t1", name: str = "look", input: Any = None, **options: Any) -> ToolCallPart:
    return ToolCallPart(
        id, name, {"q": "x"} if input is None else input, provider_options=own(**options) if options else None
    )


def result(id: str = "t1", output: ToolOutput | str = "found", name: str = "look", **options: Any) -> ToolResultPart:
    output = TextOutput(output) if isinstance(output, str) else output
    return ToolResultPart(id, name, output, own(**options) if options else None)


def told(*results: ToolResultPart) -> ToolMessage:
    return ToolMessage(results)


def options(*prompt: Message, **more: Any) -> CallOptions:
    return CallOptions(prompt or (said("Hi"),), **more)


# ------------------------------------------------------------------------------------------------------------ native


def converted(*prompt: Any, model_id: str = CLAUDE, **settings: Any) -> tuple[NativeConversation, list[CallWarning]]:
    warnings: list[CallWarning] = []
    native = native_messages(prompt, model_id, ErrorReader("bedrock", model_id), warnings, **settings)
    check_request({"modelId": model_id, "system": native.system, "messages": native.messages})
    return native, warnings


def messages_of(*prompt: Any, **settings: Any) -> list[Json]:
    return converted(*prompt, **settings)[0].messages


def request(call: CallOptions, model_id: str = CLAUDE, **settings: Any) -> tuple[Json, list[str | None]]:
    """The native request, checked, and the features that its warnings name."""
    native, warnings = build_request(model_id, call, **settings)
    check_request(native, stream=settings.get("stream", False))
    return native, [warning.feature for warning in warnings]


@cache
def service() -> ServiceModel:
    """botocore's description of the service."""
    return ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"), "bedrock-runtime")


def check_request(native: Mapping[str, object], *, stream: bool = False) -> None:
    """What boto3 does with the arguments before it sends anything."""
    shape = service().operation_model("ConverseStream" if stream else "Converse").input_shape
    report = ParamValidator().validate(dict(native), shape)
    assert not report.has_errors(), report.generate_report()


def members() -> set[str]:
    """The members of a Converse request, as botocore has them."""
    return set(service().operation_model("Converse").input_shape.members)


# ------------------------------------------------------------------------------------------------------------ events


def delta(piece: Json | str, index: int = 0) -> Json:
    piece = {"text": piece} if isinstance(piece, str) else piece
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": piece}}


def reasoned(index: int = 0, **piece: Any) -> Json:
    return delta({"reasoningContent": piece}, index)


def start(begin: Json, index: int = 0) -> Json:
    return {"contentBlockStart": {"contentBlockIndex": index, "start": begin}}


def tool_start(id: str = "t1", name: str = "look", index: int = 0, **more: Any) -> Json:
    return start({"toolUse": {"toolUseId": id, "name": name, **more}}, index)


def tool_delta(input: str, index: int = 0) -> Json:
    return delta({"toolUse": {"input": input}}, index)


def stop(index: int = 0) -> Json:
    return {"contentBlockStop": {"contentBlockIndex": index}}


def ended(reason: str = "end_turn", **more: Any) -> Json:
    return {"messageStop": {"stopReason": reason, **more}}


USAGE: Json = {"inputTokens": 4, "outputTokens": 6, "totalTokens": 10}
BEGIN: Json = {"messageStart": {"role": "assistant"}}
METADATA: Json = {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 9}}}


def parts_of(*events: NativeEvent, **settings: Any) -> list[StreamPart]:
    machine = ConverseStream(**settings)
    parts = [*machine.start(), *(part for event in events for part in machine.feed(event)), *machine.finish()]
    check_grammar(parts)
    return parts


def kinds(parts: Iterable[StreamPart]) -> list[str]:
    """The types of the parts after the two that open every stream."""
    return [part.type for part in list(parts)[2:]]


def whole(*blocks: Json, reason: str = "end_turn", **more: Any) -> Json:
    """What `converse` returns."""
    message = {"role": "assistant", "content": list(blocks)}
    return {"output": {"message": message}, "stopReason": reason, "usage": USAGE, "metrics": {"latencyMs": 9}, **more}
