"""Which refusals are made good by leaving a parameter or a beta out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from neurolink_mw.providers.anthropic.repair import PROTECTED, Repair, refuses_format, refuses_system_role, repair

Json = dict[str, Any]

SENT: Json = {
    "model": "m",
    "max_tokens": 9,
    "system": [{"type": "text", "text": "s"}],
    "messages": [{"role": "user", "content": [{"type": "text", "text": "q", "cache_control": {"type": "ephemeral"}}]}],
    "tools": [
        {"name": "look", "input_schema": {"type": "object"}, "strict": True, "eager_input_streaming": True},
        {"name": "find", "input_schema": {"type": "object"}, "eager_input_streaming": True},
    ],
    "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
    "temperature": 0.2,
    "top_p": 0.9,
    "top_k": 5,
    "stop_sequences": ["x"],
    "thinking": {"type": "adaptive", "display": "omitted"},
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {}}},
    "metadata": {"user_id": "u"},
    "service_tier": "auto",
    "stream": True,
    "betas": ["alpha-1", "odd-2", "zebra-3"],
}


def refusal(message: str) -> bytes:
    return json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": message}}).encode()


def repaired(message: str, sent: Json = SENT) -> Repair:
    found = repair(400, refusal(message), sent)
    assert found is not None
    assert found.warning.type == "unsupported"
    return found


def without(*names: str) -> Json:
    return {name: item for name, item in SENT.items() if name not in names}


@pytest.mark.parametrize(
    ("message", "name", "feature"),
    [
        ("temperature: Extra inputs are not permitted", "temperature", "temperature"),
        ("top_p: Extra inputs are not permitted", "top_p", "topP"),
        ("top_k: Extra inputs are not permitted", "top_k", "topK"),
        ("`temperature` is deprecated for this model.", "temperature", "temperature"),
        ("`top_k` is not supported for this model", "top_k", "topK"),
        ("top_k is not supported on this model.", "top_k", "topK"),
        ("temperature: unsupported", "temperature", "temperature"),
        ("temperature: not supported", "temperature", "temperature"),
        ("service_tier: not permitted for this model", "service_tier", "serviceTier"),
        ("thinking.adaptive.display: Unsupported", "thinking", "reasoning"),
        ("This model does not support the temperature parameter.", "temperature", "temperature"),
        ("This model doesn't support the `top_p` parameter.", "top_p", "topP"),
        ("`temperature` and `top_p` cannot both be specified for this model. Please use only one.", *("top_p", "topP")),
        ("thinking: Extra inputs are not permitted", "thinking", "reasoning"),
        ("thinking.adaptive.display: Extra inputs are not permitted", "thinking", "reasoning"),
        ('"thinking.type.adaptive" is not supported for this model.', "thinking", "reasoning"),
        ("service_tier: Extra inputs are not permitted", "service_tier", "serviceTier"),
        ("stop_sequences: Extra inputs are not permitted", "stop_sequences", "stopSequences"),
        ("output_config: Extra inputs are not permitted", "output_config", "outputConfig"),
        ("metadata.user_id: Extra inputs are not permitted", "metadata", "userId"),
        ("tool_choice: Extra inputs are not permitted", "tool_choice", "toolChoice"),
        ('"tool_choice.type.any" is not supported for this model.', "tool_choice", "toolChoice"),
    ],
)
def test_a_parameter_that_is_named_as_unsupported_is_left_out(message: str, name: str, feature: str) -> None:
    native, warning = repaired(message)
    assert native == without(name)
    assert warning.feature == feature


@pytest.mark.parametrize(
    ("message", "member", "kept", "feature"),
    [
        (
            "output_config.effort: Extra inputs are not permitted",
            *("output_config", {"format": {"type": "json_schema", "schema": {}}}, "reasoning"),
        ),
        (
            "This model does not support the effort parameter.",
            *("output_config", {"format": {"type": "json_schema", "schema": {}}}, "reasoning"),
        ),
        (
            "output_config.format: Extra inputs are not permitted",
            *("output_config", {"effort": "low"}, "responseFormat"),
        ),
        (
            "tool_choice.any.disable_parallel_tool_use: Extra inputs are not permitted",
            *("tool_choice", {"type": "any"}, "disableParallelToolUse"),
        ),
    ],
)
def test_an_entry_of_a_member_is_left_out_alone(message: str, member: str, kept: Json, feature: str) -> None:
    native, warning = repaired(message)
    assert native == {**SENT, member: kept}
    assert warning.feature == feature


@pytest.mark.parametrize(
    "message",
    [
        "tools.0.custom.eager_input_streaming: Extra inputs are not permitted",
        "tools.1.eager_input_streaming: Extra inputs are not permitted",
        "Unknown parameter: 'eager_input_streaming'",
    ],
)
def test_what_one_tool_is_refused_with_is_left_out_of_all(message: str) -> None:
    native, warning = repaired(message)
    assert native["tools"] == [
        {name: item for name, item in tool.items() if name != "eager_input_streaming"} for tool in SENT["tools"]
    ]
    assert {**native, "tools": SENT["tools"]} == SENT
    assert warning.feature == "eagerInputStreaming"


@pytest.mark.parametrize(
    ("named", "kept"),
    [
        ("`odd-2`", ["alpha-1", "zebra-3"]),
        ("`zebra-3`", ["alpha-1", "odd-2"]),
        ("`odd-2`, `zebra-3`", ["alpha-1"]),
        ("`alpha-1`, `odd-2`, `zebra-3`", None),
    ],
)
def test_betas_that_are_named_as_unexpected_are_left_out(named: str, kept: list[str] | None) -> None:
    said = (
        f"Unexpected value(s) {named} for the `anthropic-beta` header. Please consult our documentation or remove it."
    )
    native, warning = repaired(said)
    assert native == {**without("betas"), **({} if kept is None else {"betas": kept})}
    assert warning.feature == "anthropicBeta"
    assert warning.details == f"the API refused {named.replace('`', '')}, so the request was sent again without it"


@pytest.mark.parametrize("name", sorted(PROTECTED))
def test_what_the_call_is_made_of_is_never_left_out(name: str) -> None:
    for said in (f"{name}: Extra inputs are not permitted", f"`{name}` is not supported for this model"):
        assert repair(400, refusal(said), SENT) is None


@pytest.mark.parametrize(
    "message",
    [
        "messages.0.content.0.text.cache_control: Extra inputs are not permitted",
        "tools.0.custom.input_schema: Extra inputs are not permitted",
        "tools.0.custom.name: Extra inputs are not permitted",
        "tools.0.custom.input_schema.type: Extra inputs are not permitted",
        "tools.0.custom.unknown: Extra inputs are not permitted",
        "betas: Extra inputs are not permitted",
        "output_config.task_budget: Extra inputs are not permitted",
        "container: Extra inputs are not permitted",
        "Unexpected value(s) `other-9` for the `anthropic-beta` header.",
        "temperature: Input should be less than or equal to 1",
        "temperature: not allowed to be above 1",
        "max_tokens: 9 > 8, which is the maximum allowed number of output tokens",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "messages: roles must alternate",
        "This model does not support tool use.",
        "no",
        "",
    ],
)
def test_nothing_else_is_repaired(message: str) -> None:
    assert repair(400, refusal(message), SENT) is None


def test_other_statuses_and_bodies_are_not_repaired() -> None:
    body = refusal("temperature: Extra inputs are not permitted")
    assert repair(422, body, SENT) is not None
    for status in (401, 413, 429, 500):
        assert repair(status, body, SENT) is None
    for odd in (b"", b"<html>", b"[]", b"null"):
        assert repair(400, odd, SENT) is None


@pytest.mark.parametrize(
    "body",
    [
        b'{"message": "temperature: Extra inputs are not permitted"}',
        b'{"error": {"code": 400, "message": "temperature: Extra inputs are not permitted", "status": "INVALID"}}',
    ],
)
def test_the_words_of_clouds_are_understood(body: bytes) -> None:
    found = repair(400, body, SENT)
    assert found is not None
    assert found.native == without("temperature")


def test_a_repaired_request_leaves_the_first_one_alone() -> None:
    before = json.dumps(SENT)
    for name in (
        "temperature",
        "output_config.effort",
        "tools.0.custom.strict",
        "tool_choice.disable_parallel_tool_use",
    ):
        assert repaired(f"{name}: Extra inputs are not permitted").native != SENT
    repaired("Unexpected value(s) `odd-2` for the `anthropic-beta` header.")
    assert json.dumps(SENT) == before


@pytest.mark.parametrize("word", ["a" * 60_000, "a." * 30_000, "`a" * 30_000])
def test_a_long_word_in_a_refusal_is_read_in_no_time(word: str) -> None:
    assert repair(400, refusal(f"does not support {word} {word} is not supported"), SENT) is None


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        *(
            ({"tools": [{"type": "web_search_20250305", "name": "web_search", member: item}]}, f"tools.0.x.{member}")
            for member, item in (("allowed_domains", ["a.test"]), ("blocked_domains", ["b.test"]), ("max_uses", 1))
        ),
        ({"tools": [{"name": "look", "input_schema": {}, "allowed_callers": ["direct"]}]}, "tools.0.allowed_callers"),
    ],
)
def test_what_keeps_a_model_from_doing_something_is_never_left_out(sent: Json, said: str) -> None:
    message = said if " " in said else f"{said}: Extra inputs are not permitted"
    assert repair(400, refusal(message), {**SENT, **sent}) is None


@pytest.mark.parametrize("choice", [{"type": "none"}, {"type": "tool", "name": "final_result"}])
@pytest.mark.parametrize(
    "message",
    ["tool_choice: Extra inputs are not permitted", '"tool_choice.type.tool" is not supported for this model.'],
)
def test_a_choice_that_forbids_calls_is_never_left_out(choice: Json, message: str) -> None:
    sent = {**SENT, "tool_choice": choice}
    assert repair(400, refusal(message), sent, no_calls=True) is None
    assert repair(400, refusal(message), sent) is not None


def test_what_a_choice_that_forbids_calls_says_besides_may_be_left_out() -> None:
    choice = {"type": "tool", "name": "final_result"}
    message = "tool_choice.tool.disable_parallel_tool_use: Extra inputs are not permitted"
    found = repair(
        400, refusal(message), {**SENT, "tool_choice": {**choice, "disable_parallel_tool_use": True}}, no_calls=True
    )
    assert found is not None
    assert found.native["tool_choice"] == choice


@pytest.mark.parametrize(
    "message",
    [
        "output_config.format: Extra inputs are not permitted",
        "This model does not support the parameter output_format",
        "structured outputs are not supported on this model",
    ],
)
def test_a_refused_format_is_told_apart(message: str) -> None:
    assert refuses_format(400, refusal(message), SENT)
    assert not refuses_format(400, refusal(message), without("output_config"))
    assert not refuses_format(400, refusal("max_tokens: too high"), SENT)


@pytest.mark.parametrize(
    "message",
    [
        "messages.1: role 'system' is not supported on this model",
        "messages.1.role: Input should be 'user' or 'assistant'",
        "messages.1: role 'system' must precede an 'assistant' message or end the array",
    ],
)
def test_a_refused_role_is_told_apart(message: str) -> None:
    late = {**SENT, "messages": [*SENT["messages"], {"role": "system", "content": []}]}
    assert refuses_system_role(400, refusal(message), late)
    assert not refuses_system_role(400, refusal(message), SENT)
