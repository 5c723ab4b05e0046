"""How far a pattern reaches, and patterns that reach too far."""

from __future__ import annotations

import re
from typing import Any

import pytest

from neurolink_mw.errors import ConfigError
from neurolink_mw.roles import RegexTransform, TextTransform
from neurolink_mw.roles.reach import reach_of

from .transforms import rewritten


@pytest.mark.parametrize(
    ("pattern", "reach"),
    [
        ("abc", 3),
        ("a|bcd", 3),
        ("a{2,5}", 5),
        ("a?", 1),
        ("", 1),
        (r"[\w.]{1,30}@[\w]{1,25}\.[a-z]{2,6}", 63),
        (r"\bab\b", 4),
        (r"^ab", 3),
        (r"ab$", 4),  # a newline may be behind it, and then nothing
        (r"ab\Z", 3),
        (r"(?<=xyz)ab", 5),
        (r"(?<!xyz)ab", 5),
        (r"ab(?=xyz)", 5),
        (r"ab(?!x{1,4})", 6),
        (r"(?<=\bx)a", 3),
        (r"(ab)\1", 4),
        (r"(a{1,3})\1{1,2}", 9),
        (r"(a)?b(?(1)cd|e)", 4),
        (r"(?i)ab", 2),
        (r"(?i:a)b", 2),
        (r"(?x) a  b # two", 2),
        (r"a{1,3}+b", 4),
        (r"(?>abc|a)d", 4),
        (r"(?P<n>ab)(?P=n)", 4),
    ],
)
def test_the_reach_of_a_pattern_is_its_longest_match_and_its_context(pattern: str, reach: int) -> None:
    assert reach_of(re.compile(pattern), "it") == reach
    assert RegexTransform(pattern, "").lookahead == reach


@pytest.mark.parametrize("flags", [re.IGNORECASE, re.MULTILINE, re.DOTALL, re.ASCII, re.VERBOSE])
def test_compiled_patterns_keep_their_flags(flags: re.RegexFlag) -> None:
    transform = RegexTransform(re.compile("^Ab.$", flags), "x")
    text = "zab\nAbc\nab\n"
    assert rewritten(transform, list(text)) == re.compile("^Ab.$", flags).sub("x", text)


@pytest.mark.parametrize(
    "pattern",
    [r"\S+@\S+", "a*", "a{2,}", "a++b", "(?>a*)b", r"a(?=.*b)", r"a(?!\s+b)", r"(a+)\1", "(a)?(?(1)b*|c)", "a{70000}"],
)
def test_a_pattern_without_a_longest_match_is_refused_with_the_remedy(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"redact: this pattern has no longest match.*\{1,64\}"):
        RegexTransform(pattern, "", id="redact")


@pytest.mark.parametrize("pattern", ["(", "[", "a{2,1}", r"(?<=a*)b", r"(?P=x)", "*"])
def test_what_is_no_pattern_is_refused_by_name(pattern: str) -> None:
    with pytest.raises(ConfigError, match="redact: this is no regular expression"):
        RegexTransform(pattern, "", id="redact")


@pytest.mark.parametrize("repl", [r"\1", r"\g<name>", r"\g<", r"\k"])
def test_a_template_that_does_not_fit_is_refused_at_build(repl: str) -> None:
    with pytest.raises(ConfigError, match="or no template for it"):
        RegexTransform("a", repl)


@pytest.mark.parametrize(
    ("pattern", "repl"), [(b"a", ""), (re.compile(b"a"), b""), (None, ""), ("a", None), ("a", b"")]
)
def test_other_things_than_texts_are_refused(pattern: Any, repl: Any) -> None:
    with pytest.raises(ConfigError, match="takes a pattern, and a text or a function of the match"):
        RegexTransform(pattern, repl)


def test_a_template_and_a_function_of_the_match_do_what_re_does() -> None:
    text = "2026-11-30 and 1999-01-02"
    date = r"(?P<y>\d{4})-(\d\d)-(\d\d)"
    functions: list[Any] = [r"\3.\2.\g<y>", lambda match: f"<{match['y']}>", lambda match: ""]
    for repl in functions:
        assert rewritten(RegexTransform(date, repl), list(text)) == re.sub(date, repl, text)


def test_who_extends_its_transform_is_cut_like_any_function() -> None:
    class Louder(RegexTransform):
        def transform(self, text: str) -> str:
            return super().transform(text) + "!"

    class Same(TextTransform):
        lookahead = 2

        def transform(self, text: str) -> str:
            return text.replace("ab", "x") + "!"

    for transform in (Louder("ab", "x"), Same()):
        assert rewritten(transform, list("ab and ab")) == "x and x!"
