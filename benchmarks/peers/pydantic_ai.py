"""Pydantic AI: a model in N `WrapperModel`, and an agent with N capabilities, for calls and for parts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.wrapper import WrapperModel

from ..chains import DELTAS
from ..measure import Contender


class AtOnce(Model):  # type: ignore[misc, unused-ignore]
    """Answers at once."""

    model_name = "at-once"
    system = "benchmark"

    async def request(self, messages: Any, model_settings: Any, model_request_parameters: Any) -> Any:
        return ModelResponse([TextPart("Hi")])


class Wrapping(AbstractCapability):  # type: ignore[misc, type-arg, unused-ignore]
    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        return await handler(request_context)


class WrappingStream(AbstractCapability):  # type: ignore[misc, type-arg, unused-ignore]
    async def wrap_run_event_stream(self, ctx: Any, *, stream: Any) -> Any:
        async for event in stream:
            yield event


async def _deltas(messages: Any, info: Any) -> AsyncIterator[str]:
    for _ in range(DELTAS):
        yield "word "


async def contenders(n: int) -> dict[str, Contender]:
    nested: Any = AtOnce()
    nested_stream: Any = FunctionModel(stream_function=_deltas)
    for _ in range(n):
        nested, nested_stream = WrapperModel(nested), WrapperModel(nested_stream)
    agent: Any = Agent(AtOnce(), capabilities=[Wrapping() for _ in range(n)])
    streaming_agent: Any = Agent(
        FunctionModel(stream_function=_deltas), capabilities=[WrappingStream() for _ in range(n)]
    )
    messages = [ModelRequest.user_text_prompt("Hello")]
    parameters = ModelRequestParameters()

    async def call(times: int) -> None:
        for _ in range(times):
            await nested.request(messages, None, parameters)

    async def run(times: int) -> None:
        for _ in range(times):
            await agent.run("Hello")

    async def stream(times: int) -> None:
        for _ in range(times):
            async with nested_stream.request_stream(messages, None, parameters) as parts:
                async for _part in parts:
                    pass

    async def events(times: int) -> None:
        for _ in range(times):
            async with streaming_agent.run_stream_events("Hello") as parts:
                async for _part in parts:
                    pass

    return {
        "call: WrapperModel.request": Contender(call),
        "turn: Agent.run, wrap_model_request": Contender(run),
        "part: WrapperModel.request_stream (no hook per part)": Contender(stream, units=DELTAS),
        "part of a turn: Agent.run_stream_events, wrap_run_event_stream": Contender(events, units=DELTAS),
    }
