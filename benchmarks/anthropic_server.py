"""The child process of `anthropic_events`: prints the address of a server, and serves until standard input ends."""

from __future__ import annotations

import sys
from typing import Final

from neurolink_mw.testing.wire import Delivery, anthropic

DELTAS: Final = 500
EVENTS: Final = DELTAS + 5
"""What a reply has: a beginning, a block around the deltas, what it cost, the end."""

PIECES: Final[dict[str, Delivery]] = {"in a burst": {"rechunk": 1 << 20}, "event by event": {}}
"""How the body reaches the client: all at once, or each event as a chunk of its own."""


def main(how: str) -> None:
    reply = anthropic.answer(deltas=["word "] * DELTAS, **PIECES[how]).streamed()
    with anthropic.server([reply], repeat="last") as server:
        print(server.base_url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
