"""Ways to cut a text into the pieces in which a model may stream it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from random import Random
from typing import TYPE_CHECKING

from ...errors import ConfigError

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_SOME = 8
_MOST_SPLITS = 40  # of a long text, so that the suite's time does not grow with the square of its length


def ways_to_cut(text: str) -> Iterator[tuple[str, ...]]:
    """The text whole, character by character, in two at every place, in three at some, and in pieces of pseudo-random
    lengths. The same for every run."""
    random = Random(text)
    yield whole(text)
    if len(text) < 2:
        return
    yield tuple(text)
    places = range(1, len(text))
    for place in places if len(places) <= _MOST_SPLITS else sorted(random.sample(places, _MOST_SPLITS)):
        yield _cut(text, [place])
    pairs = list(combinations(places, 2)) if len(text) <= _MOST_SPLITS else [_two(places, random) for _ in range(_SOME)]
    for pair in random.sample(pairs, min(_SOME, len(pairs))):
        yield _cut(text, pair)
    for _ in range(_SOME):
        yield _cut(text, [place for place in places if random.random() < 0.3])
    # An empty delta may carry metadata, and is no end of anything.
    yield tuple(piece for character in text for piece in (character, ""))


def whole(text: str) -> tuple[str, ...]:
    return (text,) if text else ()


def _two(places: range, random: Random) -> tuple[int, int]:
    first, second = sorted(random.sample(places, 2))
    return first, second


def _cut(text: str, places: list[int] | tuple[int, ...]) -> tuple[str, ...]:
    bounds = [0, *places, len(text)]
    return tuple(text[start:end] for start, end in pairwise(bounds))


def chunkings(text: str) -> SearchStrategy[list[str]]:
    """A hypothesis strategy for lists of non-empty pieces that join to `text`. It shrinks towards the whole text.

    ConfigError where hypothesis is not installed.
    """
    try:
        from hypothesis import strategies
    except ImportError:
        raise ConfigError("chunkings() needs hypothesis: pip install 'neurolink-mw[testing]'") from None
    if len(text) < 2:
        return strategies.just(list(whole(text)))
    return strategies.sets(strategies.integers(1, len(text) - 1)).map(lambda places: list(_cut(text, sorted(places))))
