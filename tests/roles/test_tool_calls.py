"""Tool calls: judged one by one, before they leave; a denied one is taken out, or marked within a turn."""

from __future__ import annotations

from typing import Any

import pytest
from tests.pipeline.builders import ASKED, COST

from neurolink_mw.errors import ServerError
from neurolink_mw.pipeline import Middleware, wrap_model
from neurolink_mw.protocol import (
    CallOptions,
    ErrorPart,
    Finish,
    FinishReason,
    GenerateResult,
    Kind,
    LanguageModel,
    Raw,
    StreamPart,
    StreamResult,
    Text,
    ToolApprovalRequest,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    collect,
)
from neurolink_mw.roles import Hold, Pass, Streaming, Verdict, View, Window, allow, deny, flag, replace
from neurolink_mw.testing import ScriptedModel, check_stream

from .builders import (
    IN_A_TURN,
    Policy,
    Pulled,
    call,
    calls_no_bomb,
    codes,
    decisions,
    everything,
    fail,
    failures,
    gone,
    leaky,
    streamed,
    text,
    whole,
)

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])
modes = pytest.mark.parametrize("mode", [Hold(), Window(4), Pass()], ids=["hold", "window", "pass"])

CALLS = Finish(FinishReason("tool-calls"), COST)
OF_A_TURN = {"neurolink_mw": {"step": 0, "id": "c"}}


def ids(result: GenerateResult) -> list[str]:
    return [one.tool_call_id for one in result.content if isinstance(one, ToolCall)]


# -- outside of a turn


@both
@modes
async def test_a_denied_call_is_taken_out_and_the_answer_ends_with_content_filter(kind: Kind, mode: Streaming) -> None:
    parts = whole(text("Let me see."), call("{1}", id="a"), call("{bomb}", id="b"), call("{3}", id="c"), finish=CALLS)
    result, outcome = await gone(kind, [Policy(calls_no_bomb, mode)], parts)
    assert (result.text, ids(result)) == ("Let me see.", ["a", "c"])
    assert (result.finish_reason.unified, result.finish_reason.raw) == ("content-filter", "word")
    assert [(one.action, one.subject, one.tool_call_id) for one in decisions(outcome)] == [("denied", "tool_call", "b")]
    assert outcome.status == "ok"  # the answer itself is not denied


@modes
async def test_its_input_goes_with_it_and_so_do_raw_chunks_that_tell_of_it(mode: Streaming) -> None:
    parts = whole([Raw("{bomb}")], call("{bomb}"), [Raw("more")], text("Hi"), finish=CALLS)
    seen, _ = await streamed([Policy(calls_no_bomb, mode)], parts)
    check_stream(seen)
    assert [part.type for part in seen] == ["stream-start", "text-start", "text-delta", "text-end", "finish"]


async def test_policies_that_see_no_calls_let_them_and_raw_chunks_pass() -> None:
    parts = whole([Raw("{bomb}")], call("{bomb}"), finish=CALLS)
    seen, _ = await streamed([Policy(calls_no_bomb, Pass(), sees=["text"])], parts)
    assert seen == parts


@both
async def test_nothing_is_latched(kind: Kind) -> None:
    class Twice(Middleware):
        async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
            await model.do_generate(options)
            return await model.do_generate(options)

        async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
            async with (await model.do_stream(options)).stream as stream:
                assert [part async for part in stream]
            return await model.do_stream(options)

    inside = ScriptedModel([collect(whole(call("{bomb}"), finish=CALLS)), "Hi"])
    model = wrap_model(inside, [Twice(), Policy(calls_no_bomb)])
    if kind == "generate":
        assert (await model.do_generate(ASKED)).text == "Hi"
    else:
        async with (await model.do_stream(ASKED)).stream as stream:
            assert collect([part async for part in stream]).text == "Hi"


@both
async def test_after_an_error_the_reason_stays_error(kind: Kind) -> None:
    end = Finish(FinishReason("error", "interrupted"), COST)
    parts = whole(call("{bomb}"), [ErrorPart(ServerError("cut"))], finish=end)
    result, _ = await gone(kind, [Policy(calls_no_bomb)], parts)
    assert (result.finish_reason.unified, ids(result)) == ("error", [])


@both
@modes
async def test_a_failing_check_of_a_call_denies_the_answer(kind: Kind, mode: Streaming) -> None:
    result, outcome = await gone(kind, [Policy(fail, mode)], whole(call("{}"), finish=CALLS))
    assert (result.finish_reason.raw, ids(result)) == ("middleware-failed", [])
    assert [one.error for one in failures(outcome)] == ["RuntimeError"]


@both
async def test_another_input_takes_the_place_of_the_old_one(kind: Kind) -> None:
    def check(view: View) -> Verdict:
        return replace('{"safe": true}') if view.kind == "tool_call" else allow()

    signed = {"acme": {"signature": "s"}}
    parts = whole([Raw("old"), *call('{"bomb": 1}', provider_metadata=signed)], finish=CALLS)
    result, outcome = await gone(kind, [Policy(check)], parts)
    assert result.content == (ToolCall("c", "run", '{"safe": true}', provider_metadata=signed),)
    assert (result.finish_reason.unified, codes(outcome)) == ("tool-calls", [("replaced", "replaced")])
    if kind == "stream":
        seen, _ = await streamed([Policy(check)], parts)
        assert [part.delta for part in seen if isinstance(part, ToolInputDelta)] == ['{"safe": true}']
        assert not leaky(seen, "bomb")
        assert not leaky(seen, "old")


@both
async def test_a_flagged_call_passes(kind: Kind) -> None:
    parts = whole(call("{}"), finish=CALLS)
    result, outcome = await gone(kind, [Policy(lambda view: flag("odd"))], parts)
    assert (ids(result), codes(outcome)) == (["c"], [("flagged", "odd")])


# -- within a turn


@both
@modes
async def test_within_a_turn_it_is_passed_on_and_marked(kind: Kind, mode: Streaming) -> None:
    signed = {"acme": {"signature": "s"}}
    parts = whole(call("{bomb}", provider_metadata=signed), call("{}", id="d"), finish=CALLS)
    asked = ToolCall("c", "run", "{bomb}", provider_metadata=signed)
    result, outcome = await gone(kind, [Policy(calls_no_bomb, mode)], parts, IN_A_TURN)
    denied = {"denied": {"code": "word", "message": "No."}}
    assert result.content[0] == ToolCall("c", "run", "{bomb}", provider_metadata={**signed, "neurolink_mw": denied})
    assert result.content[1] == ToolCall("d", "run", "{}")
    assert (result.finish_reason.unified, outcome.status) == ("tool-calls", "ok")
    if kind == "stream":
        seen, _ = await streamed([Policy(calls_no_bomb, mode)], parts, IN_A_TURN)
        assert [one == other for one, other in zip(seen, parts, strict=True)] == [part != asked for part in parts]


@both
@modes
async def test_so_is_a_call_that_a_turn_has_marked_as_its_own(kind: Kind, mode: Streaming) -> None:
    marked = call("{bomb}", provider_executed=True, provider_metadata=OF_A_TURN)
    result, _ = await gone(kind, [Policy(calls_no_bomb, mode)], whole(marked))
    (one,) = result.content
    mark: Any = {**OF_A_TURN["neurolink_mw"], "denied": {"code": "word", "message": "No."}}
    assert isinstance(one, ToolCall)
    assert one.provider_metadata == {"neurolink_mw": mark}


@both
async def test_another_input_for_it_leaves_no_trace_of_the_old_one(kind: Kind) -> None:
    def check(view: View) -> Verdict:
        return replace("{}") if view.kind == "tool_call" else allow()

    marked = call("{bomb}", provider_executed=True, provider_metadata=OF_A_TURN)
    seen, _ = await streamed([Policy(check)], whole(marked))
    assert not leaky(seen, "bomb")
    result, _ = await gone(kind, [Policy(check)], whole(marked))
    assert everything(result).count("{}") == 1


@both
async def test_what_is_denied_already_is_not_judged_again(kind: Kind) -> None:
    seen: list[str] = []

    def outer(view: View) -> Verdict:
        seen.append(view.kind)
        return allow()

    result, _ = await gone(kind, [Policy(outer), Policy(calls_no_bomb, id="inner")], whole(call("{bomb}")), IN_A_TURN)
    assert (seen, ids(result)) == (["text"], ["c"])


# -- the provider's own


@both
@modes
async def test_calls_that_the_provider_ran_itself_pass(kind: Kind, mode: Streaming) -> None:
    parts = whole(call("{bomb}", provider_executed=True))
    result, outcome = await gone(kind, [Policy(calls_no_bomb, mode)], parts)
    assert (ids(result), result.finish_reason.unified, codes(outcome)) == (["c"], "stop", [])


@pytest.mark.parametrize("mode", [Window(4), Pass()], ids=["window", "pass"])
async def test_and_their_input_waits_until_the_call_says_whose_it_is(mode: Streaming) -> None:
    parts = whole(call("{bomb}", provider_executed=True))
    arrived = await Pulled(parts).run(Policy(calls_no_bomb, mode))
    assert [part for part, _ in arrived] == parts
    disguised = [*call("{bomb}", provider_executed=True)[:-1], ToolCall("c", "run", "{bomb}")]
    seen, _ = await streamed([Policy(calls_no_bomb, mode)], whole(disguised, finish=CALLS))
    assert not any(part.type.startswith("tool") for part in seen)


@modes
async def test_input_that_a_cut_took_the_call_from_is_judged_whoever_it_was_for(mode: Streaming) -> None:
    for text_of_input, leaves in (("{fine}", True), ("{bomb}", False)):
        begun = call(text_of_input, provider_executed=True)[:-1]
        seen, _ = await streamed([Policy(calls_no_bomb, mode)], whole(begun))
        assert (seen == whole(begun)) == leaves
        assert seen[-1] == whole(begun)[-1]  # it ends as the answer without the call does


@modes
async def test_a_request_to_approve_a_call_goes_with_the_call(mode: Streaming) -> None:
    asked = ToolApprovalRequest("approve", "c")
    for kind in ("generate", "stream"):
        parts = whole(call("{bomb}"), [asked], finish=CALLS)
        result, _ = await gone(kind, [Policy(calls_no_bomb, mode)], parts)
        assert asked not in result.content


# -- when they leave


@pytest.mark.parametrize("mode", [Window(4), Pass()], ids=["window", "pass"])
async def test_a_call_leaves_after_its_own_verdict_with_its_input(mode: Streaming) -> None:
    parts = whole(call("{}"), text("Hi"), finish=CALLS)
    arrived = await Pulled(parts).run(Policy(calls_no_bomb, mode))
    whole_call_at = parts.index(ToolCall("c", "run", "{}")) + 1
    assert [read for part, read in arrived if part.type.startswith("tool")] == [whole_call_at] * 5


async def test_under_hold_it_leaves_after_the_answers() -> None:
    parts = whole(call("{}"), text("Hi"), finish=CALLS)
    arrived = await Pulled(parts).run(Policy(calls_no_bomb))
    assert [read for part, read in arrived] == [1, *[len(parts)] * (len(parts) - 1)]


@modes
async def test_each_is_judged_when_it_is_complete_before_the_next_part_is_read(mode: Streaming) -> None:
    parts = whole(call("{1}", id="a"), call("{2}", id="b"), finish=CALLS)
    inside = ScriptedModel([parts])
    judged: list[int] = []

    def check(view: View) -> Verdict:
        if view.kind == "tool_call":
            judged.append(inside.calls[0].read)
        return allow()

    async with (await wrap_model(inside, [Policy(check, mode)]).do_stream(ASKED)).stream as stream:
        assert [part async for part in stream] == parts
    assert judged == [parts.index(part) + 1 for part in parts if isinstance(part, ToolCall)]


async def test_calls_whose_inputs_interleave_are_judged_each_by_itself() -> None:
    def check(view: View) -> Verdict:
        return deny("x") if view.tool_call is not None and view.tool_call.tool_call_id == "a" else allow()

    first, second = call("{1}", id="a"), call("{2}", id="b")
    mixed = [part for pair in zip(first, second, strict=True) for part in pair]
    for mode in (Hold(), Window(4), Pass()):
        seen, _ = await streamed([Policy(check, mode)], whole(mixed, finish=CALLS))
        assert [part for part in seen if part.type.startswith("tool")] == second


# -- what no honest model sends


@modes
@pytest.mark.parametrize("ended", [True, False], ids=["ended", "open"])
async def test_input_that_a_cut_took_the_call_from_is_judged_as_far_as_it_came(mode: Streaming, ended: bool) -> None:
    begun: list[StreamPart] = call("{bomb}")[: -1 if ended else -2]
    seen, outcome = await streamed([Policy(calls_no_bomb, mode)], whole(begun, finish=CALLS))
    assert not leaky(seen, "bo")
    assert codes(outcome) == [("denied", "word")]
    harmless = whole(call("{ok}")[:-1])
    assert (await streamed([Policy(calls_no_bomb, mode)], harmless))[0] == harmless


@modes
async def test_pieces_that_say_something_else_than_the_call_do_not_pass_unseen(mode: Streaming) -> None:
    pieces: list[StreamPart] = [ToolInputStart("c", "run"), ToolInputDelta("c", "{bomb}"), ToolInputEnd("c")]
    parts = whole([Raw("{bomb}"), *pieces, ToolCall("c", "run", "{}")], finish=CALLS)
    seen, _ = await streamed([Policy(calls_no_bomb, mode)], parts)
    assert not leaky(seen, "bomb")
    assert [part.delta for part in seen if isinstance(part, ToolInputDelta)] == ["{}"]


@modes
async def test_a_call_without_pieces_stays_without(mode: Streaming) -> None:
    parts = whole([ToolInputStart("c", "run"), ToolInputEnd("c"), ToolCall("c", "run", "{}")], finish=CALLS)
    for options in (ASKED, IN_A_TURN):
        assert (await streamed([Policy(calls_no_bomb, mode)], parts, options))[0] == parts
    denied = [*parts[:3], ToolCall("c", "run", "bomb"), CALLS]
    seen, _ = await streamed([Policy(calls_no_bomb, mode)], denied, IN_A_TURN)
    assert [part.type for part in seen] == [part.type for part in denied]


@modes
async def test_two_calls_of_one_id_have_two_verdicts(mode: Streaming) -> None:
    parts = whole([*call("{bomb}"), ToolCall("c", "run", "{}")], finish=CALLS)
    seen, _ = await streamed([Policy(calls_no_bomb, mode)], parts)
    assert not leaky(seen, "bo")
    assert [part for part in seen if part.type.startswith("tool")] == [ToolCall("c", "run", "{}")]


@modes
async def test_an_input_that_begins_twice_is_not_let_out_by_the_second(mode: Streaming) -> None:
    first: list[StreamPart] = [ToolInputStart("c", "run"), ToolInputDelta("c", "{bomb}")]
    seen, _ = await streamed([Policy(calls_no_bomb, mode)], whole([*first, *call("{}")], finish=CALLS))
    assert not leaky(seen, "bomb")


async def test_text_beside_a_denied_call_may_be_replaced() -> None:
    def check(view: View) -> Verdict:
        return calls_no_bomb(view) if view.kind == "tool_call" else replace("Hello")

    for kind in ("generate", "stream"):
        result, _ = await gone(kind, [Policy(check)], whole(text("Hi"), call("{bomb}"), finish=CALLS))
        assert (result.content, result.finish_reason.unified) == ((Text("Hello"),), "content-filter")


def test_the_options_of_a_turn_are_those_of_any_call() -> None:
    assert IN_A_TURN == ASKED
    assert IN_A_TURN.context.step == 1
