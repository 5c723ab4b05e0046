"""What single members of a message or event say, for answers and streams alike. Pure.

Members are read by presence and type, never by a closed model: the service adds members, gateways leave others out,
and what is not understood must not take the rest with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, cast

import orjson

from ...protocol import (
    JSON,
    CallWarning,
    FinishReason,
    InputTokens,
    JSONObject,
    OutputTokens,
    ResponseMetadata,
    UnknownPart,
    Usage,
    to_json,
)
from ..common.readings import count, words
from .naming import camel_keys
from .options import KEY

_UNIFIED: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool-calls",
    "refusal": "content-filter",
}
_CUTS: Final = frozenset({"length", "content-filter"})
_OF_ANOTHER_MODEL: Final = "advisor_message"


def finish_reason(raw: object, *, failed: bool = False, answered: bool = False) -> FinishReason:
    """The reason in V3's words. failed: after an error part; answered: the call was the JSON answer itself."""
    said = words(raw)
    unified = _UNIFIED.get(said or "", "other")
    if answered and unified == "tool-calls":
        unified = "stop"
    return FinishReason("error" if failed else unified, said)


def cuts(raw: object) -> bool:
    """Whether a message that stopped for this reason may have been cut within its last block."""
    return _UNIFIED.get(words(raw) or "") in _CUTS


def usage(native: object) -> Usage:
    """The tokens. `input_tokens` counts neither what was read from the cache nor what was written to it.

    A number that was not reported stays unset. What the service did in several iterations costs what they cost
    together: a compaction is not in the numbers of the whole. An adviser is another model, and in `raw` alone.
    """
    if not isinstance(native, Mapping):
        return Usage()
    said = native.get("iterations")
    iterations = [
        one
        for one in (said if isinstance(said, list | tuple) else ())
        if isinstance(one, Mapping) and one.get("type") != _OF_ANOTHER_MODEL
    ]

    def tokens(name: str) -> int | None:
        numbers = [count(one.get(name)) for one in iterations]
        if numbers and None not in numbers:
            return sum(cast(list[int], numbers))
        return count(native.get(name))

    plain, written = tokens("input_tokens"), tokens("output_tokens")
    hit, kept = tokens("cache_read_input_tokens"), tokens("cache_creation_input_tokens")
    details = native.get("output_tokens_details")
    reasoning = count(details.get("thinking_tokens")) if isinstance(details, Mapping) else None
    text = None if written is None or reasoning is None else max(0, written - reasoning)
    total = None if plain is None else plain + (hit or 0) + (kept or 0)
    return Usage(InputTokens(total, plain, hit, kept), OutputTokens(written, text, reasoning), native)


def with_later(known: object, later: object) -> object:
    """The usage so far, with what a later event reports: totals, which take the place of earlier ones."""
    if not isinstance(later, Mapping):
        return known
    said = {name: item for name, item in later.items() if item is not None}
    return {**known, **said} if isinstance(known, Mapping) else said


class Told(NamedTuple):
    """What an answer says of itself besides its content, from a message or from the events around its blocks.

    unexecuted: the names of the caller's tools that were called beside a JSON answer. warnings: our own, of the answer.
    """

    members: Mapping[str, object]
    unexecuted: Sequence[str] = ()
    warnings: Sequence[CallWarning] = ()


def provider_metadata(told: Told) -> JSONObject:
    """What belongs to the whole answer, under `anthropic`. `usage` has the members of the wire, all else camelCase."""
    members = told.members
    native = members.get("usage")
    tokens: Mapping[str, object] = native if isinstance(native, Mapping) else {}
    own: dict[str, JSON] = {
        "usage": cast(JSON, native),
        "cacheCreationInputTokens": count(tokens.get("cache_creation_input_tokens")),
        "stopSequence": words(members.get("stop_sequence")),
        "iterations": camel_keys(tokens.get("iterations")),
        "container": _container(members.get("container")),
        "contextManagement": camel_keys(members.get("context_management")),
    }
    for name, key in (
        ("stop_details", "stopDetails"),
        ("diagnostics", "diagnostics"),
        ("input_transformations", "inputTransformations"),
    ):
        if (item := members.get(name)) is not None:
            own[key] = camel_keys(item)
    if told.unexecuted:
        own["unexecuted_tool_calls"] = list(told.unexecuted)
    if told.warnings:
        own["warnings"] = to_json(tuple(told.warnings))
    return {KEY: own}


def _container(native: object) -> JSON:
    if not isinstance(native, Mapping):
        return None
    return camel_keys({"id": None, "expires_at": None, "skills": None, **native})


class Head(NamedTuple):
    """Which answer this is, and which model gave it."""

    id: str | None = None
    model_id: str | None = None

    def part(self) -> ResponseMetadata:
        return ResponseMetadata(self.id, None, self.model_id)


def head_of(message: Mapping[str, object], model_id: str | None = None) -> Head:
    """model_id: for a message that does not name its model."""
    return Head(words(message.get("id")), words(message.get("model")) or model_id)


def foreign(block: Mapping[str, object], pieces: Sequence[JSON] = ()) -> UnknownPart:
    """A block that V3 has no part for: of type `custom`, and sent back as it came.

    pieces: what a stream sent of it and nobody can put together, so that there is nothing whole to send back.
    """
    kind = words(block.get("type")) or "unknown"
    native = cast(JSON, dict(block))
    own: JSONObject = {"start": native, "pieces": list(pieces)} if pieces else {"block": native}
    return UnknownPart("custom", {"kind": f"{KEY}.{kind}", "providerMetadata": {KEY: own}})


def signed(signature: object) -> JSONObject | None:
    """The signature of reasoning, in the metadata of a part."""
    said = words(signature)
    return None if said is None else {KEY: {"signature": said}}


def redaction(data: object) -> JSONObject:
    """Redacted reasoning, in the metadata of a part."""
    return {KEY: {"redactedData": cast(JSON, data)}}


def citations_metadata(citations: Sequence[JSON]) -> JSONObject | None:
    """The citations of a text, as they came: they go back with it."""
    return {KEY: {"citations": list(citations)}} if citations else None


_LONG_NUMBER = re.compile(rb"\d{19}")  # which the quick parser makes a float of, beyond 64 bits

NOT_JSON: Final = object()


def has_long_number(data: bytes | str) -> bool:
    """Whether there may be a number beyond 64 bits."""
    return _LONG_NUMBER.search(data if isinstance(data, bytes) else data.encode("utf-8", "replace")) is not None


def parsed_json(data: bytes) -> object:
    """The JSON of a body or an event, read leniently where need be; NOT_JSON where it is none."""
    try:
        if _LONG_NUMBER.search(data) is None:
            return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        return loose_json(data.decode("utf-8", "replace"))
    except ValueError:
        return NOT_JSON


def loose_json(text: str) -> JSON:
    """JSON with loose ends: NaN, lone surrogates. Half a character becomes U+FFFD.

    Raises ValueError where it is no JSON at all.
    """
    try:
        whole = json.dumps(json.loads(text), ensure_ascii=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    native: JSON = json.loads(whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return native
