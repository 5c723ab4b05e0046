"""JSON answers: which way is taken, and the pieces of the additive one in Anthropic's shapes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from neurolink_mw.protocol import (
    ContentOutput,
    FilePart,
    OutputContent,
    OutputCustom,
    OutputFileData,
    ResponseFormat,
    ToolChoice,
)
from neurolink_mw.providers.anthropic.request import expected_of
from neurolink_mw.providers.anthropic.structured_output import (
    FINAL_RESULT_INSTRUCTION,
    FINAL_RESULT_TOOL_NAME,
    append_final_result_instruction,
    append_final_result_tool,
    append_tool_answer_instruction,
    build_final_result_tool,
    stringify_final_result_input,
    tool_answer_instruction,
)
from neurolink_mw.structured import AnswerTool

from .builders import (
    CITY,
    FINDER,
    LOOK,
    MARK,
    OPUS_55,
    SONNET_4,
    Json,
    answered,
    as_json,
    called,
    instructed,
    options,
    own,
    quiet,
    request,
    result,
    said,
    told,
    warned,
)

LIST: Json = {"type": "array", "items": {"type": "integer"}}
TOOL: Json = {"name": "look", "input_schema": {"type": "object"}}
TEXT: Json = {"type": "text", "text": "x"}
INSTRUCTION: Json = {"type": "text", "text": FINAL_RESULT_INSTRUCTION.strip()}
THINKING = {"type": "enabled", "budgetTokens": 2000}


def names(native: Json) -> list[str]:
    return [tool["name"] for tool in native.get("tools", [])]


def answer(native: Json, **call: Any) -> AnswerTool | None:
    return expected_of(options(**call), native).answer


# ---------------------------------------------------------------------------------------------------------- the pieces


def test_the_tool_is_self_contained_and_takes_an_object() -> None:
    schema: Json = {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"c": {"type": "string"}}}
    tool = build_final_result_tool({**schema, "type": "object", "properties": {"city": {"$ref": "#/definitions/c"}}})
    assert tool["name"] == FINAL_RESULT_TOOL_NAME == "final_result"
    assert tool["input_schema"] == {"type": "object", "properties": {"city": {"type": "string"}}}


def test_another_root_is_put_under_a_key() -> None:
    schema = build_final_result_tool(LIST)["input_schema"]
    assert isinstance(schema, dict)
    assert (schema["type"], schema["properties"]) == ("object", {"value": LIST})


def test_the_tool_is_added_to_a_new_list() -> None:
    given = [dict(TOOL)]
    tools, applied = append_final_result_tool(given, CITY)
    assert applied
    assert tools is not None
    assert [tool["name"] for tool in tools] == ["look", "final_result"]
    assert given == [TOOL]


@pytest.mark.parametrize("given", [None, [], [{**TOOL, "name": "final_result"}]])
def test_the_tool_is_not_added_where_nothing_is_to_be_kept_or_its_name_is_taken(given: list[Json] | None) -> None:
    assert append_final_result_tool(given, CITY) == (given, False)


def test_the_instruction_follows_a_string_after_a_blank_line() -> None:
    assert append_final_result_instruction("Be brief.") == f"Be brief.{FINAL_RESULT_INSTRUCTION}"
    assert FINAL_RESULT_INSTRUCTION.startswith("\n\nIMPORTANT")


@pytest.mark.parametrize("system", [None, "", " "])
def test_without_a_system_text_the_instruction_stands_alone(system: str | None) -> None:
    assert append_final_result_instruction(system) == FINAL_RESULT_INSTRUCTION.strip()


def test_blocks_get_a_new_one_and_none_is_edited() -> None:
    block: Json = {"type": "text", "text": "a", "cache_control": MARK}
    given = [block]
    made = append_tool_answer_instruction(given, "answer")
    assert made == [block, {"type": "text", "text": tool_answer_instruction("answer").strip()}]
    assert given == [{"type": "text", "text": "a", "cache_control": MARK}]


def test_an_input_is_canonical_json_and_one_that_was_cut_stays() -> None:
    assert stringify_final_result_input('{ "city" : "Oslo" }') == '{"city":"Oslo"}'
    assert stringify_final_result_input('{ "city": "Os') == '{ "city": "Os'


# ------------------------------------------------------------------------------------------------------------ the ways


def test_a_schema_alone_is_the_models_own_format() -> None:
    native = quiet(options(response_format=as_json()))
    assert native["output_config"]["format"]["type"] == "json_schema"
    assert native["output_config"]["format"]["schema"]["additionalProperties"] is False
    assert "tools" not in native
    assert answer(native, response_format=as_json()) is None


def test_a_model_takes_its_format_beside_tools() -> None:
    native = quiet(options(response_format=as_json(), tools=[LOOK]))
    assert "format" in native["output_config"]
    assert names(native) == ["look"]
    assert "tool_choice" not in native


def test_without_a_format_the_only_tool_is_forced() -> None:
    native = quiet(options(response_format=as_json(description="where it is")), SONNET_4)
    assert names(native) == ["json"]
    assert native["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    assert native["tools"][0]["description"].endswith("It is: where it is")
    assert answer(native, response_format=as_json()) == AnswerTool("json", None)


def test_beside_tools_final_result_comes_last_and_the_choice_stays() -> None:
    system = instructed("a", cacheControl=MARK)
    call = options(system, said("q"), response_format=as_json(LIST), tools=[LOOK, FINDER])
    native = quiet(call, SONNET_4)
    assert names(native) == ["look", "web_search", "final_result"]
    assert "tool_choice" not in native
    assert native["system"] == [{"type": "text", "text": "a", "cache_control": MARK}, INSTRUCTION]
    assert expected_of(call, native).answer == AnswerTool("final_result", "value")


def test_a_choice_of_the_callers_stays_beside_final_result() -> None:
    call = options(response_format=as_json(), tools=[LOOK], tool_choice=ToolChoice("tool", "look"))
    assert quiet(call, SONNET_4)["tool_choice"] == {"type": "tool", "name": "look"}


def test_while_it_thinks_no_tool_is_forced() -> None:
    native = quiet(options(response_format=as_json(), provider_options=own(thinking=THINKING)), SONNET_4)
    assert names(native) == ["final_result"]
    assert "tool_choice" not in native
    assert native["system"] == [INSTRUCTION]


def test_a_model_that_refuses_forced_tools_is_asked_in_words() -> None:
    native = quiet(options(response_format=as_json(), provider_options=own(structuredOutputMode="jsonTool")), OPUS_55)
    assert names(native) == ["final_result"]
    assert "tool_choice" not in native


def test_where_calls_are_forbidden_the_answer_is_the_only_one_that_may_come() -> None:
    call = options(response_format=as_json(), tools=[LOOK], tool_choice=ToolChoice("none"))
    native = quiet(call, SONNET_4)
    assert names(native) == ["look", "final_result"]
    assert native["tool_choice"] == {"type": "tool", "name": "final_result", "disable_parallel_tool_use": True}
    assert expected_of(call, native).no_calls


def test_where_calls_are_forbidden_while_it_thinks_the_answer_is_asked_for_in_words() -> None:
    call = options(
        response_format=as_json(), tools=[LOOK], tool_choice=ToolChoice("none"), provider_options=own(thinking=THINKING)
    )
    native, features = request(call, SONNET_4)
    assert names(native) == ["look"]
    assert native["tool_choice"] == {"type": "none"}
    assert features == ["responseFormat"]


def test_a_tool_of_that_name_is_the_callers_and_the_schema_is_said_in_words() -> None:
    call = options(instructed("a"), said("q"), response_format=as_json(), tools=[LOOK.replace(name="final_result")])
    native, features = request(call, SONNET_4)
    assert names(native) == ["final_result"]
    assert json.dumps(CITY, separators=(",", ":")) in native["system"][1]["text"]
    assert native["system"][0] == {"type": "text", "text": "a"}
    assert features == ["responseFormat"]
    assert expected_of(call, native).answer is None


def test_cited_documents_go_with_no_format() -> None:
    document = FilePart("text/plain", b"x", "n.txt", own(citations={"enabled": True}))
    native = quiet(options(said(document, "q"), response_format=as_json()))
    assert names(native) == ["json"]


@pytest.mark.parametrize(
    "piece",
    [
        OutputFileData(b"x", "text/plain", "n.txt", own(citations={"enabled": True})),
        OutputCustom(own(type="search-result", source="s", title="t", content=[TEXT], citations={"enabled": True})),
    ],
    ids=["document", "search result"],
)
def test_nor_do_those_that_a_tool_gave(piece: OutputContent) -> None:
    cited = told(result("c1", ContentOutput((piece,))))
    native = quiet(options(said("q"), answered(called("c1")), cited, response_format=as_json(), tools=[LOOK]))
    assert "output_config" not in native
    assert names(native) == ["look", "final_result"]


def test_a_schema_that_the_format_cannot_say_goes_by_a_tool_unless_the_caller_wants_the_format() -> None:
    by_name = as_json({"type": "object", "additionalProperties": {"type": "integer"}})
    native = quiet(options(response_format=by_name))
    assert names(native) == ["json"]
    assert native["tools"][0]["input_schema"]["additionalProperties"] == {"type": "integer"}
    wanted = options(response_format=by_name, provider_options=own(structuredOutputMode="outputFormat"))
    native, features = request(wanted)
    assert "format" in native["output_config"]
    assert features == ["responseFormat"]


@pytest.mark.parametrize(("mode", "model_id"), [("outputFormat", SONNET_4), ("auto", "claude-haiku-4-5")])
def test_the_callers_word_on_the_way_counts(mode: str, model_id: str) -> None:
    native = quiet(options(response_format=as_json(), provider_options=own(structuredOutputMode=mode)), model_id)
    assert "format" in native["output_config"]


def test_a_format_in_the_apis_own_words_counts() -> None:
    given = {"type": "json_schema", "schema": {"type": "object", "properties": {"someName": {}}}}
    call = options(response_format=as_json(), provider_options=own(outputConfig={"format": given}))
    assert quiet(call, SONNET_4)["output_config"] == {"format": given}


def test_an_answer_is_streamed_as_it_is_written() -> None:
    native = quiet(options(response_format=as_json(), tools=[LOOK]), SONNET_4, stream=True)
    assert [tool["eager_input_streaming"] for tool in native["tools"]] == [True, True]


def test_json_without_a_schema_is_left_out_with_a_warning() -> None:
    _, (warning,) = warned(options(response_format=ResponseFormat("json")))
    assert (warning.type, warning.feature) == ("unsupported", "responseFormat")


def test_what_could_not_be_inlined_is_told() -> None:
    schema = {"type": "object", "properties": {"city": {"$ref": "https://elsewhere.test/city.json"}}}
    _, (warning,) = warned(options(response_format=as_json(schema)), SONNET_4)
    assert (warning.type, warning.feature) == ("compatibility", "responseFormat")
    assert "elsewhere.test" in str(warning.details)
