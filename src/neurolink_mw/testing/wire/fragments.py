"""Texts as models emit them: in fragments, with pauses between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from neurolink_mw.testing.wire.plan import Pause

Text = str | Sequence[str | Pause]
"""A text, or the fragments a stream sends it in, with pauses."""


def fragments(text: Text) -> Sequence[str | Pause]:
    """The fragments as given; a plain text word by word, each with the space before it."""
    if not isinstance(text, str):
        return text
    words = text.split(" ")
    return [words[0], *(f" {word}" for word in words[1:])] if text else []


def joined(text: Text) -> str:
    return text if isinstance(text, str) else "".join(_said(text))


def runs(text: str, length: int = 8) -> list[str]:
    """The text in runs of `length` characters, which is how models emit JSON."""
    return [text[start : start + length] for start in range(0, len(text), length)]


def _said(text: Iterable[str | Pause]) -> Iterator[str]:
    return (fragment for fragment in text if isinstance(fragment, str))
