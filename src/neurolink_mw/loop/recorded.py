"""Turns in a chain that is built once, with what stands around them: how each runs, and the records of its runs, come
with the call."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ..errors import ConfigError
from ..pipeline import WrappedModel
from ..pipeline.enclosing import enclosing_scopes, output_is_judged
from ..pipeline.marks import entry
from ..pipeline.scope import Scope
from ..protocol import (
    DETACHED,
    CallContext,
    CallOptions,
    FinishReason,
    FunctionTool,
    JSONObject,
    LanguageModel,
    Slot,
    with_context,
)
from .asking import declared
from .result import TurnRecord
from .settings import TurnSettings
from .turn_model import TurnModel


@dataclass(eq=False)
class RunRecord(TurnRecord):
    """The record of one run of a turn in a call. is_judged: somebody around it may yet deny or change what it says."""

    is_judged: bool = False
    _scope: Scope | None = field(default=None, repr=False)
    _denials: int = 0

    def begin_in(self, context: CallContext) -> None:
        """The run starts in this context."""
        self._scope = next(enclosing_scopes(context), None)
        self._denials = 0 if self._scope is None else self._scope.denials
        self.is_judged = output_is_judged(context)

    @property
    def is_denied(self) -> bool:
        """Whether a policy around it has refused the call since it began, even where somebody caught that."""
        return self._scope is not None and self._scope.denials > self._denials


@dataclass(eq=False)
class Runs:
    """The runs of a turn in one call. id: of the call, so that an answer of another one is not taken for one of it."""

    settings: TurnSettings
    records: list[RunRecord] = field(default_factory=list)
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])


_RUNS: Slot[Mapping[LanguageModel, Runs]] = Slot("neurolink_mw.runs", {})


class RecordedTurn(TurnModel):
    """A turn whose settings and records come with the options, see `with_runs`. Middlewares around it may have it run
    more than once in a call, or not at all."""

    def _setup(self, options: CallOptions) -> tuple[TurnSettings, TurnRecord | None]:
        runs = options.context.inherited(_RUNS).get(self)
        if runs is None:
            raise ConfigError(
                "a middleware around the turn asked it with options that it made from scratch, which say nothing of "
                "tools and settings: use options.replace(...)"
            )
        record = RunRecord(run=f"{runs.id}-{len(runs.records) + 1}")
        record.begin_in(options.context)
        runs.records.append(record)
        # The options have them all, see `with_runs`: one that they lack was taken out by a middleware.
        named = {tool.name for tool in options.tools or () if isinstance(tool, FunctionTool)}
        kept = tuple(tool for tool in runs.settings.tools if tool.name in named)
        return replace(runs.settings, tools=kept), record


def with_runs(options: CallOptions, chain: LanguageModel, runs: Runs) -> CallOptions:
    """The options of a call of a chain around a `RecordedTurn`. runs: gets a record of each run.

    They name the turn's tools, so that middlewares see them, and may describe them otherwise or take them out.
    Calls of one request may run beside each other, or within each other: each sees its own.
    """
    context = CallContext() if options.context is DETACHED else options.context
    known = context.inherited(_RUNS)
    turn = chain
    while isinstance(turn, WrappedModel):
        turn = turn.chain.model
    options = options.replace(tools=declared(runs.settings, options) or None)
    return with_context(options, context.with_inherited(_RUNS, {**known, turn: runs}))


def is_refusal(metadata: JSONObject | None, reason: FinishReason) -> bool:
    """Whether an answer with this metadata and reason is a policy's refusal."""
    return "denied" in entry(metadata) and reason.unified == "content-filter"


R = TypeVar("R", bound=TurnRecord)


def run_that_counts(metadata: JSONObject | None, records: Sequence[R]) -> R | None:
    """Of the runs of a call the one that its answer comes from, by the mark in its metadata; else the last that came to
    its end. None where none did."""
    mark = entry(metadata).get("turn")
    run = mark.get("run") if isinstance(mark, dict) else None
    ended = [record for record in records if record.result is not None]
    return next((record for record in ended if record.run == run), ended[-1] if ended else None)
