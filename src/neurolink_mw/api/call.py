"""One call of the front door, before it is generated or streamed: arguments checked, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from ..errors import ConfigError
from ..loop import TurnRecord, TurnResult
from ..loop.recorded import RecordedTurn, Runs, run_that_counts, with_runs
from ..loop.settings import TurnKeywords, TurnSettings, turn_settings
from ..pipeline import wrap_model
from ..pipeline.wording import did_you_mean
from ..protocol import CallOptions, GenerateResult, JSONObject, LanguageModel
from ..tools import Tool
from .output import Output
from .prompt import CALL_KEYWORDS, CallKeywords, MessageLike, Prompt, call_options
from .result import Generated, as_generated, as_generated_around
from .steps import CHAINS, Members, Steps, require_members

T = TypeVar("T")


class Keywords(CallKeywords, TurnKeywords, total=False):
    """The settings of a turn, see `TurnSettings`, and fields of `CallOptions`."""


_TURN_KEYWORDS = frozenset(TurnKeywords.__annotations__)


class Call(Generic[T]):
    """What a caller asked for. options: of the turn; record: what to fill in as it goes, where the caller gave one."""

    def __init__(
        self,
        prompt: Prompt | None,
        *,
        system: str | None,
        messages: Sequence[MessageLike],
        tools: Sequence[Tool],
        output: Any,
        turn_middlewares: Members,
        metadata: JSONObject | None,
        record: TurnRecord | None,
        given: Mapping[str, Any],
    ) -> None:
        for name in given:
            if name not in CALL_KEYWORDS and name not in _TURN_KEYWORDS:
                known = sorted(CALL_KEYWORDS | _TURN_KEYWORDS)
                raise TypeError(f"there is no argument {name!r}{did_you_mean(name, known)}")
        options = call_options(prompt, system=system, messages=messages, metadata=metadata, given=given)
        self._settings = turn_settings(tools, {name: given[name] for name in given if name in _TURN_KEYWORDS})
        require_members("turn_middlewares", turn_middlewares)
        if turn_middlewares and record is not None:
            raise ConfigError(
                "record= and turn_middlewares= do not go together: what stands around the turn may take out what the "
                "record holds"
            )
        self.record = record
        self._turn_middlewares = turn_middlewares
        self._output: Output[T] | None = None
        if output is not None:
            if options.response_format is not None:
                raise ConfigError("the prompt's options have a response_format: leave it out, or leave out output=")
            self._output = Output(output)
            options = options.replace(response_format=self._output.format)
        self._runs: Runs | None = None
        self.options: CallOptions = options

    def settings_for(self, steps: Steps) -> TurnSettings:
        """How the turn runs with these steps."""
        settings = self._settings
        return settings if settings.prepare_step is None else replace(settings, around_model=steps.around)

    def around_turn(self, steps: Steps) -> tuple[LanguageModel, CallOptions] | None:
        """The turn as a model with the caller's middlewares around it, and what to ask it; None where there are
        none."""
        if not self._turn_middlewares:
            return None
        if steps.lasting:
            model = CHAINS.around(steps.model, self._turn_middlewares, RecordedTurn)
        else:
            model = wrap_model(RecordedTurn(steps.model), self._turn_middlewares)
        self._runs = Runs(self.settings_for(steps))
        return model, with_runs(self.options, model, self._runs)

    def generated(self, turn: TurnResult) -> Generated[T]:
        """What the caller gets of a turn with nothing around it."""
        return as_generated(turn, self._output)

    def generated_around(self, answer: GenerateResult) -> Generated[T]:
        """What the caller gets of what left the middlewares around the turn. They may have had the turn run more than
        once: the run that the answer comes from counts, else the last that came to its end."""
        records = [] if self._runs is None else self._runs.records
        last = records[-1] if records else TurnRecord()
        record = run_that_counts(answer.provider_metadata, records) or last
        return as_generated_around(answer, record, self.options.prompt, self._output)
