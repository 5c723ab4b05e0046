"""`extract_json`: one code fence around the whole text goes, and nothing else."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neurolink_mw import CallOptions, GenerateResult, LanguageModel, wrap_model
from neurolink_mw.errors import ConfigError, ServerError
from neurolink_mw.middlewares.extract_json import ExtractJson, FenceRemover
from neurolink_mw.middlewares.extract_reasoning import ExtractReasoning
from neurolink_mw.protocol import (
    ErrorPart,
    Finish,
    FinishReason,
    Raw,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamPart,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    collect,
)
from neurolink_mw.testing import ScriptedModel, check_middleware, check_stream, chunkings

pytestmark = pytest.mark.anyio
ASKED = CallOptions.from_text("Hello")
STOP = Finish(FinishReason("stop"))
FENCED = '```json\n{"a": 1}\n```'


def block(*pieces: str, id: str = "0") -> list[StreamPart]:
    return [TextStart(id), *(TextDelta(id, piece) for piece in pieces), TextEnd(id)]


def whole(*items: StreamPart | Sequence[StreamPart], finish: Finish = STOP) -> list[StreamPart]:
    parts = (part for item in items for part in (item if isinstance(item, Sequence) else [item]))
    return [StreamStart(), *parts, finish]


def around(bare: LanguageModel, **config: Any) -> LanguageModel:
    return wrap_model(bare, [ExtractJson(**config)])


async def generated(reply: str | Sequence[StreamPart] | GenerateResult, **config: Any) -> GenerateResult:
    return await around(ScriptedModel([reply]), **config).do_generate(ASKED)


async def streamed(reply: Sequence[StreamPart], **config: Any) -> list[StreamPart]:
    async with (await around(ScriptedModel([reply]), **config).do_stream(ASKED)).stream as stream:
        return [part async for part in stream]


def unfenced(*pieces: str) -> str:
    remover = FenceRemover()
    return "".join(map(remover.delta, pieces)) + remover.end()


# ------------------------------------------------------------------------------------------------------ what is a fence


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (FENCED, '{"a": 1}'),
        ("```\n[1]\n```", "[1]"),
        ("```JSON\n[1]\n```", "[1]"),
        ("``` Json \r\n[1]\r\n```\r\n", "[1]"),
        ("\n  ```json\n\n[1]\n\n```  \n\n", "[1]"),
        ("```json[1]```", "[1]"),
        ('```json {"a": 1} ```', '{"a": 1}'),
        ('```"text"```', '"text"'),
        ('```json\n{"a": "```"}\n```', '{"a": "```"}'),
        ('```json\n{"a": "`` ```js\\n"}\n```', '{"a": "`` ```js\\n"}'),
        ("```json\n1````", "1`"),
        ("```json\n```", ""),
        ("```json\ntrue\n```", "true"),
    ],
)
async def test_a_fence_around_the_whole_text_goes_with_the_blanks_around_it(said: str, left: str) -> None:
    assert (await generated(said)).text == left
    for pieces in ([said], list(said)):
        assert collect(await streamed(whole(block(*pieces)))).text == left


@pytest.mark.parametrize(
    "said",
    [
        "",
        "  \n",
        '  {"a": 1}\n',
        f"Here you are:\n{FENCED}",
        f"Here you are:\n{FENCED}\nAnything else?",
        "```python\nprint()\n```",
        "```jsonnet\n{}\n```",
        "```json5\n{}\n```",
        "```javascript\n{}\n```",
        "```json it is\n```",
        "``\n[1]\n``",
        "````\n[1]\n````",
        '{"a": 1}\n```',
        "`",
        "```",
        "```json",
        " ``` ",
    ],
)
async def test_a_text_without_a_fence_around_it_is_left_as_it_is(said: str) -> None:
    assert (await generated(said)).text == said
    for pieces in ([said], list(said)):
        assert collect(await streamed(whole(block(*pieces)))).text == said


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ('```json\n{"a": 1, ', '{"a": 1, '),
        ('```json\n{"a": 1}\n``', '{"a": 1}\n``'),
        ('```json\n{"a": 1}\n', '{"a": 1}\n'),
        ("```json\n", ""),
        ("```json\n[1]\n```\nAnything else?", "[1]\n```\nAnything else?"),
        ("```json\n[1]\n```\n```json\n[2]\n```", "[1]\n```\n```json\n[2]"),
    ],
)
async def test_an_opening_fence_goes_at_once_and_only_the_end_of_the_text_is_a_closing_one(
    said: str, left: str
) -> None:
    assert (await generated(said)).text == left
    for pieces in ([said], list(said)):
        assert collect(await streamed(whole(block(*pieces)))).text == left


async def test_blanks_are_never_taken_off_after_text_has_left() -> None:
    assert unfenced("```json\n", "[1,", " 2,", "\n  ", "3", "]", "\n", "```") == "[1, 2,\n  3]"


# ------------------------------------------------------------------------------------------------------------ streams


async def test_only_what_may_become_a_fence_waits() -> None:
    assert await streamed(whole(block("``", "`js", "on\n", "[1", "\n", ", 2]\n`", "`", "`\n", " "))) == whole(
        block("[1", "\n, 2]")
    )
    plain = whole(block("{", '"a": "', "```", '"}', "\n```"))
    assert await streamed(plain) == plain


async def test_each_block_of_text_has_a_fence_of_its_own() -> None:
    answer = GenerateResult((Text(FENCED), Reasoning("```json\nhm\n```"), Text("```\n[2]\n```")))
    assert (await generated(answer)).content == (Text('{"a": 1}'), Reasoning("```json\nhm\n```"), Text("[2]"))


async def test_interleaved_blocks_are_kept_apart() -> None:
    parts = whole(
        [
            TextStart("a"),
            TextDelta("a", "```js"),
            TextStart("b"),
            TextDelta("b", "```\n[2"),
            TextDelta("a", "on\n[1]\n``"),
        ],
        [TextDelta("b", "]```"), TextEnd("b"), TextDelta("a", "`"), TextEnd("a")],
    )
    made = await streamed(parts)
    check_stream(made)
    assert collect(made).content == (Text("[1]"), Text("[2]"))


async def test_metadata_rides_on_start_delta_and_end() -> None:
    parts = whole(
        TextStart("0", {"m": {"start": 1}}),
        TextDelta("0", "```json\n", {"m": {"fence": 1}}),
        TextDelta("0", "[1]", {"m": {"text": 1}}, {"field": 1}),
        TextDelta("0", "\n```", {"m": {"close": 1}}),
        TextEnd("0", {"m": {"end": 1}}),
    )
    assert await streamed(parts) == whole(
        TextStart("0", {"m": {"start": 1}}),
        TextDelta("0", "", {"m": {"fence": 1}}),
        TextDelta("0", "[1]", {"m": {"text": 1}}, {"field": 1}),
        TextDelta("0", "", {"m": {"close": 1}}),
        TextEnd("0", {"m": {"end": 1}}),
    )


async def test_the_rest_of_the_answer_stays_as_it_is() -> None:
    answer = GenerateResult(
        (Text(FENCED, {"m": {"id": 1}}),), FinishReason("length"), provider_metadata={"m": {"id": 2}}
    )
    assert await generated(answer) == answer.replace(content=[Text('{"a": 1}', {"m": {"id": 1}})])


async def test_reasoning_and_raw_parts_and_ends_of_no_block_pass_as_they_are() -> None:
    thought: list[StreamPart] = [ReasoningStart("r"), ReasoningDelta("r", "```json\nhm\n```"), ReasoningEnd("r")]
    parts = whole(thought, Raw({"text": FENCED}), TextEnd("2"))
    assert await streamed(parts) == parts


# ----------------------------------------------------------------------------------------------------------- failures


HALVES = ["``", "```json\n[1]\n``", " ", "```jso"]


@pytest.mark.parametrize("held", HALVES)
async def test_an_error_part_without_the_end_of_the_block_loses_nothing(held: str) -> None:
    error = ErrorPart(ServerError("cut"))
    made = await streamed([StreamStart(), TextStart("0"), TextDelta("0", held), error, Finish(FinishReason("error"))])
    assert error in made
    assert made[-1] == Finish(FinishReason("error"))
    assert collect(made).text == unfenced(held) == (await generated(held)).text


@pytest.mark.parametrize("held", HALVES)
async def test_a_source_that_stops_without_a_finish_loses_nothing(held: str) -> None:
    made = await streamed([StreamStart(), TextStart("0"), TextDelta("0", held)])
    assert collect(made).text == unfenced(held)


async def test_what_is_held_when_the_source_fails_is_not_sent() -> None:
    bare = ScriptedModel([[StreamStart(), TextStart("0"), TextDelta("0", "```json\n[1]\n"), ServerError("cut")]])
    async with (await around(bare).do_stream(ASKED)).stream as stream:
        seen = [await stream.__anext__() for _ in range(3)]
        with pytest.raises(ServerError):
            await stream.__anext__()
    assert seen == [StreamStart(), TextStart("0"), TextDelta("0", "[1]")]


async def test_a_caller_who_leaves_closes_the_models_stream() -> None:
    bare = ScriptedModel([whole(block(FENCED))])
    async with (await around(bare).do_stream(ASKED)).stream as stream:
        await stream.__anext__()
    assert bare.calls[0].closed == 1


# ---------------------------------------------------------------------------------------------------------- transform


def between_braces(text: str) -> str:
    return text[text.index("{") : text.rindex("}") + 1]


async def test_a_transform_gets_each_block_whole_and_replaces_the_usual_rule() -> None:
    said = f"Here: {FENCED} Done."
    assert (await generated(said, transform=between_braces)).text == '{"a": 1}'
    assert await streamed(whole(block(*said)), transform=between_braces) == whole(block('{"a": 1}'))
    assert (await generated(FENCED, transform=str.upper)).text == FENCED.upper()


async def test_a_transform_is_not_asked_about_nothing() -> None:
    assert (await generated("", transform=between_braces)).text == ""
    assert await streamed(whole(block()), transform=between_braces) == whole(block())


async def test_a_block_that_breaks_off_goes_through_the_transform_before_the_finish() -> None:
    finish = Finish(FinishReason("error"))
    error = ErrorPart(ServerError("cut"))
    parts: list[StreamPart] = [StreamStart(), TextStart("0"), TextDelta("0", "x {} y"), error, finish]
    assert await streamed(parts, transform=between_braces) == [
        *(StreamStart(), TextStart("0"), error, TextDelta("0", "{}"), finish)
    ]


async def test_a_transform_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("acme_json")
    module.between_braces = between_braces  # type: ignore[attr-defined]  # a module of one function
    monkeypatch.setitem(sys.modules, "acme_json", module)
    assert (await generated("x {} y", transform="acme_json:between_braces")).text == "{}"


async def test_a_transform_that_returns_no_text_is_named_without_what_it_got() -> None:
    for call in (lambda: generated("secret", transform=len), lambda: streamed(whole(block("secret")), transform=len)):
        with pytest.raises(ConfigError, match=r"extract_json\.transform returned int, not a text") as error:
            await call()
        assert "secret" not in str(error.value)


async def an_async_transform(text: str) -> str:
    return text


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"transform": an_async_transform}, "extract_json.transform is a plain function"),
        ({"transform": "acme_nowhere:f"}, "transform: "),
        ({"transfrom": str.upper}, "transfrom: there is no such option; did you mean 'transform'"),
    ],
)
def test_a_bad_option_is_found_when_the_member_is_made(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ExtractJson(**config)


# ------------------------------------------------------------------------------------------------- beside the others


@pytest.mark.parametrize("members", [[ExtractJson(), ExtractReasoning()], [ExtractReasoning(), ExtractJson()]])
async def test_the_fence_behind_the_reasoning_is_found_in_whatever_order_they_are_listed(members: list[Any]) -> None:
    answer = await wrap_model(ScriptedModel(f"<think>hm</think>\n\n{FENCED}"), members).do_generate(ASKED)
    assert answer.content == (Reasoning("hm"), Text('{"a": 1}'))


# --------------------------------------------------------------------------------------------------------- properties

quick = settings(max_examples=400, deadline=None, database=None, derandomize=True)
crumbs = st.sampled_from(["```", "`", "``", "json", "JS", "on", "\n", " ", "\t", "\r\n", "{", '"a"', "x", "}", "é"])
texts = st.lists(crumbs, max_size=12).map("".join)
fenced = texts.map(lambda text: f"```json\n{text}\n```\n")
in_pieces = (texts | fenced).flatmap(lambda text: st.tuples(st.just(text), chunkings(text)))


@quick
@given(in_pieces)
def test_a_stream_adds_up_to_what_is_generated_however_it_is_cut(said: tuple[str, list[str]]) -> None:
    text, pieces = said
    made = anyio.run(streamed, whole(block(*pieces)))
    check_stream(made)
    assert collect(made).content == anyio.run(generated, text).content


@quick
@given(in_pieces)
def test_nothing_goes_but_one_fence_and_blanks_at_either_end(said: tuple[str, list[str]]) -> None:
    text, pieces = said
    left = re.escape(unfenced(*pieces))
    assert re.fullmatch(left, text) or re.fullmatch(rf"(?i:\s*```\s*(json)?\s*){left}(\s*```)?\s*", text)


@quick
@given(st.sampled_from(["x", "{", "a``` ", "``"]), texts)
def test_a_text_that_begins_with_anything_else_leaves_as_it_came(first: str, rest: str) -> None:
    text = f"{first} {rest}"
    assert unfenced(*text) == text


def test_it_keeps_the_contract_of_middlewares() -> None:
    answers = [FENCED, f"Here: {FENCED}", "```JSON [1]```  \n", "``", "```js\nx\n```", "```json\n[1\n"]
    check_middleware(ExtractJson, answers=answers)
    check_middleware(lambda: ExtractJson(transform=str.upper), answers=answers)
