"""What the loaded plugins make available and are told, and that no call ever goes through pluggy."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from neurolink_mw import BuildContext, CallOptions, GenerateResult, LanguageModel, Middleware, hookimpl
from neurolink_mw.config import Pipeline
from neurolink_mw.errors import ConfigError, PluginError
from neurolink_mw.events import CacheLookup, Event
from neurolink_mw.plugins import Registry, load_plugins
from neurolink_mw.testing import ScriptedModel

ASKED = CallOptions.from_text("Hello")


TOLD = CacheLookup("a-request", "telling", hit=False)


class Telling(Middleware):
    """Tells an event at every call."""

    id = "telling"

    def bind(self, build: BuildContext) -> None:
        self.tell: Callable[[Event], None] = build.events

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        self.tell(TOLD)
        return await model.do_generate(options)


class Listening:
    """A plugin that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[object] = []
        self.pipelines: list[object] = []

    @hookimpl
    def register_middlewares(self, register: Callable[[object], None]) -> None:
        register(Telling)

    @hookimpl
    def on_event(self, event: object) -> None:
        self.events.append(event)

    @hookimpl
    def pipeline_built(self, pipeline: object) -> None:
        self.pipelines.append(pipeline)


def loaded(*plugins: object) -> Registry:
    return load_plugins(plugins, environ={}, found=())


def provider(factory: Callable[..., object]) -> object:
    class Plugin:
        @hookimpl
        def register_providers(self, register: Any) -> None:
            register("acme", factory)

    return Plugin()


@pytest.mark.anyio
async def test_an_event_reaches_every_plugin_that_listens() -> None:
    plugin = Listening()
    pipeline = Pipeline.from_config({"middlewares": ["telling"]}, registry=loaded(plugin))
    await pipeline.wrap(ScriptedModel("hi")).do_generate(ASKED)
    assert [event for event in plugin.events if isinstance(event, CacheLookup)] == [TOLD]


@pytest.mark.anyio
async def test_pluggy_is_never_called_for_a_call_or_a_part() -> None:
    plugin = Listening()
    registry = loaded(plugin)
    pipeline = Pipeline.from_config({"middlewares": ["telling"]}, registry=registry, statistics=True)
    model = pipeline.wrap(ScriptedModel(["one two three", "four five six"]))
    calls: list[str] = []
    undo = registry.manager.add_hookcall_monitoring(lambda hook, impls, arguments: calls.append(hook), lambda *_: None)
    await model.do_generate(ASKED)
    result = await model.do_stream(ASKED)
    async with result.stream as parts:
        assert [part async for part in parts]
    undo()
    assert calls == []
    assert [event for event in plugin.events if isinstance(event, CacheLookup)] == [TOLD]


@pytest.mark.anyio
async def test_what_an_observer_raises_is_logged_by_kind_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Raising:
        @hookimpl
        def on_event(self, event: object) -> None:
            raise ValueError("what the user said")

    plugin = Listening()
    pipeline = Pipeline.from_config({"middlewares": ["telling"]}, registry=loaded(Raising(), plugin))
    with caplog.at_level(logging.WARNING, logger="neurolink_mw"):
        await pipeline.wrap(ScriptedModel("hi")).do_generate(ASKED)
    assert [event for event in plugin.events if isinstance(event, CacheLookup)] == [TOLD]
    said = [record.getMessage() for record in caplog.records]
    assert said == ["plugin Raising failed on an event: ValueError"] * 2  # the end of the call is an event, too


def test_every_built_pipeline_is_shown_to_the_plugins() -> None:
    plugin = Listening()
    registry = loaded(plugin)
    first = Pipeline(registry=registry)
    second = Pipeline.from_config({}, registry=registry)
    assert plugin.pipelines == [first, second]


@pytest.mark.parametrize("error", [ConfigError, PluginError])
def test_a_plugin_may_refuse_a_pipeline(error: type[Exception]) -> None:
    class Strict:
        @hookimpl
        def pipeline_built(self, pipeline: Pipeline) -> None:
            if "telling" not in pipeline.ids:
                raise error("no pipeline without telling")

    registry = loaded(Listening(), Strict())
    with pytest.raises(error, match=r"^no pipeline without telling$"):
        Pipeline.from_config({}, registry=registry)
    pipeline = Pipeline.from_config({"middlewares": ["telling"]}, registry=registry)
    with pytest.raises(error, match="no pipeline without telling"):  # a variant for one call is a pipeline too
        pipeline.wrap(ScriptedModel("hi"), overrides={"disable": ["telling"]})


def test_a_plugin_that_fails_while_it_looks_at_a_pipeline_is_named() -> None:
    class Clumsy:
        @hookimpl
        def pipeline_built(self, pipeline: Any) -> None:
            pipeline.nothing()

    with pytest.raises(PluginError, match="'Clumsy' failed while it looked at a pipeline: AttributeError"):
        Pipeline(registry=loaded(Clumsy()))


def test_a_model_is_made_by_the_factory_of_its_provider() -> None:
    seen: dict[str, object] = {}

    def factory(model_id: str, **config: object) -> LanguageModel:
        seen.update(config, model_id=model_id)
        return ScriptedModel("hi", model_id=model_id)

    model = loaded(provider(factory)).model("acme:chat:v2", region="eu")
    assert model.model_id == "chat:v2"
    assert seen == {"model_id": "chat:v2", "region": "eu"}


@pytest.mark.parametrize("name", ["acme", "acme:", "chat"])
def test_a_model_name_without_provider_or_id_is_refused(name: str) -> None:
    registry = loaded(provider(lambda model_id: ScriptedModel("hi")))
    with pytest.raises(ConfigError, match=r"named provider:model-id, not .* \(providers: acme\)"):
        registry.model(name)


def test_a_setting_that_a_provider_does_not_take_is_a_config_error_by_name() -> None:
    registry = loaded(provider(lambda model_id: ScriptedModel("hi")))
    with pytest.raises(ConfigError, match=r"'acme' does not take this configuration: .*'region'"):
        registry.model("acme:chat", region="eu")


def test_a_provider_that_returns_no_model_is_named() -> None:
    registry = loaded(provider(lambda model_id: "a model, I say"))
    with pytest.raises(PluginError, match="'acme' returned str, which is no model"):
        registry.model("acme:chat")


def test_a_decision_model_is_refused_where_a_language_model_is_needed() -> None:
    class Judge:
        provider = "acme"
        model_id = "judge"
        supported_question_types = ("boolean",)

        async def do_decide(self, options: object) -> object: ...

    registry = loaded(provider(lambda model_id: Judge()))
    with pytest.raises(ConfigError, match="acme:judge is a decision model, and a language model is needed here"):
        Pipeline.from_config({"model": "acme:judge"}, registry=registry)


def test_a_store_is_found_by_its_scheme() -> None:
    class Plugin:
        @hookimpl
        def register_stores(self, register: Any) -> None:
            register("memory", lambda url: f"store of {url}")

    registry = loaded(Plugin())
    assert registry.store("memory:x") == "store of memory:x"
    with pytest.raises(ConfigError, match=r"no store 'redis' \(allowed: memory\)"):
        registry.store("redis:x")
    with pytest.raises(ConfigError, match="begins with its scheme and a colon"):
        registry.store("memory")
