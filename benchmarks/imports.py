"""What `import neurolink_mw` costs a fresh interpreter, and what it does not load."""

from __future__ import annotations

from typing import Final

from .child import in_turn, run_json
from .figure import Figure, Floor, Goal, Measured
from .measure import Effort

_FLOOR: Final = "import pydantic, anyio, pluggy, opentelemetry.trace"
_STATEMENTS: Final = (
    _FLOOR,
    "import neurolink_mw",
    "from neurolink_mw import Pipeline",
    "from neurolink_mw import *",
    "pass",
)
_HEAVY: Final = ("anthropic", "boto3", "httpx")

# The statement runs first, so that what reports on it is not counted.
_REPORT: Final = """
import time; seconds = time.process_time()
import json, sys
print(json.dumps({{"ms": seconds * 1000, "heavy": sum(name in sys.modules for name in {heavy}),
                   "modules": len(sys.modules)}}))
"""


def measure(effort: Effort) -> Measured:
    report = _REPORT.format(heavy=_HEAVY)
    taken = in_turn(_STATEMENTS, lambda statement: run_json("-c", f"{statement}\n{report}"), effort)
    floor = Floor(_FLOOR.removeprefix("import "), taken[_FLOOR]["ms"])
    figures: Measured = []
    for statement in _STATEMENTS[1:]:
        judged = statement == "import neurolink_mw"
        name = "python alone" if statement == "pass" else statement
        figures.append(
            Figure(f"imports.{name}", taken[statement]["ms"], "ms", floor, goal=Goal(1.15) if judged else None)
        )
    for statement in _STATEMENTS[1:4]:
        loaded = taken[statement]["heavy"]
        goal = Goal(0, of="value") if statement == "import neurolink_mw" else None
        figures.append(Figure(f"imports.{statement}: of {', '.join(_HEAVY)}", loaded, "modules", goal=goal))
    return figures
