"""Conditions: who takes part is decided by value, never by accident, and never silently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from neurolink_mw.errors import ConfigError
from neurolink_mw.pipeline import Use, When, explain, wrap_model
from neurolink_mw.protocol import CallOptions, Kind, LanguageModel, ResponseFormat, ToolChoice
from neurolink_mw.testing import ScriptedModel

from .builders import ASKED, Layer, Member, Noted, NotedModel, only_when, run

pytestmark = pytest.mark.anyio


def holds(when: When, options: CallOptions = ASKED) -> bool:
    return when.matches(options)


def given(**fields: Any) -> CallOptions:
    return ASKED.replace(**fields)


# -- provider and model, decided at build


@pytest.mark.parametrize(
    ("wanted", "takes_part"),
    [
        ("bedrock", True),
        ("bed*", True),
        ("*", True),
        ("b?drock", True),
        ("anthropic", False),
        ("Bedrock", False),
        ("bed", False),
        (["anthropic", "bed*"], True),
        (["anthropic", "openai"], False),
        ([], False),
    ],
)
def test_a_provider_is_a_glob_or_a_list_of_which_one_must_match(wanted: str | list[str], takes_part: bool) -> None:
    assert (When(provider=wanted).excludes("bedrock", "claude") is None) == takes_part


def test_provider_and_model_must_both_match() -> None:
    when = When(provider="bedrock", model="claude-*")
    assert when.excludes("bedrock", "claude-5") is None
    assert when.excludes("bedrock", "nova") == "when.model is claude-*, and the model is nova"
    assert when.excludes("openai", "claude-5") == "when.provider is bedrock, and the provider is openai"


async def test_a_member_for_another_provider_is_left_out_when_the_chain_is_built() -> None:
    journal: list[str] = []
    model = wrap_model(NotedModel(journal), [only_when(Noted("A", journal), provider="bedrock"), Noted("B", journal)])
    await model.do_generate(ASKED)
    assert journal == ["B.transform(generate)", "B.generate>", "model.generate", "B.generate<"]


def test_who_was_left_out_is_said_with_the_reason_also_when_nobody_is_left() -> None:
    model = wrap_model(NotedModel([]), [only_when(Layer("A"), provider=["bedrock", "anthropic"])])
    assert explain(model).left_out == (("A", "when.provider is bedrock, anthropic, and the provider is noted"),)


def test_a_member_that_is_left_out_is_not_bound() -> None:
    class Unbindable(Layer):
        def bind(self, build: object) -> None:
            raise AssertionError("bound")

    wrap_model(NotedModel([]), [only_when(Unbindable(), model="other")])


def test_the_names_that_count_are_those_that_the_chain_shows() -> None:
    model = wrap_model(NotedModel([]), [only_when(Layer("A"), provider="azure")], provider="azure")
    assert explain(model).left_out == ()


# -- options, decided at each call


@pytest.mark.parametrize(
    ("wanted", "fields", "takes_part"),
    [
        ({"temperature": 0}, {"temperature": 0}, True),
        ({"temperature": 0}, {"temperature": 0.0}, True),
        ({"temperature": 0}, {}, False),
        ({"temperature": None}, {}, True),
        ({"temperature": None}, {"temperature": 0}, False),
        ({"seed": 1}, {"seed": 1}, True),
        ({"seed": True}, {"seed": 1}, False),
        ({"include_raw_chunks": 1}, {"include_raw_chunks": True}, False),
        ({"include_raw_chunks": False}, {"include_raw_chunks": False}, True),
        ({"include_raw_chunks": False}, {}, False),
        ({"seed": [1, 2]}, {"seed": 2}, True),
        ({"seed": [1, 2]}, {"seed": 3}, False),
        ({"reasoning": "hi*"}, {"reasoning": "high"}, True),
        ({"reasoning": ["low", "hi*"]}, {"reasoning": "high"}, True),
        ({"reasoning": "*"}, {}, False),
        ({"stop_sequences": ["a", "b"]}, {"stop_sequences": ["a", "b"]}, True),
        ({"stop_sequences": ["a", "b"]}, {"stop_sequences": ["b", "a"]}, False),
        ({"stop_sequences": ["a"]}, {"stop_sequences": ["a", "b"]}, False),
        ({"stop_sequences": []}, {"stop_sequences": []}, True),
        ({"stop_sequences": []}, {}, False),
        ({"maxOutputTokens": 5}, {"max_output_tokens": 5}, True),
        (
            {"provider_options": {"bedrock": {"tier": "fast"}}},
            {"provider_options": {"bedrock": {"tier": "fast"}}},
            True,
        ),
        (
            {"provider_options": {"bedrock": {"tier": "f*"}}},
            {"provider_options": {"bedrock": {"tier": "fast", "more": 1}, "other": {}}},
            True,
        ),
        ({"provider_options": {"bedrock": {"on": True}}}, {"provider_options": {"bedrock": {"on": 1}}}, False),
        ({"provider_options": {"bedrock": {}}}, {"provider_options": {"bedrock": None}}, False),
        ({"temperature": 0, "seed": 1}, {"temperature": 0, "seed": 1}, True),
        ({"temperature": 0, "seed": 1}, {"temperature": 0, "seed": 2}, False),
    ],
)
def test_options_are_compared_by_value(wanted: dict[str, Any], fields: dict[str, Any], takes_part: bool) -> None:
    assert holds(When(options=wanted), given(**fields)) == takes_part


@pytest.mark.parametrize("name", ["tool_name", "toolName"])
def test_a_value_of_the_protocol_is_compared_field_by_field_in_either_spelling(name: str) -> None:
    options = given(tool_choice=ToolChoice("tool", "search"), response_format=ResponseFormat("json"))
    assert holds(When(options={"tool_choice": {"type": "tool", name: "sea*"}}), options)
    assert holds(When(options={"response_format": {"type": "json"}}), options)
    assert not holds(When(options={"response_format": {"type": "json", "name": "*"}}), options)
    assert not holds(When(options={"tool_choice": {"type": "none"}}), options)


def test_an_unknown_option_is_refused_with_the_likely_name() -> None:
    with pytest.raises(ConfigError, match=r"when\.options\.temprature: .*did you mean 'temperature'"):
        When(options={"temprature": 0})


@pytest.mark.parametrize("name", ["context", "metadata", "extra"])
def test_what_is_no_option_of_the_call_cannot_be_asked_for(name: str) -> None:
    with pytest.raises(ConfigError, match="no such call option"):
        When(options={name: {}})


# -- metadata


@pytest.mark.parametrize(
    ("wanted", "metadata", "takes_part"),
    [
        ({"tenant": "acme"}, {"tenant": "acme"}, True),
        ({"tenant": "ac*"}, {"tenant": "acme", "user": "u"}, True),
        ({"tenant": "acme"}, {"tenant": "other"}, False),
        ({"tenant": "acme"}, None, False),
        ({"tenant": None}, {"tenant": None}, True),
        ({"tenant": None}, {}, False),
        ({"user": {"plan": "free"}}, {"user": {"plan": "free", "age": 3}}, True),
        ({"user": {"plan": "free"}}, {"user": {}}, False),
        ({"user": {"plan": "free"}}, {"user": "free"}, False),
        ({"count": 1}, {"count": True}, False),
        ({"tags": ["a", "b"]}, {"tags": ["a", "b"]}, True),
        ({"flags": [[True]]}, {"flags": [1]}, False),
        ({"tenant": ["a", "b"]}, {"tenant": "b"}, True),
    ],
)
def test_metadata_is_compared_key_by_key(
    wanted: dict[str, Any], metadata: Mapping[str, Any] | None, takes_part: bool
) -> None:
    assert holds(When(metadata=wanted), given(metadata=metadata)) == takes_part


# -- a function


def test_a_function_of_the_options_decides_last() -> None:
    asked: list[CallOptions] = []

    def ask(options: CallOptions) -> bool:
        asked.append(options)
        return options.temperature == 0

    when = When(options={"seed": 1}, custom=ask)
    assert not holds(when, given(temperature=0))
    assert asked == []
    assert holds(when, given(temperature=0, seed=1))
    assert not holds(when, given(temperature=1, seed=1))


class Undecided(Exception):
    pass


def undecided(options: CallOptions) -> bool:
    raise Undecided


@pytest.mark.parametrize("kind", ["generate", "stream"])
async def test_a_condition_that_raises_fails_the_call_and_never_leaves_the_member_out(kind: Kind) -> None:
    journal: list[str] = []
    model = wrap_model(NotedModel(journal), [only_when(Noted("A", journal), custom=undecided)])
    with pytest.raises(Undecided):
        await run(model, kind)
    assert journal == []


def test_a_condition_that_is_no_function_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"when\.custom is a function of the options, not str"):
        When(custom="never")  # type: ignore[arg-type]


def test_an_async_condition_is_refused_since_it_would_always_hold() -> None:
    async def later(options: CallOptions) -> bool:
        return False

    with pytest.raises(ConfigError, match=r"when\.custom .* give a sync function"):
        When(custom=later)  # type: ignore[arg-type]


def test_a_condition_that_returns_an_awaitable_is_refused_at_the_call() -> None:
    class Later:
        def __await__(self) -> Any:
            raise AssertionError("awaited")

    with pytest.raises(ConfigError, match="cannot be awaited"):
        holds(When(custom=lambda options: Later()))  # type: ignore[arg-type,return-value]


# -- in a chain


@pytest.mark.parametrize("kind", ["generate", "stream"])
async def test_each_call_decides_anew(kind: Kind) -> None:
    journal: list[str] = []
    model = wrap_model(NotedModel(journal), [only_when(Noted("A", journal), options={"temperature": 0})])
    await run(model, kind, given(temperature=1))
    assert journal == [f"model.{kind}"]
    journal.clear()
    await run(model, kind, given(temperature=0))
    assert journal == [f"A.transform({kind})", f"A.{kind}>", f"model.{kind}", f"A.{kind}<"]


async def test_a_condition_sees_the_options_as_members_further_out_left_them() -> None:

    async def cold(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        return options.replace(temperature=0)

    journal: list[str] = []
    inner = only_when(Noted("A", journal), options={"temperature": 0})
    await wrap_model(NotedModel(journal), [Member("cold", transform_params=cold), inner]).do_generate(ASKED)
    assert journal[0] == "A.transform(generate)"


def test_a_mapping_is_no_condition() -> None:
    with pytest.raises(ConfigError, match=r"Use\(layer, when=\.\.\.\) takes a When"):
        Use(Layer(), when={"provider": "x"})  # type: ignore[arg-type]


async def test_conditions_belong_to_the_place_and_not_to_the_member() -> None:
    journal: list[str] = []
    shared = Noted("A", journal)
    never = wrap_model(NotedModel(journal), [only_when(shared, options={"seed": 1})])
    always = wrap_model(ScriptedModel("Hi"), [shared])
    await never.do_generate(ASKED)
    assert journal == ["model.generate"]
    await always.do_generate(ASKED)
    assert journal[1] == "A.transform(generate)"
