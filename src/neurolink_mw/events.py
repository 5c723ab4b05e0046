"""What members of a pipeline tell: a frozen type for each kind of event.

A plugin hears them in `on_event`; a middleware tells them with `build.events(...)`. None holds a prompt, an answer or
the text of an error: ids, codes, names and figures only.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal, TypeAlias

from .protocol import Kind, Usage, Value, value

Action: TypeAlias = Literal["denied", "replaced", "flagged"]
Subject: TypeAlias = Literal["request", "text", "reasoning", "tool_call", "call"]
Handling: TypeAlias = Literal["raise", "deny", "skip"]


class Event(Value):
    """Base of all events. `request_id`: the request with all its steps, attempts and helper calls."""

    __slots__ = ()
    type: ClassVar[str]
    request_id: str

    def __repr__(self) -> str:
        """Everything: what an event says may be read by anybody. A type that holds content hides it itself."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]  # made by @value
        shown = (f"{f.name}={item!r}" for f in fields if (item := getattr(self, f.name)) is not None)
        return f"{type(self).__name__}({', '.join(shown)})"


@value
class Decision(Event):
    """A policy had something to say. `by`: its id; `subject`: what it judged, "call" where a middleware refused by
    itself. shadow: it would have; nothing was changed. released: some of what it judged had left already (a streaming
    mode that releases before the verdict). tool_call_id: of the call that was judged."""

    type: ClassVar[str] = "decision"
    request_id: str
    by: str | None
    action: Action
    code: str
    subject: Subject
    shadow: bool = False
    released: bool = False
    tool_call_id: str | None = None


@value
class MemberFailed(Event):
    """A member failed by itself: it raised, or took too long. error: the type's name. handling: what its place says
    to do then. tried: False where it was not asked, because it had failed too often of late."""

    type: ClassVar[str] = "member-failed"
    request_id: str
    by: str
    error: str
    handling: Handling
    shadow: bool = False
    tried: bool = True


@value
class CacheLookup(Event):
    """Somebody looked for an answer before asking the model. age: seconds since it was stored."""

    type: ClassVar[str] = "cache-lookup"
    request_id: str
    by: str
    hit: bool
    age: float | None = None


@value
class Retry(Event):
    """A call failed and will be tried again. attempt: the number of the one that failed, from 1; delay: seconds until
    the next; error: the type's name; status: HTTP's."""

    type: ClassVar[str] = "retry"
    request_id: str
    by: str
    attempt: int
    delay: float
    error: str
    status: int | None = None


@value
class Fallback(Event):
    """Another model takes over. failed, used: `provider:model-id`; error: the type's name."""

    type: ClassVar[str] = "fallback"
    request_id: str
    by: str
    failed: str
    used: str
    error: str


@value
class ToolExecuted(Event):
    """A tool call was answered. duration: seconds."""

    type: ClassVar[str] = "tool-executed"
    request_id: str
    tool_name: str
    tool_call_id: str
    status: Literal["ok", "error", "denied", "cancelled", "timeout"]
    duration: float
    step: int | None = None


@value
class StepEnded(Event):
    """One model call of a turn is over."""

    type: ClassVar[str] = "step-ended"
    request_id: str
    step: int
    finish_reason: str
    tool_calls: int
    usage: Usage


@value
class CallEnded(Event):
    """The outcome of a call, without what it carried. See `neurolink_mw.Outcome`; error: the type's name."""

    type: ClassVar[str] = "call-ended"
    request_id: str
    kind: Kind
    status: Literal["ok", "error", "denied", "cancelled", "abandoned"]
    provider: str
    model_id: str
    answered_by: str | None
    attempts: int
    model_calls: int
    usage: Usage
    duration: float
    finish_reason: str | None = None
    error: str | None = None
    step: int | None = None
    helper: bool = False


Finding: TypeAlias = Decision | MemberFailed
"""What an outcome keeps of what happened on the way."""
