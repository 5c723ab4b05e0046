"""1,000 streams held open after their first part: what it costs to get there, and what each holds in memory."""

from __future__ import annotations

from .child import in_turn, run_json
from .figure import Figure, Floor, Goal, Measured
from .measure import Effort
from .open_streams_probe import FLOOR, OPENERS, STREAMS

_JUDGED = {"through", "through + boundary"}
_CPU_GOAL = Goal(35, of="value", where_floor_took=16.4)
_MEMORY_GOAL = Goal(12, of="value")


def measure(effort: Effort) -> Measured:
    streams = 100 if effort.is_quick else STREAMS
    taken = in_turn(OPENERS, lambda name: run_json("-m", "benchmarks.open_streams_probe", name, str(streams)), effort)
    cpu, memory = Floor(FLOOR, taken[FLOOR]["us"]), Floor(FLOOR, taken[FLOOR]["kb"])
    figures: Measured = []
    for name, opener in OPENERS.items():
        if name != FLOOR:
            us, kb = (_CPU_GOAL, _MEMORY_GOAL) if name in _JUDGED else (None, None)
            figures += [
                Figure(f"open_streams.{name}, to the first part", taken[name]["us"], "us/stream", cpu, opener.n, us),
                Figure(f"open_streams.{name}, memory", taken[name]["kb"], "KB/stream", memory, opener.n, kb),
            ]
    return figures
