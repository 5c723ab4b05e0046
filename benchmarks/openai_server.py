"""The child process of `openai_events`: prints the address of a server, and serves until standard input ends."""

from __future__ import annotations

import sys
from typing import Final

from neurolink_mw.testing.wire import Delivery, openai

EVENTS: Final = 505
"""What a reply has: a role, the deltas, a finish reason, the usage, `[DONE]`."""

PIECES: Final[dict[str, Delivery]] = {"in a burst": {"rechunk": 1 << 20}, "event by event": {}}
"""How the body reaches the client: all at once, or each event as a chunk of its own."""


def main(how: str) -> None:
    reply = openai.stream_text(["word "] * (EVENTS - 4), usage=openai.usage(), **PIECES[how])
    with openai.server([reply], repeat="last") as server:
        print(server.base_url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
