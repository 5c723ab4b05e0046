"""Presets: what each stands for, that it can be built, and how a configuration changes it."""

from __future__ import annotations

from typing import Any

import pytest

from neurolink_mw import CallOptions, Pipeline
from neurolink_mw.config import PRESETS
from neurolink_mw.config.presets import preset
from neurolink_mw.errors import OverloadedError
from neurolink_mw.pipeline import Explanation
from neurolink_mw.plugins import Registry, load_plugins
from neurolink_mw.testing import ScriptedModel

ASKED = CallOptions.from_text("Hello")


@pytest.fixture
def registry() -> Registry:
    return load_plugins(environ={})


def explained(registry: Registry, **config: Any) -> Explanation:
    return Pipeline.from_config(config, registry=registry).explain(ScriptedModel([]))


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_says_what_it_is_for_and_can_be_built(registry: Registry, name: str) -> None:
    assert PRESETS[name].about.endswith(".")
    assert explained(registry, preset=name).members


def test_basic_limits_the_call_tries_again_and_limits_each_attempt(registry: Registry) -> None:
    members = explained(registry, preset="basic").members
    assert [(member.id, member.rules) for member in members] == [
        ("timeout", "the call takes at most 600 s"),
        ("retry", "up to 3 attempts"),
        ("timeout.attempt", "an attempt takes at most 300 s"),
    ]


def test_a_configuration_changes_one_option_and_keeps_the_others(registry: Registry) -> None:
    changed = [{"id": "timeout", "config": {"call": 60}}, {"id": "retry", "config": {"attempts": 5}}, "logging"]
    members = explained(registry, preset="basic", middlewares=changed).members
    assert [(member.id, member.rules) for member in members] == [
        ("timeout", "the call takes at most 60 s"),
        ("logging", None),
        ("retry", "up to 5 attempts"),
        ("timeout.attempt", "an attempt takes at most 300 s"),
    ]


def test_a_limit_is_taken_out_with_null(registry: Registry) -> None:
    without = [{"id": "timeout", "config": {"attempt": None}}]
    assert explained(registry, preset="basic", middlewares=without).request_order[:2] == ("timeout", "retry")
    assert len(explained(registry, preset="basic", middlewares=without).members) == 2


@pytest.mark.parametrize(("left_out", "rest"), [("timeout", ["retry"]), ("retry", ["timeout", "timeout.attempt"])])
def test_a_member_of_a_preset_is_left_out_by_its_name(registry: Registry, left_out: str, rest: list[str]) -> None:
    assert [member.id for member in explained(registry, preset="basic", disable=[left_out]).members] == rest


def test_what_a_configuration_changes_is_changed_for_nobody_else() -> None:
    given = preset("basic")
    given["middlewares"][0]["config"]["call"] = 1
    given["middlewares"][0]["id"] = "changed"
    given["middlewares"].pop()
    assert preset("basic")["middlewares"] == [
        {"id": "timeout", "config": {"call": 600, "attempt": 300}},
        {"id": "retry"},
    ]


@pytest.mark.anyio
async def test_basic_gets_through_an_overload(registry: Registry) -> None:
    model = ScriptedModel([OverloadedError("busy"), "at last"])
    config = {"preset": "basic", "middlewares": [{"id": "retry", "config": {"delay": 0}}]}
    pipeline = Pipeline.from_config(config, registry=registry)
    assert (await pipeline.wrap(model).do_generate(ASKED)).text == "at last"
