"""`python -m benchmarks`, from the root of the repository."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from . import (
    anthropic_events,
    bedrock_events,
    bedrock_peers,
    generate,
    host,
    imports,
    long_turns,
    loop_guard,
    open_streams,
    openai_events,
    peers,
    plugins,
    report,
    roles,
    stream,
    turns,
    values,
)
from .figure import Measured
from .measure import FULL, QUICK, Effort

GROUPS: Final[dict[str, Callable[[Effort], Measured]]] = {
    "generate": generate.measure,
    "stream": stream.measure,
    "host": host.measure,
    "roles": roles.measure,
    "loop_guard": loop_guard.measure,
    "turns": turns.measure,
    "long_turns": long_turns.measure,
    "open_streams": open_streams.measure,
    "openai": openai_events.measure,
    "bedrock": bedrock_events.measure,
    "anthropic": anthropic_events.measure,
    "values": values.measure,
    "imports": imports.measure,
    "plugins": plugins.measure,
}
PEERS: Final[dict[str, Callable[[Effort], Measured]]] = {name: partial(peers.measure, name) for name in peers.PEERS}
PEERS["bedrock_peers"] = bedrock_peers.measure


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    effort = QUICK if asked.quick else FULL
    groups = GROUPS | PEERS
    names = asked.only or list(GROUPS)
    names += [name for name in PEERS if asked.peers and name not in names]
    measured: Measured = []
    for name in names:
        print(f"measuring {name} ...", file=sys.stderr)
        measured += groups[name](effort)
    print(report.table(measured))
    print()
    print(report.summary(measured))
    if asked.json is not None:
        asked.json.write_text(report.as_json(measured, effort))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="What the library costs, as ratios to floors of the same run."
    )
    choices = [*GROUPS, *PEERS]
    parser.add_argument(
        "--only", nargs="+", choices=choices, metavar="NAME", help=f"groups to measure: {', '.join(choices)}"
    )
    parser.add_argument("--quick", action="store_true", help="short samples, few rounds: shows that all runs, no more")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    parser.add_argument("--peers", action="store_true", help="also measure the other libraries that are installed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
