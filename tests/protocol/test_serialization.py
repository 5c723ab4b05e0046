"""JSON in and out: nothing is lost, the keys are the AI SDK's, and an error says where."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.errors import OverloadedError, ProtocolError, RateLimitError, TurnError
from neurolink_mw.protocol import (
    AssistantMessage,
    BooleanQuestion,
    CallContext,
    CallOptions,
    CallWarning,
    ContentOutput,
    DecideOptions,
    DecideResult,
    ErrorPart,
    ExecutionDenied,
    File,
    FilePart,
    Finish,
    FinishReason,
    FunctionTool,
    GenerateResult,
    InputTokens,
    JsonOutput,
    Message,
    OutputCustom,
    OutputFileData,
    OutputFileId,
    OutputFileUrl,
    OutputImageData,
    OutputImageFileId,
    OutputImageUrl,
    OutputText,
    OutputTokens,
    ProviderTool,
    Raw,
    Reasoning,
    ReasoningPart,
    ResponseFormat,
    ResponseInfo,
    ResponseMetadata,
    Source,
    StreamPart,
    StreamResult,
    StreamStart,
    SystemMessage,
    Text,
    TextDelta,
    TextEnd,
    TextOutput,
    TextPart,
    ToolApprovalRequest,
    ToolApprovalResponsePart,
    ToolCall,
    ToolCallPart,
    ToolChoice,
    ToolExample,
    ToolInputStart,
    ToolMessage,
    ToolOutcome,
    ToolOutput,
    ToolResult,
    ToolResultPart,
    UnknownPart,
    Url,
    Usage,
    UserMessage,
    Value,
    camel_case,
    from_json,
    to_json,
    user,
    with_context,
)

from .strategies import TYPES, few, quick, streams, values_of

each_type = pytest.mark.parametrize("cls", TYPES, ids=lambda cls: cls.__name__)
PIXEL = b"\x89PNG\xff\xfe"


def through_json(obj: object) -> Any:
    """As another process would get it: real JSON text in between."""
    return json.loads(json.dumps(to_json(obj), allow_nan=False))


def path_of(type: object, data: object) -> str:
    with pytest.raises(ProtocolError) as caught:
        from_json(type, data)
    return caught.value.path


# -------------------------------------------------------------------------------------------------------- round trips


@each_type
@quick
@given(data=st.data())
def test_a_value_comes_back_from_json_as_it_went(cls: type[Value], data: st.DataObject) -> None:
    one = data.draw(values_of(cls))
    assert from_json(cls, through_json(one)) == one


@quick
@given(parts=streams)
def test_a_stream_comes_back_from_json_part_by_part(parts: list[StreamPart]) -> None:
    assert [from_json(StreamPart, item) for item in through_json(parts)] == parts


@quick
@given(message=st.one_of(*(values_of(kind) for kind in (SystemMessage, UserMessage, AssistantMessage, ToolMessage))))
def test_a_message_is_known_by_its_role(message: Value) -> None:
    assert from_json(Message, through_json(message)) == message


@each_type
@few
@given(data=st.data())
def test_json_does_not_share_anything_with_the_value(cls: type[Value], data: st.DataObject) -> None:
    one = data.draw(values_of(cls))
    before = json.dumps(to_json(one))
    _spoil(to_json(one))
    assert json.dumps(to_json(one)) == before


def _spoil(data: object) -> None:
    if isinstance(data, dict):
        for item in data.values():
            _spoil(item)
        data["spoilt"] = True
    elif isinstance(data, list):
        for item in data:
            _spoil(item)
        data.append("spoilt")


@each_type
@few
@given(data=st.data())
def test_unknown_fields_survive(cls: type[Value], data: st.DataObject) -> None:
    if cls is ToolOutcome:  # never leaves the process
        return
    written = through_json(data.draw(values_of(cls)))
    written["fromTheFuture"] = {"a": [1, None, "x"]}
    assert through_json(from_json(cls, written)) == written


# ------------------------------------------------------------------------------------------------ the AI SDK's spelling

CALL: dict[str, Any] = {
    "prompt": [
        {"role": "system", "content": "be brief", "providerOptions": {"anthropic": {"cacheControl": {"type": "x"}}}},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "what is this"},
                {"type": "file", "mediaType": "image/*", "data": base64.b64encode(PIXEL).decode(), "filename": "a.png"},
                {"type": "file", "mediaType": "application/pdf", "data": "https://example.com/a.pdf"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "reasoning", "text": "hm", "providerOptions": {"anthropic": {"signature": "s"}}},
                {
                    "type": "tool-call",
                    "toolCallId": "c1",
                    "toolName": "look",
                    "input": {"at": 1},
                    "providerExecuted": False,
                },
            ],
        },
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "c1",
                    "toolName": "look",
                    "output": {"type": "json", "value": [1, None]},
                },
                {"type": "tool-approval-response", "approvalId": "a1", "approved": False, "reason": "no"},
            ],
        },
    ],
    "maxOutputTokens": 0,
    "temperature": 0,
    "topP": 0.5,
    "topK": 3,
    "presencePenalty": 0.1,
    "frequencyPenalty": 0.2,
    "seed": 7,
    "stopSequences": [],
    "responseFormat": {"type": "json", "schema": {"type": "object"}, "name": "n", "description": "d"},
    "tools": [
        {
            "type": "function",
            "name": "look",
            "inputSchema": {"type": "object", "additionalProperties": False},
            "description": "d",
            "inputExamples": [{"input": {"at": 1}}],
            "strict": True,
            "providerOptions": {"p": {"k": 1}},
        },
        {"type": "provider", "id": "anthropic.web_search", "name": "search", "args": {"maxUses": 1}},
    ],
    "toolChoice": {"type": "tool", "toolName": "look"},
    "reasoning": "low",
    "includeRawChunks": True,
    "headers": {"x-a": "1", "x-gone": None},
    "providerOptions": {"openai": {"store": False, "user_id": "kept_as_it_is"}},
    "metadata": {"tenantId": "t", "tags": ["a"]},
}

ANSWER: dict[str, Any] = {
    "content": [
        {"type": "text", "text": "hi", "providerMetadata": {"p": {"itemId": "i"}}},
        {"type": "reasoning", "text": "", "providerMetadata": {"anthropic": {"redactedData": "r"}}},
        {"type": "file", "mediaType": "image/png", "data": base64.b64encode(PIXEL).decode()},
        {
            "type": "tool-call",
            "toolCallId": "c1",
            "toolName": "look",
            "input": '{"at":1}',
            "providerExecuted": True,
            "dynamic": False,
        },
        {
            "type": "tool-result",
            "toolCallId": "c1",
            "toolName": "look",
            "result": {"found": 0},
            "isError": False,
            "preliminary": True,
            "dynamic": True,
        },
        {"type": "tool-approval-request", "approvalId": "a1", "toolCallId": "c1"},
        {"type": "source", "sourceType": "url", "id": "s1", "url": "https://example.com", "title": "t"},
        {
            "type": "source",
            "sourceType": "document",
            "id": "s2",
            "mediaType": "text/plain",
            "title": "t",
            "filename": "f",
        },
    ],
    "finishReason": {"unified": "tool-calls", "raw": "tool_use"},
    "usage": {
        "inputTokens": {"total": 3, "noCache": 1, "cacheRead": 2, "cacheWrite": 0},
        "outputTokens": {"total": 5, "text": 4, "reasoning": 1},
        "raw": {"input_tokens": 3},
    },
    "warnings": [{"type": "unsupported", "feature": "seed", "details": "d"}, {"type": "other", "message": "m"}],
    "providerMetadata": {"p": {"k": 1}},
    "request": {"body": {"model": "m"}},
    "response": {
        "id": "r1",
        "timestamp": "2025-01-02T03:04:05.678Z",
        "modelId": "m",
        "headers": {"x-a": "1"},
        "body": [1],
    },
}

STREAM: list[dict[str, Any]] = [
    {"type": "stream-start", "warnings": [{"type": "compatibility", "feature": "f"}]},
    {"type": "response-metadata", "id": "r1", "timestamp": "2025-01-02T03:04:05.678Z", "modelId": "m"},
    {"type": "raw", "rawValue": {"choices": []}},
    {"type": "text-start", "id": "0"},
    {"type": "text-delta", "id": "0", "delta": "hi", "providerMetadata": {"p": {}}},
    {"type": "text-end", "id": "0"},
    {"type": "reasoning-start", "id": "1"},
    {"type": "reasoning-delta", "id": "1", "delta": ""},
    {"type": "reasoning-end", "id": "1"},
    {
        "type": "tool-input-start",
        "id": "c1",
        "toolName": "look",
        "providerExecuted": True,
        "dynamic": True,
        "title": "Look",
    },
    {"type": "tool-input-delta", "id": "c1", "delta": "{}"},
    {"type": "tool-input-end", "id": "c1"},
    {"type": "tool-call", "toolCallId": "c1", "toolName": "look", "input": "{}"},
    {"type": "tool-result", "toolCallId": "c1", "toolName": "look", "result": 0},
    {"type": "tool-approval-request", "approvalId": "a1", "toolCallId": "c1"},
    {"type": "source", "sourceType": "url", "id": "s1", "url": "https://example.com"},
    {"type": "file", "mediaType": "image/png", "data": ""},
    {"type": "error", "error": {"type": "overloaded_error"}},
    {
        "type": "finish",
        "finishReason": {"unified": "error", "raw": "interrupted"},
        "usage": {"inputTokens": {}, "outputTokens": {"total": 0}},
        "providerMetadata": {"p": {}},
    },
]


def test_a_call_is_read_and_written_in_the_ai_sdks_spelling() -> None:
    assert through_json(from_json(CallOptions, CALL)) == CALL


def test_an_answer_is_read_and_written_in_the_ai_sdks_spelling() -> None:
    assert through_json(from_json(GenerateResult, ANSWER)) == ANSWER


@pytest.mark.parametrize("data", STREAM, ids=lambda data: data["type"])
def test_a_stream_part_is_read_and_written_in_the_ai_sdks_spelling(data: dict[str, Any]) -> None:
    part: StreamPart = from_json(StreamPart, data)
    assert not isinstance(part, UnknownPart)
    assert through_json(part) == data


def test_the_fields_of_a_call_are_read_into_their_own_types() -> None:
    options: CallOptions = from_json(CallOptions, CALL)
    system, asked, answered, tool = options.prompt
    assert isinstance(system, SystemMessage)
    assert asked == UserMessage(
        [
            TextPart("what is this"),
            FilePart("image/*", PIXEL, "a.png"),
            FilePart("application/pdf", Url("https://example.com/a.pdf")),
        ]
    )
    assert answered == AssistantMessage(
        [
            ReasoningPart("hm", {"anthropic": {"signature": "s"}}),
            ToolCallPart("c1", "look", {"at": 1}, provider_executed=False),
        ]
    )
    assert tool == ToolMessage(
        [
            ToolResultPart("c1", "look", JsonOutput([1, None])),
            ToolApprovalResponsePart("a1", approved=False, reason="no"),
        ]
    )
    assert options.tools == (
        FunctionTool(
            "look",
            {"type": "object", "additionalProperties": False},
            "d",
            (ToolExample({"at": 1}),),
            strict=True,
            provider_options={"p": {"k": 1}},
        ),
        ProviderTool("anthropic.web_search", "search", {"maxUses": 1}),
    )
    assert options.tool_choice == ToolChoice("tool", "look")
    assert options.response_format == ResponseFormat("json", {"type": "object"}, "n", "d")


OUTPUTS: list[tuple[ToolOutput, dict[str, object]]] = [
    (TextOutput("a"), {"type": "text", "value": "a"}),
    (JsonOutput({"a_b": 1}), {"type": "json", "value": {"a_b": 1}}),
    (ExecutionDenied(), {"type": "execution-denied"}),
    (ExecutionDenied("no"), {"type": "execution-denied", "reason": "no"}),
    (
        ContentOutput(
            (
                OutputText("a"),
                OutputFileData(b"a", "text/plain", "f"),
                OutputFileUrl("https://a.b"),
                OutputFileId({"openai": "f1"}),
                OutputImageData(b"a", "image/png"),
                OutputImageUrl("https://a.b"),
                OutputImageFileId("f1"),
                OutputCustom({"p": {}}),
            )
        ),
        {
            "type": "content",
            "value": [
                {"type": "text", "text": "a"},
                {"type": "file-data", "data": "YQ==", "mediaType": "text/plain", "filename": "f"},
                {"type": "file-url", "url": "https://a.b"},
                {"type": "file-id", "fileId": {"openai": "f1"}},
                {"type": "image-data", "data": "YQ==", "mediaType": "image/png"},
                {"type": "image-url", "url": "https://a.b"},
                {"type": "image-file-id", "fileId": "f1"},
                {"type": "custom", "providerOptions": {"p": {}}},
            ],
        },
    ),
]


@pytest.mark.parametrize(("output", "data"), OUTPUTS, ids=lambda item: getattr(item, "type", ""))
def test_a_tool_output_is_spelt_as_in_the_ai_sdk(output: ToolOutput, data: dict[str, object]) -> None:
    assert to_json(output) == data
    assert from_json(ToolOutput, data) == output


@pytest.mark.parametrize(
    ("name", "key"), [("prompt", "prompt"), ("max_output_tokens", "maxOutputTokens"), ("top_p", "topP")]
)
def test_names_become_camel_case(name: str, key: str) -> None:
    assert camel_case(name) == key


def test_keys_of_free_json_are_left_as_they_are() -> None:
    assert to_json(JsonOutput({"snake_case": {"Other-Case": 1}})) == {
        "type": "json",
        "value": {"snake_case": {"Other-Case": 1}},
    }


# ------------------------------------------------------------------------------------------------ what we do not know


def test_an_unknown_part_of_a_prompt_is_carried_along() -> None:
    data = {"prompt": [{"role": "user", "content": [{"type": "custom", "kind": "a.b", "value": [None, {"deep": 1}]}]}]}
    options: CallOptions = from_json(CallOptions, data)
    assert isinstance(options.prompt[0].content[0], UnknownPart)
    assert through_json(options) == data


def test_an_unknown_content_of_an_answer_is_carried_along() -> None:
    data = {"content": [{"type": "reasoning-file", "mediaType": "image/png", "data": "AA=="}]}
    result: GenerateResult = from_json(GenerateResult, data)
    assert result.content == (UnknownPart("reasoning-file", {"mediaType": "image/png", "data": "AA=="}),)
    assert through_json(result)["content"] == data["content"]


def test_an_unknown_part_of_a_stream_is_carried_along() -> None:
    assert to_json(from_json(StreamPart, {"type": "ping"})) == {"type": "ping"}


def test_an_unknown_tool_is_carried_along() -> None:
    data = {"type": "mcp", "serverUrl": "https://a.b"}
    options: CallOptions = from_json(CallOptions, {"prompt": [], "tools": [data]})
    assert through_json(options)["tools"] == [data]


def test_an_unknown_tool_output_and_its_unknown_pieces_are_carried_along() -> None:
    for data in (
        {"type": "stream", "x": 1},
        {"type": "content", "value": [{"type": "file", "data": {"type": "data"}}]},
    ):
        assert to_json(from_json(ToolOutput, data)) == data


def test_a_later_versions_fields_are_written_where_they_were_read() -> None:
    data = {"type": "text-end", "id": "0", "citations": [{"source": "s", "startIndex": 0}]}
    part: StreamPart = from_json(StreamPart, data)
    assert part == TextEnd("0", extra={"citations": [{"source": "s", "startIndex": 0}]})
    assert to_json(part) == data


def test_an_unknown_field_with_null_survives() -> None:
    assert to_json(from_json(Text, {"text": "a", "later": None})) == {"type": "text", "text": "a", "later": None}


def test_unknown_numbers_in_the_usage_survive() -> None:
    data = {"inputTokens": {"total": 1, "audio": 2}, "outputTokens": {"accepted": 3}}
    assert through_json(from_json(Usage, data)) == data


def test_a_known_field_wins_over_an_unknown_one_of_its_name() -> None:
    assert to_json(Text("a", extra={"text": "b"})) == {"type": "text", "text": "a"}


def test_an_unknown_part_keeps_its_type_whatever_its_data_say() -> None:
    assert to_json(UnknownPart("ping", {"type": "pong"})) == {"type": "ping"}


def test_reasons_and_warnings_of_later_versions_are_read() -> None:
    assert from_json(FinishReason, {"unified": "interrupted"}) == FinishReason("interrupted")
    assert from_json(CallWarning, {"type": "deprecated", "setting": "s"}) == CallWarning(
        "deprecated", extra={"setting": "s"}
    )


# ------------------------------------------------------------------------------------------------------- not set


def test_fields_that_are_not_set_are_not_written() -> None:
    assert to_json(user("hi")) == {"role": "user", "content": [{"type": "text", "text": "hi"}]}


def test_null_reads_as_not_set() -> None:
    data: dict[str, object] = {"prompt": [], "temperature": None, "tools": None, "headers": None, "metadata": None}
    assert from_json(CallOptions, data) == CallOptions(())


def test_null_reads_as_the_default_where_there_is_one() -> None:
    assert from_json(Finish, {"finishReason": {"unified": "stop"}, "usage": None}) == Finish(FinishReason("stop"))


def test_zero_and_empty_are_written() -> None:
    options = CallOptions((), max_output_tokens=0, reasoning="", stop_sequences=(), headers={})
    assert to_json(options) == {"prompt": [], "maxOutputTokens": 0, "reasoning": "", "stopSequences": [], "headers": {}}
    assert from_json(CallOptions, to_json(options)) == options


@pytest.mark.parametrize(
    "part",
    [JsonOutput(None), ToolCallPart("c", "t", None), ToolResult("c", "t", None), Raw(None), ErrorPart(None)],
    ids=lambda part: type(part).__name__,
)
def test_json_null_is_a_value_where_any_json_is(part: Value) -> None:
    assert from_json(type(part), through_json(part)) == part


def test_null_is_no_value_for_a_field_that_must_be_there() -> None:
    assert path_of(Text, {"text": None}) == "text"


def test_a_header_may_be_null() -> None:
    assert from_json(CallOptions, {"prompt": [], "headers": {"x": None}}).headers == {"x": None}


# ------------------------------------------------------------------------------------------- bytes, addresses, times


def test_bytes_are_base64_outside() -> None:
    assert to_json(File("image/png", PIXEL)) == {"type": "file", "mediaType": "image/png", "data": "iVBOR//+"}
    assert from_json(File, {"mediaType": "image/png", "data": "iVBOR//+"}) == File("image/png", PIXEL)


@pytest.mark.parametrize("written", ["iVBOR__-", "iVBOR//+", "_-8", "/+8=", "/+8"])
def test_both_alphabets_of_base64_are_read_with_and_without_padding(written: str) -> None:
    assert from_json(File, {"mediaType": "m", "data": written}).data in (PIXEL, b"\xff\xef")


@pytest.mark.parametrize("data", ["a", "a b=", "ä", "====", "Y", 3, None, [1], {"0": 1}])
def test_what_is_not_base64_is_refused(data: object) -> None:
    assert path_of(File, {"mediaType": "m", "data": data}) == "data"


def test_empty_bytes_are_empty_text() -> None:
    assert from_json(File, through_json(File("m", b""))) == File("m", b"")


@pytest.mark.parametrize(
    "address", ["https://a.b/c", "HTTPS://A.B", "data:text/plain;base64,aGk=", "gs://bucket/x", "s3:x", "file:///x"]
)
def test_file_data_with_a_scheme_is_an_address(address: str) -> None:
    part: FilePart = from_json(FilePart, {"type": "file", "mediaType": "m", "data": address})
    assert isinstance(part.data, Url)
    assert to_json(part) == {"type": "file", "mediaType": "m", "data": address}


@pytest.mark.parametrize("address", ["photos/cat", "abcd", "//cdn.example.com/x", ""])
def test_an_address_without_a_scheme_does_not_turn_into_bytes(address: str) -> None:
    part = FilePart("image/png", Url(address))
    back: FilePart = from_json(FilePart, through_json(part))
    assert back == part
    assert isinstance(back.data, Url)


def test_an_address_comes_back_as_an_address() -> None:
    back: FilePart = from_json(FilePart, through_json(FilePart("m", Url("https://a.b"))))
    assert isinstance(back.data, Url)


@pytest.mark.parametrize(
    ("tagged", "data"),
    [
        ({"type": "data", "data": "YQ=="}, b"a"),
        ({"type": "url", "url": "https://a.b"}, Url("https://a.b")),
        ({"type": "text", "text": "ä"}, "ä".encode()),
    ],
)
def test_the_tagged_file_data_of_v4_is_read(tagged: object, data: object) -> None:
    part: FilePart = from_json(FilePart, {"type": "file", "mediaType": "m", "data": tagged})
    assert part == FilePart("m", data)  # type: ignore[arg-type]
    assert type(part.data) is type(data)


@pytest.mark.parametrize(
    ("tagged", "path"),
    [
        ({"type": "reference", "reference": {"openai": "f"}}, "data"),
        ({"type": "data", "data": "!"}, "data.data"),
        ({"type": "url"}, "data.url"),
        ({"type": "text", "text": 1}, "data.text"),
        ({}, "data"),
    ],
)
def test_tagged_file_data_that_cannot_be_kept_is_refused(tagged: object, path: str) -> None:
    assert path_of(FilePart, {"type": "file", "mediaType": "m", "data": tagged}) == path


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2025-01-02T03:04:05.678Z", datetime(2025, 1, 2, 3, 4, 5, 678000, UTC)),
        ("2025-01-02T03:04:05+02:00", datetime(2025, 1, 2, 1, 4, 5, tzinfo=UTC)),
        ("2025-01-02T03:04:05", datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2025-01-02", datetime(2025, 1, 2, tzinfo=UTC)),
    ],
)
def test_a_time_is_read_with_its_zone_or_as_utc(written: str, moment: datetime) -> None:
    assert from_json(ResponseMetadata, {"timestamp": written}).timestamp == moment


@pytest.mark.parametrize(
    ("moment", "written"),
    [
        (datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC), "2025-01-02T03:04:05.000Z"),
        (datetime(2025, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2))), "2025-01-02T01:04:05.000Z"),
        (datetime(2025, 1, 2, 3, 4, 5, 1, UTC), "2025-01-02T03:04:05.000001Z"),
        (datetime(2025, 1, 2, 3, 4, 5), "2025-01-02T03:04:05.000Z"),
    ],
)
def test_a_time_is_written_in_utc_as_javascript_does(moment: datetime, written: str) -> None:
    assert to_json(ResponseInfo(timestamp=moment)) == {"timestamp": written}


@pytest.mark.parametrize("written", ["yesterday", "", 1735786800, True, "2025-13-01"])
def test_what_is_no_time_is_refused(written: object) -> None:
    assert path_of(ResponseMetadata, {"timestamp": written}) == "timestamp"


# ------------------------------------------------------------------------------------------------------------ errors


def test_the_error_of_a_turn_says_what_it_came_of() -> None:
    error = TurnError("the turn failed after 1 step: busy")
    error.__cause__ = OverloadedError("busy", status=529)
    data = to_json(error)
    assert isinstance(data, dict)
    assert (data["name"], data["cause"]) == ("TurnError", to_json(error.__cause__))


def test_an_error_part_says_what_failed_and_whether_to_try_again() -> None:
    error = OverloadedError("busy", provider="p", status=529)
    assert to_json(ErrorPart(error)) == {
        "type": "error",
        "error": {"name": "OverloadedError", "message": "busy", "isRetryable": True, "statusCode": 529},
    }


def test_an_error_without_a_status_has_none_in_json() -> None:
    assert to_json(RateLimitError("slow down")) == {
        "name": "RateLimitError",
        "message": "slow down",
        "isRetryable": True,
    }


def test_the_message_of_a_foreign_exception_is_not_written() -> None:
    error = ValueError("the user said: my password is 1234")
    error.__cause__ = KeyError("secret")
    assert to_json(ErrorPart(error)) == {"type": "error", "error": {"name": "ValueError"}}


def test_a_group_of_exceptions_is_written_by_its_name() -> None:
    assert to_json(ExceptionGroup("secret", [ValueError("secret")])) == {"name": "ExceptionGroup"}


def test_an_error_that_came_as_json_goes_out_as_it_came() -> None:
    data = {"type": "error", "error": {"type": "overloaded_error", "message": "m"}}
    assert to_json(from_json(StreamPart, data)) == data


def test_the_context_is_never_written() -> None:
    options = with_context(CallOptions.from_text("hi"), CallContext(request_id="r"))
    assert "context" not in json.dumps(to_json(options))
    assert "r" not in through_json(options)


# --------------------------------------------------------------------------------------------------- where it is wrong


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (("prompt",), "prompt"),
        (("prompt", 0, "role"), "prompt[0].role"),
        (("prompt", 0, "content"), "prompt[0].content"),
        (("prompt", 1, "content"), "prompt[1].content"),
        (("prompt", 1, "content", 0, "text"), "prompt[1].content[0].text"),
        (("prompt", 1, "content", 1, "data"), "prompt[1].content[1].data"),
        (("prompt", 2, "content", 1, "toolCallId"), "prompt[2].content[1].toolCallId"),
        (("prompt", 2, "content", 1, "providerExecuted"), "prompt[2].content[1].providerExecuted"),
        (("prompt", 3, "content", 0, "output", "type"), "prompt[3].content[0].output.type"),
        (("prompt", 3, "content", 1, "approved"), "prompt[3].content[1].approved"),
        (("temperature",), "temperature"),
        (("seed",), "seed"),
        (("stopSequences",), "stopSequences"),
        (("tools", 0, "inputSchema"), "tools[0].inputSchema"),
        (("tools", 0, "inputExamples", 0, "input"), "tools[0].inputExamples[0].input"),
        (("tools", 1, "args"), "tools[1].args"),
        (("responseFormat", "schema"), "responseFormat.schema"),
        (("headers", "x-a"), "headers.x-a"),
        (("providerOptions", "openai"), "providerOptions.openai"),
        (("metadata",), "metadata"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_an_error_names_the_place(change: tuple[str | int, ...], path: str) -> None:
    data = json.loads(json.dumps(CALL))
    place: Any = data
    for step in change[:-1]:
        place = place[step]
    place[change[-1]] = 3.5 if not isinstance(place[change[-1]], int | float) else "3.5"
    assert path_of(CallOptions, data) == path


def test_a_missing_field_is_named_with_its_type() -> None:
    with pytest.raises(ProtocolError, match=r"prompt\[0\]\.content\[0\]\.mediaType: FilePart needs it"):
        from_json(CallOptions, {"prompt": [{"role": "user", "content": [{"type": "file", "data": ""}]}]})


def test_a_null_in_a_list_is_named_by_its_index() -> None:
    assert path_of(CallOptions, {"prompt": [{"role": "user", "content": []}, None]}) == "prompt[1]"


def test_an_unknown_role_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ProtocolError, match=r"prompt\[0\]\.role: expected one of system, user, assistant, tool"):
        from_json(CallOptions, {"prompt": [{"role": "developer", "content": ""}]})


def test_a_part_without_a_type_is_refused() -> None:
    assert path_of(StreamPart, {"id": "0"}) == "type"
    assert path_of(UnknownPart, {"id": "0"}) == "type"


def test_a_part_of_another_type_than_asked_for_is_refused() -> None:
    with pytest.raises(ProtocolError, match="type: expected 'text-delta'"):
        from_json(TextDelta, {"type": "text-end", "id": "0", "delta": "a"})


def test_the_type_may_be_left_out_where_it_is_known() -> None:
    assert from_json(TextDelta, {"id": "0", "delta": "a"}) == TextDelta("0", "a")


def test_an_error_message_says_what_was_expected_and_what_came_but_not_its_content() -> None:
    with pytest.raises(ProtocolError) as caught:
        from_json(CallOptions, {"prompt": [{"role": "system", "content": {"secret": 1}}]})
    assert str(caught.value) == "prompt[0].content: expected a string, not dict"


def test_what_is_wrong_as_a_whole_has_no_path() -> None:
    assert path_of(CallOptions, []) == ""
    assert path_of(StreamPart, "text") == ""


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("maxOutputTokens", "1"),
        ("maxOutputTokens", True),
        ("maxOutputTokens", 1.5),
        ("maxOutputTokens", float("inf")),
        ("maxOutputTokens", [1]),
        ("temperature", "1"),
        ("temperature", False),
        ("includeRawChunks", 1),
        ("includeRawChunks", "true"),
        ("reasoning", 1),
        ("stopSequences", "abc"),
        ("stopSequences", {"0": "a"}),
        ("tools", {}),
        ("headers", []),
        ("metadata", "tenant"),
        ("toolChoice", "auto"),
    ],
)
def test_a_wrong_type_is_refused_and_never_bent(field: str, wrong: object) -> None:
    assert path_of(CallOptions, {"prompt": [], field: wrong}) == field


def test_javascript_writes_whole_numbers_as_it_likes() -> None:
    options: CallOptions = from_json(CallOptions, {"prompt": [], "seed": 3.0, "temperature": 1})
    assert options.seed == 3
    assert isinstance(options.seed, int)
    assert options.temperature == 1.0


def test_the_status_of_a_tool_outcome_is_one_of_the_known() -> None:
    with pytest.raises(ProtocolError, match="status: expected one of ok, error, denied, cancelled, timeout"):
        from_json(ToolOutcome, {"output": {"type": "text", "value": ""}, "status": "great"})


def test_questions_and_answers_are_told_apart_by_their_type() -> None:
    options: DecideOptions = from_json(
        DecideOptions, {"state": [{"type": "text", "text": "a"}], "questions": {"q": {"type": "boolean"}}}
    )
    assert options == DecideOptions((TextPart("a"),), {"q": BooleanQuestion()})
    assert path_of(DecideResult, {"answers": {"q": {"type": "boolean", "probability": "1"}}}) == "answers.q.probability"


def test_lists_of_a_type_can_be_read() -> None:
    assert from_json(Sequence[Message], [to_json(user("hi"))]) == (user("hi"),)
    assert path_of(Sequence[Message], [{"role": "user", "content": [{}]}]) == "[0].content[0].type"


@pytest.mark.parametrize("times", [1, 2])
def test_what_is_no_protocol_type_cannot_be_read(times: int) -> None:
    for _ in range(times):
        with pytest.raises(TypeError, match="from_json\\(\\) reads protocol types"):
            from_json(complex, 1)


# ------------------------------------------------------------------------------------------------------ writing Python


ALIEN: Any = object()


class Colour(str, Enum):  # noqa: UP042  # the kind whose `str()` is not its text
    RED = "red"


def test_a_member_of_a_text_enum_is_written_as_its_text() -> None:
    assert to_json(Text(Colour.RED)) == {"type": "text", "text": "red"}
    assert type(to_json(Colour.RED)) is str


def test_tuples_views_and_byte_arrays_are_written_as_json_has_them() -> None:
    assert to_json({"a": (1, MappingProxyType({"b": bytearray(b"a")}))}) == {"a": [1, {"b": "YQ=="}]}


def test_keys_are_written_as_text() -> None:
    assert to_json({1: "a"}) == {"1": "a"}


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        ({1, 2}, ""),
        ([0, object()], "[1]"),
        (CallOptions((), metadata={"tags": ["a", ALIEN]}), "metadata.tags[1]"),
        (GenerateResult([Text("a"), ToolResult("c", "t", {"deep": [ALIEN]})]), "content[1].result.deep[0]"),
        (Text("a", extra={"later": ALIEN}), "later"),
        (UnknownPart("ping", {"at": ALIEN}), "at"),
    ],
)
def test_what_has_no_json_form_is_refused_with_its_place(obj: object, path: str) -> None:
    with pytest.raises(ProtocolError, match="has no JSON form") as caught:
        to_json(obj)
    assert caught.value.path == path


def test_a_stream_that_runs_has_no_json_form() -> None:
    with pytest.raises(ProtocolError, match="stream: PartStream has no JSON form"):
        to_json(StreamResult.of(GenerateResult()))


def test_the_shape_of_json_does_not_depend_on_the_mapping_it_came_from() -> None:
    view: Mapping[str, object] = MappingProxyType({"type": "text", "text": "a"})
    assert from_json(Text, view) == Text("a")


def test_everything_of_the_protocol_is_covered_by_the_round_trips() -> None:
    missing = {StreamStart, ToolInputStart, ToolApprovalRequest, InputTokens, OutputTokens, Reasoning, Source, ToolCall}
    assert missing <= set(TYPES)
    assert len(TYPES) > 60
