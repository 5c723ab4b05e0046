"""Calls as the arguments of boto3: settings, tools and the choice among them, JSON output, reasoning, own options."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neurolink_mw.errors import InvalidRequestError
from neurolink_mw.protocol import (
    CallOptions,
    FunctionTool,
    Message,
    ProviderTool,
    ReasoningPart,
    ResponseFormat,
    SystemMessage,
    ToolChoice,
    ToolExample,
    to_json,
    user,
)
from neurolink_mw.providers.bedrock.capabilities import Capabilities, capabilities_of
from neurolink_mw.providers.bedrock.options import BUILT, MEMBERS
from neurolink_mw.providers.bedrock.request import Expected, build_request, expected_of
from neurolink_mw.structured import FINAL_RESULT_INSTRUCTION, AnswerTool
from neurolink_mw.testing.wire.converse_rules import faults

from .conversations import PROMPTS
from .native import (
    CLAUDE,
    GPT_OSS,
    HAIKU,
    LOOK,
    MISTRAL,
    NOVA,
    POINT,
    Json,
    answered,
    called,
    members,
    options,
    own,
    request,
    result,
    said,
    told,
)

SCHEMA: Json = {"type": "object", "properties": {"city": {"type": "string"}}}
JSON_FORMAT = ResponseFormat("json", SCHEMA)
OPUS_46 = "us.anthropic.claude-opus-4-6-v1"
HISTORY = (said("q"), answered(called()), told(result()), said("go on"))


def fields(call: CallOptions, model_id: str = CLAUDE, **more: Any) -> Json:
    sent: Json = request(call, model_id, **more)[0].get("additionalModelRequestFields", {})
    return sent


# ----------------------------------------------------------------------------------------------------------- settings


def test_a_plain_call_holds_nothing_but_the_model_and_its_messages() -> None:
    native, warnings = request(CallOptions.from_text("Hi"), NOVA)
    assert native == {"modelId": NOVA, "messages": [{"role": "user", "content": [{"text": "Hi"}]}]}
    assert warnings == []


def test_zero_and_an_empty_list_are_sent_and_none_is_not() -> None:
    native, _ = request(options(temperature=0, top_p=0, stop_sequences=[], max_output_tokens=None), NOVA)
    assert native["inferenceConfig"] == {"temperature": 0, "topP": 0, "stopSequences": []}


def test_what_converse_has_no_member_for_is_warned_about() -> None:
    call = options(seed=0, presence_penalty=0, frequency_penalty=1, headers={"x": "y"})
    native, warnings = request(call, NOVA)
    assert warnings == ["frequencyPenalty", "presencePenalty", "seed", "headers"]
    assert native.keys() == {"modelId", "messages"}


@pytest.mark.parametrize(("given", "sent"), [(1.4, 1), (-2, 0)])
def test_a_temperature_out_of_range_is_brought_into_it_with_a_warning(given: float, sent: float) -> None:
    native, warnings = request(options(temperature=given), NOVA)
    assert native["inferenceConfig"] == {"temperature": sent}
    assert warnings == ["temperature"]


@pytest.mark.parametrize(
    ("model_id", "sent"),
    [
        (CLAUDE, {"top_k": 5}),
        (NOVA, {"inferenceConfig": {"topK": 5}}),
        (MISTRAL, {"top_k": 5}),
        ("cohere.command-r-plus-v1:0", {"k": 5}),
    ],
)
def test_top_k_goes_where_the_model_has_it(model_id: str, sent: Json) -> None:
    assert fields(options(top_k=5), model_id) == sent


def test_top_k_is_warned_about_where_no_field_is_known() -> None:
    assert request(options(top_k=5), GPT_OSS)[1] == ["topK"]


def test_a_prompt_that_says_nothing_is_refused_unless_the_model_is_a_prompt_itself() -> None:
    with pytest.raises(InvalidRequestError, match="prompt: none of its messages says anything"):
        build_request(CLAUDE, CallOptions([SystemMessage("rules"), user(" ")]))
    arn = "arn:aws:bedrock:us-east-1:123456789012:prompt/ABCDEFGHIJ:1"
    native, _ = request(CallOptions([], provider_options=own(promptVariables={"v": {"text": "z"}})), arn)
    assert native == {"modelId": arn, "promptVariables": {"v": {"text": "z"}}}


def test_an_answer_to_continue_does_not_end_in_white_space() -> None:
    native, _ = request(options(said("q"), answered("kept  ", "so \n")))
    assert native["messages"][1]["content"] == [{"text": "kept  "}, {"text": "so"}]


# --------------------------------------------------------------------------------------------------------- own options


def test_every_member_of_a_converse_request_is_made_or_reached() -> None:
    assert members() == MEMBERS | BUILT


def test_members_go_under_their_own_names() -> None:
    given = {
        "performanceConfig": {"latency": "optimized"},
        "serviceTier": "flex",
        "requestMetadata": {"team": "blue"},
        "projectIdentifier": "p-1",
        "inferenceConfig": {"maxTokens": 7},
        "outputConfig": {"effort": "low"},
        "additionalModelResponseFieldPaths": ["/a"],
    }
    native, warnings = request(options(max_output_tokens=5, provider_options=own(**given)), NOVA)
    assert {name: native[name] for name in given} == {**given, "serviceTier": {"type": "flex"}}
    assert warnings == []


def test_unknown_members_are_left_out_and_named() -> None:
    native, warnings = request(options(provider_options=own(zap=1, messages=[], requestMetadata=None)), NOVA)
    assert native.keys() == {"modelId", "messages"}
    assert warnings == ["messages", "zap"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"guardrailConfig": "g"}, "guardrailConfig"),
        ({"serviceTier": 5}, "serviceTier"),
        ({"projectIdentifier": 5}, "projectIdentifier"),
        ({"additionalModelResponseFieldPaths": "/a"}, "additionalModelResponseFieldPaths"),
        ({"reasoningConfig": "on"}, "reasoningConfig"),
        ({"reasoningConfig": {"type": "always"}}, "reasoningConfig"),
        ({"reasoningConfig": {"type": "enabled", "budgetTokens": "many"}}, "reasoningConfig"),
        ({"reasoningConfig": {"type": "enabled"}}, "reasoningConfig"),
        ({"reasoningConfig": {"maxReasoningEffort": 3}}, "reasoningConfig"),
        ({"anthropicBeta": "beta"}, "anthropicBeta"),
        ({"bucketOwner": 5}, "bucketOwner"),
        ({"structuredOutput": "yes"}, "structuredOutput"),
        ({"lateSystemMessages": "top"}, "lateSystemMessages"),
        ({"requestMetadata": {"a": float("inf")}}, "requestMetadata"),
    ],
)
def test_an_option_of_the_wrong_kind_is_refused_by_its_name(given: Json, name: str) -> None:
    with pytest.raises(InvalidRequestError, match=rf"provider_options\['bedrock'\]\['{name}'\]"):
        build_request(CLAUDE, options(provider_options=own(**given)))


def test_a_guardrail_of_a_stream_says_how_it_is_processed_whatever_the_trace() -> None:
    guardrail = {"guardrailIdentifier": "gr77", "guardrailVersion": "2"}
    for trace in ({}, {"trace": "enabled"}, {"trace": "disabled"}):
        call = options(provider_options=own(guardrailConfig={**guardrail, **trace}))
        native, _ = request(call, stream=True)
        assert native["guardrailConfig"] == {**guardrail, **trace, "streamProcessingMode": "sync"}
        assert request(call)[0]["guardrailConfig"] == {**guardrail, **trace}


def test_a_guardrail_may_be_asynchronous_where_the_call_says_so() -> None:
    call = options(provider_options=own(guardrailConfig={"guardrailIdentifier": "g", "streamProcessingMode": "async"}))
    assert request(call, stream=True)[0]["guardrailConfig"]["streamProcessingMode"] == "async"
    assert "streamProcessingMode" not in request(call)[0]["guardrailConfig"]


def test_fields_of_the_caller_win_and_entries_of_one_object_come_together() -> None:
    mine = own(additionalModelRequestFields={"inferenceConfig": {"seed": 1}, "x": 2})
    assert fields(options(top_k=5, provider_options=mine), NOVA) == {"inferenceConfig": {"topK": 5, "seed": 1}, "x": 2}
    assert fields(options(top_k=5, provider_options=own(additionalModelRequestFields={"top_k": 9}))) == {"top_k": 9}


def test_late_system_messages_and_bucket_owner_are_said_on_the_call() -> None:
    call = options(said("q"), SystemMessage("rule"), provider_options=own(lateSystemMessages="system"))
    assert [message["role"] for message in request(call)[0]["messages"]] == ["user", "system"]


def test_metadata_and_context_are_never_sent() -> None:
    native, _ = request(options(metadata={"tenant": "t-1"}))
    assert "t-1" not in repr(native)


# -------------------------------------------------------------------------------------------------------------- tools


def tools(*declared: Any, model_id: str = CLAUDE, **more: Any) -> tuple[Json | None, list[str | None]]:
    native, warnings = request(options(tools=declared, **more), model_id)
    return native.get("toolConfig"), warnings


def test_a_tool_is_a_spec_and_its_cache_point_follows_it() -> None:
    cached = LOOK.replace(provider_options=own(cachePoint=POINT))
    config, _ = tools(cached, LOOK.replace(name="other", description=" "))
    schema = {"json": {"type": "object", "properties": {"q": {"type": "string"}}}}
    assert config == {
        "tools": [
            {"toolSpec": {"name": "look", "description": "does look", "inputSchema": schema}},
            {"cachePoint": POINT},
            {"toolSpec": {"name": "other", "inputSchema": schema}},
        ]
    }


def test_a_schema_says_that_the_input_is_an_object() -> None:
    config, _ = tools(FunctionTool("ping", {}))
    assert config is not None
    assert config["tools"][0]["toolSpec"]["inputSchema"]["json"] == {"type": "object"}


def test_strict_is_sent_to_models_that_take_it_and_warned_about_for_others() -> None:
    config, warnings = tools(LOOK.replace(strict=True))
    assert config is not None
    assert (config["tools"][0]["toolSpec"]["strict"], warnings) == (True, [])
    config, warnings = tools(LOOK.replace(strict=True), model_id="anthropic.claude-opus-4-7")
    assert config is not None
    assert ("strict" in config["tools"][0]["toolSpec"], warnings) == (False, ["strict"])


def test_tools_of_providers() -> None:
    config, warnings = tools(ProviderTool("amazon.nova_grounding", "grounding"), model_id=NOVA)
    assert (config, warnings) == ({"tools": [{"systemTool": {"name": "nova_grounding"}}]}, [])
    assert tools(ProviderTool("anthropic.bash_1", "bash")) == (None, ["tool anthropic.bash_1"])


def test_examples_of_inputs_are_warned_about_once() -> None:
    examples = (ToolExample({"q": "x"}),)
    assert tools(LOOK.replace(input_examples=examples))[1] == ["inputExamples"]


def test_two_names_that_are_one_here_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"tools\[1\]: 'look\.up' and 'lookup' are both 'lookup'"):
        tools(LOOK.replace(name="lookup"), LOOK.replace(name="look.up"))


@pytest.mark.parametrize(
    ("choice", "native"),
    [
        (ToolChoice("auto"), {"auto": {}}),
        (ToolChoice("required"), {"any": {}}),
        (ToolChoice("tool", "look.up"), {"tool": {"name": "lookup"}}),
    ],
)
def test_the_choice_is_one_of_three(choice: ToolChoice, native: Json) -> None:
    config, _ = tools(LOOK.replace(name="look.up"), tool_choice=choice)
    assert config is not None
    assert config["toolChoice"] == native


@pytest.mark.parametrize("choice", [ToolChoice("some"), ToolChoice("tool"), ToolChoice("tool", "absent")])
def test_a_choice_that_is_none_of_these_is_refused(choice: ToolChoice) -> None:
    with pytest.raises(InvalidRequestError, match="tool_choice"):
        tools(LOOK, tool_choice=choice)


def test_none_sends_no_tools_where_the_history_has_no_calls() -> None:
    native, warnings = request(options(tools=[LOOK], tool_choice=ToolChoice("none")))
    assert "toolConfig" not in native
    assert native["messages"][-1]["content"] == [{"text": "Hi"}]
    assert warnings == []


def test_none_keeps_the_tools_of_a_history_with_calls_and_asks_in_words() -> None:
    call = options(*HISTORY, tools=[LOOK])
    native, warnings = request(call.replace(tool_choice=ToolChoice("none")))
    assert native["toolConfig"] == request(call)[0]["toolConfig"]
    assert native["messages"][-1]["content"][-2] == {"text": "go on"}
    assert "Do not call any tool" in native["messages"][-1]["content"][-1]["text"]
    assert warnings == []


def test_without_tools_calls_and_results_are_left_out_with_one_warning() -> None:
    for declared in (None, [], [ProviderTool("anthropic.bash_1", "bash")]):
        native, warnings = request(options(*HISTORY, tools=declared))
        assert native["messages"] == [{"role": "user", "content": [{"text": "q"}, {"text": "go on"}]}]
        assert "toolConfig" not in native
        assert warnings.count("toolContent") == 1


# -------------------------------------------------------------------------------------------------------- JSON output


def test_json_is_native_where_the_model_has_it_also_with_tools() -> None:
    wanted = ResponseFormat("json", SCHEMA, "city", "a city")
    native, _ = request(options(response_format=wanted, tools=[LOOK]))
    definition = native["outputConfig"]["textFormat"]["structure"]["jsonSchema"]
    assert json.loads(definition.pop("schema")) == {**SCHEMA, "additionalProperties": False}
    assert definition == {"name": "city", "description": "a city"}
    assert "toolChoice" not in native["toolConfig"]


def test_json_is_a_forced_call_of_one_tool_where_there_are_no_others() -> None:
    native, _ = request(options(response_format=JSON_FORMAT), HAIKU)
    (tool,) = native["toolConfig"]["tools"]
    assert tool["toolSpec"]["name"] == "json"
    assert tool["toolSpec"]["inputSchema"] == {"json": SCHEMA}
    assert native["toolConfig"]["toolChoice"] == {"any": {}}


def test_json_by_a_tool_keeps_the_calls_of_the_history() -> None:
    native, warnings = request(options(*HISTORY, response_format=JSON_FORMAT), HAIKU)
    assert "toolUse" in native["messages"][1]["content"][0]
    assert warnings == []


def test_beside_other_tools_the_answer_s_tool_stands_last_and_nothing_is_forced() -> None:
    call = options(SystemMessage("Be brief."), said("Hi"), response_format=JSON_FORMAT, tools=[LOOK])
    native, warnings = request(call, HAIKU)
    assert [tool["toolSpec"]["name"] for tool in native["toolConfig"]["tools"]] == ["look", "final_result"]
    assert native["toolConfig"]["tools"][1]["toolSpec"]["inputSchema"] == {"json": SCHEMA}
    assert "toolChoice" not in native["toolConfig"]
    assert native["system"] == [{"text": "Be brief."}, {"text": FINAL_RESULT_INSTRUCTION.strip()}]
    assert warnings == []


def test_a_choice_of_the_call_stays_beside_the_answer_s_tool() -> None:
    call = options(response_format=JSON_FORMAT, tools=[LOOK], tool_choice=ToolChoice("required"))
    assert request(call, HAIKU)[0]["toolConfig"]["toolChoice"] == {"any": {}}


def test_where_no_calls_are_wanted_the_answer_s_tool_is_forced() -> None:
    choice = ToolChoice("none")
    native, _ = request(options(response_format=JSON_FORMAT, tools=[LOOK], tool_choice=choice), HAIKU)
    assert [tool["toolSpec"]["name"] for tool in native["toolConfig"]["tools"]] == ["json"]
    native, _ = request(options(*HISTORY, response_format=JSON_FORMAT, tools=[LOOK], tool_choice=choice), HAIKU)
    assert [tool["toolSpec"]["name"] for tool in native["toolConfig"]["tools"]] == ["look", "final_result"]
    assert native["toolConfig"]["toolChoice"] == {"tool": {"name": "final_result"}}
    assert native["messages"] == request(options(*HISTORY, tools=[LOOK]), HAIKU)[0]["messages"]


def test_beside_a_tool_of_that_name_the_schema_is_told_in_words_with_a_warning() -> None:
    call = options(response_format=JSON_FORMAT, tools=[LOOK.replace(name="final_result")])
    native, warnings = request(call, HAIKU)
    assert len(native["toolConfig"]["tools"]) == 1
    assert "JSON Schema" in native["system"][-1]["text"]
    assert warnings == ["responseFormat"]
    assert expected_of(call, native) == Expected()


def test_a_schema_that_is_no_object_is_put_under_a_key_of_the_tool() -> None:
    call = options(response_format=ResponseFormat("json", {"type": "array", "items": {"type": "string"}}))
    native, _ = request(call, HAIKU)
    (tool,) = native["toolConfig"]["tools"]
    assert tool["toolSpec"]["inputSchema"]["json"]["required"] == ["value"]
    assert expected_of(call, native) == Expected(AnswerTool("json", "value"))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"data": {}}, "required": ["data"]},
    ],
)
def test_what_native_output_cannot_carry_comes_by_a_tool(schema: Json) -> None:
    call = options(response_format=ResponseFormat("json", schema))
    native, warnings = request(call)
    assert [tool["toolSpec"]["name"] for tool in native["toolConfig"]["tools"]] == ["json"]
    assert warnings == []
    native, warnings = request(call.replace(provider_options=own(structuredOutput="native")))
    assert "textFormat" in native["outputConfig"]
    assert warnings == ["responseFormat"]


def test_a_tool_of_the_caller_s_that_is_not_sent_is_not_the_one_that_answers() -> None:
    named = LOOK.replace(name="json")
    call = options(response_format=JSON_FORMAT, tools=[named], tool_choice=ToolChoice("none"))
    native, _ = request(call, HAIKU)
    assert expected_of(call, native).answer == AnswerTool("json")


def test_a_native_format_has_objects_that_are_closed() -> None:
    open_schema: Json = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}}
    native, _ = request(options(response_format=ResponseFormat("json", open_schema)))
    sent = json.loads(native["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"])
    assert sent["additionalProperties"] is False
    assert "minimum" not in sent["properties"]["a"]


def test_json_without_a_schema_sends_nothing() -> None:
    assert request(options(response_format=ResponseFormat("json")), NOVA)[0].keys() == {"modelId", "messages"}


@pytest.mark.parametrize(
    ("model_id", "mode", "member"), [(HAIKU, "native", "outputConfig"), (CLAUDE, "tool", "toolConfig")]
)
def test_the_table_of_models_can_be_overruled(model_id: str, mode: str, member: str) -> None:
    call = options(response_format=JSON_FORMAT, provider_options=own(structuredOutput=mode))
    assert member in request(call, model_id)[0]


def test_capabilities_can_be_given() -> None:
    call = options(response_format=JSON_FORMAT)
    arn = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"
    assert "toolConfig" in request(call, arn)[0]
    assert "outputConfig" in request(call, arn, capabilities=Capabilities(json_schema=True))[0]


# ---------------------------------------------------------------------------------------------------------- reasoning

THINKING: list[Json | None] = [
    {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2048}}},
    {"reasoningConfig": {"type": "enabled", "budgetTokens": 2048}},
    {"reasoningConfig": {"type": "adaptive"}},
    {"reasoningConfig": {"type": "disabled"}},
    None,
]


@pytest.mark.parametrize("asked", [{"reasoning": "high"}, {"provider_options": own(**(THINKING[1] or {}))}])
@pytest.mark.parametrize(
    "begun",
    [
        [said("q"), answered(called()), told(result())],
        [said("q"), answered(ReasoningPart("unsigned"), called()), told(result())],
        [said("q"), answered("It is")],
    ],
)
def test_claude_is_not_asked_to_reason_by_a_budget_where_the_answer_that_goes_on_began_without(
    asked: Json, begun: list[Message]
) -> None:
    native, warnings = request(options(*begun, tools=[LOOK], tool_choice=ToolChoice("required"), **asked))
    assert "additionalModelRequestFields" not in native
    assert "inferenceConfig" not in native
    assert native["toolConfig"]["toolChoice"] == {"any": {}}
    assert "reasoning" in warnings
    assert faults(native) == []


def test_what_the_model_s_own_field_says_of_reasoning_stays_whatever_the_answer_began_with() -> None:
    said_natively = own(**(THINKING[0] or {}))
    prompt: list[Message] = [said("q"), answered(called()), told(result())]
    native, warnings = request(options(*prompt, reasoning="high", temperature=0.5, provider_options=said_natively))
    assert native["additionalModelRequestFields"]["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert "temperature" not in native["inferenceConfig"]
    assert "temperature" in warnings


def test_claude_reasons_on_behind_a_thought_of_its_own_and_after_the_next_question() -> None:
    thought = ReasoningPart("Hm.", own(signature="s"))
    goes_on: list[Message] = [said("q"), answered(thought, called()), told(result()), answered(called("t2"))]
    for prompt in (
        [*goes_on, told(result("t2"))],
        [said("q"), answered(called()), told(result()), answered("a"), said("r")],
    ):
        native, warnings = request(options(*prompt, tools=[LOOK], reasoning="high"))
        assert native["additionalModelRequestFields"]["thinking"]["type"] == "enabled"
        assert warnings == []
        assert faults(native) == []


def test_claude_does_not_reason_where_the_model_s_own_field_says_so() -> None:
    off = own(additionalModelRequestFields={"thinking": {"type": "disabled"}})
    native, warnings = request(options(reasoning="high", temperature=0.5, max_output_tokens=100, provider_options=off))
    assert native["additionalModelRequestFields"] == {"thinking": {"type": "disabled"}}
    assert native["inferenceConfig"] == {"temperature": 0.5, "maxTokens": 100}
    assert warnings == []


@pytest.mark.parametrize("thinking", THINKING)
@pytest.mark.parametrize(
    ("choice", "free", "native"),
    [
        (ToolChoice("required"), False, {"any": {}}),
        (ToolChoice("tool", "look"), False, {"tool": {"name": "look"}}),
        (ToolChoice("auto"), True, {"auto": {}}),
    ],
)
def test_while_claude_reasons_a_forced_choice_is_left_to_it_with_one_warning(
    thinking: Json | None, choice: ToolChoice, free: bool, native: Json
) -> None:
    on = thinking in THINKING[:3]
    sent, warnings = request(options(tools=[LOOK], tool_choice=choice, provider_options=own(**(thinking or {}))))
    assert sent["toolConfig"]["toolChoice"] == ({"auto": {}} if on else native)
    assert warnings == (["toolChoice"] if on and not free else [])


def test_while_claude_reasons_the_answer_s_tool_is_offered_since_none_can_be_forced() -> None:
    call = options(response_format=JSON_FORMAT, provider_options=own(**(THINKING[1] or {})))
    native, _ = request(call, HAIKU)
    assert [tool["toolSpec"]["name"] for tool in native["toolConfig"]["tools"]] == ["final_result"]
    assert "toolChoice" not in native["toolConfig"]


@pytest.mark.parametrize(
    ("model_id", "level", "sent", "features"),
    [
        (CLAUDE, "high", {"thinking": {"type": "enabled", "budget_tokens": 16384}}, []),
        (CLAUDE, "none", {}, []),
        (CLAUDE, "provider-default", {}, []),
        (OPUS_46, "xhigh", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}, []),
        (OPUS_46, "minimal", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}, ["reasoning"]),
        (HAIKU, "high", {}, ["reasoning"]),
        (GPT_OSS, "low", {"reasoning_effort": "low"}, []),
        (GPT_OSS, "xhigh", {"reasoning_effort": "high"}, ["reasoning"]),
        (GPT_OSS, "none", {}, ["reasoning"]),
        (NOVA, "medium", {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "medium"}}, []),
        (NOVA, "none", {"reasoningConfig": {"type": "disabled"}}, []),
        (MISTRAL, "high", {}, ["reasoning"]),
        (CLAUDE, "extreme", {}, ["reasoning"]),
    ],
)
def test_the_level_of_the_call_is_said_in_the_models_words(
    model_id: str, level: str, sent: Json, features: list[str]
) -> None:
    native, warnings = request(options(reasoning=level), model_id)
    assert native.get("additionalModelRequestFields", {}) == sent
    assert warnings == features


def test_a_budget_is_room_on_top_of_the_answers() -> None:
    assert request(options(reasoning="low", max_output_tokens=100))[0]["inferenceConfig"] == {"maxTokens": 2148}


def test_sampling_is_left_out_while_claude_reasons() -> None:
    native, warnings = request(options(reasoning="low", temperature=1.5, top_p=0.5, top_k=3))
    assert native["inferenceConfig"].keys() == {"maxTokens"}
    assert warnings == ["temperature", "topP", "topK"]


def test_beside_a_native_format_the_level_goes_where_the_format_is() -> None:
    native, _ = request(options(reasoning="high", response_format=JSON_FORMAT), OPUS_46)
    assert native["outputConfig"]["effort"] == "high"
    assert native["additionalModelRequestFields"] == {"thinking": {"type": "adaptive"}}


# ----------------------------------------------------------------------------------------------- the service's rules


@settings(max_examples=150, deadline=None)
@given(
    PROMPTS,
    st.sampled_from([(), (LOOK,)]),
    st.sampled_from([None, "auto", "none", "required"]),
    st.sampled_from([None, "high"]),
)
def test_any_call_makes_a_request_that_the_service_takes_or_is_refused(
    prompt: list[Message], declared: tuple[FunctionTool, ...], choice: str | None, level: str | None
) -> None:
    wanted = None if choice is None else ToolChoice(choice)
    call = options(said("begin"), *prompt, tools=declared, tool_choice=wanted, reasoning=level)
    try:
        native, _ = request(call)
    except InvalidRequestError:
        return
    # How many documents there are, and whether a text stands beside them, is the caller's.
    found = [fault for fault in faults(cast(Json, to_json(native))) if "document" not in fault]
    assert found == []


# -------------------------------------------------------------------------------------------------- what is expected


def test_how_an_answer_is_read_follows_from_what_was_asked() -> None:
    def expected(call: CallOptions, model_id: str) -> Expected:
        return expected_of(call, build_request(model_id, call)[0])

    assert expected(options(), CLAUDE) == Expected()
    assert expected(options(response_format=JSON_FORMAT), HAIKU).answer == AnswerTool("json")
    assert expected(options(response_format=JSON_FORMAT), CLAUDE).answer is None
    assert expected(options(tools=[LOOK], tool_choice=ToolChoice("none")), CLAUDE).no_calls
    assert expected(options(tools=[LOOK.replace(name="look.up")]), CLAUDE).tool_names == {"lookup": "look.up"}


@pytest.mark.parametrize(
    ("model_id", "like"),
    [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", CLAUDE),
        ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", CLAUDE),
        ("arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-sonnet-4-5-20250929-v1:0", CLAUDE),
        ("eu.amazon.nova-pro-v1:0", NOVA),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", HAIKU),
        ("eu.mistral.pixtral-large-2502-v1:0", MISTRAL),
    ],
)
def test_a_model_is_known_with_a_geography_and_inside_an_arn(model_id: str, like: str) -> None:
    assert capabilities_of(model_id) == capabilities_of(like)


def test_an_unknown_model_is_asked_as_the_call_says() -> None:
    assert capabilities_of("abcdefghij") == Capabilities()
