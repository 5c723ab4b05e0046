"""What rules do to calls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from neurolink_mw import CallOptions, Middleware, Outcome, Pipeline, Use, wrap_model
from neurolink_mw.events import Decision
from neurolink_mw.protocol import (
    AssistantMessage,
    FilePart,
    FunctionTool,
    ProviderTool,
    ResponseFormat,
    TextDelta,
    TextPart,
    ToolChoice,
    UnknownPart,
    UserMessage,
    user,
)
from neurolink_mw.testing import ScriptedModel, check_middleware

from neurolink_mw_cel import CelPolicy

HI = CallOptions.from_text("hi")


class Watch(Middleware):
    """Keeps the outcomes of a chain."""

    def bind(self, build: Any) -> None:
        self.outcomes: list[Outcome] = []
        build.observe(self.outcomes.append)


def rule(when: str, effect: str = "deny", name: str = "r", **more: str) -> dict[str, str]:
    return {"name": name, "when": when, "effect": effect, **more}


def asked(policy: CelPolicy, options: CallOptions = HI, **rules: Any) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The status of a call, and what was decided: (action, code)."""
    watch = Watch()
    model = wrap_model(ScriptedModel(["fine"]), [watch, Use(policy, **rules)])
    anyio.run(model.do_generate, options)
    (outcome,) = watch.outcomes
    return outcome.status, tuple((one.action, one.code) for one in outcome.findings if isinstance(one, Decision))


def holds(when: str, options: CallOptions = HI) -> bool | None:
    """Whether an expression is true for a request; None where that cannot be told."""
    policy = CelPolicy(default="allow", rules=[rule(when)])
    status, decided = asked(policy, options)
    if status == "ok":
        return False
    return None if decided == (("denied", "r:unknown"),) else True


# ------------------------------------------------------------------------------------------------------- attributes

PDF = FilePart("application/pdf", b"%PDF")
RICH = replace(
    HI,
    prompt=(UserMessage((TextPart("grüß"), PDF)), AssistantMessage((TextPart("ja"),)), user("dich")),
    max_output_tokens=4000,
    temperature=0.5,
    response_format=ResponseFormat("json"),
    tools=(FunctionTool("look_up", {}), ProviderTool("acme.search", "search"), UnknownPart("new", {"name": "odd"})),
    tool_choice=ToolChoice("tool", "look_up"),
    provider_options={"bedrock": {"region": "ap-south-1"}},
    metadata={"tenant": {"id": "acme", "region": "IN"}, "tags": ["a", "b"], "seats": 5, "share": 0.25, "none": None},
)


@pytest.mark.parametrize(
    "when",
    [
        "provider == 'scripted' && model == 'scripted-1'",
        "kind == 'generate'",
        "text == 'grüß\\ndich' && text_length == 9 && messages == 3",
        "files == ['application/pdf']",
        "tools == ['look_up', 'search', 'odd'] && provider_tools == ['acme.search']",
        "tool_choice == 'tool' && chosen_tool == 'look_up'",
        "params.max_output_tokens == 4000 && params.temperature < 0.6 && params.response_format == 'json'",
        "metadata.tenant.id == 'acme' && metadata['tenant'].region == 'IN'",
        "'b' in metadata.tags && metadata.seats > 4 && metadata.share < 1 && metadata.none == null",
        "provider_options.bedrock.region.startsWith('ap-')",
    ],
)
def test_a_rule_sees_the_request(when: str) -> None:
    assert holds(when, RICH) is True


@pytest.mark.parametrize(
    "when",
    [
        "tools == [] && provider_tools == [] && files == []",
        "tool_choice == 'auto' && chosen_tool == ''",
        "!has(params.max_output_tokens) && !has(params.response_format) && size(params) == 0",
        "!has(metadata.tenant) && size(metadata) == 0 && size(provider_options) == 0",
    ],
)
def test_what_was_not_set_is_empty_or_absent(when: str) -> None:
    assert holds(when) is True


def test_what_is_absent_cannot_be_told() -> None:
    assert holds("metadata.tenant == 'acme'") is None
    assert holds("params.max_output_tokens > 4000") is None
    assert holds("metadata.tenant.id == 'acme'", replace(HI, metadata={"tenant": "acme"})) is None
    assert holds("has(metadata.tenant) && metadata.tenant == 'acme'") is False
    assert holds("has(params.max_output_tokens) && params.max_output_tokens > 4000") is False


def test_what_need_not_be_known_may_be_absent() -> None:
    assert holds("metadata.tenant == 'acme' || kind == 'generate'") is True
    assert holds("metadata.tenant == 'acme' && kind == 'stream'") is False


@pytest.mark.parametrize("seats", ["five", None, [5], True])
def test_a_type_that_does_not_fit_cannot_be_told(seats: Any) -> None:
    assert holds("metadata.seats > 4", replace(HI, metadata={"seats": seats})) is None


def test_a_value_that_is_no_truth_cannot_be_told() -> None:
    assert holds("metadata.vip", replace(HI, metadata={"vip": "yes"})) is None
    assert holds("metadata.vip", replace(HI, metadata={"vip": True})) is True


def test_half_a_character_hides_only_what_it_stands_in() -> None:
    options = replace(CallOptions.from_text("\ud83d"), metadata={"tenant": "acme"})
    assert holds("text.contains('x')", options) is None
    assert holds("text_length == 1 && metadata.tenant == 'acme'", options) is True


# ---------------------------------------------------------------------------------------------------------- deciding


def test_the_first_rule_that_decides_wins() -> None:
    rules = [rule("metadata.tier == 'gold'", "allow", "gold"), rule("model.startsWith('scripted')", "deny", "no-model")]
    policy = CelPolicy(default="allow", rules=rules)
    assert asked(policy, replace(HI, metadata={"tier": "gold"})) == ("ok", ())
    assert asked(policy, replace(HI, metadata={"tier": "free"})) == ("denied", (("denied", "no-model"),))


def test_a_flag_is_reported_and_does_not_decide() -> None:
    flags = [rule("true", "flag", "one"), rule("messages == 1", "flag", "two"), rule("messages == 2", "flag", "three")]
    assert asked(CelPolicy(default="allow", rules=flags)) == ("ok", (("flagged", "one,two"),))
    denied = CelPolicy(default="allow", rules=[*flags, rule("true", "deny", "no")])
    assert asked(denied) == ("denied", (("denied", "no"),))


def test_the_default_decides_where_no_rule_does() -> None:
    policy = CelPolicy(default="deny", rules=[rule("model == 'other'", "allow")])
    assert asked(policy) == ("denied", (("denied", "default"),))
    assert asked(CelPolicy(default="allow", rules=[rule("model == 'other'")])) == ("ok", ())


@pytest.mark.parametrize("effect", ["allow", "deny", "flag"])
def test_a_rule_that_cannot_be_told_denies_whatever_its_effect(effect: str) -> None:
    rules = [rule("metadata.tenant == 'acme'", effect, "ours"), rule("true", "allow"), rule("true", "deny", "other")]
    rules[1]["name"] = "all"
    assert asked(CelPolicy(default="allow", rules=rules)) == ("denied", (("denied", "ours:unknown"),))


def test_a_rule_that_cannot_be_told_may_be_skipped() -> None:
    policy = CelPolicy(default="allow", rules=[rule("metadata.tenant == 'acme'", if_unknown="skip")])
    assert asked(policy) == ("ok", ())


@pytest.mark.parametrize("kind", ["generate", "stream"])
def test_a_user_gets_the_words_of_the_rule_or_of_the_policy(kind: str) -> None:
    rules = [rule(f"kind == '{kind}' && messages > 1", name="long", message="Too long."), rule("true", name="no")]
    policy = CelPolicy(default="allow", rules=rules, message="Ask your administrator.")

    async def said(options: CallOptions) -> str:
        model = wrap_model(ScriptedModel([]), [policy])
        if kind == "generate":
            return (await model.do_generate(options)).text
        async with (await model.do_stream(options)).stream as parts:
            return "".join([part.delta async for part in parts if isinstance(part, TextDelta)])

    assert anyio.run(said, HI) == "Ask your administrator."
    assert anyio.run(said, replace(HI, prompt=(user("a"), user("b")))) == "Too long."


def test_a_policy_in_shadow_mode_reports_and_changes_nothing() -> None:
    assert asked(CelPolicy(default="allow", rules=[rule("true")]), mode="shadow") == ("ok", (("denied", "r"),))


def test_nothing_of_the_request_is_in_what_is_reported() -> None:
    options = replace(CallOptions.from_text("my secret"), metadata={"key": "my secret"})
    watch = Watch()
    policy = CelPolicy(default="allow", rules=[rule("metadata[text] == 1 || metadata.key > 1")])
    model = wrap_model(ScriptedModel([]), [watch, policy])
    result = anyio.run(model.do_generate, options)
    assert "secret" not in repr((result, watch.outcomes[0].findings, policy, policy.config))


# ------------------------------------------------------------------------------------------------------- in pipelines


def test_a_configuration_finds_it_by_its_entry_point(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text("[[rules]]\nname = 'no-big'\nwhen = \"model == 'big'\"\neffect = 'deny'\n")
    entry = {"id": "cel", "config": {"default": "allow", "file": str(tmp_path / "rules.toml")}}
    pipeline = Pipeline.from_config({"middlewares": [entry]})
    result = anyio.run(pipeline.wrap(ScriptedModel([], model_id="big")).do_generate, HI)
    assert (result.finish_reason.unified, result.finish_reason.raw) == ("content-filter", "no-big")
    assert anyio.run(pipeline.wrap(ScriptedModel(["fine"])).do_generate, HI).text == "fine"


@pytest.mark.parametrize("when", ["text.contains('never')", "text.contains('Hello')", "metadata.tenant == 'acme'"])
def test_it_keeps_the_contract(when: str) -> None:
    check_middleware(lambda: CelPolicy(default="allow", rules=[rule(when)]))
