"""Tool calls are judged one by one, and a denied call denies nothing else."""

from __future__ import annotations

import json

import pytest

from neurolink_mw.pipeline import wrap_model
from neurolink_mw.protocol import (
    CallContext,
    CallOptions,
    ErrorPart,
    Finish,
    FinishReason,
    GenerateResult,
    StreamPart,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    collect,
)
from neurolink_mw.roles import Hold, Pass, Streaming, Verdict, View, Window, allow, deny, replace
from neurolink_mw.testing import HOLD, ScriptedModel

from .answers import COST
from .roles_kit import ASKED, WORD, Policy, Watch, around, deltas, generated, streamed

pytestmark = pytest.mark.anyio
MODES: list[Streaming] = [Hold(), Window(4), Pass()]
CALLS = Finish(FinishReason("tool-calls"), COST)
IN_A_TURN = CallOptions.from_text("Hello").replace(context=CallContext().child(step=1))


def call(id: str, q: str, *, by_provider: bool | None = None, marked: bool = False) -> list[StreamPart]:
    input = json.dumps({"q": q})
    metadata = {"neurolink_mw": {"executed": True}} if marked else None
    return [
        ToolInputStart(id, "search", by_provider),
        ToolInputDelta(id, input[:4]),
        ToolInputDelta(id, input[4:]),
        ToolInputEnd(id),
        ToolCall(id, "search", input, by_provider, provider_metadata=metadata),
    ]


def script(*calls: list[StreamPart]) -> list[StreamPart]:
    return [StreamStart(), *deltas("let me look"), *(part for one in calls for part in one), CALLS]


def no_bombs_searched(view: View) -> Verdict:
    if view.tool_call is not None and WORD in json.loads(view.tool_call.input)["q"]:
        return deny("no-search", "Do not search for that.")
    return allow()


def ids(parts: list[StreamPart] | GenerateResult) -> list[str]:
    result = parts if isinstance(parts, GenerateResult) else collect(parts)
    return [one.tool_call_id for one in result.tool_calls]


async def test_the_view_of_a_call_is_its_input_and_the_call() -> None:
    views: list[View] = []

    def look(view: View) -> Verdict:
        views.append(view)
        return allow()

    await generated(around(collect(script(call("a", "x"))), Policy(look)))
    (view,) = [one for one in views if one.kind == "tool_call"]
    assert (view.text, view.final, view.reasoning) == ('{"q": "x"}', True, "")
    assert view.tool_call is not None
    assert view.tool_call.tool_call_id == "a"


@pytest.mark.parametrize("mode", MODES, ids=str)
async def test_a_denied_call_is_taken_out_with_its_input_and_the_answer_ends_as_filtered(mode: Streaming) -> None:
    parts = script(call("a", "x"), call("b", WORD), call("c", "y"))
    watch = Watch()
    seen = await streamed(around(parts, watch, Policy(no_bombs_searched, mode)))
    assert ids(seen) == ["a", "c"]
    assert not any(isinstance(part, ToolInputDelta) and WORD in part.delta for part in seen)
    assert not any(isinstance(part, ToolInputStart) and part.id == "b" for part in seen)
    assert seen[-1] == CALLS.replace(finish_reason=FinishReason("content-filter", "no-search"))
    assert watch.only.status == "ok"  # the answer is none the worse
    assert watch.decisions == [("denied", "no-search", "tool_call")]
    whole = await generated(around(collect(parts), Policy(no_bombs_searched, mode)))
    assert collect(seen) == whole


@pytest.mark.parametrize("mode", MODES, ids=str)
async def test_within_a_turn_it_is_passed_on_marked_and_the_turn_goes_on(mode: Streaming) -> None:
    parts = script(call("a", "x"), call("b", WORD))
    model = around(parts, Policy(no_bombs_searched, mode))
    seen = await streamed(model, IN_A_TURN)
    whole = await generated(model, IN_A_TURN)
    for result in (collect(seen), whole):
        denied = result.tool_calls[1]
        assert denied.provider_metadata == {
            "neurolink_mw": {"denied": {"code": "no-search", "message": "Do not search for that."}}
        }
        assert result.tool_calls[0].provider_metadata is None
        assert result.finish_reason == CALLS.finish_reason


async def test_the_providers_own_calls_pass_and_those_that_a_turn_marked_are_judged() -> None:
    own, marked = call("p", WORD, by_provider=True), call("t", WORD, by_provider=True, marked=True)
    watch = Watch()
    seen = await streamed(around(script(own, marked), watch, Policy(no_bombs_searched)))
    assert ids(seen) == ["p", "t"]
    turned = collect(seen).tool_calls[1]
    assert turned.provider_metadata == {
        "neurolink_mw": {"executed": True, "denied": {"code": "no-search", "message": "Do not search for that."}}
    }
    assert watch.decisions == [("denied", "no-search", "tool_call")]


async def test_a_policy_further_out_does_not_judge_a_denied_call_again() -> None:
    first, second = Policy(no_bombs_searched), Policy(no_bombs_searched)
    second.id = "other"  # type: ignore[misc]
    watch = Watch()
    await generated(around(collect(script(call("b", WORD))), watch, first, second), IN_A_TURN)
    assert [one.by for one in watch.only.findings] == ["other"]


@pytest.mark.parametrize("mode", [Window(4), Pass()], ids=str)
async def test_a_call_leaves_after_its_own_verdict_before_the_next_part_is_read(mode: Streaming) -> None:
    model = wrap_model(ScriptedModel([[*script(call("a", "x"))[:-1], HOLD]]), [Policy(no_bombs_searched, mode)])
    async with (await model.do_stream(ASKED)).stream as stream:
        async for part in stream:
            if isinstance(part, ToolCall):
                break
        assert part == call("a", "x")[-1]


async def test_under_hold_a_call_also_waits_for_the_verdict_on_the_answer() -> None:
    def denies_text(view: View) -> Verdict:
        return deny("text") if view.kind == "text" else allow()

    seen = await streamed(around(script(call("a", "x")), Policy(denies_text)))
    assert ids(seen) == []


async def test_an_input_may_be_replaced() -> None:
    def tame(view: View) -> Verdict:
        return replace(view.text.replace(WORD, "flower")) if view.kind == "tool_call" else allow()

    parts = script(call("a", f"a {WORD}"), call("b", "x"))
    seen = await streamed(around(parts, Policy(tame)))
    whole = await generated(around(collect(parts), Policy(tame)))
    assert collect(seen) == whole
    assert whole.tool_calls[0].input == '{"q": "a flower"}'
    assert "".join(p.delta for p in seen if isinstance(p, ToolInputDelta) and p.id == "a") == '{"q": "a flower"}'


async def test_an_input_that_a_cut_stream_never_finished_is_judged_as_far_as_it_goes() -> None:
    def no_bombs_begun(view: View) -> Verdict:
        return deny("no-search") if view.kind == "tool_call" and WORD in view.text else allow()

    for text, leaves in (("all is well", True), (WORD, False)):
        cut = [*call("a", text)[:3], ToolInputEnd("a")]
        parts: list[StreamPart] = [StreamStart(), *cut, ErrorPart("cut"), Finish(FinishReason("error"))]
        seen = await streamed(around(parts, Policy(no_bombs_begun)))
        assert any(isinstance(part, ToolInputDelta) for part in seen) == leaves


async def test_a_policy_that_does_not_see_tool_input_lets_calls_pass() -> None:
    parts = script(call("a", WORD))
    assert await streamed(around(parts, Policy(no_bombs_searched, sees=("text",)))) == parts


async def test_a_call_without_input_parts_is_judged_like_any_other() -> None:
    bare: list[StreamPart] = [StreamStart(), ToolCall("a", "search", json.dumps({"q": WORD})), CALLS]
    seen = await streamed(around(bare, Policy(no_bombs_searched)))
    assert [part for part in seen if not isinstance(part, TextDelta)][1:] == [
        CALLS.replace(finish_reason=FinishReason("content-filter", "no-search"))
    ]


async def test_a_failing_check_on_a_call_denies_the_answer() -> None:
    broken: list[StreamPart] = [StreamStart(), ToolCall("a", "search", "no json"), CALLS]
    watch = Watch()
    await streamed(around(broken, watch, Policy(no_bombs_searched)))
    assert watch.only.status == "denied"
    assert watch.failures == [("policy", "deny")]
