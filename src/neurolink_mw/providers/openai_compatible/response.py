"""Native to V3: the body of a chat completion as an answer. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...protocol import (
    JSON,
    CallWarning,
    Content,
    GenerateResult,
    JSONObject,
    Reasoning,
    RequestInfo,
    ResponseInfo,
    Text,
    ToolCall,
)
from ..common.readings import words
from .errors import ErrorReader, error_object
from .readings import (
    CallIds,
    SourceReader,
    argument_text,
    audio_file,
    audio_type,
    finish_reason,
    images,
    provider_metadata,
    signature_metadata,
    text_pieces,
    timestamp,
    usage,
)
from .request import DEFAULT_PROVIDER


def parse_response(
    native: object,
    *,
    provider: str = DEFAULT_PROVIDER,
    model_id: str | None = None,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    warnings: Sequence[CallWarning] = (),
    request_body: JSONObject | None = None,
    errors: ErrorReader | None = None,
) -> GenerateResult:
    """The answer that the body of a chat completion holds: its first choice.

    provider: the name that metadata is filed under. status, headers: of the HTTP answer. warnings, request_body: from
    `build_request`. errors: makes the errors, where secrets must be kept out of them.

    Raises ProviderError, or what an error object in the body stands for, when this is no whole answer: not an object,
    no choice, no message, a tool call without a name.
    """
    errors = errors or ErrorReader(provider, model_id)
    failure = error_object(native)
    if failure is not None:
        raise errors.of_object(failure, status=status, headers=headers)
    choices = native.get("choices") if isinstance(native, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(native, Mapping) or not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        raise errors.malformed("the answer is not a chat completion", native, status=status, headers=headers)
    if choice.get("error"):
        raise errors.of_object(choice, status=status, headers=headers)
    for name, kinds in (("content", str | list), ("tool_calls", list)):
        if message.get(name) is not None and not isinstance(message[name], kinds):
            # Read as if it were absent, it would make an empty answer that looks whole.
            what = f"{name} of the answer is of type {type(message[name]).__name__}"
            raise errors.malformed(what, native, status=status, headers=headers)
    refusal = words(message.get("refusal"))
    try:
        content = _content(message, native, provider, request_body, errors)
    except _NamelessCall as call:
        what = f"{call} of the answer names no function"
        raise errors.malformed(what, native, status=status, headers=headers) from None
    return GenerateResult(
        content,
        finish_reason(choice.get("finish_reason"), refused=refusal is not None),
        usage(native.get("usage")),
        warnings,
        provider_metadata(provider, native.get("usage"), refusal),
        RequestInfo(request_body) if request_body is not None else None,
        ResponseInfo(
            words(native.get("id")), timestamp(native.get("created")), words(native.get("model")), headers, native
        ),
    )


class _NamelessCall(Exception):
    """A tool call that names no function; says which."""


def _content(
    message: Mapping[str, JSON],
    native: Mapping[str, JSON],
    provider: str,
    request_body: JSONObject | None,
    errors: ErrorReader,
) -> list[Content]:
    reasoning: list[str] = []
    text: list[str] = []
    for kind, piece in text_pieces(message):
        (reasoning if kind == "reasoning" else text).append(piece)
    content: list[Content] = []
    if reasoning:
        content.append(Reasoning("".join(reasoning)))
    if text:
        content.append(Text("".join(text)))
    refusal = words(message.get("refusal"))
    if refusal is not None:
        content.append(Text(refusal, {provider: {"refusal": True}}))
    content.extend(images(message))
    audio = message.get("audio")
    if isinstance(audio, Mapping):
        if not text and (transcript := words(audio.get("transcript"))) is not None:
            content.append(Text(transcript))
        file = audio_file(audio, words(audio.get("data")) or "", provider, audio_type(request_body))
        if file is not None:
            content.append(file)
    content.extend(_tool_calls(message, native, provider, errors))
    content.extend(SourceReader(provider).read(message, native))
    return content


def _tool_calls(
    message: Mapping[str, JSON], native: Mapping[str, JSON], provider: str, errors: ErrorReader
) -> Iterator[ToolCall]:
    ids = CallIds(native)
    calls = message.get("tool_calls")
    natives: list[object] = list(calls) if isinstance(calls, list) else []
    if not natives and isinstance(message.get("function_call"), Mapping):  # the form before tools
        natives = [{"function": message["function_call"]}]
    for index, call in enumerate(natives):
        function = call.get("function") if isinstance(call, Mapping) else None
        name = words(function.get("name")) if isinstance(function, Mapping) else None
        if not isinstance(call, Mapping) or not isinstance(function, Mapping) or name is None:
            raise _NamelessCall(f"tool_calls[{index}]")
        arguments = argument_text(function.get("arguments"), errors)
        yield ToolCall(
            ids.take(call.get("id")), name, arguments or "{}", provider_metadata=signature_metadata(call, provider)
        )
