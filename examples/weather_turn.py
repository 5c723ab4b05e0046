"""A turn with a tool, generated, then continued as a stream.

Runs against a loopback server that speaks OpenAI's format; name a model of your own in its place.
"""

from __future__ import annotations

import anyio

from neurolink_mw import generate, stream, tool
from neurolink_mw.providers.openai_compatible import OpenAICompatibleModel
from neurolink_mw.testing import wire
from neurolink_mw.testing.wire import openai


@tool
async def weather(city: str) -> str:
    """The weather of a city, by its English name."""
    return f"{city}: rain until four, then dry."


async def main(base_url: str) -> None:
    async with OpenAICompatibleModel("example", base_url=base_url, api_key="no-key-needed") as model:
        result = await generate(model, "Do I need an umbrella in Oslo?", system="Be brief.", tools=[weather])
        for done in result.tool_executions:
            print(f"step {done.step}: {done.tool_name} {done.input} was {done.status}")
        print(result.text)

        async with stream(model, "And at five?", messages=result.messages, tools=[weather]) as turn:
            async for text in turn.text_deltas():
                print(text, end="", flush=True)
        print()


if __name__ == "__main__":
    call = openai.answer(tool_calls=[openai.ToolCall("weather", {"city": "Oslo"})])
    answers = [openai.answer(deltas=["Until four."]), openai.answer(deltas=["No, ", "it is dry."])]
    with wire.openai_server([call, *answers]) as server:
        anyio.run(main, server.base_url)
