"""The OpenAI-compatible provider, inside a pipeline, against a server that nobody here wrote."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from neurolink_mw import CallOptions, LanguageModel, generate, stream, tool, wrap_model
from neurolink_mw.errors import ConnectionFailed, ProviderError, RateLimitError, ServerError, StreamInterruptedError
from neurolink_mw.middlewares.default_settings import DefaultSettings
from neurolink_mw.middlewares.lifecycle import Finished, Lifecycle
from neurolink_mw.middlewares.logging import Logging
from neurolink_mw.protocol import INTERRUPTED, ErrorPart, Finish, FunctionTool, StreamPart, ToolCall, collect
from neurolink_mw.providers.openai_compatible import OpenAICompatibleModel
from neurolink_mw.testing import check_stream

pytestmark = pytest.mark.anyio

WEATHER = FunctionTool("get_weather", {"type": "object", "properties": {"city": {"type": "string"}}})


@pytest.fixture
def ended() -> list[object]:
    return []


@pytest.fixture
def base_url(address: str) -> str:
    return f"{address}/v1"


@pytest.fixture
async def model(base_url: str, ended: list[object], anyio_backend: str) -> AsyncIterator[LanguageModel]:
    members = [Logging(), Lifecycle(on_finish=ended.append, on_error=ended.append), DefaultSettings(temperature=0)]
    async with OpenAICompatibleModel("mock-1", base_url=base_url, api_key="not-checked") as bare:
        yield wrap_model(bare, members)


def ask(text: str, **chaos: str) -> CallOptions:
    headers = {f"x-aimock-chaos-{name}": rate for name, rate in chaos.items()}
    return CallOptions.from_text(text).replace(headers=headers, tools=[WEATHER])


async def read(model: LanguageModel, options: CallOptions) -> list[StreamPart]:
    async with (await model.do_stream(options)).stream as stream:
        parts = [part async for part in stream]
    check_stream(parts)
    return parts


async def test_a_generated_answer_arrives_with_usage(model: LanguageModel, ended: list[object]) -> None:
    result = await model.do_generate(ask("hello"))
    assert result.text == "Hello there, how are you today?"
    assert result.finish_reason.unified == "stop"
    assert (result.usage.input_tokens.total, result.usage.output_tokens.total) != (None, None)
    assert isinstance(ended[0], Finished)


async def test_a_streamed_answer_says_the_same_as_a_generated_one(model: LanguageModel) -> None:
    streamed = collect(await read(model, ask("hello")))
    generated = await model.do_generate(ask("hello"))
    assert streamed.text == generated.text
    assert streamed.finish_reason == generated.finish_reason
    assert streamed.usage.output_tokens.total == generated.usage.output_tokens.total


async def test_a_tool_call_arrives_generated_and_streamed(model: LanguageModel) -> None:
    generated = await model.do_generate(ask("weather"))
    parts = await read(model, ask("weather"))
    calls = [part for part in parts if isinstance(part, ToolCall)]
    for call in (*generated.tool_calls, *calls):
        assert (call.tool_name, call.input) == ("get_weather", '{"city":"Oslo"}')
    assert len(generated.tool_calls) == len(calls) == 1
    assert generated.finish_reason.unified == "tool-calls"


@pytest.mark.parametrize("kind", ["do_generate", "do_stream"])
async def test_a_500_is_raised_as_a_retryable_server_error(model: LanguageModel, kind: str) -> None:
    with pytest.raises(ServerError) as caught:
        await getattr(model, kind)(ask("hello", drop="1"))
    assert (caught.value.status, caught.value.retryable) == (500, True)


@pytest.mark.parametrize("kind", ["do_generate", "do_stream"])
async def test_a_429_is_raised_with_the_wait_that_the_server_asks_for(model: LanguageModel, kind: str) -> None:
    with pytest.raises(RateLimitError) as caught:
        await getattr(model, kind)(ask("hello", ratelimit="1"))
    assert (caught.value.status, caught.value.retry_after, caught.value.retryable) == (429, 1.0, True)


@pytest.mark.parametrize("kind", ["do_generate", "do_stream"])
async def test_malformed_json_is_raised_as_a_provider_error(model: LanguageModel, kind: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await getattr(model, kind)(ask("hello", malformed="1"))
    assert caught.value.status == 200


@pytest.mark.parametrize("kind", ["do_generate", "do_stream"])
async def test_a_connection_dropped_before_an_answer_is_raised(model: LanguageModel, kind: str) -> None:
    with pytest.raises(ConnectionFailed):
        await getattr(model, kind)(ask("hello", disconnect="1"))


async def test_a_disconnect_in_mid_stream_ends_as_an_interrupted_answer(
    model: LanguageModel, ended: list[object]
) -> None:
    parts = await read(model, ask("break off"))
    errors = [part.error for part in parts if isinstance(part, ErrorPart)]
    assert isinstance(errors[0], StreamInterruptedError)
    assert isinstance(parts[-1], Finish)
    assert parts[-1].finish_reason == INTERRUPTED
    assert not isinstance(ended[0], Finished)


async def test_an_unknown_request_is_refused_with_the_servers_own_words(model: LanguageModel) -> None:
    with pytest.raises(ProviderError, match="No fixture matched") as caught:
        await model.do_generate(ask("something else"))
    assert (caught.value.status, caught.value.retryable) == (404, False)


@tool
async def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


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


async def test_the_server_saw_streaming_requests_for_streams_only(model: LanguageModel, address: str) -> None:
    await generate(model, "Do I need an umbrella?", tools=[get_weather])
    async with httpx.AsyncClient() as client:
        journal = (await client.get(f"{address}/__aimock/journal")).json()
    requests = journal if isinstance(journal, list) else journal["entries"]
    assert [bool(one["body"].get("stream")) for one in requests[-2:]] == [False, False]
