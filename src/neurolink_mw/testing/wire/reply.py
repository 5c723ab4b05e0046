"""Replies as values: what the server says, and how its bytes are cut, paused and broken off on the way."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal, TypedDict

from neurolink_mw.testing.wire.plan import Body, Ending, Framing, Pause, Plan, Step, frame


class Delivery(TypedDict, total=False):
    """The options every reply takes, as keyword arguments of the helpers that build one (see `Reply`)."""

    headers: Mapping[str, str]
    framing: Framing
    rechunk: int
    cuts: Sequence[int]
    pause_at: Mapping[int, Pause]
    delay: float | Pause
    cut_after: int
    reset_after: int


def check_delivery(delivery: Delivery) -> None:
    """Where a reply is described, not first when it is sent. Raises TypeError for what is no option of a reply."""
    if unknown := delivery.keys() - Delivery.__annotations__.keys():
        known = ", ".join(Delivery.__annotations__)
        raise TypeError(f"{sorted(unknown)[0]!r} is no option of this reply: besides its own it takes {known}")


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What every reply has besides its body. Offsets count bytes of the body, its framing and head left out.

    Attributes:
        status: the HTTP status.
        headers: more header fields; `connection: close` is obeyed.
        framing: None takes Content-Length for a body in one piece, and chunked transfer coding for any other.
        rechunk: cut the body every so many bytes instead of at its events. Each piece is one write, and one HTTP chunk
            where the framing is chunked: only a chunk is sure to reach the client apart from its neighbours.
        cuts: cut the body at these offsets instead.
        pause_at: by offset, the pause that starts once the bytes before it are sent.
        delay: seconds before the head is sent, or `HOLD`.
        cut_after: close the connection after so many bytes (FIN), with the body unfinished.
        reset_after: the same with a TCP reset (RST).

    Raises:
        ValueError: two options contradict each other, or `rechunk` is below 1.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    framing: Framing | None = None
    rechunk: int | None = None
    cuts: Sequence[int] | None = None
    pause_at: Mapping[int, Pause] = field(default_factory=dict)
    delay: float | Pause = 0.0
    cut_after: int | None = None
    reset_after: int | None = None

    default_framing: ClassVar[Framing] = "length"

    def __post_init__(self) -> None:
        if self.rechunk is not None and self.cuts is not None:
            raise ValueError("rechunk and cuts both say where to cut the body: give one of them")
        if self.rechunk is not None and self.rechunk < 1:
            raise ValueError(f"rechunk is the size of a piece in bytes, 1 or more, not {self.rechunk}")
        if self.cut_after is not None and self.reset_after is not None:
            raise ValueError("cut_after and reset_after both end the connection: give one of them")

    def content_type(self) -> str | None:
        """The media type of the body, unless `headers` names another."""
        return None

    def parts(self) -> Iterable[Step]:
        """The body in the pieces that belong together, with the pauses between them."""
        return ()

    @cached_property
    def plan(self) -> Plan:
        """The bytes and pauses to send. Laid out once: a reply that is repeated costs its writes alone."""
        body = Body.of(self.parts())
        length = len(body.content)
        edges = self.cuts if self.cuts is not None else body.borders
        if self.rechunk is not None:
            edges = range(self.rechunk, length, self.rechunk)
        ending, stop = self._end()
        pieces = body.pieces(edges, self.pause_at, stop)
        plan = frame(self.status, self._fields(), pieces, self._framing(), length, ending)
        if not self.delay:
            return plan
        delay = self.delay if isinstance(self.delay, Pause) else Pause(self.delay)
        return Plan(plan.status, (delay, *plan.steps), plan.ending)

    def _end(self) -> tuple[Ending, int | None]:
        if self.cut_after is not None:
            return "cut", self.cut_after
        if self.reset_after is not None:
            return "reset", self.reset_after
        return "close" if self._fields().get("connection", "").lower() == "close" else "keep-alive", None

    def _fields(self) -> dict[str, str]:
        media_type = self.content_type()
        own = {} if media_type is None else {"content-type": media_type}
        return own | {name.lower(): value for name, value in self.headers.items()}

    def _framing(self) -> Framing:
        if self.framing is not None:
            return self.framing
        recut = self.rechunk is not None or self.cuts is not None
        return "chunked" if recut else self.default_framing


@dataclass(frozen=True)
class JsonReply(Reply):
    """A JSON body, UTF-8 without escapes, so that cuts can fall inside a character."""

    body: Mapping[str, object]

    def content_type(self) -> str:
        return "application/json"

    def parts(self) -> Iterable[Step]:
        return (to_json(self.body),)


@dataclass(frozen=True)
class RawReply(Reply):
    """Any bytes: HTML, nothing, half a JSON text; or a list of pieces with pauses, such as binary frames."""

    body: bytes | Sequence[Step] = b""
    media_type: str | None = "text/plain; charset=utf-8"

    def content_type(self) -> str | None:
        return self.media_type

    def parts(self) -> Iterable[Step]:
        return (self.body,) if isinstance(self.body, bytes) else self.body

    def _framing(self) -> Framing:
        in_pieces = not isinstance(self.body, bytes)
        return "chunked" if in_pieces and self.framing is None else super()._framing()


@dataclass(frozen=True)
class SseReply(Reply):
    """A stream of server-sent events.

    Attributes:
        events: a mapping becomes `data: {json}` and an empty line; a str or bytes is sent as it is (comments, `event:`
            lines, broken framing); a `Pause` or `HOLD` pauses the stream.
        done: whether `data: [DONE]` comes last, as OpenAI sends it.
    """

    events: Sequence[SseEvent]
    done: bool = True

    default_framing: ClassVar[Framing] = "chunked"

    def content_type(self) -> str:
        return "text/event-stream"

    def parts(self) -> Iterable[Step]:
        for event in self.events:
            if isinstance(event, str):
                yield event.encode()
            elif isinstance(event, bytes | Pause):
                yield event
            else:
                yield b"data: " + to_json(event) + b"\n\n"
        if self.done:
            yield b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Disconnect(Reply):
    """No reply at all: the connection ends (FIN or RST) without a byte, after `delay`."""

    how: Literal["cut", "reset"] = "cut"

    @cached_property
    def plan(self) -> Plan:
        delay = self.delay if isinstance(self.delay, Pause) else Pause(self.delay)
        return Plan(None, (delay, b"") if self.delay else (b"",), self.how)


SseEvent = Mapping[str, object] | str | bytes | Pause


def to_json(value: object) -> bytes:
    """Compact UTF-8 JSON, as the servers of providers write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
