"""LangChain: an agent with N `AgentMiddleware`; a chat model piped into N pass-through runnables, for parts."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Any

os.environ.setdefault("LANGSMITH_TRACING", "false")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableGenerator

from ..chains import DELTAS
from ..measure import Contender


class AtOnce(BaseChatModel):  # type: ignore[misc, unused-ignore]
    """Answers at once."""

    @property
    def _llm_type(self) -> str:
        return "at-once"

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Hi"))])

    async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
        return self._generate()

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        for _ in range(DELTAS):
            yield ChatGenerationChunk(message=AIMessageChunk(content="word "))


class Wrapping(AgentMiddleware):  # type: ignore[misc, type-arg, unused-ignore]
    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)


async def _passing(parts: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for part in parts:
        yield part


async def contenders(n: int) -> dict[str, Contender]:
    middlewares = [type(f"Wrapping{number}", (Wrapping,), {})() for number in range(n)]
    agent: Any = create_agent(AtOnce(), tools=[], middleware=middlewares)
    piped: Any = AtOnce()
    for _ in range(n):
        piped = piped | RunnableGenerator(_passing)
    question = [HumanMessage("Hello")]

    async def call(times: int) -> None:
        for _ in range(times):
            await agent.ainvoke({"messages": question})

    async def stream(times: int) -> None:
        for _ in range(times):
            async for _part in piped.astream(question):
                pass

    return {
        "turn: create_agent, awrap_model_call": Contender(call),
        "part: astream | RunnableGenerator": Contender(stream, units=DELTAS),
    }
