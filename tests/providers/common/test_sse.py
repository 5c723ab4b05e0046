"""Server-sent events on bytes: the HTML standard's rules, however the network cuts them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.errors import ProviderError
from neurolink_mw.providers.common.sse import MAX_EVENT_BYTES, ServerSentEvent, SseDecoder


def decode(*chunks: bytes, limit: int = MAX_EVENT_BYTES) -> list[ServerSentEvent]:
    decoder = SseDecoder(limit)
    return [event for chunk in chunks for event in decoder.feed(chunk)]


def data(*chunks: bytes) -> list[bytes]:
    return [event.data for event in decode(*chunks)]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_lines_end_at_lf_cr_and_crlf(end: bytes) -> None:
    assert data(b"data: a" + end + end + b"data: b" + end + end) == [b"a", b"b"]


def test_a_crlf_cut_in_two_is_one_line_end() -> None:
    assert data(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == [b"a\nb"]


def test_an_event_is_told_at_the_cr_that_ends_it() -> None:
    decoder = SseDecoder()
    assert [event.data for event in decoder.feed(b"data: a\r\n\r")] == [b"a"]
    assert decoder.feed(b"\n") == []


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c"])
def test_other_separators_are_ordinary_characters(character: str) -> None:
    text = f'{{"content":"a{character}b"}}'.encode()
    assert data(b"data: " + text + b"\n\n") == [text]


def test_data_lines_are_joined_by_a_line_feed() -> None:
    assert data(b"data: a\ndata:\ndata: b\n\n") == [b"a\n\nb"]


def test_one_leading_space_is_taken_off() -> None:
    assert data(b"data:  a\n\n", b"data:b\n\n", b"data\n\n") == [b" a", b"b", b""]


def test_comments_and_unknown_fields_are_left_out() -> None:
    assert data(b": ping\n\n: more\ndata: a\nfoo: bar\ndataset: x\n\n\n\n") == [b"a"]


def test_event_id_and_retry_are_read() -> None:
    first, second = decode(b"event: error\nid: 7\nretry: 10\ndata: a\n\ndata: b\nretry: x\nid: a\0b\n\n")
    assert first == ServerSentEvent(b"a", "error", "7", 10)
    assert second == ServerSentEvent(b"b", "", "7", None)


def test_a_type_without_data_does_not_reach_the_next_event() -> None:
    assert decode(b"event: ping\n\ndata: a\n\n") == [ServerSentEvent(b"a")]


@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_a_byte_order_mark_at_the_start_is_dropped(cut: int) -> None:
    stream = b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n"
    assert data(stream[:cut], stream[cut:]) == [b"a"]


def test_a_character_may_be_cut_anywhere() -> None:
    stream = "data: é😀\n\n".encode()
    assert data(*(stream[i : i + 1] for i in range(len(stream)))) == ["é😀".encode()]


@pytest.mark.parametrize(
    ("stream", "rest"),
    [
        (b"data: a\n\n", None),
        (b"data: a\n\ndata: b\n", b"b"),
        (b"data: a\n\ndata: b", b"b"),
        (b"data: a\n\n: comment", None),
        (b"\xef\xbb", None),
        (b"", None),
    ],
)
def test_an_event_without_its_empty_line_is_not_told_but_handed_out_at_the_end(stream: bytes, rest: bytes) -> None:
    decoder = SseDecoder()
    assert [event.data for event in decoder.feed(stream)] == ([b"a"] if b"a" in stream else [])
    assert decoder.finish() == rest


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_event_larger_than_the_bound_is_an_error(size: int) -> None:
    stream = b"data: " + b"x" * 60 + b"\n\n" + b"data: " + b"x" * 100 + b"\n\n"
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    with pytest.raises(ProviderError, match="larger than 80 bytes"):
        decode(*pieces, limit=80)


def test_an_event_of_endless_short_lines_is_an_error() -> None:
    with pytest.raises(ProviderError, match="larger than 100 bytes"):
        decode(*[b"data: x\n"] * 100, limit=100)


def test_the_bound_is_for_one_event_not_for_the_stream() -> None:
    decoder = SseDecoder(max_event_bytes=20)
    assert sum(len(decoder.feed(b"data: 0123456789\n\n")) for _ in range(100)) == 100


PIECES = st.sampled_from(
    [
        *(b"data: a", b"data:", b"data", b"\xef\xbb\xbf", "é\u2028😀".encode(), b": c"),
        *(b"event: e", b"id: 1", b"retry: 2", b"\r", b"\n", b"\r\n", b"\n\n", b" ", b"x", b"\0"),
    ]
)


@given(st.lists(PIECES, max_size=30).map(b"".join), st.data())
def test_any_cutting_of_the_bytes_yields_the_same_events(stream: bytes, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    whole, pieces = SseDecoder(), SseDecoder()
    events = whole.feed(stream)
    assert [e for a, b in pairwise([0, *cuts, len(stream)]) for e in pieces.feed(stream[a:b])] == events
    assert pieces.finish() == whole.finish()


def test_a_retry_of_thousands_of_digits_is_ignored() -> None:
    (event,) = decode(b"retry: " + b"9" * 5000 + b"\ndata: a\n\n")
    assert event.retry is None
