"""From a call to a request body."""

from __future__ import annotations

import base64
import json
from types import MappingProxyType
from typing import Any, cast

import pytest

from neurolink_mw.errors import InvalidRequestError
from neurolink_mw.protocol import (
    AssistantMessage,
    CallContext,
    CallOptions,
    ContentOutput,
    ExecutionDenied,
    FilePart,
    FunctionTool,
    JsonOutput,
    Message,
    OutputImageData,
    OutputText,
    ProviderTool,
    ReasoningPart,
    ResponseFormat,
    SystemMessage,
    TextPart,
    ToolApprovalResponsePart,
    ToolCallPart,
    ToolChoice,
    ToolExample,
    ToolMessage,
    ToolResultPart,
    UnknownPart,
    Url,
    UserMessage,
    user,
)
from neurolink_mw.providers.openai_compatible.request import build_request

Json = dict[str, Any]
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01"
TOOL = FunctionTool("look", {"type": "object"})


def body(options: CallOptions | None = None, /, **settings: Any) -> Json:
    return cast(Json, build_request("m", options or CallOptions.from_text("Hi"), **settings)[0])


def message(one: Message) -> Any:
    return body(CallOptions([one]))["messages"][0]


def content(*parts: Any) -> Any:
    return message(UserMessage([TextPart("see"), *parts]))["content"][1]


def with_options(provider: str = "acme", /, **given: Any) -> Json:
    return body(CallOptions([user("Hi")], provider_options=given), provider=provider)


def test_zero_and_empty_are_values_and_only_none_is_unset() -> None:
    options = CallOptions(
        [user("")], max_output_tokens=0, temperature=0, top_p=0.0, seed=0, presence_penalty=0, stop_sequences=[]
    )
    assert body(options) == {
        "model": "m",
        "max_tokens": 0,
        "temperature": 0,
        "top_p": 0.0,
        "seed": 0,
        "presence_penalty": 0,
        "stop": [],
        "messages": [{"role": "user", "content": ""}],
    }
    assert body(CallOptions([user("Hi")])).keys() == {"model", "messages"}


def test_metadata_context_and_unknown_options_are_never_sent() -> None:
    options = CallOptions([user("Hi")], metadata={"tenant": "secret-tenant"}, context=CallContext(), extra={"x": 1})
    assert body(options) == body()


@pytest.mark.parametrize("level", ["none", "minimal", "low", "high", "xhigh"])
def test_the_reasoning_level_is_the_effort(level: str) -> None:
    assert body(CallOptions([user("Hi")], reasoning=level))["reasoning_effort"] == level


def test_the_providers_default_effort_is_not_sent_and_its_own_option_wins() -> None:
    assert "reasoning_effort" not in body(CallOptions([user("Hi")], reasoning="provider-default"))
    options = CallOptions([user("Hi")], reasoning="low", provider_options={"acme": {"reasoningEffort": "high"}})
    assert body(options, provider="acme")["reasoning_effort"] == "high"


# ------------------------------------------------------------------------------------------------ provider options


def test_the_own_key_wins_over_the_generic_one_and_nulls_are_unset() -> None:
    native = with_options(acme={"user": "a", "knob": 0, "gone": None}, openaiCompatible={"user": "b", "other": 1})
    assert (native["user"], native["knob"]) == ("a", 0)
    assert native.keys().isdisjoint({"gone", "other"})


def test_unknown_options_may_replace_a_setting_but_not_the_messages() -> None:
    options = CallOptions([user("Hi")], temperature=1, provider_options={"acme": {"temperature": 0, "messages": []}})
    native = body(options, provider="acme")
    assert native["temperature"] == 0
    assert len(native["messages"]) == 1


def test_extra_body_is_merged_last_the_calls_over_the_models() -> None:
    options = CallOptions([user("Hi")], seed=1, provider_options={"acme": {"extraBody": {"a": 2, "seed": 3}}})
    native = body(options, provider="acme", extra_body={"a": 1, "b": 1, "null": None})
    assert (native["a"], native["b"], native["seed"], native["null"]) == (2, 1, 3, None)
    assert with_options(acme={"extra_body": {"c": 1}})["c"] == 1
    assert with_options(openaiCompatible={"extraBody": {"c": 1}})["c"] == 1


def test_no_option_turns_a_call_into_a_stream_or_a_stream_into_a_call() -> None:
    wild = {"stream": True, "stream_options": {"include_usage": True}}
    assert body(extra_body=wild).keys() == {"model", "messages"}
    assert with_options(acme=wild).keys() == {"model", "messages"}
    assert body(stream=True, extra_body={"stream": False})["stream"] is True


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"user": 5}, r"\['user'\] is a string, not int"),
        ({"reasoningEffort": {}}, r"\['reasoningEffort'\] is a string"),
        ({"strictJsonSchema": "no"}, r"\['strictJsonSchema'\] is true or false"),
        ({"extraBody": [1]}, r"\['extraBody'\] is an object"),
    ],
)
def test_a_known_option_of_the_wrong_kind_is_refused_by_name(given: Json, place: str) -> None:
    with pytest.raises(InvalidRequestError, match=rf"provider_options\['acme'\]{place}"):
        with_options(acme=given)


# ------------------------------------------------------------------------------------------------------- messages


def test_messages_and_parts_carry_their_own_extra_fields() -> None:
    mark = {"openaiCompatible": {"cache_control": {"type": "ephemeral"}}}
    own = {"acme": {"cache_control": {"type": "ephemeral"}}}
    options = CallOptions(
        [
            SystemMessage("s", provider_options=mark),
            UserMessage([TextPart("a", provider_options=own), TextPart("b")]),
            UserMessage([TextPart("a", provider_options=mark)]),
            UserMessage([TextPart("a")], provider_options={"other": {"x": 1}}),
        ]
    )
    marked = {"cache_control": {"type": "ephemeral"}}
    assert body(options, provider="acme")["messages"] == [
        {"role": "system", "content": "s", **marked},
        {"role": "user", "content": [{"type": "text", "text": "a", **marked}, {"type": "text", "text": "b"}]},
        {"role": "user", "content": "a", **marked},
        {"role": "user", "content": "a"},
    ]


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (b"GIF89a" + b"\0" * 7, "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"?", "image/jpeg"),
    ],
)
@pytest.mark.parametrize("wildcard", ["image/*", "image"])
def test_an_image_of_any_type_is_looked_at(data: bytes, media_type: str, wildcard: str) -> None:
    url = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
    assert content(FilePart(wildcard, data)) == {"type": "image_url", "image_url": {"url": url}}


def test_an_image_may_be_an_address() -> None:
    native = content(FilePart("image/*", Url("https://a.test/i"), provider_options={"openaiCompatible": {"x": 1}}))
    assert native == {"type": "image_url", "image_url": {"url": "https://a.test/i"}, "x": 1}


@pytest.mark.parametrize(("media_type", "format"), [("audio/wav", "wav"), ("audio/mpeg", "mp3"), ("audio/mp3", "mp3")])
def test_speech_is_sent_as_wav_or_mp3(media_type: str, format: str) -> None:
    native = content(FilePart(media_type, b"\0\0\0"))
    assert native == {"type": "input_audio", "input_audio": {"data": "AAAA", "format": format}}


def test_a_pdf_is_a_file_with_a_fixed_name_unless_it_has_one() -> None:
    data = "data:application/pdf;base64,AAAA"
    for filename, sent in ((None, "document.pdf"), ("a.pdf", "a.pdf")):
        native = content(FilePart("application/pdf", b"\0\0\0", filename))
        assert native == {"type": "file", "file": {"filename": sent, "file_data": data}}


def test_a_text_file_is_sent_as_text() -> None:
    assert content(FilePart("text/csv; charset=utf-8", "\ufeffé".encode())) == {"type": "text", "text": "é"}


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        (FilePart("video/mp4", b"x"), "unsupported media type 'video/mp4'; this format carries text/*, image/*"),
        (FilePart("audio/ogg", b"x"), "unsupported media type 'audio/ogg'"),
        (FilePart("application/pdf", Url("https://a.test/x")), "sent as bytes here, never as an address"),
        (FilePart("text/plain", b"\xff"), "is not UTF-8"),
        (UnknownPart("hologram", {}), "not a part of type 'hologram'"),
    ],
)
def test_what_the_format_cannot_carry_is_refused_by_its_place(part: Any, fault: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"^prompt\[1\]\.content\[1\]: ") as caught:
        body(CallOptions([user("Hi"), UserMessage([TextPart("see"), part])]))
    assert fault in str(caught.value)
    assert (caught.value.provider, caught.value.model_id, caught.value.retryable) == ("openai-compatible", "m", False)


def test_reasoning_is_sent_back_beside_text_and_calls() -> None:
    native = message(AssistantMessage([ReasoningPart("h"), ReasoningPart("m"), ToolCallPart("c", "look", {"q": 1.5})]))
    assert native == {
        "role": "assistant",
        "content": None,
        "reasoning_content": "hm",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"q":1.5}'}}],
    }
    assert message(AssistantMessage([ReasoningPart("h")]))["content"] == ""


def test_what_a_provider_ran_itself_is_left_out_of_the_history_with_a_warning() -> None:
    parts: list[Any] = [
        ToolCallPart("c", "search", {}, provider_executed=True),
        ToolResultPart("c", "search", JsonOutput([])),
        FilePart("image/png", PNG),
        TextPart("found"),
    ]
    native, warnings = build_request("m", CallOptions([AssistantMessage(parts)]))
    assert native["messages"] == [{"role": "assistant", "content": "found"}]
    assert [warning.type for warning in warnings] == ["unsupported"] * 3
    assert warnings[1].details == "prompt[0].content[1] has no place in an assistant message of this format " + (
        "and was left out"
    )


def test_a_signature_that_came_with_a_call_goes_back_with_it() -> None:
    part = ToolCallPart("c", "f", {}, provider_options={"openai-compatible": {"thoughtSignature": "s"}})
    (call,) = message(AssistantMessage([part]))["tool_calls"]
    assert call["extra_content"] == {"google": {"thought_signature": "s"}}
    assert "thoughtSignature" not in call


def test_each_tool_result_is_a_message_and_approvals_are_none() -> None:
    content = ContentOutput((OutputText("t"), OutputImageData(b"\0\0\0", "image/png")))
    results: list[Any] = [
        ToolResultPart("a", "f", content),
        ToolApprovalResponsePart("x", approved=True),
        ToolResultPart("b", "f", ExecutionDenied()),
        ToolResultPart("c", "f", JsonOutput({"é": 2**70})),
    ]
    first, second, third = body(CallOptions([ToolMessage(results)]))["messages"]
    assert json.loads(first["content"])[1] == {"type": "image-data", "data": "AAAA", "mediaType": "image/png"}
    assert second == {"role": "tool", "tool_call_id": "b", "content": "Tool execution denied."}
    assert json.loads(third["content"]) == {"é": 2**70}


def test_an_input_without_a_json_form_is_refused_by_its_place() -> None:
    part = ToolCallPart("c", "f", {"at": object()})  # type: ignore[dict-item]  # that is the point
    with pytest.raises(InvalidRequestError, match=r"prompt\[0\]\.content\[0\]\.input: holds a value"):
        body(CallOptions([AssistantMessage([part])]))


def test_read_only_mappings_are_json_like_any_other() -> None:
    part = ToolCallPart("c", "f", MappingProxyType({"q": (1, MappingProxyType({}))}))
    (call,) = message(AssistantMessage([part]))["tool_calls"]
    assert call["function"]["arguments"] == '{"q":[1,{}]}'


# ---------------------------------------------------------------------------------------------- tools and formats


def test_provider_tools_alone_leave_neither_tools_nor_choice() -> None:
    options = CallOptions([user("Hi")], tools=[ProviderTool("x.y", "y")], tool_choice=ToolChoice("required"))
    native, warnings = build_request("m", options)
    assert native.keys() == {"model", "messages"}
    assert warnings[0].feature == "provider-defined tool x.y"


def test_input_examples_have_no_native_form_and_one_warning_names_the_remedy() -> None:
    examples = (ToolExample({"q": "secret"}),)
    with_examples = [TOOL.replace(input_examples=examples), FunctionTool("find", {}, input_examples=examples)]
    native, warnings = build_request("m", CallOptions([user("Hi")], tools=with_examples))
    without = [TOOL, FunctionTool("find", {}, input_examples=())]
    assert build_request("m", CallOptions([user("Hi")], tools=without)) == (native, ())
    (warning,) = warnings
    assert (warning.type, warning.feature) == ("unsupported", "inputExamples")
    assert "add_tool_input_examples" in (warning.details or "")
    assert "secret" not in (warning.details or "")


def test_a_tool_choice_that_is_none_of_the_known_is_refused() -> None:
    for choice in (ToolChoice("sometimes"), ToolChoice("tool")):
        with pytest.raises(InvalidRequestError, match="tool_choice: expected one of auto, none, required"):
            body(CallOptions([user("Hi")], tools=[TOOL], tool_choice=choice))


def test_strict_is_sent_where_it_is_set() -> None:
    for strict, sent in ((None, {}), (False, {"strict": False})):
        (tool,) = body(CallOptions([user("Hi")], tools=[TOOL.replace(strict=strict)]))["tools"]
        assert tool["function"] == {"name": "look", "parameters": {"type": "object"}, **sent}


def test_a_schema_is_sent_strict_and_with_its_name_where_the_server_knows_schemas() -> None:
    format = ResponseFormat("json", {"type": "object"}, "city", "A city")
    native = body(CallOptions([user("Hi")], response_format=format), supports_structured_outputs=True)
    assert native["response_format"] == {
        "type": "json_schema",
        "json_schema": {"schema": {"type": "object"}, "strict": True, "name": "city", "description": "A city"},
    }
    assert "response_format" not in body(CallOptions([user("Hi")], response_format=ResponseFormat("text")))


def test_a_call_for_several_answers_is_refused_since_a_call_has_one() -> None:
    with pytest.raises(InvalidRequestError, match="n: a call has one answer"):
        build_request("m", CallOptions.from_text("hi"), extra_body={"n": 2})


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_cannot_hold_is_refused(number: float) -> None:
    with pytest.raises(InvalidRequestError, match=r"temperature: (nan|inf) is no number that JSON can hold"):
        build_request("m", CallOptions.from_text("hi").replace(temperature=number))


def test_a_tool_choice_that_names_no_tool_of_the_call_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="tool_choice: 'other' is none of the tools of the call"):
        body(CallOptions([user("Hi")], tools=[TOOL], tool_choice=ToolChoice("tool", "other")))
