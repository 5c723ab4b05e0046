"""`extract_reasoning`: what stands between tags is reasoning, however it comes, and no character is lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neurolink_mw import CallOptions, GenerateResult, LanguageModel, wrap_model
from neurolink_mw.errors import ConfigError, ServerError
from neurolink_mw.middlewares.extract_reasoning import Delimiters, ExtractReasoning, TagSplitter
from neurolink_mw.protocol import (
    Content,
    ErrorPart,
    Finish,
    FinishReason,
    JSONObject,
    Raw,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Source,
    StreamPart,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    collect,
    to_json,
)
from neurolink_mw.testing import ScriptedModel, check_middleware, check_stream, chunkings

pytestmark = pytest.mark.anyio
ASKED = CallOptions.from_text("Hello")
STOP = Finish(FinishReason("stop"))
LINK = Source("url", "s", url="https://example.org")
CALL: list[StreamPart] = [
    *(ToolInputStart("c", "look_up"), ToolInputDelta("c", "{}"), ToolInputEnd("c")),
    ToolCall("c", "look_up", "{}"),
]
THINK = Delimiters(opening="<think>", closing="</think>")


def block(*pieces: str, id: str = "0") -> list[StreamPart]:
    return [TextStart(id), *(TextDelta(id, piece) for piece in pieces), TextEnd(id)]


def whole(*items: StreamPart | Sequence[StreamPart], finish: Finish = STOP) -> list[StreamPart]:
    parts = (part for item in items for part in (item if isinstance(item, Sequence) else [item]))
    return [StreamStart(), *parts, finish]


def around(bare: LanguageModel, **config: Any) -> LanguageModel:
    return wrap_model(bare, [ExtractReasoning(**config)])


async def generated(reply: str | Sequence[StreamPart] | GenerateResult, **config: Any) -> list[Content]:
    result = await around(ScriptedModel([reply]), **config).do_generate(ASKED)
    return list(result.content)


async def streamed(reply: Sequence[StreamPart], **config: Any) -> list[StreamPart]:
    async with (await around(ScriptedModel([reply]), **config).do_stream(ASKED)).stream as stream:
        return [part async for part in stream]


def reasoning(*pieces: str, id: str = "reasoning-think-0") -> list[StreamPart]:
    return [ReasoningStart(id), *(ReasoningDelta(id, piece) for piece in pieces), ReasoningEnd(id)]


# -------------------------------------------------------------------------------------------------- what becomes what


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("<think>a</think>b", [Reasoning("a"), Text("b")]),
        ("x<think>a</think>y<think>b</think>z", [Text("x\ny\nz"), Reasoning("a"), Reasoning("\nb")]),
        ("<think>a</think><think>b</think>c", [Reasoning("a"), Reasoning("\nb"), Text("c")]),
        ("no tag at all", [Text("no tag at all")]),
        ("", [Text("")]),
        ("<think>cut off", [Reasoning("cut off")]),
        ("<think>cut off</thi", [Reasoning("cut off</thi")]),
        ("half a tag<thi", [Text("half a tag<thi")]),
        ("<", [Text("<")]),
        ("<think>nothing else</think>", [Reasoning("nothing else")]),
        ("<think></think>b", [Reasoning(""), Text("b")]),
        ("a</think>b", [Text("a</think>b")]),
        ("<think>a<think>b</think>c", [Reasoning("a<think>b"), Text("c")]),
        ("<<think>a</</think>>b", [Text("<\n>b"), Reasoning("a</")]),
        ("<THINK>a</THINK>b", [Text("<THINK>a</THINK>b")]),
    ],
)
async def test_what_stands_between_tags_is_reasoning(said: str, expected: list[Content]) -> None:
    assert await generated(said) == expected
    for pieces in ([said], list(said)):
        assert collect(await streamed(whole(block(*pieces)))).content == tuple(expected)


async def test_joined_reasoning_and_joined_text_have_the_separator_between_stretches() -> None:
    model = around(ScriptedModel("x<think>a</think>y<think>b</think>z"), separator=" | ")
    result = await model.do_generate(ASKED)
    assert (result.text, result.reasoning_text) == ("x | y | z", "a | b")


async def test_an_empty_stretch_takes_no_separator() -> None:
    assert await generated("<think></think><think>b</think>c") == [Reasoning(""), Reasoning("b"), Text("c")]


async def test_other_content_and_the_rest_of_the_answer_stay_as_they_are() -> None:
    answer = GenerateResult(
        (Reasoning("signed", {"acme": {"signature": "s"}}), Text("<think>a</think>b"), LINK),
        FinishReason("length"),
        provider_metadata={"acme": {"id": 1}},
    )
    model = around(ScriptedModel([answer]))
    expected = (answer.content[0], Reasoning("a"), Text("b"), LINK)
    assert await model.do_generate(ASKED) == answer.replace(content=expected)


async def test_each_block_of_text_stands_for_itself() -> None:
    answer = GenerateResult((Text("<think>a"), LINK, Text("b</think>"), Text("<think>c</think>d")))
    assert await generated(answer) == [Reasoning("a"), LINK, Text("b</think>"), Reasoning("c"), Text("d")]


async def test_reasoning_that_was_taken_out_of_text_is_not_signed() -> None:
    signed = GenerateResult((Text("<think>a</think>b", {"acme": {"signature": "s"}}),))
    assert await generated(signed) == [Reasoning("a"), Text("b", {"acme": {"signature": "s"}})]


# ------------------------------------------------------------------------------------------------------------ options


async def test_the_tag_may_have_another_name() -> None:
    assert await generated("<plan>a</plan><think>b</think>", tag_name="plan") == [
        Reasoning("a"),
        Text("<think>b</think>"),
    ]


async def test_delimiters_are_matched_as_they_are() -> None:
    marks = {"opening": "<|channel>thought\n", "closing": "<channel|>"}
    said = "<|channel>thought\na.*<channel|>b"
    assert await generated(said, tag_name=marks) == [Reasoning("a.*"), Text("b")]
    streaming = await streamed(whole(block(*said)), tag_name=marks)
    assert collect(streaming).content == (Reasoning("a.*"), Text("b"))


async def test_opening_and_closing_may_be_the_same() -> None:
    marks = Delimiters(opening="$$", closing="$$")
    assert await generated("$$a$$b$$c$", tag_name=marks) == [Reasoning("a"), Text("b"), Reasoning("\nc$")]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("a</think>b", [Reasoning("a"), Text("b")]),
        ("<think>a</think>b", [Reasoning("a"), Text("b")]),
        ("<think", [Reasoning("<think")]),
        ("<thin</think>b", [Reasoning("<thin"), Text("b")]),
        ("</think>b", [Reasoning(""), Text("b")]),
        ("no tag at all", [Reasoning("no tag at all")]),
        ("a</think>b<think>c</think>d", [Reasoning("a"), Text("b\nd"), Reasoning("\nc")]),
        ("", [Text("")]),
    ],
)
async def test_a_model_may_begin_in_the_middle_of_its_reasoning(said: str, expected: list[Content]) -> None:
    assert await generated(said, start_with_reasoning=True) == expected
    for pieces in ([said], list(said)):
        assert collect(await streamed(whole(block(*pieces)), start_with_reasoning=True)).content == tuple(expected)


async def test_only_the_first_block_begins_with_reasoning() -> None:
    answer = GenerateResult((Text("a</think>b"), LINK, Text("c")))
    assert await generated(answer, start_with_reasoning=True) == [Reasoning("a"), Text("b"), LINK, Text("c")]
    parts = whole(block("a</think>b"), LINK, block("c", id="1"))
    assert list(collect(await streamed(parts, start_with_reasoning=True)).content) == [
        *(Reasoning("a"), Text("b"), LINK, Text("c"))
    ]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"tag_name": ""}, "tag_name.*the name of a tag has no brackets"),
        ({"tag_name": "<think>"}, "tag_name.*the name of a tag has no brackets"),
        ({"tag_name": {"opening": "", "closing": "b"}}, "opening: string should have at least 1 character"),
        ({"tag_name": {"opening": "a"}}, "closing: field required"),
        ({"tag_nam": "think"}, "tag_nam: there is no such option; did you mean 'tag_name'"),
    ],
)
def test_a_bad_option_is_found_when_the_member_is_made(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ExtractReasoning(**config)


# ------------------------------------------------------------------------------------------------------------ streams


async def test_reasoning_that_comes_first_stands_before_the_start_of_the_text() -> None:
    parts = whole(block("<think>", "a", "</think>", "b"))
    assert await streamed(parts) == whole(reasoning("a"), block("b"))


async def test_reasoning_ends_as_soon_as_its_tag_does() -> None:
    parts = whole([TextStart("0"), TextDelta("0", "<think>a</think>"), *CALL, TextDelta("0", "b"), TextEnd("0")])
    assert await streamed(parts) == whole(reasoning("a"), CALL, block("b"))


async def test_a_tool_call_passes_through_an_open_reasoning() -> None:
    parts = whole([TextStart("0"), TextDelta("0", "<think>a"), *CALL, TextDelta("0", "b"), TextEnd("0")])
    first, *rest = reasoning("a", "b")
    assert await streamed(parts) == whole([first, rest[0], *CALL, *rest[1:]])


async def test_only_what_may_become_a_tag_waits() -> None:
    parts = whole(block("a<b", "c<", "think", ">d</t", "e"))
    assert await streamed(parts) == whole(
        [TextStart("0"), TextDelta("0", "a<b"), TextDelta("0", "c")],
        [ReasoningStart("reasoning-think-0"), ReasoningDelta("reasoning-think-0", "d")],
        [ReasoningDelta("reasoning-think-0", "</te"), ReasoningEnd("reasoning-think-0"), TextEnd("0")],
    )


async def test_each_stretch_is_a_block_with_an_id_of_its_own() -> None:
    parts = whole(reasoning("p", id="reasoning-think-0"), block("<think>a</think>b<think>c</think>"))
    made = await streamed(parts)
    check_stream(made)
    assert [part.id for part in made if isinstance(part, ReasoningStart)] == [
        *("reasoning-think-0", "reasoning-think-1", "reasoning-think-2")
    ]


async def test_extractors_of_two_tags_one_around_the_other_make_ids_of_their_own() -> None:
    inner = around(ScriptedModel([whole(block("<plan>p</plan>", "<think>a</think>b"))]), separator="")
    async with (await around(inner, tag_name="plan").do_stream(ASKED)).stream as stream:
        made = [part async for part in stream]
    check_stream(made)
    assert collect(made).content == (Reasoning("p"), Reasoning("a"), Text("b"))


async def test_interleaved_blocks_are_kept_apart() -> None:
    parts = whole(
        [TextStart("a"), TextDelta("a", "<thi"), TextStart("b"), TextDelta("b", "<think>q")],
        [TextDelta("a", "nk>p</think>x"), TextDelta("b", "</think>y"), TextEnd("a"), TextEnd("b")],
    )
    made = await streamed(parts)
    check_stream(made)
    assert collect(made).content == (Reasoning("q"), Reasoning("p"), Text("x"), Text("y"))


async def test_an_id_that_the_source_uses_again_is_a_new_block() -> None:
    parts = whole(block("<think>a"), block("b"))
    assert await streamed(parts) == whole(reasoning("a"), block("b"))


async def test_a_delta_of_a_block_that_never_began_is_left_out() -> None:
    assert await streamed(whole(TextDelta("0", "<think>a</think>"), TextEnd("1"))) == whole(TextEnd("1"))


async def test_raw_parts_pass_as_they_are_and_are_not_scanned() -> None:
    raw = Raw({"text": "<think>raw</think>"})
    made = await streamed(whole(raw, [TextStart("0"), raw, TextDelta("0", "<think>a"), raw, TextEnd("0")]))
    assert [part for part in made if part is raw] == [raw] * 3
    assert collect(made).content == (Reasoning("a"),)


# --------------------------------------------------------------------------------------------------------- metadata


async def test_metadata_rides_on_start_delta_and_end() -> None:
    parts = whole(
        TextStart("0", {"a": {"start": 1}}),
        TextDelta("0", "x", {"a": {"delta": 1}}, {"field": 1}),
        TextEnd("0", {"b": {"end": 1}}),
    )
    assert await streamed(parts) == parts


async def test_metadata_of_a_piece_without_text_rides_on_an_empty_one() -> None:
    parts = whole(
        [TextStart("0"), TextDelta("0", "x<think>"), TextDelta("0", "a", {"m": {"citation": 1}})],
        [TextDelta("0", "</think>"), TextEnd("0")],
    )
    assert TextDelta("0", "", {"m": {"citation": 1}}) in await streamed(parts)


async def test_metadata_that_comes_while_the_start_waits_rides_on_the_start() -> None:
    parts = whole(
        [TextStart("0", {"m": {"a": 1}}), TextDelta("0", "<think>", {"n": {"b": 1}}), TextDelta("0", "a</think>")],
        [TextDelta("0", "b"), TextEnd("0")],
    )
    assert await streamed(parts) == whole(
        reasoning("a"), [TextStart("0", {"m": {"a": 1}, "n": {"b": 1}}), TextDelta("0", "b"), TextEnd("0")]
    )


@pytest.mark.parametrize("carrier", ["start", "delta", "end"])
async def test_a_block_of_nothing_but_reasoning_stays_where_it_carries_metadata(carrier: str) -> None:
    mark: JSONObject = {"m": {"signature": "s"}}
    parts = whole(
        TextStart("0", mark if carrier == "start" else None),
        TextDelta("0", "<think>a</think>", mark if carrier == "delta" else None),
        TextEnd("0", mark if carrier == "end" else None),
    )
    made = await streamed(parts)
    check_stream(made)
    assert list(collect(made).content) == await generated(parts) == [Reasoning("a"), Text("", mark)]


# ----------------------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("held", "released"),
    [
        ("x<thi", Text("x<thi")),
        ("<think>a</thi", Reasoning("a</thi")),
        ("<thi", Text("<thi")),
        ("<think>", Reasoning("")),
    ],
)
async def test_what_is_held_is_released_at_the_finish_of_a_source_that_never_ends_its_block(
    held: str, released: Content
) -> None:
    parts: list[StreamPart] = [StreamStart(), TextStart("0"), TextDelta("0", held), ErrorPart(ServerError("cut")), STOP]
    made = await streamed(parts)
    assert list(collect(made).content) == await generated(parts) == [released]
    assert made[-1] == STOP
    starts, ends = ([part for part in made if isinstance(part, kind)] for kind in (ReasoningStart, ReasoningEnd))
    assert len(starts) == len(ends)


async def test_what_is_held_is_released_where_a_source_stops_without_a_finish() -> None:
    made = await streamed([StreamStart(), TextStart("0"), TextDelta("0", "x<thi")])
    assert made == [StreamStart(), TextStart("0"), TextDelta("0", "x"), TextDelta("0", "<thi")]


async def test_a_block_that_begins_again_before_its_end_loses_nothing() -> None:
    parts = [StreamStart(), TextStart("0"), TextDelta("0", "x<thi"), *block("y"), STOP]
    assert collect(await streamed(parts)).text == "x<thiy"


async def test_an_error_part_is_passed_on_at_once() -> None:
    error = ErrorPart(ServerError("overloaded"))
    finish = Finish(FinishReason("error"))
    parts = whole([TextStart("0"), TextDelta("0", "a<"), error, TextDelta("0", "b"), TextEnd("0")], finish=finish)
    assert await streamed(parts) == whole(
        [TextStart("0"), TextDelta("0", "a"), error, TextDelta("0", "<b"), TextEnd("0")], finish=finish
    )


async def test_what_is_held_when_the_source_fails_is_not_sent() -> None:
    bare = ScriptedModel([[StreamStart(), TextStart("0"), TextDelta("0", "a<thi"), ServerError("cut")]])
    async with (await around(bare).do_stream(ASKED)).stream as stream:
        seen = [await stream.__anext__() for _ in range(3)]
        with pytest.raises(ServerError):
            await stream.__anext__()
    assert seen == [StreamStart(), TextStart("0"), TextDelta("0", "a")]


async def test_a_caller_who_leaves_closes_the_models_stream() -> None:
    bare = ScriptedModel([whole(block("<think>a</think>", "b"))])
    async with (await around(bare).do_stream(ASKED)).stream as stream:
        await stream.__anext__()
    assert bare.calls[0].closed == 1


# --------------------------------------------------------------------------------------------------------- properties

quick = settings(max_examples=300, deadline=None, database=None, derandomize=True)
crumbs = st.sampled_from(["<think>", "</think>", "<", "</", "think>", "<thi", "nk>", "</thin", "a", "b ", "\n"])
texts = st.lists(crumbs, max_size=10).map("".join)
in_pieces = texts.flatmap(lambda text: st.tuples(st.just(text), chunkings(text)))
configs = st.fixed_dictionaries({"start_with_reasoning": st.booleans(), "separator": st.sampled_from(["\n", ""])})


@quick
@given(in_pieces, configs)
def test_a_stream_adds_up_to_what_is_generated_however_it_is_cut(
    said: tuple[str, list[str]], config: dict[str, Any]
) -> None:
    text, pieces = said
    made = anyio.run(lambda: streamed(whole(block(*pieces)), **config))
    check_stream(made)
    assert list(collect(made).content) == anyio.run(lambda: generated(text, **config))


@quick
@given(in_pieces, st.booleans())
def test_a_text_is_the_tags_and_what_is_told_of_it(said: tuple[str, list[str]], inside: bool) -> None:
    text, pieces = said
    splitter = TagSplitter(THINK, inside=inside)
    told = [one for piece in pieces for one in splitter.feed(piece)] + splitter.end()
    tags = {"reasoning": THINK.opening, "text": THINK.closing}
    rebuilt = "".join(piece or tags[channel] for channel, piece in told)
    assert rebuilt in (text, THINK.opening + text if inside else text)


marks = st.none() | st.fixed_dictionaries({"m": st.fixed_dictionaries({"k": st.integers(0, 3)})})


@st.composite
def side_by_side(draw: st.DrawFn) -> list[StreamPart]:
    """Blocks whose pieces come in any order between each other, each with or without metadata; some never end."""
    queues: list[list[StreamPart]] = []
    for id in ("0", "1", "2"):
        text = draw(texts)
        deltas = [TextDelta(id, piece, draw(marks)) for piece in draw(chunkings(text))]
        queue: list[StreamPart] = [TextStart(id, draw(marks)), *deltas, TextEnd(id, draw(marks))]
        queues.append(queue[: draw(st.integers(0, 20))])
    parts: list[StreamPart] = []
    while waiting := [queue for queue in queues if queue]:
        parts.append(draw(st.sampled_from(waiting)).pop(0))
    return whole(parts)


@quick
@given(side_by_side(), configs)
def test_blocks_side_by_side_add_up_to_what_is_generated(parts: list[StreamPart], config: dict[str, Any]) -> None:
    made = anyio.run(lambda: streamed(parts, **config))
    assert in_any_order(collect(made).content) == in_any_order(anyio.run(lambda: generated(parts, **config)))


def in_any_order(content: Sequence[Content]) -> list[str]:
    return sorted(json.dumps(to_json(item), sort_keys=True) for item in content)


def test_it_keeps_the_contract_of_middlewares() -> None:
    answers = ["<think>a</think>b", "x<think>a", "x</think>y<thi", "<think>a</think>", "<th"]
    check_middleware(ExtractReasoning, answers=answers)
    check_middleware(lambda: ExtractReasoning(start_with_reasoning=True), answers=answers)
