"""What became of a call: exactly one outcome for each, however it ended."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..events import Finding
from ..protocol import CallContext, FinishReason, JSONObject, Kind, Usage, Value, value

if TYPE_CHECKING:
    from .record import CallRecord

Status: TypeAlias = Literal["ok", "error", "denied", "cancelled", "abandoned"]


@value
class Outcome(Value):
    """The end of one wrapped call.

    status: "abandoned" means that the caller left a stream before its end. answered_by: "model", the id of the member
    that answered instead, or None where nobody did. attempts: calls of this scope's own model; model_calls: calls
    that reached a model at all, those of scopes further in included. usage: what was billed during this call, unset
    where a model did not say; answer_usage: what the answer claims (a cache hit claims tokens and bills none).
    parts: how many the caller was given; duration: seconds, for a stream from the call to its end. record: what each
    member did, where statistics are kept. error: what was raised, or what the last error part carried; for a denied
    call, the `PolicyDenied` with its code. findings: what policies denied, replaced or flagged, and which members
    failed by themselves, in the order in which it happened, scopes further in included.
    """

    kind: Kind
    status: Status
    answered_by: str | None
    attempts: int
    model_calls: int
    usage: Usage
    answer_usage: Usage | None
    finish_reason: FinishReason | None
    parts: int
    duration: float
    provider: str
    model_id: str
    error: BaseException | None = None
    findings: tuple[Finding, ...] = ()
    metadata: JSONObject | None = None
    record: CallRecord | None = None
    context: CallContext = field(default_factory=CallContext, compare=False)

    @property
    def request_id(self) -> str:
        """The id of the request, shared by its steps, attempts and helper calls."""
        return self.context.request_id

    def __repr__(self) -> str:
        by = f", answered_by={self.answered_by!r}" if self.answered_by else ""
        error = f", error={type(self.error).__name__}" if self.error is not None else ""
        return f"Outcome({self.kind}, {self.status}{by}, attempts={self.attempts}, duration={self.duration:.3f}{error})"
