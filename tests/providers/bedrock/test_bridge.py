"""The bridge's functions, by the names that they are known by."""

from __future__ import annotations

from typing import Any

import pytest

from neurolink_mw.errors import BridgeShapeError
from neurolink_mw.protocol import (
    CallOptions,
    FilePart,
    JSONObject,
    TextOutput,
    ToolMessage,
    ToolResultPart,
    Url,
    UserMessage,
    to_json,
)
from neurolink_mw.providers.bedrock.bridge import (
    bedrock_conversation_from_v3_prompt,
    build_v3_prompt_from_bedrock,
    is_text_only_bedrock_conversation,
    unsent_bedrock_middleware_options,
    unwrap_bedrock_tool_input_schema,
)

ASKED = CallOptions.from_text("Hi")

CONVERSATION: list[dict[str, Any]] = [
    {"role": "user", "content": [{"text": "Compare."}, {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}]},
    {
        "role": "assistant",
        "content": [
            {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s1"}}},
            {"reasoningContent": {"redactedContent": b"\x00\x01"}},
            {"text": "Let me look."},
            {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"at": "sea"}}},
            {"toolUse": {"toolUseId": "t2", "name": "read", "input": {}}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"toolResult": {"toolUseId": "t1", "content": [{"json": {"sky": "grey"}}], "status": "success"}},
            {"toolResult": {"toolUseId": "t2", "content": [{"text": "gone"}], "status": "error"}},
            {"text": "And?"},
            {"cachePoint": {"type": "default"}},
        ],
    },
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "other", "input": {}}}]},
    {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "ok"}]}}]},
]

# -- conversations


def test_a_conversation_comes_back_as_it_was_with_its_system_prompt() -> None:
    prompt = build_v3_prompt_from_bedrock("Be brief.", CONVERSATION)
    back = bedrock_conversation_from_v3_prompt(prompt)
    assert back.conversation == CONVERSATION
    assert (back.system, back.system_blocks, back.warnings) == ("Be brief.", [{"text": "Be brief."}], ())


def test_the_system_prompt_leads_and_a_blank_one_is_none() -> None:
    roles = [message.role for message in build_v3_prompt_from_bedrock("Be brief.", CONVERSATION)]
    assert roles == ["system", "user", "assistant", "tool", "user", "assistant", "tool"]
    assert build_v3_prompt_from_bedrock(" \n", CONVERSATION[:1])[0].role == "user"


def test_system_blocks_cross_with_their_cache_points() -> None:
    blocks: list[dict[str, Any]] = [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}, {"text": "Be kind."}]
    back = bedrock_conversation_from_v3_prompt(build_v3_prompt_from_bedrock(blocks, CONVERSATION))
    assert back.system_blocks == blocks
    assert back.system == "Be brief.\n\nBe kind."


def test_a_result_gets_the_name_of_the_nearest_use_of_its_id() -> None:
    prompt = build_v3_prompt_from_bedrock("", CONVERSATION)
    names = [
        part.tool_name
        for message in prompt
        if isinstance(message, ToolMessage)
        for part in message.content
        if isinstance(part, ToolResultPart)
    ]
    assert names == ["look", "read", "other"]


def test_a_prompt_may_be_json() -> None:
    data: Any = to_json(build_v3_prompt_from_bedrock("", CONVERSATION))
    assert bedrock_conversation_from_v3_prompt(data).conversation == CONVERSATION


def test_what_is_left_out_on_the_way_back_has_a_warning() -> None:
    prompt = build_v3_prompt_from_bedrock("", CONVERSATION[:1])
    prompt.append(ToolMessage([ToolResultPart("t9", "look", TextOutput("x"))]))
    back = bedrock_conversation_from_v3_prompt(prompt)
    assert back.conversation == CONVERSATION[:1]
    assert [warning.feature for warning in back.warnings] == ["tool result without a call"]


def test_a_call_without_a_result_cannot_cross() -> None:
    with pytest.raises(BridgeShapeError, match=r"prompt\[1\]\.content\[3\]"):
        bedrock_conversation_from_v3_prompt(build_v3_prompt_from_bedrock("", CONVERSATION[:2]))


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ({"role": "nobody", "content": "x"}, r"prompt\[0\]\.role"),
        (UserMessage([FilePart("application/zip", b"x")]), r"prompt\[0\]\.content\[0\]"),
        (UserMessage([FilePart("image/png", Url("https://pictures.test/x.png"))]), r"prompt\[0\]\.content\[0\]"),
    ],
)
def test_what_converse_cannot_carry_is_a_shape_error(message: Any, place: str) -> None:
    with pytest.raises(BridgeShapeError, match=place):
        bedrock_conversation_from_v3_prompt([message])


@pytest.mark.parametrize(
    ("conversation", "place"),
    [
        (["Hi"], r"\[0\]"),
        ([{"role": "tool", "content": []}], r"\[0\]"),
        ([{"role": "user", "content": "Hi"}], r"\[0\]"),
        ([{"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": []}}]}], r"\[0\]\.content\[0\]"),
        ([{"role": "user", "content": [{"text": "a", "image": {}}]}], r"\[0\]\.content\[0\]"),
    ],
)
def test_what_is_no_conversation_is_an_error_that_names_the_place_and_tells_no_content(
    conversation: Any, place: str
) -> None:
    with pytest.raises(BridgeShapeError, match=place) as caught:
        build_v3_prompt_from_bedrock("", conversation)
    assert caught.value.reason
    assert "Hi" not in str(caught.value)


# -- options


def test_zero_is_set_and_an_empty_list_is_not() -> None:
    assert unsent_bedrock_middleware_options(ASKED.replace(seed=0, stop_sequences=[])) == ["seed"]
    assert unsent_bedrock_middleware_options({"seed": 0, "presencePenalty": 0.0, "frequencyPenalty": None}) == [
        "presence_penalty",
        "seed",
    ]
    assert unsent_bedrock_middleware_options({"presence_penalty": []}) == []


def test_what_converse_carries_is_not_named() -> None:
    options = ASKED.replace(temperature=0.0, top_p=1.0, max_output_tokens=5, stop_sequences=["x"], headers={"a": "b"})
    assert unsent_bedrock_middleware_options(options) == []


@pytest.mark.parametrize(
    ("model_id", "unsent"),
    [
        (None, []),
        ("anthropic.claude-sonnet-4-6", []),
        ("eu.amazon.nova-lite-v1:0", []),
        ("meta.llama3-8b-instruct-v1:0", ["reasoning", "top_k"]),
    ],
)
def test_some_options_cross_for_some_models_alone(model_id: str | None, unsent: list[str]) -> None:
    assert unsent_bedrock_middleware_options(ASKED.replace(top_k=3, reasoning="low"), model_id) == unsent


@pytest.mark.parametrize("level", ["none", "provider-default"])
def test_that_no_reasoning_is_asked_for_needs_no_sending(level: str) -> None:
    assert unsent_bedrock_middleware_options(ASKED.replace(reasoning=level), "meta.llama3-8b-instruct-v1:0") == []


# -- schemas and predicates


def test_a_schema_is_taken_out_of_its_shell_and_a_bare_one_is_itself() -> None:
    schema: JSONObject = {"type": "object", "properties": {"json": {"type": "string"}}}
    assert unwrap_bedrock_tool_input_schema({"json": schema}) is schema
    assert unwrap_bedrock_tool_input_schema(schema) is schema
    assert unwrap_bedrock_tool_input_schema(None) is None


def test_text_only_means_every_block_of_every_message() -> None:
    assert is_text_only_bedrock_conversation([{"role": "user", "content": [{"text": "a"}, {"text": ""}]}])
    assert is_text_only_bedrock_conversation([])
    assert not is_text_only_bedrock_conversation(CONVERSATION)
    assert not is_text_only_bedrock_conversation([{"role": "user", "content": [{"cachePoint": {"type": "default"}}]}])
    assert not is_text_only_bedrock_conversation([{"role": "user"}])
