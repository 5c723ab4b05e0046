"""Events of an OpenAI-compatible stream over real HTTP, against a bare httpx + SSE + json.loads loop.

The server is another process, so that its work is not counted as the client's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import httpx

from neurolink_mw.pipeline import wrap_model
from neurolink_mw.protocol import CallOptions
from neurolink_mw.providers.openai_compatible import OpenAICompatibleModel

from .chains import WrappingStream, members
from .child import serving
from .figure import Figure, Floor, Goal, Measured
from .measure import Contender, Effort, race
from .openai_server import EVENTS, PIECES

_BODY = {
    "model": "wire-model",
    "messages": [{"role": "user", "content": "Hello"}],
    "stream": True,
    "stream_options": {"include_usage": True},
}


def measure(effort: Effort) -> Measured:
    figures: Measured = []
    for how in PIECES:
        with serving("benchmarks.openai_server", how) as base_url:
            figures += asyncio.run(_measure(how, base_url, effort))
    return figures


async def _measure(how: str, base_url: str, effort: Effort) -> Measured:
    url = f"{base_url}/chat/completions"
    async with httpx.AsyncClient(timeout=60) as client, OpenAICompatibleModel("wire-model", base_url=base_url) as model:
        options = CallOptions.from_text("Hello")
        wrapped = wrap_model(model, members(WrappingStream, 10))

        async def ours() -> None:
            async for _part in (await model.do_stream(options)).stream:
                pass

        async def ours_wrapped() -> None:
            async for _part in (await wrapped.do_stream(options)).stream:
                pass

        taken = await race(
            {
                "httpx + SSE + json.loads": _repeated(lambda: bare(client, url)),
                "httpx aiter_lines + json.loads": _repeated(lambda: by_lines(client, url)),
                "OpenAICompatibleModel": _repeated(ours),
                "wrapped": _repeated(ours_wrapped),
            },
            effort,
        )
    floor = Floor("httpx + SSE + json.loads", taken["httpx + SSE + json.loads"])
    unit = "us/event"
    return [
        Figure(f"openai.model, {how}", taken["OpenAICompatibleModel"], unit, floor, 0, Goal(1.4)),
        Figure(f"openai.model and layers, {how}", taken["wrapped"], unit, floor, 10),
        Figure(f"openai.httpx aiter_lines, {how}", taken["httpx aiter_lines + json.loads"], unit, floor),
    ]


def _repeated(once: Callable[[], Awaitable[None]]) -> Contender:
    async def run(times: int) -> None:
        for _ in range(times):
            await once()

    return Contender(run, units=EVENTS)


async def bare(client: httpx.AsyncClient, url: str) -> None:
    """The floor: bytes to events to objects, and nothing else."""
    rest = b""
    data: list[bytes] = []
    async with client.stream("POST", url, json=_BODY) as response:
        async for chunk in response.aiter_bytes():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line.startswith(b"data: "):
                    data.append(line[6:])
                elif not line and data:
                    event = b"\n".join(data)
                    data.clear()
                    if event != b"[DONE]":
                        json.loads(event)


async def by_lines(client: httpx.AsyncClient, url: str) -> None:
    """What most people write."""
    async with client.stream("POST", url, json=_BODY) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: ") and line != "data: [DONE]":
                json.loads(line[6:])
