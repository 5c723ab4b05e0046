"""How the tools of a turn are run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import ConfigError
from ..protocol.excerpt import OUTPUT_LIMITS, ExcerptLimits
from .breaker import Breaker

if TYPE_CHECKING:
    from .approval import Approve


@dataclass(frozen=True)
class ToolSettings:
    """parallel: how many tools of a step run at once. timeout: seconds for a try of a tool that sets none itself; None
    for no limit. breaker: when a tool that keeps failing is left alone; None for never. approve: decides on calls that
    need approval; None asks the caller. output_limits: what of an output goes into the conversation; None for all."""

    parallel: int = 8
    timeout: float | None = None
    breaker: Breaker | None = field(default_factory=Breaker)
    approve: Approve | None = None
    output_limits: ExcerptLimits | None = OUTPUT_LIMITS

    def __post_init__(self) -> None:
        if isinstance(self.parallel, bool) or not isinstance(self.parallel, int) or self.parallel < 1:
            raise ConfigError("parallel is the number of tools that run at once, from 1 on")
        if not is_seconds(self.timeout):
            raise ConfigError("the timeout of tools is a number of seconds above 0, or None for no limit")
        if self.breaker is not None and not isinstance(self.breaker, Breaker):
            raise ConfigError(f"breaker is a Breaker(...) or None, not {type(self.breaker).__name__}")
        if self.approve is not None and not callable(self.approve):
            raise ConfigError(f"approve is a function of the call, not {type(self.approve).__name__}")
        if self.output_limits is not None and not isinstance(self.output_limits, ExcerptLimits):
            raise ConfigError(f"output_limits is ExcerptLimits(...) or None, not {type(self.output_limits).__name__}")


def is_seconds(limit: object) -> bool:
    """Whether it is a limit of time: a finite number above 0, or None."""
    if limit is None:
        return True
    return isinstance(limit, int | float) and not isinstance(limit, bool) and 0 < limit < math.inf
