"""Tools, tools that Anthropic defines, their names, and the choice among them."""

from __future__ import annotations

import typing
from typing import Any

import pytest
import typing_extensions
from anthropic.types import server_tool_use_block_param, tool_union_param
from anthropic.types.beta import beta_server_tool_use_block_param, beta_tool_union_param

from neurolink_mw.errors import InvalidRequestError
from neurolink_mw.protocol import FunctionTool, ProviderTool, ToolChoice, ToolExample, UnknownPart
from neurolink_mw.providers.anthropic.provider_tools import NAMES, SERVER_TOOLS, native_tool_name
from neurolink_mw.providers.anthropic.request import BETAS, build_request, expected_of

from .builders import (
    FINDER,
    HAIKU,
    LOOK,
    OPUS_55,
    SONNET_4,
    answered,
    called,
    options,
    own,
    quiet,
    request,
    result,
    said,
    told,
)

ONE_CALL = own(disableParallelToolUse=True)


def choice(type: str, tool_name: str | None = None) -> ToolChoice:
    return ToolChoice(type, tool_name)


def refusal(**call: Any) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        build_request(HAIKU, options(**call))
    return str(caught.value)


# --------------------------------------------------------------------------------------------------------- functions


def test_a_tool_without_a_type_in_its_schema_takes_an_object() -> None:
    native = quiet(options(tools=[FunctionTool("t", {"properties": {}}, " ")]))
    assert native["tools"] == [{"name": "t", "input_schema": {"type": "object", "properties": {}}}]


def test_a_tools_own_options_are_its_members() -> None:
    own_options = own(deferLoading=True, allowedCallers=["direct"], eagerInputStreaming=False)
    native = quiet(options(tools=[LOOK.replace(provider_options=own_options)]), stream=True)
    (tool,) = native["tools"]
    assert tool["defer_loading"] is True
    assert tool["allowed_callers"] == ["direct"]
    assert tool["eager_input_streaming"] is False


def test_an_unknown_option_of_a_tool_is_left_out_with_a_warning() -> None:
    assert request(options(tools=[LOOK.replace(provider_options=own(lazy=True))]))[1] == ["lazy"]


def test_inputs_are_streamed_as_they_are_written_unless_the_call_says_no() -> None:
    (tool,) = quiet(options(tools=[LOOK]), stream=True)["tools"]
    assert tool["eager_input_streaming"] is True
    (tool,) = quiet(options(tools=[LOOK], provider_options=own(toolStreaming=False)), stream=True)["tools"]
    assert "eager_input_streaming" not in tool


def test_examples_and_strict_are_sent() -> None:
    tool = LOOK.replace(strict=False, input_examples=(ToolExample({"q": "sun"}),))
    (native,) = quiet(options(tools=[tool]))["tools"]
    assert (native["strict"], native["input_examples"]) == (False, [{"q": "sun"}])


def test_strict_is_left_out_where_the_model_does_not_take_it() -> None:
    native, features = request(options(tools=[LOOK.replace(strict=True)]), SONNET_4)
    assert "strict" not in native["tools"][0]
    assert features == ["strict"]


def test_a_tool_of_an_unknown_type_is_left_out_with_a_warning() -> None:
    native, features = request(options(tools=[UnknownPart("hologram", {})]))
    assert "tools" not in native
    assert features == ["tool of type hologram"]


def test_a_name_that_the_api_refuses_is_spelled_otherwise_and_told() -> None:
    call = options(tools=[LOOK.replace(name="a.look")])
    native = quiet(call)
    assert native["tools"][0]["name"] == "alook"
    assert expected_of(call, native).tool_names == {"alook": "a.look"}


@pytest.mark.parametrize("second", [LOOK.replace(name="lo.ok"), LOOK])
def test_two_tools_of_one_name_are_refused(second: FunctionTool) -> None:
    assert refusal(tools=[LOOK, second]).startswith(f"tools[1]: {second.name!r} and 'look' are both 'look' here")


def test_a_function_with_the_name_of_a_provider_tool_beside_it_is_refused() -> None:
    assert "are both 'web_search' here" in refusal(tools=[FINDER, LOOK.replace(name="web_search")])


# ------------------------------------------------------------------------------------------- tools of the provider's


def _of_sdk() -> dict[str, str | None]:
    kinds = [
        *typing.get_args(tool_union_param.ToolUnionParam),
        *typing.get_args(beta_tool_union_param.BetaToolUnionParam),
    ]
    names: dict[str, str | None] = {}
    for kind in kinds:
        hints = typing_extensions.get_type_hints(kind)
        types = [one for one in typing.get_args(hints["type"]) if isinstance(one, str)]
        name = typing.get_args(hints["name"])[0] if "name" in hints and typing.get_args(hints["name"]) else None
        names.update(dict.fromkeys(types, name))
    return names


def test_the_table_has_every_tool_that_the_sdk_knows() -> None:
    assert _of_sdk() == NAMES


def test_the_tools_that_the_service_runs_are_those_of_the_sdk() -> None:
    known = {
        name
        for module, type in (
            (server_tool_use_block_param, "ServerToolUseBlockParam"),
            (beta_server_tool_use_block_param, "BetaServerToolUseBlockParam"),
        )
        for name in typing.get_args(typing_extensions.get_type_hints(getattr(module, type))["name"])
    }
    assert known == SERVER_TOOLS


SCREEN = {"displayWidthPx": 800, "displayHeightPx": 600}
ARGS: dict[str, Any] = {
    "advisor_20260301": {"model": OPUS_55},
    "mcp_toolset": {"mcpServerName": "srv", "configs": {"readFile": {"deferLoading": True}}},
    "computer_20241022": SCREEN,
    "computer_20250124": SCREEN,
    "computer_20251124": SCREEN,
}


@pytest.mark.parametrize("kind", sorted(NAMES))
def test_every_tool_of_anthropics_is_as_the_sdk_types_it(kind: str) -> None:
    native = quiet(options(tools=[ProviderTool(f"anthropic.{kind}", "mine", ARGS.get(kind, {}))]))
    assert native["tools"][0]["type"] == kind
    assert native["tools"][0].get("name") == NAMES[kind]


def test_args_are_spelled_as_the_api_does_but_for_what_the_caller_named() -> None:
    native = quiet(options(tools=[ProviderTool("anthropic.mcp_toolset", "mine", ARGS["mcp_toolset"])]))
    assert native["tools"][0]["configs"] == {"readFile": {"defer_loading": True}}


def test_the_ai_sdks_ids_of_tool_search_are_understood() -> None:
    native = quiet(options(tools=[ProviderTool("anthropic.tool_search_regex_20251119", "search")]))
    assert native["tools"] == [{"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}]


def test_a_dated_tool_that_is_not_known_yet_is_passed_on_under_the_name_before_the_date() -> None:
    native, warnings = build_request(HAIKU, options(tools=[ProviderTool("anthropic.web_dive_20270101", "dive")]))
    assert native["tools"] == [{"type": "web_dive_20270101", "name": "web_dive"}]
    assert not warnings
    assert native_tool_name("phone_toolset_20270101") is None


def test_a_tool_of_another_provider_is_left_out_with_a_warning() -> None:
    tool = ProviderTool("openai.web_search_20250101", "w")
    assert request(options(tools=[tool]))[1] == ["provider-defined tool openai.web_search_20250101"]


def test_the_callers_name_of_a_provider_tool_is_told() -> None:
    call = options(tools=[FINDER, LOOK])
    assert expected_of(call, quiet(call)).tool_names == {"web_search": "finder"}


@pytest.mark.parametrize(
    ("kind", "beta"),
    [
        ("computer_20250124", "computer-use-2025-01-24"),
        ("computer_20251124", "computer-use-2025-11-24"),
        ("text_editor_20241022", "computer-use-2024-10-22"),
        ("advisor_20260301", "advisor-tool-2026-03-01"),
        ("mcp_toolset", "mcp-client-2025-11-20"),
        ("bash_20250124", None),
        ("code_execution_20250522", None),
        ("memory_20250818", None),
    ],
)
def test_a_tool_asks_for_its_beta_where_the_stable_types_lack_it(kind: str, beta: str | None) -> None:
    native = quiet(options(tools=[ProviderTool(f"anthropic.{kind}", "mine", ARGS.get(kind, {}))]))
    assert native.get(BETAS) == (None if beta is None else [beta])


def test_a_tool_that_the_caller_runs_is_called_by_its_native_name_in_the_history() -> None:
    bash = ProviderTool("anthropic.bash_20250124", "shell")
    call = called(name="shell", input={"command": "ls"})
    prompt = said("q"), answered(call), told(result(name="shell"))
    assert quiet(options(*prompt, tools=[bash]))["messages"][1]["content"][0]["name"] == "bash"


# ------------------------------------------------------------------------------------------------------------ choice


@pytest.mark.parametrize(
    ("wanted", "native"),
    [
        (None, None),
        (choice("auto"), {"type": "auto"}),
        (choice("none"), {"type": "none"}),
        (choice("required"), {"type": "any"}),
        (choice("tool", "look"), {"type": "tool", "name": "look"}),
        (choice("tool", "finder"), {"type": "tool", "name": "web_search"}),
    ],
)
def test_a_choice_is_sent_as_the_api_names_it(wanted: ToolChoice | None, native: object) -> None:
    assert quiet(options(tools=[LOOK, FINDER], tool_choice=wanted)).get("tool_choice") == native


@pytest.mark.parametrize("wanted", [choice("auto"), choice("required"), choice("tool", "look")])
def test_at_most_one_call_is_said_with_every_choice_but_none(wanted: ToolChoice) -> None:
    native = quiet(options(tools=[LOOK], tool_choice=wanted, provider_options=ONE_CALL))
    assert native["tool_choice"]["disable_parallel_tool_use"] is True
    native = quiet(options(tools=[LOOK], tool_choice=choice("none"), provider_options=ONE_CALL))
    assert native["tool_choice"] == {"type": "none"}


def test_without_tools_there_is_no_choice() -> None:
    assert "tool_choice" not in quiet(options(tool_choice=choice("auto"), provider_options=ONE_CALL))


def test_a_choice_that_names_no_tool_is_refused() -> None:
    assert refusal(tools=[LOOK], tool_choice=choice("tool", "lock")).startswith("tool_choice: 'lock' is none of")
    assert "not 'any'" in refusal(tools=[LOOK], tool_choice=choice("any"))


@pytest.mark.parametrize("wanted", [choice("required"), choice("tool", "look")])
def test_a_choice_is_not_forced_while_the_model_thinks(wanted: ToolChoice) -> None:
    thinking = own(thinking={"type": "enabled", "budgetTokens": 2000})
    native, features = request(options(tools=[LOOK], tool_choice=wanted, provider_options=thinking))
    assert native["tool_choice"] == {"type": "auto"}
    assert features == ["toolChoice"]


def test_a_choice_is_not_forced_on_a_model_that_refuses_it() -> None:
    native, features = request(options(tools=[LOOK], tool_choice=choice("required")), OPUS_55)
    assert native["tool_choice"] == {"type": "auto"}
    assert features == ["toolChoice"]


@pytest.mark.parametrize("model_id", ["claude-sonnet-5", "claude-opus-5"])
def test_models_that_think_by_default_take_a_forced_choice_until_they_are_told_to_think(model_id: str) -> None:
    call = options(tools=[LOOK], tool_choice=choice("required"))
    assert quiet(call, model_id)["tool_choice"] == {"type": "any"}
    told = call.replace(provider_options=own(thinking={"type": "adaptive"}))
    assert request(told, model_id)[0]["tool_choice"] == {"type": "auto"}


def test_a_forbidden_call_is_told_to_whoever_reads_the_answer() -> None:
    call = options(tools=[LOOK], tool_choice=choice("none"))
    assert expected_of(call, quiet(call)).no_calls
    assert not expected_of(options(tools=[LOOK]), quiet(options(tools=[LOOK]))).no_calls
