"""Turns in a chain that is built once, with what stands around them: how each runs, and the records of its runs, come
with the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ..errors import ConfigError
from ..pipeline import WrappedModel
from ..pipeline.marks import entry
from ..protocol import DETACHED, CallContext, CallOptions, FinishReason, JSONObject, LanguageModel, Slot, with_context
from .result import TurnRecord
from .settings import TurnSettings
from .turn_model import TurnModel

Runs: TypeAlias = dict[LanguageModel, tuple[TurnSettings, list[TurnRecord]]]

_RUNS: Slot[Runs | None] = Slot("neurolink_mw.runs", None)


class RecordedTurn(TurnModel):
    """A turn whose settings and records come with the options, see `with_runs`. Middlewares around it may have it run
    more than once in a call, or not at all."""

    def _setup(self, options: CallOptions) -> tuple[TurnSettings, TurnRecord | None]:
        runs = options.context.get(_RUNS)
        if runs is None or self not in runs:
            raise ConfigError(
                "a middleware around the turn asked it with options that it made from scratch, which say nothing of "
                "tools and settings: use options.replace(...)"
            )
        settings, records = runs[self]
        records.append(record := TurnRecord(run=len(records) + 1))
        return settings, record


def with_runs(
    options: CallOptions, chain: LanguageModel, settings: TurnSettings, records: list[TurnRecord]
) -> CallOptions:
    """The options of a call of a chain around a `RecordedTurn`. records: gets one for each run."""
    context = CallContext() if options.context is DETACHED else options.context
    turn = chain
    while isinstance(turn, WrappedModel):
        turn = turn.chain.model
    known = context.get(_RUNS)
    context.set(_RUNS, {**({} if known is None else known), turn: (settings, records)})
    return with_context(options, context)


def is_refusal(metadata: JSONObject | None, reason: FinishReason) -> bool:
    """Whether an answer with this metadata and reason is a policy's refusal."""
    return "denied" in entry(metadata) and reason.unified == "content-filter"


def run_that_counts(metadata: JSONObject | None, records: Sequence[TurnRecord]) -> TurnRecord | None:
    """Of the runs of a call the one that its answer comes from, by the mark in its metadata; else the last that came to
    its end. None where none did."""
    mark = entry(metadata).get("turn")
    number = mark.get("run") if isinstance(mark, dict) else None
    ended = [record for record in records if record.result is not None]
    return next((record for record in ended if record.run == number), ended[-1] if ended else None)
