"""Claude behind Bedrock and Vertex AI, through the SDK's own clients for them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anthropic import AsyncAnthropicBedrock, DefaultAsyncHttpxClient
from hypothesis import given, settings
from hypothesis import strategies as st

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
from neurolink_mw.protocol import CallOptions, ErrorPart, Finish, Raw, TextDelta, collect
from neurolink_mw.providers.anthropic import AnthropicModel
from neurolink_mw.testing.wire import (
    HOLD,
    Disconnect,
    JsonReply,
    RawReply,
    Reply,
    StreamReply,
    anthropic,
    anthropic_server,
    bedrock,
    eventstream,
)

from ..leaving import close_while_another_reads
from ..serving import content, ended
from ..streams import read
from .wire_builders import (
    BLOCK_START,
    BODY,
    DELTA,
    END,
    HI,
    HOSTS,
    KEY,
    MODEL,
    PING,
    START,
    STREAMED,
    TLS,
    call,
    check_discreet,
    failing,
    model,
)

pytestmark = pytest.mark.anyio

HOSTED = pytest.mark.parametrize("host", HOSTS)
SENT = {name: item for name, item in BODY.items() if name != "model"}
BETAS = HI.replace(
    provider_options={"anthropic": {"anthropicBeta": ["zebra-1"]}}, headers={"anthropic-beta": "alpha-2"}
)


def frames(*events: Any, **delivery: Any) -> StreamReply:
    """A stream as Bedrock sends it."""
    return StreamReply(events, "eventstream", **delivery)


def exception(name: str, message: str = "no") -> bytes:
    return eventstream.exception(name, {"message": message})


# ----------------------------------------------------------------------------------------------- what is exchanged


@HOSTED
async def test_hosted_claude_answers_whole_and_in_parts(host: str) -> None:
    reply = anthropic.answer("Hello there", thinking="Hm")
    with anthropic_server([reply], repeat="last") as server:
        async with model(server, host) as one:
            whole = await one.do_generate(HI)
            parts = await read(one, HI)
        assert server.connections_total == 1
    streamed = collect(parts)
    assert whole.text == streamed.text == "Hello there"
    assert whole.content == streamed.content
    assert whole.usage.output_tokens.total == streamed.usage.output_tokens.total == 5
    assert [anthropic.asked(exchange)[:3] for exchange in server.journal] == [(MODEL, False, host), (MODEL, True, host)]
    assert whole.request is not None
    assert whole.request.body == BODY


async def test_bedrock_gets_the_body_with_its_version_and_without_what_its_address_says() -> None:
    with anthropic_server([anthropic.answer("x")], repeat="last") as server:
        async with model(server, "bedrock") as one:
            await one.do_generate(HI)
            await read(one, HI)
    for exchange in server.journal:
        assert exchange.json == {**SENT, "anthropic_version": exchange.json["anthropic_version"]}
        assert exchange.headers["authorization"] == f"Bearer {KEY}"


async def test_vertex_gets_the_body_with_its_version_and_without_the_model() -> None:
    with anthropic_server([anthropic.answer("x")], repeat="last") as server:
        async with model(server, "vertex") as one:
            await one.do_generate(HI)
            await read(one, HI)
    whole, streamed = (exchange.json for exchange in server.journal)
    assert whole == {**SENT, "anthropic_version": whole["anthropic_version"]}
    assert streamed == {**whole, "stream": True}


@STREAMED
async def test_betas_are_put_where_the_sdk_puts_them(streamed: bool) -> None:
    with anthropic_server([anthropic.answer("x")], repeat="last") as server:
        for host in HOSTS:
            async with model(server, host) as one:
                await call(one, streamed=streamed, options=BETAS)
    on_bedrock, on_vertex = server.journal
    assert on_bedrock.json["anthropic_beta"] == ["alpha-2", "zebra-1"]
    assert "anthropic_beta" not in on_vertex.json
    assert on_vertex.headers["anthropic-beta"] == "alpha-2,zebra-1"


async def test_a_request_to_bedrock_is_signed_with_the_clients_keys() -> None:
    with anthropic_server([anthropic.answer("x")]) as server:
        async with AsyncAnthropicBedrock(
            aws_access_key="AKIDEXAMPLE",
            aws_secret_key=KEY,
            aws_region="us-east-1",
            base_url=server.base_url,
            http_client=DefaultAsyncHttpxClient(verify=TLS),
        ) as given:
            await AnthropicModel(MODEL, client=given).do_generate(HI.replace(headers={"x-trace": "t-1"}))
    signed = server.journal[0].headers["authorization"]
    assert signed.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "x-trace" in signed


@pytest.mark.parametrize("rechunk", [1, 7, 1000])
async def test_frames_are_read_however_they_are_cut(rechunk: int) -> None:
    text = "a wholé answer"
    with anthropic_server([anthropic.answer(text, thinking="Hm", rechunk=rechunk)]) as server:
        async with model(server, "bedrock") as one:
            assert collect(await read(one, HI)).text == text


async def test_frames_that_hold_no_event_of_a_message_are_passed_over() -> None:
    odd = [eventstream.event("chunk", {}), eventstream.event("somethingNew", {"x": 1}), PING]
    with anthropic_server([frames(START, *odd, BLOCK_START, DELTA, *odd, *END)]) as server:
        async with model(server, "bedrock") as one:
            result = collect(await read(one, HI))
    assert (result.text, result.finish_reason.unified) == ("x", "stop")


# ------------------------------------------------------------------------------------------------- what is raised


@STREAMED
@pytest.mark.parametrize(
    ("status", "code", "message", "cls", "retryable"),
    [
        (429, "ThrottlingException", "Too many tokens", RateLimitError, True),
        (429, "ModelNotReadyException", "soon", OverloadedError, True),
        (408, "ModelTimeoutException", "slow", ProviderTimeoutError, True),
        (503, "ServiceUnavailableException", "busy", OverloadedError, True),
        (500, "InternalServerException", "oh", ServerError, True),
        (403, "AccessDeniedException", "no", PermissionDeniedError, False),
        (403, "ExpiredTokenException", "expired", AuthenticationError, False),
        (400, "ValidationException", "roles", InvalidRequestError, False),
        (400, "ValidationException", "Input is too long for requested model.", ContextOverflowError, False),
    ],
)
async def test_an_error_of_bedrock_is_raised_with_what_a_retry_needs(
    status: int, code: str, message: str, cls: type[ProviderError], retryable: bool, streamed: bool
) -> None:
    with anthropic_server([bedrock.error(status, code, message, retry_after=3)]) as server:
        error = await failing(server, "bedrock", streamed=streamed)
    assert (type(error), error.status, error.retryable, error.retry_after) == (cls, status, retryable, 3)
    assert error.request_id == bedrock.REQUEST_ID
    assert str(error) == f"HTTP {status}: {message}"
    assert len(server.journal) == 1


@STREAMED
async def test_an_error_of_vertex_is_read_in_googles_shape(streamed: bool) -> None:
    body = [{"error": {"code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED"}}]
    reply = JsonReply(body[0], status=429)
    with anthropic_server([reply, RawReply(b'[{"error": {"code": 403, "message": "no"}}]', status=403)]) as server:
        first = await failing(server, "vertex", streamed=streamed)
        second = await failing(server, "vertex", streamed=streamed)
    assert (type(first), str(first)) == (RateLimitError, "HTTP 429: Quota exceeded")
    assert (type(second), str(second)) == (PermissionDeniedError, "HTTP 403: no")


@STREAMED
async def test_hosted_claude_that_hangs_up_is_a_failed_connection(streamed: bool) -> None:
    with anthropic_server([Disconnect()], repeat="last") as server:
        for host in HOSTS:
            assert type(await failing(server, host, streamed=streamed)) is ConnectionFailed


BROKEN = eventstream.event("chunk", {"bytes": "e30="}, corrupt="message")


@pytest.mark.parametrize(
    ("reply", "cls", "retryable", "says"),
    [
        pytest.param(
            frames(exception("throttlingException")), RateLimitError, True, "throttlingException: no", id="1st"
        ),
        pytest.param(
            frames(START, BLOCK_START, exception("modelStreamErrorException")),
            *(ServerError, True, "modelStreamErrorException: no"),
            id="behind the preamble",
        ),
        pytest.param(
            frames(exception("validationException")), InvalidRequestError, False, "validationException", id="validation"
        ),
        pytest.param(
            frames(eventstream.error("InternalFailure", "oh")), ProviderError, False, "InternalFailure: oh", id="error"
        ),
        pytest.param(
            frames(START, anthropic.error_event("Overloaded")),
            *(OverloadedError, True, "overloaded_error: Overloaded"),
            id="error event",
        ),
        pytest.param(frames(), StreamInterruptedError, True, "ended before", id="empty"),
        pytest.param(frames(START), StreamInterruptedError, True, "ended before", id="cut behind the start"),
        pytest.param(frames(BROKEN), ConnectionFailed, True, "ChecksumMismatch in the middle", id="corrupt"),
        pytest.param(frames(START, reset_after=20), ConnectionFailed, True, "in the middle", id="reset"),
        pytest.param(frames(START, cut_after=20), ConnectionFailed, True, "in the middle", id="cut"),
        pytest.param(RawReply(b"<html>x", "text/html"), ProviderError, False, "text/html: <html>x", id="html"),
        pytest.param(anthropic.answer("w").whole(), ProviderError, False, "sent application/json", id="whole answer"),
        pytest.param(
            frames(eventstream.event("chunk", {"bytes": "a"})), ProviderError, False, "JSON: a", id="no base64"
        ),
        pytest.param(
            frames(eventstream.event("chunk", b"{half")), ProviderError, False, "JSON: {half", id="half a frame"
        ),
        pytest.param(
            frames(eventstream.event("chunk", {"bytes": "eHg="})), *(ProviderError, False, "not JSON: xx"), id="no JSON"
        ),
    ],
)
async def test_what_fails_before_the_first_content_of_frames_is_raised(
    reply: Reply, cls: type[ProviderError], retryable: bool, says: str
) -> None:
    with anthropic_server([reply]) as server:
        error = await failing(server, "bedrock", streamed=True)
        await ended(server)
    assert (type(error), error.retryable) == (cls, retryable)
    assert says in str(error)


@pytest.mark.parametrize(
    ("then", "cls"),
    [
        pytest.param([exception("throttlingException")], RateLimitError, id="throttling"),
        pytest.param([exception("modelStreamErrorException")], ServerError, id="model"),
        pytest.param([anthropic.error_event("Overloaded")], OverloadedError, id="error event"),
        pytest.param([BROKEN, *END], StreamInterruptedError, id="corrupt"),
        pytest.param([], StreamInterruptedError, id="nothing more"),
    ],
)
async def test_what_fails_after_content_of_frames_is_an_error_part(then: list[Any], cls: type[ProviderError]) -> None:
    with anthropic_server([frames(START, BLOCK_START, DELTA, *then)]) as server:
        async with model(server, "bedrock") as one:
            parts = await read(one, HI)
    [error] = [part.error for part in parts if isinstance(part, ErrorPart)]
    assert type(error) is cls
    assert isinstance(error, ProviderError)
    check_discreet(error)
    assert collect(parts).text == "x"
    assert isinstance(parts[-1], Finish)
    assert parts[-1].finish_reason.unified == "error"


async def test_what_came_before_a_broken_frame_is_passed_on_though_it_came_with_it() -> None:
    together = content(frames(START, BLOCK_START, DELTA, DELTA, BROKEN))
    with anthropic_server([RawReply(together, "application/vnd.amazon.eventstream")]) as server:
        async with model(server, "bedrock") as one:
            parts = await read(one, HI)
    assert collect(parts).text == "xx"
    assert [type(part.error) for part in parts if isinstance(part, ErrorPart)] == [StreamInterruptedError]


async def test_frames_of_an_unknown_kind_are_raw_parts_where_those_are_asked_for() -> None:
    with anthropic_server(
        [frames(START, eventstream.event("somethingNew", {"x": 1}), BLOCK_START, DELTA, *END)]
    ) as server:
        async with model(server, "bedrock") as one:
            parts = await read(one, HI.replace(include_raw_chunks=True))
    assert Raw({"x": 1}) in [part for part in parts if isinstance(part, Raw)]


FRAMES = anthropic.answer("a wholé answer", thinking="Hm").streamed(MODEL, host="bedrock")
BORDERS = [*itertools.accumulate(len(part) for part in FRAMES.parts() if isinstance(part, bytes))]


@given(
    after=st.one_of(st.integers(0, BORDERS[-1] - 1), st.sampled_from(BORDERS[:-1])),
    how=st.sampled_from(["cut_after", "reset_after", "politely"]),
)
@settings(max_examples=40, deadline=None)
async def test_frames_that_break_off_anywhere_are_told_as_an_error(after: int, how: str) -> None:
    replies: dict[str, Reply] = {
        "cut_after": replace(FRAMES, cut_after=after),
        "reset_after": replace(FRAMES, reset_after=after),
        "politely": RawReply(content(FRAMES)[:after], "application/vnd.amazon.eventstream"),
    }
    with anthropic_server([replies[how]]) as server:
        async with model(server, "bedrock") as one:
            try:
                parts = await read(one, HI)
            except (ConnectionFailed, StreamInterruptedError):
                return
    assert "a wholé answer".startswith(collect(parts).text)
    assert isinstance(parts[-1], Finish)
    assert parts[-1].finish_reason.unified == "error"
    assert isinstance(parts[-2], ErrorPart)
    assert isinstance(parts[-2].error, StreamInterruptedError)


# --------------------------------------------------------------------------------------------------------- repair


@STREAMED
@HOSTED
async def test_a_refusal_of_a_cloud_is_repaired_too(host: str, streamed: bool) -> None:
    said = "temperature: Extra inputs are not permitted"
    refusal = bedrock.error(400, "ValidationException", said) if host == "bedrock" else anthropic.error(400, said)
    options: CallOptions = HI.replace(temperature=0.5)
    with anthropic_server([refusal, anthropic.answer("ok")]) as server:
        async with model(server, host) as one:
            await call(one, streamed=streamed, options=options)
    first, second = (exchange.json for exchange in server.journal)
    assert first == {**second, "temperature": 0.5}


# ------------------------------------------------------------------------------------------------------- leaving


HANGING = frames(START, BLOCK_START, DELTA, HOLD, *END)


async def test_frames_that_are_left_early_close_their_socket() -> None:
    with anthropic_server([HANGING], repeat="last") as server:
        async with model(server, "bedrock") as one:
            async with (await one.do_stream(HI)).stream as stream:
                async for part in stream:
                    if isinstance(part, TextDelta):
                        break
            assert (await ended(server, 0)).outcome == "client-closed"
            await call(one, streamed=True)
            assert (await ended(server, 1)).outcome == "client-closed"


async def test_a_flood_of_frames_that_is_left_early_closes_its_socket() -> None:
    with anthropic_server([frames(START, BLOCK_START, *[DELTA] * 20_000, *END)]) as server:
        async with model(server, "bedrock") as one:
            await call(one, streamed=True)
            assert (await ended(server)).outcome == "client-closed"


async def test_closing_frames_from_another_task_ends_a_waiting_read() -> None:
    with anthropic_server([HANGING]) as server:
        async with model(server, "bedrock") as one:
            await close_while_another_reads((await one.do_stream(HI)).stream)
            assert (await ended(server)).outcome == "client-closed"


async def test_a_reader_of_frames_that_is_cancelled_closes_the_socket() -> None:
    with anthropic_server([HANGING]) as server:
        async with model(server, "bedrock") as one:
            stream = (await one.do_stream(HI)).stream
            waiting = anyio.Event()

            async def reader() -> None:
                async for part in stream:
                    if isinstance(part, TextDelta):
                        waiting.set()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(reader)
                await waiting.wait()
                tasks.cancel_scope.cancel()
            assert (await ended(server)).outcome == "client-closed"


async def test_frames_that_stay_open_behind_the_end_do_not_hold_the_answer_back() -> None:
    with anthropic_server([frames(START, BLOCK_START, DELTA, *END, HOLD)]) as server:
        async with model(server, "bedrock") as one:
            assert collect(await read(one, HI)).finish_reason.unified == "stop"
            assert (await ended(server)).outcome == "client-closed"
