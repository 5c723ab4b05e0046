"""A pipeline from a configuration around a real provider, generated and streamed.

Runs against a loopback server that speaks OpenAI's format, so that it needs no key; point `base_url` at any other.
"""

from __future__ import annotations

import logging

import anyio

from neurolink_mw import CallOptions, Pipeline
from neurolink_mw.protocol import TextDelta
from neurolink_mw.testing import wire
from neurolink_mw.testing.wire import openai


async def main(base_url: str) -> None:
    config = {
        "model": {
            "provider": "openai-compatible",
            "model_id": "example",
            "base_url": base_url,
            "api_key": "no-key-needed",
        },
        "preset": "observe",
        "middlewares": [{"id": "default_settings", "config": {"temperature": 0.2}}],
    }
    options = CallOptions.from_text("Why is the sky blue?")
    async with Pipeline.from_config(config, statistics=True) as pipeline:
        print(pipeline.explain())

        result = await pipeline.model.do_generate(options)
        print("generated:", result.text)

        print("streamed:  ", end="")
        async with (await pipeline.model.do_stream(options)).stream as parts:
            async for part in parts:
                if isinstance(part, TextDelta):
                    print(part.delta, end="", flush=True)
        print()
        print("calls:", pipeline.statistics.by_status)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    answer = openai.answer(deltas=["Short waves ", "scatter ", "more."])
    with wire.openai_server([answer], repeat="last") as server:
        anyio.run(main, server.base_url)
