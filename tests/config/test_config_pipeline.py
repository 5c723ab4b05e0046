"""The public `Pipeline`: from code or a configuration, around one model or many; what it says about itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from neurolink_mw import BuildContext, CallOptions, LanguageModel, Middleware, Use, When, hookimpl
from neurolink_mw.config import Pipeline
from neurolink_mw.errors import ConfigError
from neurolink_mw.middlewares.default_settings import DefaultSettings
from neurolink_mw.middlewares.logging import Logging
from neurolink_mw.pipeline import Statistics
from neurolink_mw.plugins import Registry, load_plugins
from neurolink_mw.testing import ScriptedModel

pytestmark = pytest.mark.anyio
ASKED = CallOptions.from_text("Hello")


class Acme:
    """A plugin with a provider; its models are kept."""

    def __init__(self) -> None:
        self.models: list[ScriptedModel] = []

    @hookimpl
    def register_providers(self, register: Any) -> None:
        def factory(model_id: str) -> LanguageModel:
            self.models.append(ScriptedModel(["hi"], model_id=model_id, repeat=True))
            return self.models[-1]

        register("acme", factory)

    @hookimpl
    def register_middlewares(self, register: Callable[[object], None]) -> None:
        register(Unbindable)
        register(Judging)


class Unbindable(Middleware):
    """Cannot be bound."""

    def bind(self, build: BuildContext) -> None:
        raise KeyError("the table is missing")


class Judging(Middleware):
    """Looks up another model by its name."""

    def bind(self, build: BuildContext) -> None:
        self.judge = build.model("acme:judge")


@pytest.fixture
def acme() -> Acme:
    return Acme()


@pytest.fixture
def registry(acme: Acme) -> Registry:
    return load_plugins([acme], environ={})


async def test_a_pipeline_made_in_code_wraps_any_model() -> None:
    pipeline = Pipeline([DefaultSettings(temperature=0.5)])
    for _ in range(2):
        bare = ScriptedModel("hi")
        result = await pipeline.wrap(bare).do_generate(ASKED)
        assert result.text == "hi"
        assert bare.calls[0].options.temperature == 0.5


async def test_the_model_that_a_config_names_is_made_and_wrapped(acme: Acme, registry: Registry) -> None:
    config = {"model": "acme:chat", "middlewares": [{"id": "default_settings", "config": {"seed": 7}}]}
    pipeline = Pipeline.from_config(config, registry=registry)
    assert (await pipeline.model.do_generate(ASKED)).text == "hi"
    assert [(model.model_id, model.calls[0].options.seed) for model in acme.models] == [("chat", 7)]


def test_without_a_model_the_way_out_is_told() -> None:
    with pytest.raises(ConfigError, match=r"names no model: set model in its configuration, or use wrap\(model\)"):
        Pipeline().model  # noqa: B018  # the property raises


async def test_a_chain_that_cannot_be_built_never_runs_the_bare_model(acme: Acme, registry: Registry) -> None:
    with pytest.raises(ConfigError, match="cannot be built: KeyError: 'the table is missing'"):
        Pipeline.from_config({"model": "acme:chat", "middlewares": ["unbindable"]}, registry=registry)
    pipeline = Pipeline.from_config({"middlewares": ["unbindable"]}, registry=registry)
    bare = ScriptedModel("hi")
    with pytest.raises(ConfigError, match="cannot be built: KeyError"):
        pipeline.wrap(bare)
    assert [model.calls for model in (*acme.models, bare)] == [[], []]


def test_a_member_may_look_up_a_model_by_its_configured_name(acme: Acme, registry: Registry) -> None:
    Pipeline.from_config({"middlewares": ["judging"]}, registry=registry).wrap(ScriptedModel("hi"))
    assert [model.model_id for model in acme.models] == ["judge"]


@pytest.mark.parametrize("members", [Logging(), [Logging], ["logging"], {"logging": {}}])
def test_what_are_no_members_is_refused(members: Any) -> None:
    with pytest.raises(ConfigError, match=r"given as a list: \[member\]|give an instance|not str"):
        Pipeline(members)


async def test_statistics_add_up_calls_through_every_model_the_pipeline_wraps() -> None:
    pipeline = Pipeline([DefaultSettings(seed=1)], statistics=True)
    await pipeline.wrap(ScriptedModel("hi")).do_generate(ASKED)
    await pipeline.wrap(ScriptedModel("hi"), overrides={"disable": []}).do_generate(ASKED)
    totals = pipeline.statistics
    assert (totals.calls, totals.by_status) == (2, {"ok": 2})
    assert {member.id: member.calls for member in totals.members} == {"default_settings": 2, "model": 2}


async def test_statistics_may_be_shared_by_pipelines() -> None:
    shared = Statistics()
    for _ in range(2):
        await Pipeline(statistics=shared).wrap(ScriptedModel("hi")).do_generate(ASKED)
    assert shared.totals().calls == 2


def test_statistics_that_nobody_asked_for_are_refused() -> None:
    with pytest.raises(ConfigError, match="build it with statistics=True"):
        Pipeline().statistics  # noqa: B018  # the property raises


def test_explain_tells_the_order_both_ways_and_why() -> None:
    pipeline = Pipeline(
        [DefaultSettings(), Logging(), Use(Judging(), when=When(provider="acme"))], registry=load_plugins(environ={})
    )
    assert pipeline.explain().request_order == ("logging", "default_settings", "judging", "(any model)")
    explained = pipeline.explain(ScriptedModel("hi"))
    assert explained.request_order == ("logging", "default_settings", "scripted:scripted-1")
    assert explained.response_order == ("scripted:scripted-1", "default_settings", "logging")
    assert explained.left_out == (("judging", "when.provider is acme, and the provider is scripted"),)
    assert "left out: judging: when.provider is acme" in str(explained)


async def test_dry_run_tells_what_each_member_changes_and_asks_no_model(acme: Acme, registry: Registry) -> None:
    config = {
        "model": "acme:chat",
        "middlewares": [
            "logging",
            {"id": "default_settings", "config": {"seed": 1}, "when": {"metadata": {"tier": "free"}}},
        ],
    }
    pipeline = Pipeline.from_config(config, registry=registry)
    free = await pipeline.dry_run(ASKED.replace(metadata={"tier": "free"}))
    paid = await pipeline.dry_run(ASKED.replace(metadata={"tier": "paid"}))
    assert [(change.id, change.took_part, change.changed) for change in free.changes] == [
        ("logging", True, ()),
        ("default_settings", True, ("seed",)),
    ]
    assert free.options.seed == 1
    assert not paid.changes[1].took_part
    assert acme.models[0].calls == []


def test_a_pipeline_shows_its_members_and_its_model() -> None:
    assert repr(Pipeline([Logging()])) == "Pipeline([logging], no model)"
    assert repr(Pipeline([Logging()], model=ScriptedModel("hi"))) == "Pipeline([logging], scripted:scripted-1)"


def test_a_decision_model_cannot_be_wrapped_here() -> None:
    class Judge:
        provider = "acme"
        model_id = "judge"
        supported_question_types = ("boolean",)

        async def do_decide(self, options: object) -> object: ...

    with pytest.raises(ConfigError, match="Judge is no language model: it has no do_generate, do_stream"):
        Pipeline([Logging()]).wrap(Judge())  # type: ignore[arg-type]
