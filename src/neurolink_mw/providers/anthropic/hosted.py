"""Events of Claude behind Bedrock, which come in frames of AWS's own: InvokeModelWithResponseStream.

botocore takes the frames apart, as it does for the SDK. The SDK's own iteration is not used: where it raises, it leaves
the generators that it nests half-way, which trio reports as a leak.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import orjson

from ...errors import ProviderError
from ..common.body import HttpResponse, let_go
from .errors import ErrorReader

AWS_EVENTS: Final = "application/vnd.amazon.eventstream"

FrameEvent: TypeAlias = bytes | Mapping[str, object]
"""The JSON of an event, or what a frame says of a failure, as an error event says it."""


class FrameSource:
    """The events in the frames of a response; a `Source` of `common.stream`. transport: what its client raises when a
    body fails."""

    def __init__(self, response: HttpResponse, errors: ErrorReader, transport: tuple[type[BaseException], ...]) -> None:
        from botocore.eventstream import EventStreamBuffer, ParserError  # the SDK has loaded it by now

        self.failures: tuple[type[BaseException], ...] = (*transport, ParserError)
        self._broken: type[Exception] = ParserError
        self._frames: Any = EventStreamBuffer()
        self._response = response
        self._chunks = response.aiter_bytes()
        self._errors = errors
        self._transport = transport

    async def next(self) -> Sequence[FrameEvent] | None:
        while not (events := self._whole_frames()):
            chunk = await anext(self._chunks, None)
            if chunk is None:
                return None
            self._frames.add_data(chunk)
        return events

    def _whole_frames(self) -> list[FrameEvent]:
        events: list[FrameEvent] = []
        try:
            for frame in self._frames:
                events.append(event_of(frame.headers, frame.payload))
        except self._broken:
            if not events:  # else those before it first: it is raised again
                raise
        return events

    def rest(self, begun: bool) -> bytes | None:
        return None

    def error_of(self, failure: BaseException, begun: bool) -> ProviderError:
        status = self._response.status_code
        return self._errors.of_transport(failure, during="in the middle of the stream", begun=begun, status=status)

    async def let_go(self) -> None:
        await let_go(self._chunks, self._response, self._transport)


def event_of(headers: Mapping[str, object], payload: bytes) -> FrameEvent:
    """What one frame says.

    An event is in the member `bytes` of its payload. An exception is named in a header, and explained in the payload;
    an error is wholly in headers.
    """
    kind = headers.get(":message-type")
    if kind == "error":
        return _failure(headers.get(":error-code"), headers.get(":error-message"))
    try:
        said = orjson.loads(payload)
    except orjson.JSONDecodeError:
        said = None
    members = said if isinstance(said, dict) else {}
    if kind == "exception":
        return _failure(headers.get(":exception-type"), members.get("message") or members.get("Message"))
    encoded = members.get("bytes")
    if not isinstance(encoded, str):
        return payload  # of a kind that is not known
    try:
        return base64.b64decode(encoded)
    except binascii.Error:
        return encoded.encode()


def _failure(name: object, message: object) -> dict[str, object]:
    return {"type": "error", "error": {"type": name, "message": message}}
