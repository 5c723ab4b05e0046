"""How the bytes of a Bedrock reply reach a real boto3: cut, held, broken off, over TLS."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import HTTPClientError
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.testing.wire.clients import HELLO, bedrock_client, collect, converse, server_tls, stream, texts
from urllib3.exceptions import ProtocolError

from neurolink_mw.testing import wire
from neurolink_mw.testing.wire import bedrock

CUT = bedrock.answer("a whole answer", tool_calls=[bedrock.ToolCall("look", {"q": 1})])
LENGTH = sum(len(part) for part in CUT.streamed().parts() if isinstance(part, bytes))


@given(st.lists(st.integers(1, LENGTH - 1), max_size=5))
@settings(max_examples=15, deadline=None)
def test_cuts_at_any_byte_change_nothing(cuts: list[int]) -> None:
    reply = bedrock.Answer(CUT.blocks, stop_reason=CUT.stop_reason, delivery={"cuts": cuts})
    with wire.bedrock_server([CUT, reply]) as server:
        assert stream(server) == stream(server)


@given(st.integers(0, LENGTH - 1), st.booleans())
@settings(max_examples=15, deadline=None)
def test_a_break_at_any_byte_leaves_the_events_before_it(offset: int, reset: bool) -> None:
    delivery: wire.Delivery = {"reset_after": offset} if reset else {"cut_after": offset}
    reply = bedrock.Answer(CUT.blocks, stop_reason=CUT.stop_reason, delivery=delivery)
    borders = list(itertools.accumulate(len(part) for part in CUT.streamed().parts() if isinstance(part, bytes)))
    events: list[Mapping[str, Any]] = []
    # A reset may overtake the head, and then it is botocore's own error.
    with wire.bedrock_server([reply]) as server, pytest.raises((ProtocolError, HTTPClientError)):
        collect(server, events)
    assert len(events) <= sum(border <= offset for border in borders)
    if not reset:
        assert len(events) == sum(border <= offset for border in borders)


def test_a_stream_is_held_between_two_events() -> None:
    with (
        wire.bedrock_server([bedrock.answer(deltas=["one", wire.HOLD, " two"])]) as server,
        bedrock_client(server) as client,
    ):
        events = iter(client.converse_stream(modelId="m", messages=HELLO)["stream"])
        assert texts([next(events), next(events)]) == ["one"]
        assert server.journal[0].outcome == "open"
        server.release()
        assert texts(list(events)) == [" two"]
        assert server.wait_for_closed().outcome == "complete"


@pytest.mark.parametrize("ask", [converse, stream])
def test_a_delay_passes_before_the_head(ask: Any) -> None:
    with wire.bedrock_server([bedrock.answer("a", delay=wire.Pause(0.01))]) as server:
        assert ask(server)


# TLS


def test_the_server_speaks_tls() -> None:
    with wire.bedrock_server([bedrock.answer("a b")], repeat="last", tls=server_tls()) as server:
        assert server.base_url.startswith("https://")
        assert converse(server)["stopReason"] == "end_turn"
        assert texts(stream(server)) == ["a", " b"]


def test_a_client_that_leaves_a_held_tls_stream_is_noticed() -> None:
    held = bedrock.answer(deltas=["one", wire.HOLD, " two"])
    with wire.bedrock_server([held], tls=server_tls()) as server, bedrock_client(server) as client:
        answer = client.converse_stream(modelId="m", messages=HELLO)
        assert next(iter(answer["stream"]))
        answer["stream"].close()
        assert server.wait_for_closed().outcome == "client-closed"


def test_a_large_answer_is_whole_over_tls() -> None:
    text = "x" * 1_000_000
    with wire.bedrock_server([bedrock.answer(text)], tls=server_tls()) as server:
        assert converse(server)["output"]["message"]["content"] == [{"text": text}]
        assert server.journal[0].outcome == "complete"


def test_a_client_that_speaks_no_tls_is_cut_off() -> None:
    with (
        wire.bedrock_server(tls=server_tls()) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=5) as client,
    ):
        client.sendall(b"POST /model/m/converse HTTP/1.1\r\n\r\n")
        while client.recv(4096):
            pass
    assert len(server.journal) == 0
