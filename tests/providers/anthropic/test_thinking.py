"""Thinking and effort: budgets, adaptive, levels, and what becomes of what a model is known to refuse."""

from __future__ import annotations

from typing import Any

import pytest

from neurolink_mw.errors import InvalidRequestError
from neurolink_mw.protocol import Message, ToolChoice
from neurolink_mw.providers.anthropic.request import BETAS, build_request

from .builders import (
    HAIKU,
    LOOK,
    OPUS_5,
    OPUS_55,
    SONNET_46,
    Json,
    answered,
    called,
    instructed,
    options,
    own,
    quiet,
    request,
    result,
    said,
    thought,
    told,
    warned,
)

SONNET_55 = "claude-sonnet-5-5"
HAIKU_3 = "claude-3-haiku-20240307"


def thinking(type: str | None = "enabled", **more: Any) -> Json:
    return own(thinking={"type": type, **more})


def budget(tokens: int) -> Json:
    return thinking(budgetTokens=tokens)


def effort_of(native: Json) -> Any:
    return native.get("output_config", {}).get("effort")


# ----------------------------------------------------------------------------------------------------------- budgets


def test_a_budget_comes_on_top_of_the_answers_tokens() -> None:
    native = quiet(options(max_output_tokens=500, provider_options=budget(1500)))
    assert (native["max_tokens"], native["thinking"]["budget_tokens"]) == (2000, 1500)


def test_both_together_stay_within_the_models_limit() -> None:
    native, features = request(options(max_output_tokens=64000, provider_options=budget(1500)))
    assert native["max_tokens"] == 64000
    assert features == ["maxOutputTokens"]


def test_a_limit_that_was_not_asked_for_is_lowered_without_a_word() -> None:
    assert quiet(options(provider_options=budget(1500)))["max_tokens"] == 64000


def test_a_budget_leaves_room_for_an_answer() -> None:
    native, features = request(options(provider_options=budget(64000)))
    assert native["thinking"]["budget_tokens"] == 64000 - 4096
    assert features == ["budgetTokens"]


def test_a_budget_below_the_least_is_raised_to_it() -> None:
    native, features = request(options(max_output_tokens=10, provider_options=budget(5)))
    assert (native["thinking"]["budget_tokens"], native["max_tokens"]) == (1024, 1034)
    assert features == ["budgetTokens"]


@pytest.mark.parametrize(
    "config",
    [{"type": "on"}, {}, {"type": "enabled", "budgetTokens": "many"}, {"type": "enabled", "budgetTokens": True}],
)
def test_a_configuration_that_cannot_be_meant_is_refused(config: Json) -> None:
    with pytest.raises(InvalidRequestError, match="thinking"):
        build_request(HAIKU, options(provider_options=own(thinking=config)))


# ------------------------------------------------------------------------------------------- what a model is known for


@pytest.mark.parametrize(
    ("model_id", "asked", "sent"),
    [
        (SONNET_46, "enabled", "enabled"),
        (OPUS_5, "enabled", "adaptive"),
        (OPUS_55, "enabled", "adaptive"),
        (HAIKU, "adaptive", "enabled"),
        (OPUS_5, "disabled", "disabled"),
        (OPUS_55, "disabled", None),
        (SONNET_55, "disabled", "between_tools"),
        (OPUS_5, "between_tools", "disabled"),
        (HAIKU_3, "enabled", None),
        ("claude-saga-7", "between_tools", "between_tools"),
        ("glm-5", "adaptive", "adaptive"),
    ],
)
def test_a_type_that_the_model_refuses_becomes_the_nearest_with_a_warning(
    model_id: str, asked: str, sent: str | None
) -> None:
    more = {"budgetTokens": 2000} if asked == "enabled" else {}
    native, features = request(options(max_output_tokens=100, provider_options=thinking(asked, **more)), model_id)
    assert (native.get("thinking") or {}).get("type") == sent
    assert features == ([] if sent == asked else ["thinking"])


def test_how_thinking_is_shown_is_sent() -> None:
    native = quiet(options(provider_options=thinking("adaptive", display="summarized")), SONNET_46)
    assert native["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert BETAS not in native


def test_what_only_the_beta_types_have_asks_for_its_beta() -> None:
    config = thinking("adaptive", display="updates", blockBinding={"prefixMismatchBehavior": "drop_block"})
    native = quiet(options(provider_options=config), OPUS_55)
    assert native["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert native[BETAS] == ["thinking-binding-controls-2026-08-01", "thinking-display-updates-2026-08-18"]


# --------------------------------------------------------------------------------- an answer that began without thought

SIGNED = thought("hm", signature="s1")
UNFINISHED = pytest.mark.parametrize(
    "history",
    [
        [answered(called("c1")), told(result("c1"))],
        [answered(thought("of another model"), called("c1")), told(result("c1"))],
        [answered("I shall.", SIGNED, called("c1")), told(result("c1"))],
        [answered(called("c1")), told(result("c1")), instructed(""), answered(called("c2")), told(result("c2"))],
        [answered(called("c1")), told(result("c1")), said("go on")],
        [answered("Dear")],
    ],
    ids=["no thought", "unsigned", "not at first", "two steps", "a word beside the results", "begun for the model"],
)


@UNFINISHED
def test_with_a_budget_thinking_is_turned_off_where_the_answer_began_without_a_thought(history: list[Message]) -> None:
    call = options(said("q"), *history, max_output_tokens=500, provider_options=budget(1500))
    native, warnings = warned(call)
    assert (native["thinking"], native["max_tokens"]) == ({"type": "disabled"}, 500)
    (told_of,) = (warning for warning in warnings if warning.feature == "thinking")
    assert "did not begin with a thought" in str(told_of.details)


@UNFINISHED
def test_adaptive_thinking_goes_on_without_one(history: list[Message]) -> None:
    call = options(said("q"), *history, max_output_tokens=500, provider_options=thinking("adaptive"))
    assert request(call, SONNET_46)[0]["thinking"] == {"type": "adaptive"}


def test_a_model_that_cannot_be_told_not_to_think_does_so_as_it_sees_fit() -> None:
    call = options(said("q"), answered(called("c1")), told(result("c1")), provider_options=budget(1500))
    assert request(call, "claude-mythos-preview")[0]["thinking"] == {"type": "adaptive"}


def test_where_it_is_turned_off_a_choice_can_be_forced_and_settings_are_sent() -> None:
    call = options(
        *(said("q"), answered(called("c1")), told(result("c1"))),
        tools=[LOOK],
        tool_choice=ToolChoice("required"),
        temperature=0.2,
        provider_options=budget(1500),
    )
    native, features = request(call)
    assert (native["tool_choice"], native["temperature"]) == ({"type": "any"}, 0.2)
    assert features == ["thinking"]


@pytest.mark.parametrize(
    "history",
    [
        [answered(SIGNED, called("c1")), told(result("c1"))],
        [answered(SIGNED, called("c1")), told(result("c1")), answered(called("c2")), told(result("c2"))],
        [answered(called("c1")), told(result("c1")), answered("It rains."), said("And now?")],
        [answered(SIGNED, "Dear")],
    ],
    ids=["a thought", "a thought in its first step", "an earlier turn", "begun for the model"],
)
def test_with_a_budget_thinking_stays_on_behind_a_thought_and_in_a_new_turn(history: list[Message]) -> None:
    native = quiet(options(said("q"), *history, provider_options=budget(1500)))
    assert native["thinking"] == {"type": "enabled", "budget_tokens": 1500}


# ------------------------------------------------------------------------------------------------------------ effort


@pytest.mark.parametrize(
    ("model_id", "asked", "sent"),
    [
        (OPUS_5, "xhigh", "xhigh"),
        (SONNET_46, "xhigh", "high"),
        (SONNET_46, "max", "max"),
        ("claude-opus-4-5", "max", "high"),
        (HAIKU, "low", None),
    ],
)
def test_a_level_is_sent_or_the_next_one_down_that_the_model_has(model_id: str, asked: str, sent: str | None) -> None:
    native, features = request(options(max_output_tokens=9, provider_options=own(effort=asked)), model_id)
    assert effort_of(native) == sent
    assert features == ([] if sent == asked else ["providerOptions.anthropic.effort"])


def test_a_level_that_is_not_known_yet_is_sent_as_it_is() -> None:
    native, warnings = build_request(OPUS_5, options(provider_options=own(effort="ultra")))
    assert effort_of(native) == "ultra"
    assert not warnings


def test_effort_may_be_said_in_output_config_as_well() -> None:
    call = own(outputConfig={"effort": "low"}, taskBudget={"type": "tokens", "total": 20000})
    native = quiet(options(provider_options=call), SONNET_46)
    assert native["output_config"] == {"effort": "low", "task_budget": {"type": "tokens", "total": 20000}}
    assert native[BETAS] == ["task-budgets-2026-03-13"]


# --------------------------------------------------------------------------------------------- V3's level of reasoning


@pytest.mark.parametrize(
    ("model_id", "level", "sent", "effort"),
    [
        (HAIKU, "high", {"type": "enabled", "budget_tokens": 16384}, None),
        (SONNET_46, "low", {"type": "adaptive"}, "low"),
        (OPUS_5, "minimal", {"type": "adaptive"}, "low"),
        (OPUS_5, "none", {"type": "disabled"}, None),
        (SONNET_55, "none", {"type": "between_tools"}, None),
        (HAIKU, "none", None, None),
        (OPUS_5, "provider-default", None, None),
    ],
)
def test_a_level_of_reasoning_is_said_in_the_models_way(
    model_id: str, level: str, sent: Json | None, effort: str | None
) -> None:
    native, features = request(options(reasoning=level), model_id)
    assert native.get("thinking") == sent
    assert effort_of(native) == effort
    assert not features


@pytest.mark.parametrize(
    ("model_id", "level", "effort"), [(HAIKU_3, "high", None), (HAIKU, "ultra", None), (OPUS_55, "none", "low")]
)
def test_a_level_that_the_model_does_not_have_is_warned_about(model_id: str, level: str, effort: str | None) -> None:
    native, features = request(options(reasoning=level), model_id)
    assert "thinking" not in native
    assert effort_of(native) == effort
    assert features == ["reasoning"]


def test_the_next_level_down_is_told() -> None:
    native, features = request(options(reasoning="xhigh"), SONNET_46)
    assert effort_of(native) == "high"
    assert features == ["reasoning"]


def test_what_was_said_more_exactly_counts() -> None:
    native = quiet(options(reasoning="high", provider_options=own(effort="low")), OPUS_5)
    assert (native.get("thinking"), effort_of(native)) == (None, "low")
    native = quiet(options(reasoning="high", provider_options=budget(2000)))
    assert native["thinking"]["budget_tokens"] == 2000


def test_a_level_and_how_thinking_is_shown_go_together() -> None:
    call = options(reasoning="low", provider_options=thinking("adaptive", display="omitted"))
    native = quiet(call, OPUS_5)
    assert (native["thinking"], effort_of(native)) == ({"type": "adaptive", "display": "omitted"}, "low")


# ---------------------------------------------------------------------------------------------------------- sampling


@pytest.mark.parametrize("config", [budget(2000), thinking("adaptive")])
def test_while_it_thinks_a_model_takes_no_sampling_settings(config: Json) -> None:
    native, features = request(options(temperature=0.2, top_p=0.3, top_k=4, provider_options=config), SONNET_46)
    assert not native.keys() & {"temperature", "top_p", "top_k"}
    assert features == ["temperature", "topP", "topK"]


def test_while_it_does_not_a_model_takes_them() -> None:
    assert quiet(options(temperature=0.2, provider_options=thinking("disabled")), SONNET_46)["temperature"] == 0.2


# ------------------------------------------------------------------------------------------- thinking and the choice


@pytest.mark.parametrize(
    ("config", "thinks"),
    [(budget(2048), True), (thinking("adaptive"), True), (thinking("disabled"), False), (None, False)],
    ids=["budget", "adaptive", "disabled", "not said"],
)
@pytest.mark.parametrize(
    ("choice", "free", "is_forced"),
    [
        (ToolChoice("required"), "any", True),
        (ToolChoice("tool", "look"), "tool", True),
        (ToolChoice("auto"), "auto", False),
        (ToolChoice("none"), "none", False),
    ],
    ids=lambda choice: getattr(choice, "type", None),
)
def test_a_choice_is_forced_where_the_model_was_not_told_to_think_and_else_left_to_it_with_one_warning_j02(
    config: Json | None, thinks: bool, choice: ToolChoice, free: str, is_forced: bool
) -> None:
    native, features = request(options(tools=[LOOK], tool_choice=choice, provider_options=config), SONNET_46)
    downgraded = thinks and is_forced
    assert native["tool_choice"]["type"] == ("auto" if downgraded else free)
    assert features.count("toolChoice") == downgraded
