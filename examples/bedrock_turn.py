"""A turn on Amazon Bedrock, natively and as a model, with real boto3 against a server of this machine.

Without `endpoint_url` and the made-up keys it is Bedrock itself that answers.
"""

from __future__ import annotations

import anyio
import boto3
from botocore.config import Config

from neurolink_mw import CallOptions, tool, wrap_model
from neurolink_mw.providers.bedrock import BedrockModel, BedrockTurnModel
from neurolink_mw.providers.bedrock.agentic_loop import run_agentic_loop
from neurolink_mw.roles import Observer, RegexTransform
from neurolink_mw.testing import wire
from neurolink_mw.testing.wire import bedrock

MODEL_ID = "anthropic.claude-sonnet-4-6"


@tool
async def account(name: str) -> str:
    """Look up an account."""
    return f"{name}: open since 2019"


class Ledger(Observer):
    """Around the turn: what it came to, and how many calls of the model that took."""

    def on_outcome(self, outcome: object) -> None:
        print("outcome:", getattr(outcome, "status", None), "after", getattr(outcome, "model_calls", None), "calls")


async def main() -> None:
    look_up = bedrock.answer("One moment, 4929-1234.", tool_calls=[bedrock.ToolCall("account", {"name": "Ann"})])
    done = bedrock.answer("The account is open.")
    with wire.bedrock_server([look_up, done], repeat="all") as server:
        client = boto3.client(
            "bedrock-runtime",
            region_name="eu-central-1",
            endpoint_url=server.base_url,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(retries={"total_max_attempts": 1}),
        )
        async with BedrockModel(MODEL_ID, client=client) as bare:
            # Around each step: what it takes out is in no later request, and in no history.
            model = wrap_model(bare, [RegexTransform(r"\d{4}-\d{4}", "****")])

            loop = run_agentic_loop(model, [{"role": "user", "content": [{"text": "Is it open?"}]}], tools=[account])
            async for chunk in loop.stream:
                print(chunk.content, end="")
            print()
            for message in loop.result.conversation:
                print(message)

            turn = BedrockTurnModel(model, tools=[account], middlewares=[Ledger()])
            result = await turn.do_generate(CallOptions.from_text("Is it open?"))
            print(result.text, "|", result.finish_reason.unified, result.usage.output_tokens.total)


if __name__ == "__main__":
    anyio.run(main)
