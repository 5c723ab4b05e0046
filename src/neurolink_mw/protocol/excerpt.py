"""Head and tail of what a tool said, within limits, with a note of what was left out in between. Pure.

The end of an output says more than its beginning (the error, the summary, the newest lines), so it gets three quarters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from .prompt import (
    ContentOutput,
    ErrorJsonOutput,
    ErrorTextOutput,
    ExecutionDenied,
    JsonOutput,
    OutputContent,
    OutputFileData,
    OutputFileId,
    OutputFileUrl,
    OutputImageData,
    OutputImageFileId,
    OutputImageUrl,
    OutputText,
    TextOutput,
    ToolOutput,
)
from .tokens import json_text

Files: TypeAlias = Literal["keep", "describe"]
"""What becomes of images and files within an output: they stay, or a short text takes their place."""


@dataclass(frozen=True, slots=True)
class ExcerptLimits:
    """How long an excerpt may be, its note included. Bytes are those of UTF-8, lines are separated by a newline."""

    max_bytes: int
    max_lines: int

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_lines"):
            given = getattr(self, name)
            if not isinstance(given, int) or given < 1:
                raise ValueError(f"ExcerptLimits.{name} is a whole number from 1 on, not {given!r}")


OUTPUT_LIMITS: Final = ExcerptLimits(50 * 1024, 2_000)
"""For an output that is added to a conversation."""

PREVIEW_LIMITS: Final = ExcerptLimits(2_048, 60)
"""For an old output that has to make room."""


def excerpt(text: str, limits: ExcerptLimits) -> str:
    """The text itself where it fits; else its head, a note, its tail: never longer than the limits.

    Cuts are made at line ends where one is near, never within a character or between a letter and its accents. What
    is an excerpt already fits, and is left alone. Limits too small for a note leave the beginning of the text.
    """
    return _excerpt(text, _size(text), _lines(text), limits)


def _excerpt(text: str, size: int, lines: int, limits: ExcerptLimits) -> str:
    if size <= limits.max_bytes and lines <= limits.max_lines:
        return text
    text = text.removesuffix("\n")  # it would take a line that another count than ours may see
    # The longest that the note can become is a bound for it: fewer bytes left out are no more digits.
    longest = len(_note(size, lines)) + 2
    if longest > limits.max_bytes // 2:
        return _cut_head(text, limits.max_bytes, 1)
    room, rows = limits.max_bytes - longest, limits.max_lines - 1
    head_room, head_rows = room // 4, max(1, rows // 4)
    tail_room, tail_rows = room - head_room, max(1, rows - head_rows)
    head, tail = _cut_head(text, head_room, head_rows), _cut_tail(text, tail_room, tail_rows)
    between = "\n" if rows > 1 else " "  # of one or two lines none is left for the note: it stands within one
    left_out = size - _size(head) - _size(tail)
    rows_left_out = max(0, lines - head.count("\n") - tail.count("\n") - 2)
    return f"{head}{between}{_note(left_out, rows_left_out)}{between}{tail}"


def excerpts(texts: Sequence[str], limits: ExcerptLimits) -> list[str]:
    """Texts that share the limits, each at its place: short ones are kept whole, long ones get equal shares.

    Where the shares would be too small to read, the first text is an excerpt of all and the others are empty.
    """
    sizes, lines = [_size(text) for text in texts], [_lines(text) for text in texts]
    if sum(sizes) <= limits.max_bytes and sum(lines) <= limits.max_lines:
        return list(texts)
    if len(texts) > 1 and min(limits.max_bytes // 128, limits.max_lines // 3) < len(texts):
        return [excerpt("\n".join(texts), limits), *[""] * (len(texts) - 1)]
    shares = _shares([max(1, size) for size in sizes], limits.max_bytes)
    # A text that is cut can use every line it gets: one for the note, more for a better cut.
    wanted = [
        limits.max_lines if size > share else rows for size, rows, share in zip(sizes, lines, shares, strict=True)
    ]
    each = map(ExcerptLimits, shares, _shares(wanted, limits.max_lines))
    return [_excerpt(*one) for one in zip(texts, sizes, lines, each, strict=True)]


def excerpt_output(output: ToolOutput, limits: ExcerptLimits, *, files: Files = "keep") -> ToolOutput:
    """An output whose texts are within the limits; the same object where nothing changes.

    An error stays an error. JSON that is too long becomes an excerpt of its text, so its type is `text` or `error-text`
    then. Texts within content share the limits; files do not count, and are replaced by a short text with
    `files="describe"`. Metadata, and output of an unknown type, stay as they are.
    """
    if isinstance(output, TextOutput | ErrorTextOutput):
        shorter = excerpt(output.value, limits)
        return output if shorter is output.value else output.replace(value=shorter)
    if isinstance(output, JsonOutput | ErrorJsonOutput):
        text = json_text(output.value)
        shorter = excerpt(text, limits)
        if shorter is text:
            return output
        made = TextOutput if isinstance(output, JsonOutput) else ErrorTextOutput
        return made(shorter, output.provider_options, output.extra)
    if isinstance(output, ExecutionDenied) and output.reason is not None:
        shorter = excerpt(output.reason, limits)
        return output if shorter is output.reason else output.replace(reason=shorter)
    if isinstance(output, ContentOutput):
        return _content(output, limits, files)
    return output


def _content(output: ContentOutput, limits: ExcerptLimits, files: Files) -> ContentOutput:
    pieces = [_described(piece) for piece in output.value] if files == "describe" else list(output.value)
    places = [index for index, piece in enumerate(pieces) if isinstance(piece, OutputText)]
    texts = [piece.text for piece in pieces if isinstance(piece, OutputText)]
    left_out = set()
    for index, text, shorter in zip(places, texts, excerpts(texts, limits), strict=True):
        if shorter is not text:
            pieces[index] = pieces[index].replace(text=shorter)
            left_out |= {index} if not shorter else set()
    if all(now is before for now, before in zip(pieces, output.value, strict=True)):
        return output
    return output.replace(value=tuple(piece for index, piece in enumerate(pieces) if index not in left_out))


def _described(piece: OutputContent) -> OutputContent:
    if isinstance(piece, OutputImageData | OutputFileData):
        return OutputText(file_note(piece.media_type, len(piece.data)), piece.provider_options)
    if isinstance(piece, OutputImageUrl | OutputImageFileId):
        return OutputText(file_note("image"), piece.provider_options)
    if isinstance(piece, OutputFileUrl | OutputFileId):
        return OutputText(file_note("file"), piece.provider_options)
    return piece


def file_note(kind: str, size: int | None = None) -> str:
    """What stands in place of a file."""
    return f"[{kind} left out]" if size is None else f"[{kind} of {size:,} bytes left out]"


def _note(size: int, lines: int) -> str:
    rows = f" in {lines:,} lines" if lines > 1 else ""
    return f"[... {size:,} bytes{rows} left out ...]"


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _lines(text: str) -> int:
    """Lines as an editor counts them: a newline at the end begins no further one."""
    return text.count("\n") + (not text.endswith("\n"))


def _shares(wants: Sequence[int], total: int) -> list[int]:
    """What each gets: all that it wants, or an equal part of what the modest ones leave."""
    given = [0] * len(wants)
    for rank, index in enumerate(sorted(range(len(wants)), key=wants.__getitem__)):
        given[index] = min(wants[index], total // (len(wants) - rank))
        total -= given[index]
    return given


def _cut_head(text: str, max_bytes: int, max_lines: int) -> str:
    """The beginning. Its last newline is left to the note."""
    piece = text[:max_bytes]  # no character takes less than a byte
    cut = len(_within(piece, max_bytes, "head"))
    end = _nth_newline(piece, max_lines)
    if 0 <= end <= cut:
        return piece[:end]
    if cut < len(text) and (near := piece.rfind("\n", cut // 2, cut)) >= 0:
        return piece[:near]
    return text[: _boundary(text, cut, -1)]


def _cut_tail(text: str, max_bytes: int, max_lines: int) -> str:
    """The end. The newline before it is left to the note."""
    piece = _within(text[-max_bytes:], max_bytes, "tail")
    rows = piece.rsplit("\n", max_lines)
    if len(rows) > max_lines:
        return "\n".join(rows[1:])
    if len(piece) < len(text) and 0 <= (near := piece.find("\n")) < len(piece) // 2:
        return piece[near + 1 :]
    return text[_boundary(text, len(text) - len(piece), 1) :]


def _within(piece: str, max_bytes: int, part: Literal["head", "tail"]) -> str:
    """As many whole characters as fit. Only such pieces are encoded, never the text that they were taken from."""
    if piece.isascii():
        return piece
    data = piece.encode("utf-8", "surrogatepass")
    if len(data) <= max_bytes:
        return piece
    if part == "head":
        end = max_bytes
        while data[end] & 0xC0 == 0x80:
            end -= 1
        return data[:end].decode("utf-8", "surrogatepass")
    start = len(data) - max_bytes
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:].decode("utf-8", "surrogatepass")


def _nth_newline(text: str, number: int) -> int:
    """Where so many lines end; -1 where there are fewer."""
    at = -1
    for _ in range(number):
        at = text.find("\n", at + 1)
        if at < 0:
            return -1
    return at


_JOINER: Final = "\u200d"
_FARTHEST: Final = 32


def _boundary(text: str, cut: int, step: Literal[1, -1]) -> int:
    """The next place in a direction that does not part a letter from its accents, or an emoji. Text that is nothing
    but accents is cut all the same."""
    place = cut
    for _ in range(_FARTHEST):
        if not 0 < place < len(text) or not (_clings(text[place]) or text[place - 1] == _JOINER):
            return place
        place += step
    return cut


def _clings(character: str) -> bool:
    return (
        unicodedata.category(character).startswith("M")
        or character == _JOINER
        or "\U0001f3fb" <= character <= "\U0001f3ff"
    )
