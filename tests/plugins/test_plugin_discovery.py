"""Plugins of real installed distributions: found, allowed, disabled, broken."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.plugins.distributions import GREETER, imported_afresh, install

from neurolink_mw.config import Pipeline
from neurolink_mw.errors import ConfigError, PluginError
from neurolink_mw.plugins import PluginInfo, PluginWarning, Registry, load_plugins

BROKEN = "raise RuntimeError('no licence found')"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    with imported_afresh(tmp_path):
        yield tmp_path


def info_of(registry: Registry, name: str) -> PluginInfo:
    return next(info for info in registry.plugins if info.name == name)


def without_warning(environ: dict[str, str]) -> Registry:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)
        return load_plugins(environ=environ)


def test_the_built_ins_are_found_through_the_entry_point_like_any_plugin() -> None:
    registry = load_plugins(environ={})
    builtin = registry.plugins[0]
    assert (builtin.name, builtin.distribution, builtin.status) == ("builtin", "neurolink-mw", "loaded")
    assert {"default_settings", "logging", "lifecycle"} <= set(registry.middleware_ids)
    assert "openai-compatible" in registry.provider_names


def test_an_installed_distribution_makes_its_middleware_available(site: Path) -> None:
    install(site, "acme-greeter", GREETER.format(id="greeter"))
    registry = load_plugins(environ={})
    assert info_of(registry, "acme-greeter") == PluginInfo(
        "acme-greeter", "acme-greeter", "1.2", middlewares=("greeter",)
    )
    assert Pipeline.from_config({"middlewares": ["greeter"]}, registry=registry).ids == ("greeter",)


def test_a_registered_middleware_is_available_and_not_active(site: Path) -> None:
    install(site, "acme-greeter", GREETER.format(id="greeter"))
    assert Pipeline.from_config({}, registry=load_plugins(environ={})).ids == ()


def test_the_allow_list_hides_other_distributions_and_never_the_built_ins(site: Path) -> None:
    install(site, "acme-one", GREETER.format(id="one"))
    install(site, "acme-two", GREETER.format(id="two"))
    registry = load_plugins(environ={"NEUROLINK_MW_PLUGINS": "acme-two"})
    assert info_of(registry, "acme-one").status == "disabled"
    assert {"two", "logging"} <= set(registry.middleware_ids)
    assert "one" not in registry.middleware_ids


def test_a_distribution_is_named_in_any_spelling_of_its_name(site: Path) -> None:
    install(site, "acme-one", GREETER.format(id="one"))
    registry = load_plugins(environ={"NEUROLINK_MW_PLUGINS": " Acme_One , "})
    assert "one" in registry.middleware_ids


def test_an_empty_allow_list_leaves_the_built_ins_alone_and_hides_the_rest(site: Path) -> None:
    install(site, "acme-one", GREETER.format(id="one"))
    registry = load_plugins(environ={"NEUROLINK_MW_PLUGINS": ""})
    assert "logging" in registry.middleware_ids
    assert "one" not in registry.middleware_ids


def test_an_allowed_distribution_that_is_not_installed_is_fatal() -> None:
    with pytest.raises(PluginError, match="NEUROLINK_MW_PLUGINS names acme-absent, and no such distribution"):
        load_plugins(environ={"NEUROLINK_MW_PLUGINS": "acme-absent,neurolink-mw"})


@pytest.mark.parametrize("named", ["acme-one", "greeting-plugin", "ACME.one"])
def test_a_plugin_is_disabled_by_its_name_or_its_distribution(site: Path, named: str) -> None:
    install(site, "acme-one", GREETER.format(id="one"), entry_point="greeting-plugin")
    registry = load_plugins(environ={"NEUROLINK_MW_DISABLE": named})
    assert info_of(registry, "greeting-plugin").status == "disabled"
    assert "one" not in registry.middleware_ids


def test_a_disabled_plugin_is_not_even_imported(site: Path) -> None:
    install(site, "acme-broken", BROKEN)
    registry = load_plugins(environ={"NEUROLINK_MW_DISABLE": "acme-broken"})
    assert info_of(registry, "acme-broken").error is None


@pytest.mark.parametrize("named", ["builtin", "neurolink-mw"])
def test_the_built_ins_cannot_be_disabled(named: str) -> None:
    assert "logging" in load_plugins(environ={"NEUROLINK_MW_DISABLE": named}).middleware_ids


def test_disabling_wins_over_allowing(site: Path) -> None:
    install(site, "acme-one", GREETER.format(id="one"))
    registry = load_plugins(environ={"NEUROLINK_MW_PLUGINS": "acme-one", "NEUROLINK_MW_DISABLE": "acme-one"})
    assert info_of(registry, "acme-one").status == "disabled"


def test_a_plugin_that_raises_on_import_is_listed_and_warned_about_once(site: Path) -> None:
    install(site, "acme-broken-once", BROKEN)
    with pytest.warns(PluginWarning, match="'acme-broken-once' cannot be imported: RuntimeError: no licence found"):
        registry = load_plugins(environ={})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_plugins(environ={})
    broken = info_of(registry, "acme-broken-once")
    assert broken.status == "failed"
    assert broken.error == "plugin 'acme-broken-once' cannot be imported: RuntimeError: no licence found"


def test_a_plugin_that_exits_on_import_does_not_end_the_program(site: Path) -> None:
    install(site, "acme-exits", "raise SystemExit('licence expired')")
    with pytest.warns(PluginWarning, match="SystemExit: licence expired"):
        load_plugins(environ={})


def test_a_plugin_that_raises_on_import_is_fatal_where_it_is_allow_listed(site: Path) -> None:
    install(site, "acme-broken", BROKEN)
    with pytest.raises(PluginError, match="'acme-broken' cannot be imported: RuntimeError: no licence found"):
        load_plugins(environ={"NEUROLINK_MW_PLUGINS": "acme-broken"})


def test_a_plugin_that_raises_on_import_is_fatal_where_a_config_names_it(site: Path) -> None:
    module = install(site, "acme-broken", BROKEN)
    with pytest.raises(PluginError, match="plugins: plugin 'acme_broken' cannot be imported: RuntimeError"):
        Pipeline.from_config({"plugins": [module]}, registry=Registry())


def test_an_unknown_id_hints_at_the_plugins_that_could_not_be_loaded(site: Path) -> None:
    install(site, "acme-broken", BROKEN)
    registry = without_warning({})
    with pytest.raises(ConfigError, match=r"no middleware 'greeter'.*these plugins could not be loaded: acme-broken"):
        Pipeline.from_config({"middlewares": ["greeter"]}, registry=registry)


def test_a_broken_plugin_does_not_keep_the_others_out(site: Path) -> None:
    install(site, "acme-broken", BROKEN)
    install(site, "acme-zebra", GREETER.format(id="zebra"))
    assert "zebra" in without_warning({}).middleware_ids


def test_two_distributions_with_one_middleware_id_are_both_named(site: Path) -> None:
    install(site, "acme-one", GREETER.format(id="greeter"))
    install(site, "acme-two", GREETER.format(id="greeter"))
    with pytest.raises(PluginError, match=r"'greeter' is registered by plugin 'acme-one' and by 'acme-two'"):
        load_plugins(environ={"NEUROLINK_MW_PLUGINS": "acme-one,acme-two"})


def test_a_plugin_cannot_take_the_place_of_a_built_in(site: Path) -> None:
    install(site, "acme-logging", GREETER.format(id="logging"))
    registry = without_warning({})
    assert "by plugin 'builtin' and by 'acme-logging'" in str(info_of(registry, "acme-logging").error)
    assert registry.middleware("logging").__module__ == "neurolink_mw.middlewares.logging"


def test_two_entry_points_of_one_name_are_refused_by_that_name(site: Path) -> None:
    install(site, "acme-one", GREETER.format(id="one"), entry_point="plugin")
    install(site, "acme-two", GREETER.format(id="two"), entry_point="plugin")
    with pytest.raises(PluginError, match="two plugins have the name 'plugin'"):
        load_plugins(environ={"NEUROLINK_MW_PLUGINS": "acme-one,acme-two"})


def test_an_installed_plugin_that_a_config_names_too_is_one_plugin(site: Path) -> None:
    module = install(site, "acme-greeter", GREETER.format(id="greeter"))
    registry = load_plugins(environ={})
    pipeline = Pipeline.from_config({"plugins": [module], "middlewares": ["greeter"]}, registry=registry)
    assert pipeline.ids == ("greeter",)
