"""Events of a Claude stream over real HTTP, against the SDK's own iteration of `messages.create(stream=True)`.

The server is another process, so that its work is not counted as the client's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import anthropic

from neurolink_mw.pipeline import wrap_model
from neurolink_mw.protocol import CallOptions
from neurolink_mw.providers.anthropic import AnthropicModel

from .anthropic_server import EVENTS, PIECES
from .chains import WrappingStream, members
from .child import serving
from .figure import Figure, Floor, Goal, Measured
from .measure import Contender, Effort, race

MODEL_ID = "claude-sonnet-4-6"


def measure(effort: Effort) -> Measured:
    figures: Measured = []
    for how in PIECES:
        with serving("benchmarks.anthropic_server", how) as base_url:
            figures += asyncio.run(_measure(how, base_url, effort))
    return figures


async def _measure(how: str, base_url: str, effort: Effort) -> Measured:
    async with anthropic.AsyncAnthropic(
        api_key="test", base_url=base_url, max_retries=0, open_telemetry=False
    ) as client:
        model = AnthropicModel(MODEL_ID, client=client)
        options = CallOptions.from_text("Hello")
        wrapped = wrap_model(model, members(WrappingStream, 10))

        async def by_sdk() -> None:
            events = await client.messages.create(
                model=MODEL_ID, max_tokens=1000, messages=[{"role": "user", "content": "Hello"}], stream=True
            )
            async for _event in events:
                pass

        async def ours() -> None:
            async for _part in (await model.do_stream(options)).stream:
                pass

        async def ours_wrapped() -> None:
            async for _part in (await wrapped.do_stream(options)).stream:
                pass

        taken = await race(
            {"SDK": _repeated(by_sdk), "model": _repeated(ours), "wrapped": _repeated(ours_wrapped)}, effort
        )
    floor = Floor("the SDK's own iteration", taken["SDK"])
    unit = "us/event"
    return [
        Figure(f"anthropic.model, {how}", taken["model"], unit, floor, 0, Goal(0.75)),
        Figure(f"anthropic.model and layers, {how}", taken["wrapped"], unit, floor, 10),
    ]


def _repeated(once: Callable[[], Awaitable[None]]) -> Contender:
    async def run(times: int) -> None:
        for _ in range(times):
            await once()

    return Contender(run, units=EVENTS)
