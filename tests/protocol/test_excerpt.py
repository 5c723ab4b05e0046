"""Excerpts keep head and tail, say what is gone, and are never longer than allowed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.protocol import (
    OUTPUT_LIMITS,
    PREVIEW_LIMITS,
    ContentOutput,
    ErrorJsonOutput,
    ErrorTextOutput,
    ExcerptLimits,
    ExecutionDenied,
    JsonOutput,
    OutputCustom,
    OutputFileData,
    OutputFileId,
    OutputFileUrl,
    OutputImageData,
    OutputImageFileId,
    OutputImageUrl,
    OutputText,
    TextOutput,
    ToolOutput,
    UnknownPart,
    excerpt,
    excerpt_output,
)
from neurolink_mw.protocol.excerpt import excerpts

from .strategies import quick

SMALL = ExcerptLimits(400, 20)
LONG = "x" * 10_000
NOTES = {"vendor": {"key": "value"}}

awkward = st.text(st.sampled_from("ab\n é\u0301中😀\ud800\u200d")) | st.text()
limits_ = st.builds(ExcerptLimits, st.integers(1, 400), st.integers(1, 20))


def size_of(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def halves(text: str) -> tuple[str, str]:
    """What stands before and after the note."""
    head, _, rest = text.partition("[...")
    return head[:-1], rest.partition("...]")[2][1:]


# -------------------------------------------------------------------------------------------------------- texts


def test_what_fits_is_the_same_object() -> None:
    text = "line\n" * 2000
    assert excerpt(text, OUTPUT_LIMITS) is text


@given(awkward, limits_)
@quick
def test_an_excerpt_is_never_too_long_by_any_count_of_lines(text: str, limits: ExcerptLimits) -> None:
    shown = excerpt(text, limits)
    assert size_of(shown) <= limits.max_bytes
    if shown is not text:
        assert shown.count("\n") + 1 <= limits.max_lines


@given(awkward, limits_)
@quick
def test_an_excerpt_is_not_excerpted_again(text: str, limits: ExcerptLimits) -> None:
    shown = excerpt(text, limits)
    assert excerpt(shown, limits) is shown


@given(st.text(st.sampled_from("ab\n é\u0301中😀"), min_size=500, max_size=2000))
@quick
def test_both_halves_stand_in_the_text(text: str) -> None:
    head, tail = halves(excerpt(text, SMALL))
    assert text.startswith(head)
    assert text.removesuffix("\n").endswith(tail)


def test_a_quarter_is_head_and_the_rest_is_tail() -> None:
    head, tail = halves(excerpt(LONG, SMALL))
    assert 80 < len(head) < 100
    assert 250 < len(tail) < 300


def test_the_note_says_how_many_bytes_and_lines_are_gone() -> None:
    text = "".join(f"{number:04}\n" for number in range(3000))
    shown = excerpt(text, OUTPUT_LIMITS).split("\n")
    assert len(shown) == 2000
    assert (shown[0], shown[498], shown[500], shown[-1]) == ("0000", "0498", "1500", "2999")
    assert shown[499] == "[... 5,007 bytes in 1,001 lines left out ...]"


def test_one_great_line_keeps_its_head_and_its_tail() -> None:
    head, note, tail = excerpt("a" * 50_000 + "b" * 50_000, PREVIEW_LIMITS).split("\n")
    assert set(head) == {"a"}
    assert set(tail) == {"b"}
    assert note == f"[... {100_000 - len(head) - len(tail):,} bytes left out ...]"


def test_one_line_may_be_all_that_is_allowed() -> None:
    shown = excerpt("first\n" + LONG + "\nlast\n", ExcerptLimits(400, 1))
    assert shown == "first [... 10,003 bytes left out ...] last"


def test_limits_too_small_for_a_note_leave_the_beginning() -> None:
    assert excerpt(LONG, ExcerptLimits(5, 1)) == "xxxxx"


def test_cuts_are_made_at_line_ends_where_one_is_near() -> None:
    head, tail = halves(excerpt("a line of text\n" * 1000, SMALL))
    assert {*head.split("\n"), *tail.split("\n")} == {"a line of text"}


@pytest.mark.parametrize("unit", ["e\u0301", "👩\u200d💻", "👍🏽"])
def test_letters_keep_their_accents(unit: str) -> None:
    for offset in range(8):
        head, tail = halves(excerpt("-" * offset + unit * 500, SMALL))
        assert head == "-" * offset + unit * head.count(unit)
        assert tail == unit * tail.count(unit)


def test_characters_are_never_cut() -> None:
    for offset in range(4):
        shown = excerpt("-" * offset + "😀" * 500, SMALL)
        assert "\ufffd" not in shown
        shown.encode()


@pytest.mark.parametrize("given", [0, -1, 2.5])
def test_limits_are_whole_numbers(given: object) -> None:
    with pytest.raises(ValueError, match=r"ExcerptLimits\.max_bytes is a whole number from 1 on"):
        ExcerptLimits(given, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"ExcerptLimits\.max_lines"):
        ExcerptLimits(1, given)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------ several


@given(st.lists(awkward, max_size=8), st.builds(ExcerptLimits, st.integers(1, 2000), st.integers(1, 60)))
@quick
def test_texts_share_the_limits(texts: list[str], limits: ExcerptLimits) -> None:
    shown = excerpts(texts, limits)
    assert len(shown) == len(texts)
    assert sum(map(size_of, shown)) <= limits.max_bytes
    if shown != texts:
        assert sum(text.removesuffix("\n").count("\n") + 1 for text in shown if text) <= limits.max_lines


def test_short_texts_are_kept_whole_beside_a_long_one() -> None:
    short, long, other = excerpts(["short", LONG, "other"], ExcerptLimits(1000, 30))
    assert (short, other) == ("short", "other")
    assert 900 < len(long) <= 990


def test_too_many_texts_become_one() -> None:
    first, *others = excerpts([f"text {number}" for number in range(1000)], SMALL)
    assert first.startswith("text 0\ntext 1\n")
    assert first.endswith("\ntext 999")
    assert set(others) == {""}


# ------------------------------------------------------------------------------------------------------ outputs


@pytest.mark.parametrize(
    "output",
    [
        TextOutput("short"),
        JsonOutput({"a": 1}),
        ErrorTextOutput("short"),
        ErrorJsonOutput([1]),
        ExecutionDenied(),
        ExecutionDenied("short"),
        ContentOutput((OutputText("short"), OutputImageData(bytes(100_000), "image/png"))),
        UnknownPart("new", {"data": LONG}),
    ],
    ids=lambda output: output.type,
)
def test_an_output_that_fits_is_the_same_object(output: ToolOutput) -> None:
    assert excerpt_output(output, SMALL) is output


@pytest.mark.parametrize(
    ("output", "type"),
    [
        (TextOutput(LONG, NOTES, NOTES), "text"),
        (JsonOutput({"a": LONG}, NOTES, NOTES), "text"),
        (ErrorTextOutput(LONG, NOTES, NOTES), "error-text"),
        (ErrorJsonOutput({"a": LONG}, NOTES, NOTES), "error-text"),
    ],
)
def test_an_error_stays_an_error_and_metadata_stays(output: ToolOutput, type: str) -> None:
    shorter = excerpt_output(output, SMALL)
    assert isinstance(shorter, TextOutput | ErrorTextOutput)
    assert (shorter.type, shorter.provider_options, shorter.extra) == (type, NOTES, NOTES)
    assert len(shorter.value) <= SMALL.max_bytes
    assert "bytes left out" in shorter.value


def test_long_json_is_shown_as_its_text() -> None:
    shorter = excerpt_output(JsonOutput({"a": LONG}), SMALL)
    assert isinstance(shorter, TextOutput)
    assert shorter.value.startswith('{"a":"xxx')
    assert shorter.value.endswith('xxx"}')


def test_the_reason_of_a_denial_is_shortened() -> None:
    shorter = excerpt_output(ExecutionDenied(LONG, NOTES), SMALL)
    assert isinstance(shorter, ExecutionDenied)
    assert len(shorter.reason or "") <= SMALL.max_bytes
    assert shorter.provider_options == NOTES


def test_texts_within_content_share_the_limits_and_files_are_kept() -> None:
    image, unknown = OutputImageData(bytes(10_000), "image/png"), UnknownPart("new", {"data": LONG})
    output = ContentOutput((OutputText(LONG, NOTES), image, OutputText("short"), unknown), NOTES)
    shorter = excerpt_output(output, SMALL)
    assert isinstance(shorter, ContentOutput)
    first, *others = shorter.value
    assert isinstance(first, OutputText)
    assert (len(first.text) < SMALL.max_bytes - 5, first.provider_options) == (True, NOTES)
    assert others == [image, OutputText("short"), unknown]
    assert shorter.provider_options == NOTES


def test_files_can_be_replaced_by_a_word() -> None:
    custom = OutputCustom(NOTES)
    output = ContentOutput(
        (
            OutputImageData(bytes(10_000), "image/png"),
            OutputFileData(bytes(10), "application/pdf", "a.pdf"),
            OutputImageUrl("https://example.com/a.png"),
            OutputImageFileId("file-1"),
            OutputFileUrl("https://example.com/a.pdf"),
            OutputFileId("file-1"),
            custom,
        )
    )
    shorter = excerpt_output(output, PREVIEW_LIMITS, files="describe")
    assert isinstance(shorter, ContentOutput)
    assert [piece.text for piece in shorter.value if isinstance(piece, OutputText)] == [
        *("[image/png of 10,000 bytes left out]", "[application/pdf of 10 bytes left out]"),
        *("[image left out]", "[image left out]", "[file left out]", "[file left out]"),
    ]
    assert shorter.value[-1] is custom
    assert excerpt_output(shorter, PREVIEW_LIMITS, files="describe") is shorter


def test_too_many_texts_within_content_leave_one() -> None:
    output = ContentOutput(tuple(OutputText(f"text {number}") for number in range(1000)))
    shorter = excerpt_output(output, SMALL)
    assert isinstance(shorter, ContentOutput)
    assert len(shorter.value) == 1
