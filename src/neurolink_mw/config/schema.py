"""What a pipeline's configuration may say, as typed models. `middlewares[].config` is checked by each middleware's own
`Config`; everything else is checked here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..pipeline import Denied, Lint, Mode, OnError, When
from ..pipeline.wording import did_you_mean
from .secrets import Fault, Place


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        """Only what cannot be a secret: the settings of a model and of a middleware may be."""
        return ((name, value) for name, value in super().__repr_args__() if name in type(self).model_fields)


class WhenConfig(_Strict):
    """In which calls a member takes part. All that is given must hold; texts are globs, a list means one of these."""

    provider: str | list[str] | None = None
    model: str | list[str] | None = None
    options: dict[str, Any] = Field({}, repr=False, description="Call options by name, such as temperature.")
    metadata: dict[str, Any] = Field({}, repr=False, description="Keys of the call's metadata.")

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
    on_error: OnError | None = Field(None, description="What a failure of its own leads to: raise, deny or skip.")
    timeout: float | None = Field(None, gt=0, allow_inf_nan=False, description="Seconds of its own time in one call.")
    mode: Mode = Field("enforce", description="shadow (roles only) records and changes nothing; off leaves it out.")
    max_failures: int | None = Field(None, ge=1, description="After so many in a row it is left alone for a while.")
    blocking: bool = Field(False, description="Its sync methods run in a worker thread.")
    config: dict[str, Any] = Field({}, repr=False, description="The middleware's own options.")


class ModelConfig(_Strict):
    """A model, by its provider and id; everything else goes to the provider."""

    model_config = ConfigDict(extra="allow")

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
    lint: Lint = Field("error", description="What an order that is plainly wrong leads to: error, warn or off.")
    denied: Denied = Field("refuse", description="What callers get for a refused call: a refusal, or PolicyDenied.")
    enable: list[str] = Field([], description="Ids to switch on.")
    disable: list[str] = Field([], description="Ids to leave out; this wins over everything else.")
    plugins: list[str] = Field([], description="Plugins to load, as package.module or package.module:object.")


SCHEMA_KEY = "$schema"
"""Where a JSON file names its schema for an editor. It says nothing to us."""


def normal(raw: Mapping[str, Any]) -> tuple[dict[str, Any], list[Fault]]:
    """The short forms written out (a model by its name, a middleware by its id), and what cannot be."""
    out = {key: value for key, value in raw.items() if key != SCHEMA_KEY}
    faults: list[Fault] = []
    model = out.get("model")
    if isinstance(model, str):
        provider, _, model_id = model.partition(":")
        out["model"] = {"provider": provider, "model_id": model_id}
        if not provider or not model_id:
            faults.append((("model",), "a model is named provider:model-id, as in openai-compatible:gpt-5"))
    members = out.get("middlewares")
    if isinstance(members, list | tuple):
        out["middlewares"] = [{"id": one} if isinstance(one, str) else one for one in members]
        seen: set[str] = set()
        for at, one in enumerate(out["middlewares"]):
            id = one.get("id") if isinstance(one, Mapping) else None
            if isinstance(id, str) and id in seen:
                faults.append((("middlewares", at), f"{id!r} stands twice; a member stands once, with one config"))
            elif isinstance(id, str):
                seen.add(id)
    return out, faults


def shape_faults(layer: Mapping[str, Any], *, whole: bool) -> list[Fault]:
    """What is wrong with a configuration's shape, one sentence a fault, never quoting a value.

    whole: a layer alone may leave out what another one says.
    """
    try:
        PipelineConfig.model_validate(layer)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        said: dict[Place, str] = {}
        for fault in faults:
            if whole or fault["type"] != "missing" or fault["loc"][0] != "model":
                at, sentence = _describe(fault)
                said[at] = f"{said[at]}, or {sentence.removeprefix('input should be ')}" if at in said else sentence
        return list(said.items())
    return []


def _describe(fault: Any) -> Fault:
    # A step in capitals or brackets only says which form of a union was tried, or that a key is meant.
    at = tuple(step for step in fault["loc"] if step not in ("str", "list[str]", "[key]"))
    if fault["type"] == "extra_forbidden":
        model: type[BaseModel] = PipelineConfig if len(at) == 1 else MemberConfig if len(at) == 3 else WhenConfig
        return at, f"there is no such option{did_you_mean(str(at[-1]), list(model.model_fields))}"
    if fault["type"] == "model_type":
        short = {("model",): "provider:model-id", ("middlewares",): "an id"}.get(at[:1], "")
        return at, f"input should be {f'{short}, or ' if short and len(at) < 3 else ''}a mapping of options"
    if fault["type"] == "invalid_key":
        at = (*at[:-1], str(at[-1]))
    message = str(fault["msg"])
    return at, f"{message[:1].lower()}{message[1:]}"


def sentence(fault: Fault) -> str:
    """`middlewares[0].config: ...`"""
    place = ""
    for step in fault[0]:
        place += f"[{step}]" if isinstance(step, int) else f".{step}" if place else step
    return f"{place}: {fault[1]}" if place else fault[1]
