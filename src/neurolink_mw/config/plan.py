"""From configuration to members: which take part, made from their own typed config, in which place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import ConfigError, NeurolinkError, PluginError
from ..pipeline import Denied, Lint, Member, Use
from ..pipeline.member import make_config
from ..pipeline.order import Placed, arrange
from ..pipeline.place import MODE_OFF, as_uses
from ..pipeline.wording import did_you_mean, without_texts
from ..plugins import Registry, default_registry, with_plugins
from .layer import Layers
from .schema import MemberConfig, ModelConfig, PipelineConfig, sentence, shape_faults
from .secrets import Secrets

Made = dict[str, tuple[dict[str, Any], Member]]
"""Members that were made from a configuration, with the config that each was made from."""


@dataclass
class Plan:
    """A pipeline as it will be built. `layers` is its configuration, with the values that references stood for."""

    layers: Layers = field(repr=False)
    registry: Registry
    model: ModelConfig | None
    placed: tuple[Placed, ...]
    left_out: tuple[tuple[str, str], ...]
    made: Made = field(repr=False)
    secrets: Secrets = field(repr=False)
    lint: Lint = "error"
    denied: Denied = "refuse"


def make_plan(
    source: Any = None,
    overrides: Any = None,
    members: Sequence[Member | Use] = (),
    *,
    registry: Registry | None = None,
    earlier: Plan | None = None,
) -> Plan:
    """Lay configurations over each other and settle who stands where.

    members: given in code, beside those of the configuration. earlier: a plan to start from; its members are taken
    over where their config is the same. ConfigError with one sentence for every fault that was found.
    """
    secrets = Secrets(dict(earlier.secrets.references) if earlier else {})
    with secrets.kept_out():
        layers = earlier.layers if earlier else Layers({}, {})
        if source is not None:
            layers = layers.under(source, secrets)
        if overrides is not None:
            layers = layers.under(overrides, secrets, prefix="overrides." if source is not None else "")
        layers = layers.over_preset()
        faults = list(layers.faults)
        if not faults:
            faults = [sentence(fault) for fault in shape_faults(layers.data, whole=True)]
            _refuse(faults)
        config = PipelineConfig.model_validate(_usable(layers.data))
        registry = registry or (earlier.registry if earlier else default_registry())
        try:
            registry = with_plugins(registry, config.plugins)
        except PluginError as error:  # what else is unknown may be this plugin's
            raise PluginError("\n".join((*faults, f"plugins: {error}"))) from error
        return _plan(layers, config, as_uses(members), registry, secrets, earlier.made if earlier else {}, faults)


def _usable(data: dict[str, Any]) -> dict[str, Any]:
    """Without a model that is not whole, where other faults are to be told as well."""
    model = data.get("model")
    if isinstance(model, Mapping) and not {"provider", "model_id"} <= model.keys():
        return {**data, "model": None}
    return data


def _refuse(faults: Sequence[str]) -> None:
    if faults:
        raise ConfigError("\n".join(dict.fromkeys(faults)))


def _plan(
    layers: Layers,
    config: PipelineConfig,
    given: list[Use],
    registry: Registry,
    secrets: Secrets,
    reuse: Made,
    faults: list[str],
) -> Plan:
    if config.model is not None:
        try:
            registry.provider(config.model.provider)
        except ConfigError as error:
            faults.append(f"model: {error}")
    entries = [(layers.places.get(one.id, "middlewares"), one) for one in config.middlewares]
    known = {*registry.middleware_ids, *(use.id for use in given)}
    here = {*(one.id for one in config.middlewares), *(use.id for use in given)}
    for name, ids in (("enable", config.enable), ("disable", config.disable)):
        for id in dict.fromkeys(ids):
            if id not in known | here:
                faults.append(f"{name}: there is no middleware {id!r}{did_you_mean(id, sorted(known))}")
            elif name == "enable" and id not in here:
                entries.append(("enable", MemberConfig(id=id)))
    uses, made, left_out = [], dict(reuse), []
    for where, entry in entries:
        try:
            # One that is left out is made too: a fault in it is found before it is switched on.
            member = _make(entry, where, registry, reuse)
            use = _use(entry, where, member)
        except NeurolinkError as error:
            faults.append(str(error))
            continue
        made[entry.id] = (entry.config, member)
        why = _left_out(entry, config)
        if why is None:
            uses.append(use)
        else:
            left_out.append((entry.id, why))
    left_out += [(use.id, "disabled") for use in given if use.id in config.disable]
    uses += [use for use in given if use.id not in config.disable]
    left_out += [(use.id, MODE_OFF) for use in uses if use.mode == "off"]
    _refuse(faults)
    placed = tuple(arrange([use for use in uses if use.mode != "off"], known=known))
    return Plan(layers, registry, config.model, placed, tuple(left_out), made, secrets, config.lint, config.denied)


def _left_out(entry: MemberConfig, config: PipelineConfig) -> str | None:
    if entry.id in config.disable:
        return "disabled"
    if not entry.enabled and entry.id not in config.enable:
        return "enabled = false"
    return None


def _make(entry: MemberConfig, where: str, registry: Registry, reuse: Made) -> Member:
    earlier = reuse.get(entry.id)
    if earlier is not None and earlier[0] == entry.config:
        return earlier[1]
    try:
        cls = registry.middleware(entry.id)
    except ConfigError as error:
        raise ConfigError(f"{where}.id: {error}") from None
    try:
        typed = make_config(cls, entry.config, where=f"{where}.config")
    except NeurolinkError:
        raise
    except Exception as error:
        raise _unusable(entry, where, error) from None
    try:
        return cls(typed)
    except NeurolinkError as error:
        raise ConfigError(f"{where}.config: {error}") from None
    except TypeError:
        raise ConfigError(f"{where}: {cls.__name__} cannot be made from a configuration: add it in code") from None
    except Exception as error:
        raise _unusable(entry, where, error) from None


def _unusable(entry: MemberConfig, where: str, error: Exception) -> ConfigError:
    said = " ".join(without_texts(str(error), entry.config).split())
    return ConfigError(f"{where}.config: {entry.id} cannot use it: {type(error).__name__}: {said}")


def _use(entry: MemberConfig, where: str, member: Member) -> Use:
    try:
        when = entry.when.build() if entry.when is not None else None
    except ConfigError as error:
        raise ConfigError(f"{where}.{error}") from None
    try:
        return Use(
            member,
            when=when,
            priority=entry.priority,
            before=entry.before,
            after=entry.after,
            on_error=entry.on_error,
            timeout=entry.timeout,
            mode=entry.mode,
            max_failures=entry.max_failures,
            blocking=entry.blocking,
        )
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
