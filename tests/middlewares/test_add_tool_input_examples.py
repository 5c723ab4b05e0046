"""`add_tool_input_examples`: examples stand in the description, where every model reads them."""

from __future__ import annotations

import json
import sys
from types import MappingProxyType, ModuleType
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neurolink_mw import CallOptions, wrap_model
from neurolink_mw.errors import ConfigError, ProtocolError
from neurolink_mw.middlewares.add_tool_input_examples import AddToolInputExamples
from neurolink_mw.protocol import FunctionTool, JSONObject, ProviderTool, ToolDefinition, ToolExample, UnknownPart, user
from neurolink_mw.testing import ScriptedModel, check_middleware

pytestmark = pytest.mark.anyio
OSLO = ToolExample({"city": "Oslo", "days": 3})
ROME = ToolExample({"city": "Roma é", "days": 1})
WEATHER = FunctionTool("weather", {"type": "object"}, "Tells the weather.", (OSLO, ROME), strict=True)


def with_tools(*tools: ToolDefinition) -> CallOptions:
    return CallOptions([user("Hi")], tools=tools)


async def sent(options: CallOptions, **config: Any) -> CallOptions:
    bare = ScriptedModel("hi")
    await wrap_model(bare, [AddToolInputExamples(**config)]).do_generate(options)
    return bare.calls[0].options


async def described(tool: FunctionTool, **config: Any) -> str | None:
    (seen,) = (await sent(with_tools(tool), **config)).tools or ()
    assert isinstance(seen, FunctionTool)
    return seen.description


async def test_examples_follow_the_description_one_a_line_and_leave_their_own_field() -> None:
    seen = await sent(with_tools(WEATHER))
    assert seen.tools == (
        WEATHER.replace(
            description='Tells the weather.\n\nInput Examples:\n{"city":"Oslo","days":3}\n{"city":"Roma é","days":1}',
            input_examples=None,
        ),
    )


@pytest.mark.parametrize("description", [None, ""])
async def test_a_tool_without_a_description_gets_the_examples_alone(description: str | None) -> None:
    tool = WEATHER.replace(description=description, input_examples=(OSLO,))
    assert await described(tool) == 'Input Examples:\n{"city":"Oslo","days":3}'


@pytest.mark.parametrize(
    "tool",
    [
        WEATHER.replace(input_examples=None),
        WEATHER.replace(input_examples=()),
        ProviderTool("acme.search", "search", {"input_examples": [1]}),
        UnknownPart("acme", {"inputExamples": [{"input": {}}]}),
    ],
)
async def test_tools_without_examples_and_of_other_kinds_go_on_as_they_are(tool: ToolDefinition) -> None:
    assert await sent(with_tools(tool)) == with_tools(tool)
    beside = (await sent(with_tools(tool, WEATHER, tool))).tools or ()
    assert (beside[0], beside[2]) == (tool, tool)


@pytest.mark.parametrize("tools", [None, ()])
async def test_a_call_without_tools_goes_on_as_it_is(tools: tuple[ToolDefinition, ...] | None) -> None:
    options = CallOptions([user("Hi")], tools=tools)
    assert await sent(options) == options


async def test_the_examples_may_stay_in_their_own_field() -> None:
    (seen,) = (await sent(with_tools(WEATHER), remove=False)).tools or ()
    assert isinstance(seen, FunctionTool)
    assert seen.input_examples == WEATHER.input_examples
    assert seen.description == await described(WEATHER)


async def test_the_line_above_them_may_be_another() -> None:
    assert await described(WEATHER.replace(input_examples=(OSLO,)), prefix="For instance:") == (
        'Tells the weather.\n\nFor instance:\n{"city":"Oslo","days":3}'
    )


def as_words(example: JSONObject) -> str:
    return ", ".join(f"{key} is {item}" for key, item in example.items())


async def test_each_example_may_be_written_by_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("acme_examples")
    module.as_words = as_words  # type: ignore[attr-defined]  # a module of one function
    monkeypatch.setitem(sys.modules, "acme_examples", module)
    for format in (as_words, "acme_examples:as_words"):
        assert await described(WEATHER, format=format) == (
            "Tells the weather.\n\nInput Examples:\ncity is Oslo, days is 3\ncity is Roma é, days is 1"
        )


async def test_a_function_that_returns_no_text_is_named_without_what_it_got() -> None:
    with pytest.raises(ConfigError, match=r"add_tool_input_examples\.format returned int, not a text"):
        await sent(with_tools(WEATHER), format=len)


async def test_an_example_without_a_json_form_is_refused_by_its_place() -> None:
    tool = WEATHER.replace(input_examples=(ToolExample({"at": {"x": object()}}),))  # type: ignore[dict-item]
    with pytest.raises(ProtocolError, match=r"^tools\[1\]\.inputExamples\[0\]\.input\.at\.x: object has no JSON form"):
        await sent(with_tools(WEATHER, tool))


async def test_the_options_that_were_given_are_not_changed() -> None:
    options = with_tools(WEATHER)
    await sent(options)
    assert options == with_tools(WEATHER)


async def test_nothing_is_added_twice_where_a_request_comes_through_again() -> None:
    once = await sent(with_tools(WEATHER))
    assert await sent(once) == once


async def test_a_stream_gets_the_same_descriptions() -> None:
    bare = ScriptedModel("hi")
    async with (await wrap_model(bare, [AddToolInputExamples()]).do_stream(with_tools(WEATHER))).stream:
        assert bare.calls[0].options == await sent(with_tools(WEATHER))


values = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
inputs = st.dictionaries(st.text(max_size=4), values | st.lists(values, max_size=2), max_size=3)


@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(inputs, st.sampled_from([dict, MappingProxyType]))
def test_any_kind_of_mapping_is_written_as_json_in_one_line(example: dict[str, Any], kind: Any) -> None:
    tool = WEATHER.replace(description=None, input_examples=(ToolExample(kind(example)),))
    _, line = (anyio.run(described, tool) or "").split("\n")
    assert json.loads(line) == example


def test_it_keeps_the_contract_of_middlewares() -> None:
    check_middleware(AddToolInputExamples)
    check_middleware(AddToolInputExamples, options=with_tools(WEATHER))
