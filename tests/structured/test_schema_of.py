"""`OutputSchema`: from a type or a schema to a JSON Schema, and from an answer to a value."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from neurolink_mw.errors import ConfigError, SchemaValidationError
from neurolink_mw.structured import OutputSchema


class Unit(Enum):
    C = "c"
    F = "f"


class Reading(BaseModel):
    city: str = Field(description="where")
    degrees: float
    unit: Unit = Unit.C
    day: date | None = None


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class Span(BaseModel):
    model_config = ConfigDict(strict=True)
    pair: tuple[int, int]
    day: date = date(2020, 1, 1)

    @model_validator(mode="after")
    def _in_order(self) -> Span:
        if self.pair[0] > self.pair[1]:
            raise ValueError("the first must not be after the second")
        return self


class Point(TypedDict):
    x: int


@dataclass
class Place:
    x: int


def refused(spec: Any, answer: Any) -> SchemaValidationError:
    with pytest.raises(SchemaValidationError) as caught:
        OutputSchema.of(spec).parse(answer)
    return caught.value


# -- schemas


def test_the_schema_of_a_model_has_no_references() -> None:
    schema: Any = OutputSchema.of(Reading).schema
    assert schema["type"] == "object"
    assert schema["properties"]["unit"]["enum"] == ["c", "f"]
    assert schema["properties"]["city"]["description"] == "where"
    assert not {"$defs", "$schema"} & schema.keys()
    assert "$ref" not in json.dumps(schema)


def test_a_recursive_model_has_an_object_at_its_root() -> None:
    schema: Any = OutputSchema.of(Tree).schema
    assert schema["type"] == "object"
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}


def test_a_schema_that_draft_7_would_read_otherwise_says_its_draft() -> None:
    schema = OutputSchema.of(tuple[int, str]).schema
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_references_of_a_given_schema_are_inlined() -> None:
    given = {"items": {"$ref": "#/definitions/T"}, "definitions": {"T": {"type": "string"}}}
    assert OutputSchema.of(given).schema == {"items": {"type": "string"}}


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (Reading, "Reading"),
        (Point, "Point"),
        (int, "int"),
        (list[int], "output"),
        (int | None, "output"),
        ({"title": "The weather, today!"}, "The_weather_today"),
        ({"title": "x" * 100}, "x" * 64),
        ({"title": "é"}, "output"),
        ({}, "output"),
    ],
)
def test_the_name_is_one_that_providers_take(spec: Any, name: str) -> None:
    assert OutputSchema.of(spec).name == name


@pytest.mark.parametrize("spec", ["int", b"", True, 3, complex(1), object()])
def test_what_is_neither_a_type_nor_a_schema_is_a_config_error(spec: Any) -> None:
    with pytest.raises(ConfigError, match=r"^an output ") as caught:
        OutputSchema.of(spec)
    assert "\n" not in str(caught.value)


def test_a_type_without_a_schema_is_a_config_error() -> None:
    class Odd(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        it: pytest.Item

    with pytest.raises(ConfigError, match="has no JSON Schema"):
        OutputSchema.of(Odd)


def test_a_broken_schema_is_a_config_error_that_names_the_place() -> None:
    with pytest.raises(ConfigError, match=r"^the schema of Weather\.properties\.a\.type: "):
        OutputSchema.of({"title": "Weather", "properties": {"a": {"type": "text"}}})


# -- values


@pytest.mark.parametrize(
    ("spec", "text", "value"),
    [
        (Reading, '{"city": "Rome", "degrees": 3, "day": "2020-01-02"}', None),
        (Tree, '{"name": "a", "children": [{"name": "b"}]}', Tree(name="a", children=[Tree(name="b")])),
        (Span, '{"pair": [1, 2], "day": "2020-01-02"}', Span(pair=(1, 2), day=date(2020, 1, 2))),
        (list[int], " [1, 2]\n", [1, 2]),
        (int | None, "null", None),
        (Literal["a", "b"], '"a"', "a"),
        (Unit, '"f"', Unit.F),
        (Point, '{"x": 1}', {"x": 1}),
        (Place, '{"x": 1}', Place(1)),
        (str, '"1"', "1"),
        (int, "3.0", 3),
        (int, str(2**70), 2**70),
        (set[int], "[1]", {1}),
        ({"type": "array"}, "[1, {}]", [1, {}]),
    ],
)
def test_a_text_becomes_a_typed_value(spec: Any, text: str, value: object) -> None:
    wanted = Reading(city="Rome", degrees=3, day=date(2020, 1, 2)) if spec is Reading else value
    assert OutputSchema.of(spec).parse(text) == wanted
    assert OutputSchema.of(spec).parse(text.encode()) == wanted
    if not isinstance(json.loads(text), str):
        assert OutputSchema.of(spec).parse(json.loads(text)) == wanted


def test_a_text_is_json_always() -> None:
    assert OutputSchema.of(str).parse('"hi"') == "hi"
    assert refused(str, "hi").problems[0].startswith("answer: is not JSON")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1,]",
        "NaN",
        "[Infinity]",
        "1e400",
        "{'a': 1}",
        "```json\n1\n```",
        "1 2",
        '"\\ud800"',
        "\ud800",
        "[" * 9999,
    ],
)
def test_what_is_not_strict_json_is_refused(text: str) -> None:
    assert len(refused({}, text).problems) == 1


def test_nothing_is_converted_that_the_schema_does_not_allow() -> None:
    assert refused(Reading, '{"city": 1, "degrees": "3"}').problems == (
        "answer.city: must be a string, not an integer",
        "answer.degrees: must be a number, not a string",
    )
    assert refused(bool, "1").problems == ("answer: must be a boolean, not an integer",)


def test_what_no_schema_says_is_checked_too() -> None:
    assert refused(Reading, '{"city": "", "degrees": 1, "day": "soon"}').problems[0].startswith("answer.day")
    assert refused(Span, '{"pair": [2, 1]}').problems == (
        "answer: Value error, the first must not be after the second",
    )


def test_an_error_names_its_problems_and_not_the_answer() -> None:
    secret = '{"city": ["s3cret"], "degrees": "s3cret"}'
    error = refused(Reading, secret)
    assert error.text == secret
    assert str(error) == "answer.city: must be a string, not an array; answer.degrees: must be a number, not a string"
    assert "s3cret" not in f"{error!r}{error}{error.args}"
    assert error.__cause__ is None


def test_a_parsed_value_has_no_text() -> None:
    assert refused(Reading, {}).text is None


def test_an_error_survives_pickling() -> None:
    error = refused(Reading, "{}")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.problems, again.text) == (str(error), error.problems, error.text)


def test_values_are_copies() -> None:
    given: Any = {"a": [1]}
    parsed: Any = OutputSchema.of({}).parse(given)
    parsed["a"].append(2)
    assert given == {"a": [1]}
