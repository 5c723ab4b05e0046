"""The model over real sockets: what is sent, what is raised, what is repaired."""

from __future__ import annotations

import asyncio
import gc
import gzip
import socket
import subprocess
import sys
import weakref
from dataclasses import replace
from types import ModuleType
from typing import Any

import anyio
import anyio.to_thread
import pytest

from neurolink_mw.errors import (
    AuthenticationError,
    ConfigError,
    ConnectionFailed,
    InvalidRequestError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    ServerError,
    StreamInterruptedError,
)
from neurolink_mw.protocol import ErrorPart, Finish, LanguageModel, StreamPart, StreamStart, check_grammar, collect
from neurolink_mw.providers.openai_compatible import OpenAICompatibleModel
from neurolink_mw.testing.wire import (
    HOLD,
    Disconnect,
    Exchange,
    JsonReply,
    RawReply,
    Reply,
    ScriptedServer,
    SseReply,
    openai,
    openai_server,
)

from ..serving import content, ended, size
from ..streams import read
from .builders import CHUNK, HI, KEY, STOP, model

pytestmark = pytest.mark.anyio


async def failing(server: ScriptedServer, *, streamed: bool = False, **settings: Any) -> ProviderError:
    async with model(server, **settings) as one:
        with pytest.raises(ProviderError) as caught:
            await (one.do_stream(HI) if streamed else one.do_generate(HI))
    error = caught.value
    # No cause, no context: both would lead to the client's exception, which holds the request and its headers.
    assert error.__cause__ is None
    assert error.__context__ is None
    assert (error.provider, error.model_id) == ("openai-compatible", "m")
    return error


# ----------------------------------------------------------------------------------------------- what is exchanged


async def test_a_call_is_answered_whole_and_in_parts_with_any_client(http: ModuleType) -> None:
    with openai_server([openai.answer("Hello there")], repeat="last") as server:
        async with http.AsyncClient() as client, model(server, http_client=client) as one:
            assert isinstance(one, LanguageModel)
            whole = await one.do_generate(HI)
            parts = await read(one, HI)
            assert not client.is_closed
        assert client.is_closed
    assert whole.text == collect(parts).text == "Hello there"
    assert whole.usage.output_tokens.total == collect(parts).usage.output_tokens.total == 5
    assert whole.request is not None
    assert whole.request.body == server.journal[0].json
    assert "stream" not in server.journal[0].json
    assert server.journal[1].json["stream_options"] == {"include_usage": True}
    assert server.journal[0].headers["authorization"] == f"Bearer {KEY}"
    assert [exchange.headers["accept"] for exchange in server.journal] == ["application/json", "text/event-stream"]


async def test_the_result_of_a_stream_tells_the_request_and_the_headers() -> None:
    with openai_server([openai.stream_text(["x"], headers={"x-request-id": "r-1"})]) as server:
        async with model(server) as one:
            result = await one.do_stream(HI)
            await result.stream.aclose()
    assert result.request is not None
    assert result.request.body == server.journal[0].json
    assert result.response is not None
    assert result.response.headers is not None
    assert result.response.headers["x-request-id"] == "r-1"


async def test_headers_of_the_call_are_merged_over_the_models_and_none_removes_one() -> None:
    options = HI.replace(headers={"X-One": "call", "AUTHORIZATION": None, "User-Agent": None})
    with openai_server([openai.answer("x")]) as server:
        async with model(server, headers={"x-one": "model", "x-two": "model"}) as one:
            await one.do_generate(options)
    sent = server.journal[0].headers
    assert (sent["x-one"], sent["x-two"]) == ("call", "model")
    assert sent.keys().isdisjoint({"authorization", "user-agent"})


async def test_query_parameters_are_added_to_those_of_the_address() -> None:
    with openai_server([openai.answer("x")]) as server:
        url = f"{server.base_url}/?api-version=1"
        async with OpenAICompatibleModel("m", base_url=url, query_params={"region": "a b"}) as one:
            await one.do_generate(HI)
    assert server.journal[0].path == "/v1/chat/completions?api-version=1&region=a+b"
    assert "authorization" not in server.journal[0].headers


async def test_a_compressed_stream_in_single_bytes_is_read() -> None:
    events = content(openai.stream_text(["é", "😀"]))
    reply = RawReply(gzip.compress(events), "text/event-stream", headers={"content-encoding": "gzip"}, rechunk=1)
    with openai_server([reply]) as server:
        async with model(server) as one:
            assert collect(await read(one, HI)).text == "é😀"


# ------------------------------------------------------------------------------------------------- what is raised


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_status_is_raised_with_what_a_retry_needs(streamed: bool) -> None:
    headers = {"retry-after": "3", "x-request-id": "r-1"}
    with openai_server([openai.error(429, "slow down", headers=headers)]) as server:
        error = await failing(server, streamed=streamed)
    assert type(error) is RateLimitError
    assert (error.status, error.retryable, error.retry_after, error.request_id) == (429, True, 3, "r-1")
    assert str(error) == "HTTP 429: slow down"
    assert len(server.journal) == 1


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("status", [401, 400, 200])
async def test_a_key_that_the_server_echoes_is_not_shown(status: int, streamed: bool) -> None:
    def echo(exchange: Exchange) -> Reply:
        said = f"bad key {exchange.headers['authorization']} / {KEY} / {exchange.headers['x-tenant-token']}"
        return JsonReply({"error": {"message": said}}, status=status)

    with openai_server([echo]) as server:
        error = await failing(server, streamed=streamed, headers={"x-tenant-token": "tenant-secret"})
    for shown in (str(error), repr(error), repr(error.args), repr(vars(error))):
        assert KEY not in shown
        assert "tenant-secret" not in shown


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (RawReply(b"<html>maintenance</html>", "text/html"), "not JSON: <html>maintenance</html>"),
        (RawReply(b"", "application/json"), "is empty"),
        (RawReply(b'{"choices": [{"mess', "application/json"), "not JSON"),
        (RawReply(b"[]", "application/json"), "not a chat completion"),
        (JsonReply({"choices": []}), "not a chat completion"),
    ],
)
async def test_what_is_no_answer_is_an_error_with_an_excerpt(reply: Reply, says: str) -> None:
    with openai_server([reply]) as server:
        error = await failing(server)
    assert type(error) is ProviderError
    assert (error.status, error.retryable) == (200, False)
    assert says in str(error)


@pytest.mark.parametrize("reply", [openai.text("Hello", cut_after=20), openai.text("Hello", reset_after=20)])
async def test_a_body_that_breaks_off_is_a_failed_connection(reply: Reply) -> None:
    with openai_server([reply]) as server:
        error = await failing(server)
    assert type(error) is ConnectionFailed
    assert (error.retryable, error.status) == (True, 200)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("how", ["cut", "reset"])
async def test_a_server_that_hangs_up_is_a_failed_connection(how: Any, streamed: bool, http: ModuleType) -> None:
    with openai_server([Disconnect(how=how)]) as server:
        async with http.AsyncClient() as client:
            error = await failing(server, streamed=streamed, http_client=client)
    assert type(error) is ConnectionFailed
    assert error.retryable


async def test_a_port_where_nobody_listens_is_a_failed_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with OpenAICompatibleModel("m", base_url=f"http://127.0.0.1:{port}") as one:
        with pytest.raises(ConnectionFailed, match="before the answer began"):
            await one.do_generate(HI)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_timeout_is_one_of_its_own(streamed: bool, http: ModuleType) -> None:
    with openai_server([openai.answer("x", delay=HOLD)]) as server:
        async with http.AsyncClient(timeout=http.Timeout(None, read=0.05)) as client:
            error = await failing(server, streamed=streamed, http_client=client)
            assert (await ended(server)).outcome == "client-closed"
    assert type(error) is ProviderTimeoutError
    assert error.retryable


@pytest.mark.parametrize(
    ("reply", "cls", "retryable", "says"),
    [
        pytest.param(SseReply([{"error": {"message": "no", "code": 500}}]), ServerError, True, "no", id="error first"),
        pytest.param(
            SseReply([openai.chunk({"role": "assistant", "content": ""}), {"error": {"message": "no", "code": 500}}]),
            *(ServerError, True, "no"),
            id="error behind the preamble",
        ),
        pytest.param(RawReply(b"<html>x", "text/html"), ProviderError, False, "text/html: <html>x", id="html"),
        pytest.param(openai.text("whole"), ProviderError, False, "sent application/json", id="a whole answer"),
        pytest.param(JsonReply({"error": {"message": "no", "code": 429}}), RateLimitError, True, "no", id="json error"),
        pytest.param(RawReply(b"<html>x", "text/plain"), ProviderError, False, "else: <html>x", id="html as text"),
        pytest.param(
            RawReply(b'{"error": {"message": "no", "code": 429}}', "text/plain"),
            *(RateLimitError, True, "no"),
            id="json error as text",
        ),
        pytest.param(
            RawReply(b"upstream is down\n\n", "text/event-stream"), ProviderError, False, "is down", id="prose"
        ),
        pytest.param(SseReply([], done=False), StreamInterruptedError, True, "ended before", id="empty"),
        pytest.param(SseReply([]), StreamInterruptedError, True, "ended before", id="done alone"),
        pytest.param(
            SseReply([openai.chunk({"role": "assistant"})], done=False),
            *(StreamInterruptedError, True, "ended before"),
            id="cut behind the preamble",
        ),
        pytest.param(SseReply([CHUNK], reset_after=0), ConnectionFailed, True, "in the middle", id="reset"),
        pytest.param(SseReply(["data: {broken\n\n"]), ProviderError, False, "not JSON: {broken", id="no JSON"),
    ],
)
async def test_what_fails_before_the_first_content_of_a_stream_is_raised(
    reply: Reply, cls: type[ProviderError], retryable: bool, says: str
) -> None:
    with openai_server([reply]) as server:
        error = await failing(server, streamed=True)
        await ended(server)
    assert type(error) is cls
    assert error.retryable is retryable
    assert error.status is not None
    assert says in str(error)


@pytest.mark.parametrize("how", ["cut", "reset"])
async def test_a_connection_that_breaks_after_content_is_an_error_part(how: str) -> None:
    reply, after = SseReply([CHUNK, HOLD, STOP]), size(SseReply([CHUNK], done=False))
    breaking = replace(reply, cut_after=after) if how == "cut" else replace(reply, reset_after=after)
    with openai_server([breaking]) as server:
        async with model(server) as one:
            parts: list[StreamPart] = []
            async for part in (await one.do_stream(HI)).stream:
                parts.append(part)
                server.release()
    check_grammar(parts)
    error, finish = parts[-2:]
    assert isinstance(error, ErrorPart)
    assert isinstance(error.error, StreamInterruptedError)
    assert isinstance(finish, Finish)
    assert (finish.finish_reason.unified, finish.finish_reason.raw) == ("error", "interrupted")


async def test_an_event_without_end_is_an_error() -> None:
    endless = SseReply([CHUNK, b"data: " + b"x" * (17 * 1024 * 1024)], rechunk=1024 * 1024)
    with openai_server([endless]) as server:
        async with model(server) as one:
            parts = await read(one, HI)
    assert isinstance(parts[-2], ErrorPart)
    assert "larger than" in str(parts[-2].error)


@pytest.mark.parametrize(
    ("headers", "fault"),
    [({"x-a": "b\r\nx-c: d"}, r"headers\['x-a'\] holds"), ({"x a": "b"}, "'x a' is not"), ({"x-a": "é"}, "holds")],
)
async def test_a_header_that_cannot_be_sent_is_refused_by_name(headers: dict[str, str], fault: str) -> None:
    async with OpenAICompatibleModel("m", base_url="http://127.0.0.1:9") as one:
        with pytest.raises(InvalidRequestError, match=fault):
            await one.do_generate(HI.replace(headers=headers))


# --------------------------------------------------------------------------------------------------------- repair


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_refused_parameter_is_left_out_once_and_told_of(streamed: bool) -> None:
    refusal = openai.error(400, "Unsupported parameter: 'temperature'", param="temperature")
    with openai_server([refusal, openai.answer("ok")]) as server:
        async with model(server) as one:
            options = HI.replace(temperature=0.5, seed=1)
            if streamed:
                parts = await read(one, options)
                assert isinstance(parts[0], StreamStart)
                warnings, text = parts[0].warnings, collect(parts).text
            else:
                result = await one.do_generate(options)
                warnings, text = result.warnings, result.text
                assert result.request is not None
                assert result.request.body == server.journal[1].json
    first, second = (exchange.json for exchange in server.journal)
    assert first == {**second, "temperature": 0.5}
    assert [(warning.type, warning.feature) for warning in warnings] == [("unsupported", "temperature")]
    assert text == "ok"


async def test_a_server_that_knows_no_usage_of_streams_gets_the_call_without() -> None:
    refusal = openai.error(400, "Unrecognized request argument supplied: stream_options")
    with openai_server([refusal, openai.answer("ok")]) as server:
        async with model(server) as one:
            assert collect(await read(one, HI)).text == "ok"
    assert server.journal[1].json == {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True}


async def test_a_call_is_never_repaired_twice() -> None:
    refusals = [openai.error(400, f"Unsupported parameter: '{name}'") for name in ("temperature", "seed")]
    with openai_server(refusals) as server:
        server.push(openai.answer("ok"))
        async with model(server) as one:
            with pytest.raises(InvalidRequestError, match="'seed'"):
                await one.do_generate(HI.replace(temperature=0.5, seed=1))
    assert len(server.journal) == 2


# ---------------------------------------------------------------------------------------------------- construction


def test_one_model_serves_several_event_loops(anyio_backend: str) -> None:
    with openai_server([openai.answer("x")], repeat="last") as server:
        one = model(server)

        async def once() -> str:
            async with one:
                return (await one.do_generate(HI)).text

        assert [anyio.run(once, backend=anyio_backend) for _ in range(3)] == ["x"] * 3


def test_the_repr_shows_who_is_asked_and_never_the_key() -> None:
    url = "https://user:password@api.acme.test:8080/v1?key=query-secret"
    one = OpenAICompatibleModel("m", base_url=url, api_key=KEY, provider="acme", headers={"x-key": "header-secret"})
    assert repr(one) == "OpenAICompatibleModel(provider='acme', model_id='m', host='api.acme.test:8080')"


@pytest.mark.parametrize("url", ["", "api.acme.test/v1", "ftp://acme.test", "http://", "http://[", "http://a:b/"])
def test_an_address_that_is_none_is_refused_when_the_model_is_made(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url is an http or https address"):
        OpenAICompatibleModel("m", base_url=url)


def test_a_key_with_a_line_break_is_refused_without_being_shown() -> None:
    with pytest.raises(ConfigError, match="line break") as caught:
        OpenAICompatibleModel("m", base_url="http://a.test", api_key=f"{KEY}\n")
    assert KEY not in str(caught.value)


def test_a_model_without_a_name_or_with_an_impossible_header_is_refused() -> None:
    with pytest.raises(ConfigError, match="model_id is empty"):
        OpenAICompatibleModel("", base_url="http://a.test")
    with pytest.raises(ConfigError, match=r"headers\['x-a'\]"):
        OpenAICompatibleModel("m", base_url="http://a.test", headers={"x-a": "b\n"})


async def test_a_secret_in_the_address_is_not_echoed_either() -> None:
    def echo(exchange: Exchange) -> Reply:
        return openai.error(401, f"no access to {exchange.path}")

    with openai_server([echo]) as server:
        error = await failing(server, query_params={"key": "query-secret"})
    assert type(error) is AuthenticationError
    assert "query-secret" not in str(error)


def test_the_client_library_is_imported_when_a_model_is_made_and_not_before() -> None:
    code = (
        "import sys, neurolink_mw.providers.openai_compatible as room\n"
        "assert 'httpx' not in sys.modules\n"
        "room.OpenAICompatibleModel('m', base_url='http://a.test')\n"
        "assert 'httpx' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    ("address", "echoed"),
    [
        ("http://{host}/v1?api-key=query-secret", "query-secret"),
        ("http://me:p%40ss-word@{host}/v1", "p@ss-word"),
        ("http://me:p%40ss-word@{host}/v1", "bWU6cEBzcy13b3Jk"),
    ],
)
async def test_a_secret_of_the_address_itself_is_not_echoed(address: str, echoed: str) -> None:
    with openai_server([openai.error(401, f"no access with {echoed}")]) as server:
        async with OpenAICompatibleModel("m", base_url=address.format(host=f"127.0.0.1:{server.port}")) as one:
            with pytest.raises(AuthenticationError) as caught:
                await one.do_generate(HI)
    assert echoed not in str(caught.value)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # asyncio's own, for the sockets that it closes late
def test_a_model_that_is_never_closed_keeps_no_event_loop_that_has_ended() -> None:
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    def alive() -> int:
        gc.collect()
        return sum(loop() is not None for loop in loops)

    def use(one: OpenAICompatibleModel) -> int:
        async def once() -> None:
            await one.do_generate(HI)
            loops.append(weakref.ref(asyncio.get_running_loop()))

        for _ in range(5):
            asyncio.run(once())
        return alive()

    with openai_server([openai.answer("x")], repeat="last") as server:
        assert use(model(server)) <= 1
        assert alive() == 0


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
async def test_a_proxy_that_cannot_be_used_is_a_config_error(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "nonsense://127.0.0.1:1")
    with pytest.raises(ConfigError, match="proxies of this environment"):
        await OpenAICompatibleModel("m", base_url="http://127.0.0.1:1").do_generate(HI)
