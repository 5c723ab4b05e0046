"""`@tool`: what the model is told of a typed function, and what the function gets."""

from __future__ import annotations

import functools
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from neurolink_mw.errors import ConfigError
from neurolink_mw.protocol import JsonOutput, TextOutput
from neurolink_mw.tools import Tool, ToolContext, tool

from .builders import OPTIONS, Turn, call, failed, said

pytestmark = pytest.mark.anyio


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Place(BaseModel):
    city: str
    country: str = "NO"


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    at: datetime
    pair: tuple[int, int]


@dataclass
class Point:
    x: int
    y: int


class Thermometer:
    """Knows how warm it is."""

    def __init__(self, degrees: int) -> None:
        self.degrees = degrees

    def read(self, unit: str = "c") -> str:
        """Read it."""
        return f"{self.degrees} {unit}"

    async def read_async(self, unit: str) -> str:
        return f"{self.degrees} {unit}"

    def __call__(self, unit: str) -> str:
        return f"{self.degrees} {unit}"

    @classmethod
    def made(cls, degrees: int) -> str:
        return f"{cls.__name__} {degrees}"


class AsyncThermometer:
    async def __call__(self, unit: str) -> str:
        return f"7 {unit}"


def shown(made: Tool) -> Any:
    """The properties that the model is told of."""
    return made.schema["properties"]


def describe(function: Callable[..., Any]) -> dict[str, str | None]:
    return {name: one.get("description") for name, one in shown(tool(function)).items()}


# -- what the model is told


def test_name_description_parameters_types_defaults_and_requiredness_come_from_the_function() -> None:
    @tool
    async def weather(city: str, days: int = 1) -> str:
        """The weather of a city.

        It is a forecast.
        """
        return ""

    assert (weather.name, weather.description) == ("weather", "The weather of a city.\n\nIt is a forecast.")
    assert weather.schema == {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}},
        "required": ["city"],
        "additionalProperties": False,
    }


def test_settings_win_over_what_the_function_says() -> None:
    @tool(name="forecast", description="Another.", timeout=2, strict=True, input_examples=[{"city": "Oslo"}])
    def weather(city: str) -> str:
        """The weather."""
        return ""

    definition = weather.definition
    assert (definition.name, definition.description, definition.strict) == ("forecast", "Another.", True)
    assert [one.input for one in definition.input_examples or ()] == [{"city": "Oslo"}]
    assert weather.timeout == 2


def google(city: str, *, days: int = 1) -> None:
    """The weather.

    Args:
        city: Its name,
            in English.
        days (int): How many.

    Returns:
        Nothing.
    """


def numpy(city: str, days: int = 1) -> None:
    """The weather.

    Parameters
    ----------
    city : str
        Its name,
        in English.
    days : int, optional
        How many.
    """


def sphinx(city: str, days: int = 1) -> None:
    """The weather.

    :param city: Its name,
        in English.
    :param days: How many.
    :returns: Nothing.
    """


@pytest.mark.parametrize("function", [google, numpy, sphinx])
def test_parameters_are_described_by_docstrings_of_three_styles(function: Callable[..., Any]) -> None:
    assert describe(function) == {"city": "Its name,\nin English.", "days": "How many."}
    assert tool(function).description == "The weather."


def test_parameters_that_share_an_entry_of_a_numpy_docstring_are_both_described() -> None:
    def distance(x: int, y: int) -> None:
        """How far.

        Parameters
        ----------
        x, y : int
            In metres.
        """

    assert describe(distance) == {"x": "In metres.", "y": "In metres."}


@pytest.mark.parametrize("doc", ["", None, ":param", "Args:", "Do.\n\n:param\n:raises\n", "x\n---\n\n  y\n---"])
def test_an_odd_docstring_is_no_reason_to_refuse_a_function(doc: str | None) -> None:
    def odd(x: int) -> None: ...

    odd.__doc__ = doc
    assert list(shown(tool(odd))) == ["x"]


def test_a_field_says_what_a_type_cannot_and_counts_more_than_the_docstring() -> None:
    @tool
    def weather(days: Annotated[int, Field(ge=1, le=7, description="From the field.")], city: str = "Oslo") -> None:
        """The weather.

        Args:
            days: From the docstring.
            city: From the docstring.
        """

    assert shown(weather)["days"] == {"type": "integer", "minimum": 1, "maximum": 7, "description": "From the field."}
    assert shown(weather)["city"]["description"] == "From the docstring."


async def test_a_field_may_stand_in_the_place_of_the_default() -> None:
    @tool
    def weather(city: str = Field(description="Its name."), days: int = Field(3, ge=1)) -> str:
        return f"{city} {days}"

    assert weather.schema["required"] == ["city"]
    assert shown(weather) == {
        "city": {"type": "string", "description": "Its name."},
        "days": {"type": "integer", "minimum": 1, "default": 3},
    }
    assert (await said(weather, {"city": "Oslo"})).output == TextOutput("Oslo 3")


async def test_a_default_that_is_no_json_is_used_and_not_told() -> None:
    nothing = object()

    @tool
    def seen(value: Any = nothing) -> bool:
        return value is nothing

    assert shown(seen) == {"value": {}}
    assert (await said(seen)).output == JsonOutput(True)


async def test_a_default_is_given_as_it_is() -> None:
    @tool
    def seen(at: date = date(2026, 1, 2)) -> str:
        return type(at).__name__

    assert shown(seen)["at"] == {"type": "string", "format": "date", "default": "2026-01-02"}
    assert (await said(seen)).output == TextOutput("date")


# -- types


async def test_input_is_converted_to_the_types_of_the_parameters() -> None:
    @tool
    def convert(
        unit: Unit,
        at: datetime,
        place: Place,
        point: Point,
        mode: Literal["a", "b"],
        either: int | str,
        maybe: int | None = None,
        many: tuple[int, ...] = (),
    ) -> list[str]:
        return [repr(one) for one in (unit, at, place, point, mode, either, maybe, many)]

    given = {
        "unit": "c",
        "at": "2026-01-02T03:04:05Z",
        "place": {"city": "Oslo"},
        "point": {"x": 1, "y": 2},
        "mode": "a",
        "either": "x",
        "many": [1, 2],
    }
    outcome = await said(convert, given)
    assert isinstance(outcome.output, JsonOutput)
    assert outcome.output.value == [
        "<Unit.CELSIUS: 'c'>",
        "datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=TzInfo(0))",
        "Place(city='Oslo', country='NO')",
        "Point(x=1, y=2)",
        "'a'",
        "'x'",
        "None",
        "(1, 2)",
    ]


def test_their_schema_stands_for_itself() -> None:
    @tool
    def convert(unit: Unit, place: Place, other: Place | None = None) -> None: ...

    assert "$ref" not in str(convert.schema)
    assert "$defs" not in convert.schema
    assert shown(convert)["unit"]["enum"] == ["c", "f"]
    assert shown(convert)["place"]["required"] == ["city"]


async def test_a_recursive_model_keeps_its_reference_and_is_checked() -> None:
    @tool
    def count(tree: Tree) -> int:
        return 1 + sum(1 for _ in tree.children)

    assert (await said(count, {"tree": {"name": "a", "children": [{"name": "b"}]}})).output == JsonOutput(2)
    text = await failed(count, {"tree": {"name": "a", "children": [{}]}})
    assert 'input.tree.children[0]: lacks the required key "name"' in text


async def test_a_tuple_is_checked_place_by_place() -> None:
    @tool
    def same(pair: tuple[int, str]) -> str:
        return str(pair)

    assert (await said(same, {"pair": [1, "x"]})).output == TextOutput("(1, 'x')")
    assert "- input.pair[0]: must be an integer" in await failed(same, {"pair": ["x", "x"]})


async def test_a_strict_model_takes_what_json_can_say() -> None:
    @tool
    def at(when: Strict) -> str:
        return f"{when.at.year} {when.pair}"

    outcome = await said(at, {"when": {"at": "2026-01-02T03:04:05Z", "pair": [1, 2]}})
    assert outcome.output == TextOutput("2026 (1, 2)")


async def test_a_long_integer_arrives_whole() -> None:
    @tool
    def same(number: int) -> str:
        return str(number)

    assert (await said(same, f'{{"number": {2**80}}}')).output == TextOutput(str(2**80))


async def test_a_parameter_without_a_type_takes_anything() -> None:
    @tool
    def same(value):  # type: ignore[no-untyped-def]
        return value

    assert (await said(same, {"value": [1, "x"]})).output == JsonOutput([1, "x"])


async def test_a_function_without_parameters_takes_nothing() -> None:
    @tool
    def now() -> str:
        return "noon"

    assert (await said(now)).output == TextOutput("noon")
    assert "x" in await failed(now, {"x": 1})


# -- kinds of parameters


async def test_keyword_only_and_positional_only_parameters_are_given_as_they_must_be() -> None:
    @tool
    def both(a: int, /, b: int, *, c: int = 3) -> str:
        return f"{a} {b} {c}"

    assert (await said(both, {"b": 2, "a": 1})).output == TextOutput("1 2 3")


async def test_more_keywords_take_what_has_no_name_of_its_own_in_their_type() -> None:
    @tool
    def more(a: int, **rest: int) -> dict[str, int]:
        return {"a": a, **rest}

    assert more.schema["additionalProperties"] == {"type": "integer"}
    assert (await said(more, {"a": 1, "p0": 2, "z": 3})).output == JsonOutput({"a": 1, "p0": 2, "z": 3})
    assert "input.z" in await failed(more, {"a": 1, "z": "x"})


async def test_more_keywords_without_a_type_take_anything() -> None:
    @tool
    def more(**rest: Any) -> object:
        return rest

    assert (await said(more, {"a": 1, "b": ["x"]})).output == JsonOutput({"a": 1, "b": ["x"]})


@pytest.mark.parametrize(
    "name", ["schema", "copy", "_id", "__x", "self", "cls", "json", "model_config", "given", "context", "p0", "class_"]
)
async def test_a_parameter_may_be_called_what_no_field_of_a_model_may(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def same({name}: int, p1: int = 5, **rest: int): return [{name}, p1, rest]", scope)
    made = tool(scope["same"])
    assert list(shown(made)) == [name, "p1"]
    assert (await said(made, {name: 3, "more": 1})).output == JsonOutput([3, 5, {"more": 1}])


def test_star_args_are_refused_with_a_remedy() -> None:
    def many(*names: str) -> None: ...

    with pytest.raises(ConfigError, match=re.escape("tool 'many': *names has no names for its values: take a list")):
        tool(many)


def test_generators_are_refused_with_a_remedy() -> None:
    def sync() -> Iterator[int]:
        yield 1

    async def asynchronous() -> AsyncIterator[int]:
        yield 1

    class Called:
        def __call__(self) -> Iterator[int]:
            yield 1

    for function, name in (
        (sync, "sync"),
        (asynchronous, "asynchronous"),
        (functools.partial(sync), "sync"),
        (Called(), "Called"),
    ):
        with pytest.raises(ConfigError, match=f"tool '{name}': its function has a `yield` in it: .* return a list"):
            tool(function)


@pytest.mark.parametrize("annotation", [Callable[[int], int], type("Foreign", (), {})])
def test_a_type_that_json_cannot_carry_is_refused_and_its_parameter_named(annotation: object) -> None:
    def bad(good: int, back: Any, **more: int) -> None: ...

    bad.__annotations__["back"] = annotation
    with pytest.raises(ConfigError, match="tool 'bad': the type of back is none that JSON can carry"):
        tool(bad)


def test_so_is_one_of_the_further_keywords() -> None:
    def bad(good: int, **more: Callable[[], int]) -> None: ...

    with pytest.raises(ConfigError, match=re.escape("tool 'bad': the type of **kwargs is none that JSON can carry")):
        tool(bad)


def test_types_that_cannot_be_read_are_refused() -> None:
    def bad(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ConfigError, match=r"tool 'bad': the types of its parameters cannot be read: .*'Nowhere'"):
        tool(bad)


# -- the context


@pytest.mark.parametrize("optional", [False, True])
async def test_the_context_is_given_and_not_shown(optional: bool) -> None:
    if optional:

        @tool
        def seen(city: str, context: ToolContext | None = None) -> Any:
            return context and [city, context.call.tool_call_id, context.attempt, context.options is OPTIONS]
    else:

        @tool
        def seen(context: ToolContext, city: str) -> Any:
            return [city, context.call.tool_call_id, context.attempt, context.options is OPTIONS]

    assert list(shown(seen)) == ["city"]
    assert (await said(seen, {"city": "Oslo"})).output == JsonOutput(["Oslo", "c0", 1, True])


async def test_it_may_be_positional_only_anywhere() -> None:
    @tool
    def seen(a: int, context: Annotated[ToolContext, "of the call"], b: int, /) -> Any:
        return [a, context.attempt, b]

    assert (await said(seen, {"a": 7, "b": 8})).output == JsonOutput([7, 1, 8])


async def test_a_model_cannot_give_a_context_of_its_own() -> None:
    @tool
    def seen(context: ToolContext, **more: Any) -> Any:
        return [context.attempt, more]

    assert (await said(seen, {"context": "mine", "x": 1})).output == JsonOutput([1, {"x": 1}])


# -- what may be made a tool


async def test_bound_methods_and_callables_are_tools() -> None:
    thermometer = Thermometer(21)
    read, asynchronous, made = tool(thermometer.read), tool(thermometer.read_async), tool(Thermometer.made)
    itself, other = tool(name="ask")(thermometer), tool(AsyncThermometer())
    assert (read.name, read.description, list(shown(read))) == ("read", "Read it.", ["unit"])
    assert (itself.name, itself.description) == ("ask", "Knows how warm it is.")
    assert other.name == "AsyncThermometer"
    assert (await said(read)).output == TextOutput("21 c")
    assert (await said(made, {"degrees": 3})).output == TextOutput("Thermometer 3")
    for one in (asynchronous, itself):
        assert (await said(one, {"unit": "f"})).output == TextOutput("21 f")
    assert (await said(other, {"unit": "f"})).output == TextOutput("7 f")


async def test_a_static_method_is_a_tool() -> None:
    class Kit:
        @tool
        @staticmethod
        def add(a: int, b: int) -> int:
            return a + b

    assert (await said(Kit.add, {"a": 1, "b": 2})).output == JsonOutput(3)


def test_a_method_without_its_object_is_refused_with_a_remedy() -> None:
    with pytest.raises(ConfigError, match=re.escape("a method has no self yet: make the tool of a bound one")):
        tool(Thermometer.read)


async def test_a_function_of_no_class_may_call_a_parameter_self() -> None:
    @tool
    def same(self) -> object:  # type: ignore[no-untyped-def]
        return self

    assert (await said(same, {"self": 1})).output == JsonOutput(1)


async def test_what_a_partial_has_bound_is_hidden_since_it_may_be_a_secret() -> None:
    async def search(index: str, query: str, *, key: str = "none", limit: int = 1) -> str:
        """Search."""
        return f"{index} {query} {key} {limit}"

    made = tool(functools.partial(search, "books", key="s3cret"))
    assert (made.name, made.description, list(shown(made))) == ("search", "Search.", ["query", "limit"])
    assert "s3cret" not in str(made.definition.input_schema)
    assert (await said(made, {"query": "x"})).output == TextOutput("books x s3cret 1")


async def test_a_wrapped_function_shows_the_one_inside() -> None:
    def noted(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            return f"noted {function(*args, **kwargs)}"

        return inner

    @tool
    @noted
    def same(text: str) -> str:
        """The same."""
        return text

    assert (same.name, list(shown(same))) == ("same", ["text"])
    assert (await said(same, {"text": "x"})).output == TextOutput("noted x")


async def test_the_function_can_still_be_called() -> None:
    @tool
    async def double(number: int) -> int:
        return 2 * number

    assert await double(4) == 8
    assert await double(number=4) == 8


@pytest.mark.parametrize("given", [3, classmethod(lambda cls: None), Tool(name="x")])
def test_anything_else_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match=f"goes on a function, not on {type(given).__name__}"):
        tool(given)


def test_a_function_without_a_usable_name_needs_one() -> None:
    with pytest.raises(ConfigError, match="not '<lambda>'"):
        tool(lambda: None)
    assert tool(name="nothing")(lambda: None).name == "nothing"


async def test_a_turn_takes_several_of_them() -> None:
    @tool
    def one() -> str:
        return "1"

    @tool
    async def two() -> str:
        return "2"

    answered = await Turn(one, two).answer(call("two"), call("one"))
    assert [one.outcome and one.outcome.output for one in answered] == [TextOutput("2"), TextOutput("1")]
