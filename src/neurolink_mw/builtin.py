"""The library's own plugin: registers our middlewares and providers through the same entry point as everybody's."""

from __future__ import annotations

import os
from collections.abc import Callable

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from .errors import ConfigError
from .pipeline.member import describe_invalid
from .pipeline.wording import did_you_mean
from .plugins import Deferred, hookimpl
from .plugins.hookspecs import RegisterProvider
from .protocol import LanguageModel

requires_api = 1


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
    for option in config:
        if option not in OpenAICompatibleSettings.model_fields:
            allowed = sorted(OpenAICompatibleSettings.model_fields)
            raise ConfigError(f"{name}.{option}: there is no such option{did_you_mean(option, allowed)}")
    for setting, variable in (("base_url", "OPENAI_BASE_URL"), ("api_key", "OPENAI_API_KEY")):
        if setting not in config:
            if not os.environ.get(variable):
                raise ConfigError(f"{name} needs its {setting}: set {variable}, or {setting} beside the model's name")
            config[setting] = os.environ[variable]
    try:
        settings = OpenAICompatibleSettings.model_validate(config)
    except ValidationError as error:
        raise ConfigError(describe_invalid(error, name, OpenAICompatibleSettings)) from None
    from .providers.openai_compatible import OpenAICompatibleModel  # httpx is imported for those who use it

    return OpenAICompatibleModel(model_id, **settings.model_dump())
