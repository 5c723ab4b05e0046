"""Tools: what a model may call, and how a call is answered: checked, approved, run, bounded, always with one result.

When tools are called, and what becomes of the conversation, is the business of `loop/`.
"""

from .answering import Answering, Around
from .approval import Approval, Approve, approval_id, approve, approved_call_id, ask, deny
from .breaker import Breaker
from .execution import ToolExecution
from .executor import ToolExecutor
from .function import tool
from .input import parsed_or_text
from .settings import ToolSettings
from .tool import Tool, ToolContext, ToolError

__all__ = [
    "Answering",
    "Approval",
    "Approve",
    "Around",
    "Breaker",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolExecution",
    "ToolExecutor",
    "ToolSettings",
    "approval_id",
    "approve",
    "approved_call_id",
    "ask",
    "deny",
    "parsed_or_text",
    "tool",
]
