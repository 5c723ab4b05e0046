"""The Bedrock provider, through a real boto3 client, against a server that nobody here wrote."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from tests.aimock.asking import ask, get_weather, read, seen

from neurolink_mw import CallOptions, LanguageModel, generate, wrap_model
from neurolink_mw.errors import ProviderError, TurnError
from neurolink_mw.middlewares.logging import Logging
from neurolink_mw.protocol import ToolCall
from neurolink_mw.providers.bedrock import BedrockModel, BedrockTurnModel
from neurolink_mw.providers.bedrock.agentic_loop import AgenticLoopChunk, run_agentic_loop

pytestmark = pytest.mark.anyio

MODEL_ID = "anthropic.claude-sonnet-4-6"


def client(address: str) -> Any:
    return boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=address,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"total_max_attempts": 1}),
    )


@pytest.fixture
async def model(address: str, anyio_backend: str) -> AsyncIterator[LanguageModel]:
    async with BedrockModel(MODEL_ID, client=client(address)) as bare:
        yield wrap_model(bare, [Logging()])


async def test_an_answer_is_generated(model: LanguageModel) -> None:
    generated = await model.do_generate(ask("hello"))
    assert generated.text == "Hello there, how are you today?"
    assert generated.finish_reason.unified == "stop"


async def test_a_stream_that_botocore_cannot_read_ends_in_an_error(model: LanguageModel) -> None:
    # This server begins text blocks with an empty `start`, which Bedrock never sends and botocore's parser refuses.
    with pytest.raises(ProviderError, match="could not be read"):
        await model.do_stream(ask("hello"))


async def test_a_tool_call_is_generated_and_streamed_alike(model: LanguageModel) -> None:
    generated = await model.do_generate(ask("weather"))
    calls = [part for part in await read(model, ask("weather")) if isinstance(part, ToolCall)]
    for call in (*generated.tool_calls, *calls):
        assert (call.tool_name, call.input.replace(" ", "")) == ("get_weather", '{"city":"Oslo"}')
    assert len(generated.tool_calls) == len(calls) == 1
    assert generated.finish_reason.unified == "tool-calls"


async def test_a_turn_is_generated(model: LanguageModel) -> None:
    generated = await generate(model, "Do I need an umbrella?", tools=[get_weather])
    assert generated.text == "Take one: it rains in Bergen."


async def test_a_turn_streams_up_to_what_botocore_can_read_and_keeps_it(model: LanguageModel) -> None:
    asked = [{"role": "user", "content": [{"text": "Do I need an umbrella?"}]}]
    loop = run_agentic_loop(model, asked, tools=[get_weather])
    chunks: list[AgenticLoopChunk] = []

    async def read_into() -> None:
        async for chunk in loop.stream:
            chunks.append(chunk)

    with pytest.raises(TurnError):
        await read_into()
    assert [chunk.part.type for chunk in chunks if chunk.part][-2:] == ["tool-call", "tool-result"]
    assert [message["role"] for message in loop.result.conversation] == ["user", "assistant", "user"]


async def test_a_turn_as_a_model_owns_its_outcome(model: LanguageModel) -> None:
    turn = BedrockTurnModel(model, tools=[get_weather], middlewares=[Logging()])
    played = await turn.run_generate(CallOptions.from_text("Do I need an umbrella?"))
    assert played.loop is not None
    assert [one.status for one in played.loop.tool_executions] == ["ok"]


async def test_an_unknown_request_is_refused(model: LanguageModel) -> None:
    with pytest.raises(ProviderError) as caught:
        await model.do_generate(ask("something else"))
    assert caught.value.retryable is False


async def test_a_generated_turn_asks_for_no_stream(model: LanguageModel, address: str) -> None:
    await generate(model, "Do I need an umbrella?", tools=[get_weather])
    assert all(one["path"].endswith("/converse") for one in (await seen(address))[-2:])
