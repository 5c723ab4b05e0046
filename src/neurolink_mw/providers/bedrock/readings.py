"""What single members of a Converse answer or event say, for answers and streams alike. Pure.

Members are read by presence and type, never by a closed model: services add members, and botocore hands a member of a
union that it does not know on as `SDK_UNKNOWN_MEMBER`, with its name alone.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

from ...protocol import (
    JSON,
    CallWarning,
    File,
    FinishReason,
    InputTokens,
    JSONObject,
    OutputTokens,
    ResponseInfo,
    ResponseMetadata,
    Source,
    ToolResult,
    UnknownPart,
    Usage,
    to_json,
)
from ...protocol.tokens import json_text
from ..common.readings import count, words
from .media import media_type_of
from .native_values import stored
from .options import KEY

_UNIFIED: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool-calls",
    "guardrail_intervened": "content-filter",
    "content_filtered": "content-filter",
}
_CUT: Final = frozenset({"length", "content-filter", "error"})
_TOLD: Final = ("metrics", "trace", "performanceConfig", "serviceTier", "additionalModelResponseFields")
_FILES: Final = frozenset({"image", "video", "audio", "document"})
UNKNOWN_MEMBER: Final = "SDK_UNKNOWN_MEMBER"


def finish_reason(raw: object, *, failed: bool = False, answered: bool = False) -> FinishReason:
    """The reason in V3's words. failed: after an error part; answered: the only call was the JSON answer itself."""
    said = words(raw)
    unified = _UNIFIED.get(said or "", "other")
    if said is not None and said.startswith("malformed_"):
        unified = "error"  # the model's output broke, and what came of it is not an answer
    if answered and unified == "tool-calls":
        unified = "stop"
    return FinishReason("error" if failed else unified, said)


def cuts(raw: object) -> bool:
    """Whether a message that stopped for this reason may have been cut."""
    return finish_reason(raw).unified in _CUT


def usage(native: object) -> Usage:
    """The tokens. `inputTokens` counts neither what was read from the cache nor what was written to it.

    A number that was not reported stays unset. Converse does not tell reasoning tokens apart.
    """
    if not isinstance(native, Mapping):
        return Usage()
    plain, written = count(native.get("inputTokens")), count(native.get("outputTokens"))
    hit, kept = count(native.get("cacheReadInputTokens")), count(native.get("cacheWriteInputTokens"))
    total = None if plain is None else plain + (hit or 0) + (kept or 0)
    return Usage(InputTokens(total, plain, hit, kept), OutputTokens(written, written), dict(native))


class Told(NamedTuple):
    """What an answer says of itself besides its content, from `converse`'s answer or from two events of a stream.

    answered: it came by a tool. warnings: our own, of the answer. unexecuted: the names of the caller's tools that were
    called beside a JSON answer.
    """

    members: Mapping[str, object]
    answered: bool = False
    warnings: Sequence[CallWarning] = ()
    unexecuted: Sequence[str] = ()


def provider_metadata(told: Told) -> JSONObject:
    """What belongs to the whole answer, under `bedrock`."""
    own: dict[str, JSON] = {}
    if told.answered:
        own["isJsonResponseFromTool"] = True
    if told.unexecuted:
        own["unexecuted_tool_calls"] = list(told.unexecuted)
    said = told.members.get("usage")
    if isinstance(said, Mapping):
        cache = {name: stored(said[name]) for name in ("cacheWriteInputTokens", "cacheDetails") if name in said}
        if cache:
            own["usage"] = cache
    for name in _TOLD:
        if (item := told.members.get(name)) is not None:
            own[name] = stored(item)
    stop = _stop_sequence(told.members.get("additionalModelResponseFields"))
    if stop is not None:
        own["stopSequence"] = stop
    if told.warnings:
        own["warnings"] = to_json(tuple(told.warnings))
    return {KEY: own}


def _stop_sequence(fields: object) -> str | None:
    """Claude's own field: at the top of a whole answer, under `delta` where it was streamed."""
    if not isinstance(fields, Mapping):
        return None
    inner = fields.get("delta")
    return words(inner.get("stop_sequence") if isinstance(inner, Mapping) else fields.get("stop_sequence"))


class Head(NamedTuple):
    """Who answered: from the `ResponseMetadata` that botocore adds, or from headers alone."""

    id: str | None = None
    timestamp: datetime | None = None
    model_id: str | None = None
    status: int | None = None
    headers: Mapping[str, str] | None = None

    def info(self, body: JSON) -> ResponseInfo:
        return ResponseInfo(self.id, self.timestamp, self.model_id, self.headers, body)

    def part(self) -> ResponseMetadata:
        return ResponseMetadata(self.id, self.timestamp, self.model_id)


def head_of(metadata: object, model_id: str | None, trace: object = None) -> Head:
    """metadata: as botocore adds it. trace: of the answer; a prompt router tells in it which model ran."""
    metadata = metadata if isinstance(metadata, Mapping) else {}
    given = metadata.get("HTTPHeaders")
    headers = {str(key).lower(): str(item) for key, item in given.items()} if isinstance(given, Mapping) else None
    router = trace.get("promptRouter") if isinstance(trace, Mapping) else None
    ran = words(router.get("invokedModelId")) if isinstance(router, Mapping) else None
    id = words(metadata.get("RequestId")) or (headers or {}).get("x-amzn-requestid")
    return Head(
        id, _moment((headers or {}).get("date")), ran or model_id, count(metadata.get("HTTPStatusCode")), headers
    )


def _moment(date: str | None) -> datetime | None:
    try:
        return parsedate_to_datetime(date).astimezone(UTC) if date else None
    except ValueError:
        return None


class SourceReader:
    """What an answer cites. One object per answer, since sources are numbered in it."""

    __slots__ = ("_number",)

    def __init__(self) -> None:
        self._number = 0

    def read(self, citation: object) -> Source | None:
        """The source of one citation, which its metadata holds whole; None where it is not an object."""
        if not isinstance(citation, Mapping):
            return None
        id = f"source-{self._number}"
        self._number += 1
        title = words(citation.get("title"))
        metadata: JSONObject = {KEY: {"citation": stored(citation)}}
        location = citation.get("location")
        web = location.get("web") if isinstance(location, Mapping) else None
        address = words(web.get("url")) if isinstance(web, Mapping) else words(citation.get("source"))
        if address is not None and address.startswith(("http://", "https://")):
            return Source("url", id, address, title, provider_metadata=metadata)
        return Source("document", id, title=title, provider_metadata=metadata)


def file_of(kind: str, body: object) -> File | None:
    """A file that the model made, where it came as bytes in a known format."""
    if kind not in _FILES or not isinstance(body, Mapping) or body.get("error"):
        return None
    source = body.get("source")
    data = source.get("bytes") if isinstance(source, Mapping) else None
    media_type = media_type_of(kind, words(body.get("format")) or "")
    if not isinstance(data, bytes) or not data or media_type is None:
        return None
    name = words(body.get("name"))
    return File(media_type, data, None if name is None else {KEY: {"name": name}})


def server_result(result: Mapping[str, object], id: str, tool_name: str) -> ToolResult:
    """What a tool of the service said. Content that is not one text or one object is kept beside it, to go back."""
    content = result.get("content")
    pieces = list(content) if isinstance(content, list | tuple) else []
    only = pieces[0] if len(pieces) == 1 and isinstance(pieces[0], Mapping) else {}
    own: dict[str, JSON] = {"serverTool": True}
    for name in ("type", "status"):
        if (item := words(result.get(name))) is not None:
            own[name] = item
    if "json" in only and isinstance(only["json"], Mapping):
        said: JSON = stored(only["json"])
    else:
        said = stored(only["text"] if isinstance(only.get("text"), str) else pieces)
        if "text" not in only:
            own["content"] = said
    return ToolResult(id, tool_name, said, own.get("status") == "error" or None, provider_metadata={KEY: own})


def foreign(kind: str, block: Mapping[str, object]) -> UnknownPart:
    """A block that V3 has no part for: of type `custom`, and sent back as it came.

    Of a kind that botocore does not know either, it gives the name alone, and there is nothing to send back.
    """
    body = block.get(kind)
    if kind == UNKNOWN_MEMBER or (isinstance(body, Mapping) and UNKNOWN_MEMBER in body):
        inner = body if kind == UNKNOWN_MEMBER or not isinstance(body, Mapping) else body[UNKNOWN_MEMBER]
        name = words(inner.get("name")) if isinstance(inner, Mapping) else None
        return UnknownPart("custom", {"kind": f"{KEY}.{name or kind}"})
    return UnknownPart("custom", {"kind": f"{KEY}.{kind}", "providerMetadata": {KEY: {"block": stored(block)}}})


def redaction(data: bytes | str) -> JSONObject:
    """Redacted reasoning in a part's metadata, as base64. data: bytes, or base64 already."""
    text = data if isinstance(data, str) else base64.b64encode(data).decode("ascii")
    return {KEY: {"redactedContent": text}}


def reasoning_pieces(content: Mapping[str, object]) -> Iterator[tuple[str, str | bytes]]:
    """The pieces of a reasoningContent block or delta, as (text | signature | redacted, piece)."""
    text = content.get("reasoningText")
    inner: Mapping[str, object] = text if isinstance(text, Mapping) else content
    for name in ("text", "signature"):
        if isinstance(piece := inner.get(name), str):
            yield name, piece
    redacted = content.get("redactedContent")
    if redacted is None:  # the same in the spelling of other libraries
        other = content.get("redactedReasoning")
        redacted = other.get("data") if isinstance(other, Mapping) else content.get("data")
    if isinstance(redacted, bytes | str):
        yield "redacted", redacted


def input_text(input: object) -> str:
    """The input of a call as JSON text; no input is an empty object."""
    if isinstance(input, str):
        return input or "{}"
    return "{}" if input is None else json_text(input)
