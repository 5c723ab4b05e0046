"""How a turn marks the calls and results of its own tools, where it shows them as those of a model.

They are `provider_executed`, since whoever reads the answer has nothing to run; and they carry our entry in their
metadata, since providers run tools of their own, which are judged by nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from ..pipeline.marks import MARK, entry, with_entry
from ..protocol import (
    JSON,
    Content,
    ErrorJsonOutput,
    ErrorTextOutput,
    ExecutionDenied,
    JSONObject,
    JsonOutput,
    TextOutput,
    ToolCall,
    ToolOutcome,
    ToolOutput,
    ToolResult,
    from_json,
    to_json,
)

_ERRORS = (ErrorTextOutput, ErrorJsonOutput, ExecutionDenied)


def is_own(one: Content) -> TypeGuard[ToolCall]:
    """Whether it is a call for the turn to answer; the provider's own tools have run already."""
    return isinstance(one, ToolCall) and not one.provider_executed


def denial_of(call: ToolCall) -> ToolOutcome | None:
    """How a call is answered that a policy of the step has denied; None for one that none did."""
    denied = entry(call.provider_metadata).get("denied")
    if not isinstance(denied, Mapping):
        return None
    return ToolOutcome(ExecutionDenied(str(denied.get("message") or "") or None), "denied")


def step_id(step: int, id: str) -> str:
    """An id of a step's answer within that of the turn, where ids of several steps meet."""
    return f"{step}-{id}"


def call_mark(metadata: JSONObject | None, step: int, id: str) -> JSONObject:
    """The metadata of a call of a turn's own. id: as the model gave it."""
    return with_entry(metadata, {"step": step, "id": id})


def marked_call(call: ToolCall, step: int) -> ToolCall:
    """A call as the loop runs it, and as members around the turn know it."""
    return call.replace(provider_metadata=call_mark(call.provider_metadata, step, call.tool_call_id))


def shown_call(call: ToolCall, step: int) -> ToolCall:
    """A call of the turn's own as part of its answer."""
    return marked_call(call, step).replace(tool_call_id=step_id(step, call.tool_call_id), provider_executed=True)


def shown_result(call: ToolCall, output: ToolOutput, step: int) -> ToolResult:
    """The result of a call of the turn's own, as part of its answer."""
    mark: JSONObject = {"step": step, "id": call.tool_call_id, "output": output.type}
    return ToolResult(
        step_id(step, call.tool_call_id),
        call.tool_name,
        _shown(output),
        is_error=True if isinstance(output, _ERRORS) else None,
        provider_metadata={MARK: mark},
    )


def output_of(result: ToolResult) -> ToolOutput:
    """The output that a result of a turn was made of; for one of a provider, what says the same."""
    kind = entry(result.provider_metadata).get("output")
    value = result.result
    if kind in ("text", "error-text") and isinstance(value, str):
        return TextOutput(value) if kind == "text" else ErrorTextOutput(value)
    if kind is None or kind in ("json", "error-json"):
        return ErrorJsonOutput(value) if result.is_error else JsonOutput(value)
    output: ToolOutput = from_json(ToolOutput, value)
    return output


def _shown(output: ToolOutput) -> JSON:
    if isinstance(output, TextOutput | ErrorTextOutput | JsonOutput | ErrorJsonOutput):
        return output.value
    return to_json(output)
