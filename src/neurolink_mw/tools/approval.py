"""Whether a call that needs approval may run: a person or a program says so, at once or in the next request.

Where nobody can say so at once, the turn ends with a `ToolApprovalRequest` for the call. The caller answers in the
next prompt with a `ToolApprovalResponsePart`, and the call runs, or is answered with "denied", before the model is
asked again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from ..protocol import ToolCall

_PREFIX = "approval-"

Decision: TypeAlias = Literal["approve", "deny", "ask"]


@dataclass(frozen=True, slots=True)
class Approval:
    """decision: "approve" runs the call, "deny" answers it with the reason, "ask" leaves it to the caller."""

    decision: Decision
    reason: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.decision not in get_args(Decision):
            raise ValueError("Approval.decision is 'approve', 'deny' or 'ask'")


Approve: TypeAlias = Callable[[ToolCall], "Approval | Awaitable[Approval]"]
"""Decides on a call that needs approval."""


def approve() -> Approval:
    """The call may run."""
    return Approval("approve")


def deny(reason: str | None = None) -> Approval:
    """The call does not run. The model reads the reason."""
    return Approval("deny", reason)


def ask() -> Approval:
    """The turn ends, and the caller is asked."""
    return Approval("ask")


def approval_id(tool_call_id: str) -> str:
    """The id under which a call is asked for. Anybody can tell the call from it, so that an approval can be given in
    another process, with nothing kept."""
    return _PREFIX + tool_call_id


def approved_call_id(approval_id: str) -> str | None:
    """The call that an approval is for; None for one that a provider asked for itself."""
    return approval_id.removeprefix(_PREFIX) if approval_id.startswith(_PREFIX) else None
