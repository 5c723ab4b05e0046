"""A turn of the command: the pipeline around each step, tools between them, and what it came to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..loop import TurnKeywords, TurnRecord, run_generate_loop, run_stream_loop
from ..protocol import CallOptions, GenerateResult, LanguageModel, StreamResult, ToolCall, to_json
from ..tools import Approval, Tool, deny
from .exits import DENIED, OK
from .output import counted, describe_duration, describe_usage, notes
from .shown import Shown


async def take_turn(
    model: LanguageModel,
    options: CallOptions,
    tools: Sequence[Tool],
    max_steps: int | None,
    shown: Shown,
    *,
    stream: bool,
) -> int:
    """Run a turn, shown as it goes. Returns the exit code, or raises what failed."""
    settings: TurnKeywords = {"approve": _nobody_there}
    if max_steps is not None:
        settings["max_steps"] = max_steps
    steps = _Steps(model, shown)
    if stream:
        turn = await run_stream_loop(steps, options, tools=tools, record=shown.record, **settings)
        return await shown.stream(turn.stream)
    result = await run_generate_loop(steps, options, tools=tools, record=shown.record, **settings)
    shown.content(result.shown)
    return OK


def print_turn(record: TurnRecord, seconds: float) -> None:
    """What all steps together did and cost."""
    result = record.result
    for message in dict.fromkeys(one.message for one in (result.warnings if result else ()) if one.message):
        notes().print(f"warning: {message}", markup=False)
    failed = sum(one.status != "ok" for one in record.tool_executions)
    calls = counted(len(record.tool_executions), "tool call") + (f" ({failed} not ok)" if failed else "")
    end = ""
    if result is None:
        end = ", not finished"
    elif result.stopped_by == "step-limit":
        end = ", stopped at the limit of steps"
    done = f"{counted(len(record.steps), 'step')}, {calls} in {describe_duration(seconds)}{end}"
    notes().print(f"whole turn: {done}; {describe_usage(record.usage)}", markup=False)


def turn_as_json(record: TurnRecord, code: int) -> dict[str, object]:
    """The result of a turn; of one that failed, what had been done. code: its exit code."""
    if record.result is not None:
        data = to_json(record.result)
        assert isinstance(data, dict)
        return {"type": "result", **{key: value for key, value in data.items() if key != "shown"}}
    return {
        "type": "result",
        "stoppedBy": "denied" if code == DENIED else "error",
        "usage": to_json(record.usage),
        "steps": to_json(record.steps),
        "toolExecutions": to_json(record.tool_executions),
        "messages": to_json(record.messages),
    }


class _Steps:
    """The pipeline's model, which shows each step. All else of it is the model's own: above all its chain, where a
    turn finds what stands around tools. A chain further out would take the pipeline's denials for its own."""

    def __init__(self, model: LanguageModel, shown: Shown) -> None:
        self.provider, self.model_id = model.provider, model.model_id
        self._model = model
        self._shown = shown

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        with self._shown.step(options.context.step or 0, f"{self.provider}:{self.model_id}"):
            answer = await self._model.do_generate(options)
        self._shown.calls(answer.tool_calls)
        return answer

    async def do_stream(self, options: CallOptions) -> StreamResult:
        with self._shown.step(options.context.step or 0, f"{self.provider}:{self.model_id}"):
            return await self._model.do_stream(options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def _nobody_there(call: ToolCall) -> Approval:
    return deny("Nobody is there to approve it.")
