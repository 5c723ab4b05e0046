"""The rules of Converse, one breach at a time, beside a request that keeps them all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.testing.wire.converse_rules import faults

Json = dict[str, Any]


def text(content: str) -> Json:
    return {"text": content}


def call(identity: str = "t1", name: str = "look", input: object = None, **more: object) -> Json:
    return {"toolUse": {"toolUseId": identity, "name": name, "input": {} if input is None else input, **more}}


def result(identity: str = "t1", *content: Json, **more: object) -> Json:
    return {"toolResult": {"toolUseId": identity, "content": list(content) or [text("done")], **more}}


def document(name: str) -> Json:
    return {"document": {"format": "pdf", "name": name, "source": {"bytes": "JVBERi0="}}}


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks) or [text("q")]}


def assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks) or [text("a")]}


def system(content: str) -> Json:
    return {"role": "system", "content": [text(content)]}


def tool(name: str = "look", schema: object = None) -> Json:
    return {"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"} if schema is None else schema}}}


TOOLS: Json = {"tools": [tool()]}


def body(*messages: Json, **more: object) -> Json:
    return {"messages": list(messages), "toolConfig": TOOLS, **more}


def only_fault(request: Json) -> str:
    [fault] = faults(request)
    return fault


def test_a_whole_turn_with_tools_is_sound() -> None:
    request = body(
        user(text("look at both"), document("Plan (v2) [final]")),
        assistant(text("I shall."), call("t1"), call("t2")),
        user(result("t2", {"json": {"n": 1}}), result("t1", status="error"), text("go on")),
        assistant(),
        user(),
        system=[text("Be terse."), {"cachePoint": {"type": "default"}}],
    )
    assert faults(request) == []


# Roles and texts


def test_the_user_begins() -> None:
    assert only_fault(body(assistant(), user())).startswith("A conversation must start with a user message.")


@pytest.mark.parametrize("request_body", [{}, {"messages": []}])
def test_there_are_messages(request_body: Json) -> None:
    assert only_fault(request_body).startswith("A conversation must start with a user message.")


def test_a_stored_prompt_may_bring_the_messages() -> None:
    assert faults({"promptVariables": {}}, stored_prompt=True) == []
    assert faults({"messages": [assistant()]}, stored_prompt=True) != []


@pytest.mark.parametrize("messages", [[user(), user()], [user(), assistant(), assistant()]])
def test_roles_alternate(messages: list[Json]) -> None:
    assert only_fault(body(*messages)).startswith("A conversation must alternate between user and assistant roles.")


def test_a_system_message_may_stand_between_two_turns() -> None:
    assert faults(body(user(), system("be brief"), assistant(), user(), system("now long"))) == []


def test_a_system_message_does_not_separate_two_of_one_role() -> None:
    assert "must alternate" in only_fault(body(user(), system("be brief"), user()))


def test_a_system_message_is_not_the_first() -> None:
    assert "must start with a user message" in only_fault(body(system("be brief"), user()))


def test_a_message_is_not_empty() -> None:
    fault = only_fault(body(user(), {"role": "assistant", "content": []}))
    assert fault.startswith("The content field in the Message object at messages.1 is empty.")


@pytest.mark.parametrize("blank", ["", " ", "\n\t\n"])
def test_no_text_is_blank(blank: str) -> None:
    assert "ContentBlock object at messages.0.content.1 is blank" in only_fault(body(user(text("q"), text(blank))))
    assert "SystemContentBlock object at system.0 is blank" in only_fault(body(user(), system=[text(blank)]))
    replied = body(user(), assistant(call()), user(result("t1", text(blank))))
    assert "messages.2.content.0.toolResult.content.0 is blank" in only_fault(replied)


@pytest.mark.parametrize("ending", [" ", "\n"])
def test_an_answer_begun_for_the_model_does_not_end_in_white_space(ending: str) -> None:
    assert "trailing whitespace" in only_fault(body(user(), assistant(text(f"Dear{ending}"))))


def test_an_earlier_answer_may_end_in_white_space() -> None:
    assert faults(body(user(), assistant(text("Dear ")), user())) == []


# Pairing


def test_a_call_without_a_next_message_is_unanswered() -> None:
    expected = "Expected toolResult blocks at messages.2.content for the following Ids: t1"
    assert only_fault(body(user(), assistant(call()))) == expected


def test_a_call_is_answered_in_the_very_next_message() -> None:
    request = body(user(), assistant(call()), user(), assistant(), user(result()))
    unanswered, orphan = faults(request)
    assert unanswered == "Expected toolResult blocks at messages.2.content for the following Ids: t1"
    assert orphan.startswith("The number of toolResult blocks at messages.4.content exceeds")


def test_a_system_message_between_call_and_result_parts_them() -> None:
    assert faults(body(user(), assistant(call()), system("hurry"), user(result())))[0].startswith("Expected toolResult")


def test_every_call_is_answered() -> None:
    request = body(user(), assistant(call("t1"), call("t2")), user(result("t1")))
    assert only_fault(request).endswith("for the following Ids: t2, but found: t1")


def test_a_call_is_answered_once() -> None:
    request = body(user(), assistant(call()), user(result(), result()))
    assert only_fault(request).startswith("The number of toolResult blocks at messages.2.content exceeds")


def test_a_result_without_a_call_is_refused() -> None:
    assert "messages.0.content exceeds" in only_fault(body(user(result())))
    assert "messages.2.content exceeds" in only_fault(body(user(), assistant(), user(result())))


def test_a_result_for_another_call_is_refused() -> None:
    request = body(user(), assistant(call("t1")), user(result("t9")))
    assert only_fault(request).endswith("for the following Ids: t1, but found: t9")


def test_results_come_before_the_text_beside_them() -> None:
    fault = only_fault(body(user(), assistant(call()), user(text("here"), result())))
    assert fault.startswith("messages.2: Did not find 1 `tool_result` block(s) at the beginning of this message.")


def test_a_cache_point_may_stand_among_results() -> None:
    point = {"cachePoint": {"type": "default"}}
    request = body(user(), assistant(call("t1"), call("t2")), user(result("t1"), point, result("t2"), text("go on")))
    assert faults(request) == []


def test_ids_may_come_again_in_a_later_turn() -> None:
    assert faults(body(user(), assistant(call()), user(result()), assistant(call()), user(result()))) == []


def test_ids_differ_within_a_message() -> None:
    request = body(user(), assistant(call("t1"), call("t1")), user(result("t1"), result("t1")))
    assert only_fault(request).startswith("messages.1.content: `tool_use` ids must be unique")


def test_the_user_does_not_call_tools() -> None:
    fault = faults(body(user(call())))[0]
    assert fault == "User messages cannot contain tool uses. Please remove the tool uses and try again."


@pytest.mark.parametrize(
    "messages",
    [
        [user(), assistant(call("s1", type="server_tool_use"), result("s1"), text("found it"))],
        [user(), assistant(call("s1", type="server_tool_use"))],
        [user(), assistant(call("s1", type="server_tool_use"), call("t1")), user(result("t1"))],
    ],
)
def test_a_call_the_service_ran_itself_needs_no_result_of_the_client(messages: list[Json]) -> None:
    assert faults(body(*messages)) == []


def test_the_assistant_answers_only_calls_of_the_service() -> None:
    assert faults(body(user(), assistant(call("t1"), result("t1")))) != []


# Names, inputs and results


@pytest.mark.parametrize("name", ["", "get.time", "größe", "look\n", "x" * 65])
def test_a_tool_name_has_few_characters_and_64_at_most(name: str) -> None:
    used, _ = faults(body(user(), assistant(call(name=name)), user(result()), toolConfig={"tools": [tool(name)]}))
    assert "at 'toolConfig.tools.1.member.toolSpec.name' failed to satisfy constraint" in used
    replayed = only_fault(body(user(), assistant(call(name=name)), user(result())))
    assert "at 'messages.2.member.content.1.member.toolUse.name' failed" in replayed


@pytest.mark.parametrize("identity", ["", "t 1", "t/1", "x" * 65])
def test_a_call_id_has_few_characters_and_64_at_most(identity: str) -> None:
    called, answered = faults(body(user(), assistant(call(identity)), user(result(identity))))
    assert "at 'messages.2.member.content.1.member.toolUse.toolUseId' failed" in called
    assert "at 'messages.3.member.content.1.member.toolResult.toolUseId' failed" in answered


def test_the_longest_names_are_sound() -> None:
    name, identity = "n" * 64, "a.b:c-d_" * 8
    request = body(user(), assistant(call(identity, name)), user(result(identity)), toolConfig={"tools": [tool(name)]})
    assert faults(request) == []


@pytest.mark.parametrize("value", ["{}", [], 7, True])
def test_the_input_of_a_call_is_an_object(value: object) -> None:
    fault = only_fault(body(user(), assistant(call(input=value)), user(result())))
    assert fault.startswith("The format of the value at messages.1.content.0.toolUse.input is invalid.")


@pytest.mark.parametrize("value", ["text", [1, 2], 7, None])
def test_a_json_result_is_an_object(value: object) -> None:
    fault = only_fault(body(user(), assistant(call()), user(result("t1", {"json": value}))))
    assert fault.startswith("The format of the value at messages.2.content.0.toolResult.content.0.json is invalid.")


def test_only_a_failed_result_needs_content() -> None:
    empty: Json = {"toolResult": {"toolUseId": "t1", "content": []}}
    failed: Json = {"toolResult": {"toolUseId": "t1", "content": [], "status": "error"}}
    assert faults(body(user(), assistant(call()), user(empty))) == []
    fault = only_fault(body(user(), assistant(call()), user(failed)))
    assert "messages.2.content.0.toolResult cannot be empty when status value is error" in fault


# The tool configuration


def test_tool_blocks_need_a_tool_configuration() -> None:
    expected = "The toolConfig field must be defined when using toolUse and toolResult content blocks."
    assert only_fault({"messages": [user(), assistant(call()), user(result())]}) == expected


@pytest.mark.parametrize("tools", [[], [{"cachePoint": {"type": "default"}}]])
def test_a_tool_configuration_has_a_tool(tools: list[Json]) -> None:
    assert only_fault(body(user(), toolConfig={"tools": tools})).startswith("The toolConfig.tools field is empty.")


def test_a_system_tool_is_a_tool() -> None:
    assert faults(body(user(), toolConfig={"tools": [{"systemTool": {"name": "search"}}]})) == []


def test_tool_names_differ() -> None:
    fault = only_fault(body(user(), toolConfig={"tools": [tool("look"), tool("look")]}))
    assert fault == "The toolConfig.tools field contains the tool name look more than once."


@pytest.mark.parametrize("schema", [{}, {"type": "array"}, {"$ref": "#/definitions/a"}])
def test_a_schema_is_that_of_an_object(schema: Json) -> None:
    fault = only_fault(body(user(), toolConfig={"tools": [tool(schema=schema)]}))
    expected = "toolConfig.tools.0.toolSpec.inputSchema.json.type must be one of the following: object."
    assert fault == f"The value at {expected}"


def test_a_schema_is_an_object() -> None:
    fault = only_fault(body(user(), toolConfig={"tools": [tool(schema="{}")]}))
    assert fault.startswith("The format of the value at toolConfig.tools.0.toolSpec.inputSchema.json is invalid.")


@pytest.mark.parametrize("choice", [{"auto": {}}, {"any": {}}, {"tool": {"name": "look"}}])
def test_a_choice_is_among_the_tools(choice: Json) -> None:
    assert faults(body(user(), toolConfig={**TOOLS, "toolChoice": choice})) == []


def test_a_choice_of_an_unknown_tool_is_refused() -> None:
    fault = only_fault(body(user(), toolConfig={**TOOLS, "toolChoice": {"tool": {"name": "smell"}}}))
    assert fault == "The tool smell at toolConfig.toolChoice.tool is not among toolConfig.tools."


@pytest.mark.parametrize("choice", [{}, {"none": {}}, {"auto": {}, "any": {}}])
def test_a_choice_is_one_of_three(choice: Json) -> None:
    fault = only_fault(body(user(), toolConfig={**TOOLS, "toolChoice": choice}))
    assert fault == "The toolConfig.toolChoice field must be one of auto, any and tool."


@pytest.mark.parametrize(
    ("choice", "thinking", "sound"),
    [
        ({"any": {}}, {"type": "enabled", "budget_tokens": 2048}, False),
        ({"tool": {"name": "look"}}, {"type": "adaptive"}, False),
        ({"auto": {}}, {"type": "enabled", "budget_tokens": 2048}, True),
        ({"any": {}}, {"type": "disabled"}, True),
    ],
)
def test_thinking_does_not_go_with_a_forced_tool(choice: Json, thinking: Json, sound: bool) -> None:
    config = {**TOOLS, "toolChoice": choice}
    found = faults(body(user(), toolConfig=config, additionalModelRequestFields={"thinking": thinking}))
    assert found == ([] if sound else ["Thinking may not be enabled when tool_choice forces tool use."])


# Documents


@pytest.mark.parametrize("name", ["", "plan.pdf", "two  spaces", "tab\t\there", "Prüfung", "a_b", "x" * 201])
def test_a_document_name_has_few_characters(name: str) -> None:
    fault = only_fault(body(user(text("read"), document(name))))
    assert fault.startswith("The document file name can only contain alphanumeric characters")


def test_document_names_differ_in_the_whole_conversation() -> None:
    expected = "Messages can't contain duplicate document names. Rename the document and retry your request."
    first = user(text("read"), document("plan"))
    assert only_fault(body(first, assistant(), user(text("and"), document("plan")))) == expected
    assert only_fault(body(first, assistant(call()), user(result("t1", document("plan"))))) == expected


def test_five_documents_are_the_most() -> None:
    many = [document(f"plan {number}") for number in range(6)]
    assert faults(body(user(text("read"), *many[:5]))) == []
    assert only_fault(body(user(text("read"), *many))) == "You can't include more than 5 documents in a request."


def test_a_document_stands_beside_a_text() -> None:
    assert only_fault(body(user(document("plan")))).startswith("A text block must be included when using documents.")


def test_a_document_in_a_result_needs_no_text() -> None:
    assert faults(body(user(), assistant(call()), user(result("t1", document("plan"))))) == []


def test_documents_are_the_users() -> None:
    fault = only_fault(body(user(), assistant(text("a"), document("plan")), user()))
    assert "only include documents if the role is user" in fault


# Any JSON

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "text", "toolUse", "toolResult", "toolUseId", "document", "json", "tools", "name"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("request_body", "place"),
    [
        ({"messages": "hi"}, "messages must be a list of objects"),
        ({"messages": ["hi"]}, "messages must be a list of objects"),
        ({"messages": [{"role": "tool", "content": []}]}, "messages.0.role must be one of user, assistant, system"),
        ({"messages": [{"role": "user", "content": "hi"}]}, "messages.0.content must be a list of objects"),
        (body(user(), system="hi"), "system must be a list of objects"),
        (body(user(), toolConfig=[]), "toolConfig must be an object"),
        (body(user(), toolConfig={"tools": {}}), "toolConfig.tools must be a list of objects"),
        (body(user(), toolConfig={**TOOLS, "toolChoice": "auto"}), "toolConfig.toolChoice must be an object"),
    ],
)
def test_a_body_of_another_form_is_told_its_place(request_body: Json, place: str) -> None:
    assert only_fault(request_body) == f"Malformed input request: {place}, please reformat your input and try again."


@given(
    st.fixed_dictionaries(
        {
            "messages": st.lists(
                st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": JSON})
            )
        },
        optional={"system": JSON, "toolConfig": JSON, "additionalModelRequestFields": JSON},
    )
)
def test_any_body_gets_an_answer(request_body: Json) -> None:
    assert all(isinstance(fault, str) for fault in faults(request_body))


@pytest.mark.parametrize(
    ("first", "thinking", "sound"),
    [
        ({"text": "It is"}, {"type": "enabled", "budget_tokens": 2048}, False),
        ({"reasoningContent": {"redactedContent": "eA=="}}, {"type": "enabled", "budget_tokens": 2048}, True),
        ({"text": "It is"}, {"type": "adaptive"}, True),
    ],
)
def test_with_a_budget_an_answer_that_goes_on_began_with_a_thought(first: Json, thinking: Json, sound: bool) -> None:
    begun = {"role": "assistant", "content": [first, {"text": "so"}]}
    found = faults(body(user(), begun, additionalModelRequestFields={"thinking": thinking}))
    assert [fault.partition(", but")[0] for fault in found] == (
        [] if sound else ["messages.1.content.0.type: Expected `thinking` or `redacted_thinking`"]
    )
