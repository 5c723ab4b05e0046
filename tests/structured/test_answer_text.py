"""`AnswerText`: the value's text out of the wrapper, while it comes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.structured.answer_text import AnswerText, answer_text
from neurolink_mw.testing import chunkings

from .strategies import quick, values


def leaving(pieces: list[str], key: str | None = "value") -> list[str]:
    reader = AnswerText(key)
    return [*(reader.feed(piece) for piece in pieces), reader.finish()]


def test_without_a_key_everything_leaves_at_once() -> None:
    assert leaving(['{"a"', ":1}"], None) == ['{"a"', ":1}", ""]


def test_the_value_leaves_while_it_comes() -> None:
    assert leaving(['{"value": [1', ", 2", "]", "}"]) == ["[1", ", 2", "]", "", ""]


@pytest.mark.parametrize(
    ("input", "text"),
    [
        ('{"value":{"a":[1,{}]}}', '{"a":[1,{}]}'),
        (' { "value" : 12 } ', "12"),
        ('{"value":-1.5e3}', "-1.5e3"),
        ('{"value":null}\n', "null"),
        ('{"value":"a } \\" ] \\\\"}', '"a } \\" ] \\\\"'),
        ('{"value":["}", "\\"]"]}', '["}", "\\"]"]'),
    ],
)
def test_the_text_is_the_models_own(input: str, text: str) -> None:
    assert answer_text(input, "value") == text


@pytest.mark.parametrize(
    "input",
    ["[1]", '{"other":1}', '{"value"', '{"val', "{}", "prose", '{"value":}', '{"value" 1}', '{"values":1}', "  "],
)
def test_what_is_not_the_wrapper_leaves_unchanged(input: str) -> None:
    assert answer_text(input, "value") == input


def test_no_input_is_no_text() -> None:
    """A provider gives `{}` for a call without input; nothing at all is what a cut left."""
    assert answer_text("", None) == ""
    assert answer_text("", "value") == ""


def test_an_answer_that_was_cut_leaves_as_far_as_it_came() -> None:
    assert answer_text('{"value":[1, {"a": "b', "value") == '[1, {"a": "b'
    assert answer_text('{"value":[1]', "value") == "[1]"
    assert answer_text('{"value":12', "value") == "12"


def test_what_follows_the_value_is_kept_so_that_the_answer_does_not_pass_for_a_right_one() -> None:
    assert answer_text('{"value":[1], "more": 2}', "value") == '[1], "more": 2}'
    assert answer_text('{"value":[1]} Bye.', "value") == "[1]} Bye."
    assert answer_text('{"value":[1]}}', "value") == "[1]}}"


def test_blanks_without_end_are_not_held_without_end() -> None:
    input = "{" + " " * 2_000 + '"value":1}'
    assert answer_text(input, "value") == input
    assert "".join(leaving(list(input))) == input


pieces_of_wrappers = st.lists(
    st.sampled_from(
        ['{"value":', "{", "}", '"value"', ":", "[", "]", '"', "\\", '\\"', "1", "-2", "true", " ", "\n", ","]
    ),
    max_size=12,
).map("".join)


@quick
@given(values, st.sampled_from([None, 2]), st.data())
def test_a_wrapped_value_comes_out_however_it_is_cut(value: Any, indent: int | None, data: st.DataObject) -> None:
    input = json.dumps({"value": value}, indent=indent)
    pieces = data.draw(chunkings(input))
    assert json.loads("".join(leaving(pieces))) == value


@quick
@given(pieces_of_wrappers, st.data())
def test_whatever_comes_the_cuts_make_no_difference(input: str, data: st.DataObject) -> None:
    pieces = data.draw(chunkings(input))
    assert "".join(leaving(pieces)) == "".join(leaving([input]))
