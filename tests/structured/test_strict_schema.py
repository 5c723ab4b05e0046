"""`strict_schema`: what native JSON output takes, and what becomes words."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from pydantic import BaseModel, Field

from neurolink_mw.errors import ConfigError
from neurolink_mw.protocol import JSONObject
from neurolink_mw.structured import strict_losses, strict_schema
from neurolink_mw.structured.keywords import subschemas

from .strategies import DRAFT_2020, quick, schemas


def strict(schema: dict[str, Any]) -> Any:
    return strict_schema(schema)


def of_property(schema: dict[str, Any]) -> Any:
    return strict({"type": "object", "properties": {"x": schema}})["properties"]["x"]


def test_every_object_is_closed() -> None:
    made = strict({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object"}}}})
    assert made["additionalProperties"] is False
    assert made["properties"]["a"]["items"] == {"type": "object", "properties": {}, "additionalProperties": False}


def test_what_is_taken_stays() -> None:
    schema = {
        "type": "object",
        "title": "Place",
        "description": "where",
        "properties": {
            "day": {"type": "string", "format": "date"},
            "kind": {"enum": ["a", "b"]},
            "one": {"const": 1},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["day"],
        "additionalProperties": False,
    }
    assert strict(schema) == schema


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 9}, "minimum: 1, maximum: 9"),
        ({"type": "string", "pattern": '^"'}, 'pattern: "^\\""'),
        ({"type": "string", "format": "idn-email"}, 'format: "idn-email"'),
        ({"type": "array", "minItems": 2}, "minItems: 2"),
        ({"type": "boolean", "default": True, "x-order": 1}, "default: true, x-order: 1"),
        ({"enum": [{"a": 1}, 2]}, 'enum: [{"a":1},2]'),
        ({"type": "array", "items": [{}]}, "items: [{}]"),
        ({"not": {"type": "null"}}, 'not: {"type":"null"}'),
    ],
)
def test_what_is_not_taken_goes_to_the_description(schema: dict[str, Any], made: str) -> None:
    words = f"Its schema says further: {made}"
    assert of_property(schema)["description"] == words
    assert of_property({**schema, "description": "One."})["description"] == f"One.\n\n{words}"
    assert not of_property(schema).keys() & {"minimum", "pattern", "format", "minItems", "default", "not", "enum"}


def test_keys_without_a_name_are_words_too_for_nothing_may_be_open() -> None:
    made = of_property({"type": "object", "additionalProperties": {"type": "integer"}})
    assert made["additionalProperties"] is False
    assert made["description"] == 'Its schema says further: additionalProperties: {"type":"integer"}'


def test_one_of_becomes_any_of() -> None:
    assert of_property({"oneOf": [{"type": "string"}, {"type": "object"}]})["anyOf"] == [
        {"type": "string"},
        {"type": "object", "properties": {}, "additionalProperties": False},
    ]


def test_several_types_become_forms_each_with_what_is_about_it() -> None:
    made = of_property({"type": ["array", "null"], "items": {"type": "string"}, "description": "some"})
    assert made == {"description": "some", "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}


def test_parts_of_an_all_of_become_one_since_closed_ones_would_refuse_each_others_keys() -> None:
    made = strict(
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"b": {"type": "string"}}, "required": ["b"]},
            ],
            "description": "both",
        }
    )
    assert list(made["properties"]) == ["a", "b"]
    assert made["required"] == ["a", "b"]
    assert made["description"] == "both"
    assert "allOf" not in made


def test_parts_that_speak_of_the_same_things_stay_apart() -> None:
    parts = [{"enum": ["a"]}, {"enum": ["a", "b"]}]
    assert of_property({"allOf": parts}) == {"allOf": parts}


def test_a_type_is_added_where_the_schema_implies_it() -> None:
    assert strict({"properties": {"a": {"items": {"type": "string"}}}}) == {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "string"}}},
        "additionalProperties": False,
    }


def test_a_type_goes_where_the_literals_say_it() -> None:
    assert of_property({"type": "string", "enum": ["a", "b"]}) == {"enum": ["a", "b"]}
    assert of_property({"type": "integer", "const": 1}) == {"const": 1}
    assert of_property({"type": "string", "enum": ["a", 1]}) == {"type": "string", "enum": ["a", 1]}


def test_references_are_inlined_and_recursive_ones_stand_alone() -> None:
    made = strict(
        {
            "$schema": DRAFT_2020,
            "type": "object",
            "properties": {"name": {"$ref": "#/$defs/T"}, "tree": {"$ref": "#/$defs/Node", "description": "it"}},
            "$defs": {
                "T": {"type": "string"},
                "Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}},
            },
        }
    )
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}, "additionalProperties": False}
    assert made == {
        "type": "object",
        "properties": {"name": {"type": "string"}, "tree": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": node},
        "additionalProperties": False,
    }


def test_a_pydantic_model_goes_through() -> None:
    class Address(BaseModel):
        street: str = Field(min_length=1, description="with its number")

    class Person(BaseModel):
        name: str
        age: int | None = Field(default=None, ge=0)
        home: Address

    made: Any = strict_schema(Person.model_json_schema())
    assert made["additionalProperties"] is False
    assert made["properties"]["home"]["properties"]["street"]["description"] == (
        "with its number\n\nIts schema says further: minLength: 1"
    )
    assert made["properties"]["age"]["anyOf"][1] == {"type": "null"}
    assert strict_losses(Person.model_json_schema()) == ()


@pytest.mark.parametrize("schema", ["x", {"anyOf": {}}, {"properties": []}, {"items": {"$ref": "#/nowhere"}}])
def test_a_broken_schema_is_refused(schema: Any) -> None:
    with pytest.raises(ConfigError):
        strict_schema(schema)


@quick
@given(schemas())
def test_what_is_strict_stays_and_what_was_given_is_not_changed(schema: dict[str, Any]) -> None:
    given_ = copy.deepcopy(schema)
    once = strict_schema(schema)
    assert strict_schema(once) == once
    assert schema == given_
    for node in below(once):
        assert node.get("type") != "object" or node["additionalProperties"] is False
        assert "$ref" not in node or node.keys() <= {"$ref", "$defs"}


def below(schema: JSONObject) -> list[dict[str, Any]]:
    found, pending = [], [dict(schema)]
    while pending:
        found.append(node := pending.pop())
        pending += [one for _, one in subschemas(node)]
    return found


# -- what is lost


@pytest.mark.parametrize(
    "open_",
    [
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "additionalProperties": True, "properties": {"a": {}}},
        {"type": "object", "patternProperties": {"^x": {}}},
        {"type": "object"},
    ],
)
def test_objects_that_are_to_have_keys_without_a_name_are_told(open_: dict[str, Any]) -> None:
    told = strict_losses({"type": "object", "properties": {"counts": open_, "n": {"type": "integer"}}})
    assert told[0].endswith('"counts"')


def test_an_object_that_only_does_not_forbid_further_keys_loses_nothing() -> None:
    assert strict_losses({"type": "object", "properties": {"a": {"type": "string"}}}) == ()


class Tree(BaseModel):
    kids: list[Tree]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (Tree.model_json_schema(), "leads back to itself"),
        ({"type": "object", "properties": {"data": {"title": "Data"}}}, 'none of "data"'),
        ({"type": "array", "items": {}}, "says none"),
        ({"type": "array", "items": False}, "says none"),
        ({"type": ["string", "null"], "enum": ["a", None]}, "says none"),
        ({"type": ["object", "null"]}, "keys that are not named"),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["z"]}, "beside its own keys"),
        (
            {
                "type": "object",
                "properties": {"kind": {"type": "string"}},
                "oneOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}],
            },
            "beside its own keys",
        ),
        (
            {
                "type": "object",
                "properties": {"k": {"type": "boolean"}},
                "if": {"properties": {"k": {"const": True}}},
                "then": {"properties": {"x": {"type": "string"}}, "required": ["x"]},
            },
            "depend on others",
        ),
        ({"$ref": "https://elsewhere.test/city.json"}, "stand for themselves"),
    ],
)
def test_what_native_output_cannot_carry_is_told(schema: dict[str, Any], said: str) -> None:
    assert said in " ".join(strict_losses(schema))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        {"enum": ["a", "b"]},
        {"type": "array", "items": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}},
        {"$defs": {"C": {"type": "string"}}, "type": "object", "properties": {"c": {"$ref": "#/$defs/C"}}},
    ],
)
def test_what_it_can_carry_loses_nothing(schema: dict[str, Any]) -> None:
    assert strict_losses(schema) == ()
