"""What the tests ask of the independent server, and how they read what it has seen."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from neurolink_mw import CallOptions, LanguageModel, tool
from neurolink_mw.protocol import FunctionTool, StreamPart
from neurolink_mw.testing import check_stream

WEATHER = FunctionTool("get_weather", {"type": "object", "properties": {"city": {"type": "string"}}})
BOTH_WAYS = pytest.mark.parametrize("kind", ["do_generate", "do_stream"])


@tool
async def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


def ask(text: str, **chaos: str) -> CallOptions:
    headers = {f"x-aimock-chaos-{name}": rate for name, rate in chaos.items()}
    return CallOptions.from_text(text).replace(headers=headers, tools=[WEATHER])


async def read(model: LanguageModel, options: CallOptions) -> list[StreamPart]:
    async with (await model.do_stream(options)).stream as stream:
        parts = [part async for part in stream]
    check_stream(parts)
    return parts


async def seen(address: str) -> list[dict[str, Any]]:
    """The requests that the server has seen."""
    async with httpx.AsyncClient() as client:
        journal = (await client.get(f"{address}/__aimock/journal")).json()
    entries: list[dict[str, Any]] = journal if isinstance(journal, list) else journal["entries"]
    return entries
