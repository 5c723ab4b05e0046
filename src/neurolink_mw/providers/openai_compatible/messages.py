"""V3 to native: the messages of a prompt. Pure.

Messages are not merged and not reordered: servers of this format take any sequence of roles. What the format has no
place for is refused by its place in the prompt where the model would miss it, and left out with a warning where the
model has already answered.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from ...protocol import (
    JSON,
    AssistantMessage,
    CallWarning,
    ContentOutput,
    ErrorJsonOutput,
    ErrorTextOutput,
    ExecutionDenied,
    FilePart,
    JsonOutput,
    Message,
    ReasoningPart,
    SystemMessage,
    TextOutput,
    TextPart,
    ToolApprovalResponsePart,
    ToolCallPart,
    ToolMessage,
    ToolOutput,
    ToolResultPart,
    Url,
    UserMessage,
    UserPart,
    to_json,
)
from .errors import ErrorReader
from .options import thought_signature, wire_extras

_ALLOWED = "text/*, image/*, audio/wav, audio/mpeg and application/pdf"
_AUDIO: Final = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}


def native_messages(
    prompt: Sequence[Message], provider: str, errors: ErrorReader, warnings: list[CallWarning]
) -> list[JSON]:
    """The messages of a prompt, in order; `warnings` gets what was left out.

    Raises InvalidRequestError that names the place for a part that cannot be sent.
    """
    messages: list[JSON] = []
    for index, message in enumerate(prompt):
        place = f"prompt[{index}]"
        if not isinstance(message, SystemMessage | UserMessage | AssistantMessage | ToolMessage):
            raise errors.refused(
                f"{place}: expected a system, user, assistant or tool message, not {type(message).__name__}"
            )
        extras = wire_extras(message.provider_options, provider)
        if isinstance(message, SystemMessage):
            messages.append({"role": "system", "content": message.content, **extras})
        elif isinstance(message, UserMessage):
            messages.append({"role": "user", **_user_content(message, place, provider, errors), **extras})
        elif isinstance(message, AssistantMessage):
            messages.append({**_assistant(message, place, provider, errors, warnings), **extras})
        else:
            messages.extend(_tool_results(message, place, provider, errors))
    return messages


def _user_content(message: UserMessage, place: str, provider: str, errors: ErrorReader) -> dict[str, JSON]:
    if len(message.content) == 1 and isinstance(only := message.content[0], TextPart):
        return {"content": only.text, **wire_extras(only.provider_options, provider)}
    parts: list[JSON] = []
    for index, part in enumerate(message.content):
        native = _user_part(part, f"{place}.content[{index}]", errors)
        parts.append({**native, **wire_extras(getattr(part, "provider_options", None), provider)})
    return {"content": parts}


def _user_part(part: UserPart, place: str, errors: ErrorReader) -> dict[str, JSON]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if not isinstance(part, FilePart):
        raise errors.refused(f"{place}: a user message carries text and files here, not a part of type {part.type!r}")
    media_type = part.media_type.partition(";")[0].strip().lower()
    if media_type == "image" or media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": _image_address(part, media_type)}}
    if isinstance(part.data, Url):
        raise errors.refused(
            f"{place}: a file of type {part.media_type!r} is sent as bytes here, never as an address: download it first"
        )
    if media_type in _AUDIO:
        return {"type": "input_audio", "input_audio": {"data": _base64(part.data), "format": _AUDIO[media_type]}}
    if media_type == "application/pdf":
        # A fixed name: a random one would spoil the provider's prompt cache.
        data = f"data:application/pdf;base64,{_base64(part.data)}"
        return {"type": "file", "file": {"filename": part.filename or "document.pdf", "file_data": data}}
    if media_type == "text" or media_type.startswith("text/"):
        try:
            return {"type": "text", "text": part.data.decode("utf-8-sig")}
        except UnicodeDecodeError:
            raise errors.refused(f"{place}: a text file is sent as text, and this one is not UTF-8") from None
    raise errors.refused(f"{place}: unsupported media type {part.media_type!r}; this format carries {_ALLOWED}")


def _image_address(part: FilePart, media_type: str) -> str:
    if isinstance(part.data, Url):
        return str(part.data)
    if media_type in ("image", "image/*"):
        media_type = _sniffed(part.data)
    return f"data:{media_type};base64,{_base64(part.data)}"


def _sniffed(data: bytes) -> str:
    """The type of an image that the caller calls `image/*`. Each test covers a whole header, not only its magic."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
        return "image/png"
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 13:
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "image/jpeg"


def _assistant(
    message: AssistantMessage, place: str, provider: str, errors: ErrorReader, warnings: list[CallWarning]
) -> dict[str, JSON]:
    text, reasoning, calls = [], [], list[JSON]()
    for index, part in enumerate(message.content):
        if isinstance(part, TextPart):
            text.append(part.text)
        elif isinstance(part, ReasoningPart):
            reasoning.append(part.text)
        elif isinstance(part, ToolCallPart) and not part.provider_executed:
            calls.append(_tool_call(part, f"{place}.content[{index}]", provider, errors))
        else:
            # A call that a provider ran itself would lack its tool message here, which servers refuse.
            details = f"{place}.content[{index}] has no place in an assistant message of this format and was left out"
            warnings.append(CallWarning("unsupported", f"{part.type} part in an assistant message", details))
    joined = "".join(text)
    native: dict[str, JSON] = {"role": "assistant", "content": (joined or None) if calls else joined}
    if reasoning:
        native["reasoning_content"] = "".join(reasoning)
    if calls:
        native["tool_calls"] = calls
    return native


def _tool_call(part: ToolCallPart, place: str, provider: str, errors: ErrorReader) -> dict[str, JSON]:
    # A string is quoted once more: it is a model's broken JSON, replayed as the value that it was kept as.
    function: dict[str, JSON] = {"name": part.tool_name, "arguments": json_text(part.input, f"{place}.input", errors)}
    native: dict[str, JSON] = {"id": part.tool_call_id, "type": "function", "function": function}
    signature = thought_signature(part.provider_options, provider)
    if signature is not None:
        native["extra_content"] = {"google": {"thought_signature": signature}}
    return {**native, **wire_extras(part.provider_options, provider)}


def _tool_results(message: ToolMessage, place: str, provider: str, errors: ErrorReader) -> list[JSON]:
    natives: list[JSON] = []
    for index, part in enumerate(message.content):
        where = f"{place}.content[{index}]"
        if isinstance(part, ToolResultPart):
            native = {
                "role": "tool",
                "tool_call_id": part.tool_call_id,
                "content": _output_text(part.output, where, errors),
            }
            natives.append({**native, **wire_extras(part.provider_options, provider)})
        elif not isinstance(part, ToolApprovalResponsePart):  # an approval is between the caller and the loop
            raise errors.refused(f"{where}: a tool message carries tool results, not a part of type {part.type!r}")
    return natives


def _output_text(output: ToolOutput, place: str, errors: ErrorReader) -> str:
    if isinstance(output, TextOutput | ErrorTextOutput):
        return output.value
    if isinstance(output, JsonOutput | ErrorJsonOutput):
        return json_text(output.value, f"{place}.output", errors)
    if isinstance(output, ContentOutput):
        return json_text(to_json(output.value), f"{place}.output", errors)
    if isinstance(output, ExecutionDenied):
        return output.reason if output.reason is not None else "Tool execution denied."
    raise errors.refused(f"{place}.output: unknown type {output.type!r}")


def json_text(data: object, place: str, errors: ErrorReader) -> str:
    """Compact JSON text. Raises InvalidRequestError that names the place for what has no JSON form."""
    return json_bytes(data, place, errors).decode()


def json_bytes(data: object, place: str, errors: ErrorReader) -> bytes:
    """The same as UTF-8. Lone surrogates and very large numbers, which the fast encoder refuses, are written too."""
    try:
        return orjson.dumps(data, default=_plain)
    except TypeError:
        pass
    try:
        return json.dumps(data, separators=(",", ":"), default=_plain).encode()
    except (TypeError, ValueError):
        raise errors.refused(f"{place}: holds a value that has no JSON form") from None


def _plain(item: object) -> object:
    if isinstance(item, Mapping):
        return dict(item)
    if isinstance(item, bytes):
        return _base64(item)
    raise TypeError


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
