"""The record of one tool call."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ..protocol import JSON, ToolOutput, Value, value

Status: TypeAlias = Literal["ok", "error", "denied", "cancelled", "timeout"]


@value
class ToolExecution(Value):
    """What became of one tool call.

    input: what the model wrote, parsed where it is JSON. output: what the tool said, whole; the conversation holds an
    excerpt where it is long. step: of the turn, from 0. tries: how often the tool was run, 0 where it was not (an
    unknown tool, invalid input, a denial). started: seconds since the epoch; duration: seconds; neither counts the
    wait for an approval.
    """

    tool_call_id: str
    tool_name: str
    input: JSON
    output: ToolOutput
    status: Status
    step: int
    tries: int
    started: float
    duration: float
