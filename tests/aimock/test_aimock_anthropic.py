"""The Anthropic provider, through the real SDK, against a server that nobody here wrote."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from anthropic import AsyncAnthropic

from neurolink_mw import CallOptions, LanguageModel, generate, stream, tool, wrap_model
from neurolink_mw.errors import (
    ConnectionFailed,
    OverloadedError,
    ProviderError,
    RateLimitError,
    ServerError,
    StreamInterruptedError,
)
from neurolink_mw.middlewares.logging import Logging
from neurolink_mw.protocol import INTERRUPTED, ErrorPart, Finish, FunctionTool, StreamPart, ToolCall, collect
from neurolink_mw.providers.anthropic import AnthropicModel
from neurolink_mw.testing import check_stream

pytestmark = pytest.mark.anyio

WEATHER = FunctionTool("get_weather", {"type": "object", "properties": {"city": {"type": "string"}}})
MODEL_ID = "claude-sonnet-4-6"


@pytest.fixture
async def model(address: str, anyio_backend: str) -> AsyncIterator[LanguageModel]:
    client = AsyncAnthropic(api_key="not-checked", base_url=address)
    async with client, AnthropicModel(MODEL_ID, client=client) as bare:
        yield wrap_model(bare, [Logging()])


@tool
async def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


def ask(text: str, **chaos: str) -> CallOptions:
    headers = {f"x-aimock-chaos-{name}": rate for name, rate in chaos.items()}
    return CallOptions.from_text(text).replace(headers=headers, tools=[WEATHER])


async def read(model: LanguageModel, options: CallOptions) -> list[StreamPart]:
    async with (await model.do_stream(options)).stream as parts:
        made = [part async for part in parts]
    check_stream(made)
    return made


async def seen(address: str) -> list[dict[str, object]]:
    """The requests that the server has seen."""
    async with httpx.AsyncClient() as http:
        journal = (await http.get(f"{address}/__aimock/journal")).json()
    entries: list[dict[str, object]] = journal if isinstance(journal, list) else journal["entries"]
    return entries


async def test_an_answer_is_generated(model: LanguageModel) -> None:
    generated = await model.do_generate(ask("hello"))
    assert generated.text == "Hello there, how are you today?"
    assert generated.finish_reason.unified == "stop"
    assert (generated.usage.input_tokens.total, generated.usage.output_tokens.total) != (None, None)


async def test_a_streamed_answer_says_the_same_as_a_generated_one(model: LanguageModel) -> None:
    streamed = collect(await read(model, ask("hello")))
    generated = await model.do_generate(ask("hello"))
    assert streamed.text == generated.text
    assert streamed.finish_reason == generated.finish_reason


async def test_a_tool_call_is_generated_and_streamed_alike(model: LanguageModel) -> None:
    generated = await model.do_generate(ask("weather"))
    calls = [part for part in await read(model, ask("weather")) if isinstance(part, ToolCall)]
    for call in (*generated.tool_calls, *calls):
        assert (call.tool_name, call.input) == ("get_weather", '{"city":"Oslo"}')
    assert len(generated.tool_calls) == len(calls) == 1
    assert generated.finish_reason.unified == "tool-calls"


@pytest.mark.parametrize("kind", ["do_generate", "do_stream"])
async def test_an_overload_is_raised_as_one_and_can_be_retried(model: LanguageModel, kind: str) -> None:
    with pytest.raises(OverloadedError, match="Overloaded") as caught:
        await getattr(model, kind)(ask("too busy"))
    assert (caught.value.status, caught.value.retryable) == (529, True)


@pytest.mark.parametrize("kind", ["do_generate", "do_stream"])
async def test_a_429_is_raised_with_the_wait_that_the_server_asks_for(model: LanguageModel, kind: str) -> None:
    with pytest.raises(RateLimitError) as caught:
        await getattr(model, kind)(ask("hello", ratelimit="1"))
    assert (caught.value.status, caught.value.retry_after, caught.value.retryable) == (429, 1.0, True)


@pytest.mark.parametrize("kind", ["do_generate", "do_stream"])
async def test_a_500_is_raised_as_a_retryable_server_error(model: LanguageModel, kind: str) -> None:
    with pytest.raises(ServerError) as caught:
        await getattr(model, kind)(ask("hello", drop="1"))
    assert (caught.value.status, caught.value.retryable) == (500, True)


@pytest.mark.parametrize("kind", ["do_generate", "do_stream"])
async def test_malformed_json_is_raised_as_a_provider_error(model: LanguageModel, kind: str) -> None:
    with pytest.raises(ProviderError):
        await getattr(model, kind)(ask("hello", malformed="1"))


@pytest.mark.parametrize("kind", ["do_generate", "do_stream"])
async def test_a_connection_dropped_before_an_answer_is_raised(model: LanguageModel, kind: str) -> None:
    with pytest.raises(ConnectionFailed):
        await getattr(model, kind)(ask("hello", disconnect="1"))


async def test_an_error_is_asked_for_once(model: LanguageModel, address: str) -> None:
    before = len(await seen(address))
    with pytest.raises(OverloadedError):
        await model.do_generate(ask("too busy"))
    assert len(await seen(address)) == before + 1


async def test_a_disconnect_in_mid_stream_ends_as_an_interrupted_answer(model: LanguageModel) -> None:
    parts = await read(model, ask("go half way"))
    assert collect(parts).text
    errors = [part.error for part in parts if isinstance(part, ErrorPart)]
    assert isinstance(errors[0], StreamInterruptedError)
    assert isinstance(parts[-1], Finish)
    assert parts[-1].finish_reason == INTERRUPTED


async def test_a_disconnect_before_the_first_content_is_raised(model: LanguageModel) -> None:
    # This server counts the start of the message and of the block among its chunks.
    with pytest.raises(ConnectionFailed):
        await model.do_stream(ask("break off"))


async def test_an_unknown_request_is_refused_with_the_servers_own_words(model: LanguageModel) -> None:
    with pytest.raises(ProviderError, match="No fixture matched") as caught:
        await model.do_generate(ask("something else"))
    assert (caught.value.status, caught.value.retryable) == (404, False)


async def test_a_turn_with_a_tool_is_generated_and_streamed_alike(model: LanguageModel) -> None:
    generated = await generate(model, "Do I need an umbrella?", tools=[get_weather])
    async with stream(model, "Do I need an umbrella?", tools=[get_weather]) as turn:
        pieces = [text async for text in turn.text_deltas()]
        streamed = await turn.result()
    assert generated.text == streamed.text == "".join(pieces) == "Take one: it rains in Bergen."
    for result in (generated, streamed):
        assert [(one.tool_name, one.status, one.input) for one in result.tool_executions] == [
            ("get_weather", "ok", {"city": "Bergen"})
        ]
        assert [message.role for message in result.messages] == ["user", "assistant", "tool", "assistant"]


async def test_a_generated_turn_asks_for_no_stream(model: LanguageModel, address: str) -> None:
    await generate(model, "Do I need an umbrella?", tools=[get_weather])
    requests = (await seen(address))[-2:]
    assert all(str(one["path"]).startswith("/v1/messages") for one in requests)
    assert [bool(one["body"].get("stream")) for one in requests if isinstance(one["body"], dict)] == [False, False]
