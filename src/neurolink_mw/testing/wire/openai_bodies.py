"""The JSON of OpenAI chat completions, whole and in chunks. Same input, same bytes: ids and times are constants."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from neurolink_mw.testing.wire.fragments import Text, fragments, joined, runs
from neurolink_mw.testing.wire.plan import Pause

Json = dict[str, object]

COMPLETION_ID: Final = "chatcmpl-wire"
CREATED: Final = 1_700_000_000
MODEL: Final = "wire-model"


@dataclass(frozen=True)
class ToolCall:
    """A call the model makes. `arguments` as a str is sent as it is, which lets it be broken JSON.

    Without an `id` it is `call_1`, `call_2`, ... by its place in the reply.
    """

    name: str
    arguments: Mapping[str, object] | Text
    id: str | None = None

    def fragments(self) -> Sequence[str | Pause]:
        """The arguments as a stream sends them: as given, or in short runs, which is how models emit them."""
        if isinstance(self.arguments, Mapping):
            return runs(json.dumps(self.arguments, ensure_ascii=False))
        return runs(self.arguments) if isinstance(self.arguments, str) else self.arguments


def usage(prompt_tokens: int = 10, completion_tokens: int = 5, *, cached: int = 0, reasoning: int = 0) -> Json:
    """The usage object; `cached` is part of the prompt tokens, `reasoning` of the completion tokens."""
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def completion(
    *,
    text: Text | None,
    reasoning: Text | None,
    tool_calls: Sequence[ToolCall],
    usage: Mapping[str, object] | None,
    finish_reason: str,
    model: str,
) -> Json:
    """A whole `chat.completion`. Reasoning goes into `reasoning_content`, as DeepSeek and vLLM have it."""
    message: Json = {"role": "assistant", "content": None if text is None else joined(text), "refusal": None}
    if reasoning is not None:
        message["reasoning_content"] = joined(reasoning)
    if tool_calls:
        message["tool_calls"] = [
            _call(position, call) | {"function": {"name": call.name, "arguments": joined(call.fragments())}}
            for position, call in enumerate(tool_calls)
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
    body = _envelope("chat.completion", model) | {"choices": [choice]}
    return body if usage is None else body | {"usage": usage}


def chunk(delta: Mapping[str, object], *, finish_reason: str | None = None, model: str = MODEL) -> Json:
    """One `chat.completion.chunk` with one choice, to build a stream by hand."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return _envelope("chat.completion.chunk", model) | {"choices": [choice]}


def chunks(
    *,
    text: Text | None,
    reasoning: Text | None,
    tool_calls: Sequence[ToolCall],
    usage: Mapping[str, object] | None,
    finish_reason: str,
    model: str,
) -> Iterator[Json | Pause]:
    """The stream of chunks for the same reply.

    With a usage, every chunk has `"usage": null` and one more without choices carries it: so OpenAI answers
    `stream_options.include_usage`.
    """
    counted: Json = {} if usage is None else {"usage": None}
    for delta in _deltas(text, reasoning, tool_calls):
        yield delta if isinstance(delta, Pause) else chunk(delta, model=model) | counted
    yield chunk({}, finish_reason=finish_reason, model=model) | counted
    if usage is not None:
        yield _envelope("chat.completion.chunk", model) | {"choices": [], "usage": usage}


def _deltas(text: Text | None, reasoning: Text | None, tool_calls: Sequence[ToolCall]) -> Iterator[Json | Pause]:
    yield {"role": "assistant", "content": None if text is None else "", "refusal": None}
    for fragment in fragments(reasoning or ""):
        yield fragment if isinstance(fragment, Pause) else {"reasoning_content": fragment}
    for fragment in fragments(text or ""):
        yield fragment if isinstance(fragment, Pause) else {"content": fragment}
    for position, call in enumerate(tool_calls):
        opened = {"index": position} | _call(position, call) | {"function": {"name": call.name, "arguments": ""}}
        yield {"tool_calls": [opened]}
        for fragment in call.fragments():
            more = {"index": position, "function": {"arguments": fragment}}
            yield fragment if isinstance(fragment, Pause) else {"tool_calls": [more]}


def _call(position: int, call: ToolCall) -> Json:
    return {"id": call.id or f"call_{position + 1}", "type": "function"}


def _envelope(kind: str, model: str) -> Json:
    return {"id": COMPLETION_ID, "object": kind, "created": CREATED, "model": model}
