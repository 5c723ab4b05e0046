"""Presets: named sets of middlewares to start from. A configuration may change, add to, or leave out any of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError
from ..pipeline.wording import did_you_mean


@dataclass(frozen=True)
class Preset:
    """A set of members, as they would stand in a configuration."""

    about: str
    middlewares: tuple[dict[str, Any], ...]


PRESETS: dict[str, Preset] = {"observe": Preset("See what calls do: a line in the log for each.", ({"id": "logging"},))}


def preset(name: str) -> dict[str, Any]:
    """What a preset stands for, as a configuration. ConfigError for an unknown name."""
    found = PRESETS.get(name)
    if found is None:
        raise ConfigError(f"preset: there is no preset {name!r}{did_you_mean(name, sorted(PRESETS))}")
    return {"middlewares": [dict(member) for member in found.middlewares]}
