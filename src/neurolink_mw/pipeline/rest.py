"""A member that fails again and again is left alone for a while."""

from __future__ import annotations

import threading
from collections.abc import Callable

COOL_DOWN_S = 30.0
"""How long a member that failed `max_failures` times in a row is not asked; then one call tries it again."""


class Rest:
    """Counts failures in a row, in one place of one chain. Safe to share between threads."""

    def __init__(self, max_failures: int, clock: Callable[[], float]) -> None:
        self._max = max_failures
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._until: float | None = None

    def resting(self) -> bool:
        """Whether to leave the member alone. When the time is up, the one call that asks first tries it again."""
        if self._until is None:
            return False
        with self._lock:
            now = self._clock()
            if self._until is None or now < self._until:
                return self._until is not None
            self._until = now + COOL_DOWN_S
            return False

    def failed(self) -> None:
        with self._lock:
            self._failures += 1
            if self._failures >= self._max:
                self._until = self._clock() + COOL_DOWN_S

    def worked(self) -> None:
        if self._failures:
            with self._lock:
                self._failures = 0
                self._until = None
