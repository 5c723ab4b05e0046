"""From configuration to members: which take part, made from their own typed config, in which place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import ConfigError, NeurolinkError
from ..pipeline import Middleware, Use
from ..pipeline.middleware import did_you_mean, make_config
from ..pipeline.order import Placed, arrange
from ..pipeline.place import as_uses
from ..plugins import Registry, default_registry, load_plugins
from .load import Secrets, resolve
from .merge import merge
from .presets import preset
from .schema import MemberConfig, ModelConfig, PipelineConfig, parse

Made = dict[str, tuple[dict[str, Any], Middleware]]
"""Members that were made from a configuration, with the config that each was made from."""


@dataclass
class Plan:
    """A pipeline as it will be built. `raw` is its configuration with references in place of secrets."""

    raw: dict[str, Any]
    registry: Registry
    model: ModelConfig | None
    placed: tuple[Placed, ...]
    left_out: tuple[tuple[str, str], ...]
    made: Made
    secrets: Secrets = field(repr=False)


def make_plan(
    layers: Sequence[Mapping[str, Any]],
    members: Sequence[Middleware | Use] = (),
    *,
    registry: Registry | None = None,
    reuse: Made | None = None,
) -> Plan:
    """Lay configurations over each other and settle who stands where.

    members: given in code, beside those of the configuration. reuse: members of an earlier plan, taken over where
    their config is the same. ConfigError with one sentence for every fault that was found.
    """
    raw: dict[str, Any] = {}
    for layer in layers:
        raw = merge(raw, layer)
    if isinstance(raw.get("preset"), str):
        raw = merge(preset(raw["preset"]), raw)
    secrets = Secrets()
    config = parse(resolve(raw, secrets))
    if config.plugins:
        registry = load_plugins(config.plugins)
    registry = registry or default_registry()
    try:
        return _plan(raw, config, as_uses(members), registry, secrets, reuse or {})
    except NeurolinkError as error:
        raise type(error)(secrets.scrub(str(error))) from None


def _plan(
    raw: dict[str, Any], config: PipelineConfig, given: list[Use], registry: Registry, secrets: Secrets, reuse: Made
) -> Plan:
    faults: list[str] = []
    entries = {f"middlewares[{index}]": member for index, member in enumerate(config.middlewares)}
    listed = {member.id for member in config.middlewares}
    entries |= {f"enable: {id}": MemberConfig(id=id) for id in dict.fromkeys(config.enable) if id not in listed}
    known = {*registry.middleware_ids, *(use.id for use in given)}
    for id in config.disable:
        if id not in known:
            faults.append(f"disable: there is no middleware {id!r}{did_you_mean(id, sorted(known))}")
    uses, made, left_out = [], {}, []
    for where, entry in entries.items():
        why = _left_out(entry, config)
        if why is not None:
            left_out.append((entry.id, why))
        try:
            member = _make(entry, where, registry, reuse)
            if why is None:
                made[entry.id] = (entry.config, member)
                uses.append(_use(entry, member))
        except NeurolinkError as error:
            faults.append(str(error))
    left_out += [(use.id, "disabled") for use in given if use.id in config.disable]
    uses += [use for use in given if use.id not in config.disable]
    if faults:
        raise ConfigError("\n".join(faults))
    placed = tuple(arrange(uses, known=known))
    return Plan(raw, registry, config.model, placed, tuple(left_out), made, secrets)


def _left_out(entry: MemberConfig, config: PipelineConfig) -> str | None:
    if entry.id in config.disable:
        return "disabled"
    if not entry.enabled and entry.id not in config.enable:
        return "enabled = false"
    return None


def _make(entry: MemberConfig, where: str, registry: Registry, reuse: Made) -> Middleware:
    """The member of an entry. One that is left out is made too: a fault in it is found before it is switched on."""
    earlier = reuse.get(entry.id)
    if earlier is not None and earlier[0] == entry.config:
        return earlier[1]
    try:
        cls = registry.middleware(entry.id)
    except ConfigError as error:
        raise ConfigError(f"{where}.id: {error}") from None
    typed = make_config(cls, entry.config, where=f"{where}.config")
    try:
        return cls(typed)
    except NeurolinkError as error:
        raise ConfigError(f"{where}.config: {error}") from None
    except TypeError:
        raise ConfigError(f"{where}: {cls.__name__} cannot be made from a configuration: add it in code") from None


def _use(entry: MemberConfig, member: Middleware) -> Use:
    try:
        when = entry.when.build() if entry.when is not None else None
    except ConfigError as error:
        raise ConfigError(f"middlewares: {entry.id}.{error}") from None
    return Use(member, when=when, priority=entry.priority, before=entry.before, after=entry.after)
