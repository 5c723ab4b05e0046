"""The guard of one turn, for any shape of message: what it remembers from step to step, and how a plan is applied."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ..protocol import ModelLimits, available_input_tokens
from .planner import (
    EntryKind,
    LoopGuardEntry,
    LoopGuardPlan,
    LoopGuardPolicy,
    batches_of,
    calibration_of,
    plan_loop_guard_reclaim,
)

_log = logging.getLogger(__name__)

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Piece:
    """What is one entry to the planner: a message, or a part of one that can go by itself. calls, results: the ids of
    what it asks and answers. bound: whether it belongs together with something that ids do not tell."""

    kind: EntryKind
    tokens: int
    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    bound: bool = False


class Shape(Protocol[M]):
    """How messages of one shape are read and rewritten. Messages that were given are never changed."""

    def head(self, messages: Sequence[M]) -> int:
        """How many of the first messages are the task."""
        ...

    def size(self, message: M) -> int:
        """What changes when somebody adds to a message that was read before."""
        ...

    def pieces(self, message: M) -> tuple[Piece, ...]:
        """The entries of a message; at most one of them holds results, and it comes first."""
        ...

    def preview(self, message: M) -> M:
        """The message with shorter results; itself where they are short."""
        ...

    def rest(self, message: M) -> M:
        """A message of several pieces without its results."""
        ...

    def join(self, runs: Sequence[Sequence[M]]) -> Sequence[M]:
        """One history of runs of messages between which something is gone."""
        ...


@dataclass(frozen=True, slots=True)
class Reclaimed(Generic[M]):
    """The history to send, and the plan that it comes from. Where the plan does not fire it is the same object."""

    messages: Sequence[M]
    plan: LoopGuardPlan


class _Known(Generic[M]):
    """What was found out about a message. It holds the message, so that no other can get its identity."""

    __slots__ = ("message", "pieces", "preview", "size", "tokens")

    def __init__(self, message: M, size: int, pieces: tuple[Piece, ...]) -> None:
        self.message = message
        self.size = size
        self.pieces = pieces
        self.tokens = sum(piece.tokens for piece in pieces)
        self.preview: _Known[M] | None = None


class TurnGuard(Generic[M]):
    """Keeps one turn's history within the window.

    Before each step `reclaim(messages, overhead)`; after it `observed(usage.input_tokens.total)`. A message is looked
    at once, by identity, so a step costs what is new in it: give the same message objects again, and do not change
    what is within them.

    policy: as it stands; `calibration` follows what was observed, and an overflow may lower what is available.
    """

    def __init__(self, policy: LoopGuardPolicy, shape: Shape[M]) -> None:
        self.policy = policy
        self._shape = shape
        self._known: dict[int, _Known[M]] = {}
        self._sent = 0  # the estimate of the request that was sent last
        self._warned = False

    def reclaim(self, messages: Sequence[M], fixed_overhead_tokens: int = 0) -> Reclaimed[M]:
        """The history for the next step. Logs a warning, once, when it is over the threshold and cannot be helped.

        fixed_overhead_tokens: what goes along with this request besides its messages, on top of the policy's own.
        """
        return self._reclaim(messages, self._with(fixed_overhead_tokens))

    def observed(self, prompt_tokens: float | None) -> None:
        """What the provider counted for the request that was made of the last reclaim, cached tokens included. What
        is no positive number says nothing."""
        self._calibrate(prompt_tokens, self._sent)

    def reclaim_after_overflow(
        self,
        messages: Sequence[M],
        fixed_overhead_tokens: int = 0,
        *,
        prompt_tokens: int | None = None,
        limit_tokens: int | None = None,
    ) -> Reclaimed[M] | None:
        """A history that is smaller than one which the provider refused as too long; None if nothing can be reclaimed.

        prompt_tokens, limit_tokens: what the provider said it counted and takes, where it did. Without a count the
        estimate is taken to have been too low, so that the request was over the budget. Either way the request that
        was refused becomes the most that is ever tried again in this turn. Results in the protected tail are previewed
        too where nothing else helps: one great result there is the usual cause, and the turn would end otherwise.
        """
        estimate = self._with(fixed_overhead_tokens).fixed_overhead_tokens + self._tokens(messages)
        available = self.policy.available_input_tokens
        if limit_tokens is not None and 0 < limit_tokens < available:
            available = available_input_tokens(ModelLimits(limit_tokens))
        if not self._calibrate(prompt_tokens, estimate) and estimate > 0:
            calibration = max(self.policy.calibration, calibration_of(available / estimate))
            self.policy = self.policy.replace(calibration=calibration)
        refused = math.floor(estimate * self.policy.calibration)
        self.policy = self.policy.replace(available_input_tokens=min(available, refused))
        reclaimed = self._reclaim(messages, self._with(fixed_overhead_tokens).replace(tail_relief=True))
        return reclaimed if reclaimed.plan.fire else None

    def _with(self, overhead: int) -> LoopGuardPolicy:
        return self.policy.replace(fixed_overhead_tokens=self.policy.fixed_overhead_tokens + overhead)

    def _calibrate(self, observed: float | None, estimate: int) -> bool:
        """Whether what was observed says something."""
        if observed is None or not math.isfinite(observed) or observed <= 0 or estimate <= 0:
            return False
        self.policy = self.policy.replace(calibration=calibration_of(observed / estimate))
        return True

    def _reclaim(self, messages: Sequence[M], policy: LoopGuardPolicy) -> Reclaimed[M]:
        whole = LoopGuardEntry("other", self._tokens(messages))
        plan = plan_loop_guard_reclaim([whole], policy)
        if plan.is_over_threshold:  # only then previews are made and pairs are looked at
            head = self._shape.head(messages)
            plan = plan_loop_guard_reclaim(self._entries(messages, head), policy)
            if plan.fire:
                messages = self._applied(messages, head, plan)
        self._sent = plan.projected_tokens
        self._warn(plan)
        return Reclaimed(messages, plan)

    def _warn(self, plan: LoopGuardPlan) -> None:
        helpless = plan.projected_tokens > plan.threshold_tokens
        if helpless and not self._warned:
            _log.warning(
                "the context of a tool loop cannot be reclaimed further: about %s tokens, of %s that are available "
                "(estimated; %s before)",
                plan.projected_tokens,
                plan.budget_tokens,
                plan.total_tokens,
            )
        self._warned = helpless

    def _tokens(self, messages: Sequence[M]) -> int:
        """The estimate of all messages. What is known of messages that are gone is forgotten."""
        known: dict[int, _Known[M]] = {}
        before, size_of, total = self._known, self._shape.size, 0
        for message in messages:  # without a call for each: a long turn spends most of a step here
            one, size = before.get(id(message)), size_of(message)
            if one is None or one.size != size:
                one = _Known(message, size, self._shape.pieces(message))
            known[id(message)] = one
            total += one.tokens
        self._known = known
        return total

    def _look(self, message: M) -> _Known[M]:
        known, size = self._known.get(id(message)), self._shape.size(message)
        if known is None or known.size != size:
            known = _Known(message, size, self._shape.pieces(message))
        return known

    def _preview(self, message: M) -> _Known[M]:
        known = self._known[id(message)]
        if known.preview is None:
            shorter = self._shape.preview(message)
            known.preview = known if shorter is message else self._look(shorter)
            self._known[id(shorter)] = known.preview
        return known.preview

    def _entries(self, messages: Sequence[M], head: int) -> list[LoopGuardEntry]:
        """The head as entry 0, then the pieces of the other messages."""
        task = sum(self._known[id(message)].tokens for message in messages[:head])
        pieces = [Piece("other", task)]
        entries = [LoopGuardEntry("other", task)]
        for message in messages[head:]:
            for piece in self._known[id(message)].pieces:
                shorter = self._preview(message).pieces[0].tokens if piece.kind == "tool_result" else None
                pieces.append(piece)
                entries.append(LoopGuardEntry(piece.kind, piece.tokens, shorter))
        for first, end in list(batches_of(entries)):
            if not _is_closed(pieces[first:end]):
                for index in range(first, end):
                    if entries[index].kind == "tool_call":
                        entries[index] = entries[index].replace(kind="other")
        return entries

    def _applied(self, messages: Sequence[M], head: int, plan: LoopGuardPlan) -> Sequence[M]:
        drop, shorten = set(plan.drop), {*plan.truncate, *plan.relief}
        runs: list[list[M]] = [list(messages[:head])]
        entry = 1
        for message in messages[head:]:
            pieces = len(self._known[id(message)].pieces)
            first = entry  # only a message's first piece holds calls or results
            entry += pieces
            if first in drop:
                runs.append([self._shape.rest(message)] if pieces > 1 else [])
            elif first in shorten:
                runs[-1].append(self._preview(message).message)
            else:
                runs[-1].append(message)
        return self._shape.join([run for run in runs if run])


def _is_closed(batch: Sequence[Piece]) -> bool:
    """Whether every call of a batch is answered in it exactly once, and nothing else is."""
    calls = [id for piece in batch for id in piece.calls]
    results = [id for piece in batch for id in piece.results]
    return len(set(calls)) == len(calls) and sorted(calls) == sorted(results) and not any(one.bound for one in batch)
