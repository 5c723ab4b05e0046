"""The JSON of Anthropic's Messages, whole and in events. Same input, same bytes: ids and models are constants."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from neurolink_mw.testing.wire import bedrock_bodies
from neurolink_mw.testing.wire.fragments import Text, fragments, joined, runs
from neurolink_mw.testing.wire.plan import Pause

Json = dict[str, object]

MESSAGE_ID: Final = "msg_wire"
MODEL: Final = "claude-wire"
SIGNATURE: Final = "c2lnbmVk"

DELTA_MEMBERS: Final = frozenset({"container", "stop_details"})
"""Members of a message that a stream tells in the `delta` of `message_delta`, as it does with the stop reason."""

DELTA_EVENT_MEMBERS: Final = frozenset({"context_management"})
"""Members of a message that a stream tells in `message_delta` itself, beside the usage."""

LATE_COUNTS: Final = frozenset({"output_tokens_details", "server_tool_use", "iterations"})
"""Counts that are not known yet when a stream starts."""

START_COUNTS: Final = frozenset({"cache_creation", "inference_geo", "service_tier", "speed"})
"""Members of the usage that `message_start` tells and `message_delta` does not repeat."""


@dataclass(frozen=True)
class ToolCall(bedrock_bodies.ToolCall):
    """A call the model makes. `input` as a str is streamed as it is, which lets it be broken JSON.

    A whole message carries the value that such a str holds, or the str itself where it is not JSON. Without an `id` it
    is `toolu_1`, `toolu_2`, ... by its place among the calls. A `server` call (`srvtoolu_1`, a block of the type
    `server_tool_use`) is one that the API runs itself.
    """


@dataclass(frozen=True)
class Thinking:
    """A block of thinking; None leaves the signature out, as imitations of the API do."""

    text: Text
    signature: str | None = SIGNATURE


@dataclass(frozen=True)
class RedactedThinking:
    """A block of thinking that the API has encrypted."""

    data: str = field(repr=False)


Thought = Thinking | RedactedThinking
Block = Thought | ToolCall | Text | Mapping[str, object]
"""What a message is made of, in order. A text is one text block; a mapping is a block in the API's own JSON."""


def usage(
    input_tokens: int = 10, output_tokens: int = 5, *, cache_read: int | None = None, cache_write: int | None = None
) -> Json:
    """The usage object. The three kinds of input tokens are disjoint; those of the cache are left out where None."""
    counted: Json = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    cached = {"cache_creation_input_tokens": cache_write, "cache_read_input_tokens": cache_read}
    return counted | {name: count for name, count in cached.items() if count is not None}


def content(blocks: Sequence[Block]) -> list[Json]:
    """The blocks in the API's own JSON, as a whole message carries them and a later request replays them."""
    calls = iter(range(1, len(blocks) + 1))
    return [_native(block, calls) for block in blocks]


def message(
    blocks: Sequence[Block],
    *,
    stop_reason: str | None = "end_turn",
    stop_sequence: str | None = None,
    usage: Mapping[str, object] | None = None,
    model: str = MODEL,
    members: Mapping[str, object] | None = None,
) -> Json:
    """A whole message.

    Args:
        blocks: what the model says.
        stop_reason: `end_turn`, `tool_use`, ...
        stop_sequence: the one that ended it.
        usage: the counts; None leaves them out.
        model: the model that answers.
        members: more members, such as `container`, `context_management` and `stop_details`.
    """
    said: Json = {"id": MESSAGE_ID, "type": "message", "role": "assistant", "model": model, "content": content(blocks)}
    said |= {"stop_reason": stop_reason, "stop_sequence": stop_sequence}
    return said | ({} if usage is None else {"usage": dict(usage)}) | dict(members or {})


def events(
    blocks: Sequence[Block],
    *,
    stop_reason: str | None = "end_turn",
    stop_sequence: str | None = None,
    usage: Mapping[str, object] | None = None,
    model: str = MODEL,
    members: Mapping[str, object] | None = None,
) -> Iterator[Json | Pause]:
    """The events of the same message, as the API streams it.

    `message_start` counts one output token, `message_delta` all of them; a `ping` follows the start of the first block.
    """
    more = dict(members or {})
    late = {name: more.pop(name) for name in DELTA_MEMBERS & more.keys()}
    beside = {name: more.pop(name) for name in DELTA_EVENT_MEMBERS & more.keys()}
    early, counted = _counts(usage)
    yield {"type": "message_start", "message": message([], stop_reason=None, usage=early, model=model, members=more)}
    for index, (block, native) in enumerate(zip(blocks, content(blocks), strict=True)):
        yield {"type": "content_block_start", "index": index, "content_block": _opened(native)}
        if index == 0:
            yield {"type": "ping"}
        for piece in _deltas(block, native):
            if isinstance(piece, Pause):
                yield piece
            else:
                yield {"type": "content_block_delta", "index": index, "delta": piece}
        yield {"type": "content_block_stop", "index": index}
    stopped: Json = {"stop_reason": stop_reason, "stop_sequence": stop_sequence, **late}
    counts: Json = {} if counted is None else {"usage": counted}
    yield {"type": "message_delta", "delta": stopped, **counts, **beside}
    yield {"type": "message_stop"}


def _counts(usage: Mapping[str, object] | None) -> tuple[Json | None, Json | None]:
    """The usage of `message_start`, and that of `message_delta`."""
    if usage is None:
        return None, None
    early = {name: count for name, count in usage.items() if name not in LATE_COUNTS}
    return early | {"output_tokens": 1}, {name: count for name, count in usage.items() if name not in START_COUNTS}


def _native(block: Block, calls: Iterator[int]) -> Json:
    match block:
        case ToolCall():
            number = next(calls)
            kind, prefix = ("server_tool_use", "srvtoolu") if block.server else ("tool_use", "toolu")
            return {"type": kind, "id": block.id or f"{prefix}_{number}", "name": block.name, "input": block.value()}
        case Thinking(text, signature):
            signed = {} if signature is None else {"signature": signature}
            return {"type": "thinking", "thinking": joined(text), **signed}
        case RedactedThinking(data):
            return {"type": "redacted_thinking", "data": data}
        case Mapping():
            return dict(block)
        case text:
            return {"type": "text", "text": joined(text)}


def _opened(native: Json) -> Json:
    """The block as its start event has it: without what the deltas bring."""
    match native.get("type"):
        case "text":
            return native | {"text": ""} | ({"citations": []} if native.get("citations") is not None else {})
        case "thinking":
            return native | {"thinking": "", "signature": ""}
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            return native | {"input": {}}
        case "compaction":
            return native | {name: None for name in ("content", "encrypted_content") if name in native}
        case _:
            return native


def _deltas(block: Block, native: Json) -> Iterator[Json | Pause]:
    match native.get("type"):
        case "text":
            said = str(native["text"]) if isinstance(block, Mapping) else block
            yield from _named("text_delta", "text", fragments(said) if isinstance(said, str | Sequence) else ())
            for citation in _listed(native.get("citations")):
                yield {"type": "citations_delta", "citation": citation}
        case "thinking":
            thought = block.text if isinstance(block, Thinking) else str(native.get("thinking", ""))
            yield from _named("thinking_delta", "thinking", fragments(thought))
            if native.get("signature"):
                yield {"type": "signature_delta", "signature": native["signature"]}
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            whole = json.dumps(native.get("input", {}), ensure_ascii=False)
            pieces = block.fragments() if isinstance(block, ToolCall) else runs(whole)
            yield from _named("input_json_delta", "partial_json", ["", *pieces])
        case "compaction":
            brought: Json = {name: native[name] for name in ("content", "encrypted_content") if name in native}
            yield {"type": "compaction_delta"} | brought


def _named(kind: str, member: str, pieces: Sequence[str | Pause]) -> Iterator[Json | Pause]:
    for piece in pieces:
        yield piece if isinstance(piece, Pause) else {"type": kind, member: piece}


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()
