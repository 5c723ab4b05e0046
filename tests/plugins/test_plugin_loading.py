"""Plugins given in code or by a dotted name: what is refused, with which sentence, and that nothing of it stays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from tests.plugins.distributions import imported_afresh, install

from neurolink_mw import Middleware, hookimpl
from neurolink_mw.config import Pipeline
from neurolink_mw.errors import PluginError
from neurolink_mw.events import CacheLookup
from neurolink_mw.plugins import Deferred, PluginWarning, Registry, load_plugins
from neurolink_mw.testing import ScriptedModel

Register = Callable[[object], None]


class Greeter(Middleware):
    id = "greeter"


class GreeterPlugin:
    @hookimpl
    def register_middlewares(self, register: Register) -> None:
        register(Greeter)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    with imported_afresh(tmp_path):
        yield tmp_path


def loaded(*plugins: object) -> Registry:
    return load_plugins(plugins, environ={}, found=())


def registering(*classes: object) -> object:
    class Plugin:
        @hookimpl
        def register_middlewares(self, register: Register) -> None:
            for cls in classes:
                register(cls)

    return Plugin()


def test_a_plugin_given_in_code_is_loaded_under_its_class_name() -> None:
    registry = loaded(GreeterPlugin())
    assert [(info.name, info.middlewares) for info in registry.plugins] == [("GreeterPlugin", ("greeter",))]


def test_a_plugin_is_given_by_a_dotted_name_as_a_module(site: Path) -> None:
    source = """
        from neurolink_mw import Middleware, hookimpl
        class Greeter(Middleware): ...
        @hookimpl
        def register_middlewares(register): register(Greeter)
    """
    (site / "acme_module.py").write_text(dedent(source))
    assert loaded("acme_module").middleware_ids == ("greeter",)


def test_a_plugin_is_given_by_a_dotted_name_as_an_object_of_a_module(site: Path) -> None:
    source = """
        from neurolink_mw import Middleware, hookimpl
        class Greeter(Middleware): ...
        class Plugin:
            @hookimpl
            def register_middlewares(self, register): register(Greeter)
        plugin = Plugin()
    """
    (site / "acme_object.py").write_text(dedent(source))
    pipeline = Pipeline.from_config({"plugins": ["acme_object:plugin"], "middlewares": ["greeter"]})
    assert pipeline.ids == ("greeter",)


def test_plugins_of_a_config_are_added_to_the_registry_given_in_code(site: Path) -> None:
    source = """
        from neurolink_mw import Middleware, hookimpl
        class Other(Middleware): ...
        @hookimpl
        def register_middlewares(register): register(Other)
    """
    (site / "acme_other.py").write_text(dedent(source))
    registry = loaded(GreeterPlugin())
    pipeline = Pipeline.from_config({"plugins": ["acme_other"], "middlewares": ["greeter", "other"]}, registry=registry)
    assert pipeline.ids == ("greeter", "other")
    assert registry.middleware_ids == ("greeter",)


def test_a_plugin_of_a_config_registers_once_however_often_the_pipeline_is_varied(site: Path) -> None:
    source = """
        from neurolink_mw import Middleware, hookimpl
        times = []
        class Greeter(Middleware): ...
        @hookimpl
        def register_middlewares(register):
            times.append(1)
            register(Greeter)
    """
    (site / "acme_once.py").write_text(dedent(source))
    pipeline = Pipeline.from_config({"plugins": ["acme_once"], "middlewares": ["greeter"]}, registry=loaded())
    for _ in range(3):
        pipeline.wrap(ScriptedModel("hi"), overrides={"disable": ["greeter"]})
    assert len(sys.modules["acme_once"].times) == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("acme_nowhere", "ModuleNotFoundError: No module named 'acme_nowhere'"),
        ("json:nothing", "AttributeError"),
        ("", "ValueError"),
    ],
)
def test_a_dotted_name_that_leads_nowhere_is_fatal(name: str, said: str) -> None:
    with pytest.raises(PluginError, match=f"plugin {name!r} cannot be imported: {said}"):
        loaded(name)


def test_a_misspelt_hook_is_refused_with_the_likely_one() -> None:
    class Plugin:
        @hookimpl
        def register_middleware(self, register: Register) -> None: ...

    with pytest.raises(PluginError, match="no hook 'register_middleware'; did you mean 'register_middlewares'"):
        loaded(Plugin())


def test_a_hook_under_another_name_is_a_hook() -> None:
    class Plugin:
        @hookimpl(specname="register_middlewares")
        def offer(self, register: Register) -> None:
            register(Greeter)

    assert loaded(Plugin()).middleware_ids == ("greeter",)


def test_a_hook_that_was_not_marked_is_refused_since_it_would_never_be_called() -> None:
    class Plugin:
        def register_middlewares(self, register: Register) -> None: ...

        @hookimpl
        def on_event(self, event: object) -> None: ...

    with pytest.raises(PluginError, match="register_middlewares without @hookimpl"):
        loaded(Plugin())


def test_a_plugin_without_any_hook_is_refused() -> None:
    with pytest.raises(PluginError, match="plugin 'object' has no hook: mark its functions with @hookimpl"):
        loaded(object())


def test_a_wrong_signature_is_refused_with_the_right_one() -> None:
    class Plugin:
        @hookimpl
        def register_providers(self, reg: Any, app: Any) -> None: ...

    said = r"register_providers is called as register_providers\(register\), not \(reg, app\)"
    with pytest.raises(PluginError, match=said):
        loaded(Plugin())


def test_a_hook_may_leave_out_what_it_does_not_need() -> None:
    seen = []

    class Plugin:
        @hookimpl
        def on_event(self) -> None:
            seen.append("told")

        @hookimpl
        def register_stores(self) -> None:
            seen.append("asked")

    loaded(Plugin()).emit(CacheLookup("a-request", "caching", hit=True))
    assert seen == ["asked", "told"]


def test_an_async_hook_is_refused_since_nobody_would_await_it() -> None:
    class Plugin:
        @hookimpl
        async def on_event(self, event: object) -> None: ...

    with pytest.raises(PluginError, match="on_event is a plain function, neither async nor with a `yield`"):
        loaded(Plugin())


def test_a_wrapper_hook_is_refused_since_hooks_are_called_one_by_one() -> None:
    class Plugin:
        @hookimpl(wrapper=True)
        def pipeline_built(self, pipeline: object) -> Iterator[None]:
            yield

    with pytest.raises(PluginError, match="pipeline_built is a plain function"):
        loaded(Plugin())


def test_a_class_in_place_of_an_instance_is_refused_with_the_remedy() -> None:
    with pytest.raises(PluginError, match=r"is the class GreeterPlugin: give an instance, GreeterPlugin\(\)"):
        loaded(GreeterPlugin)


@pytest.mark.parametrize(("required", "shown"), [(2, "2"), ("1", "'1'"), (None, "None")])
def test_a_plugin_for_another_version_of_the_api_is_refused(required: object, shown: str) -> None:
    plugin = GreeterPlugin()
    plugin.requires_api = required  # type: ignore[attr-defined]
    with pytest.raises(PluginError, match=f"requires version {shown} of the plugin API, and this is 1"):
        loaded(plugin)


def test_a_plugin_for_this_version_of_the_api_is_loaded() -> None:
    plugin = GreeterPlugin()
    plugin.requires_api = 1  # type: ignore[attr-defined]
    assert loaded(plugin).middleware_ids == ("greeter",)


@pytest.mark.parametrize(("thing", "called"), [(dict, "dict"), (Greeter(), "Greeter"), ("greeter", "str")])
def test_what_is_no_middleware_class_cannot_be_registered(thing: object, called: str) -> None:
    with pytest.raises(PluginError, match=f"'Plugin' registered {called}, which is neither a Middleware nor a role"):
        loaded(registering(thing))


def test_one_id_twice_in_one_plugin_is_refused() -> None:
    with pytest.raises(PluginError, match="'Plugin' registered the middleware 'greeter' twice"):
        loaded(registering(Greeter, Greeter))


def test_one_id_in_two_plugins_names_both() -> None:
    with pytest.raises(PluginError, match="'greeter' is registered by plugin 'GreeterPlugin' and by 'Plugin'"):
        loaded(GreeterPlugin(), registering(Greeter))


@pytest.mark.parametrize("name", ["", "a:b", 5])
def test_a_provider_is_registered_under_a_name_without_a_colon(name: Any) -> None:
    class Plugin:
        @hookimpl
        def register_providers(self, register: Any) -> None:
            register(name, lambda model_id: ScriptedModel("hi"))

    with pytest.raises(PluginError, match="a name has no colon"):
        loaded(Plugin())


def test_a_provider_without_a_factory_is_refused() -> None:
    class Plugin:
        @hookimpl
        def register_providers(self, register: Any) -> None:
            register("acme", "not callable")

    with pytest.raises(PluginError, match="registered the provider 'acme' without a factory to call"):
        loaded(Plugin())


def test_a_plugin_that_fails_halfway_leaves_nothing_behind(site: Path) -> None:
    source = """
        from neurolink_mw import Middleware, hookimpl
        seen = []
        class Greeter(Middleware): ...
        @hookimpl
        def on_event(event): seen.append(event)
        @hookimpl
        def pipeline_built(pipeline): seen.append(pipeline)
        @hookimpl
        def register_middlewares(register): register(Greeter)
        @hookimpl
        def register_stores(register): raise KeyError("no database")
    """
    install(site, "acme-halfway", source)
    with pytest.warns(PluginWarning, match="plugin 'acme-halfway' failed while it registered: KeyError"):
        registry = load_plugins(environ={})
    registry.emit(CacheLookup("a-request", "caching", hit=True))
    Pipeline(registry=registry)
    assert "greeter" not in registry.middleware_ids
    assert sys.modules["acme_halfway"].seen == []


def test_a_plugin_that_fails_halfway_can_be_loaded_once_it_works() -> None:
    class Plugin:
        works = False

        @hookimpl
        def register_middlewares(self, register: Register) -> None:
            register(Greeter)
            if not self.works:
                raise OSError("not yet")

    plugin = Plugin()
    with pytest.raises(PluginError):
        loaded(plugin)
    plugin.works = True
    assert loaded(plugin).middleware_ids == ("greeter",)


def test_a_deferred_middleware_is_imported_when_it_is_first_used(site: Path) -> None:
    (site / "acme_late.py").write_text("from neurolink_mw import Middleware\nclass Late(Middleware): ...\n")
    registry = loaded(registering(Deferred("late", "acme_late:Late")))
    assert "acme_late" not in sys.modules
    assert registry.middleware("late").__name__ == "Late"


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("acme_gone:Late", "the middleware 'late' cannot be imported: ModuleNotFoundError"),
        ("json:Late", "the middleware 'late' cannot be imported: AttributeError"),
        ("json:loads", "registered json:loads, which is neither a Middleware nor a role"),
        ("neurolink_mw.middlewares.logging:Logging", "registered Logging as 'late', and its id is 'logging'"),
    ],
)
def test_a_deferred_middleware_that_is_none_is_refused_when_it_is_used(target: str, said: str) -> None:
    registry = loaded(registering(Deferred("late", target)))
    with pytest.raises(PluginError, match=said):
        registry.middleware("late")
