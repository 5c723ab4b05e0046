"""The JSON Schema of a configuration: valid, and of one mind with `Pipeline.from_config`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ConfigDict

from neurolink_mw import LanguageModel, Middleware, MiddlewareConfig, hookimpl
from neurolink_mw.config import Pipeline, json_schema
from neurolink_mw.plugins import Registry, load_plugins
from neurolink_mw.testing import ScriptedModel


class TaggingConfig(MiddlewareConfig):
    """Options with a nested model, and with an option that no file can give."""

    class Rule(MiddlewareConfig):
        pattern: str
        weight: float = 1.0

    rules: tuple[Rule, ...] = ()
    limit: int | None = None


class Tagging(Middleware):
    """Tags answers."""

    Config = TaggingConfig


class CallingConfig(MiddlewareConfig):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    client: Callable[[], object] | None = None
    retries: int = 0


class Calling(Middleware):
    Config = CallingConfig


class Plugin:
    @hookimpl
    def register_middlewares(self, register: Callable[[object], None]) -> None:
        register(Tagging)
        register(Calling)

    @hookimpl
    def register_providers(self, register: Any) -> None:
        def factory(model_id: str, **config: object) -> LanguageModel:
            return ScriptedModel("hi", model_id=model_id)

        register("acme.v2", factory)


REGISTRY = load_plugins([Plugin()], environ={})
SCHEMA = json_schema(REGISTRY)
VALIDATOR = jsonschema_rs.validator_for(SCHEMA)

IDS = ["calling", "default_settings", "lifecycle", "logging", "tagging"]
CONFIGS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "default_settings": st.fixed_dictionaries(
        {},
        optional={
            "temperature": st.none() | st.floats(0, 2),
            "max_output_tokens": st.integers(1, 9),
            "stop_sequences": st.lists(st.text(max_size=3), max_size=2),
            "headers": st.dictionaries(st.sampled_from(["a", "b"]), st.text(max_size=3)),
            "provider_options": st.just({"acme": {"deep": [1, {"x": None}]}}),
            "tools": st.just([{"type": "function", "name": "f", "inputSchema": {"type": "object"}}]),
        },
    ),
    "logging": st.fixed_dictionaries(
        {},
        optional={
            "level": st.sampled_from(["DEBUG", "INFO", "ERROR"]),
            "content": st.booleans(),
            "metadata": st.lists(st.text(max_size=3), max_size=2),
        },
    ),
    "lifecycle": st.fixed_dictionaries(
        {}, optional={"timeout": st.floats(0, 9), "on_start": st.just("json:dumps"), "on_error": st.none()}
    ),
    "tagging": st.fixed_dictionaries(
        {},
        optional={
            "rules": st.lists(st.fixed_dictionaries({"pattern": st.text(max_size=3)}, optional={"weight": st.just(2)})),
            "limit": st.none() | st.integers(),
        },
    ),
    "calling": st.fixed_dictionaries({}, optional={"retries": st.integers(0, 3)}),
}


def member(id: str) -> st.SearchStrategy[Any]:
    entry = st.fixed_dictionaries(
        {"id": st.just(id)},
        optional={
            "enabled": st.booleans(),
            "priority": st.none() | st.integers(0, 2000),
            "config": CONFIGS[id],
            "when": st.none()
            | st.fixed_dictionaries(
                {},
                optional={
                    "provider": st.none() | st.just("acme*") | st.lists(st.text(max_size=3), max_size=2),
                    "model": st.just("chat"),
                    "options": st.just({"temperature": 0}),
                    "metadata": st.just({"tier": ["free", "paid"]}),
                },
            ),
        },
    )
    return st.just(id) | entry


def members() -> st.SearchStrategy[list[Any]]:
    chosen = st.lists(st.sampled_from(IDS), unique=True)
    return chosen.flatmap(lambda ids: st.tuples(*map(member, ids)).map(list))


GOOD = st.fixed_dictionaries(
    {},
    optional={
        "$schema": st.just("./schema.json"),
        "preset": st.none() | st.just("observe"),
        "model": st.none()
        | st.just("acme.v2:chat")
        | st.just({"provider": "acme.v2", "model_id": "chat", "region": "eu"}),
        "middlewares": members(),
        "enable": st.lists(st.sampled_from(IDS), max_size=2),
        "disable": st.lists(st.sampled_from(IDS), max_size=2),
    },
)


def test_the_schema_is_itself_valid() -> None:
    assert jsonschema_rs.meta.is_valid(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@settings(max_examples=150, deadline=None)
@given(config=GOOD)
def test_the_schema_accepts_what_a_pipeline_is_built_from(config: dict[str, Any]) -> None:
    assert Pipeline.validate(config, registry=REGISTRY) == []
    assert [error.message for error in VALIDATOR.iter_errors(config)] == []


@pytest.mark.parametrize(
    "config",
    [
        {"middlewares": ["loging"]},
        {"middlewares": [{"id": "loging"}]},
        {"middlewares": [{"id": "logging", "prio": 1}]},
        {"middlewares": [{"id": "logging", "priority": "high"}]},
        {"middlewares": [{"id": "logging", "config": {"levl": "INFO"}}]},
        {"middlewares": [{"id": "logging", "config": {"level": "LOUD"}}]},
        {"middlewares": [{"id": "logging", "config": {"temperature": 1}}]},
        {"middlewares": [{"id": "logging", "when": {"providr": "x"}}]},
        {"middlewares": [{"id": "tagging", "config": {"rules": [{"weight": 1}]}}]},
        {"middlewares": [{"id": "tagging", "config": {"rules": [{"pattern": "x", "nope": 1}]}}]},
        {"middlewares": [{"id": "calling", "config": {"nope": 1}}]},
        {"middlewares": [{"id": "lifecycle", "config": {"timeout": -1}}]},
        {"middlewares": [{}]},
        {"middlewares": "logging"},
        {"middleware": []},
        {"preset": "obs"},
        {"model": "acme_v2:chat"},
        {"model": "acme.v2"},
        {"model": {"provider": "nowhere", "model_id": "m"}},
        {"enable": ["loging"]},
        {"disable": "logging"},
    ],
    ids=str,
)
def test_the_schema_refuses_what_a_pipeline_refuses(config: dict[str, Any]) -> None:
    assert Pipeline.validate(config, registry=REGISTRY) != []
    assert not VALIDATOR.is_valid(config)


@pytest.mark.parametrize(
    "config",
    [
        {"model": "${ENV:ACME_MODEL}"},
        {"preset": "${ENV:ACME_PRESET}"},
        {"middlewares": [{"id": "logging", "enabled": "${ENV:ACME_ON}", "priority": "${ENV:ACME_NUMBER}"}]},
        {"middlewares": [{"id": "logging", "config": {"level": "${ENV:ACME_LEVEL}", "content": "${ENV:ACME_ON}"}}]},
        {"middlewares": [{"id": "default_settings", "config": {"temperature": "${ENV:ACME_NUMBER}"}}]},
        {"middlewares": [{"id": "tagging", "config": {"rules": [{"pattern": "x", "weight": "${ENV:ACME_NUMBER}"}]}}]},
    ],
    ids=str,
)
def test_a_reference_may_stand_where_a_word_a_number_or_a_switch_is_wanted(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("MODEL", "acme.v2:m"),
        ("PRESET", "observe"),
        ("ON", "true"),
        ("NUMBER", "1"),
        ("LEVEL", "INFO"),
    ):
        monkeypatch.setenv(f"ACME_{name}", value)
    assert Pipeline.validate(config, registry=REGISTRY) == []
    assert VALIDATOR.is_valid(config)


def test_the_middlewares_of_plugins_are_in_the_schema_with_their_own_words() -> None:
    assert SCHEMA["$defs"]["tagging"]["properties"]["id"] == {"const": "tagging", "description": "Tags answers."}
    assert "acme.v2" in SCHEMA["$defs"]["ModelConfig"]["properties"]["provider"]["anyOf"][0]["enum"]


def test_without_any_plugin_there_is_a_schema_too() -> None:
    assert jsonschema_rs.meta.is_valid(json_schema(Registry()))
