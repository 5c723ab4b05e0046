"""Native to V3: what `converse` returns as an answer. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from ...protocol import JSON, CallWarning, Content, GenerateResult, JSONObject, Reasoning, RequestInfo, Text, ToolCall
from ...structured import AnswerContent, answer_from_content, answer_warnings
from ..common.readings import AnswerIds, words
from .capabilities import capabilities_of
from .errors import ErrorReader
from .messages import SERVER_TOOL
from .native_values import stored
from .options import KEY
from .readings import (
    SourceReader,
    Told,
    cuts,
    file_of,
    finish_reason,
    foreign,
    head_of,
    input_text,
    provider_metadata,
    reasoning_pieces,
    redaction,
    server_result,
    usage,
)
from .request import DEFAULT_PROVIDER, Expected
from .tool_ids import NativeIds


def parse_response(
    native: object,
    *,
    provider: str = DEFAULT_PROVIDER,
    model_id: str | None = None,
    warnings: Sequence[CallWarning] = (),
    request_body: Mapping[str, object] | None = None,
    errors: ErrorReader | None = None,
    expected: Expected | None = None,
) -> GenerateResult:
    """The answer that the result of `converse` holds; `ResponseMetadata`, which botocore adds, tells the rest.

    provider: the name in errors; metadata is filed under `bedrock`. warnings, request_body: from `build_request`.
    expected: from `expected_of`.

    Raises ProviderError when this is no whole answer: not an object, no message, no content list, a tool use without a
    name.
    """
    errors, expected = errors or ErrorReader(provider, model_id), expected or Expected()
    trace = native.get("trace") if isinstance(native, Mapping) else None
    head = head_of(native.get("ResponseMetadata") if isinstance(native, Mapping) else None, model_id, trace)
    output = native.get("output") if isinstance(native, Mapping) else None
    message = output.get("message") if isinstance(output, Mapping) else None
    blocks = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(native, Mapping) or not isinstance(blocks, list | tuple):
        raise errors.malformed("the answer holds no message", status=head.status, request_id=head.id)
    reader = _BlockReader(model_id, expected)
    content: list[Content] = []
    for index, block in enumerate(blocks):
        try:
            content.extend(reader.read(block))
        except _Malformed as fault:
            what = f"content[{index}] of the answer {fault}"
            raise errors.malformed(what, status=head.status, request_id=head.id) from None
    shown = AnswerContent(tuple(content), False)
    if expected.answer is not None:
        shown = answer_from_content(content, expected.answer, whole=not cuts(native.get("stopReason")))
    reason = finish_reason(native.get("stopReason"), answered=shown.answered)
    by_tool = None if expected.answer is None else shown
    own_warnings = answer_warnings(reason, by_tool, unwanted=expected.no_calls and shown.has_calls)
    told = Told(native, shown.answered, own_warnings, shown.unexecuted)
    body = {name: item for name, item in native.items() if name != "ResponseMetadata"}
    return GenerateResult(
        shown.content,
        reason,
        usage(native.get("usage")),
        (*warnings, *own_warnings),
        provider_metadata(told),
        RequestInfo(cast(JSON, request_body)) if request_body is not None else None,
        head.info(cast(JSON, body)),
    )


class _Malformed(Exception):
    """A block that cannot be read; says why."""


class _BlockReader:
    """Reads the blocks of one message."""

    def __init__(self, model_id: str | None, expected: Expected) -> None:
        self._expected = expected
        self._ids = AnswerIds()
        self._native_ids = NativeIds(capabilities_of(model_id or "").short_ids)
        self._sources = SourceReader()
        self._calls: dict[str, tuple[str, str]] = {}

    def read(self, block: object) -> Iterator[Content]:
        """What a block makes: nothing, where it says nothing."""
        if not isinstance(block, Mapping) or not block:
            raise _Malformed("is not an object with one member")
        kind = next((name for name in block if name in _READ), next(iter(block)))
        body = block[kind]
        if kind == "text" and isinstance(body, str):
            if body:
                yield Text(body)
        elif kind == "toolUse" and isinstance(body, Mapping):
            yield self._call(body)
        elif kind == "reasoningContent" and isinstance(body, Mapping):
            yield _reasoning(body) or foreign(kind, block)
        elif kind == "citationsContent" and isinstance(body, Mapping):
            yield from self._cited(body)
        elif kind == "toolResult" and isinstance(body, Mapping):
            native_id = words(body.get("toolUseId")) or ""
            yield server_result(body, *self._calls.get(native_id, (native_id, "")))
        elif (file := file_of(kind, body)) is not None:
            yield file
        else:
            yield foreign(kind, block)

    def _call(self, use: Mapping[str, object]) -> ToolCall:
        name = words(use.get("name"))
        if name is None:
            raise _Malformed("is a tool use that names no tool")
        text = input_text(use.get("input"))
        of_server = words(use.get("type")) is not None
        native_id = words(use.get("toolUseId")) or f"call-{len(self._calls)}"
        id = self._ids.take(self._native_ids.of(native_id))
        name = self._expected.tool_names.get(name, name)
        self._calls[native_id] = id, name
        if of_server:
            return ToolCall(id, name, text, True, provider_metadata={KEY: {"type": SERVER_TOOL}})
        return ToolCall(id, name, text)

    def _cited(self, body: Mapping[str, object]) -> Iterator[Content]:
        text = "".join(str(piece["text"]) for piece in _objects(body.get("content")) if words(piece.get("text")))
        cited = _objects(body.get("citations"))
        if text:
            yield Text(text, {KEY: {"citations": stored(cited)}} if cited else None)
        for citation in cited:
            source = self._sources.read(citation)
            if source is not None:
                yield source


_READ = frozenset({"text", "toolUse", "reasoningContent", "citationsContent", "toolResult", "image", "video", "audio"})


def _objects(items: object) -> list[Mapping[str, object]]:
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list | tuple) else []


def _reasoning(body: Mapping[str, object]) -> Reasoning | None:
    text, metadata = "", None
    for kind, piece in reasoning_pieces(body):
        if kind == "redacted":
            metadata = redaction(piece)
        elif isinstance(piece, str):
            text, metadata = (piece, metadata) if kind == "text" else (text, _signed(piece))
    return Reasoning(text, metadata) if text or metadata is not None else None


def _signed(signature: str) -> JSONObject:
    return {KEY: {"signature": signature}}
