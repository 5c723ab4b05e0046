"""The model over real sockets: what is sent, what is raised, what is repaired."""

from __future__ import annotations

import gzip
import itertools
import json
import socket
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropicBedrock
from hypothesis import given, settings
from hypothesis import strategies as st

from neurolink_mw.errors import (
    AuthenticationError,
    ConnectionFailed,
    ContextOverflowError,
    InvalidRequestError,
    NotFoundError,
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
    CallWarning,
    ErrorPart,
    Finish,
    FunctionTool,
    GenerateResult,
    JSONObject,
    LanguageModel,
    ResponseFormat,
    StreamPart,
    StreamResult,
    StreamStart,
    ToolChoice,
    check_grammar,
    collect,
    is_url_supported,
)
from neurolink_mw.providers.anthropic import AnthropicModel
from neurolink_mw.testing.wire import (
    HOLD,
    Disconnect,
    Exchange,
    JsonReply,
    RawReply,
    Reply,
    StreamReply,
    anthropic,
    anthropic_server,
    bedrock,
)

from ..serving import content, ended, size
from ..streams import read
from .builders import answered as answered_by
from .builders import called, said, thought, told
from .builders import result as result_of
from .wire_builders import (
    BLOCK_START,
    BODY,
    DELTA,
    END,
    HANGING,
    HI,
    KEY,
    MODEL,
    NO_HEADERS,
    START,
    STREAMED,
    call,
    check_discreet,
    failing,
    model,
    own,
)

pytestmark = pytest.mark.anyio

BETA = "anthropic-beta"


def betas(*names: str, **headers: str | None) -> CallOptions:
    """A call that asks for betas among its provider options, and for others in its headers."""
    return HI.replace(provider_options={"anthropic": {"anthropicBeta": names}}, headers=headers or None)


async def answered(one: AnthropicModel, options: CallOptions, *, streamed: bool) -> tuple[str, Sequence[CallWarning]]:
    if not streamed:
        result = await one.do_generate(options)
        return result.text, result.warnings
    parts = await read(one, options)
    assert isinstance(parts[0], StreamStart)
    return collect(parts).text, parts[0].warnings


# ----------------------------------------------------------------------------------------------- what is exchanged


@pytest.mark.parametrize("make", [own, model], ids=["own", "given"])
async def test_a_call_is_answered_whole_and_in_parts_through_either_client(make: Any) -> None:
    with anthropic_server([anthropic.answer("Hello there")], repeat="last") as server:
        async with make(server) as one:
            assert isinstance(one, LanguageModel)
            whole = await one.do_generate(HI)
            parts = await read(one, HI)
    assert whole.text == collect(parts).text == "Hello there"
    assert whole.usage.output_tokens.total == collect(parts).usage.output_tokens.total == 5
    assert [exchange.json for exchange in server.journal] == [BODY, {**BODY, "stream": True}]
    assert [exchange.path for exchange in server.journal] == ["/v1/messages"] * 2
    assert server.journal[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.connections_total == 1


async def test_the_results_tell_the_request_the_headers_and_the_ids() -> None:
    with anthropic_server([anthropic.answer("x", headers={"x-more": "1"})], repeat="last") as server:
        async with model(server) as one:
            whole = await one.do_generate(HI)
            streamed = await one.do_stream(HI)
            metadata = collect([part async for part in streamed.stream]).response
    results: list[GenerateResult | StreamResult] = [whole, streamed]
    for number, result in enumerate(results):
        assert result.request is not None
        assert result.request.body == server.journal[number].json
        assert result.response is not None
        assert result.response.headers is not None
        assert result.response.headers["x-more"] == "1"
        assert result.response.headers["request-id"] == anthropic.REQUEST_ID
    for response in (whole.response, metadata):
        assert response is not None
        assert (response.id, response.model_id) == (anthropic.MESSAGE_ID, MODEL)


@STREAMED
async def test_betas_are_a_header_and_no_member_of_the_body(streamed: bool) -> None:
    options = betas("zebra-1", "beta-2", **{"Anthropic-Beta": "alpha-3, beta-2"})
    with anthropic_server([anthropic.answer("x")]) as server:
        async with model(server) as one:
            await call(one, streamed=streamed, options=options)
    assert server.journal[0].headers[BETA] == "alpha-3,beta-2,zebra-1"
    assert server.journal[0].json == {**BODY, **({"stream": True} if streamed else {})}


async def test_without_betas_there_is_no_such_header() -> None:
    with anthropic_server([anthropic.answer("x")]) as server:
        async with model(server) as one:
            result = await one.do_generate(HI.replace(headers={BETA: " , "}))
    assert BETA not in server.journal[0].headers
    assert result.request is not None
    assert result.request.body == BODY


async def test_betas_of_the_client_stay_beside_those_of_the_call() -> None:
    with anthropic_server([anthropic.answer("x")], repeat="last") as server:
        async with model(server, default_headers={BETA: "clients-1"}) as one:
            await one.do_generate(HI)
            await one.do_generate(betas("calls-2"))
            await one.do_generate(HI.replace(headers={BETA: None}))
            await one.do_generate(betas("calls-2", **{BETA: None}))
    sent = [exchange.headers.get(BETA) for exchange in server.journal]
    assert sent == ["clients-1", "calls-2,clients-1", None, "calls-2"]


async def test_headers_of_the_call_are_put_over_the_clients_and_none_takes_one_away() -> None:
    options = HI.replace(headers={"X-One": "call", "AUTHORIZATION": None, "x-three": None})
    with anthropic_server([anthropic.answer("x")]) as server:
        async with model(server, default_headers={"x-one": "client", "x-two": "client", "x-three": "client"}) as one:
            await one.do_generate(options)
    sent = server.journal[0].headers
    assert (sent["x-one"], sent["x-two"]) == ("call", "client")
    assert sent.keys().isdisjoint({"authorization", "x-three"})


@STREAMED
@pytest.mark.parametrize(
    ("headers", "fault"),
    [
        ({"x-a": "b\r\nx-c: d"}, r"headers\['x-a'\] holds"),
        ({"x a": "b"}, "'x a' is not"),
        ({"x-a": "é"}, r"headers\['x-a'\] holds"),
        *(({name: "1"}, "belongs to the client") for name in ("Content-Length", "transfer-encoding", "Connection")),
        ({"content-length": None}, "belongs to the client"),
    ],
)
async def test_a_header_that_cannot_be_sent_is_refused_by_name(
    headers: dict[str, str | None], fault: str, streamed: bool
) -> None:
    with anthropic_server() as server:
        error = await failing(server, streamed=streamed, options=HI.replace(headers=headers))
    assert type(error) is InvalidRequestError
    with pytest.raises(InvalidRequestError, match=fault):
        raise error
    assert not [text for text in headers.values() if text and len(text) > 1 and text in str(error)]
    assert len(server.journal) == 0


async def test_a_compressed_stream_in_single_bytes_is_read() -> None:
    events = content(anthropic.answer(deltas=["é", "😀"]).streamed(MODEL))
    packed = RawReply(gzip.compress(events), "text/event-stream", headers={"content-encoding": "gzip"}, rechunk=1)
    with anthropic_server([packed]) as server:
        async with model(server) as one:
            assert collect(await read(one, HI)).text == "é😀"


async def test_the_service_reads_addresses_of_images_and_pdfs_itself() -> None:
    one = AnthropicModel(MODEL, api_key=KEY)
    assert is_url_supported("image/png", "https://acme.test/a.png", one.supported_urls)
    assert is_url_supported("application/pdf", "https://acme.test/a.pdf", one.supported_urls)
    assert not is_url_supported("text/plain", "https://acme.test/a.txt", one.supported_urls)
    assert AnthropicModel(MODEL, api_key=KEY, supported_urls={}).supported_urls == {}


# ------------------------------------------------------------------------------------------------- what is raised


@STREAMED
@pytest.mark.parametrize(
    ("status", "cls", "retryable"),
    [
        (400, InvalidRequestError, False),
        (401, AuthenticationError, False),
        (402, PermissionDeniedError, False),
        (403, PermissionDeniedError, False),
        (404, NotFoundError, False),
        (409, ProviderError, True),
        (413, InvalidRequestError, False),
        (429, RateLimitError, True),
        (500, ServerError, True),
        (503, OverloadedError, True),
        (504, ProviderTimeoutError, True),
        (529, OverloadedError, True),
    ],
)
async def test_a_status_is_raised_with_what_a_retry_needs(
    status: int, cls: type[ProviderError], retryable: bool, streamed: bool
) -> None:
    kind = "conflict_error" if status == 409 else None
    with anthropic_server([anthropic.error(status, "slow down", type=kind, retry_after=3)]) as server:
        error = await failing(server, streamed=streamed)
    assert (type(error), error.retryable) == (cls, retryable)
    assert (error.status, error.retry_after, error.request_id) == (status, 3, anthropic.REQUEST_ID)
    assert str(error) == f"HTTP {status}: slow down"
    assert len(server.journal) == 1


@STREAMED
async def test_a_page_of_a_proxy_is_quoted_in_short(streamed: bool) -> None:
    page = RawReply(b"<html>bad\r\ngateway" + b" " * 1000 + b"</html>", "text/html", status=502)
    with anthropic_server([page]) as server:
        error = await failing(server, streamed=streamed)
    assert (type(error), error.retryable) == (ServerError, True)
    assert str(error).startswith("HTTP 502: <html>bad gateway")
    assert len(str(error)) <= 310


@STREAMED
async def test_a_prompt_that_is_too_long_is_told_apart_with_its_figures(streamed: bool) -> None:
    refusal = anthropic.error(400, "prompt is too long: 210000 tokens > 200000 maximum")
    with anthropic_server([refusal]) as server:
        error = await failing(server, streamed=streamed)
    assert isinstance(error, ContextOverflowError)
    assert (error.prompt_tokens, error.limit_tokens, error.retryable) == (210_000, 200_000, False)


@STREAMED
@pytest.mark.parametrize("status", [401, 400, 200])
async def test_a_secret_that_the_server_echoes_is_not_shown(status: int, streamed: bool) -> None:
    def echo(exchange: Exchange) -> Reply:
        sent = exchange.headers
        said = f"bad {sent['authorization']} / {KEY} / {sent['x-tenant-token']} / {sent['x-api-key']}"
        return JsonReply({"error": {"message": said}}, status=status)

    options = HI.replace(headers={"x-tenant-token": "tenant-secret"})
    with anthropic_server([echo]) as server:
        error = await failing(
            server, streamed=streamed, options=options, default_headers={"x-api-key": "header-secret"}
        )
    for shown in (str(error), repr(error), repr(error.args), repr(vars(error))):
        assert "tenant-secret" not in shown
        assert "header-secret" not in shown


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (RawReply(b"<html>maintenance</html>", "text/html"), "not JSON: <html>maintenance</html>"),
        (RawReply(b"", "application/json"), "is empty"),
        (RawReply(b'{"content": [{"ty', "application/json"), "not JSON"),
        (RawReply(b"[]", "application/json"), "not a message"),
        (JsonReply({"content": None}), "not a message"),
    ],
)
async def test_what_is_no_answer_is_an_error_with_an_excerpt(reply: Reply, says: str) -> None:
    with anthropic_server([reply]) as server:
        error = await failing(server)
    assert type(error) is ProviderError
    assert (error.status, error.retryable) == (200, False)
    assert says in str(error)


@STREAMED
@pytest.mark.parametrize("how", ["cut", "reset"])
async def test_a_server_that_hangs_up_is_a_failed_connection(how: Any, streamed: bool) -> None:
    with anthropic_server([Disconnect(how=how)]) as server:
        error = await failing(server, streamed=streamed)
    assert (type(error), error.retryable) == (ConnectionFailed, True)
    assert "before the answer began" in str(error)


@STREAMED
async def test_a_port_where_nobody_listens_is_a_failed_connection(streamed: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with AnthropicModel(MODEL, api_key=KEY, base_url=f"http://127.0.0.1:{port}") as one:
        with pytest.raises(ConnectionFailed, match="before the answer began") as caught:
            await call(one, streamed=streamed)
    check_discreet(caught.value)


@STREAMED
async def test_a_server_that_says_nothing_in_time_is_a_timeout(streamed: bool) -> None:
    with anthropic_server([NO_HEADERS]) as server:
        error = await failing(server, streamed=streamed, timeout=httpx2.Timeout(20, read=0.05))
        assert (await ended(server)).outcome == "client-closed"
    assert (type(error), error.retryable) == (ProviderTimeoutError, True)


async def test_an_answer_that_stops_coming_is_a_timeout() -> None:
    reply = replace(anthropic.answer("Hello").whole(), pause_at={20: HOLD}, framing="chunked")
    with anthropic_server([reply]) as server:
        error = await failing(server, timeout=httpx2.Timeout(20, read=0.05))
    assert (type(error), error.status) == (ProviderTimeoutError, 200)
    assert "while the answer was read" in str(error)


async def test_a_stream_that_falls_silent_before_content_is_a_timeout_and_after_it_an_error_part() -> None:
    patience = httpx2.Timeout(20, read=0.05)
    with anthropic_server([StreamReply([START, BLOCK_START, HOLD]), HANGING]) as server:
        error = await failing(server, streamed=True, timeout=patience)
        async with model(server, timeout=patience) as one:
            parts = await read(one, HI)
    assert type(error) is ProviderTimeoutError
    assert [type(part.error) for part in parts if isinstance(part, ErrorPart)] == [StreamInterruptedError]


OVERLOADED = anthropic.error_event("Overloaded")


@pytest.mark.parametrize(
    ("reply", "cls", "retryable", "says"),
    [
        pytest.param(
            StreamReply([OVERLOADED]), OverloadedError, True, "overloaded_error: Overloaded", id="error first"
        ),
        pytest.param(
            StreamReply([START, BLOCK_START, OVERLOADED]),
            *(OverloadedError, True, "overloaded_error: Overloaded"),
            id="error behind the preamble",
        ),
        pytest.param(RawReply(b"<html>x", "text/html"), ProviderError, False, "text/html: <html>x", id="html"),
        pytest.param(RawReply(b"", "text/html"), ProviderError, False, "sent text/html", id="empty html"),
        pytest.param(anthropic.answer("w").whole(), ProviderError, False, "sent application/json", id="a whole answer"),
        pytest.param(
            JsonReply(anthropic.error_event("no", type="rate_limit_error")), RateLimitError, True, "no", id="json error"
        ),
        pytest.param(
            RawReply(b"<html>x", "text/event-stream"), ProviderError, False, "else: <html>x", id="html as events"
        ),
        pytest.param(
            RawReply(b'{"type": "error", "error": {"type": "api_error", "message": "no"}}', "text/event-stream"),
            *(ServerError, True, "no"),
            id="json error as events",
        ),
        pytest.param(StreamReply([]), StreamInterruptedError, True, "ended before", id="empty"),
        pytest.param(StreamReply([START]), StreamInterruptedError, True, "ended before", id="cut behind the start"),
        pytest.param(StreamReply([START], reset_after=0), ConnectionFailed, True, "in the middle", id="reset"),
        pytest.param(
            StreamReply([START, "event: content_block_start\ndata: {broken\n\n"]),
            *(ProviderError, False, "not JSON: {broken"),
            id="no JSON",
        ),
    ],
)
async def test_what_fails_before_the_first_content_of_a_stream_is_raised(
    reply: Reply, cls: type[ProviderError], retryable: bool, says: str
) -> None:
    with anthropic_server([reply]) as server:
        error = await failing(server, streamed=True)
        await ended(server)
    assert (type(error), error.retryable) == (cls, retryable)
    assert error.status is not None
    assert says in str(error)


TYPES = [
    ("invalid_request_error", InvalidRequestError, 400),
    ("authentication_error", AuthenticationError, 401),
    ("billing_error", PermissionDeniedError, 402),
    ("permission_error", PermissionDeniedError, 403),
    ("not_found_error", NotFoundError, 404),
    ("conflict_error", ProviderError, 409),
    ("request_too_large", InvalidRequestError, 413),
    ("rate_limit_error", RateLimitError, 429),
    ("api_error", ServerError, 500),
    ("timeout_error", ProviderTimeoutError, 504),
    ("overloaded_error", OverloadedError, 529),
    ("brand_new_error", ProviderError, 200),
]


@pytest.mark.parametrize(("kind", "cls", "status"), TYPES)
async def test_an_error_inside_a_stream_is_known_by_its_type(kind: str, cls: type[ProviderError], status: int) -> None:
    event = anthropic.error_event("no", type=kind)
    with anthropic_server([StreamReply([START, event]), StreamReply([START, BLOCK_START, DELTA, event])]) as server:
        raised = await failing(server, streamed=True)
        async with model(server) as one:
            parts = await read(one, HI)
    [told] = [part.error for part in parts if isinstance(part, ErrorPart)]
    assert isinstance(told, ProviderError)
    check_discreet(told)
    for error in (raised, told):
        assert (type(error), error.status, error.request_id) == (cls, status, anthropic.REQUEST_ID)
        assert str(error) == f"the provider reported an error: {kind}: no"
        assert error.retryable is (status in (409, 429) or status >= 500)
    assert isinstance(parts[-1], Finish)
    assert parts[-1].finish_reason.unified == "error"
    assert collect(parts).text == "x"


async def test_what_comes_after_an_error_in_a_stream_does_not_make_it_good() -> None:
    with anthropic_server([StreamReply([START, BLOCK_START, DELTA, OVERLOADED, DELTA, *END])]) as server:
        async with model(server) as one:
            parts = await read(one, HI)
    assert collect(parts).text == "x"
    assert isinstance(parts[-1], Finish)
    assert parts[-1].finish_reason.unified == "error"


@pytest.mark.parametrize("how", ["cut", "reset"])
async def test_a_connection_that_breaks_after_content_is_an_error_part(how: str) -> None:
    after = size(StreamReply([START, BLOCK_START, DELTA]))
    breaking = replace(HANGING, cut_after=after) if how == "cut" else replace(HANGING, reset_after=after)
    with anthropic_server([breaking]) as server:
        async with model(server) as one:
            parts: list[StreamPart] = []
            async for part in (await one.do_stream(HI)).stream:
                parts.append(part)
                server.release()
    check_grammar(parts)
    error, finish = parts[-2:]
    assert isinstance(error, ErrorPart)
    assert isinstance(error.error, StreamInterruptedError)
    check_discreet(error.error)
    assert isinstance(finish, Finish)
    assert (finish.finish_reason.unified, finish.finish_reason.raw) == ("error", "interrupted")


async def test_an_event_without_end_is_an_error() -> None:
    endless = StreamReply([START, BLOCK_START, DELTA, b"data: " + b"x" * (17 * 1024 * 1024)], rechunk=1024 * 1024)
    with anthropic_server([endless]) as server:
        async with model(server) as one:
            parts = await read(one, HI)
    assert isinstance(parts[-2], ErrorPart)
    assert "larger than" in str(parts[-2].error)


# ------------------------------------------------------------------------------- cut at any byte: never a quiet stop

LONG = anthropic.answer("a wholé answer", thinking="Hm", tool_calls=[anthropic.ToolCall("look", {"q": "é"})])
WHOLE, EVENTS = LONG.whole(MODEL), LONG.streamed(MODEL)
BORDERS = [*itertools.accumulate(len(part) for part in EVENTS.parts() if isinstance(part, bytes))]
BREAK = st.sampled_from(["cut_after", "reset_after"])


async def outcome(one: AnthropicModel) -> list[StreamPart] | ProviderError:
    try:
        return await read(one, HI)
    except ProviderError as error:
        return error


def broken(reply: Reply, how: str, after: int) -> Reply:
    return replace(reply, cut_after=after) if how == "cut_after" else replace(reply, reset_after=after)


@given(after=st.integers(0, size(WHOLE) - 1), how=BREAK)
@settings(max_examples=20, deadline=None)
async def test_a_whole_answer_that_breaks_off_anywhere_is_a_failed_connection(after: int, how: str) -> None:
    with anthropic_server([broken(WHOLE, how, after)]) as server:
        error = await failing(server)
    # A reset may overtake what was sent before it, and then no answer has begun.
    assert (type(error), error.retryable) == (ConnectionFailed, True)


# Without the empty line behind it the last event counts still: everything was said.
@given(after=st.one_of(st.integers(0, BORDERS[-1] - 2), st.sampled_from(BORDERS[:-1])), how=BREAK)
@settings(max_examples=40, deadline=None)
async def test_a_stream_that_breaks_off_anywhere_is_told_as_an_error(after: int, how: str) -> None:
    with anthropic_server([broken(EVENTS, how, after)]) as server:
        async with model(server) as one:
            parts = await outcome(one)
    if isinstance(parts, ProviderError):
        check_discreet(parts)
        assert parts.retryable
        assert type(parts) in (ConnectionFailed, StreamInterruptedError)
        return
    assert "a wholé answer".startswith(collect(parts).text)
    assert isinstance(parts[-1], Finish)
    assert parts[-1].finish_reason.unified == "error"
    assert isinstance(parts[-2], ErrorPart)
    assert isinstance(parts[-2].error, StreamInterruptedError)


@given(after=st.sampled_from(BORDERS[:-1]))
@settings(max_examples=10, deadline=None)
async def test_a_stream_that_ends_early_and_politely_is_told_as_an_error_too(after: int) -> None:
    short = RawReply(content(EVENTS)[:after], "text/event-stream")
    with anthropic_server([short]) as server:
        async with model(server) as one:
            parts = await outcome(one)
    if isinstance(parts, ProviderError):
        assert type(parts) is StreamInterruptedError
        return
    assert isinstance(parts[-1], Finish)
    assert (parts[-1].finish_reason.unified, parts[-1].finish_reason.raw) == ("error", "interrupted")


# ------------------------------------------------------------------------------------------------------- thinking


@STREAMED
async def test_an_answer_of_another_model_is_gone_on_with_without_thinking(streamed: bool) -> None:
    history = [said("q"), answered_by(thought("of another model"), called("c1")), told(result_of("c1"))]
    budget = {"anthropic": {"thinking": {"type": "enabled", "budgetTokens": 1024}}}
    with anthropic_server([anthropic.answer("ok")]) as server:  # it refuses what the API refuses
        async with model(server) as one:
            text, warnings = await answered(one, HI.replace(prompt=history, provider_options=budget), streamed=streamed)
    assert text == "ok"
    assert server.journal[0].json["thinking"] == {"type": "disabled"}
    assert "thinking" in [warning.feature for warning in warnings]


# --------------------------------------------------------------------------------------------------------- repair


@STREAMED
async def test_a_refused_parameter_is_left_out_once_and_told_of(streamed: bool) -> None:
    refusal = anthropic.error(400, "`temperature` is deprecated for this model.")
    with anthropic_server([refusal, anthropic.answer("ok")]) as server:
        async with model(server) as one:
            text, warnings = await answered(one, HI.replace(temperature=0.5), streamed=streamed)
    first, second = (exchange.json for exchange in server.journal)
    assert first == {**second, "temperature": 0.5}
    assert [(warning.type, warning.feature) for warning in warnings] == [("unsupported", "temperature")]
    assert text == "ok"


@STREAMED
async def test_a_refused_beta_is_left_out_of_the_header(streamed: bool) -> None:
    refusal = anthropic.error(
        400, "Unexpected value(s) `odd-1` for the `anthropic-beta` header. Please consult the docs"
    )
    with anthropic_server([refusal, anthropic.answer("ok"), refusal, anthropic.answer("ok")]) as server:
        async with model(server) as one:
            text, warnings = await answered(one, betas("odd-1", "kept-2"), streamed=streamed)
            await answered(one, betas("odd-1"), streamed=streamed)
    assert [exchange.headers.get(BETA) for exchange in server.journal] == ["kept-2,odd-1", "kept-2", "odd-1", None]
    assert [(warning.type, warning.feature) for warning in warnings] == [("unsupported", "anthropicBeta")]
    assert text == "ok"


async def test_the_request_that_is_told_is_the_one_that_was_answered() -> None:
    refusal = anthropic.error(400, "temperature: Extra inputs are not permitted")
    with anthropic_server([refusal, anthropic.answer("ok"), refusal, anthropic.answer("ok")]) as server:
        async with model(server) as one:
            whole = await one.do_generate(HI.replace(temperature=0.5))
            streamed = await one.do_stream(HI.replace(temperature=0.5))
            await streamed.stream.aclose()
    results: list[GenerateResult | StreamResult] = [whole, streamed]
    for result, number in zip(results, (1, 3), strict=True):
        assert result.request is not None
        assert result.request.body == server.journal[number].json


FORBIDDEN = HI.replace(
    tools=[FunctionTool("look", {"type": "object"})],
    tool_choice=ToolChoice("none"),
    response_format=ResponseFormat("json", {"type": "object", "properties": {"a": {"type": "integer"}}}),
    provider_options={"anthropic": {"structuredOutputMode": "jsonTool"}},
)
"""No tool is to be called, and the answer comes by a tool: that is forced, in place of `none`."""


@STREAMED
async def test_a_choice_that_stands_for_none_is_not_left_out(streamed: bool) -> None:
    refusal = anthropic.error(400, "tool_choice: Extra inputs are not permitted")
    look = anthropic.answer(tool_calls=[anthropic.ToolCall("look", {})])
    with anthropic_server([refusal, look]) as server:
        error = await failing(server, streamed=streamed, options=FORBIDDEN)
    assert "tool_choice" in str(error)
    assert server.journal[0].json["tool_choice"]["name"] == "final_result"
    assert len(server.journal) == 1


@STREAMED
async def test_a_call_against_a_choice_that_stands_for_none_is_told_of(streamed: bool) -> None:
    with anthropic_server([anthropic.answer(tool_calls=[anthropic.ToolCall("look", {})])]) as server:
        async with model(server) as one:
            if streamed:
                answer = collect(await read(one, FORBIDDEN))
            else:
                answer = await one.do_generate(FORBIDDEN)
    assert "although tool_choice was none" in f"{answer.warnings} {answer.provider_metadata}"


@STREAMED
async def test_a_call_is_never_repaired_twice(streamed: bool) -> None:
    refusals = [anthropic.error(400, f"{name}: Extra inputs are not permitted") for name in ("temperature", "top_k")]
    with anthropic_server([*refusals, anthropic.answer("ok")]) as server:
        error = await failing(server, streamed=streamed, options=HI.replace(temperature=0.5, top_k=5))
    assert type(error) is InvalidRequestError
    assert "top_k" in str(error)
    assert len(server.journal) == 2


@STREAMED
async def test_what_is_not_repaired_is_asked_once(streamed: bool) -> None:
    with anthropic_server([anthropic.error(400, "max_tokens: 9 > 8"), anthropic.answer("ok")]) as server:
        error = await failing(server, streamed=streamed)
    assert str(error) == "HTTP 400: max_tokens: 9 > 8"
    assert len(server.journal) == 1


async def test_an_error_after_a_repair_is_the_one_that_is_raised() -> None:
    replies = [anthropic.error(400, "temperature: Extra inputs are not permitted"), anthropic.error(529, "Overloaded")]
    with anthropic_server(replies) as server:
        error = await failing(server, options=HI.replace(temperature=0.5))
    assert type(error) is OverloadedError


async def test_an_answer_with_a_number_beyond_64_bits_or_half_a_character_is_read() -> None:
    body = anthropic.message([anthropic.ToolCall("look", {"id": 0})], stop_reason="tool_use")
    text = (
        json.dumps(body)
        .replace('"id": 0', '"id": 123456789012345678901234')
        .replace('"model"', '"x": "\\ud83d", "model"')
    )
    with anthropic_server([RawReply(text.encode(), "application/json")]) as server:
        async with own(server) as one:
            answer = await one.do_generate(HI)
    assert [call.input for call in answer.tool_calls] == ['{"id":123456789012345678901234}']


@STREAMED
async def test_where_the_format_is_refused_the_answer_is_asked_for_by_a_tool(streamed: bool) -> None:
    schema: JSONObject = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    options = HI.replace(response_format=ResponseFormat("json", schema))
    refused = anthropic.error(400, "output_config.format: Extra inputs are not permitted")
    answers = anthropic.answer(tool_calls=[anthropic.ToolCall("json", {"a": 1})])
    with anthropic_server([refused, answers]) as server:
        async with AnthropicModel("claude-sonnet-4-6", api_key=KEY, base_url=server.base_url) as one:
            if streamed:
                answer = collect([part async for part in (await one.do_stream(options)).stream])
            else:
                answer = await one.do_generate(options)
    assert json.loads(answer.text) == {"a": 1}
    assert "responseFormat" in [warning.feature for warning in answer.warnings]
    assert [tool["name"] for tool in server.journal[1].json["tools"]] == ["json"]


async def test_half_a_character_in_a_prompt_is_refused_and_not_tried_again() -> None:
    with anthropic_server() as server:
        async with own(server) as one:
            with pytest.raises(InvalidRequestError, match="surrogate"):
                await one.do_generate(CallOptions.from_text("\ud83d"))


async def test_what_a_clouds_credentials_made_of_the_request_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    def echo(request: Exchange) -> Reply:
        return bedrock.error(403, "AccessDeniedException", f"token {request.headers['x-amz-security-token']} is bad")

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session-that-nobody-may-see")
    with anthropic_server([echo]) as server:
        async with AsyncAnthropicBedrock(aws_region="us-east-1", base_url=server.base_url) as client:
            with pytest.raises(PermissionDeniedError) as refused:
                await AnthropicModel(MODEL, client=client).do_generate(HI)
    assert "session-that-nobody-may-see" not in str(refused.value)
