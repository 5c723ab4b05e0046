"""Policies over answers in shadow: findings say what would have happened, and nothing changes or waits."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest
from tests.pipeline.builders import ASKED, read
from trio.testing import MockClock

from neurolink_mw.pipeline import Use, wrap_model
from neurolink_mw.protocol import ErrorPart, Kind, LanguageModel, Raw, collect
from neurolink_mw.roles import Hold, Pass, Streaming, Verdict, View, Window, replace
from neurolink_mw.testing import ScriptedModel

from .builders import (
    Asks,
    Policy,
    Pulled,
    Watch,
    bomb,
    call,
    codes,
    decisions,
    failures,
    gone,
    hang,
    releasing,
    streamed,
    text,
    thought,
    whole,
)

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])
early = pytest.mark.parametrize("mode", [Window(4), Pass()], ids=["window", "pass"])
modes = pytest.mark.parametrize("mode", [Hold(), Window(4), Pass()], ids=["hold", "window", "pass"])


@modes
@pytest.mark.parametrize("word", ["calm", "bomb"])
async def test_in_shadow_nothing_changes_and_nothing_waits(mode: Streaming, word: str) -> None:
    parts = whole([Raw(word)], thought("hm"), text(word), call("{bomb}"))
    watch = Watch()
    arrived = await Pulled(parts).run(watch, Use(releasing(mode), mode="shadow"))
    assert [part for part, _ in arrived] == parts
    assert [read for _, read in arrived] == list(range(1, len(parts) + 1))
    told = [(one.action, one.code, one.subject, one.shadow) for one in decisions(watch.only)]
    assert told == [("denied", "word", "tool_call", True)] + [("denied", "word", "text", True)] * (word == "bomb")


@modes
async def test_in_shadow_a_whole_answer_is_the_very_same_object(mode: Streaming) -> None:
    stored = collect(whole(text("a bomb"), call("{bomb}")))
    watch = Watch()
    model = wrap_model(ScriptedModel([stored]), [watch, Use(releasing(mode), mode="shadow")])
    assert await model.do_generate(ASKED) is stored
    assert codes(watch.only) == [("denied", "word"), ("denied", "word")]


@both
async def test_in_shadow_a_replacement_is_only_said(kind: Kind) -> None:
    result, outcome = await gone(kind, [Use(Policy(lambda view: replace("x")), mode="shadow")], "Hi")
    assert (result.text, [(one.action, one.shadow) for one in decisions(outcome)]) == ("Hi", [("replaced", True)])


async def test_in_shadow_a_stream_that_was_cut_is_judged_as_far_as_it_came() -> None:
    parts = whole(text("a bomb"), call("{bomb}")[:-1], finish=None)
    seen, outcome = await streamed([Use(Policy(bomb), mode="shadow")], parts)
    assert seen == parts
    assert [one.subject for one in decisions(outcome)] == ["tool_call", "text"]


@both
@early
async def test_in_shadow_a_policy_that_would_fail_says_so(kind: Kind, mode: Streaming) -> None:
    result, outcome = await gone(kind, [Use(Policy(bomb, mode), mode="shadow")], whole(text("a bomb")))
    assert (result.text, decisions(outcome)) == ("a bomb", [])
    assert [(one.error, one.handling, one.shadow) for one in failures(outcome)] == [("ConfigError", "skip", True)]


@both
@modes
async def test_in_shadow_one_that_raises_changes_nothing(kind: Kind, mode: Streaming) -> None:
    def broken(view: View) -> Verdict:
        raise RuntimeError

    parts = whole([Raw(1)], text("Hi"), call("{}"), [ErrorPart({"type": "x"})])
    if kind == "stream":
        seen, outcome = await streamed([Use(Policy(broken, mode), mode="shadow")], parts)
        assert seen == parts
    else:
        result, outcome = await gone(kind, [Use(Policy(broken, mode), mode="shadow")], parts)
        assert result == collect(parts)
    assert [one.shadow for one in failures(outcome)] == [True]


@both
async def test_in_shadow_one_that_hangs_is_left_behind(kind: Kind) -> None:
    result, outcome = await gone(kind, [Use(Policy(hang), mode="shadow", timeout=0.01)], "Hi")
    assert (result.text, [one.error for one in failures(outcome)]) == ("Hi", ["TimeoutError"])


# A clock that jumps ahead where everybody waits.
@both
@pytest.mark.parametrize(
    "anyio_backend", [pytest.param(("trio", {"clock": MockClock(autojump_threshold=0)}), id="trio")]
)
async def test_in_shadow_it_is_left_behind_also_where_its_place_sets_no_limit(kind: Kind) -> None:
    members = [Use(Policy(hang), mode="shadow"), Use(Asks(hang), mode="shadow")]
    before = anyio.current_time()
    result, outcome = await gone(kind, members, "Hi")
    assert (result.text, [one.error for one in failures(outcome)]) == ("Hi", ["TimeoutError", "TimeoutError"])
    assert anyio.current_time() - before == pytest.approx(10, abs=0.5)


async def test_one_policy_enforces_in_one_chain_and_watches_in_another_at_the_same_time() -> None:
    policy, parts = releasing(Window(4)), whole(text("a ", "bomb"))
    watch = wrap_model(ScriptedModel([parts] * 4), [Use(policy, mode="shadow")])
    enforce = wrap_model(ScriptedModel([parts] * 4), [policy])
    seen: dict[str, list[str]] = {"watch": [], "enforce": []}

    async def ask(name: str, model: LanguageModel) -> None:
        for _ in range(4):
            seen[name].append(collect(await read(model)).finish_reason.unified)
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "watch", watch)
        tasks.start_soon(ask, "enforce", enforce)
    assert seen == {"watch": ["stop"] * 4, "enforce": ["content-filter"] * 4}
