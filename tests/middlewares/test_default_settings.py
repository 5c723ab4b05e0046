"""`default_settings`: what a call leaves unset is filled in, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from neurolink_mw import CallOptions, from_json, wrap_model
from neurolink_mw.errors import ConfigError
from neurolink_mw.middlewares.default_settings import DefaultSettings
from neurolink_mw.protocol import FunctionTool, ResponseFormat, ToolChoice, ToolDefinition
from neurolink_mw.testing import ScriptedModel

pytestmark = pytest.mark.anyio
ASKED = CallOptions.from_text("Hello")
TOOL = {"type": "function", "name": "search", "inputSchema": {"type": "object"}}


async def sent(defaults: DefaultSettings, options: CallOptions) -> CallOptions:
    bare = ScriptedModel("hi")
    await wrap_model(bare, [defaults]).do_generate(options)
    return bare.calls[0].options


@pytest.mark.parametrize(
    ("name", "default", "given"),
    [
        ("temperature", 0.7, 0),
        ("temperature", 0.7, 1.5),
        ("top_p", 0.9, 0.0),
        ("max_output_tokens", 100, 1),
        ("seed", 42, 0),
        ("stop_sequences", ["END"], ()),
        ("stop_sequences", ["END"], ("STOP",)),
        ("tools", [TOOL], ()),
        ("reasoning", "high", ""),
        ("reasoning", "high", "low"),
    ],
)
async def test_what_a_call_sets_beats_the_default_zero_and_empty_too(name: str, default: Any, given: Any) -> None:
    seen = await sent(DefaultSettings(**{name: default}), ASKED.replace(**{name: given}))
    assert getattr(seen, name) == given


@pytest.mark.parametrize(
    ("name", "default", "filled"),
    [
        ("temperature", 0, 0),
        ("temperature", 0.7, 0.7),
        ("top_k", 5, 5),
        ("presence_penalty", 0.1, 0.1),
        ("frequency_penalty", -0.1, -0.1),
        ("stop_sequences", ["END"], ("END",)),
        ("stop_sequences", [], ()),
        ("tools", [TOOL], from_json(tuple[ToolDefinition, ...], [TOOL])),
        ("tool_choice", {"type": "tool", "toolName": "search"}, ToolChoice("tool", "search")),
        ("response_format", {"type": "json", "schema": {"a": 1}}, ResponseFormat("json", {"a": 1})),
        ("headers", {"x-team": "a"}, {"x-team": "a"}),
        ("provider_options", {"acme": {"tier": "free", "none": None}}, {"acme": {"tier": "free", "none": None}}),
        ("metadata", {"tenant": "a"}, {"tenant": "a"}),
    ],
)
async def test_what_a_call_leaves_unset_takes_the_default(name: str, default: Any, filled: Any) -> None:
    assert getattr(await sent(DefaultSettings(**{name: default}), ASKED), name) == filled


async def test_without_defaults_the_options_go_on_as_they_are() -> None:
    seen = await sent(DefaultSettings(), ASKED)
    assert seen == ASKED


async def test_provider_options_are_merged_at_every_depth_and_lists_are_replaced() -> None:
    defaults = DefaultSettings(provider_options={"acme": {"a": {"x": 1, "y": 1}, "list": [1, 2]}, "other": {"z": 1}})
    seen = await sent(defaults, ASKED.replace(provider_options={"acme": {"a": {"y": 2}, "list": [3]}}))
    assert seen.provider_options == {"acme": {"a": {"x": 1, "y": 2}, "list": [3]}, "other": {"z": 1}}


async def test_a_value_of_another_kind_replaces_the_default_whole() -> None:
    defaults = DefaultSettings(metadata={"a": {"x": 1}, "b": 1})
    seen = await sent(defaults, ASKED.replace(metadata={"a": 1, "b": {"x": None}}))
    assert seen.metadata == {"a": 1, "b": {"x": None}}


async def test_headers_are_the_same_in_any_case_and_none_takes_one_out() -> None:
    defaults = DefaultSettings(headers={"X-Team": "a", "X-Trace": "on", "X-Other": "c"})
    seen = await sent(defaults, ASKED.replace(headers={"x-team": "b", "X-TRACE": None}))
    assert seen.headers == {"X-Other": "c", "x-team": "b", "X-TRACE": None}


async def test_the_options_that_were_given_are_not_changed() -> None:
    options = ASKED.replace(provider_options={"acme": {"a": 1}}, headers={"a": "1"}, metadata={"t": 1})
    before = repr((options.provider_options, options.headers, options.metadata, options.temperature))
    await sent(
        DefaultSettings(temperature=1, provider_options={"acme": {"b": 2}}, headers={"b": "2"}, metadata={"u": 2}),
        options,
    )
    assert repr((options.provider_options, options.headers, options.metadata, options.temperature)) == before


async def test_nobody_further_in_can_change_the_defaults_of_later_calls() -> None:
    defaults = DefaultSettings(provider_options={"acme": {"a": 1}}, headers={"a": "1"})
    seen = await sent(defaults, ASKED)
    for mapping in (seen.provider_options, seen.headers, (seen.provider_options or {})["acme"]):
        with pytest.raises(TypeError, match="read-only"):
            mapping["b"] = "2"  # type: ignore[index]  # just so


async def test_a_stream_gets_the_same_defaults() -> None:
    bare = ScriptedModel("hi")
    result = await wrap_model(bare, [DefaultSettings(temperature=0)]).do_stream(ASKED)
    async with result.stream:
        assert bare.calls[0].options.temperature == 0


async def test_a_tool_default_is_a_tool() -> None:
    seen = await sent(DefaultSettings(tools=[TOOL]), ASKED)
    assert isinstance((seen.tools or ())[0], FunctionTool)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"tools": [TOOL, {"type": "function"}]}, r"default_settings\.tools\[1\]\.name: "),
        ({"tools": [{"name": "search"}]}, r"default_settings\.tools\[0\]"),
        ({"tool_choice": {}}, r"default_settings\.tool_choice\.type: "),
        ({"response_format": {"type": 5}}, r"default_settings\.response_format\.type: "),
        ({"max_output_tokens": 0}, "max_output_tokens: input should be greater than or equal to 1"),
        ({"temperature": float("inf")}, "temperature: input should be a finite number"),
        ({"temperatur": 1}, "temperatur: there is no such option; did you mean 'temperature'"),
    ],
)
def test_a_bad_default_is_found_when_the_member_is_made(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        DefaultSettings(**config)
