"""Text transforms: the same text comes out of every road, and what told of the old one is gone."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import Any

import anyio
import pytest
from tests.pipeline.builders import ASKED, STOP, read
from trio.testing import MockClock

from neurolink_mw.errors import ServerError
from neurolink_mw.pipeline import Use, wrap_model
from neurolink_mw.protocol import (
    ErrorPart,
    Finish,
    FinishReason,
    GenerateResult,
    Kind,
    Raw,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ResponseInfo,
    StreamPart,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
    collect,
    parts_of,
)
from neurolink_mw.roles import RegexTransform, TextTransform
from neurolink_mw.testing import ScriptedModel, check_stream

from .builders import (
    Rewrites,
    call,
    codes,
    decisions,
    everything,
    failures,
    gone,
    leaky,
    streamed,
    text,
    thought,
    whole,
)

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])
SIGNED: dict[str, Any] = {"acme": {"signature": "s"}}
ALL = ("text", "reasoning", "tool_input")


def stars(value: str) -> str:
    return value.replace("bomb", "****")


async def stars_in_time(value: str) -> str:
    await anyio.lowlevel.checkpoint()
    return stars(value)


def sync(applies_to: Any = ("text",)) -> Rewrites:
    return Rewrites(stars, 4, applies_to)


def slow(applies_to: Any = ("text",)) -> Rewrites:
    return Rewrites(stars_in_time, None, applies_to)


def pattern(applies_to: Any = ("text",)) -> RegexTransform:
    return RegexTransform("bomb", "****", applies_to=applies_to)


every = pytest.mark.parametrize("make", [sync, slow, pattern])


# -- text


@both
@every
async def test_a_text_becomes_another_one_however_it_is_cut(kind: Kind, make: Any) -> None:
    result, outcome = await gone(kind, [make()], whole(text(*"a bomb and a bomb")))
    assert (result.text, result.finish_reason) == ("a **** and a ****", STOP.finish_reason)
    assert [(one.action, one.code, one.subject) for one in decisions(outcome)] == [("replaced", "transformed", "text")]


@every
async def test_a_thousand_deltas_of_one_character(make: Any) -> None:
    said = ("one bomb, " * 100)[:1000]
    seen, _ = await streamed([make()], whole(text(*said)))
    check_stream(seen)
    assert collect(seen).text == stars(said)


@both
@every
async def test_where_nothing_changes_nothing_is_said(kind: Kind, make: Any) -> None:
    result, outcome = await gone(kind, [make(ALL)], whole(thought("hm"), text("calm"), call("{}")))
    assert (result.content, codes(outcome)) == ((Reasoning("hm"), Text("calm"), ToolCall("c", "run", "{}")), [])


@every
async def test_blocks_that_interleave_are_rewritten_each_by_itself(make: Any) -> None:
    first, second = text("a bo", "mb ", id="a"), text("bo", "m", "b", id="b")
    mixed = [first[0], second[0], first[1], second[1], first[2], second[2], second[3], second[4], first[3]]
    seen, _ = await streamed([make()], whole(mixed))
    check_stream(seen)
    assert collect(seen).content == (Text("a **** "), Text("****"))


@every
async def test_a_match_over_two_blocks_is_none(make: Any) -> None:
    seen, _ = await streamed([make()], whole(text("bo"), text("mb", id="1")))
    assert collect(seen).content == (Text("bo"), Text("mb"))


@every
async def test_metadata_on_the_start_the_pieces_and_the_end_is_kept(make: Any) -> None:
    block: list[StreamPart] = [
        TextStart("0", {"a": {"at": 1}}),
        TextDelta("0", "a bo", {"b": {"at": 2}}),
        TextDelta("0", "", {"c": {"at": 3}}),
        TextDelta("0", "mb"),
        TextEnd("0", {"d": {"at": 4}}),
    ]
    seen, _ = await streamed([make()], whole(block))
    assert collect(seen).content == (Text("a ****", {name: {"at": at} for at, name in enumerate("abcd", 1)}),)
    assert collect(seen).content == (await gone("generate", [make()], whole(block)))[0].content


@both
@every
async def test_raw_chunks_and_the_native_response_are_left_out(kind: Kind, make: Any) -> None:
    body: Any = {"text": "a bomb"}
    stored = GenerateResult((Text("a bomb"),), STOP.finish_reason, response=ResponseInfo(id="1", body=body))
    model = wrap_model(ScriptedModel([stored]), [make()])
    if kind == "generate":
        answer: Any = await model.do_generate(ASKED)
    else:
        answer = await model.do_stream(ASKED)
        seen = [part async for part in answer.stream]
        assert not leaky(seen, "bomb")
        assert not leaky((await streamed([make()], whole([Raw(body)], text("a bomb"))))[0], "bomb")
    assert (answer.response.id, answer.response.body) == ("1", None)


@every
async def test_several_stand_around_each_other(make: Any) -> None:
    outer = Rewrites(lambda value: value.replace("****", "[gone]"), 4, id="outer")
    seen, outcome = await streamed([outer, make()], whole(text(*"a bomb and a bomb")))
    assert collect(seen).text == "a [gone] and a [gone]"
    assert codes(outcome) == [("replaced", "transformed")] * 2


# -- tool input


@both
@every
async def test_the_pieces_of_an_input_and_the_call_agree(kind: Kind, make: Any) -> None:
    parts = whole([*call('{"q": "a bomb"}'), ToolCall("p", "web", "bomb", True), ToolCall("e", "run", "")])
    result, outcome = await gone(kind, [make(["tool_input"])], parts)
    assert [one.input for one in result.tool_calls] == ['{"q": "a ****"}', "****", ""]
    assert [one.subject for one in decisions(outcome)] == ["tool_call"]
    seen, _ = await streamed([make(["tool_input"])], parts)
    assert "".join(part.delta for part in seen if isinstance(part, ToolInputDelta)) == '{"q": "a ****"}'


@both
@every
async def test_a_call_without_pieces_that_changes_is_said_too(kind: Kind, make: Any) -> None:
    _, outcome = await gone(kind, [make(["tool_input"])], whole([ToolCall("c", "run", "bomb")]))
    assert codes(outcome) == [("replaced", "transformed")]


# -- reasoning


@both
@every
async def test_reasoning_that_changes_loses_what_was_made_for_the_old(kind: Kind, make: Any) -> None:
    block: list[StreamPart] = [
        ReasoningStart("r", SIGNED),
        ReasoningDelta("r", "a bo", SIGNED),
        ReasoningDelta("r", "mb"),
        ReasoningDelta("r", "", SIGNED),
        ReasoningEnd("r", SIGNED),
    ]
    result, outcome = await gone(kind, [make(ALL)], whole(block, text("so")))
    assert result.content == (Reasoning("a ****"), Text("so"))
    assert [one.subject for one in decisions(outcome)] == ["reasoning"]


@both
@every
async def test_reasoning_that_stays_keeps_its_signature_and_its_parts(kind: Kind, make: Any) -> None:
    block: list[StreamPart] = [*thought("h", "m")[:-1], ReasoningDelta("r", "", SIGNED), ReasoningEnd("r")]
    result, _ = await gone(kind, [make(ALL)], whole(block))
    assert result.content == (Reasoning("hm", SIGNED),)
    assert (await streamed([make(["reasoning"])], whole(block)))[0] == whole(block)


@every
async def test_and_so_does_a_replayed_answer_whose_signature_stands_on_the_start(make: Any) -> None:
    stored = GenerateResult((Reasoning("hm", SIGNED), Reasoning("bomb", SIGNED), Text("Hi")), STOP.finish_reason)
    for script in (stored, list(parts_of(stored))):
        for kind in ("generate", "stream"):
            result, _ = await gone(kind, [make(ALL)], script)
            assert result.content == (Reasoning("hm", SIGNED), Reasoning("****"), Text("Hi"))


@every
async def test_what_is_behind_reasoning_waits_for_it(make: Any) -> None:
    mixed: list[StreamPart] = [ReasoningStart("r"), *text("Hi"), ReasoningDelta("r", "a bomb"), ReasoningEnd("r")]
    seen, _ = await streamed([make(["reasoning"])], whole(mixed))
    assert [part.type for part in seen[1:5]] == ["reasoning-start", "reasoning-delta", "text-start", "text-delta"]
    assert collect(seen).content == (Reasoning("a ****"), Text("Hi"))


# -- streams that end otherwise


@every
@pytest.mark.parametrize("finish", [Finish(FinishReason("error", "interrupted")), None], ids=["finish", "none"])
async def test_a_stream_that_was_cut_is_rewritten_as_far_as_it_came(make: Any, finish: Finish | None) -> None:
    begun: list[StreamPart] = [
        *(ReasoningStart("r"), ReasoningDelta("r", "a bomb")),
        *(TextStart("0"), TextDelta("0", "a bo"), TextDelta("0", "mb")),
        *(ToolInputStart("c", "run"), ToolInputDelta("c", "{bomb")),
        ErrorPart(ServerError("cut")),
    ]
    seen, outcome = await streamed([make(ALL)], whole(begun, finish=finish))
    assert not leaky(seen, "bomb")
    assert everything(seen).count("****") == 3
    assert sorted(one.subject for one in decisions(outcome)) == ["reasoning", "text", "tool_call"]


@every
async def test_pieces_of_no_block_are_rewritten_too(make: Any) -> None:
    lost: list[StreamPart] = [*(ReasoningDelta("r", piece) for piece in ("bo", "mb")), TextDelta("0", "bomb")]
    seen, _ = await streamed([make(ALL)], whole(lost))
    assert not leaky(seen, "bo")
    assert everything(seen).count("****") == 2


@every
async def test_where_the_model_breaks_off_what_was_held_is_dropped(make: Any) -> None:
    broken: list[Any] = [StreamStart(), TextStart("0"), TextDelta("0", "bo"), ServerError("cut")]
    with pytest.raises(ServerError, match="cut"):
        await read(wrap_model(ScriptedModel([broken]), [make(ALL)]))


# -- how it may be written, and what fails


@both
async def test_one_that_is_sync_and_returns_an_awaitable_is_told_to_be_async(kind: Kind) -> None:
    def later(value: str) -> Awaitable[str]:
        return stars_in_time(value)

    with pytest.raises(Exception, match="declared with `async def`"):
        await gone(kind, [Rewrites(later, 4)], "a bomb")


@both
@pytest.mark.parametrize("made", [None, 5, b"text"])
async def test_what_is_no_text_is_a_failure(kind: Kind, made: Any) -> None:
    async def in_time(value: str) -> Any:
        return made

    for transform in (Rewrites(lambda value: made, 4), Rewrites(in_time)):
        with pytest.raises(Exception, match=r"rewrites\.transform returned .*, not a text"):
            await gone(kind, [transform], "a bomb")


@both
async def test_its_place_may_refuse_where_it_fails(kind: Kind) -> None:
    def broken(value: str) -> str:
        raise RuntimeError(value)

    result, outcome = await gone(kind, [Use(Rewrites(broken, 4), on_error="deny")], "a bomb")
    assert (result.finish_reason.raw, failures(outcome)[0].error) == ("middleware-failed", "RuntimeError")


@both
async def test_in_its_shortest_form(kind: Kind) -> None:
    class RedactEmail(TextTransform):
        lookahead = 64

        def transform(self, text: str) -> str:
            return re.sub(r"[\w.]{1,30}@[\w.]{1,30}", "[email]", text)

    result, _ = await gone(kind, [RedactEmail()], whole(text("write to ada@", "example.org", " today")))
    assert result.text == "write to [email] today"


# -- shadow


@both
@every
async def test_in_shadow_nothing_changes_and_the_finding_says_what_would_have(kind: Kind, make: Any) -> None:
    parts = whole([Raw("a bomb")], thought("hm"), text("a bo", "mb"), call("{bomb}"))
    result, outcome = await gone(kind, [Use(make(ALL), mode="shadow")], parts)
    assert result == collect(parts)
    assert [(one.subject, one.shadow) for one in decisions(outcome)] == [("text", True), ("tool_call", True)]
    if kind == "stream":
        assert (await streamed([Use(make(ALL), mode="shadow")], parts))[0] == parts


@every
async def test_in_shadow_a_stream_without_a_finish_is_looked_at_too(make: Any) -> None:
    parts = whole(text("a bomb"), finish=None)
    seen, outcome = await streamed([Use(make(), mode="shadow")], parts)
    assert (seen, codes(outcome)) == (parts, [("replaced", "transformed")])


@both
@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": MockClock(autojump_threshold=0)})], ids=["trio"])
async def test_in_shadow_one_that_hangs_is_left_behind(kind: Kind) -> None:
    async def hang(value: str) -> str:
        await anyio.sleep_forever()
        return value

    result, outcome = await gone(kind, [Use(Rewrites(hang), mode="shadow")], "Hi")
    assert (result.text, [one.error for one in failures(outcome)]) == ("Hi", ["TimeoutError"])
