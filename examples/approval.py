"""A call that a person has to approve: the turn ends, and goes on with what was said, perhaps in another process."""

from __future__ import annotations

import json

import anyio

from neurolink_mw import generate, to_json, tool
from neurolink_mw.protocol import GenerateResult, ToolCall
from neurolink_mw.testing import ScriptedModel


@tool(needs_approval=True)
async def delete(path: str) -> str:
    """Delete a file."""
    return f"{path} is gone"


async def main() -> None:
    call = ToolCall("c1", "delete", '{"path": "/srv/old.log"}')
    model = ScriptedModel([GenerateResult([call]), "I have deleted it."])
    first = await generate(model, "Delete the old log.", tools=[delete])
    stored = json.dumps([to_json(message) for message in first.messages])

    for pending in first.approvals:
        print(f"may it run? {pending.call.tool_name} {pending.call.input}")
    answers = [pending.approve() for pending in first.approvals]

    second = await generate(model, messages=[*json.loads(stored), *answers], tools=[delete])
    print(second.tool_executions[0].status, second.text)


if __name__ == "__main__":
    anyio.run(main)
