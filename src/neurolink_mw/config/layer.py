"""One layer of a configuration, as it was given: read by itself, so that a fault is named by its own place in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import ConfigError
from .merge import merge
from .presets import preset
from .schema import normal, sentence, shape_faults
from .secrets import Place, Secrets, resolve


@dataclass(frozen=True)
class Layers:
    """Layers laid over each other. `data`: in the long form, without what is faulty. `places`: where each member was
    named last, for messages. `faults`: one sentence each."""

    data: dict[str, Any]
    places: dict[str, str]
    faults: tuple[str, ...] = ()

    def under(self, layer: Any, secrets: Secrets, *, prefix: str = "") -> Layers:
        """One more layer over these."""
        if not isinstance(layer, Mapping):
            kind = type(layer).__name__
            raise ConfigError(f"a configuration is the path of a file, or a mapping of options, not {kind}")
        resolved, faults = resolve(layer, secrets)
        written, more = normal(resolved)
        faults += more
        faulty = {_top(place) for place, _ in faults}
        faults += [one for one in shape_faults(written, whole=False) if _top(one[0]) not in faulty]
        clean = _without(written, {_top(place) for place, _ in faults})
        places = {
            member["id"]: f"{prefix}middlewares[{at}]"
            for at, member in enumerate(_members(written))
            if isinstance(member, Mapping) and isinstance(member.get("id"), str)
        }
        sentences = [f"{prefix}{sentence(fault)}" for fault in faults]
        return Layers(merge(self.data, clean), self.places | places, (*self.faults, *sentences))

    def over_preset(self) -> Layers:
        """These layers over the preset that they name."""
        name = self.data.get("preset")
        if name is None:
            return self
        try:
            lower, _ = normal(preset(name))
        except ConfigError as error:
            return replace(self, faults=(*self.faults, str(error)))
        places = {member["id"]: f"preset {name}: {member['id']}" for member in lower["middlewares"]}
        data = merge(lower, self.data)
        return Layers(data, places | self.places, self.faults)


def _members(layer: Mapping[str, Any]) -> list[Any]:
    members = layer.get("middlewares")
    return members if isinstance(members, list) else []


def _top(place: Place) -> Place:
    """The part of a configuration that a fault in it makes useless: one member, or all of an option."""
    at_member = place[:1] == ("middlewares",) and len(place) > 1
    return place[:2] if at_member else place[:1]


def _without(layer: dict[str, Any], faulty: set[Place]) -> dict[str, Any]:
    clean = {key: value for key, value in layer.items() if (str(key),) not in faulty}
    if "middlewares" in clean:
        members = enumerate(_members(layer))
        clean["middlewares"] = [member for at, member in members if ("middlewares", at) not in faulty]
    return clean
