"""Ways to cut a text: those that hypothesis looks through, and those that the contract suite always takes."""

from __future__ import annotations

import sys
from functools import partial
from operator import eq

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from neurolink_mw.errors import ConfigError
from neurolink_mw.testing import chunkings
from neurolink_mw.testing.contract.chunking import ways_to_cut


@given(st.text(max_size=20).flatmap(lambda text: st.tuples(st.just(text), chunkings(text))))
def test_chunkings_are_non_empty_pieces_that_join_to_the_text(case: tuple[str, list[str]]) -> None:
    text, pieces = case
    assert "".join(pieces) == text
    assert all(pieces)


def test_chunkings_reach_every_cut() -> None:
    for wanted in (["abc"], ["a", "bc"], ["ab", "c"], ["a", "b", "c"]):
        assert find(chunkings("abc"), partial(eq, wanted)) == wanted


def test_chunkings_shrink_to_the_whole_text() -> None:
    assert find(chunkings("abcdef"), lambda pieces: True) == ["abcdef"]


def test_chunkings_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ConfigError, match=r"pip install 'neurolink-mw\[testing\]'"):
        chunkings("abc")


@pytest.mark.parametrize("text", ["", "a", "ab", "Hello, world.", "x" * 500])
def test_the_ways_to_cut_join_to_the_text_and_are_the_same_each_time(text: str) -> None:
    ways = list(ways_to_cut(text))
    assert all("".join(pieces) == text for pieces in ways)
    assert ways == list(ways_to_cut(text))
    assert len(ways) < 100
    assert len(text) < 2 or {len(pieces) for pieces in ways} >= {1, 2, len(text)}
