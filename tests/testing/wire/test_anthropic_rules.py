"""The rules of Messages for a request's settings, tools and cache, one breach at a time."""

from __future__ import annotations

import pytest
from tests.testing.wire.anthropic_requests import CACHED, CACHED_LONG, Json, body, only_fault, text, tool, user

from neurolink_mw.testing.wire.anthropic_rules import faults


def test_a_request_with_everything_is_sound() -> None:
    request = body(
        user(text("look", **CACHED)),
        system=[text("Be terse.", **CACHED)],
        tools=[
            tool(description="looks", strict=True, type="custom"),
            {"type": "web_search_20250305", "name": "search"},
        ],
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        thinking={"type": "enabled", "budget_tokens": 1024},
        temperature=1,
        top_p=0.95,
        stop_sequences=["END"],
        stream=True,
        metadata={"user_id": "u"},
        service_tier="auto",
        container={"id": "c"},
        output_config={"effort": "low", "format": {"type": "json_schema", "schema": {"type": "string"}}},
    )
    assert faults(request) == []


# Members


@pytest.mark.parametrize("name", ["model", "max_tokens", "messages"])
def test_a_request_has_what_it_must_have(name: str) -> None:
    request = body()
    del request[name]
    assert only_fault(request) == f"{name}: Field required"


def test_an_unknown_member_is_refused() -> None:
    assert only_fault(body(seed=1)) == "seed: Extra inputs are not permitted"


def test_hosts_spell_the_model_the_stream_and_the_betas_in_their_own_ways() -> None:
    hosted = body(anthropic_version="v", anthropic_beta=["b"])
    assert only_fault(hosted, host="bedrock") == "model: Extra inputs are not permitted"
    del hosted["model"]
    assert faults(hosted, host="bedrock") == faults(hosted, host="vertex") == []
    streamed = hosted | {"stream": True}
    assert faults(streamed, host="vertex") == []
    assert only_fault(streamed, host="bedrock") == "stream: Extra inputs are not permitted"
    assert "anthropic_version: Extra inputs are not permitted" in faults(body(anthropic_version="v"))
    del hosted["anthropic_version"]
    assert only_fault(hosted, host="bedrock") == "anthropic_version: Field required"


@pytest.mark.parametrize(
    ("name", "beta"),
    [
        ("mcp_servers", "mcp-client-2025-11-20"),
        ("context_management", "context-management-2025-06-27"),
        ("context_management", "compact-2026-01-12"),
    ],
)
def test_a_member_of_a_beta_is_unknown_without_it(name: str, beta: str) -> None:
    request = body(**{name: []})
    assert only_fault(request) == f"{name}: Extra inputs are not permitted"
    assert only_fault(request, betas=["other-2025-01-01"]) == f"{name}: Extra inputs are not permitted"
    assert faults(request, betas=[beta]) == []


def test_bedrock_names_betas_in_the_body() -> None:
    request = body(anthropic_version="v", anthropic_beta=["mcp-client-2025-11-20"], mcp_servers=[])
    del request["model"]
    assert faults(request, host="bedrock") == []


@pytest.mark.parametrize(
    ("name", "value", "form"),
    [
        ("messages", "hi", "array"),
        ("messages", ["hi"], "object"),
        ("tools", {}, "array"),
        ("tool_choice", "auto", "object"),
        ("thinking", True, "object"),
        ("system", {}, "array"),
        ("system", ["be terse"], "object"),
    ],
)
def test_a_member_of_another_form_is_named(name: str, value: object, form: str) -> None:
    fault = only_fault(body() | {name: value})
    assert fault.startswith(name)
    assert form in fault


# Numbers


def test_max_tokens_is_a_whole_number_and_may_be_none_at_all() -> None:
    assert faults(body() | {"max_tokens": 0}) == []
    assert only_fault(body() | {"max_tokens": -1}) == "max_tokens: Input should be greater than or equal to 0"
    for value in (None, "9", 1.5, True):
        assert only_fault(body() | {"max_tokens": value}) == "max_tokens: Input should be a valid integer"


@pytest.mark.parametrize("name", ["temperature", "top_p"])
@pytest.mark.parametrize("value", [-0.1, 1.1, "0.5", True])
def test_sampling_stays_within_its_range(name: str, value: object) -> None:
    assert only_fault(body(**{name: value})) == f"{name}: Input should be a number from 0 to 1"


def test_top_k_is_a_whole_number() -> None:
    assert only_fault(body(top_k=0.5)) == "top_k: Input should be a valid integer"


def test_no_stop_sequence_is_blank() -> None:
    assert only_fault(body(stop_sequences=["END", "\n"])).startswith("stop_sequences: each stop sequence must contain")
    assert only_fault(body(stop_sequences=[1])) == "stop_sequences.0: Input should be a valid string"


# Thinking


def test_a_budget_is_at_least_1024_and_below_max_tokens() -> None:
    small = body(thinking={"type": "enabled", "budget_tokens": 1023})
    assert only_fault(small) == "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    large = body(thinking={"type": "enabled", "budget_tokens": 4096})
    assert only_fault(large) == "`max_tokens` must be greater than `thinking.budget_tokens`."


def test_a_budget_for_interleaved_thinking_may_exceed_max_tokens() -> None:
    request = body(thinking={"type": "enabled", "budget_tokens": 9999})
    assert faults(request, betas=["interleaved-thinking-2025-05-14"]) == []


def test_thinking_has_the_members_of_its_type() -> None:
    assert only_fault(body(thinking={"type": "enabled"})) == "thinking.enabled.budget_tokens: Field required"
    adaptive = body(thinking={"type": "adaptive", "budget_tokens": 2000})
    assert only_fault(adaptive) == "thinking.adaptive.budget_tokens: Extra inputs are not permitted"
    assert only_fault(body(thinking={"type": "much"})).startswith("thinking.type: Input should be one of 'enabled'")


THINKING = [{"type": "enabled", "budget_tokens": 2000}, {"type": "adaptive"}]


@pytest.mark.parametrize("thinking", THINKING)
@pytest.mark.parametrize(("name", "value"), [("temperature", 0.5), ("top_p", 0.9), ("top_k", 5)])
def test_thinking_takes_no_sampling(thinking: Json, name: str, value: float) -> None:
    fault = only_fault(body(thinking=thinking, **{name: value}))
    assert fault.startswith(f"`{name}`")
    assert fault.endswith("when thinking is enabled.")
    assert faults(body(thinking={"type": "disabled"}, **{name: value})) == []


@pytest.mark.parametrize("thinking", THINKING)
def test_thinking_takes_no_forced_choice(thinking: Json) -> None:
    forced = "Thinking may not be enabled when tool_choice forces tool use."
    for choice in ({"type": "any"}, {"type": "tool", "name": "look"}):
        assert only_fault(body(thinking=thinking, tools=[tool()], tool_choice=choice)) == forced
    for choice in ({"type": "auto"}, {"type": "none"}):
        assert faults(body(thinking=thinking, tools=[tool()], tool_choice=choice)) == []


# Tools


@pytest.mark.parametrize("name", ["", "a.b", "a b", "é", "look\n"])
def test_a_tool_has_a_name_of_few_characters(name: str) -> None:
    pattern = "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
    assert only_fault(body(tools=[tool(name)])) == pattern


def test_a_tool_has_a_name_of_at_most_128_characters() -> None:
    assert faults(body(tools=[tool("x" * 128)])) == []
    long = "tools.0.custom.name: String should have at most 128 characters"
    assert only_fault(body(tools=[tool("x" * 129)])) == long


def test_tools_are_named_once() -> None:
    search = {"type": "web_search_20250305", "name": "look"}
    for second in (tool(), search):
        assert only_fault(body(tools=[tool(), second])) == "tools: Tool names must be unique."


def test_toolsets_have_no_names_to_collide() -> None:
    toolsets = [{"type": "mcp_toolset", "mcp_server_name": name} for name in ("a", "b")]
    assert faults(body(tools=toolsets)) == []


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({}, ".type: Field required"),
        ({"type": "array"}, ".type: Input should be 'object'"),
        (None, ": Input should be an object"),
    ],
)
def test_a_tool_takes_an_object(schema: object, fault: str) -> None:
    assert only_fault(body(tools=[{"name": "a", "input_schema": schema}])) == f"tools.0.custom.input_schema{fault}"


def test_a_tool_has_the_members_of_a_tool() -> None:
    assert only_fault(body(tools=[{"name": "look"}])) == "tools.0.custom.input_schema: Field required"
    assert only_fault(body(tools=[tool(parameters={})])) == "tools.0.custom.parameters: Extra inputs are not permitted"


def test_a_choice_needs_tools() -> None:
    without = "tool_choice may only be specified while providing tools."
    assert only_fault(body(tool_choice={"type": "auto"})) == without
    assert only_fault(body(tool_choice={"type": "none"}, tools=[])) == without


def test_a_choice_is_one_of_four_and_names_a_tool_there_is() -> None:
    tools = [tool()]
    assert only_fault(body(tools=tools, tool_choice={"type": "required"})).startswith("tool_choice.type: ")
    assert only_fault(body(tools=tools, tool_choice={"type": "tool"})) == "tool_choice.tool.name: Field required"
    other = body(tools=tools, tool_choice={"type": "tool", "name": "smell"})
    assert only_fault(other) == "Tool 'smell' not found in provided tools"
    toolset = {"type": "mcp_toolset", "mcp_server_name": "m"}
    assert faults(body(tools=[*tools, toolset], tool_choice={"type": "tool", "name": "smell"})) == []
    parallel = body(tools=tools, tool_choice={"type": "none", "disable_parallel_tool_use": True})
    assert only_fault(parallel) == "tool_choice.none.disable_parallel_tool_use: Extra inputs are not permitted"


# The cache


def test_four_breakpoints_are_the_most() -> None:
    held = {"system": [text("a", **CACHED)], "tools": [tool(**CACHED)]}
    four = body(user(text(**CACHED), text(**CACHED)), **held)
    assert faults(four) == []
    five = "A maximum of 4 blocks with cache_control may be provided. Found 5."
    assert only_fault(body(user(text(**CACHED), text(**CACHED), text(**CACHED)), **held)) == five
    assert only_fault(four | CACHED) == five


def test_breakpoints_within_results_count() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {}, **CACHED}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [text(**CACHED), text(**CACHED)], **CACHED}
    request = body(user(text(**CACHED)), {"role": "assistant", "content": [call]}, user(result))
    assert only_fault(request).endswith("Found 5.")


def test_a_breakpoint_has_its_type_and_one_of_two_lives() -> None:
    untyped = body(user(text(cache_control={})))
    assert only_fault(untyped) == "messages.0.content.0.cache_control.type: Input should be 'ephemeral'"
    lived = body(user(text(cache_control={"type": "ephemeral", "ttl": "1d"})))
    assert only_fault(lived) == "messages.0.content.0.cache_control.ttl: Input should be '5m' or '1h'"


def test_no_breakpoint_is_on_an_empty_text() -> None:
    fault = faults(body(user(text("", **CACHED))))[0]
    assert fault == "messages.0.content.0.text: cache_control cannot be set for empty text blocks"


def test_no_breakpoint_is_on_a_thought() -> None:
    thought = {"type": "thinking", "thinking": "Hm", "signature": "s", **CACHED}
    request = body(user(), {"role": "assistant", "content": [thought, text("a")]}, user())
    assert only_fault(request) == "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted"


def test_longer_lives_come_first() -> None:
    assert faults(body(user(text(**CACHED)), tools=[tool(**CACHED_LONG)])) == []
    fault = only_fault(body(user(text(**CACHED_LONG)), tools=[tool(**CACHED)]))
    assert fault.startswith(
        "messages.0.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come after"
    )


# Native JSON output


def output(schema: object) -> Json:
    return body(output_config={"format": {"type": "json_schema", "schema": schema}})


def test_native_output_takes_closed_objects_at_every_depth() -> None:
    closed = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    opened = {"type": "object", "properties": {"a": {"type": "integer"}}}
    nested = [{"type": "array", "items": opened}, {"anyOf": [closed, opened]}, {"$defs": {"a": opened}}]
    assert faults(output(closed)) == []
    assert faults(output({"const": {"type": "object"}})) == []
    for schema in (opened, *nested):
        assert only_fault(output(schema)).endswith("'additionalProperties' must be explicitly set to false")


def test_native_output_has_its_type_and_a_schema() -> None:
    assert only_fault(output(None)) == "output_config.format.schema: Field required"
    other = body(output_config={"format": {"type": "json_object"}})
    assert only_fault(other) == "output_config.format.type: Input should be 'json_schema'"
