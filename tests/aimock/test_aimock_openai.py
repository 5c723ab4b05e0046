"""The OpenAI-compatible provider, inside a pipeline that keeps account, against a server that nobody here wrote."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.aimock.asking import ask, read

from neurolink_mw import LanguageModel, wrap_model
from neurolink_mw.errors import StreamInterruptedError
from neurolink_mw.middlewares.default_settings import DefaultSettings
from neurolink_mw.middlewares.lifecycle import Finished, Lifecycle
from neurolink_mw.middlewares.logging import Logging
from neurolink_mw.protocol import INTERRUPTED, ErrorPart, Finish, collect
from neurolink_mw.providers.openai_compatible import OpenAICompatibleModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def ended() -> list[object]:
    return []


@pytest.fixture
async def model(address: str, ended: list[object], anyio_backend: str) -> AsyncIterator[LanguageModel]:
    members = [Logging(), Lifecycle(on_finish=ended.append, on_error=ended.append), DefaultSettings(temperature=0)]
    async with OpenAICompatibleModel("mock-1", base_url=f"{address}/v1", api_key="not-checked") as bare:
        yield wrap_model(bare, members)


async def test_an_answer_ends_as_finished(model: LanguageModel, ended: list[object]) -> None:
    await model.do_generate(ask("hello"))
    await read(model, ask("hello"))
    assert [type(end) for end in ended] == [Finished, Finished]


async def test_a_streamed_answer_counts_as_many_tokens_as_a_generated_one(model: LanguageModel) -> None:
    streamed = collect(await read(model, ask("hello")))
    generated = await model.do_generate(ask("hello"))
    assert streamed.usage.output_tokens.total == generated.usage.output_tokens.total


async def test_a_disconnect_in_mid_stream_ends_as_an_interrupted_answer(
    model: LanguageModel, ended: list[object]
) -> None:
    parts = await read(model, ask("break off"))
    errors = [part.error for part in parts if isinstance(part, ErrorPart)]
    assert isinstance(errors[0], StreamInterruptedError)
    assert isinstance(parts[-1], Finish)
    assert parts[-1].finish_reason == INTERRUPTED
    assert not isinstance(ended[0], Finished)
