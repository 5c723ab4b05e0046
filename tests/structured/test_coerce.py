"""`coerce_json`: the JSON that a model meant."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.errors import ConfigError
from neurolink_mw.protocol.tokens import json_text
from neurolink_mw.structured import Coerced, SchemaChecker, coerce_json

from .strategies import quick

CITY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"enum": ["C", "F"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "degrees": {"type": "number"},
    },
    "required": ["city"],
}


def value(text: str, schema: Any = None) -> Any:
    made = coerce_json(text, schema)
    assert made.found
    assert made.fits
    assert json.loads(made.text) == made.value
    return made.value


# -- what is JSON already


@pytest.mark.parametrize("text", ['{"a": 1}', "[1, 2]", "42", "-1.5", "null", "true", '"Oslo"', ' \n{"a": 1}\n', "[]"])
def test_what_is_json_is_taken_as_it_is(text: str) -> None:
    made = coerce_json(text)
    assert made == Coerced(True, json.loads(text), json.dumps(json.loads(text), separators=(",", ":")))


def test_the_text_is_canonical() -> None:
    assert coerce_json('{ "b": 1,\n "a": "é" }').text == '{"b":1,"a":"é"}'


def test_what_fits_the_schema_is_fine_and_what_does_not_says_so() -> None:
    assert coerce_json('{"city": "Oslo"}', CITY).fits
    made = coerce_json('{"city": 5}', CITY)
    assert made == Coerced(True, {"city": 5}, '{"city":5}', problems=("answer.city: must be a string, not an integer",))
    assert not made.fits


def test_a_compiled_schema_can_be_given() -> None:
    assert coerce_json('{"city": "Oslo"}', SchemaChecker(CITY)).fits


def test_a_broken_schema_is_refused() -> None:
    with pytest.raises(ConfigError):
        coerce_json("{}", {"type": "objekt"})


# -- what stands around it


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"city": "Oslo"}\n```',
        '```\n{"city": "Oslo"}```',
        'Here it is:\n\n```json\n{"city": "Oslo"}\n```\nAnything else?',
        'The answer is {"city": "Oslo"}.',
        '\ufeff{"city": "Oslo"}',
        'He said "go" and I\'d say {"city": "Oslo"}',
        'Use {curly "braces} like so: {"city": "Oslo"}',
        'An open [ bracket, then {"city": "Oslo"}',
        '{see below: {"city": "Oslo"}}',
        '[as asked: {"city": "Oslo"}]',
    ],
)
def test_fences_and_prose_around_it_are_left_out_and_nothing_is_repaired(text: str) -> None:
    made = coerce_json(text, CITY)
    assert made == Coerced(True, {"city": "Oslo"}, '{"city":"Oslo"}')


def test_a_scalar_is_found_alone_or_in_a_fence_and_nowhere_else() -> None:
    assert value("```json\n42\n```", {"type": "integer"}) == 42
    assert value("Here:\n```json\n42\n```\nBye", {"type": "integer"}) == 42
    assert value('```json\n"a ``` b"\n```\nBye', {"type": "string"}) == "a ``` b"
    assert not coerce_json("The answer is 42.", {"type": "integer"}).found


@pytest.mark.parametrize(
    "text", ["", "  ", "I cannot help with that.", "See [the docs](https://example.com) {x}.", "a [b] {c}"]
)
def test_where_there_is_no_json_the_text_is_kept(text: str) -> None:
    made = coerce_json(text, CITY)
    assert (made.found, made.value, made.text, made.repaired) == (False, None, text, False)
    assert made.problems in (("answer: is empty",), ("answer: has no JSON in it",))


# -- several


def test_of_several_that_fit_the_longest_is_taken() -> None:
    text = 'Like {"city": "Oslo"}: {"city": "Rome", "unit": "C"}, not {"city": 1, "unit": "none of these", "tags": []}'
    assert value(text, CITY) == {"city": "Rome", "unit": "C"}


def test_one_that_fits_is_taken_before_a_longer_one_that_does_not() -> None:
    assert value('[1, 2, 3, 4, 5, 6, 7, 8, 9] {"city": "Oslo"}', CITY) == {"city": "Oslo"}


def test_without_a_schema_one_without_faults_is_taken_before_a_repaired_one() -> None:
    assert value('{"a": 1} and {"b": 1, "c": 2,}') == {"a": 1}
    assert value('{"a": 1} and {"b": 1, "c": 2}') == {"b": 1, "c": 2}


def test_where_none_fits_the_longest_is_told_with_what_is_wrong() -> None:
    made = coerce_json('{"x": 1} {"city": 1, "unit": "K"}', CITY)
    assert made.value == {"city": 1, "unit": "K"}
    assert len(made.problems) == 2


# -- code fences


CODE = json.dumps({"city": "Oslo", "code": "```py\nx = {\n```"})


@pytest.mark.parametrize("before", ["", "Sure:\n", "```\nfirst\n```\n", "```json\n5\n```\n"])
@pytest.mark.parametrize("after", ["", "\nBye", "\n```py\nd = {}\n```", '\nUse `"` and ``` [x].'])
def test_a_fence_in_a_text_of_the_json_is_part_of_that_text(before: str, after: str) -> None:
    made = coerce_json(f"{before}```json\n{CODE}\n```{after}", CITY)
    assert made == Coerced(True, json.loads(CODE), json_text(json.loads(CODE)))


def test_a_fence_in_a_text_with_line_breaks_is_part_of_it_too() -> None:
    assert value('```json\n{"city": "\n```py\nx\n```\n", "unit": "C"}\n```', CITY)["unit"] == "C"


def test_what_follows_the_first_fence_is_searched_too() -> None:
    assert value('```json\n{"city": 1}\n```\nCorrected:\n```json\n{"city": "Oslo"}\n```', CITY) == {"city": "Oslo"}
    assert value('```python\nd = {"x": 1}\n```\n{"b": 22}') == {"b": 22}
    assert value('```json\n5\n```\n{"b": 22}') == {"b": 22}


def test_of_several_fences_the_longest_that_fits_is_taken() -> None:
    longest = '{"city": "Rome", "unit": "C"}'
    for first, second in (('{"city": "Oslo"}', longest), (longest, '{"city": "Oslo"}')):
        assert value(f"```json\n{first}\n```\nor\n```json\n{second}\n```", CITY) == json.loads(longest)


@pytest.mark.parametrize("cut", ['{"city": "Oslo", "tags": ["a"', '{"city": "Os', '{"city": {"x": 1}'])
def test_what_breaks_off_in_a_fence_does_not_reach_beyond_it(cut: str) -> None:
    text = f"```json\n{cut}\n```\nIt [was] {{cut}}."
    assert coerce_json(text).value == coerce_json(cut).value
    assert coerce_json(f"{text}\n```json\n{{'city': 1}}\n```").found


def test_a_whole_answer_is_found_behind_one_that_broke_off() -> None:
    made = coerce_json('```json\n{"city": [1, 2\n```\nAgain:\n```json\n{"city": "Oslo"}\n```', CITY)
    assert made == Coerced(True, {"city": "Oslo"}, '{"city":"Oslo"}')


def test_what_breaks_off_within_a_text_with_a_fence_is_kept_as_far_as_it_came() -> None:
    assert coerce_json('{"city": "```py\\nx\\n```\\nand').value == {"city": "```py\nx\n```\nand"}


def test_a_fence_in_a_json_string_is_opened_too() -> None:
    assert value(json.dumps(f"```json\n{CODE}\n```"), CITY) == json.loads(CODE)
    assert value(json.dumps(f"```json\n{CODE}\n``` and no more"), CITY) == json.loads(CODE)


# -- repair


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('{"city": "Oslo",}', {"city": "Oslo"}),
        ('{"city": "Oslo", "tags": ["a", "b",],}', {"city": "Oslo", "tags": ["a", "b"]}),
        ('{"city": "Os\nlo"}', {"city": "Os\nlo"}),
        ("{'city': 'Oslo'}", {"city": "Oslo"}),
        ('{city: "Oslo"}', {"city": "Oslo"}),
        ('{"city": "Oslo" "unit": "C"}', {"city": "Oslo", "unit": "C"}),
        ('{"city": "Oslo", // the capital\n "unit": "C"}', {"city": "Oslo", "unit": "C"}),
        ('{"city": "the "old" town"}', {"city": 'the "old" town'}),
        ("{“city”: “Oslo”}", {"city": "Oslo"}),
        ('So: {"city": "Oslo",} Good?', {"city": "Oslo"}),
    ],
)
def test_broken_json_is_repaired_and_that_is_told(text: str, meant: Any) -> None:
    made = coerce_json(text, CITY)
    assert (made.value, made.repaired, made.truncated, made.problems) == (meant, True, False, ())


def test_a_plain_fault_changes_nothing_else_however_odd_the_rest() -> None:
    texts = ['"quoted" {braces} it\'s: [x], ,] ,}', "a, ]", "// no comment"]
    assert value(json.dumps({"texts": texts})[:-1] + ",}") == {"texts": texts}


def test_repair_does_not_make_up_what_a_schema_wants() -> None:
    made = coerce_json('{"unit": "C",}', CITY)
    assert made.repaired
    assert made.problems == ('answer: lacks the required key "city"',)


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": 1e999}', '["\\ud800"]', '{"a": "\ud800"}'])
def test_what_comes_out_is_json_or_nothing(text: str) -> None:
    made = coerce_json(text)
    assert not made.found or json.loads(json.dumps(made.value, allow_nan=False)) == made.value


# -- what breaks off


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('{"city": "Oslo", "tags": ["a", "b', {"city": "Oslo", "tags": ["a", "b"]}),
        ('{"city": "Oslo", "ta', {"city": "Oslo"}),
        ('{"city": "Oslo", "tags": [', {"city": "Oslo", "tags": []}),
        ('{"city": "Oslo"', {"city": "Oslo"}),
        ('```json\n{"city": "Oslo", "tags": ["a",\n```', {"city": "Oslo", "tags": ["a"]}),
        ('Here: ```json\n{"city": "Oslo", "tags": ["a",\n```', {"city": "Oslo", "tags": ["a"]}),
        ('{"city": "Oslo", "tags": ["a"] Hope this helps', {"city": "Oslo", "tags": ["a"]}),
        ("{'city': 'Oslo', 'tags': ['a'", {"city": "Oslo", "tags": ["a"]}),
    ],
)
def test_what_breaks_off_is_kept_as_far_as_it_came(text: str, meant: Any) -> None:
    made = coerce_json(text, CITY)
    assert (made.value, made.repaired, made.truncated, made.problems) == (meant, True, True, ())


def test_whole_json_of_an_answer_that_is_known_to_be_cut_is_truncated_too() -> None:
    assert coerce_json('{"city": "Oslo"}', truncated=True) == Coerced(
        True, {"city": "Oslo"}, '{"city":"Oslo"}', truncated=True
    )
    assert coerce_json("I thi", truncated=True).truncated


def test_the_items_of_a_list_that_breaks_off_do_not_pass_for_the_answer() -> None:
    assert coerce_json('[{"a": 1}, {"a": 2}, {"a"').value == [{"a": 1}, {"a": 2}, {}]


def test_of_an_answer_that_is_known_to_be_cut_the_piece_that_breaks_off_is_taken() -> None:
    text = 'Like {"a": 1}: {"a": 2, "b": [1'
    assert coerce_json(text, truncated=True).value == {"a": 2, "b": [1]}
    assert coerce_json(text).value == {"a": 1}


# -- texts that hold JSON, and wrappers


def test_json_in_a_json_string_is_unpacked() -> None:
    text = json.dumps('{"city": "Oslo"}')
    for schema in (None, CITY):
        made = coerce_json(text, schema)
        assert (made.value, made.repaired) == ({"city": "Oslo"}, True)
    assert value(json.dumps('{"city": "Oslo",}'), CITY) == {"city": "Oslo"}


@pytest.mark.parametrize("text", ["as [1] has it", "[1] has it", "[1] has [2]", "{x}", "[see] it"])
def test_a_json_string_with_brackets_in_it_is_a_text(text: str) -> None:
    assert value(json.dumps(text)) == text


def test_a_text_that_is_wanted_stays_a_text() -> None:
    text = json.dumps('{"city": "Oslo"}')
    assert value(text, {"type": "string"}) == '{"city": "Oslo"}'
    assert value('{"city": "[1]"}', CITY) == {"city": "[1]"}


def test_fields_that_hold_json_are_unpacked_where_the_schema_wants_something_else() -> None:
    made = coerce_json('{"city": "[1]", "tags": "[\\"a\\"]", "degrees": "21.5"}', CITY)
    assert made.value == {"city": "[1]", "tags": ["a"], "degrees": 21.5}
    assert (made.repaired, made.problems) == (True, ())


def test_one_of_several_forms_may_need_it() -> None:
    schema: Any = {"type": "object", "properties": {"x": {"anyOf": [{"type": "null"}, {"type": "object"}]}}}
    assert value('{"x": "{}"}', schema) == {"x": {}}


def test_unpacking_goes_one_layer_deep() -> None:
    twice = json.dumps({"city": "Oslo", "tags": json.dumps(json.dumps(["a"]))})
    made = coerce_json(twice, CITY)
    assert made.value == json.loads(twice)
    assert not made.fits


def test_unpacking_that_does_not_help_is_not_done() -> None:
    made = coerce_json('{"city": "Oslo", "tags": "[1]"}', CITY)
    assert made.value == {"city": "Oslo", "tags": "[1]"}
    assert made.problems == ("answer.tags: must be an array, not a string",)


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": {"city": "Oslo"}}',
        '[{"city": "Oslo"}]',
        '{"thoughts": "hm", "result": [{"city": "Oslo"}]}',
        '{"final_result": {"city": "Oslo"},}',
    ],
)
def test_a_wrapper_of_the_models_own_is_taken_off(text: str) -> None:
    made = coerce_json(text, CITY)
    assert (made.value, made.repaired, made.problems) == ({"city": "Oslo"}, True, ())


def test_a_list_that_was_asked_for_is_found_in_an_object() -> None:
    assert value('{"cities": ["Oslo"]}', {"type": "array", "items": {"type": "string"}}) == ["Oslo"]


@pytest.mark.parametrize(
    "text", ['{"city": 5, "meta": {"city": "x"}}', '{"city": {"city": "x"}}', '{"city": 5, "meta": {"city": "x"},}']
)
def test_a_part_of_an_answer_that_does_not_fit_never_passes_for_the_answer(text: str) -> None:
    made = coerce_json(text, CITY)
    assert "city" in made.problems[0]
    assert isinstance(made.value, dict)
    assert made.value["city"] != "x"


def test_nor_does_a_branch_of_a_tree() -> None:
    node = {"properties": {"name": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/N"}}}}
    tree: Any = {"$ref": "#/$defs/N", "$defs": {"N": {"type": "object", "required": ["name"], **node}}}
    made = coerce_json('{"kids": [{"name": "a"}]}', tree)
    assert made.value == {"kids": [{"name": "a"}]}
    assert not made.fits


# -- whatever comes


def test_neither_value_nor_text_is_in_the_repr() -> None:
    assert "Oslo" not in repr(coerce_json('{"city": "Oslo"}', CITY))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 20_000,
        "{" * 50_000,
        "[1]" * 50_000,
        "}" * 100_000,
        '"' * 100_000,
        '[{"a":1,"b":"`' + "{]`" * 10_000,
        ".5}{" * 20_000,
        "[" * 50_000 + "}" * 50_000,
        "{" + " " * 100_000,
        "{//" * 30_000,
        "```" * 80_000,
        "`" * 1_000 + "x" * 240_000,
        '```json\n"' * 20_000,
        '{"```' * 40_000,
        '{"' + '```\\"' * 40_000,
        '{"' + '\n```\n\\"' * 30_000,
        "```json\n{'a\n" * 15_000,
        "```\n5\n```\n" * 20_000,
        "[1\n```\n" * 30_000,
        "```\n" + " " * 240_000,
    ],
)
def test_a_hostile_text_comes_to_an_end(text: str) -> None:
    assert not coerce_json(text, CITY).fits


def test_a_text_that_is_too_long_is_json_as_a_whole_or_none() -> None:
    long = '{"city": "' + "x" * 300_000 + '"}'
    assert value(long, CITY) == json.loads(long)
    assert value(f"```json\n{long}\n```", CITY) == json.loads(long)
    made = coerce_json(f"Look: {long}", CITY)
    assert not made.found
    assert made.problems == ("answer: is not JSON as a whole, and too long to search in it",)


pieces = st.sampled_from(
    [
        *(
            "{",
            "}",
            "[",
            "]",
            '"',
            "'",
            ":",
            ",",
            "\\",
            "a",
            "1",
            "null",
            " ",
            "\n",
            "```",
            "```json\n",
            "//",
            "/*",
            "“",
        ),
        *('{"city": "Oslo"', '{"city":', '"tags": "[1]"', "\ud800", "\x00", '\\"'),
    ]
)


@quick
@given(st.lists(pieces, max_size=15).map("".join), st.sampled_from([None, CITY, {"type": "array"}, True, False]))
def test_no_text_raises_and_what_fits_does_fit(text: str, schema: Any) -> None:
    made = coerce_json(text, schema)
    if not made.found:
        assert (made.text, made.fits) == (text, False)
        return
    assert json.loads(made.text) == made.value
    if schema is not None:
        assert made.fits == (not SchemaChecker(schema).problems(made.value))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("ab{}[]\"'\\,:", max_size=4), inner),
    max_leaves=10,
)


@quick
@given(json_values, st.sampled_from([None, 2]))
def test_json_comes_out_as_it_went_in(given_: Any, indent: int | None) -> None:
    made = coerce_json(json.dumps(given_, indent=indent), True)
    assert (made.value, made.repaired, made.truncated, made.problems) == (given_, False, False, ())


@quick
@given(json_values.filter(lambda one: isinstance(one, dict | list) and bool(one)), st.sampled_from([None, 2]))
def test_json_is_found_in_prose(given_: Any, indent: int | None) -> None:
    text = f"It's this (\"really\"):\n{json.dumps(given_, indent=indent)}\nIsn't it?"
    assert coerce_json(text).value == given_


around = st.lists(
    st.sampled_from(
        [
            'It\'s "so":',
            "Use `x` [here](there).",
            "{see below}",
            '```python\nd = {"x": "}"}\n```',
            "```\nit's 5\"\n```",
            "```json\n5\n```",
            '```json\n{"x": [1\n```',
            '{"x": 1}',
            "```sh\nls ~\n```",
        ]
    ),
    max_size=4,
).map("\n".join)
fenced_texts = st.lists(st.sampled_from([*"ab{}[]\"'\\,:`\n", "```", "```json\n", "\n```\n"]), max_size=12).map("".join)


@quick
@given(around, st.dictionaries(st.text('ab`{"'), fenced_texts), st.sampled_from([None, 2]), around)
def test_json_in_a_fence_is_found_whole_whatever_stands_around_it(
    before: str, given_: dict[str, str], indent: int | None, after: str
) -> None:
    answer = {"answered": given_}
    schema: Any = {"type": "object", "required": ["answered"]}
    text = f"{before}\n```json\n{json.dumps(answer, indent=indent)}\n```\n{after}"
    assert coerce_json(text, schema) == Coerced(True, answer, json_text(answer))


@quick
@given(json_values.filter(lambda one: isinstance(one, dict | list)), st.data())
def test_of_json_that_breaks_off_nothing_is_made_up(given_: Any, data: st.DataObject) -> None:
    text = json.dumps(given_)
    made = coerce_json(text[: data.draw(st.integers(1, len(text) - 1))])
    assert made.truncated
    assert is_part(made.value, given_)


def is_part(part: Any, whole: Any) -> bool:
    """Whether a value is the beginning of another one, as far as half a text, number or list goes."""
    if isinstance(whole, dict):
        return isinstance(part, dict) and all(key in whole and is_part(item, whole[key]) for key, item in part.items())
    if isinstance(whole, list):
        return isinstance(part, list) and len(part) <= len(whole) and all(map(is_part, part, whole))
    if isinstance(whole, str):
        return isinstance(part, str) and whole.startswith(part)
    return part == whole or (isinstance(whole, int) and str(whole).startswith(str(part)))


@pytest.mark.parametrize(
    "text",
    [
        '```json {"name":"x"}```',
        '```{"name":"x"}\n```',
        '```json\r{"name":"x"}\r```',
        '```{"name":"x"}``` there',
        '```json\n{"name":"x"}\n``` and no more',
    ],
)
def test_a_fence_may_share_its_line_with_the_json(text: str) -> None:
    assert coerce_json(text).value == {"name": "x"}


def test_a_scalar_in_a_fence_is_found_with_words_behind_it() -> None:
    assert coerce_json('```json\n"x"\n```\nbye').value == "x"
