"""The rules of Messages for the messages themselves, one breach at a time, beside a request that keeps them all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.testing.wire.anthropic_requests import Json, body, only_fault, text, user

from neurolink_mw.testing.wire import anthropic
from neurolink_mw.testing.wire.anthropic_rules import faults


def call(identity: str = "t1", name: str = "look", **more: object) -> Json:
    return {"type": "tool_use", "id": identity, "name": name, "input": {}, **more}


def served(identity: str = "s1") -> Json:
    return {"type": "server_tool_use", "id": identity, "name": "web_search", "input": {}}


def found(identity: str = "s1") -> Json:
    return {"type": "web_search_tool_result", "tool_use_id": identity, "content": []}


def result(identity: str = "t1", content: object = "done", **more: object) -> Json:
    return {"type": "tool_result", "tool_use_id": identity, "content": content, **more}


def thinking(**more: object) -> Json:
    return {"type": "thinking", "thinking": "Hm", "signature": "SIG", **more}


def assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks) or [text("a")]}


def system(*blocks: Json, **more: object) -> Json:
    return {"role": "system", "content": list(blocks) or [text("be brief")], **more}


def test_a_whole_turn_with_tools_is_sound() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    request = body(
        user(text("look at both"), {"type": "image", "source": source}),
        assistant(thinking(), text("I shall."), served(), found(), call("t1"), call("t2")),
        user(result("t2", [text("n")]), result("t1", is_error=True), text("go on")),
        system(),
        assistant({"type": "redacted_thinking", "data": "RED"}, text("a")),
        {"role": "user", "content": "thanks"},
    )
    assert faults(request) == []


def test_a_text_may_stand_in_place_of_blocks() -> None:
    assert faults(body({"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, system="terse")) == []


# Roles


def test_there_are_messages() -> None:
    assert only_fault(body() | {"messages": []}) == "messages: at least one message is required"


def test_roles_are_three() -> None:
    fault = only_fault(body(user(), {"role": "tool", "content": "done"}))
    assert fault == 'messages: Unexpected role "tool". Allowed roles are "user", "assistant" or "system".'
    assert only_fault(body({"content": "q"})) == "messages.0.role: Field required"


def test_a_message_has_content_and_nothing_else() -> None:
    assert only_fault(body({"role": "user"})) == "messages.0.content: Field required"
    named = only_fault(body({"role": "user", "content": "q", "name": "Ada"}))
    assert named == "messages.0.name: Extra inputs are not permitted"


@pytest.mark.parametrize(
    "messages", [[user(), user()], [user(), assistant(), assistant(), user()], [assistant(), user()]]
)
def test_roles_need_not_take_turns_and_the_assistant_may_begin(messages: list[Json]) -> None:
    assert faults(body(*messages)) == []


@pytest.mark.parametrize("messages", [[user(), system()], [user(), system(), assistant()]])
def test_a_system_message_comes_behind_the_user(messages: list[Json]) -> None:
    assert faults(body(*messages)) == []


def test_a_system_message_may_come_behind_a_tool_that_the_api_runs() -> None:
    assert faults(body(user(), assistant(served()), system())) == []


def test_a_system_message_precedes_the_assistant_or_ends_the_array() -> None:
    fault = only_fault(body(user(), system(), user()))
    assert fault == "messages.1: role 'system' must precede an 'assistant' message or end the array"


@pytest.mark.parametrize("before", [[], [user(), assistant()]])
def test_a_system_message_is_not_the_first_nor_behind_an_answer(before: list[Json]) -> None:
    [fault] = faults(body(*before, system(), assistant()))
    assert fault.startswith(f"messages.{len(before)}: role 'system' must follow a 'user' message")


def test_a_system_message_may_bring_settings_alone() -> None:
    assert faults(body(user(), {"role": "system", "output_config": {"effort": "low"}})) == []
    assert only_fault(body(user(), {"role": "system"})).startswith(
        "messages.1: all messages must have non-empty content"
    )


def test_a_system_message_says_texts() -> None:
    fault = only_fault(body(user(), system(call())))
    assert fault == "messages.1.content.0: `tool_use` blocks are not allowed in `system` messages"
    assert only_fault(body(system=[call()])) == "system.0.type: Input should be 'text'"


@pytest.mark.parametrize("block", [call(), thinking(), served()])
def test_only_the_assistant_calls_and_thinks(block: Json) -> None:
    fault = faults(body(user(block, text())))[0]
    assert fault == f"messages.0: `{block['type']}` blocks can only be in `assistant` messages"


def test_only_the_user_answers_calls() -> None:
    fault = faults(body(user(), assistant(result()), user()))[0]
    assert fault == "messages.1: `tool_result` blocks can only be in `user` messages"


# Blocks


def test_a_block_has_a_known_type() -> None:
    assert only_fault(body(user({"text": "q"}))) == "messages.0.content.0.type: Field required"
    unknown = only_fault(body(user({"type": "video", "source": {}})))
    assert unknown.startswith("messages.0.content.0: Input tag 'video' found using 'type' does not match any")


@pytest.mark.parametrize(
    ("block", "fault"),
    [
        ({"type": "text"}, "text.text: Field required"),
        (text(5), "text.text: Input should be a valid string"),  # type: ignore[arg-type]
        (text(id="x"), "text.id: Extra inputs are not permitted"),
        ({"type": "image", "source": "https://a.test"}, "image.source: Input should be a valid dictionary"),
        ({"type": "document"}, "document.source: Field required"),
    ],
)
def test_a_block_has_the_members_of_its_type(block: Json, fault: str) -> None:
    assert only_fault(body(user(block))) == f"messages.0.content.0.{fault}"


@pytest.mark.parametrize(
    ("block", "fault"),
    [
        (call(input="{}"), "input: Input should be a valid dictionary"),
        (call("a.b"), "id: String should match pattern '^[a-zA-Z0-9_-]+$'"),
        (call(name="a.b"), "name: String should match pattern '^[a-zA-Z0-9_-]{1,200}$'"),
    ],
)
def test_a_call_is_spelled_well(block: Json, fault: str) -> None:
    request = body(user(), assistant(block), user(result(block["id"])))
    assert only_fault(request) == f"messages.1.content.0.tool_use.{fault}"


def test_blocks_within_a_result_are_looked_at_too() -> None:
    inner = body(user(), assistant(call()), user(result("t1", [{"type": "text", "txt": ""}])))
    assert faults(inner)[0] == "messages.2.content.0.tool_result.content.0.text.text: Field required"


def test_the_source_of_a_search_result_is_a_text() -> None:
    block = {"type": "search_result", "source": "https://a.test", "title": "A", "content": [text()]}
    assert faults(body(user(block))) == []


# Texts


@pytest.mark.parametrize(("blank", "fault"), [("", "be non-empty"), (" ", "contain non-whitespace text")])
def test_no_text_is_blank(blank: str, fault: str) -> None:
    expected = f"messages: text content blocks must {fault}"
    assert only_fault(body(user(text(), text(blank)))) == expected
    assert only_fault(body(user(), assistant(call()), user(result("t1", [text(blank)])))) == expected
    assert only_fault(body(system=[text(blank)])) == f"system: text content blocks must {fault}"


@pytest.mark.parametrize("content", [[], "", [text("")]])
def test_no_message_is_empty_but_an_assistants_at_the_end(content: object) -> None:
    empty = {"role": "user", "content": content}
    assert only_fault(body(empty)).startswith("messages.0: all messages must have non-empty content except for")
    assert faults(body(user(), empty | {"role": "assistant"})) == []


@pytest.mark.parametrize("content", [None, "", []])
def test_a_result_may_be_empty(content: object) -> None:
    assert faults(body(user(), assistant(call()), user(result("t1", content)))) == []


@pytest.mark.parametrize("ending", [" ", "\n"])
def test_an_answer_begun_for_the_model_does_not_end_in_white_space(ending: str) -> None:
    fault = only_fault(body(user(), assistant(text(f"Dear{ending}"))))
    assert fault == "messages: final assistant content cannot end with trailing whitespace"
    assert faults(body(user(), assistant(text(f"Dear{ending}")), user())) == []


# Thoughts


def test_a_thought_is_signed() -> None:
    unsigned = thinking()
    del unsigned["signature"]
    missing = faults(body(user(), assistant(unsigned, text("a")), user()))[0]
    assert missing == "messages.1.content.0.thinking.signature: Field required"
    empty = only_fault(body(user(), assistant(thinking(signature=""), text("a")), user()))
    assert empty == "messages.1.content.0: Invalid `signature` in `thinking` block"


def test_a_redacted_thought_has_its_data() -> None:
    fault = only_fault(body(user(), assistant({"type": "redacted_thinking", "data": ""}, text("a")), user()))
    assert fault == "messages.1.content.0: Invalid `data` in `redacted_thinking` block"


def test_a_thought_whose_text_is_omitted_is_sound() -> None:
    assert faults(body(user(), assistant(thinking(thinking=""), text("a")), user())) == []


@pytest.mark.parametrize("thought", [thinking(), {"type": "redacted_thinking", "data": "RED"}])
def test_a_message_does_not_end_in_a_thought(thought: Json) -> None:
    expected = f"messages.1: The final block in an assistant message cannot be `{thought['type']}`."
    assert only_fault(body(user(), assistant(thought), user())) == expected
    assert faults(body(user(), assistant(thought), assistant(text("a")), user())) == []


BUDGET: Json = {"thinking": {"type": "enabled", "budget_tokens": 1024}}


@pytest.mark.parametrize(
    "unfinished",
    [
        [assistant(call()), user(result())],
        [assistant(text("I shall."), call()), user(result(), text("go on"))],
        [assistant(call()), user(result()), assistant(call("t2")), user(result("t2"))],
        [assistant(text("Dear"))],
    ],
)
def test_with_a_budget_an_unfinished_answer_began_with_a_thought(unfinished: list[Json]) -> None:
    said = unfinished[0]["content"]
    fault = only_fault(body(user(), *unfinished, **BUDGET))
    assert "Expected `thinking` or `redacted_thinking`, but found `" in fault
    assert "must start with a thinking block" in fault
    begun = [assistant(thinking(), *said), *unfinished[1:]]
    assert faults(body(user(), *begun, **BUDGET)) == []
    assert faults(body(user(), *unfinished, thinking={"type": "adaptive"})) == []


def test_with_a_budget_a_finished_answer_needs_no_thought() -> None:
    assert faults(body(user(), assistant(call()), user(result()), assistant(), user(), **BUDGET)) == []


# Pairing


def unanswered(*identities: str, index: int = 1) -> str:
    return (
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(identities)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
        "message."
    )


def unasked(place: str, identity: str) -> str:
    return (
        f"{place}: unexpected `tool_use_id` found in `tool_result` blocks: {identity}. Each `tool_result` block must "
        "have a corresponding `tool_use` block in the previous message."
    )


def test_a_call_without_a_next_message_is_unanswered() -> None:
    assert only_fault(body(user(), assistant(call()))) == unanswered("t1")


def test_a_call_is_answered_in_the_very_next_turn() -> None:
    request = body(user(), assistant(call()), user(), assistant(), user(result()))
    assert faults(request) == [unanswered("t1"), unasked("messages.4.content.0", "t1")]


def test_every_call_is_answered() -> None:
    assert only_fault(body(user(), assistant(call("t1"), call("t2")), user(result("t1")))) == unanswered("t2")


def test_results_may_come_in_messages_of_their_own() -> None:
    request = body(user(), assistant(call("t1"), call("t2")), user(result("t1")), user(result("t2")))
    assert faults(request) == []


def test_calls_may_come_in_messages_of_their_own() -> None:
    request = body(user(), assistant(call("t1")), assistant(call("t2")), user(result("t1"), result("t2")))
    assert faults(request) == []


def test_a_call_is_answered_once() -> None:
    fault = only_fault(body(user(), assistant(call()), user(result(), result())))
    assert fault == (
        "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: t1"
    )


def test_a_result_without_a_call_is_refused() -> None:
    assert only_fault(body(user(result()))) == unasked("messages.0.content.0", "t1")
    assert only_fault(body(user(), assistant(), user(result()))) == unasked("messages.2.content.0", "t1")


def test_results_come_before_the_text_beside_them() -> None:
    assert only_fault(body(user(), assistant(call()), user(text("here"), result()))) == unanswered("t1")


def test_ids_differ_within_a_conversation() -> None:
    once = [assistant(call()), user(result())]
    assert only_fault(body(user(), *once, *once)) == "messages.3.content.0: `tool_use` ids must be unique"


@pytest.mark.parametrize(
    "messages",
    [
        [user(), assistant(served(), found(), text("found it"))],
        [user(), assistant(served())],
        [user(), assistant(served(), call()), user(result()), assistant(found(), text("found it"))],
    ],
)
def test_a_call_the_api_ran_itself_needs_no_result_of_the_client(messages: list[Json]) -> None:
    assert faults(body(*messages)) == []


def test_what_the_api_ran_is_called_before_it_is_found() -> None:
    fault = only_fault(body(user(), assistant(found(), served(), text("a"))))
    assert fault == (
        "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks: s1. Each "
        "`web_search_tool_result` block must have a corresponding `server_tool_use` block before it."
    )


def test_a_result_of_an_mcp_server_answers_a_call_of_it() -> None:
    asked = {"type": "mcp_tool_use", "id": "m1", "name": "look", "server_name": "m", "input": {}}
    answered = {"type": "mcp_tool_result", "tool_use_id": "m1", "content": "done"}
    assert faults(body(user(), assistant(asked, answered))) == []
    assert "a corresponding `mcp_tool_use` block" in only_fault(body(user(), assistant(served("m1"), answered)))


# Everything


def spoken() -> st.SearchStrategy[Any]:
    texts = st.text("ab", min_size=1)
    thoughts = st.builds(anthropic.Thinking, texts)
    calls = st.builds(anthropic.ToolCall, st.sampled_from(["look", "smell"]), st.dictionaries(texts, texts))
    return st.tuples(st.lists(thoughts | texts), st.lists(calls)).map(lambda parts: [*parts[0], "said", *parts[1]])


@given(spoken())
def test_what_an_answer_says_is_sound_once_its_calls_are_answered(blocks: list[anthropic.Block]) -> None:
    said = anthropic.content(blocks)
    results = [result(str(block["id"])) for block in said if block["type"] == "tool_use"]
    assert faults(body(user(), assistant(*said), user(*results, text("go on")))) == []


LEAF = st.none() | st.booleans() | st.integers() | st.sampled_from(["", "a", "text", "user"])
JUNK = LEAF | st.lists(LEAF, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "name"]), LEAF, max_size=2)
BLOCKS = st.lists(
    st.fixed_dictionaries({"type": st.sampled_from(["text", "tool_use", "tool_result"]), "content": JUNK}), max_size=2
)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "system"]), "content": JUNK | BLOCKS}),
    max_size=2,
)
MEMBERS = st.sampled_from(["system", "tools", "tool_choice", "thinking", "output_config", "cache_control", "messages"])


@given(st.dictionaries(MEMBERS, JUNK | BLOCKS | MESSAGES, max_size=3))
def test_any_request_gets_an_answer(more: Json) -> None:
    assert all(isinstance(fault, str) for fault in faults(body() | more))
