"""A server of Anthropic's Messages, as Bedrock and Vertex host them too, and its replies described in a line each."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Unpack

from neurolink_mw.testing.wire import bedrock
from neurolink_mw.testing.wire.anthropic_bodies import (
    MESSAGE_ID,
    MODEL,
    SIGNATURE,
    Block,
    RedactedThinking,
    Thinking,
    Thought,
    ToolCall,
    content,
    events,
    message,
    usage,
)
from neurolink_mw.testing.wire.anthropic_hosts import REQUEST_ID, Asked, asked, identity, place
from neurolink_mw.testing.wire.anthropic_members import Host
from neurolink_mw.testing.wire.anthropic_rules import faults
from neurolink_mw.testing.wire.anthropic_stream import Event, StreamReply, measured
from neurolink_mw.testing.wire.fragments import Text
from neurolink_mw.testing.wire.journal import Exchange
from neurolink_mw.testing.wire.plan import Pause
from neurolink_mw.testing.wire.reply import Delivery, JsonReply, Reply, check_delivery
from neurolink_mw.testing.wire.server import Repeat, ScriptedReply, ScriptedServer

__all__ = [
    "ERROR_TYPES",
    "MESSAGE_ID",
    "MODEL",
    "REQUEST_ID",
    "SIGNATURE",
    "USAGE",
    "Answer",
    "Asked",
    "Block",
    "Event",
    "Host",
    "RedactedThinking",
    "StreamReply",
    "Thinking",
    "Thought",
    "ToolCall",
    "answer",
    "asked",
    "content",
    "error",
    "error_event",
    "events",
    "message",
    "of_message",
    "server",
    "usage",
]

USAGE: Final[Mapping[str, object]] = usage()
"""What a reply counts when it is not told: 10 input tokens, 5 output tokens."""

ERROR_TYPES: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""The type of an error by its status; `api_error` where there is none."""


@dataclass(frozen=True)
class Answer:
    """What the model says, put in the form the request asks for: one message, or a stream of events."""

    blocks: Sequence[Block] = ()
    usage: Mapping[str, object] | None = field(default_factory=lambda: USAGE)
    stop_reason: str | None = "end_turn"
    stop_sequence: str | None = None
    members: Mapping[str, object] | None = None
    delivery: Delivery = field(default_factory=Delivery)

    def __post_init__(self) -> None:
        check_delivery(self.delivery)

    def __call__(self, request: Exchange) -> Reply:
        """Streamed with `"stream": true`, or where Bedrock's or Vertex's path says so."""
        found = asked(request)
        if found.streamed:
            return self.streamed(found.model_id, host=found.host)
        return self.whole(found.model_id, host=found.host)

    def whole(self, model: str = MODEL, *, host: Host = "anthropic") -> JsonReply:
        said = message(
            self.blocks,
            stop_reason=self.stop_reason,
            stop_sequence=self.stop_sequence,
            usage=self.usage,
            model=model,
            members=self.members,
        )
        return JsonReply(said, **_identified(self.delivery, identity(host)))

    def streamed(self, model: str = MODEL, *, host: Host = "anthropic") -> StreamReply:
        said = events(
            self.blocks,
            stop_reason=self.stop_reason,
            stop_sequence=self.stop_sequence,
            usage=self.usage,
            model=model,
            members=self.members,
        )
        if host == "bedrock":
            return StreamReply([*measured(said, self.usage)], "eventstream", **self.delivery)
        return StreamReply(list(said), **self.delivery)


def answer(
    text: str | None = None,
    *,
    thinking: str | Thought | Sequence[Thought] | None = None,
    tool_calls: Sequence[ToolCall] = (),
    usage: Mapping[str, object] | None = USAGE,
    deltas: Sequence[str | Pause] | None = None,
    stop_reason: str | None = None,
    stop_sequence: str | None = None,
    members: Mapping[str, object] | None = None,
    **delivery: Unpack[Delivery],
) -> Answer:
    """A reply that suits streamed and whole requests alike.

    For blocks in another order, or of other kinds, see `Answer` and `of_message`.

    Args:
        text: the text; a stream sends it word by word.
        thinking: blocks sent before the text; a text is one signed block.
        tool_calls: the calls the model makes; they make the stop reason `tool_use`.
        usage: the counts; None leaves them out.
        deltas: the text in the fragments a stream sends, with pauses, instead of `text`.
        stop_reason: instead of `end_turn`, `tool_use` or, with a `stop_sequence`, `stop_sequence`.
        stop_sequence: the sequence that ended the answer.
        members: more members of the message, such as `container`, `context_management` and `stop_details`.

    Raises:
        ValueError: both `text` and `deltas` are given.
    """
    if text is not None and deltas is not None:
        raise ValueError("text and deltas both give the text: give one of them")
    said: Text | None = text if deltas is None else deltas
    thoughts = [thinking] if isinstance(thinking, str | Thinking | RedactedThinking) else list(thinking or ())
    blocks = [
        *(Thinking(thought) if isinstance(thought, str) else thought for thought in thoughts),
        *([] if said is None else [said]),
        *tool_calls,
    ]
    usual = "tool_use" if any(not call.server for call in tool_calls) else "end_turn"
    reason = stop_reason or (usual if stop_sequence is None else "stop_sequence")
    return Answer(blocks, usage, reason, stop_sequence, members, delivery)


def of_message(native: Mapping[str, object], **delivery: Unpack[Delivery]) -> Answer:
    """A reply from a whole message in the API's own JSON; its id, and its model where it names one, are kept.

    Raises:
        ValueError: its `content` is not a list of objects.
    """
    blocks = native.get("content")
    if not isinstance(blocks, list) or not all(isinstance(block, Mapping) for block in blocks):
        raise ValueError("content must be a list of blocks, each an object")
    counts = native.get("usage")
    reason, sequence = native.get("stop_reason", "end_turn"), native.get("stop_sequence")
    told = {"content", "usage", "stop_reason", "stop_sequence", "type", "role"}
    return Answer(
        blocks,
        usage=counts if isinstance(counts, Mapping) else None,
        stop_reason=reason if isinstance(reason, str) else None,
        stop_sequence=sequence if isinstance(sequence, str) else None,
        members={name: value for name, value in native.items() if name not in told},
        delivery=delivery,
    )


def error(
    status: int,
    message: str,
    *,
    type: str | None = None,
    details: Mapping[str, object] | None = None,
    retry_after: int | str | None = None,
    **delivery: Unpack[Delivery],
) -> JsonReply:
    """An error as the API sends it, such as `error(529, "Overloaded")`. Bedrock's are those of `bedrock.error`.

    Args:
        status: the HTTP status.
        message: the message.
        type: instead of the one of the status (`ERROR_TYPES`).
        details: the machine-readable cause, such as `{"error_code": "tool_name_conflict"}`.
        retry_after: the value of a `retry-after` header.
    """
    headers = identity("anthropic") | ({} if retry_after is None else {"retry-after": str(retry_after)})
    body = error_event(message, type=type or ERROR_TYPES.get(status, "api_error"), details=details)
    return JsonReply(body | {"request_id": REQUEST_ID}, status=status, **_identified(delivery, headers))


def error_event(
    message: str, *, type: str = "overloaded_error", details: Mapping[str, object] | None = None
) -> dict[str, object]:
    """An error inside a stream that began well."""
    caused = {} if details is None else {"details": details}
    return {"type": "error", "error": {"type": type, "message": message, **caused}}


def server(
    replies: Iterable[ScriptedReply] = (),
    *,
    enforce: bool = True,
    repeat: Repeat = "never",
    tls: ssl.SSLContext | None = None,
) -> ScriptedServer:
    """A server of `POST /v1/messages`, for `anthropic.AsyncAnthropic(base_url=server.base_url)`.

    It is also Bedrock's InvokeModel (`AsyncAnthropicBedrock(base_url=server.base_url)`) and Vertex's rawPredict
    (`AsyncAnthropicVertex(base_url=f"{server.base_url}/v1")`). As the real ones it refuses, without using up a reply,
    other paths (404), a body that is not a JSON object and a request that breaks the rules of Messages (400; see
    `anthropic_rules`). It asks for no key.

    Args:
        replies: the script.
        enforce: False takes any JSON object.
        repeat: what follows the last reply.
        tls: see `ScriptedServer`.
    """
    return ScriptedServer(replies, repeat=repeat, screen=partial(_refuse, enforce=enforce), tls=tls)


def _refuse(request: Exchange, *, enforce: bool) -> Reply | None:
    found = place(request.path)
    if request.method != "POST" or found is None:
        return error(404, f"No operation at {request.method} {request.path}")
    try:
        body = request.json
    except ValueError:
        body = None
    if not isinstance(body, dict):
        return _refusal("The request body is not a valid JSON object.", found[0])
    broken = faults(body, host=found[0], betas=asked(request).betas) if enforce else []
    return _refusal(broken[0], found[0]) if broken else None


def _refusal(message: str, host: Host) -> Reply:
    return bedrock.error(400, "ValidationException", message) if host == "bedrock" else error(400, message)


def _identified(delivery: Delivery, headers: Mapping[str, str]) -> Delivery:
    given = {name.lower(): value for name, value in delivery.get("headers", {}).items()}
    return {**delivery, "headers": {**headers, **given}}
