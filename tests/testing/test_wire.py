"""The wire servers, seen from the outside: real sockets, real httpx, and the journal to wait on."""

from __future__ import annotations

import json
import resource
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest

from neurolink_mw.testing import wire
from neurolink_mw.testing.wire import openai

ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
STREAMED = {**ASKED, "stream": True}


def ask(server: wire.ScriptedServer, body: object = ASKED) -> httpx.Response:
    with httpx.Client(trust_env=False) as client:
        return client.post(f"{server.base_url}/chat/completions", json=body)


@contextmanager
def streaming(server: wire.ScriptedServer) -> Iterator[httpx.Response]:
    with (
        httpx.Client(trust_env=False) as client,
        client.stream("POST", f"{server.base_url}/chat/completions", json=STREAMED) as response,
    ):
        yield response


def raw_request(body: object = STREAMED, *, path: str = "/v1/chat/completions") -> bytes:
    content = json.dumps(body).encode()
    return b"POST %b HTTP/1.1\r\nHost: wire\r\nContent-Length: %d\r\n\r\n%b" % (path.encode(), len(content), content)


def dial(server: wire.ScriptedServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=5)


def read_to_end(client: socket.socket) -> bytes:
    return b"".join(iter(lambda: client.recv(65536), b""))


def read_past(client: socket.socket, marker: bytes) -> bytes:
    received = b""
    while marker not in received:
        data = client.recv(65536)
        assert data, f"the connection ended before {marker!r}"
        received += data
    return received


def events(response: httpx.Response) -> list[object]:
    lines = [line.removeprefix("data: ") for line in response.text.split("\n") if line.startswith("data: ")]
    return [json.loads(line) if line != "[DONE]" else line for line in lines]


# Replies


def test_a_json_reply_has_its_status_headers_and_length() -> None:
    with wire.ScriptedServer([wire.JsonReply({"é": 1}, status=202, headers={"X-Request-Id": "r1"})]) as server:
        response = httpx.get(server.base_url)
    assert (response.status_code, response.json()) == (202, {"é": 1})
    assert response.headers["x-request-id"] == "r1"
    assert response.headers["content-type"] == "application/json"
    assert response.headers["content-length"] == str(len(b'{"\xc3\xa9":1}'))


@pytest.mark.parametrize("body", [b"", b"<html>busy</html>", b'{"choices": [', b"[1]"])
def test_a_raw_reply_sends_any_bytes_as_they_are(body: bytes) -> None:
    with wire.ScriptedServer([wire.RawReply(body, media_type="text/html", status=503)]) as server:
        response = httpx.get(server.base_url)
    assert (response.status_code, response.content) == (503, body)
    assert response.headers["content-type"] == "text/html"


def test_a_raw_reply_in_pieces_is_chunked_piece_by_piece() -> None:
    with (
        wire.ScriptedServer([wire.RawReply([b"\x00\x01", b"\xff"])]) as server,
        httpx.stream("GET", server.base_url) as response,
    ):
        assert list(response.iter_raw()) == [b"\x00\x01", b"\xff"]


def test_an_sse_reply_sends_mappings_as_data_and_text_untouched() -> None:
    with wire.ScriptedServer([wire.SseReply([{"a": "é"}, ": ping\n\n", b"data: \xff\n\n"])]) as server:
        response = httpx.get(server.base_url)
    assert response.headers["content-type"] == "text/event-stream"
    assert response.content == 'data: {"a":"é"}\n\n: ping\n\n'.encode() + b"data: \xff\n\ndata: [DONE]\n\n"


def test_an_sse_reply_can_leave_the_done_marker_out() -> None:
    with wire.ScriptedServer([wire.SseReply([{}], done=False)]) as server:
        assert httpx.get(server.base_url).content == b"data: {}\n\n"


def test_a_reply_may_be_a_function_of_the_request() -> None:
    with wire.ScriptedServer([lambda request: wire.JsonReply({"path": request.path})]) as server:
        assert httpx.get(f"{server.base_url}/here?x=1").json() == {"path": "/here?x=1"}


@pytest.mark.parametrize("answer", [wire.anthropic.answer, wire.bedrock.answer, wire.openai.answer])
def test_an_answer_with_an_unknown_option_is_refused_where_it_is_described(answer: Any) -> None:
    with pytest.raises(TypeError, match=r"'dealy' is no option of this reply: .*delay"):
        answer("x", dealy=1)


def test_a_function_that_raises_answers_500_and_tells_the_error() -> None:
    def fails(request: wire.Exchange) -> wire.Reply:
        raise LookupError("no such reply")

    with wire.ScriptedServer([fails]) as server:
        response = httpx.get(server.base_url)
    assert response.status_code == 500
    assert "LookupError: no such reply" in response.json()["error"]["message"]
    assert server.journal[0].source == "failed"


def test_a_body_that_is_not_json_answers_500_instead_of_hanging() -> None:
    with wire.ScriptedServer([wire.JsonReply({"a": object()})]) as server:
        assert "TypeError" in httpx.get(server.base_url).json()["error"]["message"]


def test_a_disconnect_ends_the_connection_without_a_byte() -> None:
    with wire.ScriptedServer([wire.Disconnect()]) as server, dial(server) as client:
        client.sendall(raw_request())
        assert read_to_end(client) == b""
        assert (server.journal[0].outcome, server.journal[0].status) == ("cut", None)


def test_replies_come_in_order_and_pushed_ones_last() -> None:
    with wire.openai_server([openai.text("one")]) as server:
        server.push(openai.text("two"))
        texts = [ask(server).json()["choices"][0]["message"]["content"] for _ in range(2)]
    assert texts == ["one", "two"]


def test_a_script_that_is_exhausted_says_so_with_a_500() -> None:
    with wire.openai_server() as server:
        response = ask(server)
    assert response.status_code == 500
    assert "script is exhausted" in response.json()["error"]["message"]
    assert (server.journal[0].source, server.journal[0].status) == ("exhausted", 500)


def test_a_reply_pushed_after_exhaustion_answers_the_next_request() -> None:
    with wire.openai_server() as server:
        ask(server)
        server.push(openai.text("late"))
        assert ask(server).status_code == 200


@pytest.mark.parametrize(("repeat", "statuses"), [("last", [201, 202, 202, 202]), ("all", [201, 202, 201, 202])])
def test_a_script_can_repeat_its_last_reply_or_all_of_it(repeat: wire.Repeat, statuses: list[int]) -> None:
    replies = [wire.RawReply(status=201), wire.RawReply(status=202)]
    with wire.ScriptedServer(replies, repeat=repeat) as server:
        assert [httpx.get(server.base_url).status_code for _ in range(4)] == statuses


# Delivery


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_rechunked_stream_arrives_in_pieces_of_that_size_and_whole(size: int) -> None:
    reply = wire.SseReply([{"text": "naïve 日本 🙂"}])
    with wire.ScriptedServer([reply, replace(reply, rechunk=size)]) as server, httpx.Client(trust_env=False) as client:
        whole = client.get(server.base_url).content
        with client.stream("GET", server.base_url) as response:
            pieces = list(response.iter_raw())
    assert pieces == [whole[start : start + size] for start in range(0, len(whole), size)]


def test_a_cut_can_fall_at_every_byte_of_a_body() -> None:
    reply, whole = wire.JsonReply({"text": "é🙂"}), '{"text":"é🙂"}'.encode()
    offsets = range(1, len(whole))
    with (
        wire.ScriptedServer([replace(reply, cuts=[offset]) for offset in offsets]) as server,
        httpx.Client(trust_env=False) as client,
    ):
        for offset in offsets:
            with client.stream("GET", server.base_url) as response:
                assert list(response.iter_raw()) == [whole[:offset], whole[offset:]]


@pytest.mark.parametrize("framing", ["length", "chunked", "until-close"])
def test_each_framing_delivers_the_same_body(framing: wire.Framing) -> None:
    with wire.ScriptedServer([wire.SseReply([{"n": 1}], framing=framing)]) as server:
        response = httpx.get(server.base_url)
    assert response.content == b'data: {"n":1}\n\ndata: [DONE]\n\n'
    assert ("content-length" in response.headers) == (framing == "length")
    assert ("transfer-encoding" in response.headers) == (framing == "chunked")


def test_a_cut_chunked_body_lacks_its_last_chunk() -> None:
    with wire.openai_server([openai.stream_text(["Hello"], cut_after=10)]) as server, streaming(server) as response:
        received: list[bytes] = []
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
            received.extend(response.iter_raw())
        assert received == [b'data: {"id']
        assert server.journal[0].outcome == "cut"


def test_a_cut_body_with_a_length_falls_short_of_it() -> None:
    with wire.openai_server([openai.text("Hello", cut_after=10)]) as server, pytest.raises(httpx.RemoteProtocolError):
        ask(server)


def test_a_cut_after_no_bytes_sends_the_head_alone() -> None:
    with wire.openai_server([openai.text("Hello", cut_after=0)]) as server, dial(server) as client:
        client.sendall(raw_request())
        assert read_to_end(client).endswith(b"\r\n\r\n")


def test_a_reset_reaches_the_client_as_one() -> None:
    with wire.openai_server([openai.stream_text(["Hello"], reset_after=10)]) as server, dial(server) as client:
        client.sendall(raw_request())
        with pytest.raises(ConnectionResetError):
            read_to_end(client)
        assert server.journal[0].outcome == "cut"


def test_a_reply_that_asks_to_close_closes_after_its_end() -> None:
    reply = openai.text("bye", headers={"Connection": "close"})
    with wire.openai_server([reply]) as server, dial(server) as client:
        client.sendall(raw_request())
        assert read_to_end(client).endswith(b"}")
        assert server.journal[0].outcome == "complete"


def test_a_delay_passes_before_the_head() -> None:
    with wire.openai_server([openai.text("late", delay=0.01)]) as server:
        assert ask(server).elapsed.total_seconds() >= 0.01


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="rechunk and cuts"):
        wire.RawReply(b"abc", rechunk=1, cuts=[2])
    with pytest.raises(ValueError, match="cut_after and reset_after"):
        wire.RawReply(b"abc", cut_after=1, reset_after=2)


# Holding


def test_a_held_stream_goes_on_when_released() -> None:
    with wire.openai_server([openai.stream_text(["Hel", wire.HOLD, "lo"])]) as server, streaming(server) as response:
        arriving = response.iter_text()
        received = next(arriving)
        while '"Hel"' not in received:
            received += next(arriving)
        assert '"lo"' not in received
        assert server.journal[0].outcome == "open"
        server.release()
        assert '"lo"' in "".join(arriving)


def test_each_release_lets_a_reply_pass_one_hold() -> None:
    with (
        wire.ScriptedServer([wire.RawReply([b"a", wire.HOLD, b"b", wire.HOLD, b"c"])]) as server,
        httpx.stream("GET", server.base_url) as response,
    ):
        arriving = response.iter_raw()
        assert next(arriving) == b"a"
        server.release()
        assert next(arriving) == b"b"
        assert server.journal[0].outcome == "open"
        server.release()
        assert list(arriving) == [b"c"]


def test_a_release_before_the_hold_is_reached_is_kept_for_it() -> None:
    reply = wire.RawReply([b"a", wire.Pause(0.02), wire.HOLD, b"b"])
    with wire.ScriptedServer([reply]) as server, httpx.stream("GET", server.base_url) as response:
        server.release()
        assert response.read() == b"ab"


def test_a_hold_can_fall_between_any_two_bytes() -> None:
    with (
        wire.ScriptedServer([wire.JsonReply({"a": 1}, framing="chunked", pause_at={3: wire.HOLD})]) as server,
        httpx.stream("GET", server.base_url) as response,
    ):
        arriving = response.iter_raw()
        assert next(arriving) == b'{"a'
        server.release()
        assert b"".join(arriving) == b'":1}'


def test_a_client_that_leaves_a_held_stream_is_noticed() -> None:
    with wire.openai_server([openai.stream_text(["Hel", wire.HOLD])]) as server:
        with streaming(server) as response:
            next(response.iter_raw())
        assert server.wait_for_closed().outcome == "client-closed"
        server.wait_until(lambda _: server.open_connections == 0)


def test_a_client_that_leaves_while_the_head_is_held_is_noticed() -> None:
    with wire.openai_server([openai.text("never", delay=wire.HOLD)]) as server:
        with dial(server) as client:
            client.sendall(raw_request(ASKED))
            server.wait_until(lambda journal: len(journal) == 1)
        assert server.wait_for_closed().outcome == "client-closed"


def test_a_client_that_resets_is_noticed() -> None:
    with wire.openai_server([openai.text("never", delay=wire.HOLD)]) as server:
        client = dial(server)
        client.sendall(raw_request(ASKED))
        server.wait_until(lambda journal: len(journal) == 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        assert server.wait_for_closed().outcome == "client-closed"


def test_a_client_that_leaves_without_reading_stops_a_body_the_kernel_cannot_hold() -> None:
    with wire.ScriptedServer([wire.RawReply([b"x" * 1_000_000] * 16)]) as server:
        with dial(server) as client:
            client.sendall(raw_request())
            assert client.recv(1)
        assert server.wait_for_closed().outcome == "client-closed"


def test_a_client_that_leaves_right_behind_its_request_is_in_the_journal() -> None:
    with wire.openai_server([openai.text("never", delay=wire.HOLD)]) as server:
        with dial(server) as client:
            client.sendall(raw_request(ASKED))
        assert server.wait_for_closed().outcome == "client-closed"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_cancelled_async_client_is_noticed(backend: str) -> None:
    async def cancel_while_held(server: wire.ScriptedServer) -> wire.Exchange:
        async with httpx.AsyncClient(trust_env=False) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: client.post(f"{server.base_url}/chat/completions", json=ASKED))
            await anyio.to_thread.run_sync(server.wait_until, lambda journal: len(journal) == 1)
            tasks.cancel_scope.cancel()
        return await anyio.to_thread.run_sync(server.wait_for_closed)

    with wire.openai_server([openai.text("never", delay=wire.HOLD)]) as server:
        assert anyio.run(cancel_while_held, server, backend=backend).outcome == "client-closed"


# Journal


def test_the_journal_has_what_the_client_sent() -> None:
    with wire.openai_server([openai.text("hi")]) as server:
        ask(server)
    exchange = server.journal[0]
    assert (exchange.method, exchange.path) == ("POST", "/v1/chat/completions")
    assert exchange.headers["content-type"] == "application/json"
    assert exchange.json == ASKED
    assert json.loads(exchange.body) == ASKED
    assert (exchange.connection, exchange.status, exchange.source, exchange.outcome) == (1, 200, "script", "complete")


def test_a_reply_that_was_read_to_its_end_is_complete_at_once() -> None:
    with wire.openai_server([openai.answer("hi")], repeat="all") as server, httpx.Client(trust_env=False) as client:
        for index in range(50):
            client.post(f"{server.base_url}/chat/completions", json=STREAMED if index % 2 else ASKED)
            assert server.journal[index].outcome == "complete"


def test_the_repr_of_an_exchange_shows_neither_headers_nor_body() -> None:
    with wire.openai_server([openai.text("hi")]) as server:
        ask(server, {**ASKED, "user": "secret"})
    assert "secret" not in repr(server.journal)
    assert "content-type" not in repr(server.journal)


def test_waiting_in_vain_tells_what_the_journal_held() -> None:
    with wire.openai_server([openai.text("hi")]) as server:
        ask(server)
        with pytest.raises(TimeoutError, match=r"not reached in 0\.01 s: .*'/v1/chat/completions'.*'complete'"):
            server.wait_until(lambda journal: len(journal) == 2, timeout=0.01)


# Connections


def test_requests_of_one_client_share_a_connection() -> None:
    replies = [openai.text("a"), openai.stream_text(["b"]), openai.error(429, "slow"), openai.text("d", rechunk=1)]
    with wire.openai_server(replies) as server, httpx.Client(trust_env=False) as client:
        for _ in replies:
            client.post(f"{server.base_url}/chat/completions", json=ASKED)
        assert server.connections_total == 1
        assert [exchange.connection for exchange in server.journal] == [1, 1, 1, 1]


def test_a_client_that_asks_to_close_is_closed() -> None:
    with wire.openai_server([openai.text("a")]) as server, dial(server) as client:
        client.sendall(raw_request().replace(b"Host: wire", b"Host: wire\r\nConnection: close"))
        assert read_to_end(client).endswith(b"}")


def test_pipelined_requests_are_answered_in_order() -> None:
    with wire.ScriptedServer([wire.RawReply(b"<1>"), wire.RawReply(b"<2>")]) as server, dial(server) as client:
        client.sendall(raw_request() + raw_request())
        received = read_past(client, b"<2>")
        assert received.index(b"<1>") < received.index(b"<2>")


def test_a_request_may_come_byte_by_byte() -> None:
    with wire.openai_server([openai.text("Hello")]) as server, dial(server) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in raw_request(ASKED):
            client.sendall(bytes([byte]))
        assert b"Hello" in read_past(client, b"Hello")


def test_a_request_body_may_be_chunked() -> None:
    with wire.openai_server([openai.text("Hello")]) as server:
        content = json.dumps(ASKED).encode()
        httpx.post(f"{server.base_url}/chat/completions", content=iter([content[:5], content[5:]]))
        assert server.journal[0].body == content


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"G" * 70_000,
    ],
)
def test_a_malformed_request_is_refused_and_the_server_lives_on(sent: bytes) -> None:
    with wire.openai_server([openai.text("still here")]) as server:
        with dial(server) as client:
            client.sendall(sent)
            assert read_to_end(client).startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert len(server.journal) == 0
        assert ask(server).status_code == 200


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip(f"a thousand connections need 2,000 files open, this process may have {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_a_thousand_streams_are_held_at_once_and_released_together() -> None:
    reply = wire.SseReply([{"n": 1}, wire.HOLD, {"n": 2}])
    with wire.openai_server([reply], repeat="last") as server, ExitStack() as stack:
        clients = [stack.enter_context(dial(server)) for _ in range(1000)]
        for client in clients:
            client.sendall(raw_request())
        for client in clients:
            read_past(client, b'{"n":1}')
        assert server.open_connections == 1000
        server.release()
        for client in clients:
            read_past(client, b"0\r\n\r\n")
        assert {exchange.outcome for exchange in server.journal} == {"complete"}


def test_leaving_with_an_open_stream_closes_it_and_ends_the_thread() -> None:
    before = threading.active_count()
    with wire.openai_server([openai.stream_text(["Hel", wire.HOLD])]) as server:
        client = dial(server)
        client.sendall(raw_request())
        read_past(client, b'"Hel"')
    with client:
        assert b"[DONE]" not in read_to_end(client)
    assert threading.active_count() == before
    assert server.open_connections == 0
    assert server.journal[0].outcome == "cut"


def test_leaving_with_idle_connections_frees_the_port() -> None:
    with wire.openai_server() as server:
        idle = dial(server)
        server.wait_until(lambda _: server.open_connections == 1)
    with idle:
        assert read_to_end(idle) == b""
    with pytest.raises(ConnectionRefusedError):
        dial(server)


def test_a_server_that_was_not_entered_says_so() -> None:
    with pytest.raises(RuntimeError, match="enter it first"):
        _ = wire.openai_server().base_url


# OpenAI


def test_a_text_is_a_whole_completion() -> None:
    with wire.openai_server([openai.text("Hello", finish_reason="length")]) as server:
        body = ask(server).json()
    assert body["object"] == "chat.completion"
    assert body["choices"][0]["message"] == {"role": "assistant", "content": "Hello", "refusal": None}
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"] == openai.usage(10, 5)


def test_a_streamed_text_is_a_chunk_a_delta() -> None:
    with wire.openai_server([openai.stream_text(["Hel", "lo"], usage=openai.usage(3, 2))]) as server:
        *received, done = events(ask(server, STREAMED))
    assert done == "[DONE]"
    base = {"id": "chatcmpl-wire", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "wire-model"}
    assert received == [
        openai.chunk({"role": "assistant", "content": "", "refusal": None}) | {"usage": None},
        openai.chunk({"content": "Hel"}) | {"usage": None},
        openai.chunk({"content": "lo"}) | {"usage": None},
        openai.chunk({}, finish_reason="stop") | {"usage": None},
        base | {"choices": [], "usage": openai.usage(3, 2)},
    ]


def test_a_tool_call_has_its_arguments_as_json_text() -> None:
    with wire.openai_server([openai.tool_call("get", {"city": "Zürich"}, id="c9")]) as server:
        choice = ask(server).json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"] == [
        {"id": "c9", "type": "function", "function": {"name": "get", "arguments": '{"city": "Zürich"}'}}
    ]


def test_a_streamed_tool_call_opens_with_id_and_name_and_goes_on_in_fragments() -> None:
    with wire.openai_server([openai.stream_tool_call("get", ['{"a"', ":1}"])]) as server:
        received = events(ask(server, STREAMED))
    assert received[1:-2] == [
        openai.chunk({"tool_calls": [{"index": 0, "id": "call_1", "type": "function"} | function("", name="get")]}),
        openai.chunk({"tool_calls": [{"index": 0} | function('{"a"')]}),
        openai.chunk({"tool_calls": [{"index": 0} | function(":1}")]}),
    ]


def function(arguments: str, **named: str) -> dict[str, object]:
    return {"function": {**named, "arguments": arguments}}


def test_an_error_has_the_native_shape_and_its_headers() -> None:
    reply = openai.error(429, "slow down", type="requests", code="rate_limit_exceeded", headers={"Retry-After": "7"})
    with wire.openai_server([reply]) as server:
        response = ask(server)
    assert response.status_code == 429
    assert response.headers["retry-after"] == "7"
    assert response.json() == {
        "error": {"message": "slow down", "type": "requests", "param": None, "code": "rate_limit_exceeded"}
    }


def test_an_answer_says_the_same_streamed_and_whole() -> None:
    call = openai.ToolCall("get", {"city": "Bern"})
    reply = openai.answer("Hello big world", reasoning="think hard", tool_calls=[call])
    with wire.openai_server([reply, reply]) as server:
        message = ask(server).json()["choices"][0]["message"]
        deltas = [
            event["choices"][0]["delta"] for event in events(ask(server, STREAMED))[:-1] if isinstance(event, dict)
        ]
    calls = [delta["tool_calls"][0]["function"]["arguments"] for delta in deltas if "tool_calls" in delta]
    assert [delta["content"] for delta in deltas if delta.get("content")] == ["Hello", " big", " world"]
    assert message["content"] == "Hello big world"
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == message["reasoning_content"]
    assert "".join(calls) == message["tool_calls"][0]["function"]["arguments"] == '{"city": "Bern"}'


@pytest.mark.parametrize(("asked", "counted"), [({}, 0), ({"stream_options": {"include_usage": True}}, 1)])
def test_an_answer_streams_its_usage_only_when_asked(asked: dict[str, object], counted: int) -> None:
    with wire.openai_server([openai.answer(deltas=["Hel", "lo"])]) as server:
        received = events(ask(server, {**STREAMED, **asked}))
    assert sum(isinstance(event, dict) and bool(event.get("usage")) for event in received) == counted


def test_an_answer_takes_the_model_the_request_names() -> None:
    with wire.openai_server([openai.answer("hi")]) as server:
        assert ask(server).json()["model"] == "m"


@pytest.mark.parametrize("body", [[], {"messages": ASKED["messages"]}, {"model": "m"}, {"model": "m", "messages": []}])
def test_a_body_the_real_server_would_refuse_is_a_400_and_uses_up_no_reply(body: object) -> None:
    with wire.openai_server([openai.text("kept")]) as server:
        assert ask(server, body).status_code == 400
        assert server.journal[0].source == "server"
        assert ask(server).status_code == 200


def test_another_path_is_a_404_that_names_it() -> None:
    with wire.openai_server() as server:
        response = httpx.post(f"{server.base_url}/v1/chat/completions", json=ASKED)
    assert response.status_code == 404
    assert response.json()["error"]["message"] == "Invalid URL (POST /v1/v1/chat/completions)"
