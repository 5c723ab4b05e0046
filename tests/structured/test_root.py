"""`wrap_root` and `unwrap_root`: an object at the root, and the value out of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from neurolink_mw.errors import ConfigError, SchemaValidationError
from neurolink_mw.structured import SchemaChecker, inline_refs, unwrap_root, wrap_root

from .strategies import DRAFT_2019, DRAFT_2020, quick, schemas, values


def is_valid(schema: Any, value: Any) -> bool:
    return not SchemaChecker(schema).problems(value)


def test_an_object_at_the_root_stays_as_it_is() -> None:
    schema: Any = {"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": False}
    wrapped = wrap_root(schema)
    assert (wrapped.schema, wrapped.key) == (schema, None)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"type": "string", "description": "a city"},
        {"type": ["object", "null"]},
        {"type": ["object"]},
        {"properties": {"a": {}}},
        {"anyOf": [{"type": "object"}]},
        {"type": "object", "oneOf": [{}]},
        {},
    ],
)
def test_any_other_root_is_put_under_one_key(schema: Any) -> None:
    wrapped = wrap_root(schema)
    assert wrapped.key == "value"
    assert wrapped.schema == {
        "type": "object",
        "properties": {"value": schema},
        "required": ["value"],
        "additionalProperties": False,
    }


def test_a_bool_becomes_a_schema_that_is_an_object() -> None:
    assert wrap_root(True).schema["properties"] == {"value": {}}
    assert wrap_root(False).schema["properties"] == {"value": {"not": {}}}


def test_definitions_and_draft_stay_at_the_root() -> None:
    schema: Any = {
        "$schema": DRAFT_2020,
        "$id": "https://example.com/a",
        "type": "array",
        "items": {"$ref": "#/$defs/T"},
        "$defs": {"T": {"items": {"$ref": "#/%24defs/T"}}},
        "definitions": {},
    }
    assert wrap_root(schema).schema == {
        "$schema": DRAFT_2020,
        "$id": "https://example.com/a",
        "type": "object",
        "properties": {"value": {"type": "array", "items": {"$ref": "#/$defs/T"}}},
        "required": ["value"],
        "additionalProperties": False,
        "$defs": {"T": {"items": {"$ref": "#/%24defs/T"}}},
        "definitions": {},
    }


@pytest.mark.parametrize(
    ("reference", "then"),
    [
        ("#", "#/properties/value"),
        ("", "#/properties/value"),
        ("#/items/a~1b", "#/properties/value/items/a~1b"),
        ("https://example.com/a#/items", "#/properties/value/items"),
        ("https://example.com/b#/items", "https://example.com/b#/items"),
        ("#name", "#name"),
    ],
)
@pytest.mark.parametrize("place", ["items", "$defs"])
def test_a_pointer_into_the_old_root_is_made_longer(reference: str, then: str, place: str) -> None:
    inner = {"$ref": reference}
    schema: Any = {"$id": "https://example.com/a", "items": inner, "$defs": {"D": inner}}
    wrapped: Any = wrap_root(schema).schema
    found = wrapped["properties"]["value"]["items"] if place == "items" else wrapped["$defs"]["D"]
    assert found == {"$ref": then}


def test_pointers_in_a_part_with_an_id_begin_there() -> None:
    part: Any = {"$id": "part", "items": {"$ref": "#/not"}, "not": {}}
    wrapped: Any = wrap_root({"anyOf": [part]}).schema
    assert wrapped["properties"]["value"] == {"anyOf": [part]}


@pytest.mark.parametrize("schema", [{"items": {"$recursiveRef": "#"}}, {"$recursiveAnchor": True}])
def test_a_recursive_ref_cannot_be_wrapped(schema: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"\$recursiveRef cannot be put under a key"):
        wrap_root({"$schema": DRAFT_2019, **schema})


@quick
@given(schemas(), values)
def test_a_value_is_valid_exactly_if_it_is_valid_under_the_key(schema: dict[str, Any], value: Any) -> None:
    for given_ in (schema, inline_refs(schema).schema):
        wrapped = wrap_root(given_)
        answer = value if wrapped.key is None else {wrapped.key: value}
        assert is_valid(wrapped.schema, answer) == is_valid(schema, value)
        assert unwrap_root(answer, wrapped.key) == value
        assert wrapped.schema["type"] == "object"


def test_without_a_key_the_answer_is_the_value() -> None:
    assert unwrap_root([1], None) == [1]


@pytest.mark.parametrize("answer", [[1], None, {}, {"values": 1}, {"value": 1, "more": 2}, "value"])
def test_an_answer_that_is_not_wrapped_is_refused(answer: Any) -> None:
    with pytest.raises(SchemaValidationError, match="must be an object with the one key 'value'") as caught:
        unwrap_root(answer, "value")
    assert caught.value.problems == ("answer: must be an object with the one key 'value'",)
