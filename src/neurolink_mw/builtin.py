"""The library's own plugin: registers our middlewares and providers through the same entry point as everybody's."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from .errors import ConfigError
from .pipeline.member import describe_invalid
from .pipeline.wording import did_you_mean
from .plugins import Deferred, hookimpl
from .plugins.hookspecs import RegisterProvider
from .protocol import LanguageModel

requires_api = 1

T = TypeVar("T", bound=BaseModel)


@hookimpl
def register_middlewares(register: Callable[[Deferred], None]) -> None:
    for id, target in (
        ("add_tool_input_examples", "add_tool_input_examples:AddToolInputExamples"),
        ("default_instructions", "default_instructions:DefaultInstructions"),
        ("default_settings", "default_settings:DefaultSettings"),
        ("extract_json", "extract_json:ExtractJson"),
        ("extract_reasoning", "extract_reasoning:ExtractReasoning"),
        ("lifecycle", "lifecycle:Lifecycle"),
        ("logging", "logging:Logging"),
        ("retry", "retry:Retry"),
        ("simulate_streaming", "simulate_streaming:SimulateStreaming"),
        ("timeout", "timeout:Timeout"),
    ):
        register(Deferred(id, f"neurolink_mw.middlewares.{target}"))


@hookimpl
def register_providers(register: RegisterProvider) -> None:
    register("openai-compatible", _openai_compatible)
    register("bedrock", _bedrock)
    register("anthropic", _anthropic)


class OpenAICompatibleSettings(BaseModel):
    """What may stand beside the name of an `openai-compatible` model. `api_key: null` is for a server without keys."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    base_url: str = Field(min_length=1)
    api_key: str | None = Field(repr=False)
    provider: str = Field("openai-compatible", min_length=1)
    headers: dict[str, str] = Field({}, repr=False)
    query_params: dict[str, str] = Field({}, repr=False)
    extra_body: dict[str, JsonValue] = Field({}, repr=False)
    supports_structured_outputs: bool = False
    include_usage: bool = True


def _openai_compatible(model_id: str, **config: object) -> LanguageModel:
    """A model from its name and settings. What is not given comes from OPENAI_BASE_URL and OPENAI_API_KEY."""
    name = f"openai-compatible:{model_id}"
    _require_known(name, config, OpenAICompatibleSettings)
    for setting, variable in (("base_url", "OPENAI_BASE_URL"), ("api_key", "OPENAI_API_KEY")):
        if setting not in config:
            if not os.environ.get(variable):
                raise ConfigError(f"{name} needs its {setting}: set {variable}, or {setting} beside the model's name")
            config[setting] = os.environ[variable]
    settings = _validated(name, config, OpenAICompatibleSettings)
    from .providers.openai_compatible import OpenAICompatibleModel  # httpx is imported for those who use it

    return OpenAICompatibleModel(model_id, **settings.model_dump())


class BedrockSettings(BaseModel):
    """What may stand beside the name of a `bedrock` model. What is not said comes from where boto3 looks for it."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    region: str | None = Field(None, min_length=1)
    profile: str | None = Field(None, min_length=1)
    endpoint_url: str | None = Field(None, min_length=1)
    threads: int | None = Field(None, ge=1)


def _bedrock(model_id: str, **config: object) -> LanguageModel:
    """A model from its name and settings."""
    name = f"bedrock:{model_id}"
    _require_known(name, config, BedrockSettings)
    settings = _validated(name, config, BedrockSettings)
    from .providers.bedrock import BedrockModel  # boto3 is imported for those who use it

    return BedrockModel(model_id, **settings.model_dump())


class AnthropicSettings(BaseModel):
    """What may stand beside the name of an `anthropic` model. What is not said the SDK looks for by itself."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    api_key: str | None = Field(None, min_length=1, repr=False)
    base_url: str | None = Field(None, min_length=1)


def _anthropic(model_id: str, **config: object) -> LanguageModel:
    """A model from its name and settings."""
    name = f"anthropic:{model_id}"
    _require_known(name, config, AnthropicSettings)
    settings = _validated(name, config, AnthropicSettings)
    from .providers.anthropic import AnthropicModel  # the SDK takes a second to import

    return AnthropicModel(model_id, **settings.model_dump())


def _require_known(name: str, config: Mapping[str, object], settings: type[BaseModel]) -> None:
    for option in config:
        if option not in settings.model_fields:
            suggestion = did_you_mean(option, sorted(settings.model_fields))
            raise ConfigError(f"{name}.{option}: there is no such option{suggestion}")


def _validated(name: str, config: Mapping[str, object], settings: type[T]) -> T:
    try:
        return settings.model_validate(config)
    except ValidationError as error:
        raise ConfigError(describe_invalid(error, name, settings)) from None
