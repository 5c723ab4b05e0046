"""What leaves a stream, and when: `Hold`, `Window`, `Pass`, and what all of them keep to."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.builders import ASKED, STOP, read

from neurolink_mw.pipeline import Use, wrap_model
from neurolink_mw.protocol import (
    Kind,
    Raw,
    ReasoningDelta,
    ResponseMetadata,
    Source,
    StreamPart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    collect,
)
from neurolink_mw.roles import Hold, Pass, Streaming, Verdict, View, Window, allow, deny, replace
from neurolink_mw.roles.gate import Gate
from neurolink_mw.testing import ScriptedModel, check_stream

from .answers import answers, examples
from .builders import Policy, Pulled, bomb, codes, decisions, failures, gone, releasing, streamed, text, thought, whole

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])
early = pytest.mark.parametrize("mode", [Window(4), Pass()], ids=["window", "pass"])
modes = pytest.mark.parametrize("mode", [Hold(), Window(4), Pass()], ids=["hold", "window", "pass"])


def nothing(view: View) -> Verdict:
    return allow()


# -- when things leave


async def test_hold_lets_nothing_but_the_start_leave_before_the_verdict() -> None:
    parts = whole([ResponseMetadata("1")], thought("hm"), text("a", "b"), [Raw(1)])
    arrived = await Pulled(parts).run(Policy(nothing))
    assert [part for part, _ in arrived] == parts
    assert [read for _, read in arrived] == [1, *[len(parts)] * (len(parts) - 1)]


async def test_pass_lets_everything_leave_at_once() -> None:
    parts = whole([ResponseMetadata("1")], thought("hm"), text("a", "b"))
    arrived = await Pulled(parts).run(Policy(nothing, Pass()))
    assert [read for _, read in arrived] == list(range(1, len(parts) + 1))


async def test_a_window_holds_its_newest_characters_and_up_to_a_stride() -> None:
    parts = whole(text(*"abcdefghijkl"))
    arrived = await Pulled(parts).run(Policy(nothing, Window(4, stride=2)))
    held = [read - 2 - index for index, (part, read) in enumerate(arrived) if isinstance(part, TextDelta)]
    assert [part for part, _ in arrived] == parts
    assert max(held) <= 3 + 2


async def test_what_a_window_must_hold_holds_back_what_is_behind_it() -> None:
    source = Source("url", "s", url="https://example.org")
    parts: list[StreamPart] = [StreamStart(), TextStart("0"), TextDelta("0", "abc"), source, TextEnd("0"), STOP]
    arrived = await Pulled(parts).run(Policy(nothing, Window(4)))
    assert arrived == [(parts[0], 1), (parts[1], 2), (parts[2], 5), (source, 5), (parts[4], 5), (STOP, 6)]


async def test_at_the_end_of_a_block_a_look_lets_it_leave_whole() -> None:
    arrived = await Pulled(whole(text("ab"), text("cd", id="1"))).run(Policy(nothing, Window(100)))
    assert [read for part, read in arrived if isinstance(part, TextDelta)] == [4, 7]


async def test_text_that_looks_deny_waits_until_a_later_look_allows_it() -> None:
    def closed(view: View) -> Verdict:
        return deny("open") if view.text.count("(") > view.text.count(")") else allow()

    parts = whole(text(*"ab(cd)ef"))
    arrived = await Pulled(parts).run(releasing(Window(1), closed))
    reads = {part.delta: read - 2 for part, read in arrived if isinstance(part, TextDelta)}
    assert [part for part, _ in arrived] == parts
    assert reads == {"a": 1, "b": 2, "(": 6, "c": 6, "d": 6, ")": 6, "e": 7, "f": 8}


async def test_a_look_that_fails_holds_the_text_and_only_the_end_counts() -> None:
    def must_be_long(view: View) -> Verdict:
        if len(view.text) < 6:
            raise RuntimeError
        return allow()

    parts = whole(text(*"abcdef"))
    seen, outcome = await streamed([Policy(must_be_long, Window(1))], parts)
    assert (seen, failures(outcome)) == (parts, [])


async def test_looks_are_told_apart_from_the_verdict() -> None:
    seen: list[tuple[str, bool]] = []

    def check(view: View) -> Verdict:
        seen.append((view.text, view.final))
        return allow()

    await streamed([Policy(check, Window(2))], whole(text("ab", "c", "d")))
    assert seen == [("ab", False), ("abcd", False), ("abcd", False), ("abcd", True)]


@early
async def test_raw_chunks_would_tell_what_is_held(mode: Streaming) -> None:
    seen, _ = await streamed([Policy(nothing, mode)], whole([Raw("a")], text("a")))
    assert not any(isinstance(part, Raw) for part in seen)


# -- denying after something has left


@both
@early
async def test_who_releases_early_may_deny_only_if_that_is_wanted(kind: Kind, mode: Streaming) -> None:
    result, outcome = await gone(kind, [Policy(bomb, mode)], whole(text("a bomb")))
    assert (result.finish_reason.raw, [one.error for one in failures(outcome)]) == (
        "middleware-failed",
        ["ConfigError"],
    )


@both
@early
async def test_where_it_is_wanted_it_denies(kind: Kind, mode: Streaming) -> None:
    result, outcome = await gone(kind, [releasing(mode)], whole(text("a long ", "way to ", "a bomb")))
    assert (result.finish_reason.raw, codes(outcome)) == ("word", [("denied", "word")])
    assert decisions(outcome)[0].released is (kind == "stream")


async def test_nothing_was_released_where_nothing_left() -> None:
    _, outcome = await gone("stream", [releasing(Window(50))], whole(text("a bomb")))
    assert decisions(outcome)[0].released is False


@both
@early
async def test_a_replacement_needs_hold(kind: Kind, mode: Streaming) -> None:
    policy = releasing(mode, lambda view: replace("x"))
    result, outcome = await gone(kind, [policy], whole(text("a")))
    assert (result.finish_reason.raw, [one.error for one in failures(outcome)]) == (
        "middleware-failed",
        ["ConfigError"],
    )


@early
async def test_a_refusal_closes_what_had_left(mode: Streaming) -> None:
    seen, _ = await streamed([releasing(mode)], whole(text("a long way to ", "a bomb")))
    check_stream(seen)
    assert [part.id for part in seen if isinstance(part, TextStart)] == ["0", "neurolink_mw.refusal"]


async def test_a_monotone_policy_denies_as_soon_as_a_look_finds_something() -> None:
    parts = whole(text("bomb", *"x" * 1000))
    pulled = Pulled(parts)
    await pulled.run(releasing(Window(4), monotone=True))
    assert pulled.scripted.calls[0].read == 3
    pulled = Pulled(parts)
    await pulled.run(releasing(Window(4)))
    assert pulled.scripted.calls[0].read == len(parts)


async def test_but_not_for_what_only_looks_like_a_beginning_while_an_earlier_block_is_open() -> None:
    open_one: list[StreamPart] = [TextStart("a"), TextDelta("a", "bo")]
    parts = whole(open_one, text("mb", id="b"), [TextDelta("a", "x"), TextEnd("a")])
    seen, outcome = await streamed([releasing(Window(2), monotone=True)], parts)
    assert (seen, outcome.status) == (parts, "ok")
    assert collect(parts).text == "boxmb"


@both
async def test_monotone_without_permission_fails_like_any_other(kind: Kind) -> None:
    result, _ = await gone(kind, [Policy(bomb, Window(4), monotone=True)], whole(text("a bomb")))
    assert result.finish_reason.raw == "middleware-failed"


# -- one queue


@modes
def test_what_leaves_are_the_parts_that_came_in_their_order(mode: Streaming) -> None:
    """None is split, merged, reordered or copied, whatever looks say on the way."""

    @examples(200)
    @given(answers(), st.sets(st.integers(0, 30)))
    def holds(parts: list[StreamPart], frozen: set[int]) -> None:
        def moody(view: View) -> Verdict:
            return allow() if view.final or len(view.text) not in frozen else deny("not yet")

        async def compare() -> None:
            async with (
                await wrap_model(ScriptedModel([parts]), [releasing(mode, moody)]).do_stream(ASKED)
            ).stream as s:
                seen = [part async for part in s]
            kept = [part for part in parts if isinstance(mode, Hold) or not isinstance(part, Raw)]
            assert all(one is other for one, other in zip(seen, kept, strict=True))

        anyio.run(compare)

    holds()


@modes
def test_what_leaves_before_a_denial_is_the_beginning_of_the_stream(mode: Streaming) -> None:
    @examples(200)
    @given(answers(raw=False))
    def holds(parts: list[StreamPart]) -> None:
        policy = releasing(mode, lambda view: deny("x") if view.kind == "text" and view.final else allow())

        async def compare() -> None:
            seen = await read(wrap_model(ScriptedModel([parts]), [policy]))
            check_stream(seen)
            left = next((at for at, part in enumerate(seen) if part is not parts[at]), len(parts))
            refused = {part.id for part in seen[left:] if isinstance(part, TextDelta | ReasoningDelta)}
            assert refused <= {"neurolink_mw.refusal"}

        anyio.run(compare)

    holds()


# The property of a window, on the queue itself: what has left of a stream after each of its parts.


def left_after_each(mode: Window, parts: list[StreamPart], word: str) -> list[list[StreamPart]]:
    """Where looks allow what does not hold the word."""
    gate = Gate(mode, ("text", "reasoning"))
    left: list[StreamPart] = []
    steps: list[list[StreamPart]] = []
    for part in parts:
        looks_at = gate.feed(part)
        if isinstance(looks_at, str) and word not in gate.text_of(looks_at):
            gate.allowed(looks_at)
        left += gate.ready()
        steps.append(list(left))
    return steps


def blocks_of(parts: list[StreamPart]) -> dict[str, str]:
    blocks: dict[str, str] = {}
    for part in parts:
        if isinstance(part, TextDelta | ReasoningDelta):
            blocks[part.id] = blocks.get(part.id, "") + part.delta
    return blocks


@examples(1000)
@given(answers(raw=False), st.text("bom", min_size=1, max_size=4), st.integers(0, 2), st.integers(1, 6))
def test_no_character_of_a_match_within_a_block_leaves_before_a_look_saw_it_whole(
    parts: list[StreamPart], word: str, more: int, stride: int
) -> None:
    whole_blocks = blocks_of(parts)
    for left in left_after_each(Window(len(word) + more, stride), parts[:-1], word):
        for id, out in blocks_of(left).items():
            first = whole_blocks[id].find(word)
            assert first < 0 or len(out) <= first, (id, whole_blocks[id], out)


@examples(1000)
@given(answers(raw=False), st.integers(1, 6), st.integers(1, 6))
def test_a_window_that_finds_nothing_holds_less_than_n_and_a_stride_of_a_block(
    parts: list[StreamPart], n: int, stride: int
) -> None:
    for index, left in enumerate(left_after_each(Window(n, stride), parts[:-1], "never")):
        came, out = blocks_of(parts[: index + 1]), blocks_of(left)
        if len(came) == 1:  # no other one holds it back
            ((id, text),) = came.items()
            longest = max(len(part.delta) for part in parts if isinstance(part, TextDelta | ReasoningDelta))
            assert len(text) - len(out.get(id, "")) <= n - 1 + stride - 1 + longest


# -- the modes themselves


@pytest.mark.parametrize("arguments", [(0,), (-1,), (True,), (2.5,), ("4",), (4, 0), (4, True)])
def test_a_window_is_a_number_of_characters(arguments: Any) -> None:
    with pytest.raises(ValueError, match="is a number of characters, from 1 on"):
        Window(*arguments)


def test_what_a_chain_shows_of_it() -> None:
    assert Policy(bomb).as_middleware(Use(Policy(bomb)).rules).about is None
    about = Policy(bomb, Window(4)).as_middleware(Use(Policy(bomb)).rules).about
    assert about == "streaming Window(n=4, stride=None): text may leave before the verdict"
