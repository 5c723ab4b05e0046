"""A turn of Claude with tools and a typed answer, a guard around its steps, with the real SDK against a server of this
machine.

Without `base_url` and the made-up key it is Anthropic itself that answers.
"""

from __future__ import annotations

import anyio
from anthropic import AsyncAnthropic
from pydantic import BaseModel

from neurolink_mw import stream, tool
from neurolink_mw.protocol import TextDelta, ToolResult
from neurolink_mw.providers.anthropic import AnthropicModel
from neurolink_mw.roles import RegexTransform
from neurolink_mw.testing import wire
from neurolink_mw.testing.wire import anthropic

MODEL_ID = "claude-sonnet-4-20250514"


class Account(BaseModel):
    name: str
    open: bool


@tool
async def account(name: str) -> str:
    """Look up an account."""
    return f"{name}: open since 2019"


async def main() -> None:
    look_up = anthropic.answer(
        thinking="The account first.", tool_calls=[anthropic.ToolCall("account", {"name": "Ann 4929-1234"})]
    )
    done = anthropic.answer(tool_calls=[anthropic.ToolCall("final_result", {"name": "Ann 4929-1234", "open": True})])
    with wire.anthropic_server([look_up, done]) as server:
        async with AsyncAnthropic(api_key="test", base_url=server.base_url) as client:
            model = AnthropicModel(MODEL_ID, client=client)
            masked = [RegexTransform(r"\d{4}-\d{4}", "[number]")]
            turn = stream(model, "Is Ann's account open?", tools=[account], middlewares=masked, output=Account)
            async with turn:
                async for part in turn:
                    if isinstance(part, TextDelta):
                        print(part.delta, end="", flush=True)
                    elif isinstance(part, ToolResult):
                        print("a tool has run:", part.tool_name)
                print()
                result = await turn.result()
            print(result.output)
            print("sent back:", [block["type"] for block in server.journal[1].json["messages"][1]["content"]])


if __name__ == "__main__":
    anyio.run(main)
