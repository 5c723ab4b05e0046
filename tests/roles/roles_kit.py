"""Policies and answers that several tests share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from neurolink_mw.events import Decision, MemberFailed
from neurolink_mw.pipeline import Member, Outcome, Use, wrap_model
from neurolink_mw.protocol import (
    CallOptions,
    Finish,
    FinishReason,
    GenerateResult,
    LanguageModel,
    StreamPart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    collect,
)
from neurolink_mw.roles import Hold, Observer, ResponsePolicy, Streaming, Verdict, View, allow, deny
from neurolink_mw.testing import ScriptedModel, check_stream

from .answers import COST

ASKED = CallOptions.from_text("Hello")
STOP = Finish(FinishReason("stop"), COST)
WORD = "bomb"


def deltas(*pieces: str, id: str = "0") -> list[StreamPart]:
    return [TextStart(id), *(TextDelta(id, piece) for piece in pieces), TextEnd(id)]


def script(*pieces: str) -> list[StreamPart]:
    return [StreamStart(), *deltas(*pieces), STOP]


def text_of(parts: Sequence[StreamPart]) -> str:
    return collect(parts).text


def no_bombs(view: View) -> Verdict:
    return deny("forbidden", "Not that.") if WORD in view.text else allow()


class Policy(ResponsePolicy):
    """A policy made of a function."""

    def __init__(
        self,
        check: Callable[[View], Any] = no_bombs,
        streaming: Streaming | None = None,
        *,
        monotone: bool = False,
        partial: bool = True,
        sees: Sequence[str] = ("text", "reasoning", "tool_input"),
    ) -> None:
        super().__init__()
        self.check = check  # type: ignore[assignment,method-assign]
        self.streaming = Hold() if streaming is None else streaming
        self.monotone = monotone
        self.allow_partial_release = partial
        self.sees = sees


class Watch(Observer):
    """Keeps the outcomes and the parts that it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[Outcome] = []
        self.parts: list[StreamPart] = []

    def on_outcome(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def on_part(self, part: StreamPart) -> None:
        self.parts.append(part)

    @property
    def only(self) -> Outcome:
        (outcome,) = self.outcomes
        return outcome

    @property
    def decisions(self) -> list[tuple[str, str, str]]:
        return [(one.action, one.code, one.subject) for one in self.only.findings if isinstance(one, Decision)]

    @property
    def failures(self) -> list[tuple[str, str]]:
        return [(one.by, one.handling) for one in self.only.findings if isinstance(one, MemberFailed)]


def around(model: LanguageModel | Sequence[StreamPart] | GenerateResult | str, *members: Member | Use) -> LanguageModel:
    """Members around a model that says this again and again."""
    if isinstance(model, str | Sequence | GenerateResult):
        model = ScriptedModel([model], repeat=True)
    return wrap_model(model, members)


async def streamed(model: LanguageModel, options: CallOptions = ASKED) -> list[StreamPart]:
    async with (await model.do_stream(options)).stream as stream:
        parts = [part async for part in stream]
    check_stream(parts)
    return parts


async def generated(model: LanguageModel, options: CallOptions = ASKED) -> GenerateResult:
    return await model.do_generate(options)
