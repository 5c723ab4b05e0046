"""When the text of a stream may leave. The verdict is always that of the whole answer; this says only who waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing leaves before the verdict: what is denied or replaced reaches nobody."""


@dataclass(frozen=True, slots=True)
class Window:
    """Text leaves while looks at it allow that; the newest `n - 1` characters of a block always wait, so that no
    character of a match of up to `n` characters within one block leaves before a look saw the match whole. What is
    longer, or goes over two blocks, leaks its beginning. stride: characters between two looks, `n` unless given; each
    look is at all the text so far."""

    n: int
    stride: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("n", self.n), ("stride", self.stride)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ValueError(f"Window({name}=...) is a number of characters, from 1 on")


@dataclass(frozen=True, slots=True)
class Pass:
    """Text leaves at once, and the verdict comes at the end: for policies that flag."""


Streaming: TypeAlias = Hold | Window | Pass
