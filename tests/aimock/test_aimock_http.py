"""The providers that speak HTTP, through their real clients, against a server that nobody here wrote."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from anthropic import AsyncAnthropic
from tests.aimock.asking import BOTH_WAYS, ask, get_weather, read, seen

from neurolink_mw import LanguageModel, generate, stream, wrap_model
from neurolink_mw.errors import ConnectionFailed, ProviderError, RateLimitError, ServerError
from neurolink_mw.middlewares.logging import Logging
from neurolink_mw.protocol import ToolCall, collect
from neurolink_mw.providers.anthropic import AnthropicModel
from neurolink_mw.providers.openai_compatible import OpenAICompatibleModel

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["openai-compatible", "anthropic"])
async def model(address: str, request: pytest.FixtureRequest, anyio_backend: str) -> AsyncIterator[LanguageModel]:
    bare: LanguageModel
    if request.param == "anthropic":
        client = AsyncAnthropic(api_key="not-checked", base_url=address)
        async with client, AnthropicModel("claude-sonnet-4-6", client=client) as bare:
            yield wrap_model(bare, [Logging()])
    else:
        async with OpenAICompatibleModel("mock-1", base_url=f"{address}/v1", api_key="not-checked") as bare:
            yield wrap_model(bare, [Logging()])


async def test_a_generated_answer_arrives_with_usage(model: LanguageModel) -> None:
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


@BOTH_WAYS
async def test_a_429_is_raised_with_the_wait_that_the_server_asks_for(model: LanguageModel, kind: str) -> None:
    with pytest.raises(RateLimitError) as caught:
        await getattr(model, kind)(ask("hello", ratelimit="1"))
    assert (caught.value.status, caught.value.retry_after, caught.value.retryable) == (429, 1.0, True)


@BOTH_WAYS
async def test_a_500_is_raised_as_a_retryable_server_error(model: LanguageModel, kind: str) -> None:
    with pytest.raises(ServerError) as caught:
        await getattr(model, kind)(ask("hello", drop="1"))
    assert (caught.value.status, caught.value.retryable) == (500, True)


@BOTH_WAYS
async def test_malformed_json_is_raised_as_a_provider_error(model: LanguageModel, kind: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await getattr(model, kind)(ask("hello", malformed="1"))
    assert caught.value.status == 200


@BOTH_WAYS
async def test_a_connection_dropped_before_an_answer_is_raised(model: LanguageModel, kind: str) -> None:
    with pytest.raises(ConnectionFailed):
        await getattr(model, kind)(ask("hello", disconnect="1"))


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
    assert [bool(one["body"].get("stream")) for one in requests] == [False, False]
