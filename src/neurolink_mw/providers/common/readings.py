"""Small readings of what a service says."""

from __future__ import annotations


class AnswerIds:
    """Ids of blocks and calls: the service's own, or with a number where another block has it already."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, id: str) -> str:
        made, number = id, 1
        while made in self._taken:
            number += 1
            made = f"{id}-{number}"
        self._taken.add(made)
        return made


def words(text: object) -> str | None:
    """A text that says something, else None."""
    return text if isinstance(text, str) and text else None


def count(number: object) -> int | None:
    """A whole number of 0 or more, else None."""
    return number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None
