"""The child process of `bedrock_events`: prints the address of a server, and serves until standard input ends."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from neurolink_mw.testing.wire import Pause, Reply, bedrock

DELTAS: Final = 500
EVENTS: Final = DELTAS + 4
"""What a reply in a burst has: a beginning, the deltas, the end of their block, the end of the message, its cost."""

PACED: Final = 100
PACE_S: Final = 0.01


def burst() -> Reply:
    """Everything at once."""
    return bedrock.answer(deltas=["word "] * DELTAS, rechunk=1 << 20).streamed()


def paced() -> Reply:
    """A delta every 10 ms."""
    return bedrock.answer(deltas=[piece for _ in range(PACED) for piece in ("word ", Pause(PACE_S))]).streamed()


REPLIES: Final[dict[str, Callable[[], Reply]]] = {"burst": burst, "paced": paced}


def main(how: str) -> None:
    with bedrock.server([REPLIES[how]()], repeat="last") as server:
        print(server.base_url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
