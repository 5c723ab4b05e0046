"""Strands: an agent with N middlewares of `InvokeModelStage`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from strands import Agent
from strands.middleware import InvokeModelStage
from strands.models import Model

from ..chains import DELTAS
from ..measure import Contender


class AtOnce(Model):  # type: ignore[misc, unused-ignore]
    """Answers at once, in so many deltas."""

    def __init__(self, deltas: int) -> None:
        self._deltas = deltas

    def update_config(self, **model_config: Any) -> None:
        return None

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        for _ in range(self._deltas):
            yield {"contentBlockDelta": {"delta": {"text": "word "}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


async def _passing(context: Any, next_fn: Any) -> AsyncIterator[Any]:
    async for event in next_fn(context):
        yield event


def _agent(n: int, deltas: int) -> Any:
    agent: Any = Agent(model=AtOnce(deltas), callback_handler=None)
    for _ in range(n):
        agent.add_middleware(InvokeModelStage, _passing)
    return agent


async def contenders(n: int) -> dict[str, Contender]:
    agent, streaming_agent = _agent(n, 1), _agent(n, DELTAS)

    async def call(times: int) -> None:
        for _ in range(times):
            agent.messages.clear()  # or each question would be longer than the last
            await agent.invoke_async("Hello")

    async def stream(times: int) -> None:
        for _ in range(times):
            streaming_agent.messages.clear()
            async for _event in streaming_agent.stream_async("Hello"):
                pass

    return {
        "turn: Agent.invoke_async, InvokeModelStage": Contender(call),
        "part of a turn: Agent.stream_async, InvokeModelStage": Contender(stream, units=DELTAS),
    }
