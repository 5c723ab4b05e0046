"""Policies made of a function, and calls with their outcome. Answers and waiting come from the pipeline's builders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import anyio
from tests.pipeline.builders import ASKED, COST, STOP

from neurolink_mw.events import Decision, MemberFailed
from neurolink_mw.pipeline import Member, Outcome, Use, wrap_model
from neurolink_mw.protocol import (
    CallContext,
    CallOptions,
    Finish,
    FinishReason,
    GenerateResult,
    Kind,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamPart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    collect,
)
from neurolink_mw.roles import (
    Hold,
    Observer,
    RequestPolicy,
    ResponsePolicy,
    Streaming,
    TextTransform,
    Verdict,
    View,
    allow,
    deny,
)
from neurolink_mw.testing import ScriptedModel

CUT = Finish(FinishReason("length"), COST)
IN_A_TURN = ASKED.replace(context=CallContext().child(step=1))


class Policy(ResponsePolicy):
    """One policy for every check."""

    def __init__(self, check: Any = None, mode: Streaming = Hold(), id: str = "policy", **settings: object) -> None:  # noqa: B008
        super().__init__()
        self.id = id  # type: ignore[misc]
        self.check = check or bomb  # type: ignore[method-assign]
        self.streaming = mode
        for name, value in settings.items():
            setattr(self, name, value)


class Asks(RequestPolicy):
    """The same for requests."""

    def __init__(self, check: Any, id: str = "asks") -> None:
        super().__init__()
        self.id = id  # type: ignore[misc]
        self.check = check  # type: ignore[method-assign]


class Rewrites(TextTransform):
    """A transform made of a function."""

    def __init__(
        self, transform: Any, lookahead: int | None = None, applies_to: Sequence[str] = ("text",), id: str = "rewrites"
    ) -> None:
        super().__init__()
        self.id = id  # type: ignore[misc]
        self.transform = transform  # type: ignore[method-assign]
        self.lookahead = lookahead
        self.applies_to = applies_to


class Watch(Observer):
    """Keeps what it is told."""

    def __init__(self, id: str = "watch") -> None:
        super().__init__()
        self.id = id  # type: ignore[misc]
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


def bomb(view: View) -> Verdict:
    return deny("word", "No.") if "bomb" in view.text else allow()


def releasing(mode: Streaming, check: Any = None, **settings: Any) -> Policy:
    return Policy(check, mode, allow_partial_release=True, **settings)


def calls_no_bomb(view: View) -> Verdict:
    return bomb(view) if view.kind == "tool_call" else allow()


def fail(subject: object) -> Verdict:
    raise RuntimeError("broken")


async def hang(subject: object) -> Verdict:
    await anyio.sleep_forever()
    return allow()


# -- parts


def text(*pieces: str, id: str = "0") -> list[StreamPart]:
    return [TextStart(id), *(TextDelta(id, piece) for piece in pieces), TextEnd(id)]


def thought(*pieces: str, id: str = "r") -> list[StreamPart]:
    return [ReasoningStart(id), *(ReasoningDelta(id, piece) for piece in pieces), ReasoningEnd(id)]


def call(input: str, id: str = "c", **fields: Any) -> list[StreamPart]:
    """A call with its input in two pieces."""
    half = len(input) // 2
    by_provider = fields.get("provider_executed")
    pieces = [ToolInputDelta(id, piece) for piece in (input[:half], input[half:])]
    return [ToolInputStart(id, "run", by_provider), *pieces, ToolInputEnd(id), ToolCall(id, "run", input, **fields)]


def whole(*blocks: Iterable[StreamPart], finish: Finish | None = STOP) -> list[StreamPart]:
    """Blocks between a start and a finish."""
    return [StreamStart(), *(part for block in blocks for part in block), *([finish] if finish else [])]


def leaky(stream: list[StreamPart], word: str) -> bool:
    """Whether a word stands anywhere in what somebody got, also over the ends of parts."""
    return word in "".join(str(getattr(part, "delta", "")) for part in stream) or word in everything(stream)


def everything(value: object) -> str:
    """All texts within a value, however deep."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return " ".join(everything(one) for one in (*value.keys(), *value.values()))
    if isinstance(value, list | tuple):
        return " ".join(everything(one) for one in value)
    slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]
    return " ".join(everything(getattr(value, name)) for name in slots if name != "context" and hasattr(value, name))


# -- calls


async def gone(
    kind: Kind, members: Sequence[Member | Use], script: Any, options: CallOptions = ASKED
) -> tuple[GenerateResult, Outcome]:
    """One call to its end: the answer, added up where it was streamed, and its outcome."""
    watch = Watch()
    model = wrap_model(ScriptedModel([script]), [watch, *members])
    if kind == "generate":
        result = await model.do_generate(options)
    else:
        async with (await model.do_stream(options)).stream as stream:
            result = collect([part async for part in stream])
    return result, watch.only


async def streamed(
    members: Sequence[Member | Use], parts: Any, options: CallOptions = ASKED
) -> tuple[list[StreamPart], Outcome]:
    """The parts of one stream, and its outcome."""
    watch = Watch()
    model = wrap_model(ScriptedModel([parts]), [watch, *members])
    async with (await model.do_stream(options)).stream as stream:
        seen = [part async for part in stream]
    assert watch.parts == seen
    return seen, watch.only


class Pulled:
    """A model that notes how much of its stream had been read when each part arrived."""

    def __init__(self, parts: Sequence[StreamPart]) -> None:
        self.scripted = ScriptedModel([list(parts)])

    async def run(self, *members: Member | Use) -> list[tuple[StreamPart, int]]:
        """Each part that arrives, with the number of parts that had been read by then."""
        model = wrap_model(self.scripted, list(members))
        async with (await model.do_stream(ASKED)).stream as stream:
            return [(part, self.scripted.calls[0].read) async for part in stream]


def decisions(outcome: Outcome) -> list[Decision]:
    return [one for one in outcome.findings if isinstance(one, Decision)]


def failures(outcome: Outcome) -> list[MemberFailed]:
    return [one for one in outcome.findings if isinstance(one, MemberFailed)]


def codes(outcome: Outcome) -> list[tuple[str, str]]:
    return [(one.action, one.code) for one in decisions(outcome)]
