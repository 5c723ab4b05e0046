"""A conversation in Converse's shape as a prompt, and the same conversation made of it again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from neurolink_mw.errors import BridgeShapeError
from neurolink_mw.protocol import (
    AssistantMessage,
    ContentOutput,
    ErrorTextOutput,
    FilePart,
    JsonOutput,
    Message,
    OutputFileData,
    OutputImageData,
    ReasoningPart,
    SystemMessage,
    TextOutput,
    TextPart,
    ToolCallPart,
    ToolMessage,
    ToolResultPart,
    UnknownPart,
    Url,
    UserMessage,
    from_json,
    to_json,
)
from neurolink_mw.providers.bedrock.history import prompt_of

from .conversations import SYSTEMS, conversations
from .native import PNG, POINT, Json, converted, messages_of


def back(*conversation: Json, system: Any = None) -> list[Json]:
    return messages_of(*prompt_of(system, conversation))


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def use(id: str = "t1", name: str = "look", **more: Any) -> Json:
    return {"toolUse": {"toolUseId": id, "name": name, "input": {"q": 1}, **more}}


def used(*content: Json, id: str = "t1", **more: Any) -> Json:
    return {"toolResult": {"toolUseId": id, "content": list(content) or [{"text": "found"}], **more}}


ASK, CACHE = {"text": "ask"}, {"cachePoint": POINT}

# --------------------------------------------------------------------------------------------------------- the whole


@settings(max_examples=150, deadline=None)
@given(SYSTEMS, conversations())
def test_a_conversation_comes_back_as_it_was(system: list[Json], conversation: list[Json]) -> None:
    native, warnings = converted(*prompt_of(system, conversation))
    assert native.system == system
    assert native.messages == conversation
    assert warnings == []


@settings(max_examples=80, deadline=None)
@given(SYSTEMS, conversations())
def test_a_conversation_comes_back_from_json_as_well(system: list[Json], conversation: list[Json]) -> None:
    text = json.dumps(to_json(prompt_of(system, conversation)))
    prompt: list[Message] = [from_json(Message, message) for message in json.loads(text)]
    native, _ = converted(*prompt)
    assert native.system == system
    assert native.messages == conversation


def test_the_given_conversation_is_not_changed() -> None:
    conversation = [user(ASK), assistant(use()), user(used(), CACHE)]
    before = json.dumps(conversation)
    back(*conversation)
    assert json.dumps(conversation) == before


# ------------------------------------------------------------------------------------------- what it is in between


def test_a_text_as_the_system_prompt_is_one_message_and_a_blank_one_is_none() -> None:
    assert prompt_of("Be brief.", []) == (SystemMessage("Be brief."),)
    assert prompt_of("  ", []) == prompt_of(None, []) == prompt_of([], []) == ()


def test_each_system_block_is_a_message_and_a_cache_point_belongs_to_the_one_before() -> None:
    system: list[Json] = [{"text": "one"}, CACHE, {"text": "two"}]
    assert prompt_of(system, []) == (SystemMessage("one", {"bedrock": {"cachePoint": POINT}}), SystemMessage("two"))


def test_results_are_a_tool_message_and_what_the_user_said_is_another() -> None:
    *_, tool, said = prompt_of(None, [user(ASK), assistant(use()), user(used(), {"text": "and now?"})])
    assert tool == ToolMessage([ToolResultPart("t1", "look", TextOutput("found"))])
    assert said == UserMessage([TextPart("and now?")])


def test_a_result_gets_the_name_of_the_nearest_use_of_its_id() -> None:
    prompt = prompt_of(
        None, [user(ASK), assistant(use(name="first")), user(used()), assistant(use(name="second")), user(used())]
    )
    names = [part.tool_name for message in prompt if isinstance(message, ToolMessage) for part in message.content]  # type: ignore[union-attr]  # results
    assert names == ["first", "second"]


def test_reasoning_keeps_its_signature_and_redacted_reasoning_its_bytes_once_in_base64() -> None:
    signed = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "SIG"}}}
    redacted = {"reasoningContent": {"redactedContent": b"\x00\x01"}}
    *_, message = prompt_of(None, [user(ASK), assistant(signed, redacted)])
    assert message == AssistantMessage(
        [
            ReasoningPart("hm", {"bedrock": {"signature": "SIG"}}),
            ReasoningPart("", {"bedrock": {"redactedContent": "AAE="}}),
        ]
    )


def test_files_are_files_that_a_middleware_can_read() -> None:
    blocks = [
        {"image": {"format": "png", "source": {"bytes": PNG}}},
        {"document": {"format": "pdf", "name": "plan", "source": {"bytes": b"%PDF"}, "citations": {"enabled": True}}},
        {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b-a/v", "bucketOwner": "123456789012"}}}},
        {"audio": {"format": "wav", "source": {"bytes": b"RIFF"}}},
    ]
    (message,) = prompt_of(None, [user(*blocks)])
    assert message == UserMessage(
        [
            FilePart("image/png", PNG),
            FilePart("application/pdf", b"%PDF", "plan.pdf", {"bedrock": {"citations": {"enabled": True}}}),
            FilePart("video/mp4", Url("s3://b-a/v"), None, {"bedrock": {"bucketOwner": "123456789012"}}),
            FilePart("audio/wav", b"RIFF"),
        ]
    )


def test_cited_text_is_text() -> None:
    cited = {"citationsContent": {"content": [{"text": "so"}], "citations": [{"title": "law"}]}}
    *_, message = prompt_of(None, [user(ASK), assistant(cited)])
    assert message == AssistantMessage([TextPart("so", {"bedrock": {"citations": [{"title": "law"}]}})])


def test_a_block_that_v3_does_not_have_travels_whole_with_its_bytes() -> None:
    guarded = {"guardContent": {"image": {"format": "png", "source": {"bytes": PNG}}}}
    (message,) = prompt_of(None, [user(guarded, CACHE)])
    assert isinstance(message, UserMessage)
    (part,) = message.content
    assert isinstance(part, UnknownPart)
    assert part.type == "custom"
    assert part.data["kind"] == "bedrock.guardContent"
    assert back(user(guarded, CACHE)) == [user(guarded, CACHE)]


@pytest.mark.parametrize(
    ("content", "more", "output"),
    [
        ([{"text": "found"}], {}, TextOutput("found")),
        ([{"text": "bad"}], {"status": "error"}, ErrorTextOutput("bad")),
        ([{"json": {"a": 1}}], {}, JsonOutput({"a": 1})),
        (
            [{"image": {"format": "png", "source": {"bytes": PNG}}}],
            {},
            ContentOutput((OutputImageData(PNG, "image/png"),)),
        ),
        (
            [{"document": {"format": "csv", "name": "t", "source": {"bytes": b"a,b"}}}],
            {},
            ContentOutput((OutputFileData(b"a,b", "text/csv", "t.csv"),)),
        ),
    ],
    ids=["text", "error", "json", "image", "document"],
)
def test_a_result_is_what_its_content_says(content: list[Json], more: Json, output: Any) -> None:
    *_, message = prompt_of(None, [user(ASK), assistant(use()), user(used(*content, **more))])
    assert isinstance(message, ToolMessage)
    (part,) = message.content
    assert isinstance(part, ToolResultPart)
    assert part.output == output


def test_a_tool_that_the_service_ran_stays_in_the_answer() -> None:
    conversation = [user(ASK), assistant(use(type="server_tool_use"), used(type="web"), {"text": "so"})]
    *_, message = prompt_of(None, conversation)
    assert isinstance(message, AssistantMessage)
    assert isinstance(message.content[0], ToolCallPart)
    assert message.content[0].provider_executed is True
    assert back(*conversation) == conversation


def test_a_message_of_the_role_system_keeps_its_place_and_role() -> None:
    conversation = [
        user(ASK),
        {"role": "system", "content": [{"text": "rule"}, {"toolAddition": {"tool": {"name": "look"}}}]},
        assistant({"text": "so"}),
    ]
    assert back(*conversation, system="Head.") == conversation


# ------------------------------------------------------------------------------------------------------- what is lossy


def test_blank_texts_and_messages_without_content_are_left_out() -> None:
    assert back(user({"text": " "}, ASK), assistant({"text": "\n"}), user({"text": "b"})) == [user(ASK, {"text": "b"})]
    assert back(user(ASK), assistant()) == [user(ASK)]


def test_unsigned_reasoning_is_left_out_and_its_cache_point_moves_to_the_block_before() -> None:
    unsigned = {"reasoningContent": {"reasoningText": {"text": "hm"}}}
    conversation = [user(ASK), assistant({"text": "a"}, unsigned, CACHE)]
    native, warnings = converted(*prompt_of(None, conversation))
    assert native.messages == [user(ASK), assistant({"text": "a"}, CACHE)]
    assert [warning.feature for warning in warnings] == ["reasoning"]


def test_results_move_to_the_front_in_the_order_of_their_calls() -> None:
    calls = assistant(use("t1"), use("t2"))
    conversation = [user(ASK), calls, user({"text": "first"}, used(id="t2"), used(id="t1"))]
    assert back(*conversation) == [user(ASK), calls, user(used(id="t1"), used(id="t2"), {"text": "first"})]


def test_adjacent_messages_of_one_role_become_one() -> None:
    assert back(user(ASK), user({"text": "more"})) == [user(ASK, {"text": "more"})]


def test_a_blank_result_says_that_there_was_none() -> None:
    for content in ([{"text": ""}], []):
        result = {"toolResult": {"toolUseId": "t1", "content": content}}
        *_, last = back(user(ASK), assistant(use()), user(result))
        assert last == user(used({"text": "(no output)"}))


def test_an_input_that_is_no_object_is_wrapped() -> None:
    _, asked, _ = back(user(ASK), assistant(use(input=[1])), user(used()))
    assert asked["content"][0]["toolUse"]["input"] == {"rawInvalidInput": [1]}


def test_a_second_document_of_a_name_gets_a_number() -> None:
    document = {"document": {"format": "pdf", "name": "plan", "source": {"bytes": b"x"}}}
    (message,) = back(user(document, document))
    assert [block["document"]["name"] for block in message["content"]] == ["plan", "plan-2"]


# ------------------------------------------------------------------------------------------------- what cannot cross


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (5, r"conversation\[0\]: a message is an object, not int"),
        ({"role": "tool", "content": []}, r"conversation\[0\]\.role"),
        ({"role": "user", "content": "Hi"}, r"conversation\[0\]\.content is a list of blocks, not str"),
        ({"role": "user", "content": ["Hi"]}, r"conversation\[0\]\.content\[0\]: a content block is an object"),
        ({"role": "user", "content": [{}]}, r"conversation\[0\]\.content\[0\]: a content block is an object"),
        ({"role": "user", "content": [{"text": "a", "x": 1}]}, r"with one member"),
        ({"role": "user", "content": [], "name": "me"}, r"conversation\[0\]\.name is a member"),
        (user(used()), r"conversation\[0\]\.content\[0\]: a tool result without a tool use"),
        (assistant({"toolUse": {"name": "look", "input": {}}}), r"content\[0\]\.toolUseId is a string, not NoneType"),
        (assistant(use(input={"a": b"x"})), r"content\[0\]\.input holds bytes"),
        (assistant(use(type="other")), r"content\[0\]: a tool use of another type"),
        (assistant(use(extra=1)), r"content\[0\]\.extra is a member"),
        (user({"image": {"source": {"bytes": object()}}}), r"content\[0\]: object has no JSON form"),
    ],
)
def test_what_is_no_conversation_is_refused_by_its_place(message: Any, reason: str) -> None:
    with pytest.raises(BridgeShapeError, match=reason) as caught:
        prompt_of(None, [message])
    assert caught.value.reason == str(caught.value)
