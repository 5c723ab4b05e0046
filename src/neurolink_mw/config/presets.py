"""Presets: named sets of middlewares to start from. A configuration may change, add to, or leave out any of them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError
from ..pipeline.wording import did_you_mean


@dataclass(frozen=True)
class Preset:
    """A set of members, as they would stand in a configuration."""

    about: str
    middlewares: tuple[dict[str, Any], ...]


# Long enough for a model that thinks for minutes, short enough that nobody waits for ever. An attempt has half of the
# call, so that one that hangs leaves time for another.
_CALL_S, _ATTEMPT_S = 600.0, 300.0

PRESETS: dict[str, Preset] = {
    "basic": Preset(
        "Get through what passes: up to 3 attempts, 5 minutes for each, 10 for the whole call.",
        ({"id": "timeout", "config": {"call": _CALL_S, "attempt": _ATTEMPT_S}}, {"id": "retry"}),
    ),
    "observe": Preset("See what calls do: a line in the log for each.", ({"id": "logging"},)),
}


def preset(name: str) -> dict[str, Any]:
    """What a preset stands for, as a configuration. ConfigError for an unknown name."""
    found = PRESETS.get(name)
    if found is None:
        raise ConfigError(f"preset: there is no preset {name!r}{did_you_mean(name, sorted(PRESETS))}")
    return {"middlewares": deepcopy(list(found.middlewares))}
