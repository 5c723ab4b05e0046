"""What each member did during a call, and what that adds up to over many: the one record that statistics, analytics
and telemetry read."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..protocol import Value, value
from .place import MODEL

if TYPE_CHECKING:
    from .outcome import Outcome

MemberStatus: TypeAlias = Literal["ok", "error", "answered", "observed", "not-reached"]


@value
class MemberRecord(Value):
    """One member in one call. self_seconds: its own time, without that of the members and the model further in.
    open_seconds: from when it was first entered until its result was there or its stream was last read: the lifetime
    of its stream, the caller's own time between reads included.

    calls: how often it was entered. status: "answered" if it answered instead of the model, "error" if an exception
    left it, "observed" if it only listens, "not-reached" if the call never came to it (a condition, or somebody
    further out answered).
    """

    id: str
    calls: int
    self_seconds: float
    open_seconds: float
    status: MemberStatus


@value
class CallRecord(Value):
    """One call: its members from the outside in, then the model. The model's time is mostly waiting."""

    members: tuple[MemberRecord, ...]
    model: MemberRecord


class Clocks:
    """The running figures of one call: inclusive time, first entry, last exit, entries and errors of each layer, the
    model last."""

    __slots__ = ("calls", "ended", "entered", "errors", "seconds")

    def __init__(self, layers: int) -> None:
        self.seconds = [0.0] * (layers + 1)
        self.entered = [0.0] * (layers + 1)
        self.ended = [0.0] * (layers + 1)
        self.calls = [0] * (layers + 1)
        self.errors = [0] * (layers + 1)

    def enter(self, index: int, takes_part: bool) -> float:
        """A call enters a layer. Returns the moment, for `leave`."""
        now = perf_counter()
        if not self.entered[index]:
            self.entered[index] = now
        self.calls[index] += takes_part
        return now

    def leave(self, index: int, entered: float) -> None:
        self.ended[index] = now = perf_counter()
        self.seconds[index] += now - entered

    def record(self, ids: Sequence[str], listening: Collection[str], answered_by: str | None) -> CallRecord:
        """Inclusive times become own times: each layer's less that of the next layer further in."""
        rows: list[MemberRecord] = []
        inner = 0.0
        for index in range(len(ids), -1, -1):
            id = ids[index] if index < len(ids) else MODEL
            spent = self.seconds[index] or inner  # a member without hooks has no clock: it passes all on
            own = max(0.0, spent - inner)  # calls that overlap further in add up to more than the wall
            status = self._status(index, id, listening, answered_by)
            lifetime = self.ended[index] - self.entered[index] if self.calls[index] else 0.0
            rows.append(MemberRecord(id, self.calls[index], own, lifetime, status))
            inner = spent
        model, *members = rows
        return CallRecord(tuple(reversed(members)), model)

    def _status(self, index: int, id: str, listening: Collection[str], answered_by: str | None) -> MemberStatus:
        if not self.calls[index]:
            return "observed" if id in listening else "not-reached"
        if self.errors[index]:
            return "error"
        return "answered" if answered_by == id != MODEL else "ok"


@dataclass
class MemberTotals:
    """One member over many calls. self_seconds: the sum of its own time."""

    id: str
    calls: int = 0
    errors: int = 0
    answered: int = 0
    self_seconds: float = 0.0

    def add(self, row: MemberRecord) -> None:
        self.calls += row.calls
        self.errors += row.status == "error"
        self.answered += row.status == "answered"
        self.self_seconds += row.self_seconds


@dataclass
class Totals:
    """All calls so far. by_status: calls by how they ended. seconds: the sum of their durations."""

    calls: int = 0
    by_status: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    parts: int = 0
    members: list[MemberTotals] = field(default_factory=list)


class Statistics:
    """Adds up the records of calls. Safe to share between threads and event loops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals = Totals()
        self._members: dict[str, MemberTotals] = {}

    def add(self, outcome: Outcome) -> None:
        with self._lock:
            totals = self._totals
            totals.calls += 1
            totals.by_status[outcome.status] = totals.by_status.get(outcome.status, 0) + 1
            totals.seconds += outcome.duration
            totals.parts += outcome.parts
            if outcome.record is not None:
                for row in (*outcome.record.members, outcome.record.model):
                    member = self._members.get(row.id)
                    if member is None:
                        member = self._members[row.id] = MemberTotals(row.id)
                    member.add(row)

    def totals(self) -> Totals:
        """A copy of the figures as they stand."""
        with self._lock:
            now = self._totals
            members = [
                MemberTotals(m.id, m.calls, m.errors, m.answered, m.self_seconds) for m in self._members.values()
            ]
            return Totals(now.calls, dict(now.by_status), now.seconds, now.parts, members)

    def clear(self) -> None:
        with self._lock:
            self._totals = Totals()
            self._members.clear()
