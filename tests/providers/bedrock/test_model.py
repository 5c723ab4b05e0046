"""The model over real connections: what is sent, what is raised, what is repaired, how it is left."""

from __future__ import annotations

import gc
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import boto3
import pytest
from botocore.config import Config
from tests.testing.wire.clients import server_tls

from neurolink_mw.errors import (
    AuthenticationError,
    ConnectionFailed,
    ContextOverflowError,
    InvalidRequestError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    ServerError,
    StreamInterruptedError,
)
from neurolink_mw.protocol import (
    CallOptions,
    ErrorPart,
    Finish,
    LanguageModel,
    ResponseMetadata,
    StreamPart,
    StreamStart,
    TextDelta,
    check_grammar,
    collect,
    is_url_supported,
)
from neurolink_mw.providers.bedrock import BedrockClient, BedrockModel, Threads
from neurolink_mw.testing.wire import (
    HOLD,
    Disconnect,
    EventsReply,
    JsonReply,
    RawReply,
    Reply,
    ScriptedServer,
    bedrock,
    bedrock_server,
    eventstream,
)

from ..leaving import close_while_another_reads
from ..serving import asked
from ..streams import read
from .wire_builders import (
    DELTA,
    END,
    FLOODING,
    HANGING,
    HEADERS_ONLY,
    HI,
    MODEL,
    NO_HEADERS,
    START,
    client,
    idle,
    model,
    until,
)

pytestmark = pytest.mark.anyio

STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


async def failing(server: ScriptedServer, *, streamed: bool = False, **settings: Any) -> ProviderError:
    async with model(server, **settings) as one:
        with pytest.raises(ProviderError) as caught:
            await (one.do_stream(HI) if streamed else one.do_generate(HI))
    error = caught.value
    # No cause, no context: both would lead to botocore's exception, which may hold the request.
    assert error.__cause__ is None
    assert error.__context__ is None
    assert (error.provider, error.model_id) == ("bedrock", MODEL)
    return error


def breaking(reply: Reply, how: str, after: int) -> Reply:
    return replace(reply, cut_after=after) if how == "cut_after" else replace(reply, reset_after=after)


# ----------------------------------------------------------------------------------------------- what is exchanged


@pytest.mark.parametrize("tls", [None, server_tls()], ids=["tcp", "tls"])
async def test_a_call_is_answered_whole_and_in_parts(tls: ssl.SSLContext | None) -> None:
    with bedrock_server([bedrock.answer("Hello there")], repeat="last", tls=tls) as server:
        async with model(server) as one:
            assert isinstance(one, LanguageModel)
            whole = await one.do_generate(HI)
            parts = await read(one, HI)
        await anyio.to_thread.run_sync(server.wait_until, lambda journal: journal.open_connections == 0)
    assert whole.text == collect(parts).text == "Hello there"
    assert whole.usage.output_tokens.total == collect(parts).usage.output_tokens.total == 5
    assert [bedrock.asked(exchange) for exchange in server.journal] == [(MODEL, "converse"), (MODEL, "converse-stream")]
    assert server.connections_total == 1


async def test_the_results_tell_the_request_the_headers_and_the_id() -> None:
    with bedrock_server([bedrock.answer("x", headers={"x-more": "1"})], repeat="last") as server:
        async with model(server) as one:
            whole = await one.do_generate(HI)
            streamed = await one.do_stream(HI)
            await streamed.stream.aclose()
    for result in (whole, streamed):
        assert result.request is not None
        assert result.request.body == {"modelId": MODEL, **server.journal[0].json}
        assert result.response is not None
        assert (result.response.id, result.response.model_id) == (bedrock.REQUEST_ID, MODEL)
        assert result.response.headers is not None
        assert result.response.headers["x-more"] == "1"


async def test_headers_of_the_call_are_sent_and_signed_and_none_takes_one_away() -> None:
    options = HI.replace(headers={"X-Trace": "t-1", "content-type": "application/json; x=1", "X-Not": None})
    with bedrock_server([bedrock.answer("x")]) as server:
        async with model(server) as one:
            answer = await one.do_generate(options)
    sent = server.journal[0].headers
    assert (sent["x-trace"], sent["content-type"]) == ("t-1", "application/json; x=1")
    assert "x-trace" in sent["authorization"]
    assert answer.warnings == ()


@pytest.mark.parametrize("headers", [{"a b": "x"}, {"x-a": "b\nc"}, {"x-a": "ü"}, {"Content-Length": "b\nc"}])
async def test_a_header_that_cannot_be_sent_is_refused_without_its_value(headers: dict[str, str | None]) -> None:
    with bedrock_server() as server:
        async with model(server) as one:
            with pytest.raises(InvalidRequestError, match="headers") as caught:
                await one.do_generate(HI.replace(headers=headers))
    assert "b\nc" not in str(caught.value)
    assert len(server.journal) == 0


async def test_it_reads_addresses_of_buckets_itself() -> None:
    one = BedrockModel(MODEL, region="us-east-1")
    assert is_url_supported("image/png", "s3://bucket/key.png", one.supported_urls)
    assert not is_url_supported("image/png", "https://acme.test/a.png", one.supported_urls)


# ------------------------------------------------------------------------------------------------- what is raised


@STREAMED
@pytest.mark.parametrize(
    ("status", "code", "message", "cls", "retryable"),
    [
        (429, "ThrottlingException", "Too many tokens", RateLimitError, True),
        (408, "ModelTimeoutException", "slow", ProviderTimeoutError, True),
        (429, "ModelNotReadyException", "soon", OverloadedError, True),
        (503, "ServiceUnavailableException", "busy", OverloadedError, True),
        (500, "InternalServerException", "oh", ServerError, True),
        (403, "AccessDeniedException", "no", PermissionDeniedError, False),
        (403, "ExpiredTokenException", "The security token is expired", AuthenticationError, False),
        (400, "ValidationException", "roles", InvalidRequestError, False),
        (400, "ValidationException", "Input is too long for requested model.", ContextOverflowError, False),
    ],
)
async def test_an_error_of_the_service_is_raised_with_what_a_retry_needs(
    status: int, code: str, message: str, cls: type[ProviderError], retryable: bool, streamed: bool
) -> None:
    with bedrock_server([bedrock.error(status, code, message, retry_after=3)]) as server:
        error = await failing(server, streamed=streamed)
    assert type(error) is cls
    assert (error.status, error.retryable, error.retry_after) == (status, retryable, 3)
    assert error.request_id == bedrock.REQUEST_ID
    assert len(server.journal) == 1


@STREAMED
@pytest.mark.parametrize("how", ["cut", "reset"])
async def test_a_service_that_hangs_up_is_a_failed_connection(how: Any, streamed: bool) -> None:
    with bedrock_server([Disconnect(how=how)]) as server:
        error = await failing(server, streamed=streamed)
    assert type(error) is ConnectionFailed
    assert error.retryable


@STREAMED
async def test_a_port_where_nobody_listens_is_a_failed_connection(streamed: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    client = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=f"http://127.0.0.1:{port}",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"total_max_attempts": 1}),
    )
    one = BedrockModel(MODEL, client=client)
    with pytest.raises(ConnectionFailed, match="before the answer began"):
        await (one.do_stream(HI) if streamed else one.do_generate(HI))


@STREAMED
async def test_a_service_that_says_nothing_in_time_is_a_timeout(streamed: bool) -> None:
    with bedrock_server([NO_HEADERS]) as server:
        error = await failing(server, streamed=streamed, config={"read_timeout": 0.05})
    assert type(error) is ProviderTimeoutError
    assert error.retryable


@STREAMED
async def test_a_certificate_that_nobody_vouches_for_is_a_failed_connection(streamed: bool) -> None:
    with bedrock_server([bedrock.answer("x")], tls=server_tls()) as server:
        client = boto3.client(
            "bedrock-runtime",
            region_name="us-east-1",
            endpoint_url=server.base_url,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(retries={"total_max_attempts": 1}),
        )
        one = BedrockModel(MODEL, client=client)
        with pytest.raises(ConnectionFailed, match="SSLError before the answer began"):
            await (one.do_stream(HI) if streamed else one.do_generate(HI))


@STREAMED
async def test_without_credentials_the_call_is_refused_with_the_remedy(
    streamed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    one = BedrockModel(MODEL, region="us-east-1", endpoint_url="http://127.0.0.1:1")
    with pytest.raises(AuthenticationError, match="credentials") as caught:
        await (one.do_stream(HI) if streamed else one.do_generate(HI))
    assert caught.value.__context__ is None


async def test_what_botocore_refuses_is_told_by_its_place_and_not_by_its_value() -> None:
    options = HI.replace(provider_options={"bedrock": {"performanceConfig": {"latency": "secret-value", "x": 1}}})
    with bedrock_server() as server:
        async with model(server) as one:
            with pytest.raises(InvalidRequestError, match="performanceConfig") as caught:
                await one.do_generate(options)
    assert "secret-value" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("reply", "streamed", "says"),
    [
        (RawReply(b"<html>", "text/html"), False, "the answer holds no message"),
        (JsonReply({"output": {}}), False, "the answer could not be read"),
        (RawReply(b"<html>", "text/html"), True, "expected an event stream, and text/html came"),
        (bedrock.answer("x").whole(), True, "expected an event stream, and application/json came"),
    ],
)
async def test_what_is_no_answer_is_an_error(reply: Reply, streamed: bool, says: str) -> None:
    with bedrock_server([reply]) as server:
        error = await failing(server, streamed=streamed)
    assert type(error) is ProviderError
    assert not error.retryable
    assert says in str(error)


@pytest.mark.parametrize("how", ["cut_after", "reset_after"])
async def test_an_answer_that_breaks_off_is_a_failed_connection(how: str) -> None:
    with bedrock_server([breaking(bedrock.answer("Hello").whole(), how, 20)]) as server:
        error = await failing(server)
    assert type(error) is ConnectionFailed
    assert error.retryable


BROKEN = eventstream.event("messageStart", {"role": "assistant"}, corrupt="message")


@pytest.mark.parametrize(
    ("reply", "cls", "retryable"),
    [
        pytest.param(EventsReply([{"throttlingException": {"message": "no"}}]), RateLimitError, True, id="exception"),
        pytest.param(
            EventsReply([START, {"internalServerException": {"message": "no"}}]), ServerError, True, id="after start"
        ),
        pytest.param(
            EventsReply([{"validationException": {"message": "no"}}]), InvalidRequestError, False, id="validation"
        ),
        pytest.param(EventsReply([]), StreamInterruptedError, True, id="empty"),
        pytest.param(EventsReply([START]), StreamInterruptedError, True, id="cut behind the start"),
        pytest.param(EventsReply([BROKEN]), ConnectionFailed, True, id="corrupt"),
        pytest.param(EventsReply([START, HOLD], reset_after=20), ConnectionFailed, True, id="reset"),
        pytest.param(EventsReply([START, HOLD], cut_after=20), ConnectionFailed, True, id="cut"),
    ],
)
async def test_what_fails_before_the_first_content_of_a_stream_is_raised(
    reply: Reply, cls: type[ProviderError], retryable: bool
) -> None:
    with bedrock_server([reply]) as server:
        error = await failing(server, streamed=True)
    assert (type(error), error.retryable) == (cls, retryable)


@pytest.mark.parametrize(
    ("then", "cls"),
    [
        pytest.param({"throttlingException": {"message": "no"}}, RateLimitError, id="throttling"),
        pytest.param({"modelStreamErrorException": {"message": "no"}}, ServerError, id="model"),
        pytest.param(BROKEN, StreamInterruptedError, id="corrupt"),
        pytest.param(None, StreamInterruptedError, id="nothing more"),
    ],
)
async def test_what_fails_after_content_is_an_error_part(then: Any, cls: type[ProviderError]) -> None:
    events = [START, DELTA, *([] if then is None else [then])]
    with bedrock_server([EventsReply(events)]) as server:
        async with model(server) as one:
            parts = await read(one, HI)
    errors = [part.error for part in parts if isinstance(part, ErrorPart)]
    assert [type(error) for error in errors] == [cls]
    assert isinstance(error := errors[0], ProviderError)
    assert error.request_id == next(part.id for part in parts if isinstance(part, ResponseMetadata))
    assert collect(parts).text == "x"
    assert isinstance(parts[-1], Finish)
    assert parts[-1].finish_reason.unified == "error"


@pytest.mark.parametrize("how", ["cut_after", "reset_after"])
async def test_a_connection_that_breaks_after_content_is_an_error_part(how: str) -> None:
    whole = EventsReply([START, DELTA, HOLD, *END])
    head = sum(len(part) for part in EventsReply([START, DELTA]).parts() if isinstance(part, bytes))
    with bedrock_server([breaking(whole, how, head + 7)]) as server:
        async with model(server) as one:
            parts: list[StreamPart] = []
            async for part in (await one.do_stream(HI)).stream:
                parts.append(part)
                server.release()
    check_grammar(parts)
    assert [type(part.error) for part in parts if isinstance(part, ErrorPart)] == [StreamInterruptedError]


async def test_a_service_that_falls_silent_in_a_stream_is_an_error_part() -> None:
    with bedrock_server([HANGING]) as server:
        async with model(server, config={"read_timeout": 0.05}) as one:
            parts = await read(one, HI)
    assert [type(part.error) for part in parts if isinstance(part, ErrorPart)] == [StreamInterruptedError]


async def test_a_body_that_stays_open_behind_the_end_does_not_hold_the_answer_back() -> None:
    with bedrock_server([EventsReply([START, DELTA, *END, HOLD])]) as server:
        async with model(server) as one:
            assert collect(await read(one, HI)).finish_reason.unified == "stop"
            assert (await anyio.to_thread.run_sync(server.wait_for_closed)).outcome == "client-closed"


async def test_a_connection_that_breaks_behind_the_end_does_not_spoil_the_answer() -> None:
    reply = EventsReply([START, DELTA, *END])
    size = sum(len(part) for part in reply.parts() if isinstance(part, bytes))
    with bedrock_server([replace(reply, reset_after=size)]) as server:
        async with model(server) as one:
            assert collect(await read(one, HI)).finish_reason.unified == "stop"


async def test_a_call_that_gets_no_thread_in_time_is_a_timeout_with_the_remedy() -> None:
    threads = Threads(1, wait_s=0.02)
    with bedrock_server([HANGING]) as server:
        async with model(server, threads=threads) as one, (await one.do_stream(HI)).stream:
            for call in (one.do_generate, one.do_stream):
                with pytest.raises(ProviderTimeoutError, match="give the model more with threads="):
                    await call(HI)
        await idle(threads, server)


# --------------------------------------------------------------------------------------------------------- repair


@STREAMED
async def test_a_refused_parameter_is_left_out_once_and_told_of(streamed: bool) -> None:
    message = "This model doesn't support the stopSequences field. Remove stopSequences and try again."
    refusal = bedrock.error(400, "ValidationException", message)
    options = HI.replace(stop_sequences=["x"], max_output_tokens=9)
    with bedrock_server([refusal, bedrock.answer("ok")]) as server:
        async with model(server) as one:
            if streamed:
                parts = await read(one, options)
                assert isinstance(parts[0], StreamStart)
                warnings, text = parts[0].warnings, collect(parts).text
            else:
                result = await one.do_generate(options)
                warnings, text = result.warnings, result.text
                assert result.request is not None
                assert result.request.body == {"modelId": MODEL, **server.journal[1].json}
    assert [exchange.json["inferenceConfig"] for exchange in server.journal] == [
        {"maxTokens": 9, "stopSequences": ["x"]},
        {"maxTokens": 9},
    ]
    assert [(warning.type, warning.feature) for warning in warnings] == [("unsupported", "stopSequences")]
    assert text == "ok"


async def test_a_call_is_never_repaired_twice() -> None:
    refusals = [
        bedrock.error(400, "ValidationException", f"This model doesn't support the {name} field.")
        for name in ("temperature", "topP")
    ]
    with bedrock_server([*refusals, bedrock.answer("ok")]) as server:
        async with model(server) as one:
            with pytest.raises(InvalidRequestError, match="topP"):
                await one.do_generate(HI.replace(temperature=0.5, top_p=0.5))
    assert len(server.journal) == 2


# ------------------------------------------------------------------------------------------------------- leaving


@pytest.mark.parametrize("reply", [HANGING, FLOODING], ids=["hang", "flood"])
async def test_a_stream_that_is_left_early_gives_thread_and_connection_back(reply: Reply) -> None:
    threads = Threads(1)
    with bedrock_server([reply]) as server:
        async with model(server, threads=threads) as one, (await one.do_stream(HI)).stream as stream:
            async for part in stream:
                if isinstance(part, TextDelta):
                    break
        await idle(threads, server)


async def test_a_stream_that_is_closed_unread_gives_thread_and_connection_back() -> None:
    threads = Threads(1)
    with bedrock_server([HANGING]) as server:
        async with model(server, threads=threads) as one:
            result = await one.do_stream(HI)
            await result.stream.aclose()
            await result.stream.aclose()
        await idle(threads, server)


@STREAMED
async def test_a_cancelled_call_returns_at_once_and_ends_its_request(streamed: bool) -> None:
    threads = Threads(1)
    with bedrock_server([NO_HEADERS]) as server:
        async with model(server, threads=threads) as one, anyio.create_task_group() as tasks:
            tasks.start_soon(one.do_stream if streamed else one.do_generate, HI)
            await asked(server)
            tasks.cancel_scope.cancel()
        await idle(threads, server)


@pytest.mark.parametrize("reply", [HANGING, HEADERS_ONLY], ids=["reading", "before the first event"])
async def test_a_reader_that_is_cancelled_ends_the_request(reply: Reply) -> None:
    threads = Threads(1)
    with bedrock_server([reply]) as server:
        async with model(server, threads=threads) as one:

            async def reader() -> None:
                await read(one, HI)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(reader)
                await asked(server)
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()
        await idle(threads, server)


async def test_closing_from_another_task_ends_a_waiting_read() -> None:
    threads = Threads(1)
    with bedrock_server([HANGING]) as server:
        async with model(server, threads=threads) as one:
            await close_while_another_reads((await one.do_stream(HI)).stream)
        await idle(threads, server)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # that it was dropped, trio's own too
@pytest.mark.parametrize("begun", [False, True])
async def test_a_stream_that_is_dropped_ends_the_request(begun: bool) -> None:
    threads = Threads(1)
    with bedrock_server([HANGING]) as server:
        async with model(server, threads=threads) as one:
            stream = (await one.do_stream(HI)).stream
            if begun:
                await anext(aiter(stream))
            del stream
            gc.collect()
            await anyio.lowlevel.checkpoint()
        await idle(threads, server)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_stream_that_outlives_its_event_loop_ends_its_request_when_it_is_dropped(anyio_backend: str) -> None:
    threads, held = Threads(1), list[object]()
    with bedrock_server([HANGING]) as server:
        one = model(server, threads=threads)

        async def leave() -> None:
            held.append(await one.do_stream(HI))

        anyio.run(leave, backend=anyio_backend)
        held.clear()
        gc.collect()
        until(lambda: threads.busy == 0)


def test_one_model_serves_several_event_loops(anyio_backend: str) -> None:
    with bedrock_server([bedrock.answer("x")], repeat="last") as server:
        one = model(server)

        async def once() -> str:
            return (await one.do_generate(HI)).text + collect(await read(one, HI)).text

        assert [anyio.run(once, backend=anyio_backend) for _ in range(3)] == ["xx"] * 3
        anyio.run(one.aclose, backend=anyio_backend)


def test_a_waiting_read_does_not_hold_up_the_end_of_the_process() -> None:
    code = (
        "import asyncio, sys\n"
        "from neurolink_mw.protocol import CallOptions\n"
        "from neurolink_mw.providers.bedrock import BedrockModel\n"
        "async def main():\n"
        "    model = BedrockModel('m', region='us-east-1', endpoint_url=sys.argv[1])\n"
        "    task = asyncio.create_task(model.do_generate(CallOptions.from_text('Hi')))\n"
        "    await asyncio.sleep(0)\n"
        "    sys.stdin.readline()\n"
        "    sys.exit(7)\n"
        "asyncio.run(main())\n"
    )
    environment = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "PYTHONWARNINGS": "ignore"}
    with bedrock_server([NO_HEADERS]) as server:
        command = [sys.executable, "-c", code, server.base_url]
        with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, text=True) as process:
            server.wait_until(lambda journal: len(journal) == 1, 30)
            process.communicate("\n", timeout=30)
        assert process.returncode == 7


async def test_two_calls_of_one_model_never_see_each_other() -> None:
    def echo(exchange: Any) -> Reply:
        return bedrock.answer(exchange.json["messages"][0]["content"][0]["text"])(exchange)

    with bedrock_server([echo], repeat="last") as server:
        async with model(server) as one:
            texts: dict[int, str] = {}

            async def call(number: int) -> None:
                options = CallOptions.from_text(f"call {number}")
                if number % 2:
                    texts[number] = (await one.do_generate(options)).text
                else:
                    texts[number] = collect(await read(one, options)).text

            async with anyio.create_task_group() as tasks:
                for number in range(20):
                    tasks.start_soon(call, number)
    assert texts == {number: f"call {number}" for number in range(20)}


# ---------------------------------------------------------------------------------- a client that is not botocore's


class Double:
    """A client whose streams block after the first word until they are closed."""

    def __init__(self) -> None:
        self.streams: list[Blocking] = []

    def converse(self, **kwargs: Any) -> Any:
        return {"output": {"message": {"role": "assistant", "content": [{"text": "whole"}]}}, "stopReason": "end_turn"}

    def converse_stream(self, **kwargs: Any) -> Any:
        self.streams.append(Blocking())
        return {"stream": self.streams[-1]}


class Blocking:
    def __init__(self) -> None:
        self.closed = 0
        self._ended = threading.Event()

    def __iter__(self) -> Iterator[Any]:
        yield from (START, DELTA)
        self._ended.wait()
        raise ValueError("read of a closed stream")

    def close(self) -> None:
        self.closed += 1
        self._ended.set()


async def test_streams_of_another_client_are_closed_once_each_and_starve_nobody() -> None:
    double, threads = Double(), Threads(2)
    with pytest.warns(UserWarning, match="none of botocore's"):
        one = BedrockModel(MODEL, client=double, threads=threads)
    for _ in range(20):
        async with (await one.do_stream(HI)).stream as stream:
            async for part in stream:
                if isinstance(part, TextDelta):
                    break
    await (await one.do_stream(HI)).stream.aclose()
    with anyio.move_on_after(0.01) as patience:
        await read(one, HI)
    assert patience.cancelled_caught
    assert (await one.do_generate(HI)).text == "whole"
    await anyio.to_thread.run_sync(until, lambda: threads.busy == 0)
    assert [stream.closed for stream in double.streams] == [1] * 22


class Wrapped:
    """A client that passes on to one of botocore's."""

    def __init__(self, client: BedrockClient) -> None:
        self._client = client

    def converse(self, **kwargs: Any) -> Any:
        return self._client.converse(**kwargs)

    def converse_stream(self, **kwargs: Any) -> Any:
        return self._client.converse_stream(**kwargs)


async def test_streams_of_a_client_that_wraps_botocore_s_end_with_their_socket() -> None:
    threads = Threads(2)
    with bedrock_server([HANGING], repeat="last") as server:
        with pytest.warns(UserWarning, match="none of botocore's"):
            one = BedrockModel(MODEL, client=Wrapped(client(server.base_url)), threads=threads)
        for _ in range(5):
            async with (await one.do_stream(HI)).stream as stream:
                async for part in stream:
                    if isinstance(part, TextDelta):
                        break
        await anyio.to_thread.run_sync(until, lambda: threads.busy == 0)
    assert not any(thread.name == "neurolink-bedrock-close" for thread in threading.enumerate())


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_process_has_connections_of_its_own() -> None:
    code = (
        "import anyio, os, sys\n"
        "from tests.providers.bedrock.wire_builders import HI, model\n"
        "from neurolink_mw.protocol import CallOptions\n"
        "from neurolink_mw.testing.wire import bedrock, bedrock_server\n"
        "def echo(request):\n"
        "    return bedrock.answer(request.json['messages'][0]['content'][0]['text'])(request)\n"
        "async def ask(one, who):\n"
        "    async def check(text):\n"
        "        assert (await one.do_generate(CallOptions.from_text(text))).text == text\n"
        "    for _ in range(5):\n"
        "        async with anyio.create_task_group() as tasks:\n"
        "            for number in range(4):\n"
        "                tasks.start_soon(check, f'{who}{number}')\n"
        "with bedrock_server([echo], repeat='last') as server:\n"
        "    one = model(server)\n"
        "    anyio.run(ask, one, 'before')\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        code = 1\n"
        "        try:\n"
        "            anyio.run(ask, one, 'child')\n"
        "            code = 0\n"
        "        finally:\n"
        "            os._exit(code)\n"
        "    anyio.run(ask, one, 'parent')\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


async def test_another_client_sends_no_headers_and_says_so() -> None:
    with pytest.warns(UserWarning, match="none of botocore's"):
        one = BedrockModel(MODEL, client=Double())
    answer = await one.do_generate(HI.replace(headers={"x-a": "b"}))
    assert [(warning.type, warning.feature) for warning in answer.warnings] == [("unsupported", "headers")]
