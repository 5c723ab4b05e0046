"""What is wrong with a configuration: one sentence a fault, with the place and what is allowed, and all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neurolink_mw import Middleware, MiddlewareConfig, hookimpl
from neurolink_mw.config import Pipeline
from neurolink_mw.errors import ConfigError
from neurolink_mw.plugins import Registry, load_plugins


class FussyConfig(MiddlewareConfig):
    pattern: str = ""


class Fussy(Middleware):
    """Fails in its constructor, with an error of the standard library."""

    Config = FussyConfig
    config: FussyConfig

    def __init__(self, config: FussyConfig | None = None, **values: object) -> None:
        super().__init__(config, **values)
        if self.config.pattern:
            raise ValueError(f"cannot compile {self.config.pattern}\n at all")


class CodeOnly(Middleware):
    def __init__(self, *, client: object) -> None:
        super().__init__()


class Plugin:
    @hookimpl
    def register_middlewares(self, register: Callable[[object], None]) -> None:
        register(Fussy)
        register(CodeOnly)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_plugins([Plugin()], environ={})


def member(**options: Any) -> dict[str, Any]:
    return {"middlewares": [{"id": "logging", **options}]}


def settings(**config: Any) -> dict[str, Any]:
    return {"middlewares": [{"id": "default_settings", "config": config}]}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"middlewares": ["loging"]}, "middlewares[0].id: there is no middleware 'loging'; did you mean 'logging'?"),
        (
            {"preset": "observ"},
            "preset: there is no preset 'observ'; did you mean 'observe'? (allowed: basic, observe)",
        ),
        ({"model": "acme:chat"}, "model: there is no provider 'acme' (allowed: anthropic, bedrock, openai-compatible)"),
        ({"model": "gpt-5"}, "model: a model is named provider:model-id, as in openai-compatible:gpt-5"),
        ({"model": 5}, "model: input should be provider:model-id, or a mapping of options"),
        ({"model": {"provider": "openai-compatible"}}, "model.model_id: field required"),
        ({"middleware": []}, "middleware: there is no such option; did you mean 'middlewares'? (allowed: model, "),
        ({1: 2}, "1: keys should be strings"),
        ({"middlewares": 5}, "middlewares: input should be a valid list"),
        ({"middlewares": [5]}, "middlewares[0]: input should be an id, or a mapping of options"),
        ({"middlewares": [{}]}, "middlewares[0].id: field required"),
        ({"middlewares": ["logging", "logging"]}, "middlewares[1]: 'logging' stands twice"),
        ({"enable": ["loging"]}, "enable: there is no middleware 'loging'; did you mean 'logging'?"),
        ({"disable": ["loging"]}, "disable: there is no middleware 'loging'; did you mean 'logging'?"),
        ({"enable": "logging"}, "enable: input should be a valid list"),
        (member(prio=1), "middlewares[0].prio: there is no such option; did you mean 'priority'?"),
        (member(priority="high"), "middlewares[0].priority: input should be a valid integer"),
        (member(enabled="maybe"), "middlewares[0].enabled: input should be a valid boolean"),
        (member(before="lifecycle"), "middlewares[0].before: input should be a valid list"),
        (member(after=["lifecylce"]), "logging.after names 'lifecylce', which is unknown; did you mean 'lifecycle'?"),
        (member(when={"providr": "x"}), "middlewares[0].when.providr: there is no such option; did you mean 'provi"),
        (member(when={"provider": 3}), "middlewares[0].when.provider: input should be a valid string, or a valid list"),
        (member(when={"options": {"temp": 1}}), "middlewares[0].when.options.temp: there is no such call option"),
        (member(config={"levl": "INFO"}), "middlewares[0].config.levl: there is no such option; did you mean 'level'"),
        (member(config={"level": "LOUD"}), "middlewares[0].config.level: input should be 'DEBUG', 'INFO', 'WARNING'"),
        (settings(temperature="warm"), "middlewares[0].config.temperature: input should be a valid number"),
        (settings(temperature=float("nan")), "middlewares[0].config.temperature: input should be a finite number"),
        (settings(tools=[{"type": "function"}]), "middlewares[0].config: default_settings.tools[0].name: "),
        (
            {"middlewares": [{"id": "lifecycle", "config": {"on_start": "nowhere:fn"}}]},
            "middlewares[0].config.on_start: invalid python path: No module named 'nowhere'",
        ),
        (
            {"middlewares": [{"id": "lifecycle", "config": {"timeout": -1}}]},
            "middlewares[0].config.timeout: input should be greater than or equal to 0",
        ),
        (
            {"model": {"provider": "openai-compatible", "model_id": "m", "base_url": 5, "api_key": None}},
            "model: openai-compatible:m.base_url: input should be a valid string",
        ),
        (
            {"model": {"provider": "openai-compatible", "model_id": "m", "base_ur": "x", "base_url": "y"}},
            "model: openai-compatible:m.base_ur: there is no such option; did you mean 'base_url'?",
        ),
        (
            {"model": {"provider": "openai-compatible", "model_id": "m", "base_url": "y"}},
            "model: openai-compatible:m needs its api_key: set OPENAI_API_KEY, or api_key beside the model's name",
        ),
        (
            {"middlewares": [{"id": "fussy", "config": {"pattern": "(((secret"}}]},
            "middlewares[0].config: fussy cannot use it: ValueError: cannot compile ... at all",
        ),
        (
            {"middlewares": ["code_only"]},
            "middlewares[0]: CodeOnly cannot be made from a configuration: add it in code",
        ),
        ({"plugins": ["acme_nowhere"]}, "plugins: plugin 'acme_nowhere' cannot be imported: ModuleNotFoundError"),
    ],
)
def test_a_fault_is_one_sentence_that_names_its_place(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any], said: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    faults = Pipeline.validate(config, registry=registry)
    assert len(faults) == 1, faults
    assert faults[0].startswith(said)


def test_a_fault_in_a_file_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text('middlewares = ["loging"]\npreset = "all"\n')
    assert [fault.partition(": ")[0] for fault in Pipeline.validate(path)] == [str(path), str(path)]


def test_a_cycle_is_refused_with_its_members() -> None:
    config = {
        "middlewares": [
            {"id": "logging", "before": ["lifecycle"]},
            {"id": "lifecycle", "before": ["default_settings"]},
            {"id": "default_settings", "before": ["logging"]},
        ]
    }
    (fault,) = Pipeline.validate(config)
    assert fault.startswith("these members cannot all stand as asked: ")
    assert all(id in fault for id in ("logging", "lifecycle", "default_settings"))


def test_all_faults_are_told_at_once() -> None:
    config = {
        "preset": "obs",
        "model": "gpt-5",
        "plugins": 5,
        "modle": "x",
        "middlewares": [
            "loging",
            {"id": "logging", "prio": 1},
            {"id": "lifecycle", "config": {"timeout": "long"}},
            {"id": "default_settings", "config": {"temprature": 1}, "when": {"options": {"temp": 1}}},
        ],
        "disable": ["lifecycles"],
    }
    assert {fault.partition(":")[0] for fault in Pipeline.validate(config)} == {
        "preset",
        "model",
        "plugins",
        "modle",
        "middlewares[0].id",
        "middlewares[1].prio",
        "middlewares[2].config.timeout",
        "middlewares[3].config.temprature",
        "disable",
    }


def test_a_place_is_that_in_the_file_whatever_a_preset_puts_before_it() -> None:
    config = {"preset": "observe", "middlewares": [{"id": "lifecycle", "config": {"nope": 1}}]}
    (fault,) = Pipeline.validate(config)
    assert fault.startswith("middlewares[0].config.nope: ")


def test_a_fault_in_the_overrides_says_so() -> None:
    with pytest.raises(ConfigError, match=r"^overrides\.middlewares\[0\]\.config\.nope: there is no such option"):
        Pipeline.from_config(
            {"middlewares": ["lifecycle", "logging"]},
            overrides={"middlewares": [{"id": "logging", "config": {"nope": 1}}]},
        )


def test_a_fault_in_a_member_that_is_left_out_is_found_before_it_is_switched_on() -> None:
    config = {"middlewares": [{"id": "logging", "enabled": False, "config": {"nope": 1}, "when": None}]}
    assert len(Pipeline.validate(config)) == 1


def test_a_good_configuration_has_no_faults() -> None:
    assert Pipeline.validate({"preset": "observe", "middlewares": ["lifecycle"]}) == []
