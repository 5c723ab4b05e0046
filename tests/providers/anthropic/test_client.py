"""Where a model's client comes from, what it is set to, what is left to the caller, and what is refused."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic as sdk
import anyio
import httpx2
import pytest
from opentelemetry import baggage, context, trace

from neurolink_mw.errors import AuthenticationError, ConfigError, OverloadedError, ProviderError, RateLimitError
from neurolink_mw.providers.anthropic import AnthropicClient, AnthropicModel
from neurolink_mw.testing.wire import Exchange, JsonReply, Reply, anthropic, anthropic_server

from ..serving import all_closed
from ..streams import read
from .wire_builders import HANGING, HI, HOSTS, KEY, MODEL, STREAMED, TLS, call, check_discreet, client, failing, own

pytestmark = pytest.mark.anyio

KINDS = pytest.mark.parametrize("host", ["anthropic", *HOSTS])
PLACE = trace.SpanContext(trace_id=1, span_id=1, is_remote=False, trace_flags=trace.TraceFlags(1))
TRACING = {"traceparent", "tracestate", "baggage"}


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the machine's own keys, addresses, profiles and proxies."""
    for name in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
        monkeypatch.delenv(name)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(tmp_path))


@contextmanager
def traced() -> Iterator[None]:
    """A span of the application, and what it hands on."""
    inside = trace.set_span_in_context(trace.NonRecordingSpan(PLACE))
    token = context.attach(baggage.set_baggage("tenant", "acme", inside))
    try:
        yield
    finally:
        context.detach(token)


def own_client(model: AnthropicModel) -> Any:
    """The client of the running loop."""
    return model._calls._clients.get()


# --------------------------------------------------------------------------------------------------- a given client


@KINDS
@STREAMED
async def test_a_given_client_does_not_try_again_by_itself(host: str, streamed: bool) -> None:
    refusal = anthropic.error(529, "Overloaded", retry_after=0)
    with anthropic_server([refusal, anthropic.answer("x")]) as server:
        error = await failing(server, host, streamed=streamed, max_retries=4)
    assert type(error) is OverloadedError
    assert len(server.journal) == 1


@KINDS
async def test_a_given_client_tells_the_service_nothing_of_the_applications_trace(host: str) -> None:
    with anthropic_server([anthropic.answer("x")], repeat="last") as server:
        async with client(server, host) as given:
            one = AnthropicModel(MODEL, client=given)
            with traced():
                await one.do_generate(HI)
                await read(one, HI)
    for exchange in server.journal:
        assert TRACING.isdisjoint(exchange.headers)


async def test_the_given_client_itself_stays_as_it_was() -> None:
    with anthropic_server([anthropic.answer("x")], repeat="last") as server:
        async with client(server, max_retries=4) as given:
            traces = given.open_telemetry
            async with AnthropicModel(MODEL, client=given) as one:
                await one.do_generate(HI)
            assert (given.max_retries, given.open_telemetry) == (4, traces)
            assert not given.is_closed()
            with traced():
                await given.messages.create(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "Hi"}])
        assert given.is_closed()
    assert "traceparent" in server.journal[1].headers
    assert server.connections_total == 1


async def test_the_policy_of_a_given_client_is_kept_where_that_is_asked_for() -> None:
    refusal = anthropic.error(529, "Overloaded", headers={"retry-after-ms": "1"})
    with anthropic_server([refusal, anthropic.answer("x")]) as server:
        async with client(server) as given:
            one = AnthropicModel(MODEL, client=given, keep_client_policy=True)
            with traced():
                assert (await one.do_generate(HI)).text == "x"
    assert [exchange.status for exchange in server.journal] == [529, 200]
    assert {"traceparent", "baggage"} <= server.journal[1].headers.keys()


class Span(trace.NonRecordingSpan):
    """A span that only knows whether it has ended."""

    ended = False

    def is_recording(self) -> bool:
        return True

    def end(self, end_time: int | None = None) -> None:
        self.ended = True


class Spans(trace.NoOpTracerProvider, trace.NoOpTracer):
    """A tracer of its own, which keeps the spans that it starts."""

    def __init__(self) -> None:
        self.started: list[Span] = []

    def get_tracer(self, *args: Any, **more: Any) -> trace.Tracer:
        return self

    def start_span(self, *args: Any, **more: Any) -> trace.Span:
        self.started.append(Span(PLACE))
        return self.started[-1]


async def test_the_spans_of_a_client_that_is_to_trace_end_with_the_answers() -> None:
    spans = Spans()
    with anthropic_server([anthropic.answer("x"), anthropic.answer("x"), anthropic.error(429, "no")]) as server:
        server.push(HANGING)
        async with client(server, max_retries=0, open_telemetry={"tracer_provider": spans}) as given:
            await AnthropicModel(MODEL, client=given).do_generate(HI)
            assert not spans.started
            one = AnthropicModel(MODEL, client=given, keep_client_policy=True)
            await read(one, HI)
            with pytest.raises(RateLimitError):
                await one.do_generate(HI)
            await call(one, streamed=True)
    assert [span.ended for span in spans.started] == [True] * 3


async def test_models_with_one_client_share_its_connections() -> None:
    with anthropic_server([anthropic.answer("x")], repeat="last") as server:
        async with client(server) as given:
            for one in (AnthropicModel(MODEL, client=given), AnthropicModel("claude-other", client=given)):
                await one.do_generate(HI)
                await one.aclose()
        assert server.connections_total == 1


async def test_a_middleware_of_a_given_client_sees_the_call() -> None:
    seen: list[str] = []

    async def watch(request: Any, call_next: Any) -> Any:
        seen.append(request.url)
        return await call_next(request)

    with anthropic_server([anthropic.answer("x"), anthropic.error(429, "no")]) as server:
        async with client(server, middleware=[watch]) as given:
            one = AnthropicModel(MODEL, client=given)
            assert (await one.do_generate(HI)).text == "x"
            with pytest.raises(RateLimitError):
                await one.do_stream(HI)
    assert len(seen) == 2


@STREAMED
async def test_a_middleware_that_answers_or_fails_by_itself_is_an_error_of_the_client(streamed: bool) -> None:
    async def answering(request: Any, call_next: Any) -> Any:
        return {"content": []}

    async def failing_one(request: Any, call_next: Any) -> Any:
        raise KeyError(KEY)

    for middleware, kind in ((answering, "TypeError"), (failing_one, "KeyError")):
        with anthropic_server() as server:
            error = await failing(server, streamed=streamed, middleware=[middleware])
        assert (type(error), error.retryable) == (ProviderError, False)
        assert str(error) == f"the client failed: {kind} before the answer began"


class Foreign:
    """An async client of another SDK."""

    async def post(self, path: str, **options: Any) -> Any: ...

    def with_options(self, *, max_retries: int) -> Foreign:
        return self

    async def close(self) -> None: ...


def test_what_is_no_async_client_of_the_sdk_is_refused() -> None:
    for wrong in (sdk.Anthropic(api_key=KEY), "anthropic", object(), sdk.AsyncAnthropic):
        with pytest.raises(ConfigError, match="client is an async client of the anthropic SDK") as caught:
            AnthropicModel(MODEL, client=wrong)  # type: ignore[arg-type]
        assert KEY not in str(caught.value)
    with pytest.raises(ConfigError, match="client is a Foreign that cannot be copied with retries and tracing off"):
        AnthropicModel(MODEL, client=Foreign())
    assert AnthropicModel(MODEL, client=Foreign(), keep_client_policy=True).model_id == MODEL


async def test_the_clients_of_the_sdk_are_what_the_protocol_describes() -> None:
    with anthropic_server() as server:
        for host in ("anthropic", *HOSTS):
            async with client(server, host) as given:
                typed: AnthropicClient = given
                assert AnthropicModel(MODEL, client=typed).provider == "anthropic"


async def test_a_secret_that_a_given_client_sends_is_not_echoed() -> None:
    def echo(exchange: Exchange) -> Reply:
        return JsonReply({"error": {"message": f"{exchange.headers['x-gateway-token']} p@ss-word"}}, status=401)

    with anthropic_server([echo]) as server:
        url = f"http://me:p%40ss-word@127.0.0.1:{server.port}"
        async with sdk.AsyncAnthropic(
            api_key=KEY,
            base_url=url,
            http_client=sdk.DefaultAsyncHttpxClient(verify=TLS),
            default_headers={"X-Gateway-Token": "Token gateway-secret"},
        ) as given:
            with pytest.raises(AuthenticationError) as caught:
                await AnthropicModel(MODEL, client=given).do_generate(HI)
    assert str(caught.value) == "HTTP 401: [redacted] [redacted]"


# ------------------------------------------------------------------------------------------------ a client of its own


async def test_its_own_client_has_patience_tries_once_and_does_not_trace() -> None:
    refusal = anthropic.error(529, "Overloaded", retry_after=0)
    with anthropic_server([refusal, anthropic.answer("x")]) as server:
        async with own(server) as one:
            given = own_client(one)
            assert given.timeout == httpx2.Timeout(600, connect=10)
            assert given.max_retries == 0
            with traced():
                with pytest.raises(OverloadedError):
                    await one.do_generate(HI)
                await one.do_generate(HI)
    for exchange in server.journal:
        assert TRACING.isdisjoint(exchange.headers)


async def test_the_key_and_the_address_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with anthropic_server([anthropic.answer("x")], repeat="last") as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-the-environment")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        async with AnthropicModel(MODEL) as one:
            await one.do_generate(HI)
        async with AnthropicModel(MODEL, api_key=KEY) as one:
            await one.do_generate(HI)
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-of-the-environment")
        async with AnthropicModel(MODEL) as one:
            await one.do_generate(HI)
    keys = [exchange.headers["authorization"] for exchange in server.journal]
    assert keys == ["Bearer key-of-the-environment", f"Bearer {KEY}", "Bearer token-of-the-environment"]


@STREAMED
async def test_without_a_key_the_call_is_refused_with_the_remedy(streamed: bool) -> None:
    with anthropic_server() as server:
        async with AnthropicModel(MODEL, base_url=server.base_url) as one:
            with pytest.raises(AuthenticationError, match="api_key=, or set ANTHROPIC_API_KEY") as caught:
                await call(one, streamed=streamed)
    check_discreet(caught.value)
    assert not caught.value.retryable
    assert len(server.journal) == 0


async def test_a_key_in_the_headers_of_the_call_is_one() -> None:
    with anthropic_server([anthropic.answer("x")]) as server:
        async with AnthropicModel(MODEL, base_url=server.base_url) as one:
            await one.do_generate(HI.replace(headers={"x-api-key": "of-the-call"}))
    assert server.journal[0].headers["x-api-key"] == "of-the-call"


def test_one_model_serves_several_event_loops_in_a_row(anyio_backend: str) -> None:
    with anthropic_server([anthropic.answer("x")], repeat="last") as server:
        one = own(server)

        async def once() -> str:
            async with one:
                return (await one.do_generate(HI)).text

        assert [anyio.run(once, backend=anyio_backend) for _ in range(3)] == ["x"] * 3
        assert server.connections_total == 3


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # asyncio's own, for the sockets that it closes late
def test_a_model_that_is_never_closed_keeps_no_event_loop_that_has_ended() -> None:
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    def alive() -> int:
        gc.collect()
        return sum(loop() is not None for loop in loops)

    def use(one: AnthropicModel) -> int:
        async def once() -> None:
            await one.do_generate(HI)
            loops.append(weakref.ref(asyncio.get_running_loop()))

        for _ in range(5):
            asyncio.run(once())
        return alive()

    with anthropic_server([anthropic.answer("x")], repeat="last") as server:
        assert use(own(server)) <= 1
        assert alive() == 0


async def test_a_model_closes_its_own_client_and_may_be_used_again() -> None:
    with anthropic_server([anthropic.answer("x")], repeat="last") as server:
        one = own(server)
        async with one:
            await one.do_generate(HI)
            assert server.open_connections == 1
        await all_closed(server)
        async with one:
            await one.do_generate(HI)
        assert server.connections_total == 2


# ---------------------------------------------------------------------------------------------------- what is refused


async def test_what_cannot_be_is_refused_when_the_model_is_made() -> None:
    with pytest.raises(ConfigError, match="model_id is empty"):
        AnthropicModel("", api_key=KEY)
    with pytest.raises(ConfigError, match="keep_client_policy is for a given client"):
        AnthropicModel(MODEL, api_key=KEY, keep_client_policy=True)
    with anthropic_server() as server:
        async with client(server) as given:
            with pytest.raises(ConfigError, match="the given one has its own") as caught:
                AnthropicModel(MODEL, client=given, api_key=KEY)
            assert KEY not in str(caught.value)
            with pytest.raises(ConfigError, match="the given one has its own"):
                AnthropicModel(MODEL, client=given, base_url=server.base_url)


@pytest.mark.parametrize("key", ["", f"{KEY}\n", f" {KEY}", "ké"])
def test_a_key_that_no_header_can_hold_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ConfigError, match="api_key is empty or holds a character") as caught:
        AnthropicModel(MODEL, api_key=key)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("url", ["", "api.acme.test", "ftp://acme.test", "http://", "http://[", "http://me:secret@a:b"])
def test_an_address_that_is_none_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url is an http or https address") as caught:
        AnthropicModel(MODEL, api_key=KEY, base_url=url)
    assert "secret" not in str(caught.value)


@STREAMED
@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("ANTHROPIC_API_KEY", "env-secret\n", "api_key is empty or holds"),
        ("ANTHROPIC_BASE_URL", "http://me:env-secret@a:b", "InvalidURL"),
        ("ANTHROPIC_BASE_URL", "env-secret", "base_url is an http or https address"),
        ("ANTHROPIC_PROFILE", "env-secret", "no Anthropic client can be made"),
        ("ALL_PROXY", "nonsense://me:env-secret@127.0.0.1:1", "no Anthropic client can be made with the proxies"),
    ],
)
async def test_an_environment_that_cannot_be_used_is_told_without_its_values(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, says: str, streamed: bool
) -> None:
    if variable != "ANTHROPIC_PROFILE":
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=says) as caught:
        await call(AnthropicModel(MODEL), streamed=streamed)
    assert "env-secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_the_repr_shows_the_model_and_nothing_secret() -> None:
    one = AnthropicModel(MODEL, api_key=KEY, base_url="http://me:password@acme.test")
    assert repr(one) == f"AnthropicModel(model_id='{MODEL}')"


def test_the_sdk_is_imported_when_a_model_is_made_and_not_before() -> None:
    code = (
        "import sys, neurolink_mw.providers.anthropic as room\n"
        "assert not {'anthropic', 'httpx2', 'httpx'} & sys.modules.keys()\n"
        "room.AnthropicModel('claude-x', api_key='k')\n"
        "assert {'anthropic', 'httpx2'} <= sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
