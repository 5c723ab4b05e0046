"""An OpenAI chat-completions server, and its replies described in a line each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Unpack

from neurolink_mw.testing.wire.fragments import Text
from neurolink_mw.testing.wire.journal import Exchange
from neurolink_mw.testing.wire.openai_bodies import MODEL, ToolCall, chunk, chunks, completion, usage
from neurolink_mw.testing.wire.plan import Pause
from neurolink_mw.testing.wire.reply import Delivery, JsonReply, Reply, SseReply, check_delivery
from neurolink_mw.testing.wire.server import Repeat, ScriptedReply, ScriptedServer

__all__ = [
    "USAGE",
    "Answer",
    "ToolCall",
    "answer",
    "chunk",
    "error",
    "server",
    "stream_text",
    "stream_tool_call",
    "text",
    "tool_call",
    "usage",
]

USAGE: Final[Mapping[str, object]] = usage()
"""What a reply counts when it is not told: 10 prompt tokens, 5 completion tokens."""


@dataclass(frozen=True)
class Answer:
    """What the model says, put in the form the request asks for: one JSON body, or a stream of chunks."""

    text: Text | None = None
    reasoning: Text | None = None
    tool_calls: Sequence[ToolCall] = ()
    usage: Mapping[str, object] | None = field(default_factory=lambda: USAGE)
    finish_reason: str | None = None
    delivery: Delivery = field(default_factory=Delivery)

    def __post_init__(self) -> None:
        check_delivery(self.delivery)

    def __call__(self, request: Exchange) -> Reply:
        """Streamed with `"stream": true`; usage in a stream only with `stream_options.include_usage`."""
        asked = request.json
        model = str(asked["model"])
        if not asked.get("stream"):
            return self.whole(model)
        wants_usage = (asked.get("stream_options") or {}).get("include_usage", False)
        return self.streamed(model, usage=self.usage if wants_usage else None)

    def whole(self, model: str = MODEL) -> JsonReply:
        body = completion(
            text=self.text,
            reasoning=self.reasoning,
            tool_calls=self.tool_calls,
            usage=self.usage,
            finish_reason=self._finish_reason(),
            model=model,
        )
        return JsonReply(body, **self.delivery)

    def streamed(self, model: str = MODEL, *, usage: Mapping[str, object] | None = None) -> SseReply:
        events = chunks(
            text=self.text,
            reasoning=self.reasoning,
            tool_calls=self.tool_calls,
            usage=usage,
            finish_reason=self._finish_reason(),
            model=model,
        )
        return SseReply(list(events), **self.delivery)

    def _finish_reason(self) -> str:
        return self.finish_reason or ("tool_calls" if self.tool_calls else "stop")


def answer(
    text: str | None = None,
    *,
    reasoning: Text | None = None,
    tool_calls: Sequence[ToolCall] = (),
    usage: Mapping[str, object] | None = USAGE,
    deltas: Sequence[str | Pause] | None = None,
    finish_reason: str | None = None,
    **delivery: Unpack[Delivery],
) -> Answer:
    """A reply that suits streamed and whole requests alike.

    Args:
        text: the text; a stream sends it word by word.
        reasoning: sent before the text, as `reasoning_content`.
        tool_calls: the calls the model makes; they make the finish reason `tool_calls`.
        usage: the counts, None leaves them out.
        deltas: the text in the fragments a stream sends, with pauses, instead of `text`.
        finish_reason: instead of `stop` or `tool_calls`.

    Raises:
        ValueError: both `text` and `deltas` are given.
    """
    if text is not None and deltas is not None:
        raise ValueError("text and deltas both give the text: give one of them")
    return Answer(text if deltas is None else deltas, reasoning, tool_calls, usage, finish_reason, delivery)


def text(
    content: str,
    *,
    usage: Mapping[str, object] | None = USAGE,
    finish_reason: str = "stop",
    **delivery: Unpack[Delivery],
) -> JsonReply:
    """A whole completion with a text."""
    return Answer(content, None, (), usage, finish_reason, delivery).whole()


def stream_text(
    deltas: Sequence[str | Pause],
    *,
    usage: Mapping[str, object] | None = None,
    finish_reason: str = "stop",
    **delivery: Unpack[Delivery],
) -> SseReply:
    """A stream with a text in these fragments and pauses; a usage is sent whether the request asks for it or not."""
    return Answer(deltas, None, (), None, finish_reason, delivery).streamed(usage=usage)


def tool_call(
    name: str,
    arguments: Mapping[str, object] | str,
    *,
    id: str | None = None,
    usage: Mapping[str, object] | None = USAGE,
    **delivery: Unpack[Delivery],
) -> JsonReply:
    """A whole completion that calls one tool. For text beside it, or more calls, see `answer`."""
    return Answer(None, None, [ToolCall(name, arguments, id)], usage, None, delivery).whole()


def stream_tool_call(
    name: str,
    arguments: Mapping[str, object] | Text,
    *,
    id: str | None = None,
    usage: Mapping[str, object] | None = None,
    **delivery: Unpack[Delivery],
) -> SseReply:
    """A stream that calls one tool, its arguments in the fragments given or in runs of eight characters."""
    return Answer(None, None, [ToolCall(name, arguments, id)], None, None, delivery).streamed(usage=usage)


def error(
    status: int,
    message: str,
    *,
    type: str | None = None,
    code: str | None = None,
    param: str | None = None,
    **delivery: Unpack[Delivery],
) -> JsonReply:
    """An error body. Without a type it is `server_error` from 500 on and `invalid_request_error` below."""
    kind = type or ("server_error" if status >= 500 else "invalid_request_error")
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return JsonReply(body, status=status, **delivery)


def server(replies: Iterable[ScriptedReply] = (), *, repeat: Repeat = "never") -> ScriptedServer:
    """A server of `POST {base_url}/chat/completions`, `base_url` ending in `/v1`.

    As the real one it refuses, without using up a reply, other paths (404) and a body that is not a JSON object with
    a `model` and at least one of the `messages` (400).
    """
    return ScriptedServer(replies, repeat=repeat, prefix="/v1", screen=_refuse)


def _refuse(request: Exchange) -> Reply | None:
    path = request.path.partition("?")[0]
    if (request.method, path) != ("POST", "/v1/chat/completions"):
        return error(404, f"Invalid URL ({request.method} {path})")
    try:
        asked = request.json
    except ValueError:
        return error(400, "We could not parse the JSON body of your request.")
    if not isinstance(asked, dict):
        return error(400, "The body of a request must be a JSON object.")
    if not isinstance(asked.get("model"), str):
        return error(400, "you must provide a model parameter")
    if not isinstance(asked.get("messages"), list) or not asked["messages"]:
        return error(400, "'messages' must be a list with at least one message", param="messages")
    return None
