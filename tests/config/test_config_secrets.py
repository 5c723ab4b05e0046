"""References to the environment, and that what they stand for is never shown."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field, field_validator

from neurolink_mw import BuildContext, CallOptions, LanguageModel, Middleware, MiddlewareConfig, hookimpl
from neurolink_mw.config import Pipeline
from neurolink_mw.config.schema import PipelineConfig
from neurolink_mw.errors import ConfigError, NeurolinkError
from neurolink_mw.pipeline import When
from neurolink_mw.plugins import Registry, load_plugins
from neurolink_mw.testing import ScriptedModel

ASKED = CallOptions.from_text("Hello")
SECRET = "sk-live-0123456789"


class HeldConfig(MiddlewareConfig):
    key: str = ""
    times: int = 1
    on: bool = True
    inner: dict[str, list[str]] = Field(default_factory=dict)


class Held(Middleware):
    """Keeps its options where a test can see them."""

    Config = HeldConfig
    config: HeldConfig


class QuotingConfig(MiddlewareConfig):
    key: str

    @field_validator("key")
    @classmethod
    def refuse(cls, key: str) -> str:
        raise ValueError(f"{key!r} is no key")


class Quoting(Middleware):
    """Its validator quotes what it refuses."""

    Config = QuotingConfig


class Failing(Middleware):
    """Quotes its key where its `config.times` says: in the constructor, in `bind`, in the order."""

    Config = HeldConfig
    config: HeldConfig

    def __init__(self, config: HeldConfig | None = None, **values: object) -> None:
        super().__init__(config, **values)
        if self.config.times == 1:
            raise ConfigError(f"cannot use {self.config.key}")
        if self.config.times == 2:
            raise RuntimeError(f"cannot use {self.config.key!r}")

    def bind(self, build: BuildContext) -> None:
        if self.config.times == 3:
            raise ConfigError(f"cannot bind {self.config.key}")
        if self.config.times == 4:
            raise OSError(f"cannot reach https://user:{self.config.key}@host")


class OwnError(NeurolinkError):
    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")


def quoting_factory(model_id: str, **config: Any) -> LanguageModel:
    if model_id == "type-error":
        raise TypeError(f"cannot use {config}")
    if model_id == "config-error":
        raise ConfigError(f"cannot use {config['api_key']}")
    if model_id == "own-error":
        raise OwnError("here", config["api_key"])
    if model_id == "value-error":
        raise ValueError(config["api_key"])
    return ScriptedModel("hi", model_id=model_id)


class Plugin:
    @hookimpl
    def register_middlewares(self, register: Callable[[object], None]) -> None:
        for cls in (Held, Quoting, Failing):
            register(cls)

    @hookimpl
    def register_providers(self, register: Any) -> None:
        register("acme", quoting_factory)

    @hookimpl
    def pipeline_built(self, pipeline: Any) -> None:
        for place in pipeline._plan.placed:
            if getattr(place.use.member.config, "times", 0) == 5:
                raise ConfigError(f"refused with {place.use.member.config.key}")


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_plugins([Plugin()], environ={})


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_KEY", SECRET)


def held(registry: Registry, **config: object) -> HeldConfig:
    pipeline = Pipeline.from_config({"middlewares": [{"id": "held", "config": config}]}, registry=registry)
    (place,) = pipeline._plan.placed
    assert isinstance(place.use.member, Held)
    return place.use.member.config


def test_a_reference_stands_for_the_variable_at_any_depth(registry: Registry) -> None:
    config = held(registry, key="${ENV:ACME_KEY}", inner={"a": ["${ENV:ACME_KEY}", "b"]})
    assert (config.key, config.inner) == (SECRET, {"a": [SECRET, "b"]})


def test_a_reference_may_be_part_of_a_text(registry: Registry) -> None:
    assert held(registry, key="Bearer ${ENV:ACME_KEY}; ${ENV:ACME_KEY}").key == f"Bearer {SECRET}; {SECRET}"


def test_a_doubled_dollar_keeps_a_reference_as_it_is(registry: Registry) -> None:
    assert held(registry, key="$${ENV:ACME_KEY} costs $5").key == "${ENV:ACME_KEY} costs $5"


def test_an_escaped_reference_stays_escaped_in_a_variant_for_one_call(registry: Registry) -> None:
    config = {"middlewares": [{"id": "held", "config": {"key": "$${ENV:ACME_GONE}"}}, "logging"]}
    pipeline = Pipeline.from_config(config, registry=registry)
    pipeline.wrap(ScriptedModel("hi"), overrides={"disable": ["logging"]})


def test_numbers_and_switches_may_come_from_the_environment(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_TIMES", "7")
    monkeypatch.setenv("ACME_ON", "false")
    config = held(registry, times="${ENV:ACME_TIMES}", on="${ENV:ACME_ON}")
    assert (config.times, config.on) == (7, False)


def test_a_model_may_be_named_by_a_reference(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_MODEL", "acme:chat")
    assert Pipeline.from_config({"model": "${ENV:ACME_MODEL}"}, registry=registry).model.model_id == "chat"
    assert Pipeline.from_config({"model": "acme:${ENV:ACME_KEY}"}, registry=registry).model.model_id == SECRET


def test_what_a_variable_holds_is_not_read_as_a_reference(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_TEXT", "${ENV:ACME_KEY}")
    assert held(registry, key="${ENV:ACME_TEXT}").key == "${ENV:ACME_KEY}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${ENV:ACME_GONE}", "the environment variable ACME_GONE is not set"),
        ("${ENV:}", "a reference to the environment is written ${ENV:NAME}"),
        ("Bearer ${ENV:ACME_KEY", "a reference to the environment is written ${ENV:NAME}"),
    ],
)
def test_a_reference_that_leads_nowhere_names_its_place(registry: Registry, text: str, said: str) -> None:
    config = {"middlewares": [{"id": "held", "config": {"inner": {"a": ["b", text]}}}]}
    assert Pipeline.validate(config, registry=registry) == [f"middlewares[0].config.inner.a[1]: {said}"]


def test_every_missing_variable_is_told_and_spoils_nothing_else(registry: Registry) -> None:
    config = {
        "model": "${ENV:ACME_NO_MODEL}",
        "middlewares": [{"id": "held", "priority": "${ENV:ACME_NO_PRIORITY}"}, {"id": "logging", "nope": 1}],
    }
    assert [fault.partition(": ")[2].partition(";")[0] for fault in Pipeline.validate(config, registry=registry)] == [
        "the environment variable ACME_NO_MODEL is not set",
        "the environment variable ACME_NO_PRIORITY is not set",
        "there is no such option (allowed: id, enabled, priority, before, after, when, on_error, timeout, mode, "
        "max_failures, blocking, config)",
    ]


KEYED = {"key": "${ENV:ACME_KEY}"}
LEAKY: list[dict[str, Any]] = [
    {"middlewares": [{"id": "quoting", "config": KEYED}]},
    *({"middlewares": [{"id": "failing", "config": {**KEYED, "times": times}}]} for times in (1, 2, 3, 4, 5)),
    {"middlewares": [{"id": "${ENV:ACME_KEY}"}]},
    {"middlewares": [{"id": "held", "after": ["${ENV:ACME_KEY}"]}]},
    {"disable": ["${ENV:ACME_KEY}"]},
    {"preset": "${ENV:ACME_KEY}"},
    {"model": "${ENV:ACME_KEY}:chat"},
    {"plugins": ["${ENV:ACME_KEY}"]},
    {"middlewares": [{"id": "held", "config": {"times": "${ENV:ACME_KEY}"}}]},
    {"middlewares": [{"id": "held", "config": {"inner": "${ENV:ACME_KEY}"}}]},
    *(
        {"model": {"provider": "acme", "model_id": fault, "api_key": "${ENV:ACME_KEY}"}}
        for fault in ("type-error", "config-error", "own-error", "value-error")
    ),
    {"model": {"provider": "openai-compatible", "model_id": "m", "base_url": "${ENV:ACME_KEY}", "api_key": 5}},
]


@pytest.mark.parametrize("config", LEAKY, ids=lambda config: json.dumps(config)[:60])
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(secret=st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=12))
def test_no_error_shows_a_secret(registry: Registry, config: dict[str, Any], secret: str) -> None:
    config, secret = {"model": "acme:chat", **config}, f"sk-{secret}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACME_KEY", secret)
        with pytest.raises(NeurolinkError) as caught:
            Pipeline.from_config(config, registry=registry)
    shown = f"{caught.value!s} {caught.value!r} {caught.value.__cause__!r}"
    for written in (secret, repr(secret)[1:-1], json.dumps(secret)[1:-1]):
        assert written not in shown


@pytest.mark.anyio
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(tail=st.text(st.characters(categories=["L", "N"]), min_size=12, max_size=40))
async def test_nothing_that_is_shown_of_a_pipeline_holds_a_secret(
    registry: Registry, caplog: pytest.LogCaptureFixture, tail: str
) -> None:
    secret = f"sk-{tail}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACME_KEY", secret)
        config = {
            "model": {"provider": "acme", "model_id": "chat", "api_key": "${ENV:ACME_KEY}"},
            "middlewares": [
                "logging",
                {"id": "held", "config": {**KEYED, "inner": {"a": ["${ENV:ACME_KEY}"]}}},
                {"id": "default_settings", "config": {"headers": {"authorization": "Bearer ${ENV:ACME_KEY}"}}},
            ],
        }
        pipeline = Pipeline.from_config(config, registry=registry, statistics=True)
    with caplog.at_level(logging.DEBUG):
        await pipeline.model.do_generate(ASKED)
    dry = await pipeline.dry_run(ASKED)
    assert dry.options.headers == {"authorization": f"Bearer {secret}"}
    members = [place.use.member for place in pipeline._plan.placed]
    shown = [
        *(repr(one) for one in (pipeline, pipeline.model, pipeline._plan, pipeline.explain(), dry)),
        *(repr(one) for one in (*members, *(member.config for member in members))),
        *(str(member.config) for member in members),
        str(pipeline.explain()),
        json.dumps(pipeline.explain().to_json()),
        repr(pipeline.statistics),
        *(f"{record.getMessage()} {record.__dict__}" for record in caplog.records),
    ]
    assert not [text for text in shown if secret in text]


def test_the_typed_configuration_shows_no_settings() -> None:
    config = PipelineConfig.model_validate(
        {
            "model": {"provider": "acme", "model_id": "chat", "api_key": SECRET},
            "middlewares": [{"id": "held", "config": {"key": SECRET}, "when": {"metadata": {"tenant": SECRET}}}],
        }
    )
    assert SECRET not in f"{config!r} {config}"
    assert "held" in repr(config)
    assert "acme" in repr(config)


def test_a_secret_that_a_condition_compares_with_is_not_in_its_repr() -> None:
    condition = When(metadata={"key": "hush-hush"}, options={"reasoning": "hush-hush"})
    assert "hush-hush" not in repr(condition)


def test_a_value_that_the_parser_cannot_read_is_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("preset: !!float hush-hush\n")
    (fault,) = Pipeline.validate(path)
    assert "hush-hush" not in fault
