"""What single fields of a chat completion or chunk say, for answers and streams alike. Pure.

Wire objects are read by the presence and type of each field, never by a closed model: servers add fields, leave
others out and spell a few their own way, and what is not understood must not take the rest with it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from ...protocol import JSON, File, FinishReason, InputTokens, JSONObject, OutputTokens, Source, Usage
from ..common.readings import words
from .errors import ErrorReader
from .messages import json_text
from .options import THOUGHT_SIGNATURE

_UNIFIED: Final = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content-filter",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "error": "error",
}
_AUDIO_TYPES: Final = {"mp3": "audio/mpeg", "pcm16": "audio/pcm"}


def loose_json(text: str) -> JSON:
    """JSON with the loose ends that real servers leave: NaN, lone surrogates. Half a character becomes U+FFFD.

    Raises ValueError where it is no JSON at all.
    """
    try:
        whole = json.dumps(json.loads(text), ensure_ascii=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    native: JSON = json.loads(whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return native


def text_pieces(message: Mapping[str, JSON]) -> Iterator[tuple[str, str]]:
    """The texts of a message or delta as ("reasoning" | "text", text), reasoning first, empty ones left out.

    Reasoning is in `reasoning_content`, else in `reasoning`; Mistral puts both kinds into a list of content chunks.
    """
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if reasoning and isinstance(reasoning, str):
        yield "reasoning", reasoning
    content = message.get("content")
    if isinstance(content, str):
        if content:
            yield "text", content
    elif isinstance(content, list):
        for chunk in content:
            if isinstance(chunk, Mapping):
                yield from _chunk_pieces(chunk)


def _chunk_pieces(chunk: Mapping[str, JSON]) -> Iterator[tuple[str, str]]:
    thinking = chunk.get("thinking")
    if chunk.get("type") == "thinking" and isinstance(thinking, list):
        for piece in thinking:
            text = words(piece.get("text")) if isinstance(piece, Mapping) else None
            if text is not None:
                yield "reasoning", text
    elif (text := words(chunk.get("text"))) is not None:
        yield "text", text


def finish_reason(raw: object, *, refused: bool = False, failed: bool = False) -> FinishReason:
    """The reason in V3's words. A refusal is a content filter's work whatever the server calls it; so is a failure."""
    said = raw if isinstance(raw, str) and raw else None
    unified = "other" if said is None else _UNIFIED.get(said, "other")
    if refused and unified == "stop":
        unified = "content-filter"
    return FinishReason("error" if failed else unified, said)


def usage(native: object) -> Usage:
    """The tokens. Cached ones are inside `prompt_tokens` here, reasoning ones inside `completion_tokens`.

    A number that the server did not report stays unset. More reasoning than completion is reported by some servers:
    the text's share is then 0.
    """
    if not isinstance(native, Mapping):
        return Usage()
    prompt, completion = count(native.get("prompt_tokens")), count(native.get("completion_tokens"))
    cached = _detail(native, "prompt_tokens_details", "cached_tokens")
    if cached is None:
        cached = count(native.get("prompt_cache_hit_tokens"))  # DeepSeek's name for the same number
    reasoning = _detail(native, "completion_tokens_details", "reasoning_tokens")
    return Usage(
        InputTokens(prompt, None if prompt is None else max(0, prompt - (cached or 0)), cached),
        OutputTokens(completion, None if completion is None else max(0, completion - (reasoning or 0)), reasoning),
        native,
    )


def provider_metadata(provider: str, native_usage: object, refusal: str | None = None) -> JSONObject:
    """What belongs to the whole answer, under the provider's name."""
    own: dict[str, JSON] = {}
    if isinstance(native_usage, Mapping):
        for key, name in (
            ("acceptedPredictionTokens", "accepted_prediction_tokens"),
            ("rejectedPredictionTokens", "rejected_prediction_tokens"),
        ):
            number = _detail(native_usage, "completion_tokens_details", name)
            if number is not None:
                own[key] = number
    if refusal is not None:
        own["refusal"] = refusal
    return {provider: own}


def timestamp(created: object) -> datetime | None:
    """Unix seconds as a time in UTC."""
    if not isinstance(created, int | float) or isinstance(created, bool):
        return None
    try:
        return datetime.fromtimestamp(created, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def argument_text(arguments: object, errors: ErrorReader) -> str:
    """Arguments as JSON text; a few servers send the object itself. "" where there are none."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else json_text(arguments, "arguments", errors)


def signature_metadata(call: Mapping[str, JSON], provider: str) -> JSONObject | None:
    """The signature that Gemini's endpoint puts on a tool call, where the next turn's request looks for it."""
    extra = call.get("extra_content")
    google = extra.get("google") if isinstance(extra, Mapping) else None
    signature = google.get("thought_signature") if isinstance(google, Mapping) else None
    return {provider: {THOUGHT_SIGNATURE: signature}} if isinstance(signature, str) else None


class CallIds:
    """Ids of tool calls: the server's own, or one made from the answer's id where it is missing or taken.

    Made ids depend on the answer and the call's place in it, so that reading the same answer twice gives the same
    history; where an answer has no id of its own, they are random.
    """

    __slots__ = ("_made", "_seed", "_taken")

    def __init__(self, native: Mapping[str, JSON], taken: set[str] | None = None) -> None:
        id, created = native.get("id"), native.get("created")
        self._seed = f"{id}/{created}" if id or created else uuid.uuid4().hex
        self._taken = set() if taken is None else taken
        self._made = 0

    def take(self, id: object) -> str:
        """`id` where it is a text that no other call has, else a new one."""
        if not isinstance(id, str) or not id or id in self._taken:
            id = self._make()
        self._taken.add(id)
        return id

    def _make(self) -> str:
        while True:
            digest = hashlib.sha256(f"{self._seed}/{self._made}".encode()).hexdigest()
            self._made += 1
            if (id := f"call_{digest[:24]}") not in self._taken:
                return id


class SourceReader:
    """Pages that an answer cites: `annotations` (OpenAI) and the list of addresses `citations` (Perplexity).

    One object per answer: servers repeat the whole list in every chunk of a stream, and each page is told once.
    """

    __slots__ = ("_provider", "_seen")

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._seen: dict[object, None] = {}

    def read(self, message: Mapping[str, JSON], native: Mapping[str, JSON]) -> Iterator[Source]:
        annotations, citations = message.get("annotations"), native.get("citations")
        for annotation in annotations if isinstance(annotations, list) else ():
            cited = annotation.get("url_citation") if isinstance(annotation, Mapping) else None
            url = words(cited.get("url")) if isinstance(cited, Mapping) else None
            if isinstance(cited, Mapping) and url is not None:
                place = {
                    key: number
                    for key, name in (("startIndex", "start_index"), ("endIndex", "end_index"))
                    if (number := count(cited.get(name))) is not None
                }
                if self._is_new((url, *place.values())):
                    metadata: JSONObject | None = {self._provider: place} if place else None
                    yield self._source(url, words(cited.get("title")), metadata)
        for citation in citations if isinstance(citations, list) else ():
            address = words(citation)
            if address is not None and self._is_new((address,)):
                yield self._source(address, None, None)

    def _is_new(self, key: tuple[object, ...]) -> bool:
        if key in self._seen:
            return False
        self._seen[key] = None
        return True

    def _source(self, url: str, title: str | None, metadata: JSONObject | None) -> Source:
        return Source("url", f"source-{len(self._seen) - 1}", url, title, provider_metadata=metadata)


def images(message: Mapping[str, JSON]) -> Iterator[File]:
    """Images that the model made: OpenRouter's `images`, a list of `image_url` parts with data addresses."""
    natives = message.get("images")
    for image in natives if isinstance(natives, list) else ():
        inner = image.get("image_url") if isinstance(image, Mapping) else None
        url = inner.get("url") if isinstance(inner, Mapping) else None
        head, comma, data = url.partition(",") if isinstance(url, str) else ("", "", "")
        if comma and head.startswith("data:") and head.endswith(";base64"):
            content = decoded(data)
            if content is not None:
                yield File(head[5:-7].partition(";")[0] or "image/png", content)


def audio_type(request_body: JSONObject | None) -> str:
    """The media type of spoken answers: as the request asked for in `audio.format`, else wav."""
    asked = request_body.get("audio") if request_body is not None else None
    format = words(asked.get("format")) if isinstance(asked, Mapping) else None
    return _AUDIO_TYPES.get(format or "wav", f"audio/{format or 'wav'}")


def audio_file(audio: Mapping[str, JSON], data: str, provider: str, media_type: str) -> File | None:
    """A spoken answer; None where it has no sound that can be read."""
    content = decoded(data) if data else None
    if content is None:
        return None
    own = {
        key: audio[name]
        for key, name in (("audioId", "id"), ("expiresAt", "expires_at"), ("transcript", "transcript"))
        if audio.get(name) is not None
    }
    return File(media_type, content, {provider: own} if own else None)


def decoded(data: str) -> bytes | None:
    """Base64 as bytes, None where it is not base64."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


def count(number: object) -> int | None:
    """A whole number of 0 or more, else None."""
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    return number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None


def _detail(native: Mapping[str, JSON], group: str, name: str) -> int | None:
    details = native.get(group)
    return count(details.get(name)) if isinstance(details, Mapping) else None
