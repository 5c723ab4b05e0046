"""Streams of Messages on the wire: server-sent events, or Bedrock's frames around the same events."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from neurolink_mw.testing.wire.anthropic_hosts import identity
from neurolink_mw.testing.wire.bedrock_bodies import padded
from neurolink_mw.testing.wire.eventstream import event
from neurolink_mw.testing.wire.plan import Framing, Pause, Step
from neurolink_mw.testing.wire.reply import Reply, to_json

Event = Mapping[str, object] | str | bytes | Pause


@dataclass(frozen=True)
class StreamReply(Reply):
    """A stream of events, as the API sends it.

    Attributes:
        events: a mapping is one event, named by its `type`; a str or bytes is sent as it is (comments, broken framing,
            frames from `eventstream`); a `Pause` or `HOLD` pauses the stream.
        coding: server-sent events, or the frames of Bedrock, which hold one event each.
    """

    events: Sequence[Event]
    coding: Literal["sse", "eventstream"] = "sse"

    default_framing: ClassVar[Framing] = "chunked"

    def content_type(self) -> str:
        return "text/event-stream; charset=utf-8" if self.coding == "sse" else "application/vnd.amazon.eventstream"

    def parts(self) -> Iterable[Step]:
        for position, item in enumerate(self.events):
            if isinstance(item, Mapping):
                yield _sse(item) if self.coding == "sse" else _frame(item, position)
            else:
                yield item.encode() if isinstance(item, str) else item

    def _fields(self) -> dict[str, str]:
        return identity("anthropic" if self.coding == "sse" else "bedrock") | super()._fields()


def measured(
    said: Iterable[Mapping[str, object] | Pause], usage: Mapping[str, object] | None
) -> Iterator[Mapping[str, object] | Pause]:
    """The events as Bedrock sends them: it adds counts of its own to the last one."""
    counts = usage or {}
    metrics = {
        "inputTokenCount": counts.get("input_tokens", 0),
        "outputTokenCount": counts.get("output_tokens", 0),
        "invocationLatency": 120,
        "firstByteLatency": 60,
    }
    for item in said:
        if isinstance(item, Mapping) and item.get("type") == "message_stop":
            item = {**item, "amazon-bedrock-invocationMetrics": metrics}
        yield item


def _sse(item: Mapping[str, object]) -> bytes:
    name = item.get("type")
    return (b"event: %b\n" % name.encode() if isinstance(name, str) else b"") + b"data: " + to_json(item) + b"\n\n"


def _frame(item: Mapping[str, object], position: int) -> bytes:
    return event("chunk", padded({"bytes": b64encode(to_json(item)).decode()}, position))
