"""Typed answers of models that give JSON by a tool: alone, and beside tools of the caller's, over the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import BaseModel
from tests.providers.bedrock import wire_builders as bedrock_clients
from tests.testing.wire import anthropic_clients

from neurolink_mw import generate, stream, tool
from neurolink_mw.protocol import LanguageModel
from neurolink_mw.providers.anthropic import AnthropicModel
from neurolink_mw.providers.bedrock import BedrockModel
from neurolink_mw.testing import wire
from neurolink_mw.testing.wire import ScriptedServer, anthropic, bedrock

pytestmark = pytest.mark.anyio


class Weather(BaseModel):
    city: str
    degrees: int


ANSWER = {"city": "Oslo", "degrees": 3}


@tool
async def look(city: str) -> str:
    """Looks at the sky."""
    return f"3 degrees in {city}"


class Claude:
    """Claude of a generation without native JSON output."""

    wire = anthropic

    @asynccontextmanager
    async def model(self, *replies: Any) -> AsyncIterator[tuple[LanguageModel, ScriptedServer]]:
        with wire.anthropic_server(replies) as server:
            async with anthropic_clients.own(server) as client:
                yield AnthropicModel("claude-sonnet-4-20250514", client=client), server

    def names(self, body: Any) -> list[str]:
        return [tool["name"] for tool in body["tools"]]


class Nova:
    wire = bedrock

    @asynccontextmanager
    async def model(self, *replies: Any) -> AsyncIterator[tuple[LanguageModel, ScriptedServer]]:
        with wire.bedrock_server(replies) as server:
            yield BedrockModel("amazon.nova-lite-v1:0", client=bedrock_clients.client(server.base_url)), server

    def names(self, body: Any) -> list[str]:
        return [tool["toolSpec"]["name"] for tool in body["toolConfig"]["tools"]]


async def generated(model: LanguageModel, **settings: Any) -> Any:
    return await generate(model, "How cold is it in Oslo?", output=Weather, **settings)


async def streamed(model: LanguageModel, **settings: Any) -> Any:
    async with stream(model, "How cold is it in Oslo?", output=Weather, **settings) as result:
        async for _ in result:
            pass
        return await result.result()


hosts = pytest.mark.parametrize("host", [Claude(), Nova()], ids=["anthropic", "bedrock"])
drives = pytest.mark.parametrize("drive", [generated, streamed])
Drive = Callable[..., Awaitable[Any]]


@hosts
@drives
async def test_what_is_said_beside_the_answer_does_not_spoil_it(host: Any, drive: Drive) -> None:
    said = host.wire.answer("Sure, here it is.", tool_calls=[host.wire.ToolCall("json", ANSWER)])
    async with host.model(said) as (model, _):
        result = await drive(model)
    assert result.output == Weather(city="Oslo", degrees=3)
    assert result.finish_reason.unified == "stop"


@hosts
@drives
async def test_tools_are_kept_and_the_answer_comes_by_final_result(host: Any, drive: Drive) -> None:
    looks = host.wire.answer("Let me look.", tool_calls=[host.wire.ToolCall("look", {"city": "Oslo"})])
    answers = host.wire.answer("Got it.", tool_calls=[host.wire.ToolCall("final_result", ANSWER)])
    async with host.model(looks, answers) as (model, server):
        result = await drive(model, tools=[look])
    assert result.output == Weather(city="Oslo", degrees=3)
    assert [one.tool_name for one in result.tool_executions] == ["look"]
    assert all(host.names(exchange.json) == ["look", "final_result"] for exchange in server.journal)
    assert "final_result" not in repr([(step.tool_calls, step.content) for step in result.steps])
    assert "final_result" not in repr(result.messages)


@hosts
@drives
async def test_calls_beside_the_answer_are_not_run_and_named(host: Any, drive: Drive) -> None:
    calls = [host.wire.ToolCall("look", {"city": "Oslo"}), host.wire.ToolCall("final_result", ANSWER)]
    async with host.model(host.wire.answer(tool_calls=calls)) as (model, _):
        result = await drive(model, tools=[look])
    assert result.output == Weather(city="Oslo", degrees=3)
    assert result.tool_executions == ()
    assert any("look" in (warning.message or "") for warning in result.warnings) or drive is streamed
    key = "anthropic" if host.wire is anthropic else "bedrock"
    assert result.provider_metadata[key]["unexecuted_tool_calls"] == ["look"]
