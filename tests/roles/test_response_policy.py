"""Response policies under `Hold`: one verdict, and a text that is denied or replaced reaches nobody."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Any

import anyio
import pytest
from tests.pipeline.builders import ASKED, COST, STOP, answer, read

from neurolink_mw.errors import ServerError
from neurolink_mw.events import Event
from neurolink_mw.pipeline import Surroundings, Use, wrap_model
from neurolink_mw.protocol import (
    CallOptions,
    ErrorPart,
    Finish,
    FinishReason,
    GenerateResult,
    Kind,
    Raw,
    Reasoning,
    ResponseInfo,
    Source,
    StreamPart,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
)
from neurolink_mw.roles import Hold, Pass, ResponsePolicy, Streaming, Verdict, View, Window, allow, deny, flag, replace
from neurolink_mw.testing import ScriptedModel, check_stream

from .builders import (
    IN_A_TURN,
    Policy,
    Watch,
    bomb,
    call,
    codes,
    decisions,
    everything,
    fail,
    failures,
    gone,
    hang,
    leaky,
    streamed,
    text,
    thought,
    whole,
)

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])


# -- what it sees


@both
async def test_it_sees_the_joined_text_the_joined_reasoning_and_each_call_by_itself(kind: Kind) -> None:
    seen: list[tuple[str, str, str, bool]] = []

    def check(view: View) -> Verdict:
        seen.append((view.kind, view.text, view.reasoning, view.final))
        assert (view.tool_call is not None) == (view.kind == "tool_call")
        assert view.request.kind == kind
        assert "one" not in repr(view)
        return allow()

    blocks = [thought("hm", id="r1"), text("one ", id="a"), call("{1}", id="c1"), thought(" so", id="r2")]
    await gone(kind, [Policy(check)], whole(*blocks, text("two", id="b"), call("{2}", id="c2")))
    assert seen == [
        ("tool_call", "{1}", "", True),
        ("tool_call", "{2}", "", True),
        ("text", "one two", "", True),
        ("reasoning", "hm so", "hm so", True),
    ]


@both
@pytest.mark.parametrize("sees", ["text", "reasoning", "tool_input"])
async def test_it_sees_only_what_it_asked_for(kind: Kind, sees: str) -> None:
    seen: list[str] = []

    def check(view: View) -> Verdict:
        seen.append(view.kind)
        return allow()

    parts = whole(thought("hm"), text("one"), call("{}"))
    await gone(kind, [Policy(check, sees=[sees])], parts)
    assert seen == ["tool_call" if sees == "tool_input" else sees]


@both
@pytest.mark.parametrize("content", [[], [text("")], [[Source("url", "s", url="https://example.org")]]])
async def test_an_answer_that_says_nothing_is_judged_by_its_empty_text(kind: Kind, content: Any) -> None:
    def must_disclaim(view: View) -> Verdict:
        return allow() if "no advice" in view.text else deny("disclaimer")

    result, _ = await gone(kind, [Policy(must_disclaim)], whole(*content))
    assert result.finish_reason.raw == "disclaimer"


@both
@pytest.mark.parametrize("block", [thought("hm"), call("{}")], ids=["reasoning", "call"])
async def test_one_that_only_thinks_or_calls_is_not(kind: Kind, block: Any) -> None:
    def check(view: View) -> Verdict:
        return deny("empty") if view.text == "" else allow()

    result, _ = await gone(kind, [Policy(check)], whole(block))
    assert result.finish_reason.unified == "stop"


# -- deny


@both
@pytest.mark.parametrize("block", [text("a bo", "mb."), thought("a bo", "mb.")], ids=["text", "reasoning"])
async def test_a_denied_answer_is_refused(kind: Kind, block: Any) -> None:
    result, outcome = await gone(kind, [Policy(bomb)], whole(text("so ", id="a"), block))
    assert (result.text, result.finish_reason.unified, result.finish_reason.raw) == ("No.", "content-filter", "word")
    assert (outcome.status, codes(outcome)) == ("denied", [("denied", "word")])
    assert outcome.usage == COST
    assert decisions(outcome)[0].released is False


@both
async def test_a_denied_text_reaches_nobody(kind: Kind, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    events: list[Event] = []
    watch, policy = Watch(), Policy(bomb)
    native: Any = {"choices": [{"text": "a bomb"}]}
    stored = GenerateResult((Text("a bomb"),), FinishReason("stop"), COST, response=ResponseInfo(body=native))
    script: Any = stored if kind == "generate" else whole([Raw(native)], text("a bo", "mb"), [Raw("bomb")])
    model = wrap_model(ScriptedModel([script]), [watch, policy], surroundings=Surroundings(events=events.append))
    got: Any
    if kind == "generate":
        got = await model.do_generate(ASKED)
    else:
        result = await model.do_stream(ASKED)
        got = [result.response, *[part async for part in result.stream]]
    assert "a bo" not in everything(got)
    assert not leaky(watch.parts, "a bo")
    told = [repr(got), repr(watch.only), repr(watch.only.findings), str(watch.only.error), repr(events), caplog.text]
    assert "a bo" not in " ".join(told)
    assert events


@both
async def test_nor_does_the_native_response_beside_a_replaced_one(kind: Kind) -> None:
    body = {"text": "a bomb"}
    stored = GenerateResult((Text("a bomb"),), FinishReason("stop"), COST, response=ResponseInfo(id="1", body=body))
    model = wrap_model(ScriptedModel([stored]), [Policy(lambda view: replace("a ***"))])
    result: Any = await (model.do_generate(ASKED) if kind == "generate" else model.do_stream(ASKED))
    assert (result.response.id, result.response.body) == ("1", None)
    if kind == "stream":
        assert not leaky([part async for part in result.stream], "bomb")


async def test_an_answer_that_passes_generated_is_the_very_same_object() -> None:
    stored = GenerateResult((Text("Hi"),), response=ResponseInfo(body={"a": 1}))
    assert await wrap_model(ScriptedModel([stored]), [Policy(bomb)]).do_generate(ASKED) is stored


# -- replace


@both
async def test_a_replacement_is_one_block_where_the_first_one_stood_without_what_was_made_for_the_old(
    kind: Kind,
) -> None:
    def check(view: View) -> Verdict:
        return replace(view.text.replace("bomb", "***"), "starred") if "bomb" in view.text else allow()

    source = Source("url", "s", url="https://example.org")
    signed = {"acme": {"signature": "s"}}
    first: list[StreamPart] = [TextStart("a", extra={"x": 1}), TextDelta("a", "a bo", signed), TextEnd("a", signed)]
    parts = whole(thought("hm"), first, [source], text("mb.", id="b"), [Raw("a bomb")])
    result, outcome = await gone(kind, [Policy(check)], parts)
    assert result.content == (Reasoning("hm"), Text("a ***."), source)
    assert codes(outcome) == [("replaced", "starred")]
    if kind == "stream":
        seen, _ = await streamed([Policy(check)], parts)
        check_stream(seen)
        assert not any(isinstance(part, Raw) for part in seen)


@both
async def test_reasoning_is_replaced_in_the_same_way(kind: Kind) -> None:
    def check(view: View) -> Verdict:
        return replace("I thought.") if view.kind == "reasoning" else allow()

    result, _ = await gone(kind, [Policy(check)], whole(thought("a", id="r1"), text("Hi"), thought("b", id="r2")))
    assert result.content == (Reasoning("I thought."), Text("Hi"))


@both
async def test_text_and_reasoning_and_input_at_once(kind: Kind) -> None:
    result, _ = await gone(
        kind, [Policy(lambda view: replace(f"<{view.text}>"))], whole(thought("r"), text("t"), call("{}"))
    )
    assert result.content == (Reasoning("<r>"), Text("<t>"), ToolCall("c", "run", "<{}>"))


@both
async def test_a_replacement_may_be_empty(kind: Kind) -> None:
    result, _ = await gone(kind, [Policy(lambda view: replace(""))], whole(text("a"), text("b", id="1")))
    assert result.content == (Text(""),)


@both
@pytest.mark.parametrize("content", [[], [[Source("url", "s", url="https://example.org")]]], ids=["nothing", "source"])
async def test_what_replaces_silence_is_said_at_the_end(kind: Kind, content: Any) -> None:
    result, outcome = await gone(kind, [Policy(lambda view: replace("Nothing."))], whole(*content))
    assert (result.content[-1], len(result.content)) == (Text("Nothing."), len(content) + 1)
    assert codes(outcome) == [("replaced", "replaced")]


@both
async def test_a_replacement_that_is_no_text_is_a_failure(kind: Kind) -> None:
    result, _ = await gone(kind, [Policy(lambda view: replace(CallOptions.from_text("x")))], "Hi")
    assert result.finish_reason.raw == "middleware-failed"


# -- flag


@both
async def test_a_flagged_answer_passes_and_is_said(kind: Kind) -> None:
    result, outcome = await gone(kind, [Policy(lambda view: flag("odd"))], "Hi")
    assert (result.text, outcome.status, codes(outcome)) == ("Hi", "ok", [("flagged", "odd")])


# -- how it may be written


class Called:
    async def __call__(self, view: View) -> Verdict:
        await anyio.lowlevel.checkpoint()
        return bomb(view)


async def in_time(view: View) -> Verdict:
    return bomb(view)


def later(view: View) -> Awaitable[Verdict]:
    return in_time(view)


@both
@pytest.mark.parametrize("check", [bomb, in_time, Called(), later], ids=["sync", "async", "object", "later"])
async def test_a_check_may_be_sync_or_async_or_return_an_awaitable(kind: Kind, check: Any) -> None:
    assert codes((await gone(kind, [Policy(check)], "a bomb"))[1]) == [("denied", "word")]
    assert (await gone(kind, [Policy(check)], "Hi"))[0].text == "Hi"


@both
@pytest.mark.parametrize("blocking", [False, True])
async def test_a_sync_check_may_run_in_a_thread(kind: Kind, blocking: bool) -> None:
    assert codes((await gone(kind, [Use(Policy(bomb), blocking=blocking)], "a bomb"))[1]) == [("denied", "word")]


# -- failures


@both
@pytest.mark.parametrize("said", [None, True, "allow", allow], ids=["nothing", "bool", "text", "function"])
async def test_what_is_no_verdict_is_a_failure_and_denies(kind: Kind, said: Any) -> None:
    result, outcome = await gone(kind, [Policy(lambda view: said)], "secret")
    assert (result.text, result.finish_reason.raw) == (
        "This request could not be checked, so it was refused.",
        "middleware-failed",
    )
    assert [(one.error, one.handling) for one in failures(outcome)] == [("ConfigError", "deny")]


@both
async def test_an_action_that_does_not_exist_is_a_failure(kind: Kind) -> None:
    result, _ = await gone(kind, [Policy(lambda view: Verdict("block", "x"))], "secret")  # type: ignore[arg-type]
    assert result.finish_reason.raw == "middleware-failed"


@both
@pytest.mark.parametrize("use", [Use(Policy(fail)), Use(Policy(hang), timeout=0.01)], ids=["raises", "hangs"])
async def test_a_check_that_raises_or_takes_too_long_denies(kind: Kind, use: Use) -> None:
    result, _ = await gone(kind, [use], "secret")
    assert (result.finish_reason.raw, "secret" in everything(result)) == ("middleware-failed", False)


@both
async def test_its_place_may_raise_instead(kind: Kind) -> None:
    with pytest.raises(RuntimeError, match="broken"):
        await gone(kind, [Use(Policy(fail), on_error="raise")], "secret")


async def test_or_go_on_without_it() -> None:
    parts = whole(text("a", "b"), [Raw("raw")], call("{}"))
    seen, outcome = await streamed([Use(Policy(fail), on_error="skip")], parts)
    assert (seen, outcome.status) == (parts, "ok")
    result, _ = await gone("generate", [Use(Policy(fail), on_error="skip")], answer())
    assert result == answer()


def fails_on_text(verdict: Verdict) -> Any:
    """Says this of a tool call, and fails on everything else."""
    return lambda view: verdict if view.kind == "tool_call" else fail(view)


@both
@pytest.mark.parametrize("verdict", [deny("word"), replace('{"a": 1}')], ids=["denied", "replaced"])
@pytest.mark.parametrize("timeout", [None, 60])
async def test_but_not_once_it_has_decided_something(kind: Kind, verdict: Verdict, timeout: float | None) -> None:
    place = Use(Policy(fails_on_text(verdict)), on_error="skip", timeout=timeout)
    result, outcome = await gone(kind, [place], whole(text("Hi"), call("{bomb}")))
    assert (outcome.status, "bomb" in everything(result)) == ("denied", False)
    assert result.finish_reason.raw == "middleware-failed"
    assert [one.handling for one in failures(outcome)] == ["deny"]


@both
async def test_what_it_only_flagged_does_not_keep_it_from_being_skipped(kind: Kind) -> None:
    place = Use(Policy(fails_on_text(flag("odd"))), on_error="skip")
    result, outcome = await gone(kind, [place], whole(text("Hi"), call("{}")))
    assert (result.text, len(result.tool_calls), outcome.status) == ("Hi", 1, "ok")
    assert [one.handling for one in failures(outcome)] == ["skip"]


@pytest.mark.parametrize("options", [ASKED, IN_A_TURN], ids=["taken-out", "marked"])
async def test_a_call_that_it_denied_at_the_beginning_of_a_stream_is_not_given_out_after_all(
    options: CallOptions,
) -> None:
    place = Use(Policy(fails_on_text(deny("word"))), on_error="skip")
    seen, outcome = await streamed([place], whole(call("{bomb}"), text("Hi")), options)
    assert (outcome.status, leaky(seen, "bomb")) == ("denied", False)
    check_stream(seen)


# -- streams that end otherwise


async def test_an_error_part_and_a_finish_are_judged_and_released() -> None:
    error = ErrorPart(ServerError("cut"))
    end = Finish(FinishReason("error", "interrupted"), COST)
    parts = whole([TextStart("0"), TextDelta("0", "half "), error, TextEnd("0")], finish=end)
    assert (await streamed([Policy(bomb)], parts))[0] == parts
    denied = whole([TextStart("0"), TextDelta("0", "bomb"), error, TextEnd("0")], finish=end)
    seen, _ = await streamed([Policy(bomb)], denied)
    assert not leaky(seen, "bomb")
    check_stream(seen)


async def test_where_the_model_breaks_off_what_was_held_is_dropped() -> None:
    broken: list[Any] = [StreamStart(), TextStart("0"), TextDelta("0", "half "), ServerError("cut")]
    watch = Watch()
    model = wrap_model(ScriptedModel([broken]), [watch, Policy(bomb)])
    with pytest.raises(ServerError, match="cut"):
        await read(model)
    assert ([part.type for part in watch.parts], watch.only.status) == (["stream-start"], "error")


@pytest.mark.parametrize("word", ["calm", "bomb"])
async def test_a_stream_without_a_finish_is_judged_where_it_ends(word: str) -> None:
    parts = whole(text(word), finish=None)
    seen, outcome = await streamed([Policy(bomb)], parts)
    assert (seen == parts, codes(outcome)) == ((True, []) if word == "calm" else (False, [("denied", "word")]))
    assert not leaky(seen, "bomb")


async def test_text_outside_of_a_block_is_judged_all_the_same() -> None:
    seen, _ = await streamed([Policy(bomb)], [StreamStart(), TextDelta("lost", "a bomb"), STOP])
    assert not leaky(seen, "bomb")


@pytest.mark.parametrize("mode", [Hold(), Window(4), Pass()], ids=["hold", "window", "pass"])
async def test_somebodys_own_kind_of_part_is_judged_as_what_it_is(mode: Streaming) -> None:
    class Delta(TextDelta):
        __slots__ = ()

    class Call(ToolCall):
        __slots__ = ()

    policy = Policy(bomb, mode, allow_partial_release=True)
    _, outcome = await streamed([policy], whole([TextStart("0"), Delta("0", "a bomb"), TextEnd("0")]))
    assert codes(outcome) == [("denied", "word")]
    seen, _ = await streamed([policy], whole([Call("c", "run", "{bomb}")]))
    assert not leaky(seen, "bomb")


@both
async def test_a_policy_in_its_shortest_form(kind: Kind) -> None:
    class BlockWord(ResponsePolicy):
        def check(self, view: View) -> Verdict:
            return deny("blocked-word") if "bomb" in view.text else allow()

    assert (await gone(kind, [BlockWord()], "a bomb"))[1].status == "denied"
