"""The rules of a place: what the host does when the member that stands there fails, and how long it may take.

They belong to the place and never to the instance: one instance may stand in two pipelines under different rules.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from ..errors import ConfigError
from .wording import did_you_mean

OnError: TypeAlias = Literal["raise", "deny", "skip"]
Mode: TypeAlias = Literal["enforce", "shadow", "off"]


@dataclass(frozen=True)
class Rules:
    """on_error: "raise" passes a failure of the member on, "deny" refuses the call, "skip" goes on without the member.
    timeout: seconds of the member's own time in one call; the clock stops while the model further in works.
    mode: "shadow" records what a role would do and changes nothing; "off" leaves the member out.
    max_failures: after so many failures in a row the member is not asked for a while, and `on_error` holds at once.
    blocking: its sync methods run in a worker thread, where they hold up nobody and can be left behind.
    """

    on_error: OnError = "raise"
    timeout: float | None = None
    mode: Mode = "enforce"
    max_failures: int | None = None
    blocking: bool = False

    @property
    def owned(self) -> bool:
        """Whether the host has anything to do when the member fails, but to pass it on."""
        return self.on_error != "raise" or self.timeout is not None


def check_rules(where: str, rules: Rules) -> None:
    """ConfigError for a rule that no member can have."""
    for name, value, allowed in (("on_error", rules.on_error, get_args(OnError)), ("mode", rules.mode, get_args(Mode))):
        if value not in allowed:
            said = value if isinstance(value, str) else type(value).__name__
            raise ConfigError(f"{where}: {name} cannot be {said!r}{did_you_mean(str(said), list(allowed))}")
    timeout, failures = rules.timeout, rules.max_failures
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf
    ):
        raise ConfigError(f"{where}: timeout is a number of seconds above 0, or None for no limit")
    if failures is not None and (isinstance(failures, bool) or not isinstance(failures, int) or failures < 1):
        raise ConfigError(f"{where}: max_failures is a whole number from 1 on, or None for no limit")
    if failures is not None and rules.on_error == "raise":
        raise ConfigError(
            f"{where}: max_failures says when to stop asking a member and apply on_error at once, and on_error is "
            f'"raise": set on_error = "skip" or "deny", or leave max_failures out'
        )
    if not isinstance(rules.blocking, bool):
        raise ConfigError(f"{where}: blocking is true or false")
