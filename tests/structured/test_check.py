"""`SchemaChecker`: what is valid, and what a model is told about what is not."""

from __future__ import annotations

import math
import types
from datetime import date
from typing import Any

import pytest
from hypothesis import given

from neurolink_mw.errors import ConfigError
from neurolink_mw.structured import SchemaChecker

from .strategies import DRAFT_2020, quick, schemas, values

SECRET = "s3cret " * 40


def problems(schema: Any, value: object) -> tuple[str, ...]:
    return SchemaChecker(schema).problems(value, root="input")


def problem(schema: Any, value: object) -> str:
    (one,) = problems(schema, value)
    return one


# -- the words


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ({"type": "string"}, 1, "must be a string, not an integer"),
        ({"type": ["string", "null"]}, 1.5, "must be null or a string, not a number"),
        ({"type": "object"}, None, "must be an object, not null"),
        ({"type": "integer"}, True, "must be an integer, not a boolean"),
        ({"required": ["a"]}, {}, 'lacks the required key "a"'),
        ({"dependencies": {"a": ["b"]}}, {"a": 1}, 'lacks the required key "b"'),
        ({"additionalProperties": False}, {"b": 1}, "must have no keys"),
        (
            {"properties": {"a": {}}, "additionalProperties": False},
            {"b": 1},
            'has keys that are not allowed: "b"; allowed are "a"',
        ),
        ({"enum": ["C", "F", None]}, "K", 'must be one of "C", "F", null'),
        ({"const": {"a": 1}}, 1, 'must be {"a": 1}'),
        ({"minimum": 1}, 0, "must be at least 1"),
        ({"maximum": 1}, 2, "must be at most 1"),
        ({"exclusiveMinimum": 1}, 1, "must be more than 1"),
        ({"exclusiveMaximum": 1}, 1, "must be less than 1"),
        ({"multipleOf": 0.5}, 0.7, "must be a multiple of 0.5"),
        ({"minLength": 1}, "", "must have at least 1 character"),
        ({"maxLength": 2}, "abc", "must have at most 2 characters"),
        ({"pattern": "^a"}, "b", 'must match the pattern "^a"'),
        ({"minItems": 2}, [], "must have at least 2 items"),
        ({"maxItems": 1}, [1, 2], "must have at most 1 item"),
        ({"items": [{}], "additionalItems": False}, [1, 2], "must have at most 1 item"),
        ({"uniqueItems": True}, [1, 1], "must not have the same item twice"),
        ({"contains": {"const": 1}}, [2], "has too few or too many items of the kind that it must contain"),
        ({"minProperties": 1}, {}, "must have at least 1 key"),
        ({"maxProperties": 0}, {"a": 1}, "must have at most 0 keys"),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, 'has the key "ab", which must have at most 1 character'),
        ({"not": {"type": "null"}}, None, 'must not fit {"type": "null"}'),
        ({"oneOf": [{}, True]}, 1, "must fit exactly one of its forms, and fits more than one"),
        ({"contentEncoding": "base64"}, "*", "must be text in base64"),
        ({"contentMediaType": "application/json"}, "{", "must hold application/json"),
        ({"propertyNames": False}, {"b": 1}, "must have no keys"),
        (
            {"properties": {"a": {}}, "patternProperties": {"^c": {}}, "additionalProperties": False},
            {"b": 1},
            'has keys that are not allowed: "b"',
        ),
        (False, 1, "is not allowed"),
        ({"$schema": DRAFT_2020, "unevaluatedProperties": False}, {"a": 1}, 'has keys that are not allowed: "a"'),
        ({"$schema": DRAFT_2020, "unevaluatedItems": False}, ["x"], "has 1 item that is not allowed"),
    ],
)
def test_a_problem_says_what_is_allowed(schema: Any, value: object, words: str) -> None:
    assert problem(schema, value) == f"input: {words}"


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": 1}, "input.a"),
        ({"a": {"b": {"c_1": 1}}}, "input.a.b.c_1"),
        ([0, [1]], "input[1][0]"),
        ({"a b": [1]}, 'input["a b"][0]'),
        ({"0": 1}, 'input["0"]'),
        ({"007": 1}, 'input["007"]'),
        ({"+7": {"007": 1}}, 'input["+7"]["007"]'),
        ({"-1": 1}, 'input["-1"]'),
        ({"é": 1}, 'input["é"]'),
        ({'"': 1}, r'input["\""]'),
    ],
)
def test_a_problem_names_its_place(value: object, place: str) -> None:
    schema = {"items": {"$ref": "#"}, "additionalProperties": {"$ref": "#"}, "not": {"const": 1}}
    assert problem(schema, value) == f'{place}: must not fit {{"const": 1}}'


def test_the_place_begins_with_value_unless_said_otherwise() -> None:
    assert SchemaChecker({"items": False}).problems([1]) == ("value[0]: is not allowed",)


def test_a_place_in_a_long_key_is_cut() -> None:
    (one,) = SchemaChecker({"additionalProperties": False}).problems({SECRET: 1})
    assert len(one) < 120


def test_problems_come_in_the_values_order_ten_at_most() -> None:
    assert problems({"items": {"type": "string"}}, [*range(50)]) == tuple(
        f"input[{index}]: must be a string, not an integer" for index in range(10)
    )


def test_the_same_problem_is_told_once() -> None:
    assert len(problems({"allOf": [{"type": "string"}, {"type": "string"}]}, 1)) == 1


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer"},
        {"enum": [1]},
        {"const": 1},
        {"pattern": "^x"},
        {"maxLength": 3},
        {"not": {"type": "string"}},
        {"anyOf": [{"type": "null"}, {"maxLength": 2}]},
        {"oneOf": [{"type": "null"}, {"pattern": "^x"}]},
        {"oneOf": [True, True]},
        False,
    ],
)
def test_a_problem_never_quotes_the_value(schema: Any) -> None:
    assert "s3cret" not in problem(schema, SECRET)
    assert "s3cret" not in problem({"properties": {"a": schema}}, {"a": SECRET})


# -- one of several forms


CAT = {"type": "object", "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}, "required": ["lives"]}
DOG = {"type": "object", "properties": {"kind": {"const": "dog"}, "name": {"type": "string"}}, "required": ["name"]}
forms = pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])


@forms
def test_where_one_form_has_the_values_type_its_problems_are_told(keyword: str) -> None:
    assert problem({keyword: [CAT, {"type": "null"}]}, {"lives": "9"}) == (
        "input.lives: must be an integer, not a string"
    )


@forms
def test_where_a_constant_tells_which_form_was_meant_its_problems_are_told(keyword: str) -> None:
    assert problem({keyword: [CAT, DOG, {"type": "null"}]}, {"kind": "dog", "name": 1}) == (
        "input.name: must be a string, not an integer"
    )


@forms
def test_else_the_forms_are_listed_by_what_tells_them_apart(keyword: str) -> None:
    assert problem({keyword: [CAT, DOG]}, {"kind": "cow"}) == (
        'input: fits none of its 2 forms: kind must be "cat"; or kind must be "dog"'
    )


@forms
def test_the_forms_of_a_form_are_looked_into(keyword: str) -> None:
    schema = {keyword: [{keyword: [{"type": "null"}, CAT]}, {"type": "string"}]}
    assert "must be an object" in problem(schema, 3)
    assert problem({keyword: [{"type": "null"}, {"allOf": [{keyword: [CAT]}]}]}, {}) == (
        'input: lacks the required key "lives"'
    )


# -- numbers, and what is no JSON


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, float("1e400")])
def test_a_number_that_json_does_not_have_is_a_problem(number: float) -> None:
    assert problem({}, {"a": [number]}) == "input.a[0]: is not JSON, which knows neither NaN nor infinite numbers"


def test_an_integer_beyond_64_bits_is_compared_as_it_is() -> None:
    assert problems({"maximum": 2**64}, 2**64) == ()
    assert problem({"maximum": 2**64}, 2**64 + 1) == f"input: must be at most {2**64}"
    assert problems({"type": "integer"}, 10**400) == ()


def test_an_integer_that_python_would_not_write_is_a_problem() -> None:
    assert problem({}, 10**5000) == "input: is an integer of too many digits"


def test_a_whole_float_is_an_integer() -> None:
    assert problems({"type": "integer"}, 3.0) == ()


@pytest.mark.parametrize("value", [date(2020, 1, 1), {1}, b"", object()])
def test_another_python_type_is_a_problem(value: object) -> None:
    assert problem({}, [value]) == f"input[0]: is not JSON, but a Python {type(value).__name__}"


def test_a_key_that_is_no_text_is_a_problem() -> None:
    assert problem({}, {1: 2}) == "input: has a key that is no text, but a Python int"


def test_half_a_surrogate_pair_is_a_problem() -> None:
    assert "surrogate" in problem({}, {"a": "\ud800"})
    assert "surrogate" in problem({}, {"\ud800": 1})


def test_tuples_and_read_only_mappings_are_lists_and_objects() -> None:
    assert problems({"items": {"type": "object"}, "type": "array"}, (types.MappingProxyType({"a": (1,)}),)) == ()


@pytest.mark.parametrize("schema", [{}, {"items": {"$ref": "#"}, "additionalProperties": {"$ref": "#"}}])
@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"a": v}])
def test_a_value_nested_ten_thousand_levels_deep_is_a_problem(schema: Any, wrap: Any) -> None:
    value: Any = 1
    for _ in range(10_000):
        value = wrap(value)
    assert problem(schema, value).endswith("is nested deeper than 200 levels")


def test_a_value_that_contains_itself_is_a_problem() -> None:
    value: list[object] = []
    value.append(value)
    assert "nested deeper" in problem({}, value)


def test_two_hundred_levels_are_not_too_many() -> None:
    value: Any = 1
    for _ in range(200):
        value = [value]
    assert problem({"items": {"$ref": "#"}, "type": "array"}, value).startswith("input[0]")


# -- schemas


def test_a_recursive_schema_is_followed() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#/definitions/tree"}}}
    schema = {"$ref": "#/definitions/tree", "definitions": {"tree": tree}}
    assert problem(schema, {"next": {"next": 1}}) == "input.next.next: must be an object, not an integer"


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"anyOf": [{"$ref": "#"}]}])
def test_a_schema_that_is_only_itself_refuses_nothing(schema: Any) -> None:
    assert problems(schema, 1) == ()


def test_format_refuses_nothing_in_any_draft() -> None:
    assert problems({"format": "email"}, "x") == ()
    assert problems({"$schema": DRAFT_2020, "format": "date"}, "x") == ()


def test_without_a_draft_it_is_draft_7() -> None:
    assert problems({"prefixItems": [False]}, [1]) == ()
    assert problems({"$schema": DRAFT_2020, "prefixItems": [False]}, [1]) != ()
    assert problems({"items": [False]}, [1]) != ()


@pytest.mark.parametrize(
    "address",
    [
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema#",
        "http://json-schema.org/schema#",
    ],
)
def test_a_draft_is_known_with_and_without_its_hash(address: str) -> None:
    assert problems({"$schema": address, "type": "null"}, None) == ()


@pytest.mark.parametrize("address", ["http://json-schema.org/draft-03/schema#", "https://example.com/mine", 7])
def test_another_draft_is_a_config_error(address: object) -> None:
    with pytest.raises(ConfigError, match=r"^schema\.\$schema: .* is no draft that is known here"):
        SchemaChecker({"$schema": address})  # type: ignore[dict-item]  # a broken schema


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "text"}, r"\.type: .*one of"),
        ({"properties": {"a": {"minimum": "1"}}}, r"\.properties\.a\.minimum: must be a number, not a string"),
        ({"pattern": "("}, r"\.pattern: must be a valid regex"),
        ({"properties": {"a": {"$ref": 5}}}, r"\.properties\.a\.\$ref: must be a string, not an integer"),
        ({"const": math.nan}, r"\.const: is not JSON"),
        ([], ": a JSON Schema is a mapping or a bool, not list"),
        ({"items": {"$ref": "#/definitions/a"}}, ": a \\$ref leads .*'/definitions/a'"),
    ],
)
def test_a_broken_schema_is_a_config_error_that_names_the_place(schema: Any, place: str) -> None:
    with pytest.raises(ConfigError, match=f"^Tool 'x': input_schema{place}"):
        SchemaChecker(schema, where="Tool 'x': input_schema")


@pytest.mark.parametrize("reference", ["http://127.0.0.1:9/x.json", "https://example.com/x#/a", "file:///x", "x.json"])
@pytest.mark.parametrize("place", ["items", "definitions"])
def test_a_reference_to_another_document_is_a_config_error_that_names_it(reference: str, place: str) -> None:
    inner: Any = {"$ref": reference}
    schema = {place: {"a": inner}} if place == "definitions" else {place: inner}
    with pytest.raises(ConfigError, match=f"'{reference.partition('#')[0]}'.* Nothing is fetched"):
        SchemaChecker(schema)


def test_a_schema_may_be_read_only() -> None:
    schema = types.MappingProxyType({"required": ("a",), "properties": types.MappingProxyType({"a": {}})})
    assert problem(schema, {}) == 'input: lacks the required key "a"'


@quick
@given(schemas(), values)
def test_what_is_valid_has_no_problems_and_anything_else_has_some(schema: Any, value: object) -> None:
    import jsonschema_rs

    found = problems(schema, value)
    assert (found == ()) == jsonschema_rs.validator_for(schema).is_valid(value)
    assert len(found) <= 10
    assert all(one.startswith("input") for one in found)
    assert problems(schema, value) == found
