"""Two ways to stand between a model and its tools: a policy judges calls, a middleware goes around each execution."""

from __future__ import annotations

import json

import anyio

from neurolink_mw import Middleware, generate, tool
from neurolink_mw.protocol import GenerateResult, ToolCall, ToolOutcome, ToolRunner
from neurolink_mw.roles import ResponsePolicy, Verdict, View, allow, deny
from neurolink_mw.testing import ScriptedModel


class NoLargeSums(ResponsePolicy):
    def check(self, view: View) -> Verdict:
        too_much = view.tool_call is not None and json.loads(view.text).get("amount", 0) > 100
        return deny("too-much", "Sums above 100 need a signature.") if too_much else allow()


class Audit(Middleware):
    async def wrap_tool(self, tool: ToolRunner, call: ToolCall) -> ToolOutcome:
        outcome = await tool.run(call)
        print(f"{tool.name} {call.input}: {outcome.status}")
        return outcome


@tool
async def pay(to: str, amount: int) -> str:
    """Pay somebody."""
    return f"paid {amount} to {to}"


if __name__ == "__main__":
    asked = [ToolCall(f"c{n}", "pay", json.dumps({"to": "Ann", "amount": n})) for n in (5, 500)]
    model = ScriptedModel([GenerateResult(asked), "Five are paid. The rest needs a signature."])
    result = anyio.run(lambda: generate(model, "Pay Ann.", tools=[pay], middlewares=[Audit(), NoLargeSums()]))
    print([done.status for done in result.tool_executions], result.text)
