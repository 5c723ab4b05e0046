"""The frames of the event stream, read by botocore's own decoder."""

from __future__ import annotations

import json

import pytest
from botocore.eventstream import ChecksumMismatch, EventStreamBuffer, EventStreamMessage
from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.testing.wire import eventstream

PAYLOADS = st.dictionaries(st.text(), st.text() | st.integers() | st.booleans() | st.none())


def decoded(*chunks: bytes) -> list[EventStreamMessage]:
    buffer = EventStreamBuffer()
    messages: list[EventStreamMessage] = []
    for chunk in chunks:
        buffer.add_data(chunk)
        messages += buffer
    return messages


def test_an_event_names_its_type_and_carries_json() -> None:
    [message] = decoded(eventstream.event("messageStart", {"role": "assistant"}))
    assert message.headers == {
        ":event-type": "messageStart",
        ":content-type": "application/json",
        ":message-type": "event",
    }
    assert message.payload == b'{"role":"assistant"}'


def test_an_exception_is_one_to_its_reader() -> None:
    [message] = decoded(eventstream.exception("throttlingException", {"message": "slow down"}))
    assert message.headers[":message-type"] == "exception"
    assert message.headers[":exception-type"] == "throttlingException"
    assert message.to_response_dict()["status_code"] == 400


def test_an_error_stands_in_the_headers() -> None:
    [message] = decoded(eventstream.error("InternalError", "it broke"))
    assert message.headers == {":error-code": "InternalError", ":error-message": "it broke", ":message-type": "error"}
    assert message.payload == b""


def test_a_payload_of_bytes_is_sent_as_it_is() -> None:
    [message] = decoded(eventstream.event("contentBlockDelta", b'{"half'))
    assert message.payload == b'{"half'


@given(name=st.text(min_size=1, max_size=60), payload=PAYLOADS)
def test_any_event_comes_back_as_it_was(name: str, payload: dict[str, object]) -> None:
    [message] = decoded(eventstream.event(name, payload))
    assert message.headers[":event-type"] == name
    assert json.loads(message.payload) == payload


@given(st.lists(PAYLOADS, max_size=4), st.data())
def test_frames_may_be_cut_anywhere(payloads: list[dict[str, object]], data: st.DataObject) -> None:
    content = b"".join(eventstream.event("e", payload) for payload in payloads)
    edge = data.draw(st.integers(0, len(content)))
    assert [json.loads(message.payload) for message in decoded(content[:edge], content[edge:])] == payloads


@pytest.mark.parametrize("corrupt", ["prelude", "message"])
def test_a_corrupt_checksum_is_noticed(corrupt: eventstream.Corrupt) -> None:
    for frame in (
        eventstream.event("e", {"a": 1}, corrupt=corrupt),
        eventstream.exception("e", {"a": 1}, corrupt=corrupt),
        eventstream.error("e", "m", corrupt=corrupt),
    ):
        with pytest.raises(ChecksumMismatch):
            decoded(frame)


def test_only_the_corrupt_checksum_is_wrong() -> None:
    sound = eventstream.event("e", {"a": 1})
    prelude = eventstream.event("e", {"a": 1}, corrupt="prelude")
    assert (prelude[:8], prelude[12:-4]) == (sound[:8], sound[12:-4])
    assert eventstream.event("e", {"a": 1}, corrupt="message")[:-4] == sound[:-4]


def test_a_header_that_fits_no_frame_is_refused() -> None:
    with pytest.raises(ValueError, match="1 to 255 bytes"):
        eventstream.frame({"": "v"}, b"")
    with pytest.raises(ValueError, match="at most 32767"):
        eventstream.frame({":error-message": "x" * 32768}, b"")
