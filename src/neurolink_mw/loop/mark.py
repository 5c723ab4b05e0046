"""How a turn marks the calls and results of its own tools, where it shows them as those of a model.

They are `provider_executed`, since whoever reads the answer has nothing to run; and they carry our entry in their
metadata, since providers run tools of their own, which are judged by nobody.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..pipeline.denial import MARK
from ..protocol import (
    JSON,
    ErrorJsonOutput,
    ErrorTextOutput,
    ExecutionDenied,
    JSONObject,
    JsonOutput,
    TextOutput,
    ToolCall,
    ToolOutput,
    ToolResult,
    from_json,
    to_json,
)

_ERRORS = (ErrorTextOutput, ErrorJsonOutput, ExecutionDenied)


def entry(metadata: JSONObject | None) -> JSONObject:
    """Our entry in some metadata; empty where there is none."""
    found = (metadata or {}).get(MARK)
    return found if isinstance(found, Mapping) else {}


def without_entry(metadata: JSONObject | None) -> JSONObject | None:
    """Metadata as it goes back to the provider."""
    if metadata is None or MARK not in metadata:
        return metadata
    return {key: value for key, value in metadata.items() if key != MARK} or None


def is_of_a_turn(part: ToolCall | ToolResult) -> bool:
    """Whether a call or a result was run, or answered, by a turn further in."""
    return "step" in entry(part.provider_metadata)


def denial_reason(call: ToolCall) -> str | None:
    """What a policy of the step has said against a call; None where none did."""
    denied = entry(call.provider_metadata).get("denied")
    return str(denied.get("message", "")) if isinstance(denied, Mapping) else None


def step_id(step: int, id: str) -> str:
    """An id of a step's answer within that of the turn, where ids of several steps meet."""
    return f"{step}-{id}"


def call_mark(metadata: JSONObject | None, step: int, id: str) -> JSONObject:
    """The metadata of a call of a turn's own. id: as the model gave it."""
    return {**(metadata or {}), MARK: {**entry(metadata), "step": step, "id": id}}


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
