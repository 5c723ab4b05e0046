"""Typed judgements: one state, a map of questions, one calibrated answer each. The shape is the AI SDK's `decide`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

from .content import UnknownPart
from .context import DETACHED, CallContext
from .prompt import FilePart, TextPart
from .results import CallWarning, ResponseInfo, Usage
from .values import JSON, FrozenDict, JSONObject, Value, frozen_json, list_as_tuple, value


@value
class JsonPart(Value):
    """A piece of state that is data, not prose."""

    type: ClassVar[str] = "json"
    value: JSON
    extra: JSONObject | None = None


StatePart: TypeAlias = TextPart | FilePart | JsonPart | UnknownPart


@value
class BooleanQuestion(Value):
    """Is it so? Needs instructions, or a criterion for `true` or `false`."""

    type: ClassVar[str] = "boolean"
    instructions: str | None = None
    criteria: Mapping[str, str] | None = None
    extra: JSONObject | None = None


@value
class ChoiceQuestion(Value):
    """Which of these? `criteria` maps each option to its description, or to None."""

    type: ClassVar[str] = "choice"
    criteria: Mapping[str, str | None]
    instructions: str | None = None
    extra: JSONObject | None = None


@value
class ScoreQuestion(Value):
    """How much? `criteria` are the levels, lowest first."""

    type: ClassVar[str] = "score"
    criteria: tuple[str, ...]
    instructions: str | None = None
    extra: JSONObject | None = None


@value
class BoxQuestion(Value):
    """Where in the picture?"""

    type: ClassVar[str] = "box"
    instructions: str | None = None
    extra: JSONObject | None = None


Question: TypeAlias = BooleanQuestion | ChoiceQuestion | ScoreQuestion | BoxQuestion | UnknownPart


@value
class BooleanAnswer(Value):
    """`probability` is that of true, 0 to 1. It is no verdict: the caller sets the threshold."""

    type: ClassVar[str] = "boolean"
    probability: float
    extra: JSONObject | None = None


@value
class ChoiceAnswer(Value):
    type: ClassVar[str] = "choice"
    choice: str
    probabilities: Mapping[str, float] | None = None
    extra: JSONObject | None = None


@value
class ScoreAnswer(Value):
    """`score` is the 0-based level, possibly between two; `probabilities` is keyed "0", "1", ..."""

    type: ClassVar[str] = "score"
    score: float
    probabilities: Mapping[str, float] | None = None
    extra: JSONObject | None = None


@value
class BoxAnswer(Value):
    """Edges as fractions of the picture, 0 to 1, from the top left."""

    type: ClassVar[str] = "box"
    top: float
    left: float
    bottom: float
    right: float
    extra: JSONObject | None = None


@value
class RefusalAnswer(Value):
    type: ClassVar[str] = "refusal"
    extra: JSONObject | None = None


Answer: TypeAlias = BooleanAnswer | ChoiceAnswer | ScoreAnswer | BoxAnswer | RefusalAnswer | UnknownPart


@value
class DecideOptions(Value):
    """One decision call. `metadata` and `context` are as in `CallOptions`."""

    state: Sequence[StatePart]
    questions: Mapping[str, Question]
    max_output_tokens: int | None = None
    reasoning: str | None = None
    headers: Mapping[str, str | None] | None = None
    provider_options: Mapping[str, JSONObject] | None = None
    metadata: JSONObject | None = None
    extra: JSONObject | None = None
    context: CallContext = field(default=DETACHED, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.state.__class__ is not tuple:
            list_as_tuple(self, "state", " of parts: wrap a text as [TextPart(text)]")
        if self.metadata is not None and self.metadata.__class__ is not FrozenDict:
            object.__setattr__(self, "metadata", frozen_json(self.metadata))


@value
class Rounding(Value):
    """To how many decimals the model rounds, where it says so."""

    probability_decimals: int | None = None
    score_decimals: int | None = None
    extra: JSONObject | None = None


@value
class DecideResult(Value):
    """One answer per question, by its id."""

    answers: Mapping[str, Answer]
    usage: Usage = Usage()
    rounding: Rounding | None = None
    warnings: Sequence[CallWarning] = ()
    provider_metadata: JSONObject | None = None
    response: ResponseInfo | None = None
    extra: JSONObject | None = None

    def __post_init__(self) -> None:
        if self.warnings.__class__ is not tuple:
            list_as_tuple(self, "warnings")


@runtime_checkable
class DecisionModel(Protocol):
    """A model that answers typed questions and writes no text."""

    @property
    def provider(self) -> str: ...

    @property
    def model_id(self) -> str: ...

    async def do_decide(self, options: DecideOptions) -> DecideResult: ...
