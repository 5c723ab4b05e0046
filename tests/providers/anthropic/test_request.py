"""A whole request: the call's options, what is said to Anthropic alone, and the betas that this takes."""

from __future__ import annotations

import typing
from typing import Any

import pytest
from anthropic.types import message_create_params as stable
from anthropic.types.anthropic_beta_param import AnthropicBetaParam
from anthropic.types.beta import message_create_params as beta

from neurolink_mw.errors import InvalidRequestError
from neurolink_mw.protocol import CallOptions, ContentOutput, FilePart, OutputFileData, ProviderTool, UnknownPart, Url
from neurolink_mw.providers.anthropic import betas
from neurolink_mw.providers.anthropic.naming import snake_case
from neurolink_mw.providers.anthropic.options import BUILT, MEMBERS
from neurolink_mw.providers.anthropic.request import BETAS, Document, build_request, expected_of

from .builders import (
    HAIKU,
    LOOK,
    MARK,
    SONNET_46,
    Json,
    answered,
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
from .sdk_types import check_request, is_stable, members

SERVER: Json = {"type": "url", "name": "m", "url": "https://mcp.test"}
# Each member as provider options say it, and as it is sent.
OWN_MEMBERS: dict[str, tuple[Any, Any]] = {
    "billingPolicy": ({"type": "billing_policy", "billTo": "self"}, {"type": "billing_policy", "bill_to": "self"}),
    "cacheControl": (MARK, MARK),
    "compaction": ({"type": "summarize", "instructions": "short"}, {"type": "summarize", "instructions": "short"}),
    "container": ("ct-1", "ct-1"),
    "contextManagement": (
        {"edits": [{"type": "clear_tool_uses_20250919", "clearAtLeast": {"type": "input_tokens", "value": 9}}]},
        {"edits": [{"type": "clear_tool_uses_20250919", "clear_at_least": {"type": "input_tokens", "value": 9}}]},
    ),
    "diagnostics": ({"previousMessageId": "m1"}, {"previous_message_id": "m1"}),
    "fallbackCreditToken": ({"token": "t", "mode": "strict"}, {"token": "t", "mode": "strict"}),
    "fallbacks": ([{"model": "claude-opus-4-8", "maxTokens": 9}], [{"model": "claude-opus-4-8", "max_tokens": 9}]),
    "inferenceGeo": ("us", "us"),
    "mcpServers": (
        [{**SERVER, "authorizationToken": "t", "toolConfiguration": {"allowedTools": ["a"]}}],
        [{**SERVER, "authorization_token": "t", "tool_configuration": {"allowed_tools": ["a"]}}],
    ),
    "metadata": ({"userId": "u1"}, {"user_id": "u1"}),
    "outputConfig": ({"effort": "low"}, {"effort": "low"}),
    "serviceTier": ("standard_only", "standard_only"),
    "speed": ("standard", "standard"),
    "thread": ({"type": "continue", "previousMessageId": "m1"}, {"type": "continue", "previous_message_id": "m1"}),
}


def features(call: CallOptions, **settings: Any) -> list[str | None]:
    return request(call, **settings)[1]


def refusal(**provider_options: Any) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        build_request(HAIKU, options(provider_options=own(**provider_options)))
    return str(caught.value)


# ----------------------------------------------------------------------------------------------------------- options


def test_zero_and_empty_are_values() -> None:
    native = quiet(options(temperature=0, top_k=0, stop_sequences=(), max_output_tokens=0))
    assert (native["temperature"], native["top_k"], native["stop_sequences"]) == (0, 0, [])


def test_what_was_not_set_is_not_sent() -> None:
    assert quiet(options()).keys() == {"model", "max_tokens", "messages"}


def test_a_stream_is_asked_for() -> None:
    assert quiet(options(), stream=True)["stream"] is True


def test_metadata_and_headers_of_the_call_are_not_sent() -> None:
    native = quiet(options(metadata={"tenant": "t"}, headers={"x-own": "1"}))
    assert "metadata" not in native
    assert "tenant" not in str(native)


@pytest.mark.parametrize("temperature", [-1, 2.5])
def test_a_temperature_stays_within_what_the_api_takes(temperature: float) -> None:
    native, of = request(options(temperature=temperature))
    assert native["temperature"] in (0, 1)
    assert of == ["temperature"]


def test_what_the_api_has_no_member_for_is_warned_about() -> None:
    assert features(options(seed=0, frequency_penalty=0.0, presence_penalty=0.0)) == [
        *("frequencyPenalty", "presencePenalty", "seed")
    ]


def test_an_error_names_the_place_and_shows_no_content() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        build_request(HAIKU, options(said("private words", FilePart("audio/wav", b"private sound"))), provider="p")
    assert "private" not in str(caught.value)
    assert (caught.value.provider, caught.value.model_id) == ("p", HAIKU)


# ---------------------------------------------------------------------------------------------------------- own options


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_a_member_of_a_request_is_said_in_camel_case(name: str) -> None:
    given, sent = OWN_MEMBERS[name]
    native = quiet(options(provider_options=own(**{name: given})), SONNET_46)
    assert native[snake_case(name)] == sent


def test_every_member_that_the_sdk_has_is_reached() -> None:
    reached = {snake_case(name) for name in MEMBERS | BUILT | {"thinking"}}
    headers = {"user_profile_id", "workspace_id"}
    assert reached - {"temperature", "top_k", "top_p"} == (members(stable) | members(beta)) - headers


@pytest.mark.parametrize(
    ("name", "details"), [("tempo", "no member"), ("topK", "own options"), ("workspaceId", "header")]
)
def test_an_unknown_option_is_left_out_with_a_warning_that_names_it(name: str, details: str) -> None:
    native, (warning,) = warned(options(provider_options=own(**{name: "x"})))
    assert native == quiet(options())
    assert warning.feature == name
    assert warning.details is not None
    assert details in warning.details


def test_an_option_that_is_none_is_not_set() -> None:
    assert quiet(options(provider_options=own(speed=None, container=None, nonsense=None))) == quiet(options())


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"metadata": "u1"}, "['metadata'] is an object, not str"),
        ({"speed": 2}, "['speed'] is a string, not int"),
        ({"effort": 2}, "['effort'] is a string, not int"),
        ({"outputConfig": {"effort": 2}}, "['effort'] is a string, not int"),
        ({"mcpServers": SERVER}, "['mcpServers'] is a list, not dict"),
        ({"fallbacks": "all"}, "['fallbacks'] is 'default' or a list"),
        ({"container": 4}, "['container'] is an object, not int"),
        ({"container": {"skills": ["a"]}}, "skills is a list of objects"),
        ({"anthropicBeta": "b1"}, "['anthropicBeta'] is a list of strings"),
        ({"structuredOutputMode": "xml"}, "['structuredOutputMode'] is 'auto' or 'outputFormat' or 'jsonTool'"),
        ({"sendReasoning": "no"}, "['sendReasoning'] is true or false, not str"),
        ({"metadata": {"userId": object()}}, "['metadata']: holds a value that has no JSON form"),
    ],
)
def test_an_option_of_another_form_is_refused_by_its_name(given: Json, problem: str) -> None:
    assert problem in refusal(**given)


def test_a_container_may_hold_skills() -> None:
    skills = [
        {"type": "anthropic", "skillId": "pptx"},
        {"type": "custom", "providerReference": {"anthropic": "sk_1"}, "version": "2"},
    ]
    native = quiet(options(provider_options=own(container={"id": "ct", "skills": skills})))
    assert native["container"] == {
        "id": "ct",
        "skills": [
            {"type": "anthropic", "skill_id": "pptx", "version": "latest"},
            {"type": "custom", "skill_id": "sk_1", "version": "2"},
        ],
    }
    assert quiet(options(provider_options=own(container={"id": "ct"})))["container"] == "ct"


# ------------------------------------------------------------------------------------------------------------- betas


def test_betas_come_from_the_header_and_the_options_in_lower_case_and_once() -> None:
    call = options(
        headers={"Anthropic-Beta": "One, two,"}, provider_options=own(anthropicBeta=["two"], betas=["Three"])
    )
    assert quiet(call)[BETAS] == ["one", "three", "two"]


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_a_member_asks_for_its_beta_exactly_where_the_stable_types_lack_it(name: str) -> None:
    native = quiet(options(provider_options=own(**{name: OWN_MEMBERS[name][0]})), SONNET_46)
    # The stable types have `speed`, and say that some models want its beta.
    assert (BETAS not in native) == (is_stable(native) and name != "speed")


def test_every_beta_is_one_that_the_sdk_names() -> None:
    known = set(typing.get_args(typing.get_args(AnthropicBetaParam)[1]))
    tables = (betas.MEMBERS, betas.TOOLS, betas.BLOCKS, betas.SYSTEM_MESSAGES, betas.THINKING, betas.OUTPUT_CONFIG)
    assert {name for table in tables for name in table.values()} <= known


def test_compacting_by_itself_asks_for_both_betas() -> None:
    native = quiet(options(provider_options=own(contextManagement={"edits": [{"type": "compact_20260112"}]})))
    assert native[BETAS] == ["compact-2026-01-12", "context-management-2025-06-27"]


@pytest.mark.parametrize(
    ("block", "names"),
    [
        ({"type": "compaction", "content": "s"}, ["compact-2026-01-12"]),
        ({"type": "compaction", "content": "s", "signature": "S"}, ["compact-2026-01-12", "compact-2026-09-04"]),
        ({"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}, ["server-side-fallback-2026-07-01"]),
        ({"type": "mcp_tool_listing", "mcp_server_name": "m", "tools": []}, ["mcp-client-2026-09-15"]),
    ],
)
def test_a_block_of_an_earlier_answer_asks_for_its_beta(block: Json, names: list[str]) -> None:
    part = UnknownPart("custom", {"kind": "anthropic.x", "providerMetadata": own(block=block)})
    native = quiet(options(said("q"), answered("a", part), said("go")))
    assert native["messages"][1]["content"][1] == block
    assert native[BETAS] == names


def test_of_several_versions_of_the_mcp_client_the_newest_is_asked_for() -> None:
    toolset = ProviderTool("anthropic.mcp_toolset", "m", {"mcpServerName": "m"})
    listing = {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}
    call = options(tools=[toolset], provider_options=own(mcpServers=[SERVER]))
    assert quiet(call)[BETAS] == ["mcp-client-2025-11-20"]
    pinned = call.replace(tools=(toolset.replace(args={**toolset.args, **listing}),))
    assert quiet(pinned)[BETAS] == ["mcp-client-2026-09-15"]


# --------------------------------------------------------------------------------------------------------- the checker


@pytest.mark.parametrize(
    "changes",
    [
        {"tempo": 1},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "tone": "b"}]}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text"}]}]},
        {"tools": [{"name": "t", "input_schema": {"type": "object"}, "strictly": True}]},
        {"max_tokens": "9"},
        {"thinking": {"type": "enabled"}},
    ],
)
def test_the_checker_reads_requests_to_their_end(changes: Json) -> None:
    with pytest.raises(AssertionError):
        check_request({**quiet(options()), **changes})


# ------------------------------------------------------------------------------------------------------------ documents


def test_the_documents_of_a_prompt_are_told_in_order() -> None:
    law = FilePart("application/pdf", b"%PDF-", "law.pdf", own(title="The Law"))
    note = FilePart("text/plain", b"n", "n.txt")
    page = UnknownPart(
        "custom",
        {
            "providerOptions": own(
                block={
                    "type": "document",
                    "title": "P",
                    "source": {"type": "text", "media_type": "text/plain", "data": "p"},
                }
            )
        },
    )
    upload = FilePart("text/csv", b"", None, own(fileId="f", containerUpload=True))
    found = ContentOutput((OutputFileData(b"%PDF-", "application/pdf", "found.pdf"),))
    prompt = (
        instructed("a"),
        said(FilePart("image/*", Url("https://p.test/a")), law, upload, note),
        answered(called()),
        told(result(output=found)),
        said(page),
    )
    call = options(*prompt, tools=[LOOK])
    assert expected_of(call, quiet(call)).documents == (
        Document("The Law", "law.pdf", "application/pdf"),
        Document("n.txt", "n.txt", "text/plain"),
        Document("found.pdf", "found.pdf", "application/pdf"),
        Document("P", None, "text/plain"),
    )


def test_documents_are_counted_as_they_are_sent_results_first() -> None:
    first = FilePart("application/pdf", b"%PDF-1", "first.pdf")
    second = OutputFileData(b"%PDF-2", "application/pdf", "second.pdf")
    output = ContentOutput((second,))
    prompt = (said("q"), answered(called()), said(first), told(result("c1", output)))
    call = options(*prompt, tools=[LOOK])
    assert [one.title for one in expected_of(call, build_request("claude-haiku-4-5", call)[0]).documents] == [
        "second.pdf",
        "first.pdf",
    ]
