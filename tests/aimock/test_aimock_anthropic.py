"""The Anthropic provider, through the real SDK, against a server that nobody here wrote."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from anthropic import AsyncAnthropic
from tests.aimock.asking import BOTH_WAYS, ask, get_weather, read, seen

from neurolink_mw import LanguageModel, generate, wrap_model
from neurolink_mw.errors import ConnectionFailed, OverloadedError, StreamInterruptedError
from neurolink_mw.middlewares.logging import Logging
from neurolink_mw.protocol import INTERRUPTED, ErrorPart, Finish, collect
from neurolink_mw.providers.anthropic import AnthropicModel

pytestmark = pytest.mark.anyio


@pytest.fixture
async def model(address: str, anyio_backend: str) -> AsyncIterator[LanguageModel]:
    client = AsyncAnthropic(api_key="not-checked", base_url=address)
    async with client, AnthropicModel("claude-sonnet-4-6", client=client) as bare:
        yield wrap_model(bare, [Logging()])


@BOTH_WAYS
async def test_an_overload_is_raised_as_one_and_can_be_retried(model: LanguageModel, kind: str) -> None:
    with pytest.raises(OverloadedError, match="Overloaded") as caught:
        await getattr(model, kind)(ask("too busy"))
    assert (caught.value.status, caught.value.retryable) == (529, True)


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


async def test_messages_are_asked_for(model: LanguageModel, address: str) -> None:
    await generate(model, "Do I need an umbrella?", tools=[get_weather])
    assert all(str(one["path"]).startswith("/v1/messages") for one in (await seen(address))[-2:])
