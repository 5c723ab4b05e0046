"""Prompts as Converse messages: merging, pairing, blank text, late system messages, reasoning, files, cache points."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from neurolink_mw.errors import InvalidRequestError
from neurolink_mw.protocol import (
    ContentOutput,
    JsonOutput,
    Message,
    OutputFileData,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolApprovalResponsePart,
    ToolCallPart,
    ToolMessage,
    UnknownPart,
    UserMessage,
    from_json,
)

from .conversations import PROMPTS
from .native import CLAUDE, MISTRAL, POINT, Json, answered, called, converted, messages_of, own, result, said, told

CACHE = {"cachePoint": POINT}


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def roles(messages: list[Json]) -> list[str]:
    return [message["role"] for message in messages]


def features(*prompt: Message, **more: Any) -> list[str | None]:
    return [warning.feature for warning in converted(*prompt, **more)[1]]


# ---------------------------------------------------------------------------------------------------- calls, results


def test_all_results_of_a_turn_are_one_message_in_call_order_before_what_the_user_says() -> None:
    prompt = [
        said("q"),
        answered(called("a"), called("b")),
        told(result("b", "two")),
        said("briefly"),
        told(result("a", "one")),
    ]
    *_, last = messages_of(*prompt)
    assert [block.get("toolResult", {}).get("toolUseId") for block in last["content"]] == ["a", "b", None]
    assert last["content"][2] == {"text": "briefly"}


def test_a_late_system_message_does_not_part_a_call_from_its_result() -> None:
    native, warnings = converted(
        SystemMessage("Be terse."),
        said("start"),
        answered(called()),
        SystemMessage("3 left."),
        told(result()),
        said("go"),
    )
    assert native.system == [{"text": "Be terse."}]
    assert roles(native.messages) == ["user", "assistant", "user"]
    assert [next(iter(block)) for block in native.messages[2]["content"]] == ["toolResult", "text", "text"]  # type: ignore[attr-defined]  # a list
    assert native.messages[2]["content"][1:] == [{"text": "3 left."}, {"text": "go"}]  # type: ignore[index]  # a list
    assert [(one.type, one.feature) for one in warnings] == [("compatibility", "system message")]


def test_a_call_without_a_result_is_refused_by_its_place() -> None:
    prompts: list[list[Message]] = [
        [said("q"), answered("hm", called())],
        [said("q"), answered("hm", called()), said("next")],
        [said("q"), answered("hm", called()), said("next"), answered("so"), told(result())],
    ]
    for prompt in prompts:
        with pytest.raises(InvalidRequestError, match=r"prompt\[1\]\.content\[1\]: the tool call has no result"):
            messages_of(*prompt)


def test_a_result_without_a_call_is_left_out_with_a_warning() -> None:
    native, warnings = converted(said("q"), told(result()), said("go"))
    assert native.messages == [user({"text": "q"}, {"text": "go"})]
    assert [one.feature for one in warnings] == ["tool result without a call"]
    assert "prompt[1].content[0]" in (warnings[0].details or "")


def test_a_result_without_a_call_is_left_out_whatever_it_holds() -> None:
    output = ContentOutput((OutputFileData(b"x", "application/zip"),))
    native, warnings = converted(said("q"), told(result(output=output)), said("go"))
    assert native.messages == [user({"text": "q"}, {"text": "go"})]
    assert [one.feature for one in warnings] == ["tool result without a call"]


def test_a_second_result_of_a_call_is_left_out_with_a_warning() -> None:
    native, warnings = converted(said("q"), answered(called()), told(result(output="one"), result(output="two")))
    assert native.messages[2] == user({"toolResult": {"toolUseId": "t1", "content": [{"text": "one"}]}})
    assert "answers a call again" in (warnings[0].details or "")


def test_two_calls_of_one_id_in_one_message_are_refused() -> None:
    with pytest.raises(
        InvalidRequestError, match=r"content\[1\]: a second call with the id of prompt\[1\]\.content\[0\]"
    ):
        messages_of(said("q"), answered(called(), called()), told(result()))


def test_ids_may_come_again_in_a_later_turn() -> None:
    prompt = [said("q"), answered(called()), told(result()), answered(called()), told(result(output="again"))]
    assert roles(messages_of(*prompt)) == ["user", "assistant", "user", "assistant", "user"]


def test_results_inside_an_answer_become_messages_of_their_own() -> None:
    call = called("a").replace(provider_executed=True)
    messages = messages_of(said("q"), answered("look", call, result("a"), "found it"))
    assert roles(messages) == ["user", "assistant", "user", "assistant"]
    assert "type" not in messages[1]["content"][1]["toolUse"]


def test_a_call_that_another_provider_ran_and_answered_elsewhere_is_left_out_with_a_warning() -> None:
    call = called("a").replace(provider_executed=True)
    native, warnings = converted(said("q"), answered(call, "so"), said("next"))
    assert native.messages[1] == {"role": "assistant", "content": [{"text": "so"}]}
    assert [one.feature for one in warnings] == ["provider-executed tool call"]


def test_a_tool_of_the_service_and_its_result_stay_in_the_answer() -> None:
    call = ToolCallPart("s", "search", {}, True, own(type="server_tool_use"))
    found = result("s", JsonOutput({"hits": 1}), "search", serverTool=True, type="web", status="success")
    _, message = messages_of(said("q"), answered(call, found, "so"))
    assert message["content"][0]["toolUse"]["type"] == "server_tool_use"
    assert message["content"][1]["toolResult"] == {
        "toolUseId": "s",
        "content": [{"json": {"hits": 1}}],
        "status": "success",
        "type": "web",
    }


def test_approvals_are_between_the_caller_and_the_loop() -> None:
    tool = ToolMessage([ToolApprovalResponsePart("ap", True), result()])
    assert features(said("q"), answered(called()), tool) == []


def test_an_input_that_is_no_object_is_wrapped() -> None:
    broken: Any
    for broken in ("{broken", [1, 2], None, 5):
        call = ToolCallPart("t1", "look", broken)
        _, message, _ = messages_of(said("q"), answered(call), told(result()))
        assert message["content"][0]["toolUse"]["input"] == {"rawInvalidInput": broken}


def test_an_input_without_a_json_form_is_refused_by_its_place() -> None:
    call = ToolCallPart("t1", "look", {"q": float("nan")})
    with pytest.raises(InvalidRequestError, match=r"prompt\[1\]\.content\[0\]\.input"):
        messages_of(said("q"), answered(call), told(result()))


def test_names_and_ids_are_made_to_fit() -> None:
    call = called("call~1/2", "look.up!")
    _, message, answer = messages_of(said("q"), answered(call), told(result("call~1/2", name="look.up!")))
    use = message["content"][0]["toolUse"]
    assert use["name"] == "lookup"
    assert use["toolUseId"] == answer["content"][0]["toolResult"]["toolUseId"]
    assert use["toolUseId"].startswith("call12-")


def test_mistral_gets_ids_of_nine_characters_and_no_two_become_one() -> None:
    ids = ["tooluse_abc_1", "tooluse_abc_2", "AbCdEf123"]
    prompt = [said("q"), answered(*map(called, ids)), told(*map(result, ids))]
    _, message, answer = messages_of(*prompt, model_id=MISTRAL)
    sent = [block["toolUse"]["toolUseId"] for block in message["content"]]
    assert [len(id) for id in sent] == [9, 9, 9]
    assert len(set(sent)) == 3
    assert sent[2] == "AbCdEf123"
    assert sent == [block["toolResult"]["toolUseId"] for block in answer["content"]]
    again = messages_of(*prompt, model_id=MISTRAL)
    assert again[1] == message


# -------------------------------------------------------------------------------------------------------- blank, merge


def test_blank_text_and_messages_left_with_nothing_are_not_sent() -> None:
    native, _ = converted(SystemMessage(" "), said("a", " "), answered("\n"), said("b"), SystemMessage(""))
    assert native.system == []
    assert native.messages == [user({"text": "a"}, {"text": "b"})]


def test_white_space_inside_is_kept() -> None:
    assert messages_of(said("  two  spaces\n")) == [user({"text": "  two  spaces\n"})]


# ------------------------------------------------------------------------------------------------------------- system


def test_the_leading_system_messages_are_blocks_with_their_cache_points() -> None:
    prompt = [SystemMessage("one", own(cachePoint=POINT)), SystemMessage("two"), said("q")]
    native, warnings = converted(*prompt)
    assert native.system == [{"text": "one"}, CACHE, {"text": "two"}]
    assert warnings == []


def test_another_late_system_message_leaves_what_stands_before_as_it_was() -> None:
    begin: list[Message] = [SystemMessage("head"), said("start"), answered("ok"), SystemMessage("one")]
    before, after = converted(*begin)[0], converted(*begin, SystemMessage("two"))[0]
    assert before.system == after.system
    assert before.messages[:2] == after.messages[:2]


def test_late_system_messages_keep_their_role_where_that_is_asked_for() -> None:
    prompt = [said("q"), answered(called()), SystemMessage("rule"), told(result()), said("go")]
    native, warnings = converted(*prompt, late_system="system")
    assert roles(native.messages) == ["user", "assistant", "user", "system", "user"]
    assert warnings == []


# ---------------------------------------------------------------------------------------------------------- reasoning


def test_signed_and_redacted_reasoning_go_back_unchanged() -> None:
    signed = ReasoningPart(" think ", own(signature="SIG"))
    redacted = [
        ReasoningPart("", own(redactedContent=data)) for data in ("AAE=", "AAE", {"$bytes": "AAE="}, b"\x00\x01")
    ]
    _, message = messages_of(said("q"), answered(signed, *redacted))
    assert message["content"] == [
        {"reasoningContent": {"reasoningText": {"text": " think ", "signature": "SIG"}}},
        *[{"reasoningContent": {"redactedContent": b"\x00\x01"}}] * 4,
    ]


def test_reasoning_without_a_signature_is_left_out_with_one_warning() -> None:
    native, warnings = converted(said("q"), answered(ReasoningPart("a"), ReasoningPart("b"), "so"), said("next"))
    assert native.messages[1]["content"] == [{"text": "so"}]
    (warning,) = warnings
    assert warning.feature == "reasoning"
    assert "prompt[1].content[0] and 1 more" in (warning.details or "")


def test_redacted_reasoning_that_is_not_base64_is_refused_by_its_place() -> None:
    with pytest.raises(InvalidRequestError, match=r"prompt\[1\]\.content\[0\]: redactedContent is base64"):
        messages_of(said("q"), answered(ReasoningPart("", own(redactedContent="%%"))))


# ------------------------------------------------------------------------------------------------------- cache points


def test_cache_points_stand_after_what_they_belong_to() -> None:
    prompt = [
        UserMessage(
            [TextPart("doc", own(cachePoint=POINT)), TextPart("q")], own(cachePoint={"type": "default", "ttl": "1h"})
        ),
        answered(called("a", cachePoint=POINT)),
        told(result("a", cachePoint=POINT)),
        said("next"),
    ]
    messages = messages_of(*prompt)
    assert messages[0] == user({"text": "doc"}, CACHE, {"text": "q"}, {"cachePoint": {"type": "default", "ttl": "1h"}})
    assert messages[1]["content"][1] == CACHE
    assert [next(iter(block)) for block in messages[2]["content"]] == ["toolResult", "cachePoint", "text"]


def test_a_cache_point_follows_its_result_when_results_are_put_in_order() -> None:
    prompt = [said("q"), answered(called("a"), called("b")), told(result("b", cachePoint=POINT), result("a"))]
    assert [next(iter(block)) for block in messages_of(*prompt)[2]["content"]] == [
        "toolResult",
        "toolResult",
        "cachePoint",
    ]


def test_a_cache_point_after_nothing_is_not_sent() -> None:
    assert messages_of(said("q"), said(" ", cachePoint=POINT), said("r")) == [user({"text": "q"}, {"text": "r"})]


def test_a_cache_point_before_all_system_text_is_not_sent() -> None:
    native, _ = converted(SystemMessage(" ", own(cachePoint=POINT)), SystemMessage("two"), said("q"))
    assert native.system == [{"text": "two"}]


def test_a_cache_point_that_is_no_object_is_refused_by_its_place() -> None:
    with pytest.raises(InvalidRequestError, match=r"prompt\[0\]: cachePoint is an object"):
        messages_of(said("q", cachePoint=True))


# ------------------------------------------------------------------------------------------------------- other parts


def test_a_native_block_is_sent_as_it_is() -> None:
    block = {"guardContent": {"text": {"text": "check me", "qualifiers": ["query"]}}}
    part = UnknownPart("custom", {"kind": "bedrock.guardContent", "providerOptions": own(block=block)})
    assert messages_of(said("q", part)) == [user({"text": "q"}, block)]


def test_a_native_block_of_blank_text_is_not_sent() -> None:
    part = UnknownPart("custom", {"kind": "bedrock.text", "providerOptions": own(block={"text": " "})})
    native, _ = converted(SystemMessage("", own(block={"text": "\n"})), said("q", part), answered(part, "a"), said("r"))
    assert native.system == []
    assert native.messages == [
        user({"text": "q"}),
        {"role": "assistant", "content": [{"text": "a"}]},
        user({"text": "r"}),
    ]


def test_a_part_of_an_answer_goes_back_where_its_metadata_holds_a_block() -> None:
    block = {"searchResult": {"source": "s", "title": "t", "content": [{"text": "x"}]}}
    part = UnknownPart("custom", {"kind": "bedrock.searchResult", "providerMetadata": own(block=block)})
    assert messages_of(said("q"), answered(part))[1]["content"] == [block]


def test_an_unknown_part_is_refused_in_a_question_and_left_out_of_an_answer_with_a_warning() -> None:
    part = UnknownPart("reasoning-file", {})
    with pytest.raises(InvalidRequestError, match=r"prompt\[0\]\.content\[0\]: a user message carries text and files"):
        messages_of(said(part))
    assert features(said("q"), answered(part, "so")) == ["reasoning-file part in an assistant message"]


def test_cited_text_goes_back_with_its_citations() -> None:
    part = TextPart("so", own(citations=[{"title": "law"}]))
    assert messages_of(said("q"), answered(part))[1]["content"] == [
        {"citationsContent": {"content": [{"text": "so"}], "citations": [{"title": "law"}]}}
    ]


def test_without_tools_calls_and_results_are_left_out_with_one_warning() -> None:
    prompt = [said("q"), answered("hm", called()), told(result()), answered(called("t2")), said("go on")]
    native, warnings = converted(*prompt, with_tools=False)
    assert native.messages == [
        user({"text": "q"}),
        {"role": "assistant", "content": [{"text": "hm"}]},
        user({"text": "go on"}),
    ]
    assert [one.feature for one in warnings] == ["toolContent"]


def test_a_message_that_is_none_is_refused_by_its_place() -> None:
    with pytest.raises(InvalidRequestError, match=r"prompt\[0\]: expected a system, user, assistant or tool message"):
        messages_of("Hi")


# -------------------------------------------------------------------------------------------------- reports from others

BUGS = {case["id"]: case for case in json.loads((Path(__file__).parent / "field_bugs.json").read_text("utf-8"))}


def _prompt(data: list[Json]) -> list[Message]:
    return [from_json(Message, message) for message in data]


def test_results_of_parallel_calls_share_one_message_b01() -> None:
    case = BUGS["B01"]
    assert messages_of(*_prompt(case["given"]["prompt"])) == case["expect"]["bedrock_messages"]


def test_blank_text_of_a_model_does_not_come_back_b02() -> None:
    for variant, expect in zip(BUGS["B02"]["given"]["variants"], BUGS["B02"]["expect"]["variants"], strict=True):
        messages = messages_of(*_prompt(variant["prompt"]))
        _keeps_the_rules(messages)
        wanted = expect.get("bedrock_messages", messages)
        assert messages[:2] == wanted[:2]


# ------------------------------------------------------------------------------------------------------ what must hold


@settings(max_examples=250, deadline=None)
@given(PROMPTS)
def test_any_prompt_keeps_the_rules_of_converse_or_is_refused_by_its_place(prompt: list[Message]) -> None:
    for model_id in (CLAUDE, MISTRAL):
        try:
            native, _ = converted(*prompt, model_id=model_id)
        except InvalidRequestError as error:
            assert str(error).startswith("prompt[")  # noqa: PT017  # either outcome is right
            continue
        _keeps_the_rules(native.messages)
    stripped, _ = converted(*prompt, with_tools=False)
    _keeps_the_rules(stripped.messages)
    assert not any("toolUse" in block or "toolResult" in block for block in _blocks(stripped.messages))


def _blocks(messages: list[Json]) -> list[Json]:
    return [block for message in messages for block in message["content"]]


def _keeps_the_rules(messages: list[Json]) -> None:
    assert all(one != two for one, two in zip(roles(messages), roles(messages)[1:], strict=False)), "roles alternate"
    for message in messages:
        assert message["content"], "no message without content"
    assert all(block["text"].strip() for block in _blocks(messages) if "text" in block), "no blank text"
    for number, message in enumerate(messages):
        asked = [block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block]
        given = [block["toolResult"]["toolUseId"] for block in message["content"] if "toolResult" in block]
        before = messages[number - 1]["content"] if number else []
        if message["role"] == "user":
            assert given == [block["toolUse"]["toolUseId"] for block in before if "toolUse" in block], (
                "paired, in order"
            )
            kinds = [next(iter(block)) for block in message["content"]]
            results = [n for n, kind in enumerate(kinds) if kind == "toolResult"]
            assert all(kind in ("toolResult", "cachePoint") for kind in kinds[: max(results, default=0)]), (
                "results first"
            )
        else:
            assert not given
            assert not asked or number + 1 < len(messages), "every call is answered"
