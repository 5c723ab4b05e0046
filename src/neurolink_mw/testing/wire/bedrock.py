"""A Bedrock server of Converse and ConverseStream, and its replies described in a line each."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Final, Literal, NamedTuple, Unpack
from urllib.parse import unquote

from neurolink_mw.testing.wire.bedrock_bodies import (
    SIGNATURE,
    Block,
    Reasoning,
    RedactedReasoning,
    Thought,
    ToolCall,
    converse_body,
    events,
    message,
    padded,
    usage,
)
from neurolink_mw.testing.wire.converse_rules import faults
from neurolink_mw.testing.wire.eventstream import event, exception
from neurolink_mw.testing.wire.fragments import Text
from neurolink_mw.testing.wire.journal import Exchange
from neurolink_mw.testing.wire.plan import Framing, Pause, Step
from neurolink_mw.testing.wire.reply import Delivery, JsonReply, Reply, check_delivery
from neurolink_mw.testing.wire.server import Repeat, ScriptedReply, ScriptedServer

__all__ = [
    "REQUEST_ID",
    "SIGNATURE",
    "USAGE",
    "Answer",
    "Asked",
    "Block",
    "Event",
    "EventsReply",
    "Operation",
    "Reasoning",
    "RedactedReasoning",
    "Thought",
    "ToolCall",
    "answer",
    "asked",
    "converse_body",
    "error",
    "events",
    "message",
    "server",
    "usage",
]

REQUEST_ID: Final = "00000000-0000-4000-8000-000000000001"
"""What every reply says in `x-amzn-requestid`, unless its `headers` say otherwise."""

USAGE: Final[Mapping[str, object]] = usage()
"""What a reply counts when it is not told: 10 input tokens, 5 output tokens."""

Operation = Literal["converse", "converse-stream"]

Event = Mapping[str, Mapping[str, object] | bytes] | bytes | Pause


class Asked(NamedTuple):
    """What the path of a request asks for; the model id is decoded."""

    model_id: str
    operation: Operation


@dataclass(frozen=True)
class EventsReply(Reply):
    """A stream of events, as ConverseStream sends it.

    Attributes:
        events: a mapping is one event, `{name: payload}`, or an exception frame where the name ends in `Exception`, as
            `throttlingException` does; its payload is an object, or bytes to send in its place. Bytes are sent as they
            are (frames from `eventstream`, broken ones); a `Pause` or `HOLD` pauses the stream.
        padded: whether the payloads of events get the member `p` that Bedrock pads them with. No client sees it, but
            the offsets of a cut count it.

    Raises:
        ValueError: a mapping does not hold exactly one event.
    """

    events: Sequence[Event]
    padded: bool = True

    default_framing: ClassVar[Framing] = "chunked"

    def __post_init__(self) -> None:
        super().__post_init__()
        for place, item in enumerate(self.events):
            if isinstance(item, Mapping) and len(item) != 1:
                raise ValueError(f"events[{place}] is one event, {{name: payload}}, not {len(item)} of them")

    def content_type(self) -> str:
        return "application/vnd.amazon.eventstream"

    def parts(self) -> Iterable[Step]:
        for position, item in enumerate(self.events):
            yield item if isinstance(item, bytes | Pause) else self._frame(position, item)

    def _frame(self, position: int, named: Mapping[str, Mapping[str, object] | bytes]) -> bytes:
        [(name, payload)] = named.items()
        if name.endswith("Exception"):
            return exception(name, payload)
        if self.padded and not isinstance(payload, bytes) and "p" not in payload:
            payload = padded(payload, position)
        return event(name, payload)

    def _fields(self) -> dict[str, str]:
        return {"x-amzn-requestid": REQUEST_ID} | super()._fields()


@dataclass(frozen=True)
class Answer:
    """What the model says, put in the form the request asks for: one JSON body, or a stream of events."""

    blocks: Sequence[Block] = ()
    usage: Mapping[str, object] | None = field(default_factory=lambda: USAGE)
    stop_reason: str = "end_turn"
    fields: Mapping[str, object] | None = None
    metadata: Mapping[str, object] | None = None
    delivery: Delivery = field(default_factory=Delivery)

    def __post_init__(self) -> None:
        check_delivery(self.delivery)

    def __call__(self, request: Exchange) -> Reply:
        """Streamed where the path ends in `converse-stream`."""
        return self.streamed() if asked(request).operation == "converse-stream" else self.whole()

    def whole(self) -> JsonReply:
        body = converse_body(
            self.blocks, stop_reason=self.stop_reason, usage=self.usage, fields=self.fields, metadata=self.metadata
        )
        return JsonReply(body, **_identified(self.delivery))

    def streamed(self) -> EventsReply:
        said = events(
            self.blocks, stop_reason=self.stop_reason, usage=self.usage, fields=self.fields, metadata=self.metadata
        )
        return EventsReply(list(said), **self.delivery)


def answer(
    text: str | None = None,
    *,
    reasoning: str | Thought | Sequence[str | Pause | Thought] | None = None,
    tool_calls: Sequence[ToolCall] = (),
    usage: Mapping[str, object] | None = USAGE,
    deltas: Sequence[str | Pause] | None = None,
    stop_reason: str | None = None,
    trace: Mapping[str, object] | None = None,
    fields: Mapping[str, object] | None = None,
    metadata: Mapping[str, object] | None = None,
    **delivery: Unpack[Delivery],
) -> Answer:
    """A reply that suits both operations alike.

    Args:
        text: the text; a stream sends it word by word.
        reasoning: blocks sent before the text; a text, or fragments in a row, are one signed block.
        tool_calls: the calls the model makes; they make the stop reason `tool_use`.
        usage: the counts; None leaves them out, and with them the `metadata` event of a stream.
        deltas: the text in the fragments a stream sends, with pauses, instead of `text`.
        stop_reason: instead of `end_turn` or `tool_use`.
        trace: the trace of a guardrail or a prompt router.
        fields: the `additionalModelResponseFields`.
        metadata: more members beside usage and metrics, such as `performanceConfig` and `serviceTier`.

    Raises:
        ValueError: both `text` and `deltas` are given.
    """
    if text is not None and deltas is not None:
        raise ValueError("text and deltas both give the text: give one of them")
    said: Text | None = text if deltas is None else deltas
    blocks = [*_thoughts(reasoning), *([] if said is None else [said]), *tool_calls]
    traced = {} if trace is None else {"trace": trace}
    reason = stop_reason or ("tool_use" if any(not call.server for call in tool_calls) else "end_turn")
    return Answer(blocks, usage, reason, fields, {**(metadata or {}), **traced}, delivery)


def error(
    status: int,
    code: str,
    message: str,
    *,
    retry_after: int | str | None = None,
    members: Mapping[str, object] | None = None,
    **delivery: Unpack[Delivery],
) -> JsonReply:
    """An error as the service sends it, such as `error(429, "ThrottlingException", "Too many tokens")`.

    Args:
        status: the HTTP status.
        code: the name of the exception, sent in `x-amzn-errortype`.
        message: the message.
        retry_after: the value of a `retry-after` header.
        members: more members of the body, such as `originalStatusCode` and `resourceName`.
    """
    headers = {"x-amzn-errortype": code}
    headers |= {} if retry_after is None else {"retry-after": str(retry_after)}
    body = {"message": message, **(members or {})}
    return JsonReply(body, status=status, **_identified(delivery, headers))


def asked(request: Exchange) -> Asked:
    """The model and the operation of a request that is in the journal.

    Raises:
        ValueError: its path is not one of the two operations.
    """
    found = _PATH.fullmatch(request.path)
    if found is None:
        raise ValueError(f"{request.path} is neither /model/MODEL/converse nor /model/MODEL/converse-stream")
    operation: Operation = "converse" if found["operation"] == "converse" else "converse-stream"
    return Asked(unquote(found["model"]), operation)


def server(
    replies: Iterable[ScriptedReply] = (),
    *,
    enforce: bool = True,
    repeat: Repeat = "never",
    tls: ssl.SSLContext | None = None,
) -> ScriptedServer:
    """A server of `POST /model/{modelId}/converse` and `/converse-stream`; `base_url` is boto3's `endpoint_url`.

    As the real one it refuses, without using up a reply, other paths (404), a body that is not a JSON object and a
    request that breaks the rules of Converse (400, `ValidationException`; see `converse_rules`).

    Args:
        replies: the script.
        enforce: False takes any JSON object.
        repeat: what follows the last reply.
        tls: see `ScriptedServer`.
    """
    return ScriptedServer(replies, repeat=repeat, screen=partial(_refuse, enforce=enforce), tls=tls)


_PATH: Final = re.compile(r"/model/(?P<model>[^/?]+)/(?P<operation>converse|converse-stream)")


def _refuse(request: Exchange, *, enforce: bool) -> Reply | None:
    if request.method != "POST" or not _PATH.fullmatch(request.path):
        return error(404, "UnknownOperationException", f"No operation at {request.method} {request.path}")
    try:
        body = request.json
    except ValueError:
        body = None
    if not isinstance(body, dict):
        return error(400, "SerializationException", "The body of a request must be a JSON object.")
    stored_prompt = ":prompt/" in asked(request).model_id
    broken = faults(body, stored_prompt=stored_prompt) if enforce else []
    return error(400, "ValidationException", broken[0]) if broken else None


def _thoughts(reasoning: str | Thought | Sequence[str | Pause | Thought] | None) -> Iterator[Thought]:
    match reasoning:
        case None:
            return
        case str():
            yield Reasoning(reasoning)
        case Reasoning() | RedactedReasoning():
            yield reasoning
        case several:
            yield from _in_blocks(several)


def _in_blocks(items: Sequence[str | Pause | Thought]) -> Iterator[Thought]:
    row: list[str | Pause] = []
    for item in items:
        if isinstance(item, str | Pause):
            row.append(item)
            continue
        if row:
            yield Reasoning(row)
            row = []
        yield item
    if row:
        yield Reasoning(row)


def _identified(delivery: Delivery, headers: Mapping[str, str] | None = None) -> Delivery:
    own = {"x-amzn-requestid": REQUEST_ID, **(headers or {})}
    given = {name.lower(): value for name, value in delivery.get("headers", {}).items()}
    return {**delivery, "headers": own | given}
