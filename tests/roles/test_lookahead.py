"""A function of whole texts, applied to a text in pieces: exact for every way to cut it, and in good time."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from neurolink_mw.errors import ConfigError
from neurolink_mw.roles import RegexTransform, TextTransform

from .answers import MORE
from .builders import Rewrites
from .transforms import TRANSFORMS, mistakes, rewritten


@pytest.mark.parametrize("seed", range(5))
def test_every_way_to_cut_a_text_leads_to_the_same(seed: int) -> None:
    wrong = list(mistakes(1000 * MORE, seed))
    assert not wrong, wrong[0]


def test_the_pattern_of_every_kind_does_something() -> None:
    """A fuzz whose functions change nothing would find nothing."""
    for name, transform in TRANSFORMS.items():
        sample = "ab ba aba abc aab\nabb ab c abbc aabcc aßb ABC b\n1234  \n\n\n https://a.b abc@abc.abc a\na\na b"
        assert transform.transform(sample) != sample, name


def held_at_most(transform: TextTransform, text: str) -> int:
    """How many characters waited at once, where the text came one by one."""
    block, most = transform.begin_block(), 0
    left = 0
    for came, character in enumerate(text, 1):
        left += len(block.delta(character))
        most = max(most, came - left)
    assert left + len(block.end()) == len(text)
    return most


@pytest.mark.parametrize("text", ["x" * 300, "abc" * 100, "aabbcc" * 50, "abcx" * 75, "bcbcabca" * 40])
def test_a_pattern_holds_less_than_twice_its_reach(text: str) -> None:
    transform = RegexTransform("abc", "xyz")
    assert held_at_most(transform, text) <= 2 * 3 - 1


def test_so_does_a_function_where_it_finds_nothing() -> None:
    assert held_at_most(Rewrites(lambda text: text.replace("abc", "xyz"), 3), "x" * 300) == 5


def test_where_it_finds_something_now_and_then_it_holds_little_more() -> None:
    transform = Rewrites(lambda text: text.replace("abc", "xyz"), 3)
    assert held_at_most(transform, ("abc" + "x" * 20) * 10) <= 4 * 3


def test_what_goes_by_single_characters_is_cut_anywhere() -> None:
    assert held_at_most(Rewrites(str.upper, 1), "all letters change" * 20) == 1


class Counted:
    """A function that counts how many characters it is given."""

    def __init__(self, fn: Callable[[str], str]) -> None:
        self.fn = fn
        self.characters = self.calls = 0

    def __call__(self, text: str) -> str:
        self.calls += 1
        self.characters += len(text)
        return self.fn(text)


@pytest.mark.parametrize(
    ("fn", "unit"),
    [
        (lambda text: text.replace("abcd", ""), "all quiet here "),
        (lambda text: text.replace("abcd", ""), "abcd then quiet again "),
        (lambda text: text.replace("abcd", ""), "abcd"),
        (str.title, "onelongword"),
        (lambda text: re.sub(r"a\Z", "b", text), "a"),
    ],
    ids=["finds nothing", "finds something", "finds nothing else", "has no place to cut", "is the end"],
)
def test_work_grows_with_the_length_of_the_text(fn: Callable[[str], str], unit: str) -> None:
    def work(length: int) -> int:
        counted = Counted(fn)
        text = (unit * length)[:length]
        assert rewritten(Rewrites(counted, 4), list(text)) == fn(text)
        return counted.characters

    short, long = work(2_000), work(32_000)
    assert long <= 1.5 * 16 * short


def test_each_match_of_a_pattern_is_replaced_once() -> None:
    calls: list[str] = []

    def repl(match: re.Match[str]) -> str:
        calls.append(match[0])
        return "<>"

    text = "abab, ab and ab" * 20
    assert rewritten(RegexTransform("ab", repl), list(text)) == text.replace("ab", "<>")
    assert len(calls) == text.count("ab")


@pytest.mark.parametrize("fn", [lambda text: None, lambda text: 5, lambda text: text.encode()])
def test_what_is_no_text_is_refused(fn: Callable[[str], str]) -> None:
    with pytest.raises(ConfigError, match="not a text"):
        rewritten(Rewrites(fn, 2), ["abcdef"])


def test_a_block_says_whether_something_changed() -> None:
    for transform in (RegexTransform("ab", "x"), Rewrites(lambda text: text.replace("ab", "x"), 2)):
        for text, changed in (("quiet " * 9, False), ("now ab " * 9, True), ("ab", True), ("", False)):
            block = transform.begin_block()
            for character in text:
                block.delta(character)
            block.end()
            assert block.changed is changed, text
