"""A tool that keeps failing is left alone for the rest of the turn: the model is told, and can go on without it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ..errors import ConfigError


@dataclass(frozen=True, slots=True)
class Breaker:
    """failures: after so many a tool is not run any more in this turn. consecutive: a success starts the count anew;
    else all failures of the turn count. Returned errors and timeouts are failures; invalid input is none, since the
    tool did not run."""

    failures: int = 5
    consecutive: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.failures, bool) or not isinstance(self.failures, int) or self.failures < 1:
            raise ConfigError("Breaker.failures is a whole number from 1 on; use breaker=None for no limit")


class BreakerState:
    """The count of one turn."""

    __slots__ = ("_breaker", "_failures")

    def __init__(self, breaker: Breaker | None) -> None:
        self._breaker = breaker
        self._failures: Counter[str] = Counter()

    def note(self, name: str, *, failed: bool) -> None:
        """A tool ran."""
        if failed:
            self._failures[name] += 1
        elif self._breaker is not None and self._breaker.consecutive:
            self._failures[name] = 0

    def is_open(self, name: str) -> bool:
        """Whether the tool is left alone from here on."""
        return self._breaker is not None and self._failures[name] >= self._breaker.failures
