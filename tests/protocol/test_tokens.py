"""Estimates that need no tokenizer, and what is known of models' windows."""

from __future__ import annotations

import pytest

from neurolink_mw.protocol import (
    AssistantMessage,
    ContentOutput,
    ErrorJsonOutput,
    ErrorTextOutput,
    ExecutionDenied,
    FilePart,
    FunctionTool,
    JSONObject,
    JsonOutput,
    Message,
    ModelLimits,
    OutputContent,
    OutputCustom,
    OutputFileData,
    OutputFileId,
    OutputFileUrl,
    OutputImageData,
    OutputImageFileId,
    OutputImageUrl,
    OutputText,
    ProviderTool,
    ReasoningPart,
    SystemMessage,
    TextOutput,
    TextPart,
    ToolApprovalResponsePart,
    ToolCallPart,
    ToolExample,
    ToolMessage,
    ToolOutput,
    ToolResultPart,
    UnknownPart,
    Url,
    UserMessage,
    available_input_tokens,
    estimate_json_tokens,
    estimate_message_tokens,
    estimate_output_tokens,
    estimate_text_tokens,
    estimate_tool_tokens,
    model_limits,
    token_factor,
    user,
)
from neurolink_mw.protocol.tokens import FILE_TOKENS, IMAGE_TOKENS, MESSAGE_TOKENS, json_text

MEGABYTE = bytes(1_000_000)

# -------------------------------------------------------------------------------------------------------- texts


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("x" * 4000, 1000)])
def test_four_characters_are_a_token_rounded_up(text: str, tokens: int) -> None:
    assert estimate_text_tokens(text) == tokens


@pytest.mark.parametrize(("text", "tokens"), [("中" * 100, 100), ("Я" * 80, 50), ("😀" * 80, 110), ("\ud800" * 8, 8)])
def test_other_scripts_take_more(text: str, tokens: int) -> None:
    assert estimate_text_tokens(text) == tokens


def test_a_factor_makes_tokens_finer() -> None:
    assert estimate_text_tokens("x" * 4000, factor=1.23) == 1230


def test_the_factor_of_a_provider_is_known_or_one() -> None:
    assert (token_factor("anthropic"), token_factor("bedrock"), token_factor("nobody")) == (1.23, 1.23, 1.0)


# ----------------------------------------------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (SystemMessage("x" * 40), 10),
        (user("x" * 40), 10),
        (UserMessage([TextPart("x" * 40), TextPart("x" * 4)]), 11),
        (AssistantMessage([ReasoningPart("x" * 400)]), 100),
        (AssistantMessage([ToolCallPart("c", "find", {"q": "x" * 92})]), 26),
        (ToolMessage([ToolResultPart("c", "find", TextOutput("x" * 400))]), 100),
        (ToolMessage([ToolApprovalResponsePart("a", False, "no")]), 1),
    ],
    ids=lambda case: getattr(case, "role", None),
)
def test_a_message_is_its_parts_and_a_little_more(message: Message, tokens: int) -> None:
    assert estimate_message_tokens(message) == MESSAGE_TOKENS + tokens


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        (FilePart("image/png", MEGABYTE), IMAGE_TOKENS),
        (FilePart("image/*", Url("https://example.com/a.png")), IMAGE_TOKENS),
        (FilePart("image/png", Url("data:image/png;base64," + "A" * 1_000_000)), IMAGE_TOKENS),
        (FilePart("application/pdf", MEGABYTE), FILE_TOKENS),
        (FilePart("audio/wav", MEGABYTE), FILE_TOKENS),
        (FilePart("text/plain", Url("https://example.com/a.txt")), FILE_TOKENS),
    ],
)
def test_a_file_is_flat_whatever_its_bytes(part: FilePart, tokens: int) -> None:
    assert estimate_message_tokens(UserMessage([part])) == MESSAGE_TOKENS + tokens


def test_a_text_file_is_the_text_that_it_is_sent_as() -> None:
    part = FilePart("text/csv", b"x" * 400_000)
    assert estimate_message_tokens(UserMessage([part])) == MESSAGE_TOKENS + 100_000


def test_a_part_of_an_unknown_kind_may_be_base64_and_counts_as_a_file_at_most() -> None:
    small, great = (UnknownPart("video", {"data": "A" * size}) for size in (30, 1_000_000))
    assert estimate_message_tokens(UserMessage([small])) == MESSAGE_TOKENS + 11
    assert estimate_message_tokens(UserMessage([great])) == MESSAGE_TOKENS + FILE_TOKENS


@pytest.mark.parametrize(
    ("output", "tokens"),
    [
        (TextOutput("x" * 400), 100),
        (ErrorTextOutput("x" * 400), 100),
        (JsonOutput({"key": "x" * 390}), 100),
        (ErrorJsonOutput(["x" * 396]), 100),
        (ExecutionDenied(), 0),
        (ExecutionDenied("x" * 400), 100),
        (ContentOutput((OutputText("x" * 400), OutputImageData(MEGABYTE, "image/png"))), 100 + IMAGE_TOKENS),
        (UnknownPart("new", {"a": 1}), 2),
    ],
)
def test_an_output_is_counted_as_the_model_reads_it(output: ToolOutput, tokens: int) -> None:
    assert estimate_output_tokens(output) == tokens


@pytest.mark.parametrize(
    ("piece", "tokens"),
    [
        (OutputFileData(MEGABYTE, "application/pdf"), FILE_TOKENS),
        (OutputFileData(MEGABYTE, "image/png"), IMAGE_TOKENS),
        (OutputFileUrl("https://example.com/" + "x" * 10_000), FILE_TOKENS),
        (OutputFileId("file-1"), FILE_TOKENS),
        (OutputImageUrl("https://example.com/" + "x" * 10_000), IMAGE_TOKENS),
        (OutputImageFileId("file-1"), IMAGE_TOKENS),
        (OutputCustom({"vendor": {"data": "A" * 1_000_000}}), FILE_TOKENS),
        (UnknownPart("new", {"data": "A" * 1_000_000}), FILE_TOKENS),
    ],
)
def test_a_file_within_an_output_is_flat_too(piece: OutputContent, tokens: int) -> None:
    assert estimate_output_tokens(ContentOutput((piece,))) == tokens


# --------------------------------------------------------------------------------------------------------- JSON


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, None, True, "é"]}, '{"a":[1,null,true,"é"]}'),
        (2**70, "1180591620717411303424"),
        (["\ud800", 1], '["\ud800",1]'),
        ({1: b"123"}, '{"1":"<bytes>"}'),
        ({"a": range(2)}, '{"a":[0,1]}'),
        ({"a": object()}, '{"a":"<object>"}'),
    ],
)
def test_any_value_has_a_text(value: object, text: str) -> None:
    assert json_text(value) == text


def test_a_value_that_contains_itself_has_a_text_too() -> None:
    circle: list[object] = []
    circle.append(circle)
    assert json_text(circle) == '"<list>"'


def test_bytes_within_json_count_as_nothing() -> None:
    assert estimate_json_tokens({"image": MEGABYTE}) < 10


def test_tools_are_their_definitions() -> None:
    schema: JSONObject = {"type": "object", "properties": {"q": {"type": "string", "description": "x" * 4000}}}
    tools = (FunctionTool("find", schema, "y" * 4000), ProviderTool("vendor.search", "search", {"sites": "z" * 4000}))
    assert 3000 < estimate_tool_tokens(tools) < 3060
    example = tools[0].replace(input_examples=(ToolExample({"q": "x" * 400}),))
    assert estimate_tool_tokens([example]) - estimate_tool_tokens(tools[:1]) > 100
    assert estimate_tool_tokens([UnknownPart("new", {"name": "x" * 400})]) > 100
    assert estimate_tool_tokens([]) == 0


# ------------------------------------------------------------------------------------------------------ windows


@pytest.mark.parametrize(
    ("provider", "model_id", "window"),
    [
        ("anthropic", "claude-sonnet-4-5", 200_000),
        ("anthropic", "claude-sonnet-4-6", 1_000_000),
        ("anthropic", "claude-opus-4-6-20260205", 1_000_000),
        ("anthropic", "something-new", 200_000),
        ("bedrock", "anthropic.claude-opus-4-6-v1:0", 200_000),
        ("bedrock", "amazon.nova-pro-v1:0", 300_000),
        ("bedrock", "us.amazon.nova-premier-v1:0", 1_000_000),
        ("bedrock", "apac.amazon.nova-micro-v1:0", 128_000),
        ("bedrock", "us-gov.anthropic.claude-3-haiku-20240307-v1:0", 200_000),
        ("bedrock", "meta.llama3-8b-instruct-v1:0", 8_192),
        ("bedrock", "us.meta.llama3-3-70b-instruct-v1:0", 128_000),
        ("bedrock", "mistral.mistral-7b-instruct-v0:2", 32_000),
        ("bedrock", "mistral.mistral-large-2407-v1:0", 128_000),
        ("bedrock", "vendor.unknown-v1:0", 200_000),
        ("bedrock", "arn:aws:bedrock:us-east-1:1:inference-profile/eu.amazon.nova-lite-v1:0", 300_000),
        ("bedrock", "arn:aws:bedrock:us-east-1::foundation-model/meta.llama3-70b-instruct-v1:0", 8_192),
        ("bedrock", "arn:aws:bedrock:us-east-1:1:application-inference-profile/abc123", 200_000),
        ("amazon-bedrock", "vendor.unknown-v1:0", 200_000),
        ("openai-compatible", "gpt-4o-mini", 128_000),
        ("openai-compatible", "openai/gpt-4.1-nano", 1_047_576),
        ("openai.chat", "gpt-4-0613", 8_192),
        ("openai-compatible", "gpt-4.5-preview", 128_000),
        ("openai-compatible", "o1-2024-12-17", 200_000),
        ("openai-compatible", "anthropic/claude-sonnet-4-6", 200_000),
        ("openai-compatible", "qwen3.5-coder", 128_000),
        ("nobody", "nothing", 128_000),
        ("nobody", "", 128_000),
    ],
)
def test_the_window_of_a_model(provider: str, model_id: str, window: int) -> None:
    assert model_limits(provider, model_id).context_window == window


@pytest.mark.parametrize("pattern", ["bedrock:*nova-pro*", "us.amazon.nova-*", "bedrock:us.amazon.nova-pro-v1:0", "*"])
def test_an_override_matches_with_or_without_the_provider(pattern: str) -> None:
    limits = model_limits("bedrock", "us.amazon.nova-pro-v1:0", {"openai*:*": 1, pattern: 5_000, "bedrock:*": 7})
    assert limits == ModelLimits(5_000)


def test_an_override_may_be_limits() -> None:
    assert model_limits("a", "b", {"b": ModelLimits(10, 5)}) == ModelLimits(10, 5)


@pytest.mark.parametrize(
    ("limits", "max_output", "available"),
    [
        (ModelLimits(128_000), None, 108_000),
        (ModelLimits(1_000_000, 100_000), None, 936_000),
        (ModelLimits(128_000, 16_384), None, 111_616),
        (ModelLimits(128_000), 8_000, 120_000),
        (ModelLimits(32_000), 0, 20_800),
        (ModelLimits(8_192), 8_192, 0),
        (ModelLimits(8_192), 10_000, 0),
    ],
)
def test_room_for_the_answer_is_kept(limits: ModelLimits, max_output: int | None, available: int) -> None:
    assert available_input_tokens(limits, max_output) == available


@pytest.mark.parametrize("given", [0, -1, 1.5, "8k"])
def test_limits_are_whole_numbers_of_tokens(given: object) -> None:
    with pytest.raises(ValueError, match=r"ModelLimits\.context_window is a number of tokens from 1 on"):
        ModelLimits(given)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"ModelLimits\.max_output_tokens"):
        ModelLimits(1, given)  # type: ignore[arg-type]
