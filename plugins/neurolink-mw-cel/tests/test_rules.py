"""Rules that cannot work are refused when the policy is made, by their names and with what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from neurolink_mw import Pipeline
from neurolink_mw.errors import ConfigError

from neurolink_mw_cel import CelPolicy


def rule(when: str, name: str = "r", effect: str = "deny") -> dict[str, str]:
    return {"name": name, "when": when, "effect": effect}


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("model ==", "when is no CEL expression: line 1, column 9: Syntax error"),
        ("modle == 'a'", "there is no attribute 'modle'; did you mean 'model'?"),
        ("tenant == 'a'", "there is no attribute 'tenant'"),
        ("model.startWith('a')", "there is no function 'startWith'; did you mean 'startsWith'?"),
        ("has(params.tempreture)", "there is no params.tempreture; did you mean 'temperature'?"),
        ("model.matches('(')", "the pattern of matches() number 1 is no regular expression"),
        (r"metadata.x == 1 && model.matches(r'\')", "the pattern of matches() number 1 is no regular expression"),
        ("text_length", "when gives int, and must be true or false"),
        ("text_length > 'many'", "when combines values of types that do not fit"),
        ("params.max_output_tokens == 1 && kind > 1", "when combines values of types that do not fit"),
        ("(" * 500 + "true" + ")" * 500, "when is no CEL expression"),
    ],
)
def test_an_expression_that_cannot_work_is_refused(when: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        CelPolicy(default="allow", rules=[rule(when)])
    assert str(refused.value).startswith(f"rule 'r': {said}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "when",
    [
        "tools.exists(tool, tool.startsWith('danger'))",
        "tools.all(t, t in ['look_up', 'add'])",
        "'modle' == model || text.contains('params.nope')",
        "has(metadata.tenant) && metadata.tenant.region == 'in'",
        "timestamp(metadata.since) < timestamp('2030-01-01T00:00:00Z')",
        r"model.matches(r'^gpt-\d+$')",
        "has(params.temperature) && params.temperature > 1",
    ],
)
def test_an_expression_that_may_work_is_accepted(when: str) -> None:
    CelPolicy(default="allow", rules=[rule(when)])


def test_every_rule_that_cannot_work_is_told() -> None:
    with pytest.raises(ConfigError) as refused:
        CelPolicy(
            default="allow", rules=[rule("1", "one"), rule("true", "two"), rule("x", "three"), rule("true", "two")]
        )
    assert [fault.split(":")[0] for fault in str(refused.value).split("; rule")] == ["rule 'one'", " 'three'", " 'two'"]


def test_no_rule_may_be_called_like_the_default() -> None:
    with pytest.raises(ConfigError, match="rule 'default': that is what a call is reported by which no rule decided"):
        CelPolicy(default="allow", rules=[rule("true", "default")])


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"rules": [rule("true")]}, "CelPolicy.default: field required"),
        ({"default": "allow"}, "give the rules, or the file that holds them"),
        ({"default": "allow", "rules": [rule("true")], "file": "rules.toml"}, "holds them, not both"),
        ({"default": "allow", "rules": []}, "rules: tuple should have at least 1 item"),
        ({"default": "allow", "rules": [rule("true", effect="allow")]}, "nothing would be denied"),
        ({"default": "deny", "rules": [rule("true", effect="flag")]}, "every call would be denied"),
        ({"default": "allow", "rules": [rule("true", "two words")]}, "rules.0.name"),
        ({"default": "allow", "rules": [{**rule("true"), "efect": "deny"}]}, "rules.0.efect: there is no such option"),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_refused(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        CelPolicy(**config)


def test_a_configuration_names_the_place_and_the_rule() -> None:
    config = {"middlewares": [{"id": "cel", "config": {"default": "allow", "rules": [rule("modle == 'a'", "no-big")]}}]}
    with pytest.raises(ConfigError, match=r"^middlewares\[0\].config: rule 'no-big': there is no attribute 'modle'"):
        Pipeline.from_config(config)


# ------------------------------------------------------------------------------------------------------------ files

TOML = """
[[rules]]
name = "no-big"
when = "model == 'big'"
effect = "deny"
"""


@pytest.mark.parametrize(
    ("name", "text"), [("rules.toml", TOML), ("rules.json", json.dumps({"rules": [rule("model == 'big'", "no-big")]}))]
)
def test_rules_may_be_in_a_file(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    policy = CelPolicy(default="allow", file=str(tmp_path / name))
    assert [compiled.rule.name for compiled in policy.rules] == ["no-big"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("rules.yaml", "rules: []", "rules are in a file that ends in .toml or .json"),
        ("gone.toml", None, "there is no such file"),
        ("rules.toml", "rules =", "this is not TOML: "),
        ("rules.json", "[", "this is not JSON: "),
        ("rules.json", "[]", "Input should be a valid dictionary"),
        ("rules.toml", "rules = []", "rules: Tuple should have at least 1 item"),
        ("rules.toml", TOML.replace("effect", "efect"), "rules.0.effect: Field required"),
        ("rules.toml", TOML.replace("model ==", "modle =="), "rule 'no-big': there is no attribute 'modle'"),
    ],
)
def test_a_file_that_holds_no_rules_is_refused(tmp_path: Path, name: str, text: str | None, said: str) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        CelPolicy(default="allow", file=path)
    assert str(path) in str(refused.value)
    assert said in str(refused.value)
