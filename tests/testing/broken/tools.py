"""Broken: what stands around a tool, and around a turn."""

from __future__ import annotations

from collections.abc import AsyncIterator

from neurolink_mw.pipeline import Middleware
from neurolink_mw.protocol import GenerateResult, PartStream, StreamPart, TextOutput, ToolCall, ToolOutcome, ToolRunner

from .kit import Passing

FINE = ToolOutcome(TextOutput("all is well"))


class ReadsTheOutputAsText(Middleware):
    """It forgets that a tool may say something else."""

    async def wrap_tool(self, tool: ToolRunner, call: ToolCall) -> ToolOutcome:
        outcome = await tool.run(call)
        return outcome.replace(output=TextOutput({"an animal": ""}[str(outcome.output)]))


class ForgetsTheOutcome(Middleware):
    async def wrap_tool(self, tool: ToolRunner, call: ToolCall) -> ToolOutcome:
        outcome = await tool.run(call)
        return None if outcome.status == "ok" else outcome  # type: ignore[return-value]  # what is broken


class MakesSure(Middleware):
    """It runs the tool a second time, to see whether it says the same."""

    async def wrap_tool(self, tool: ToolRunner, call: ToolCall) -> ToolOutcome:
        await tool.run(call)
        return await tool.run(call)


class NumbersTheCalls(Middleware):
    async def wrap_tool(self, tool: ToolRunner, call: ToolCall) -> ToolOutcome:
        return await tool.run(call.replace(tool_call_id="1"))


class SmoothsThingsOver(Middleware):
    async def wrap_tool(self, tool: ToolRunner, call: ToolCall) -> ToolOutcome:
        outcome = await tool.run(call)
        return outcome if outcome.status == "ok" else FINE


class AnswersForATool(Middleware):
    """Whatever happens, a cancellation too."""

    async def wrap_tool(self, tool: ToolRunner, call: ToolCall) -> ToolOutcome:
        try:
            return await tool.run(call)
        except BaseException:
            return FINE


class KeepsTheCallOnItself(Middleware):
    async def wrap_tool(self, tool: ToolRunner, call: ToolCall) -> ToolOutcome:
        self.call = call
        outcome = await tool.run(call)
        said = outcome.output.value if isinstance(outcome.output, TextOutput) else ""
        return outcome.replace(output=TextOutput(f"{self.call.tool_call_id}: {said}"))


class ChecksCallsInStreamsOnly(Passing):
    """A whole answer passes it by."""

    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield part.replace(input='{"word": "***"}') if isinstance(part, ToolCall) else part


class MakesNewCalls(Passing):
    def whole(self, result: GenerateResult) -> GenerateResult:
        return result.replace(content=[_anew(one) if isinstance(one, ToolCall) else one for one in result.content])


def _anew(call: ToolCall) -> ToolCall:
    return ToolCall(call.tool_call_id, call.tool_name, call.input)
