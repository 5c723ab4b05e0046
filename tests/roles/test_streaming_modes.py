"""What may leave before the verdict, in each mode."""

from __future__ import annotations

import re

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.errors import ServerError
from neurolink_mw.events import Decision
from neurolink_mw.pipeline import wrap_model
from neurolink_mw.protocol import ErrorPart, Finish, FinishReason, Raw, StreamPart, StreamStart, TextDelta, ToolCall
from neurolink_mw.roles import Hold, Pass, Streaming, Verdict, View, Window, allow, deny, flag, replace
from neurolink_mw.testing import HOLD, ScriptedModel

from .answers import answers, examples
from .roles_kit import ASKED, STOP, WORD, Policy, Watch, around, deltas, generated, no_bombs, script, streamed, text_of

pytestmark = pytest.mark.anyio
MODES: list[Streaming] = [Hold(), Window(4), Window(4, stride=2), Pass()]


async def before_the_verdict(policy: Policy, *pieces: str) -> str:
    """The text that leaves while the model has not finished."""
    parts = [StreamStart(), *deltas(*pieces)]
    model = wrap_model(ScriptedModel([[*parts, HOLD]]), [policy])
    seen: list[str] = []
    async with (await model.do_stream(ASKED)).stream as stream:
        with anyio.move_on_after(0.05):
            async for part in stream:
                if isinstance(part, TextDelta):
                    seen.append(part.delta)
    return "".join(seen)


async def test_under_hold_nothing_leaves_before_the_verdict() -> None:
    assert await before_the_verdict(Policy(), "all", " is well") == ""


async def test_under_pass_everything_leaves_at_once() -> None:
    assert await before_the_verdict(Policy(streaming=Pass()), "a bo", "mb") == "a bomb"


async def test_under_a_window_what_a_look_has_allowed_leaves() -> None:
    policy = Policy(streaming=Window(4))
    assert await before_the_verdict(policy, *"all is well") == "all is well"  # the block has ended


async def test_under_a_window_a_look_that_finds_something_holds_everything_back_from_there() -> None:
    assert (
        await before_the_verdict(Policy(streaming=Window(4)), *"ok. a bomb", " and more") == "ok. a"
    )  # of 8 characters, 3 waited


async def test_what_a_later_look_allows_leaves_after_all() -> None:
    def unless_it_ends_well(view: View) -> Verdict:
        return deny("early") if view.text.endswith("x") else allow()

    parts = await streamed(around(script("abx", "cde", "fgh"), Policy(unless_it_ends_well, Window(2))))
    assert text_of(parts) == "abxcdefgh"


@examples(200)
@given(st.lists(st.text("bom ", min_size=1, max_size=5), max_size=8), st.integers(4, 7), st.integers(1, 9))
def test_no_character_of_a_match_within_one_block_leaves_a_window_of_its_size(
    pieces: list[str], n: int, stride: int
) -> None:
    async def leave() -> None:
        parts = await streamed(around(script(*pieces), Policy(no_bombs, Window(n, stride))))
        text = "".join(pieces)
        found = re.search(WORD, text)
        told = "".join(part.delta for part in parts if isinstance(part, TextDelta) and part.id == "0")
        assert told == text if found is None else text.startswith(told) and len(told) <= found.start()

    anyio.run(leave)


async def test_a_monotone_policy_under_a_window_denies_at_the_first_look_that_finds_something() -> None:
    model = ScriptedModel([script("a bo", "mb", *["..."] * 200)])
    await streamed(around(model, Policy(streaming=Window(4), monotone=True)))
    assert model.calls[0].read < 10
    assert model.calls[0].closed == 1


async def test_without_that_it_denies_at_the_end() -> None:
    model = ScriptedModel([script("a bo", "mb", *["..."] * 200)])
    parts = await streamed(around(model, Policy(streaming=Window(4))))
    assert model.calls[0].read == len(script("a bo", "mb", *["..."] * 200))
    assert text_of(parts) == "Not that."


async def test_a_denial_says_whether_something_had_left() -> None:
    for mode, released in ((Hold(), False), (Window(4), True), (Pass(), True)):
        watch = Watch()
        await streamed(around(script(*"all is well. a bomb"), watch, Policy(streaming=mode)))
        (decision,) = watch.only.findings
        assert isinstance(decision, Decision)
        assert decision.released is released


@pytest.mark.parametrize("mode", [Window(4), Pass()])
async def test_a_mode_that_releases_early_may_deny_only_where_that_is_wanted(mode: Streaming) -> None:
    watch = Watch()
    model = around(script("a bomb"), watch, Policy(streaming=mode, partial=False))
    assert (await streamed(model))[-1] == Finish(
        FinishReason("content-filter", "middleware-failed"),
        STOP.usage,
        {"neurolink_mw": {"denied": "middleware-failed", "by": "policy"}},
    )
    assert watch.failures == [("policy", "deny")]
    watch.outcomes.clear()
    assert (await generated(model)).finish_reason.raw == "middleware-failed"
    assert watch.failures == [("policy", "deny")]


@pytest.mark.parametrize("mode", [Window(4), Pass()])
async def test_replacing_needs_hold(mode: Streaming) -> None:
    def stars(view: View) -> Verdict:
        return replace("****")

    for call in (streamed, generated):
        watch = Watch()
        await call(around(script("a bomb"), watch, Policy(stars, mode)))
        assert watch.failures == [("policy", "deny")]


async def test_a_window_leaves_raw_chunks_out_since_they_would_tell_what_it_holds() -> None:
    parts = [StreamStart(), Raw({"text": "a bomb"}), *deltas("a bomb"), STOP]
    seen = await streamed(around(parts, Policy(streaming=Window(4))))
    assert not any(isinstance(part, Raw) for part in seen)


# ------------------------------------------------------------------------------------------------------- the queue


@examples(150)
@given(answers(), st.sampled_from(MODES))
def test_parts_are_never_split_merged_or_reordered(parts: list[StreamPart], mode: Streaming) -> None:
    async def pass_through() -> None:
        seen = await streamed(around(parts, Policy(lambda view: allow(), mode)))
        expected = [part for part in parts if not (isinstance(mode, Window) and isinstance(part, Raw))]
        assert len(seen) == len(expected)
        assert all(one is other for one, other in zip(seen, expected, strict=True))

    anyio.run(pass_through)


@examples(150)
@given(answers(), st.sampled_from(MODES))
def test_what_leaves_before_a_denial_is_the_beginning_of_the_stream(parts: list[StreamPart], mode: Streaming) -> None:
    async def deny_at_the_end() -> None:
        seen = await streamed(around(parts, Policy(lambda view: deny("x") if view.kind == "text" else allow(), mode)))
        source = iter(part for part in parts if not (isinstance(mode, Window) and isinstance(part, Raw)))
        for part in seen:
            if part is not next(source, None):
                break
        else:
            raise AssertionError("a denied answer came whole")

    if any(isinstance(part, TextDelta) and part.delta for part in parts):
        anyio.run(deny_at_the_end)


async def test_what_waits_holds_back_what_is_behind_it() -> None:
    behind = ToolCall("p", "search", "{}", True)
    parts: list[StreamPart] = [StreamStart(), *deltas("a bo"), behind, STOP]
    model = wrap_model(ScriptedModel([[*parts[:3], behind, HOLD]]), [Policy(streaming=Window(8))])
    seen: list[StreamPart] = []
    async with (await model.do_stream(ASKED)).stream as stream:
        with anyio.move_on_after(0.05):
            async for part in stream:
                seen.append(part)
    assert behind not in seen


# ---------------------------------------------------------------------------------------------- endings of all kinds


@pytest.mark.parametrize("mode", MODES, ids=str)
async def test_on_an_error_part_and_a_finish_the_answer_is_judged_and_released(mode: Streaming) -> None:
    error, finish = ErrorPart(ServerError("cut")), Finish(FinishReason("error"))
    fine = [StreamStart(), *deltas("all is well"), error, finish]
    assert await streamed(around(fine, Policy(streaming=mode))) == fine
    denied = await streamed(around([StreamStart(), *deltas("a bomb"), error, finish], Policy(streaming=mode)))
    assert WORD not in text_of(denied) or isinstance(mode, Pass)


async def test_what_is_held_when_the_source_raises_is_dropped() -> None:
    model = ScriptedModel([[StreamStart(), *deltas("all is well"), ServerError("cut")]])
    stream = (await wrap_model(model, [Policy()]).do_stream(ASKED)).stream
    assert await stream.__anext__() == StreamStart()
    with pytest.raises(ServerError):
        await stream.__anext__()


@pytest.mark.parametrize("mode", MODES, ids=str)
async def test_a_source_that_stops_without_a_finish_is_judged_as_far_as_it_goes(mode: Streaming) -> None:
    for text in ("all is well", "a bomb"):
        model = around([StreamStart(), *deltas(text)], Policy(streaming=mode))
        async with (await model.do_stream(ASKED)).stream as stream:
            seen = [part async for part in stream]
        denied = isinstance(seen[-1], Finish) and seen[-1].finish_reason.unified == "content-filter"
        assert denied == (text == "a bomb")


async def test_an_answer_without_anything_is_judged_by_its_empty_text() -> None:
    def must_say_something(view: View) -> Verdict:
        return allow() if view.text else deny("silence")

    for call in (streamed, generated):
        watch = Watch()
        await call(around([StreamStart(), STOP], watch, Policy(must_say_something)))
        assert watch.decisions == [("denied", "silence", "text")]


async def test_a_flag_changes_nothing_and_is_told() -> None:
    for mode in MODES:
        watch = Watch()
        parts = script("hm", "m")
        assert await streamed(around(parts, watch, Policy(lambda view: flag("hmm"), mode))) == parts
        assert watch.decisions == [("flagged", "hmm", "text")]


async def test_a_look_that_fails_holds_back_and_the_whole_answer_decides() -> None:
    def reads_whole_sentences(view: View) -> Verdict:
        if not view.text.endswith("."):
            raise ValueError("half a sentence")
        return allow()

    watch = Watch()
    parts = script(*"It is so.")
    assert await streamed(around(parts, watch, Policy(reads_whole_sentences, Window(2)))) == parts
    assert watch.only.findings == ()
