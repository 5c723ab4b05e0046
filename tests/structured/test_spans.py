"""`spans`: where objects and arrays may stand in a text."""

from __future__ import annotations

import pytest

from neurolink_mw.structured.spans import looks_like_json, spans


def found(text: str, *, quotes: bool = True) -> list[str]:
    return [text[one.start : one.end] + ("" if one.closed else "…") for one in spans(text, quotes=quotes)]


def test_the_outermost_pairs_are_found_in_order() -> None:
    assert found('a {"b": [1, {}]} c [2] d') == ['{"b": [1, {}]}', "[2]"]


def test_brackets_in_texts_do_not_count_and_quotes_in_prose_neither() -> None:
    assert found('say "{" or ["}"]') == ['{" or ["}']
    assert found('it is 5" {"a": "}", "b": "\\"]"}') == ['{"a": "}", "b": "\\"]"}']


def test_without_regard_to_quotes_a_stray_one_does_no_harm() -> None:
    assert found('{a "b} {"c": 1}') == []
    assert found('{a "b} {"c": 1}', quotes=False) == ['{a "b}', '{"c": 1}']


def test_an_opening_bracket_without_its_end_counts_where_json_seems_to_follow() -> None:
    assert found('x {"a": [1, {"b": 2}') == ['{"a": [1, {"b": 2}…']
    assert found('x [ y {"b": 2}') == ['{"b": 2}']
    assert found('{"a": 1} {"b": {') == ['{"a": 1}', '{"b": {…']


def test_an_opening_bracket_without_its_end_reaches_to_the_next_fence() -> None:
    assert found('{"a": [1\n```\n{"b": 2} {"c"') == ['{"a": [1\n…', '{"b": 2}', '{"c"…']
    assert found('{"a": "b\n```\nc} d') == ['{"a": "b\n…']
    assert found('{"a": [1```\n') == ['{"a": [1…']


def test_a_fence_in_a_text_is_none() -> None:
    assert found('{"a": "\n```\n", "b": [1') == ['{"a": "\n```\n", "b": [1…']
    assert found('{"a": "```py\nx') == ['{"a": "```py\nx…']


def test_no_pair_reaches_over_a_fence() -> None:
    assert found('[see\n```\n{"a": "b"}\n```\n]') == ['{"a": "b"}']


def test_a_closing_bracket_of_the_other_kind_closes_what_it_can() -> None:
    assert found('{"a": [1, 2}') == ['{"a": [1, 2}']
    assert found("]}{}]") == ["{}"]


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1',
        "{a: 1",
        "{'a': 1",
        "{ // c\n a: 1",
        "{",
        '{"a',
        "{}",
        "[",
        "[1",
        "[-1",
        "['a'",
        "[[",
        "[true",
        "[]",
        "[nu",
        '{"it\'s": 1',
        '{"a\\": 1',
        '{"a"',
    ],
)
def test_what_looks_like_json(text: str) -> None:
    assert looks_like_json(text, 0)


@pytest.mark.parametrize("text", ["{x}", "{see this: 1", "[docs](", "[x", "[truely ", "{a, b", "[ y"])
def test_what_looks_like_prose(text: str) -> None:
    assert not looks_like_json(text, 0)
