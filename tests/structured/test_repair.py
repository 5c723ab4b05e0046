"""Broken JSON text made whole, and what bounds that."""

from __future__ import annotations

from typing import Any

import pytest

from neurolink_mw.structured.repair import MOST_REPAIRED, Repairer, completed, parsed


def repaired(text: str) -> Any:
    return Repairer(len(text)).repaired(text)


@pytest.mark.parametrize(
    "text", ["", "{", "nope", "[1] x", "[NaN]", "[1e999]", '["\\ud800"]', '"\ud800"', "[" * 300 + "]" * 300]
)
def test_what_is_not_json_as_it_stands_is_not_parsed(text: str) -> None:
    assert parsed(text) is None


def test_null_is_a_value() -> None:
    assert parsed("null") == (None,)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2', {"a": [1, 2]}),
        ('{"a": "half', {"a": "half"}),
        ('{"a": 1, "half', {"a": 1}),
        ('{"a": 1, "b": tru', {"a": 1}),
        ("[1, -", [1]),
        ("{", {}),
    ],
)
def test_what_breaks_off_is_completed(text: str, value: Any) -> None:
    assert completed(text) == (value,)


@pytest.mark.parametrize("text", ['{"a": 1 "b": 2', "[1}", "[1] x", '["a\nb', "[1]", "", "[" * 300, '["\ud800'])
def test_what_is_broken_before_its_end_is_not_completed(text: str) -> None:
    assert completed(text) is None


def test_line_breaks_and_trailing_commas_are_mended_to_the_letter() -> None:
    assert repaired('{"a": "x\ny, ]", "b": [1, 2, ],\n}') == {"a": "x\ny, ]", "b": [1, 2]}


def test_what_comes_out_is_of_the_kind_that_its_bracket_says_and_not_empty() -> None:
    assert repaired("{'a': 1}") == {"a": 1}
    assert repaired("['a']") == ["a"]
    assert repaired("{nothing of the kind}") is None
    assert repaired("{,}") is None


def test_a_text_that_is_made_to_take_long_is_given_up() -> None:
    assert repaired('[{"a":1,"b":"`' + "{]`" * 10_000) is None


def test_all_repairs_of_a_text_share_its_time() -> None:
    repairer = Repairer(0)
    broken = "{'a': 1}"
    made = [repairer.repaired(broken) for _ in range(2_000)]
    assert made[0] == {"a": 1}
    assert made[-1] is None


def test_a_text_that_is_too_long_is_only_mended() -> None:
    long = "x" * MOST_REPAIRED
    assert repaired(f"{{'a': '{long}'}}") is None
    assert repaired(f'{{"a": "{long}",}}') == {"a": long}


def test_a_text_that_is_nested_too_deeply_is_not_repaired() -> None:
    assert repaired("['a', " * 5_000) is None
