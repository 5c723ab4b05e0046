"""What single models take: found by id, whichever cloud spells it."""

from __future__ import annotations

import typing

import pytest
from anthropic._constants import MODEL_NONSTREAMING_TOKENS
from anthropic._data import DEPRECATED_MODELS, MODELS_TO_WARN_WITH_THINKING_ENABLED
from anthropic.types import model_param

from neurolink_mw.providers.anthropic.limits import LEVELS, Capabilities, capabilities_of

from .builders import options, quiet, request

NAMED = typing.get_args(typing.get_args(model_param.ModelParam)[0])


@pytest.mark.parametrize("model_id", [*NAMED, *DEPRECATED_MODELS, *MODEL_NONSTREAMING_TOKENS])
def test_every_model_that_the_sdk_names_is_known(model_id: str) -> None:
    assert capabilities_of(model_id).known


@pytest.mark.parametrize("model_id", MODELS_TO_WARN_WITH_THINKING_ENABLED)
def test_models_that_the_sdk_warns_of_take_both_ways_of_thinking(model_id: str) -> None:
    assert {"enabled", "adaptive"} <= capabilities_of(model_id).thinking


@pytest.mark.parametrize(
    ("model_id", "most"),
    [
        ("claude-3-opus-20240229", 4096),
        ("claude-3-5-sonnet-20241022", 8192),
        ("claude-3.5-haiku", 8192),
        ("claude-3-7-sonnet-latest", 64000),
        ("claude-opus-4-20250514", 32000),
        ("claude-4-opus-20250514", 32000),
        ("claude-opus-4-1", 32000),
        ("claude-sonnet-4-0", 64000),
        ("claude-sonnet-4", 64000),
        ("anthropic/claude-sonnet-4", 64000),
        ("anthropic/claude-sonnet-4:beta", 64000),
        ("anthropic/claude-opus-4", 32000),
        ("claude-opus-4-latest", 32000),
        ("claude-opus-4-5", 64000),
        ("anthropic/claude-opus-4.6", 128000),
        ("claude-fable-5-2", 128000),
    ],
)
def test_the_longest_beginning_decides(model_id: str, most: int) -> None:
    assert capabilities_of(model_id).max_tokens == most


@pytest.mark.parametrize(
    "model_id",
    [
        "claude-haiku-4-5-20251001",
        "claude-haiku-4-5@20251001",
        "anthropic.claude-haiku-4-5-20251001-v1:0",
        "us.anthropic.claude-haiku-4-5-20251001-v1:0",
        "global.anthropic.claude-haiku-4-5-20251001-v1:0",
        "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-haiku-4-5-20251001-v1:0",
        "publishers/anthropic/models/claude-haiku-4-5@20251001",
    ],
)
def test_every_cloud_spells_the_same_model(model_id: str) -> None:
    assert capabilities_of(model_id) == capabilities_of("claude-haiku-4-5")


@pytest.mark.parametrize("model_id", ["claude-sonnet-4", "anthropic/claude-opus-4"])
def test_a_bare_four_is_the_first_of_its_generation(model_id: str) -> None:
    found = capabilities_of(model_id)
    assert found == capabilities_of(f"{model_id}-20250514")
    assert not found.json_format
    assert found.thinking == frozenset({"enabled", "disabled"})


@pytest.mark.parametrize("model_id", ["claude-sonnet-4-9", "claude-opus-4.9", "claude-opus-49"])
def test_a_successor_that_is_not_known_is_not_the_first_of_its_generation(model_id: str) -> None:
    assert capabilities_of(model_id) == capabilities_of("claude-saga-7")


def test_what_is_not_known_is_sent_as_asked() -> None:
    assert capabilities_of("glm-5") == Capabilities()
    newer = capabilities_of("claude-saga-7")
    assert not newer.known
    assert newer.efforts == LEVELS


def test_the_callers_word_stands_above_the_table() -> None:
    native = quiet(options(max_output_tokens=9000), "claude-3-haiku-20240307", capabilities=Capabilities(9000, True))
    assert native["max_tokens"] == 9000


def test_an_unknown_model_keeps_a_limit_that_was_asked_for() -> None:
    assert quiet(options(max_output_tokens=500_000), "glm-5")["max_tokens"] == 500_000


def test_nothing_is_a_limit_too() -> None:
    assert quiet(options(max_output_tokens=0))["max_tokens"] == 0


# --------------------------------------------------------------------------------------------------------- sampling


def test_a_model_takes_both_where_it_is_old_enough() -> None:
    native = quiet(options(temperature=0.5, top_p=0.9), "claude-3-5-sonnet-20241022")
    assert (native["temperature"], native["top_p"]) == (0.5, 0.9)


def test_top_p_alone_is_sent() -> None:
    assert quiet(options(top_p=0.0))["top_p"] == 0.0


@pytest.mark.parametrize("model_id", ["claude-opus-4-7", "claude-sonnet-5", "claude-haiku-5-5", "claude-fable-5-1"])
def test_the_newest_models_take_no_sampling_settings(model_id: str) -> None:
    native, features = request(options(temperature=0, top_p=0.9, top_k=3), model_id)
    assert not native.keys() & {"temperature", "top_p", "top_k"}
    assert features == ["temperature", "topP", "topK"]
