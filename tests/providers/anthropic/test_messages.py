"""Prompts as messages: merging, pairing, blank text, late system messages, reasoning, files, what a server tool did."""

from __future__ import annotations

from typing import Any

import pytest

from neurolink_mw.errors import InvalidRequestError
from neurolink_mw.protocol import (
    AssistantPart,
    Message,
    SystemMessage,
    TextPart,
    ToolApprovalResponsePart,
    ToolMessage,
    ToolOutput,
    UnknownPart,
)
from neurolink_mw.providers.anthropic.request import BETAS, build_request

from .builders import (
    FINDER,
    HAIKU,
    LOOK,
    MARK,
    Json,
    answered,
    called,
    content_of,
    instructed,
    messages_of,
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


def text(words: str, **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def roles(messages: list[Json]) -> list[str]:
    return [message["role"] for message in messages]


def features(*prompt: Message, **more: Any) -> list[str | None]:
    return request(options(*prompt, **more))[1]


def refusal(*prompt: Message) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        build_request(HAIKU, options(*prompt))
    return str(caught.value)


def replayed(*parts: AssistantPart, **more: Any) -> list[Json]:
    """The blocks of an earlier answer."""
    content: list[Json] = messages_of(said("q"), answered(*parts), said("next"), **more)[1]["content"]
    return content


def answered_with(output: ToolOutput | str) -> Json:
    """The block of a result."""
    block: Json = messages_of(said("q"), answered(called()), told(result(output=output)))[-1]["content"][0]
    return block


# ---------------------------------------------------------------------------------------------------------- text, roles


def test_blank_text_is_not_sent_and_nor_is_a_message_without_content() -> None:
    messages = messages_of(said("a", "  "), answered(" \n"), said("b"))
    assert messages == [{"role": "user", "content": [text("a"), text("b")]}]


def test_a_prompt_that_says_nothing_is_refused() -> None:
    assert "none of its messages says anything" in refusal(said(" "))


def test_the_end_of_a_last_answer_loses_its_white_space_and_a_mark_stays_there() -> None:
    last = answered(TextPart("so: \n", own(cacheControl=MARK)))
    assert messages_of(said("q"), last)[-1]["content"] == [text("so:", cache_control=MARK)]


def test_the_end_of_an_earlier_answer_stays_as_it_is() -> None:
    assert messages_of(said("q"), answered("so: "), said("go"))[1]["content"] == [text("so: ")]


def test_a_late_system_message_keeps_its_place_and_role() -> None:
    messages = messages_of(said("q"), instructed("late"), instructed("later"), said("go"))
    assert roles(messages) == ["user", "system", "user"]
    assert messages[1]["content"] == [text("late"), text("later")]


def test_a_late_system_message_becomes_the_users_text_where_the_call_says_so() -> None:
    call = options(said("q"), instructed("late"), provider_options=own(lateSystemMessages="user"))
    native, warned_of = request(call)
    assert native["messages"] == [{"role": "user", "content": [text("q"), text("late")]}]
    assert warned_of == ["system message"]


def test_a_late_system_message_may_change_the_tools_and_the_effort() -> None:
    late = instructed(
        "now",
        toolChanges=[{"type": "tool_removal", "toolName": "finder"}],
        clearAt="next_user_message",
        outputConfig={"effort": "low"},
    )
    native = quiet(options(said("q"), late, said("go"), tools=[FINDER]))
    removal = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "web_search"}}
    assert native["messages"][1] == {
        "role": "system",
        "content": [text("now"), removal],
        "clear_at": "next_user_message",
        "output_config": {"effort": "low"},
    }
    assert native[BETAS] == [
        "mid-conversation-output-config-2026-07-01",
        "mid-conversation-system-clear-at-2026-08-21",
        "mid-conversation-tool-changes-2026-07-01",
    ]


def test_what_is_no_message_is_refused_by_its_place() -> None:
    assert refusal(said("q"), "later").startswith("prompt[1]: expected a system, user")  # type: ignore[arg-type]


def test_an_unknown_part_of_the_user_is_refused_by_its_place() -> None:
    assert refusal(said(UnknownPart("hologram", {}))).startswith("prompt[0].content[0]: a user message carries")


def test_a_native_block_is_sent_as_it_is() -> None:
    page = {"type": "search_result", "source": "kb:1", "title": "One", "content": [text("found")]}
    part = UnknownPart("custom", {"kind": "anthropic.search_result", "providerOptions": own(block=page)})
    assert content_of(part, "q") == [page, text("q")]


def test_an_unknown_part_of_an_answer_is_left_out_with_a_warning() -> None:
    parts = answered("a", UnknownPart("hologram", {}))
    assert features(said("q"), parts, said("go")) == ["hologram part in an assistant message"]


# ------------------------------------------------------------------------------------------------------- calls, results


def test_all_results_of_a_turn_are_one_message_in_call_order_before_what_the_user_says() -> None:
    *_, last = messages_of(
        said("q"),
        answered(called("a"), called("b")),
        told(result("b", "two")),
        said("briefly"),
        told(result("a", "one")),
    )
    assert [block.get("tool_use_id") for block in last["content"]] == ["a", "b", None]
    assert last["content"][2] == text("briefly")


def test_a_result_goes_before_a_late_system_message() -> None:
    messages = messages_of(said("q"), answered(called()), instructed("late"), told(result()))
    assert roles(messages) == ["user", "assistant", "user", "system"]


def test_a_call_without_a_result_is_refused_by_its_place() -> None:
    assert refusal(said("q"), answered("a", called()), said("go")).startswith(
        "prompt[1].content[1]: the tool call has no result"
    )


def test_two_calls_of_one_id_are_refused() -> None:
    problem = refusal(said("q"), answered(called(), called()), told(result()))
    assert problem == "prompt[1].content[1]: a second call with the id of prompt[1].content[0]"


def test_a_result_without_a_call_is_left_out_with_a_warning() -> None:
    assert features(said("q"), answered("a"), told(result())) == ["tool result without a call"]


def test_a_call_is_answered_once() -> None:
    again = told(result())
    assert features(said("q"), answered(called()), told(result()), again) == ["tool result without a call"]


def test_a_result_in_the_assistants_message_answers_a_call_of_the_callers_tools() -> None:
    messages = messages_of(said("q"), answered(called(), result()), said("go"))
    assert roles(messages) == ["user", "assistant", "user"]
    assert messages[2]["content"][0]["tool_use_id"] == "c1"


def test_an_approval_is_between_the_caller_and_the_loop() -> None:
    results = ToolMessage([ToolApprovalResponsePart("a1", True), result()])
    assert len(messages_of(said("q"), answered(called()), results)[-1]["content"]) == 1


def test_an_id_of_another_provider_is_spelled_alike_in_call_and_result() -> None:
    messages = messages_of(said("q"), answered(called("functions.look:0")), told(result("functions.look:0")))
    id = messages[1]["content"][0]["id"]
    assert id == messages[2]["content"][0]["tool_use_id"]
    assert id.startswith("functionslook0-")


def test_an_input_that_is_no_object_is_kept() -> None:
    messages = messages_of(said("q"), answered(called(input='{"q":')), told(result()))
    assert messages[1]["content"][0]["input"] == {"rawInvalidInput": '{"q":'}


def test_who_called_and_the_toolset_go_back_with_a_call() -> None:
    call = called(caller={"type": "code_execution_20250825", "toolId": "s1"}, toolsetName="computer")
    messages = messages_of(said("q"), answered(call), told(result()))
    assert messages[1]["content"][0]["caller"] == {"type": "code_execution_20250825", "tool_id": "s1"}
    assert messages[1]["content"][0]["toolset_name"] == messages[2]["content"][0]["toolset_name"] == "computer"


# -------------------------------------------------------------------------------------------------------------- answers


def test_signed_and_redacted_reasoning_goes_back_unchanged_and_in_order() -> None:
    thoughts = thought("a", signature="S1"), thought("", redactedData="RD"), thought("", signature="S2")
    assert replayed(*thoughts, TextPart("done")) == [
        {"type": "thinking", "thinking": "a", "signature": "S1"},
        {"type": "redacted_thinking", "data": "RD"},
        {"type": "thinking", "thinking": "", "signature": "S2"},
        text("done"),
    ]


@pytest.mark.parametrize("speak", [said, instructed], ids=["user", "system"])
def test_what_stands_around_an_answer_of_nothing_but_cut_reasoning_is_one_message(speak: Any) -> None:
    native, _ = warned(options(said("q"), speak("a"), answered(thought(signature="S")), speak("b")))
    last = native["messages"][-1]
    assert [block["text"] for block in last["content"]][-2:] == ["a", "b"]
    assert [message["role"] for message in native["messages"]].count(last["role"]) == 1


def test_reasoning_at_the_end_of_an_answer_that_was_cut_is_left_out_with_a_warning() -> None:
    native, warnings = warned(options(said("q"), answered("a", thought(signature="S")), said("go")))
    assert native["messages"][1]["content"] == [text("a")]
    assert ["at the end of an answer" in (warning.message or "") for warning in warnings] == [True]


def test_without_reasoning_that_of_the_turn_which_goes_on_is_sent_all_the_same() -> None:
    """Its calls are refused without it."""
    one = answered(thought("1", signature="S"), "a")
    two = answered(thought("2", signature="S"), called())
    call = options(said("q"), one, said("go"), two, told(result()), provider_options=own(sendReasoning=False))
    native, _ = warned(call)
    types = [[block["type"] for block in message["content"]] for message in native["messages"]]
    assert types == [["text"], ["text"], ["text"], ["thinking", "tool_use"], ["tool_result"]]


def test_an_id_that_an_earlier_step_has_used_gets_a_number_and_its_result_too() -> None:
    messages = messages_of(said("q"), answered(called()), told(result()), answered(called()), told(result()))
    uses = [block["id"] for message in messages for block in message["content"] if block["type"] == "tool_use"]
    results = [block["tool_use_id"] for message in messages for block in message["content"] if "tool_use_id" in block]
    assert len(set(uses)) == 2
    assert results == uses


def test_reasoning_without_a_signature_is_left_out_with_one_warning() -> None:
    _, warnings = warned(options(said("q"), answered(thought(), thought(), "a"), said("go")))
    (warning,) = warnings
    assert warning.message is not None
    assert warning.message.startswith("prompt[1].content[0] and 1 more without a signature")


def test_citations_go_back_with_their_text() -> None:
    citation = {
        "type": "char_location",
        "cited_text": "z",
        "document_index": 0,
        "document_title": None,
        "start_char_index": 0,
        "end_char_index": 1,
    }
    blocks = replayed(TextPart("so", own(citations=[{**citation, "file_id": None}])))
    assert blocks == [text("so", citations=[citation])]


def test_tools_are_named_as_declared_in_the_history_too() -> None:
    messages = messages_of(
        said("q"), answered(called(name="a.look")), told(result()), tools=[LOOK.replace(name="a.look")]
    )
    assert messages[1]["content"][0]["name"] == "alook"


def test_a_native_block_of_blank_text_is_not_sent() -> None:
    part = UnknownPart(
        "custom", {"kind": "anthropic.text", "providerOptions": own(block={"type": "text", "text": " "})}
    )
    native, _ = warned(
        options(
            SystemMessage("", own(block={"type": "text", "text": "\n"})),
            said("q", part),
            answered(part, "a"),
            said("r"),
        )
    )
    assert "system" not in native
    assert [[block["text"] for block in message["content"]] for message in native["messages"]] == [["q"], ["a"], ["r"]]
