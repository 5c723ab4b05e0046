"""The JSON of Converse answers, whole and in events. Same input, same bytes: ids, latency and padding are constants."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from neurolink_mw.testing.wire.fragments import Text, fragments, joined, runs
from neurolink_mw.testing.wire.plan import Pause

Json = dict[str, object]
Event = dict[str, Json]
"""One event of a stream: its name, and its payload."""

LATENCY_MS: Final = 120
SIGNATURE: Final = "c2lnbmVk"
PADDING: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


@dataclass(frozen=True)
class ToolCall:
    """A call the model makes. `input` as a str is streamed as it is, which lets it be broken JSON.

    A whole answer carries the value that such a str holds, or the str itself where it is not JSON. Without an `id` it
    is `tooluse_1`, `tooluse_2`, ... by its place in the answer. A `server` call is one that the service runs itself.
    """

    name: str
    input: Mapping[str, object] | Text
    id: str | None = None
    server: bool = False

    def fragments(self) -> Sequence[str | Pause]:
        """The input as a stream sends it: as given, or in short runs, which is how models emit them."""
        if isinstance(self.input, Mapping):
            return runs(json.dumps(self.input, ensure_ascii=False))
        return runs(self.input) if isinstance(self.input, str) else self.input

    def value(self) -> object:
        """The input as a whole answer carries it."""
        if isinstance(self.input, Mapping):
            return self.input
        text = joined(self.input)
        try:
            value: object = json.loads(text) if text else {}
        except ValueError:
            return text
        return value


@dataclass(frozen=True)
class Reasoning:
    """A block of reasoning. Anthropic's models sign it; None is that of a model which does not."""

    text: Text
    signature: str | None = SIGNATURE


@dataclass(frozen=True)
class RedactedReasoning:
    """A block of reasoning that the provider has encrypted."""

    data: bytes = field(repr=False)


Thought = Reasoning | RedactedReasoning
Block = Thought | ToolCall | Text
"""What an answer is made of, in order; a text is one text block."""


def usage(
    input_tokens: int = 10, output_tokens: int = 5, *, cache_read: int | None = None, cache_write: int | None = None
) -> Json:
    """The usage object. The three kinds of input tokens are disjoint, and the total counts them all.

    The members of the cache are left out where they are None, as for a model without one.
    """
    cached = {"cacheReadInputTokens": cache_read, "cacheWriteInputTokens": cache_write}
    total = input_tokens + output_tokens + (cache_read or 0) + (cache_write or 0)
    counted: Json = {"inputTokens": input_tokens, "outputTokens": output_tokens, "totalTokens": total}
    return counted | {name: count for name, count in cached.items() if count is not None}


def message(blocks: Sequence[Block]) -> Json:
    """The assistant message with these blocks, as a whole answer carries it and a later request replays it."""
    calls = iter(range(1, len(blocks) + 1))
    return {"role": "assistant", "content": [_whole(block, calls) for block in blocks]}


def converse_body(
    blocks: Sequence[Block],
    *,
    stop_reason: str,
    usage: Mapping[str, object] | None,
    fields: Mapping[str, object] | None = None,
    metadata: Mapping[str, object] | None = None,
) -> Json:
    """A whole answer.

    Args:
        blocks: what the model says.
        stop_reason: `end_turn`, `tool_use`, ...
        usage: the counts; None leaves them out.
        fields: the `additionalModelResponseFields`.
        metadata: more members, such as `trace`, `performanceConfig` and `serviceTier`.
    """
    body: Json = {"output": {"message": message(blocks)}, "stopReason": stop_reason}
    body |= {"metrics": {"latencyMs": LATENCY_MS}} | dict(metadata or {})
    body |= {} if usage is None else {"usage": usage}
    return body if fields is None else body | {"additionalModelResponseFields": fields}


def events(
    blocks: Sequence[Block],
    *,
    stop_reason: str,
    usage: Mapping[str, object] | None,
    fields: Mapping[str, object] | None = None,
    metadata: Mapping[str, object] | None = None,
) -> Iterator[Event | Pause]:
    """The events of the same answer, each a mapping of its name to its payload.

    As on the real wire only tool calls have a start event, and `metadata` comes after `messageStop`; without usage and
    without metadata of its own it does not come at all.
    """
    yield {"messageStart": {"role": "assistant"}}
    calls = iter(range(1, len(blocks) + 1))
    for index, block in enumerate(blocks):
        at: Json = {"contentBlockIndex": index}
        if isinstance(block, ToolCall):
            yield {"contentBlockStart": at | {"start": {"toolUse": _opened(block, calls)}}}
        for delta in _deltas(block):
            yield delta if isinstance(delta, Pause) else {"contentBlockDelta": at | {"delta": delta}}
        yield {"contentBlockStop": at}
    stop: Json = {"stopReason": stop_reason}
    yield {"messageStop": stop if fields is None else stop | {"additionalModelResponseFields": fields}}
    if usage is not None or metadata:
        counted: Json = {} if usage is None else {"usage": usage}
        yield {"metadata": counted | {"metrics": {"latencyMs": LATENCY_MS}} | dict(metadata or {})}


def padded(payload: Mapping[str, object], position: int) -> Json:
    """The payload with the member `p`, by which Bedrock hides how long a fragment is."""
    return dict(payload) | {"p": PADDING[: 1 + position * 7 % len(PADDING)]}


def _whole(block: Block, calls: Iterator[int]) -> Json:
    match block:
        case ToolCall():
            return {"toolUse": _opened(block, calls) | {"input": block.value()}}
        case RedactedReasoning(data):
            return {"reasoningContent": {"redactedContent": b64encode(data).decode()}}
        case Reasoning(text, signature):
            signed = {} if signature is None else {"signature": signature}
            return {"reasoningContent": {"reasoningText": {"text": joined(text)} | signed}}
        case text:
            return {"text": joined(text)}


def _deltas(block: Block) -> Iterator[Json | Pause]:
    match block:
        case ToolCall():
            for fragment in block.fragments():
                yield fragment if isinstance(fragment, Pause) else {"toolUse": {"input": fragment}}
        case RedactedReasoning(data):
            yield {"reasoningContent": {"redactedContent": b64encode(data).decode()}}
        case Reasoning(text, signature):
            for fragment in fragments(text):
                yield fragment if isinstance(fragment, Pause) else {"reasoningContent": {"text": fragment}}
            if signature is not None:
                yield {"reasoningContent": {"signature": signature}}
        case text:
            for fragment in fragments(text):
                yield fragment if isinstance(fragment, Pause) else {"text": fragment}


def _opened(call: ToolCall, calls: Iterator[int]) -> Json:
    number = next(calls)
    opened: Json = {"toolUseId": call.id or f"tooluse_{number}", "name": call.name}
    return opened | {"type": "server_tool_use"} if call.server else opened
