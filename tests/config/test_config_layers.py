"""Layers: a preset under a file under code under one call; who takes part, in which order, and what is shared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from neurolink_mw import CallOptions, GenerateResult, LanguageModel, Middleware, MiddlewareConfig, Stage, Use, hookimpl
from neurolink_mw.config import Pipeline
from neurolink_mw.errors import ConfigError
from neurolink_mw.pipeline import explain
from neurolink_mw.plugins import Registry, load_plugins
from neurolink_mw.testing import ScriptedModel

pytestmark = pytest.mark.anyio
ASKED = CallOptions.from_text("Hello")


class CountingConfig(MiddlewareConfig):
    step: int = 1


class Counting(Middleware):
    """Counts its calls, so that one can tell whether it is shared."""

    made: ClassVar[list[Counting]] = []
    Config = CountingConfig
    config: CountingConfig

    def __init__(self, config: CountingConfig | None = None, **values: object) -> None:
        super().__init__(config, **values)
        self.calls = 0
        self.made.append(self)

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        self.calls += self.config.step
        return await model.do_generate(options)


class Opened(Middleware):
    async def open(self, tasks: object) -> None: ...


class Plain(Middleware):
    stage = Stage.ADAPT

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return await model.do_generate(options)


class Plugin:
    def __init__(self) -> None:
        self.built: list[tuple[str, dict[str, Any]]] = []

    @hookimpl
    def register_middlewares(self, register: Callable[[object], None]) -> None:
        register(Counting)
        register(Opened)

    @hookimpl
    def register_providers(self, register: Any) -> None:
        def factory(model_id: str, **config: object) -> LanguageModel:
            self.built.append((model_id, config))
            return ScriptedModel("hi", model_id=model_id)

        register("acme", factory)
        register("other", factory)


@pytest.fixture
def plugin() -> Plugin:
    Counting.made = []
    return Plugin()


@pytest.fixture
def registry(plugin: Plugin) -> Registry:
    return load_plugins([plugin], environ={})


async def sent(model: LanguageModel, bare: ScriptedModel) -> CallOptions:
    await model.do_generate(ASKED)
    return bare.calls[-1].options


def settings(**config: Any) -> dict[str, Any]:
    return {"middlewares": [{"id": "default_settings", "config": config}]}


async def test_code_wins_over_the_file_and_one_call_over_both(registry: Registry) -> None:
    pipeline = Pipeline.from_config(
        settings(temperature=0.1, top_p=0.1, seed=1, metadata={"a": 1, "b": 1}),
        overrides=settings(top_p=0.2, seed=2, metadata={"b": 2}),
        registry=registry,
    )
    bare = ScriptedModel(["hi"] * 2)
    seen = await sent(pipeline.wrap(bare, overrides=settings(seed=3)), bare)
    assert (seen.temperature, seen.top_p, seen.seed, seen.metadata) == (0.1, 0.2, 3, {"a": 1, "b": 2})
    seen = await sent(pipeline.wrap(bare), bare)
    assert seen.seed == 2


def test_a_file_wins_over_the_preset_it_names() -> None:
    config = {"preset": "observe", "middlewares": [{"id": "logging", "config": {"level": "DEBUG"}}]}
    pipeline = Pipeline.from_config(config)
    assert pipeline.ids == ("logging",)
    assert '"DEBUG"' not in repr(pipeline)
    (placed,) = pipeline._plan.placed
    assert placed.use.member.config.model_dump()["level"] == "DEBUG"


def test_overrides_may_name_the_preset() -> None:
    assert Pipeline.from_config({"middlewares": ["lifecycle"]}, overrides={"preset": "observe"}).ids == (
        "logging",
        "lifecycle",
    )


def test_members_of_a_preset_come_first_among_those_of_one_stage() -> None:
    assert Pipeline.from_config({"preset": "observe", "middlewares": ["lifecycle"]}).ids == ("logging", "lifecycle")


def test_order_may_be_asked_for_across_the_preset_and_the_file() -> None:
    config = {"preset": "observe", "middlewares": [{"id": "lifecycle", "before": ["logging"]}]}
    assert Pipeline.from_config(config).ids == ("lifecycle", "logging")


def test_a_member_that_the_file_names_keeps_its_place_of_the_preset() -> None:
    config = {"preset": "observe", "middlewares": ["lifecycle", {"id": "logging", "config": {"level": "DEBUG"}}]}
    assert Pipeline.from_config(config).ids == ("logging", "lifecycle")


def test_a_constraint_on_a_member_that_is_left_out_is_no_fault() -> None:
    config = {"middlewares": [{"id": "lifecycle", "before": ["logging"]}]}
    assert Pipeline.from_config(config).ids == ("lifecycle",)


@pytest.mark.parametrize(
    ("config", "ids", "why"),
    [
        ({"enable": ["logging"]}, ("logging",), None),
        ({"middlewares": [{"id": "logging", "enabled": False}]}, (), "enabled = false"),
        ({"middlewares": [{"id": "logging", "enabled": False}], "enable": ["logging"]}, ("logging",), None),
        ({"middlewares": ["logging"], "disable": ["logging"]}, (), "disabled"),
        ({"enable": ["logging"], "disable": ["logging"]}, (), "disabled"),
        ({"preset": "observe", "disable": ["logging"]}, (), "disabled"),
        ({"preset": "observe", "middlewares": [{"id": "logging", "enabled": False}]}, (), "enabled = false"),
        ({"enable": ["logging", "logging"]}, ("logging",), None),
    ],
)
def test_disable_wins_over_enable_and_enable_over_enabled(
    config: dict[str, Any], ids: tuple[str, ...], why: str | None
) -> None:
    pipeline = Pipeline.from_config(config)
    assert pipeline.ids == ids
    assert pipeline.explain().left_out == ((("logging", why),) if why else ())


def test_a_member_given_in_code_may_be_named_in_enable_and_disable() -> None:
    assert Pipeline.from_config({"enable": ["plain"]}, members=[Plain()]).ids == ("plain",)
    assert Pipeline.from_config({"disable": ["plain"]}, members=[Plain()]).ids == ()


def test_members_given_in_code_stand_by_their_stage_beside_those_of_the_config() -> None:
    pipeline = Pipeline.from_config(
        {"middlewares": ["default_settings"]}, members=[Plain(), Use(Opened(), priority=9000)]
    )
    assert pipeline.ids == ("opened", "default_settings", "plain")


def test_one_id_in_the_config_and_in_code_is_refused(registry: Registry) -> None:
    with pytest.raises(ConfigError, match="two members have the id 'counting'"):
        Pipeline.from_config({"middlewares": ["counting"]}, members=[Counting()], registry=registry)


async def test_per_call_members_are_there_for_that_call_alone(registry: Registry) -> None:
    pipeline = Pipeline.from_config({"middlewares": ["counting"]}, registry=registry)
    with_plain = pipeline.wrap(ScriptedModel("hi"), members=[Plain()])
    assert [view.id for view in explain(with_plain).members] == ["counting", "plain"]
    assert pipeline.ids == ("counting",)


async def test_a_member_whose_config_stays_the_same_is_shared_with_the_variant(registry: Registry) -> None:
    pipeline = Pipeline.from_config({"middlewares": ["counting"]}, registry=registry)
    (counting,) = Counting.made
    varied = pipeline.wrap(ScriptedModel("hi"), overrides={"middlewares": [{"id": "counting", "priority": 1}]})
    await varied.do_generate(ASKED)
    assert Counting.made == [counting]
    assert counting.calls == 1


async def test_a_member_whose_config_changes_is_made_anew(registry: Registry) -> None:
    pipeline = Pipeline.from_config({"middlewares": ["counting"]}, registry=registry)
    overrides = {"middlewares": [{"id": "counting", "config": {"step": 5}}]}
    await pipeline.wrap(ScriptedModel("hi"), overrides=overrides).do_generate(ASKED)
    first, second = Counting.made
    assert (first.calls, second.calls) == (0, 5)


async def test_a_member_that_is_switched_on_for_each_call_keeps_its_state(registry: Registry) -> None:
    pipeline = Pipeline.from_config({"middlewares": [{"id": "counting", "enabled": False}]}, registry=registry)
    for _ in range(3):
        await pipeline.wrap(ScriptedModel("hi"), overrides={"enable": ["counting"]}).do_generate(ASKED)
    (counting,) = Counting.made
    assert counting.calls == 3


async def test_a_variant_works_when_the_variable_that_a_reference_named_is_gone(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_STEP", "7")
    config = {"middlewares": [{"id": "counting", "config": {"step": "${ENV:ACME_STEP}"}}, "logging"]}
    pipeline = Pipeline.from_config(config, registry=registry)
    monkeypatch.delenv("ACME_STEP")
    await pipeline.wrap(ScriptedModel("hi"), overrides={"disable": ["logging"]}).do_generate(ASKED)
    (counting,) = Counting.made
    assert counting.calls == 7


def test_a_member_that_needs_opening_cannot_be_added_for_one_call(registry: Registry) -> None:
    pipeline = Pipeline(registry=registry)
    for overrides, members in (({"enable": ["opened"]}, []), ({}, [Opened()])):
        with pytest.raises(ConfigError, match="opened has to be opened with its pipeline"):
            pipeline.wrap(ScriptedModel("hi"), overrides=overrides, members=members)


def test_a_model_in_the_overrides_of_one_call_is_refused(registry: Registry) -> None:
    with pytest.raises(ConfigError, match=r"model: it is the one given to wrap\(model\)"):
        Pipeline(registry=registry).wrap(ScriptedModel("hi"), overrides={"model": "acme:chat"})


def test_a_model_by_name_in_code_keeps_the_settings_of_its_provider(plugin: Plugin, registry: Registry) -> None:
    file = {"model": {"provider": "acme", "model_id": "small", "region": "eu"}}
    Pipeline.from_config(file, overrides={"model": "acme:large"}, registry=registry)
    assert plugin.built == [("large", {"region": "eu"})]


def test_a_setting_of_the_model_may_be_laid_over_alone(plugin: Plugin, registry: Registry) -> None:
    Pipeline.from_config({"model": "acme:small"}, overrides={"model": {"region": "eu"}}, registry=registry)
    assert plugin.built == [("small", {"region": "eu"})]


def test_the_key_of_one_provider_never_reaches_another(plugin: Plugin, registry: Registry) -> None:
    file = {"model": {"provider": "acme", "model_id": "small", "api_key": "acme's"}}
    Pipeline.from_config(file, overrides={"model": "other:large"}, registry=registry)
    assert plugin.built == [("large", {})]


def test_the_source_is_never_changed(registry: Registry) -> None:
    source = {"preset": "observe", "middlewares": [{"id": "counting", "config": {"step": 1}}, "lifecycle"]}
    before = repr(source)
    pipeline = Pipeline.from_config(source, overrides={"enable": ["default_settings"]}, registry=registry)
    pipeline.wrap(ScriptedModel("hi"), overrides={"disable": ["logging"]})
    assert repr(source) == before
