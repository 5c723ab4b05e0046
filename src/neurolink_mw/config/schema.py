"""What a pipeline's configuration may say, as typed models. `middlewares[].config` is checked by each middleware's own
`Config`; everything else is checked here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import ConfigError
from ..pipeline import When
from ..pipeline.middleware import did_you_mean


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class WhenConfig(_Strict):
    """In which calls a member takes part. All that is given must hold; texts are globs, a list means one of these."""

    provider: str | list[str] | None = None
    model: str | list[str] | None = None
    options: dict[str, Any] = Field({}, description="Call options by name, such as temperature.")
    metadata: dict[str, Any] = Field({}, description="Keys of the call's metadata.")

    def build(self) -> When:
        return When(self.provider, self.model, self.options, self.metadata)


class MemberConfig(_Strict):
    """One middleware and the rules of its place."""

    id: str = Field(min_length=1, description="The middleware, by its id.")
    enabled: bool = Field(True, description="false leaves it out, whatever a preset says.")
    priority: int | None = Field(None, description="Its stage as a number; higher stands further out.")
    before: list[str] = Field([], description="Ids that it must stand outside of.")
    after: list[str] = Field([], description="Ids that it must stand inside of.")
    when: WhenConfig | None = None
    config: dict[str, Any] = Field({}, description="The middleware's own options.")


class ModelConfig(BaseModel):
    """A model, by its provider and id; everything else goes to the provider."""

    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    provider: str = Field(min_length=1)
    model_id: str = Field(min_length=1)

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.__pydantic_extra__ or {})


class PipelineConfig(_Strict):
    """A pipeline: who stands in it and, if it names one, around which model."""

    model: ModelConfig | None = Field(None, description="provider:model-id, or an object with provider and model_id.")
    preset: str | None = Field(None, description="A named set of middlewares to start from.")
    middlewares: list[MemberConfig] = []
    enable: list[str] = Field([], description="Ids to switch on.")
    disable: list[str] = Field([], description="Ids to leave out; this wins over everything else.")
    plugins: list[str] = Field([], description="Plugins to load, as package.module or package.module:object.")


def parse(raw: Mapping[str, Any]) -> PipelineConfig:
    """The typed configuration of a mapping. ConfigError with one sentence for each fault, never quoting a value."""
    try:
        return PipelineConfig.model_validate(normal(raw))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        raise ConfigError("\n".join(dict.fromkeys(_describe(fault) for fault in faults))) from None


def normal(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The short forms written out: a model by its name, a middleware by its id."""
    out = dict(raw)
    model = out.get("model")
    if isinstance(model, str):
        provider, colon, model_id = model.partition(":")
        if not colon or not provider or not model_id:
            raise ConfigError("model: a model is named provider:model-id, as in openai-compatible:gpt-5")
        out["model"] = {"provider": provider, "model_id": model_id}
    members = out.get("middlewares")
    if isinstance(members, list | tuple):
        out["middlewares"] = written = [{"id": one} if isinstance(one, str) else one for one in members]
        ids = [one["id"] for one in written if isinstance(one, Mapping) and isinstance(one.get("id"), str)]
        twice = next((id for id in ids if ids.count(id) > 1), None)
        if twice is not None:
            raise ConfigError(f"middlewares: {twice!r} stands twice; a member stands once, with one config")
    return out


def _describe(fault: Any) -> str:
    place = ""
    for step in fault["loc"]:
        if isinstance(step, int):
            place += f"[{step}]"
        elif step not in ("str", "list[str]"):  # which form of a union was tried
            place += f".{step}" if place else str(step)
    if fault["type"] == "extra_forbidden":
        depth = len(fault["loc"])
        model: type[BaseModel] = PipelineConfig if depth == 1 else MemberConfig if depth == 3 else WhenConfig
        return f"{place}: there is no such option{did_you_mean(str(fault['loc'][-1]), list(model.model_fields))}"
    message = str(fault["msg"])
    return f"{place}: {message[:1].lower()}{message[1:]}"
