"""The tool loop: a turn of several steps over a model's own `do_generate` or `do_stream`, and the turn as a model.

How a tool is run is the business of `tools/`, what of a long conversation is kept that of `loop_guard/`.
"""

from ..structured import append_json_schema_instruction
from .generate import run_generate_loop
from .messages import messages_of
from .native import has_native_do_generate
from .prepare import PrepareStep, StepChanges, StepInfo
from .result import PendingApproval, StoppedBy, TurnRecord, TurnResult
from .settings import ContextGuard, TurnKeywords, TurnSettings
from .step import StepResult, StepToolCall, StepToolResult, to_prepare_step_record
from .stop import StopCondition, has_tool_call, step_count_is
from .stream import TurnStream, run_stream_loop
from .tool_choice import resolve_step_tool_choice, to_v3_tool_choice
from .turn_model import TurnModel

__all__ = [
    "ContextGuard",
    "PendingApproval",
    "PrepareStep",
    "StepChanges",
    "StepInfo",
    "StepResult",
    "StepToolCall",
    "StepToolResult",
    "StopCondition",
    "StoppedBy",
    "TurnKeywords",
    "TurnModel",
    "TurnRecord",
    "TurnResult",
    "TurnSettings",
    "TurnStream",
    "append_json_schema_instruction",
    "has_native_do_generate",
    "has_tool_call",
    "messages_of",
    "resolve_step_tool_choice",
    "run_generate_loop",
    "run_stream_loop",
    "step_count_is",
    "to_prepare_step_record",
    "to_v3_tool_choice",
]
