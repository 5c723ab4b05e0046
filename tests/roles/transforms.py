"""Fuzzing of text transforms: `python -m tests.roles.transforms 100000` compares so many random ways to cut a text with
the whole text, over functions of many kinds."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise

from neurolink_mw.roles import RegexTransform, TextTransform


def _function(fn: Callable[[str], str], reach: int) -> TextTransform:
    class Function(TextTransform):
        lookahead = reach

        def transform(self, text: str) -> str:
            return fn(text)

    return Function()


def _regex(pattern: str, repl: str | Callable[[re.Match[str]], str]) -> RegexTransform:
    return RegexTransform(pattern, repl)


TRANSFORMS: dict[str, TextTransform] = {
    "shrinking": _function(lambda text: text.replace("abc", ""), 3),
    "growing": _function(lambda text: text.replace("ab", "<<aabb>>"), 2),
    "the same length": _function(lambda text: text.replace("aba", "xyz"), 3),
    "each letter": _function(str.upper, 1),
    "a word by hand": _function(lambda text: re.sub(r"\bab\b", "*", text), 4),
    "behind by hand": _function(lambda text: re.sub(r"(?<!a)b", "X", text), 2),
    "digits by hand": _function(lambda text: re.sub(r"\d{3,4}", "#", text), 4),
    "runs by hand": _function(lambda text: re.sub(r"[ab]{2,3}", "X", text), 3),
    "blanks by hand": _function(lambda text: re.sub(r"\s{2,8}", " ", text), 8),
    "lines by hand": _function(lambda text: re.sub(r"(?m)^a$", "X", text), 3),
    "whole word": _regex(r"\bab\b", "*"),
    "looks behind": _regex(r"(?<!a)b", "X"),
    "looks far behind": _regex(r"(?<=ab )c", "X"),
    "looks ahead": _regex(r"a(?!b)", "X"),
    "begins a line": _regex(r"(?m)^a", "X"),
    "ends the text": _regex(r"b$", "X"),
    "begins the text": _regex(r"\Aab", "X"),
    "says it twice": _regex(r"([ab])\1", r"<\1>"),
    "optional and counted": _regex(r"a{2,4}b?c{1,3}", "X"),
    "an address": _regex(r"[abc.]{1,6}@[abc]{1,5}\.[abc]{2,3}", "[email]"),
    "a function of the match": _regex(r"[ab]{3}", lambda match: match[0][::-1]),
    "of any case": _regex(r"(?i)ABC", "x"),
    "letters that grow": _function(str.upper, 1),
    "an address by hand": _function(lambda text: re.sub(r"https?://[a-z./]{1,12}", "[link]", text), 20),
    "edges of words": _regex(r"\b", "|"),
    "within a word": _regex(r"\Bb", "X"),
    "perhaps nothing": _regex(r"a?", "-"),
    "ends of lines": _regex(r"(?m)$", ";"),
    "a place": _regex(r"(?=ab)", "^"),
    "on a condition": _regex(r"(a)?b(?(1)c|a)", "X"),
    "possessive": _regex(r"a{1,3}+b", "X"),
    "atomic": _regex(r"(?>ab|a)c", "X"),
    "flags for a part": _regex(r"(?i:A)b(?s:.)c", "X"),
    "verbose": _regex(r"(?x) a \  b  # with a comment", "X"),
    "from side to side": _regex(r"(?<=a)b{1,2}(?=c)", r"<\g<0>>"),
    "said thrice by name": _regex(r"(?P<one>[abc])(?P=one){1,2}", lambda match: match["one"]),
    "left as it is now and then": _regex(r"[ab]{2,3}", lambda match: match[0] if match[0][0] == "a" else "X"),
}
_LETTERS = {"an address": "abc@. ", "digits by hand": "1234 a", "blanks by hand": "   \na", "runs by hand": "abab "}
_LETTERS |= {"letters that grow": "aßŉﬁ ", "of any case": "aAbBcC ", "an address by hand": "htps:/. a"}
_LETTERS |= {"flags for a part": "aAbc\n"}


def mistakes(rounds: int, seed: int = 0) -> Iterator[tuple[str, str, list[str]]]:
    """Transform, text and pieces for which the pieces became something else than the whole."""
    chance = random.Random(seed)
    names = list(TRANSFORMS)
    for number in range(rounds):
        name = names[number % len(names)]
        transform = TRANSFORMS[name]
        reach = transform.lookahead or 1
        text = "".join(chance.choices(_LETTERS.get(name, "abc \n"), k=chance.randrange(1, 12 * reach)))
        cuts = sorted(chance.sample(range(len(text) + 1), chance.randrange(min(len(text), 8))))
        pieces = [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]
        if rewritten(transform, pieces) != transform.transform(text):
            yield name, text, pieces


def rewritten(transform: TextTransform, pieces: list[str]) -> str:
    block = transform.begin_block()
    return "".join([*(block.delta(piece) for piece in pieces), block.end()])


if __name__ == "__main__":
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    found = list(mistakes(asked, seed=random.randrange(2**32)))
    for name, text, pieces in found[:5]:
        print(f"{name}: {text!r} in {pieces!r}")
    print(f"{asked} ways to cut a text, {len(found)} wrong")
    sys.exit(bool(found))
