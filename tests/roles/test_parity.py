"""One verdict, whatever the road an answer came by, and under `Hold` the same bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.errors import ServerError
from neurolink_mw.events import Decision
from neurolink_mw.middlewares.simulate_streaming import SimulateStreaming
from neurolink_mw.pipeline import Member, Middleware, Outcome, Stage, Use, wrap_model
from neurolink_mw.protocol import CallOptions, GenerateResult, LanguageModel, StreamPart, StreamResult, collect, primed
from neurolink_mw.roles import (
    Hold,
    Observer,
    Pass,
    ResponsePolicy,
    Streaming,
    TextTransform,
    Verdict,
    View,
    Window,
    allow,
    deny,
    flag,
    replace,
)
from neurolink_mw.testing import ScriptedModel, check_stream

from .answers import answers, cut_again, examples

ASKED = CallOptions.from_text("Hello")


# ------------------------------------------------------------------------------------------------------------ checks


def holds_a_word(view: View) -> Verdict:
    return deny("word", "No.") if re.search(r"\bbom\b", view.text) else allow()


def is_odd(view: View) -> Verdict:
    """What no look at a beginning can tell."""
    return deny("odd", "No.") if len(view.text) % 2 else allow()


def rewrites(view: View) -> Verdict:
    return replace(view.text.replace("bom", "***")) if "bom" in view.text else allow()


def denies_reasoning_flags_text(view: View) -> Verdict:
    if view.kind == "reasoning" and "mm" in view.text:
        return deny("thought", "No.")
    return flag("spaces") if view.kind == "text" and "  " in view.text else allow()


def reads_json(view: View) -> Verdict:
    if view.tool_call is not None:
        return deny("query", "No.") if "b" in json.loads(view.text)["q"] else allow()
    return allow()


def holds_three_letters(view: View) -> Verdict:
    """What stays true of every longer text."""
    return deny("letters", "No.") if view.kind != "tool_call" and "bom" in view.text else allow()


CHECKS = [holds_a_word, is_odd, rewrites, denies_reasoning_flags_text, reads_json]
MODES: list[Streaming] = [Hold(), Window(3), Window(5, stride=2), Pass()]


class Policy(ResponsePolicy):
    allow_partial_release = True

    def __init__(self, check: Any, mode: Streaming) -> None:
        super().__init__()
        self.check = check  # type: ignore[method-assign]  # one policy for all checks
        self.streaming = mode


class Watch(Observer):
    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[Outcome] = []

    def on_outcome(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)


# ------------------------------------------------------------------------------------------------------------- roads


class Answers(Middleware):
    """A cache hit, or any short circuit: answers by itself."""

    stage = Stage.CACHE
    may_answer = True

    def __init__(self, answer: GenerateResult) -> None:
        super().__init__()
        self.answer = answer

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return self.answer

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return StreamResult.of(self.answer)


class FallsBack(Middleware):
    """Another model answers where the first fails."""

    stage = Stage.FALLBACK

    def __init__(self, other: LanguageModel) -> None:
        super().__init__()
        self.other = other

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        try:
            return await model.do_generate(options)
        except ServerError:
            return await self.other.do_generate(options)

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        try:
            return await primed(await model.do_stream(options))
        except ServerError:
            return await self.other.do_stream(options)


def roads(
    parts: list[StreamPart], other_cut: list[StreamPart]
) -> list[tuple[str, str, Sequence[Member], LanguageModel]]:
    """Name, kind of call, members further in, model."""
    whole = collect(parts)
    down, broken = ServerError("down"), [parts[0], ServerError("cut")]
    return [
        ("generated", "generate", [], ScriptedModel([whole])),
        ("streamed", "stream", [], ScriptedModel([parts])),
        ("cut otherwise", "stream", [], ScriptedModel([other_cut])),
        ("replayed", "stream", [], ScriptedModel([whole])),
        ("cached, generated", "generate", [Answers(whole)], ScriptedModel([])),
        ("cached, streamed", "stream", [Answers(whole)], ScriptedModel([])),
        ("fallen back, generated", "generate", [FallsBack(ScriptedModel([whole]))], ScriptedModel([down])),
        ("fallen back, streamed", "stream", [FallsBack(ScriptedModel([other_cut]))], ScriptedModel([broken])),
        ("simulated", "stream", [SimulateStreaming()], ScriptedModel([whole])),
    ]


async def gone(kind: str, member: Member, inner: Sequence[Member], model: LanguageModel) -> tuple[Any, GenerateResult]:
    """What was decided, and what the caller got."""
    watch = Watch()
    wrapped = wrap_model(model, [watch, member, *inner])
    if kind == "generate":
        got = await wrapped.do_generate(ASKED)
    else:
        async with (await wrapped.do_stream(ASKED)).stream as stream:
            seen = [part async for part in stream]
        check_stream(seen)
        got = collect(seen)
    (outcome,) = watch.outcomes
    decided = sorted(
        (one.action, one.code, one.subject, one.tool_call_id or "")
        for one in outcome.findings
        if isinstance(one, Decision)
    )
    return (outcome.status, decided, got.finish_reason), got


def said(result: GenerateResult) -> GenerateResult:
    """What the caller was told, without what the road adds."""
    return GenerateResult(result.content, result.finish_reason)


# ------------------------------------------------------------------------------------------------------------- parity


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_verdict_is_the_same_on_every_road(check: Any) -> None:
    @examples(200)
    @given(answers(), st.data())
    def holds(parts: list[StreamPart], data: st.DataObject) -> None:
        other_cut = data.draw(st.composite(cut_again)(parts))

        async def compare() -> None:
            expected: Any = None
            for mode in MODES if check is not rewrites else MODES[:1]:
                for name, kind, inner, model in roads(parts, other_cut):
                    decided, got = await gone(kind, Policy(check, mode), inner, model)
                    expected = expected or (decided, said(got))
                    assert decided == expected[0], (name, mode)
                    if isinstance(mode, Hold):
                        assert said(got) == expected[1], name

        anyio.run(compare)

    holds()


@examples(200)
@given(answers(), st.data())
def test_denying_at_the_first_look_changes_when_and_not_what(parts: list[StreamPart], data: st.DataObject) -> None:
    other_cut = data.draw(st.composite(cut_again)(parts))

    async def compare() -> None:
        expected: Any = None
        for mode in MODES:
            for name, kind, inner, model in roads(parts, other_cut):
                policy = Policy(holds_three_letters, mode)
                policy.monotone = True
                (status, decided, reason), _ = await gone(kind, policy, inner, model)
                expected = expected or (status, decided, reason)
                assert (status, decided, reason) == expected, (name, mode)

    anyio.run(compare)


class Keeps(Answers):
    """A cache: what it was given once it gives again, also to the other kind of call."""

    def __init__(self) -> None:
        Middleware.__init__(self)
        self.kept: GenerateResult | None = None

    def keep(self, answer: GenerateResult) -> None:
        self.kept = answer

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        if self.kept is None:
            self.keep(await model.do_generate(options))
        assert self.kept is not None
        return self.kept

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        if self.kept is not None:
            return StreamResult.of(self.kept)
        return (await model.do_stream(options)).collected(self.keep)


KINDS = ["generate", "stream"]


@pytest.mark.parametrize("check", [holds_a_word, rewrites, reads_json], ids=lambda check: check.__name__)
def test_a_cache_on_either_side_changes_nothing(check: Any) -> None:
    """Inside it keeps what the model said, which is judged at each hit; outside, what the policy made of it."""

    @examples(50)
    @given(answers(), st.sampled_from(KINDS), st.sampled_from(KINDS), st.booleans())
    def holds(parts: list[StreamPart], first: str, second: str, inside: bool) -> None:
        async def compare() -> None:
            policy, cache = Policy(check, Hold()), Keeps()
            members = [policy, cache] if inside else [cache, policy]
            model = wrap_model(ScriptedModel([parts], repeat=True), _in_this_order(members), lint="off")
            got = []
            for kind in (first, second):
                if kind == "generate":
                    got.append(said(await model.do_generate(ASKED)))
                else:
                    async with (await model.do_stream(ASKED)).stream as stream:
                        got.append(said(collect([part async for part in stream])))
            assert got[0] == got[1]

        anyio.run(compare)

    holds()


def _in_this_order(members: Sequence[Member]) -> list[Use]:
    return [Use(member, priority=100) for member in members]


class Stars(TextTransform):
    lookahead = 6
    applies_to = ("text", "reasoning", "tool_input")

    def transform(self, text: str) -> str:
        return re.sub(r"\bbom\b", "***", text)


class StarsSlowly(TextTransform):
    applies_to = Stars.applies_to

    async def transform(self, text: str) -> str:
        return re.sub(r"\bbom\b", "***", text)


@pytest.mark.parametrize("transform", [Stars, StarsSlowly])
def test_a_transform_delivers_the_same_bytes_on_every_road(transform: type[TextTransform]) -> None:
    @examples(100)
    @given(answers(), st.data())
    def holds(parts: list[StreamPart], data: st.DataObject) -> None:
        other_cut = data.draw(st.composite(cut_again)(parts))

        async def compare() -> None:
            expected: Any = None
            for name, kind, inner, model in roads(parts, other_cut):
                _, got = await gone(kind, transform(), inner, model)
                expected = expected or said(got)
                assert said(got) == expected, name

        anyio.run(compare)

    holds()
