"""`default_settings`: call options for whoever did not set them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

from pydantic import Field, JsonValue

from ..errors import ConfigError, ProtocolError
from ..pipeline import Middleware, MiddlewareConfig, Stage
from ..pipeline.member import Effect
from ..protocol import CallOptions, Kind, LanguageModel, ResponseFormat, ToolChoice, ToolDefinition, from_json
from ..protocol.values import frozen_json


class DefaultSettingsConfig(MiddlewareConfig):
    """Defaults for call options, by their names. `tools`, `tool_choice` and `response_format` are their JSON."""

    max_output_tokens: int | None = Field(None, ge=1)
    temperature: float | None = Field(None, allow_inf_nan=False)
    top_p: float | None = Field(None, allow_inf_nan=False)
    top_k: int | None = None
    presence_penalty: float | None = Field(None, allow_inf_nan=False)
    frequency_penalty: float | None = Field(None, allow_inf_nan=False)
    seed: int | None = None
    stop_sequences: tuple[str, ...] | None = None
    response_format: dict[str, JsonValue] | None = None
    tools: tuple[dict[str, JsonValue], ...] | None = None
    tool_choice: dict[str, JsonValue] | None = None
    reasoning: str | None = None
    headers: dict[str, str] | None = None
    provider_options: dict[str, dict[str, JsonValue]] | None = None
    metadata: dict[str, JsonValue] | None = None


_PARSED = {"response_format": ResponseFormat, "tools": tuple[ToolDefinition, ...], "tool_choice": ToolChoice}
_MERGED = ("provider_options", "metadata")


class DefaultSettings(Middleware):
    """Fills in what a call leaves unset.

    A value that the call sets wins, also 0, "" and an empty list. Lists are replaced whole; `provider_options` and
    `metadata` are merged key by key, at every depth, and `headers` by name in any case.
    """

    stage: ClassVar[int] = Stage.NORMALIZE
    writes: ClassVar[frozenset[Effect]] = frozenset({"params", "tools", "metadata"})
    Config = DefaultSettingsConfig
    config: DefaultSettingsConfig

    @cached_property
    def _defaults(self) -> dict[str, object]:
        given = {name: value for name, value in self.config if value is not None}
        for name, type in _PARSED.items():
            if name in given:
                try:
                    given[name] = from_json(type, given[name])
                except ProtocolError as error:
                    place = f"{name}.{error.path}".replace(".[", "[").rstrip(".")
                    said = str(error).removeprefix(f"{error.path}: ")
                    raise ConfigError(f"{self.id}.{place}: {said}") from None
        for name in (*_MERGED, "headers"):  # every call gets the same ones: nobody may change them
            if name in given:
                given[name] = frozen_json(given[name])
        return given

    def __init__(self, config: DefaultSettingsConfig | None = None, **values: object) -> None:
        super().__init__(config, **values)
        self._defaults  # noqa: B018  # a bad tool or format is found when the chain is built, not at the first call

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        changes: dict[str, object] = {}
        for name, default in self._defaults.items():
            value = getattr(options, name)
            if value is None:
                changes[name] = default
            elif name in _MERGED:
                changes[name] = _merged(default, value)
            elif name == "headers":
                changes[name] = _merged_headers(default, value)
        return options.replace(**changes) if changes else options


def _merged(default: object, value: object) -> object:
    if isinstance(default, Mapping) and isinstance(value, Mapping):
        return {**default, **{key: _merged(default.get(key), item) for key, item in value.items()}}
    return value


def _merged_headers(default: object, value: Mapping[str, object]) -> dict[str, object]:
    assert isinstance(default, dict)
    named = {name.lower() for name in value}
    return {**{name: item for name, item in default.items() if name.lower() not in named}, **value}
