"""`Tool(...)` by hand, and the settings of a turn's tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel, RootModel

from neurolink_mw.errors import ConfigError
from neurolink_mw.protocol import FunctionTool, JsonOutput, TextOutput
from neurolink_mw.tools import Breaker, Tool, ToolContext, ToolExecutor, ToolSettings

from .builders import SECRET, call, explicit, failed, said

pytestmark = pytest.mark.anyio

CITY: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class City(BaseModel):
    city: str


class Uncarried(BaseModel):
    back: Callable[[], int]


# -- what is told and given


def test_the_model_is_told_what_the_tool_says() -> None:
    made = Tool(
        name="weather",
        description="The weather.",
        input_schema=CITY,
        strict=True,
        input_examples=[{"city": "Oslo"}],
        provider_options={"acme": {"cache": True}},
    )
    told = made.definition
    assert (told.name, told.description, told.strict) == ("weather", "The weather.", True)
    assert (told.input_schema, told.provider_options) == (CITY, {"acme": {"cache": True}})
    assert [one.input for one in told.input_examples or ()] == [{"city": "Oslo"}]


async def test_a_schema_gives_the_parsed_object() -> None:
    assert (
        await said(explicit(lambda given: given["city"], input_schema=CITY), {"city": "Oslo"})
    ).output == TextOutput("Oslo")


async def test_a_pydantic_model_gives_an_instance() -> None:
    made = explicit(lambda given: f"{type(given).__name__} {given.city}", input_schema=City)
    assert made.schema == {**CITY, "properties": {"city": {"type": "string"}}}
    assert (await said(made, {"city": "Oslo"})).output == TextOutput("City Oslo")


async def test_no_schema_is_no_input() -> None:
    made = Tool(name="now", execute=lambda given: given)
    assert made.definition == FunctionTool(
        "now", {"type": "object", "properties": {}, "additionalProperties": False}, None, None, None, None
    )
    assert (await said(made)).output == JsonOutput({})
    assert "does not fit" in await failed(made, {"x": 1})


def second(given: Any, context: ToolContext) -> str:
    return f"{given} {context.call.tool_name} {context.attempt}"


def second_of_another_name(given: Any, about: ToolContext) -> str:
    return second(given, about)


def optional_context(given: Any, context: ToolContext | None = None) -> str:
    return "none" if context is None else second(given, context)


@pytest.mark.parametrize("execute", [second, second_of_another_name, optional_context, partial(second)])
async def test_a_second_parameter_gets_the_context(execute: Callable[..., str]) -> None:
    assert (await said(explicit(execute))).output == TextOutput("{} tool 1")


@pytest.mark.parametrize(
    "execute", [lambda given, limit=3: limit, lambda *args: len(args) + 2, lambda given, **more: 3 + len(more)]
)
async def test_any_other_second_parameter_does_not(execute: Callable[..., int]) -> None:
    assert (await said(explicit(execute))).output == JsonOutput(3)


async def test_a_builtin_is_called_with_the_input() -> None:
    assert (await said(explicit(dict), {"a": 1})).output == JsonOutput({"a": 1})
    assert (await said(explicit(len), {"a": 1})).output == JsonOutput(1)


async def test_calling_the_tool_calls_its_function() -> None:
    assert explicit(lambda given: given["x"])({"x": 5}) == 5
    with pytest.raises(ConfigError, match="tool 'tool' has no execute: there is nothing to call"):
        explicit(None)()


# -- what is refused


@pytest.mark.parametrize("name", ["", "with space", "é", "x" * 129, "a/b", 5, None])
def test_names_that_providers_refuse_are_refused(name: Any) -> None:
    with pytest.raises(ConfigError, match="a tool's name has 1 to 128 letters, digits and any of"):
        Tool(name=name)


@pytest.mark.parametrize("name", ["a", "x" * 128, "mcp__server.tool-1:read"])
def test_others_are_taken(name: str) -> None:
    assert Tool(name=name).name == name


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "objekt"}, "input_schema"),
        ({"type": "object", "properties": 3}, "input_schema"),
        ({"$ref": "#/nowhere"}, "leads out of the schema, or nowhere"),
        ([], "a JSON Schema (a mapping) or a pydantic model, not list"),
        (int, "a JSON Schema (a mapping) or a pydantic model, not type"),
        ({"type": "string"}, "describes no object"),
        ({"type": ["array", "null"]}, "describes no object"),
        (RootModel[list[int]], "describes no object"),
        (Uncarried, "input_schema: Uncarried has no JSON Schema: Cannot generate a JsonSchema"),
    ],
)
def test_schemas_that_cannot_work_are_refused_when_the_tool_is_made(schema: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=f"tool 'weather'.*{re.escape(problem)}"):
        Tool(name="weather", input_schema=schema)


@pytest.mark.parametrize("schema", [{}, {"type": ["object", "null"]}, {"anyOf": [CITY]}])
def test_schemas_that_leave_it_open_are_taken(schema: Any) -> None:
    assert Tool(name="weather", input_schema=schema).schema == schema


def generator(given: object) -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ({"execute": "x"}, "execute is a function, not str"),
        ({"execute": generator}, "its function has a `yield` in it"),
        ({"execute": lambda: 1}, "execute is called as execute(input) or execute(input, context)"),
        ({"execute": lambda a, b, c: 1}, "execute is called as execute(input) or execute(input, context)"),
        ({"execute": lambda a, *, b: 1}, "execute is called as execute(input) or execute(input, context)"),
        ({"timeout": 0}, "timeout is a number of seconds above 0"),
        ({"timeout": float("nan")}, "timeout is a number of seconds above 0"),
        ({"timeout": True}, "timeout is a number of seconds above 0"),
        ({"timeout": "5"}, "timeout is a number of seconds above 0"),
        ({"retries": -1}, "retries is a whole number from 0 on"),
        ({"retries": True}, "retries is a whole number from 0 on"),
        ({"retries": 1.0}, "retries is a whole number from 0 on"),
        ({"retry_delay": -1}, "retry_delay is a number of seconds from 0 on"),
        ({"retry_delay": None}, "retry_delay is a number of seconds from 0 on"),
        ({"needs_approval": "yes"}, "needs_approval is true, false, or a function of the input"),
        ({"needs_approval": None}, "needs_approval is true, false, or a function of the input"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_a_remedy(setting: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=f"tool 'weather': {re.escape(problem)}"):
        Tool(name="weather", **setting)


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ({"parallel": 0}, "parallel is the number of tools that run at once, from 1 on"),
        ({"parallel": True}, "parallel is the number of tools that run at once, from 1 on"),
        ({"timeout": -1}, "the timeout of tools is a number of seconds above 0"),
        ({"breaker": 3}, "breaker is a Breaker(...) or None, not int"),
        ({"approve": "yes"}, "approve is a function of the call, not str"),
        ({"output_limits": 5}, "output_limits is ExcerptLimits(...) or None, not int"),
    ],
)
def test_so_are_those_of_a_turn(setting: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(problem)):
        ToolSettings(**setting)


@pytest.mark.parametrize("failures", [0, True, 1.5])
def test_a_breaker_without_a_number_of_failures_is_refused(failures: Any) -> None:
    with pytest.raises(ConfigError, match=r"Breaker.failures is a whole number from 1 on; use breaker=None"):
        Breaker(failures)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="two tools have the name 'tool': a model could not tell them apart"):
        ToolExecutor([explicit(len), explicit(len)], ToolSettings())


def test_what_is_no_tool_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"tools are Tool\(...\) or functions with @tool, not builtin"):
        ToolExecutor([len], ToolSettings())  # type: ignore[list-item]


# -- what is shown


def test_reprs_show_no_schema_example_or_input() -> None:
    made = Tool(
        name="x", input_schema={"const": SECRET}, input_examples=[{"a": SECRET}], provider_options={"a": SECRET}
    )
    assert SECRET not in repr(made)
    assert SECRET not in repr(ToolContext(call("x", {"a": SECRET}), made.definition))  # type: ignore[arg-type]
