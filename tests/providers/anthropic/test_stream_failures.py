"""From events to parts: errors within a stream, cuts, and events that cannot be read."""

from __future__ import annotations

import json

import pytest

from neurolink_mw.errors import (
    AuthenticationError,
    InvalidRequestError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    ServerError,
    StreamInterruptedError,
)
from neurolink_mw.protocol import TextDelta, ToolInputEnd, ToolResult, check_grammar, collect
from neurolink_mw.providers.anthropic.stream import MessageStream
from neurolink_mw.providers.common.sse import ServerSentEvent

from ..streams import errors, finish
from .events import (
    BEGIN,
    CALLED,
    END,
    MODEL,
    STOPPED,
    TEXT,
    Json,
    began,
    call_events,
    delta,
    events_of,
    failed,
    kinds,
    message,
    parts_of,
    server_result,
    server_use,
    start,
    stop,
    text,
    thinking,
    use,
)


@pytest.mark.parametrize(
    ("kind", "cls", "status", "retryable"),
    [
        ("overloaded_error", OverloadedError, 529, True),
        ("api_error", ServerError, 500, True),
        ("rate_limit_error", RateLimitError, 429, True),
        ("invalid_request_error", InvalidRequestError, 400, False),
        ("authentication_error", AuthenticationError, 401, False),
    ],
)
def test_an_error_within_the_stream_is_typed(kind: str, cls: type, status: int, retryable: bool) -> None:
    parts = parts_of(BEGIN, start(text("par")), failed(kind))
    (error,) = errors(parts)
    assert isinstance(error, cls)
    assert (error.status, error.retryable) == (status, retryable)
    assert kinds(parts)[-3:] == ["error", "text-end", "finish"]
    assert finish(parts) == ("error", None)


def test_nothing_that_follows_an_error_of_the_service_is_of_the_answer() -> None:
    parts = parts_of(BEGIN, start(text("par")), failed(), delta(text="x"), stop(), *END)
    assert collect(parts).text == "par"
    assert finish(parts) == ("error", None)


def test_an_error_event_in_words_is_an_error() -> None:
    (error,) = errors(parts_of(BEGIN, ServerSentEvent(b"gone away", "error")))
    assert "gone away" in str(error)


def test_an_error_of_a_gateway_without_a_type_is_an_error() -> None:
    (error,) = errors(parts_of(BEGIN, {"error": {"message": "upstream is gone"}}))
    assert "upstream is gone" in str(error)


def test_a_stream_that_ends_before_its_last_event_was_interrupted() -> None:
    for events in (TEXT[:4], TEXT[:-1], []):
        parts = parts_of(*events)
        (error,) = errors(parts)
        assert isinstance(error, StreamInterruptedError)
        assert finish(parts) == ("error", "interrupted")


def test_a_last_event_without_its_empty_line_is_the_end_only_where_it_is_the_last_one() -> None:
    for rest, unified in ((json.dumps(STOPPED).encode(), "stop"), (json.dumps(delta(text="x")).encode(), "error")):
        machine = MessageStream()
        parts = [*machine.start(), *(part for event in TEXT[:-1] for part in machine.feed(event))]
        parts += machine.finish(rest)
        check_grammar(parts)
        assert finish(parts)[0] == unified


def test_a_source_that_fails_ends_the_stream_with_its_error() -> None:
    machine = MessageStream()
    parts = [*machine.start(), *(part for event in TEXT[:4] for part in machine.feed(event))]
    failure = StreamInterruptedError("cut")
    parts += machine.interrupt(failure)
    check_grammar(parts)
    assert errors(parts) == [failure]
    assert machine.interrupt(failure) == machine.finish() == []


@pytest.mark.parametrize("data", [b"{not json", b"[1]", b"5"])
def test_an_event_that_cannot_be_read_is_an_error_and_the_rest_is_delivered(data: bytes) -> None:
    parts = parts_of(TEXT[0], data, *TEXT[1:])
    assert len(errors(parts)) == 1
    assert collect(parts).text == "Hello"
    assert finish(parts) == ("error", "end_turn")


def test_a_call_that_may_lack_a_piece_is_not_passed_on() -> None:
    begin, piece, end = call_events('{"q":1}')
    parts = parts_of(BEGIN, begin, b"{broken", piece, end, *CALLED)
    assert collect(parts).tool_calls == ()
    assert ToolInputEnd("t1") in parts


def test_of_several_faults_the_first_is_told() -> None:
    assert len(errors(parts_of(BEGIN, b"{broken", b"{broken", failed(), *END))) == 1


@pytest.mark.parametrize(
    "event",
    [
        {"type": "message_start"},
        {"type": "content_block_start", "index": 0},
        {"type": "content_block_start", "content_block": {"type": "text"}},
        {"type": "content_block_stop", "index": "0"},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_delta", "index": 0},
        {"type": "content_block_delta", "index": [], "delta": {}},
        start(use() | {"name": ""}),
    ],
)
def test_an_event_without_what_it_must_have_is_an_error(event: Json) -> None:
    (error,) = errors(parts_of(event, *END))
    assert isinstance(error, ProviderError)


@pytest.mark.parametrize(
    ("block", "piece"),
    [
        (text(""), {"thinking": "x"}),
        (text(""), {"type": "text_delta", "text": 5}),
        (thinking(""), {"text": "x"}),
        (use() | {"input": {}}, {"text": "x"}),
        (server_result(), {"text": "x"}),
    ],
)
def test_a_piece_of_another_kind_than_its_block_is_an_error(block: Json, piece: Json) -> None:
    assert len(errors(parts_of(BEGIN, start(block), delta(**piece), stop(), *END))) == 1


def test_a_second_beginning_of_the_same_message_says_nothing() -> None:
    assert parts_of(BEGIN, BEGIN, *TEXT[1:]) == parts_of(*TEXT)


def test_the_beginning_of_another_message_is_an_error_and_ends_this_one() -> None:
    parts = parts_of(BEGIN, start(text("a")), began(id="msg-2"), start(text("b")), delta(text="c"), stop(), *END)
    assert len(errors(parts)) == 1
    assert collect(parts).text == "a"
    assert finish(parts) == ("error", None)


def test_errors_hold_nothing_of_what_was_sent_as_a_secret() -> None:
    from neurolink_mw.providers.anthropic.errors import ErrorReader

    machine = MessageStream(errors=ErrorReader("anthropic", MODEL, ["sk-very-secret"]))
    (error,) = errors(machine.feed(failed(said="your key sk-very-secret is odd")))
    assert "very-secret" not in str(error)


def test_numbers_and_halves_of_characters_that_json_does_not_have_are_read() -> None:
    (said,) = [
        part for part in parts_of(BEGIN, start(text("")), _surrogate(), stop(), *END) if isinstance(part, TextDelta)
    ]
    assert said.delta == "a\ufffd"


def _surrogate() -> bytes:
    return b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\\ud83d"}}'


def test_a_result_of_the_service_is_not_told_where_the_stream_was_cut_within_it() -> None:
    parts = parts_of(BEGIN, *events_of(message(server_use()))[2:-2], start(server_result(), 1))
    assert not any(isinstance(part, ToolResult) for part in parts)


def test_an_event_that_is_named_an_error_is_one_whatever_it_holds() -> None:
    event = ServerSentEvent(b'{"message":"boom"}', "error")
    parts = parts_of(BEGIN, event, *END)
    assert finish(parts)[0] == "error"
    assert len(errors(parts)) == 1


def test_an_event_that_is_nested_without_end_is_an_error_part() -> None:
    deep: Json = {}
    for _ in range(900):
        deep = {"a": deep}
    parts = parts_of(*events_of(message(text("a"), server_use(), server_result(content=[deep]), text("b"))))
    assert finish(parts)[0] == "error"
    assert len(errors(parts)) == 1


def test_a_piece_of_a_text_that_is_null_says_nothing() -> None:
    parts = parts_of(BEGIN, start(text("")), delta(type="text", text=None), delta(text="a"), stop(), *END)
    assert collect(parts).text == "a"
    assert errors(parts) == []


def test_a_number_beyond_64_bits_is_kept_in_an_input_that_comes_whole() -> None:
    call = {"type": "content_block_start", "index": 0, "content_block": use(input={"id": 123456789012345678901234})}
    event = ServerSentEvent(json.dumps(call).encode(), "content_block_start")
    parts = parts_of(BEGIN, event, stop(), *CALLED)
    assert [one.input for one in collect(parts).tool_calls] == ['{"id":123456789012345678901234}']
