"""`inline_refs`: what is put in place of a `$ref`, and what stays."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.errors import ConfigError
from neurolink_mw.protocol import JSONObject
from neurolink_mw.structured import SchemaChecker, inline_refs, wrap_root

from .strategies import DRAFT_7, DRAFT_2019, DRAFT_2020, quick, schemas, values

TEXT = {"type": "string"}
NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}


def inlined(schema: dict[str, Any]) -> Any:
    made = inline_refs(schema)
    assert made.warnings == ()
    return made.schema


def inlined_anyway(schema: dict[str, Any]) -> Any:
    return inline_refs(schema).schema


def is_valid(schema: JSONObject, value: Any) -> bool:
    return not SchemaChecker(schema).problems(value)


def to_text(pointer: str, **places: Any) -> Any:
    """What stands where a reference was, in a schema with some more places to point at."""
    return inlined({"properties": {"x": {"$ref": pointer}}, **places})["properties"]["x"]


# -- what a reference may be


@pytest.mark.parametrize(
    ("pointer", "places"),
    [
        ("#/definitions/T", {"definitions": {"T": TEXT}}),
        ("#/$defs/T", {"$defs": {"T": TEXT}}),
        ("#/x-shared/deep/T", {"x-shared": {"deep": {"T": TEXT}}}),
        ("#/allOf/1", {"allOf": [{}, TEXT]}),
        ("#/$defs/a~1b", {"$defs": {"a/b": TEXT}}),
        ("#/$defs/a~0b", {"$defs": {"a~b": TEXT}}),
        ("#/$defs/a%25b", {"$defs": {"a%b": TEXT}}),
        ("#/$defs/a%7E1b", {"$defs": {"a/b": TEXT}}),
        ("#/$defs/a~01b", {"$defs": {"a~1b": TEXT}}),
        ("#/$defs/", {"$defs": {"": TEXT}}),
    ],
)
def test_a_pointer_is_percent_decoded_then_its_slashes_then_its_tildes(pointer: str, places: dict[str, Any]) -> None:
    assert to_text(pointer, **places) == TEXT


@pytest.mark.parametrize("index", ["#/allOf/01", "#/allOf/2", "#/allOf/-1", "#/allOf/" + "9" * 5000, "#/allOf/x"])
def test_an_index_that_is_none_leads_nowhere(index: str) -> None:
    made = inline_refs({"allOf": [{}, TEXT], "not": {"$ref": index}})
    assert made.schema["not"] == {"$ref": index}
    assert len(made.warnings) == 1


def test_an_anchor_is_resolved_and_goes() -> None:
    assert to_text("#t", **{"$schema": DRAFT_2020}, **{"$defs": {"T": {"$anchor": "t", **TEXT}}}) == TEXT


def test_up_to_draft_7_an_anchor_is_an_id_of_a_fragment() -> None:
    assert to_text("#t", definitions={"T": {"$id": "#t", **TEXT}}) == TEXT


def test_a_part_with_an_id_is_found_by_it_and_its_own_pointers_begin_there() -> None:
    part = {"$id": "part", "items": {"$ref": "#/definitions/T"}, "definitions": {"T": TEXT}}
    assert to_text("part", definitions={"P": part, "T": {"type": "null"}}) == {"items": TEXT}


def test_an_id_is_relative_to_the_one_around_it() -> None:
    definitions = {"P": {"$id": "parts/", "definitions": {"T": {"$id": "t.json", **TEXT}}}}
    made = to_text("https://example.com/parts/t.json", **{"$id": "https://example.com/root"}, definitions=definitions)
    assert made == TEXT


def test_a_definition_within_a_definition_is_found() -> None:
    assert to_text("#/$defs/A/$defs/B", **{"$defs": {"A": {"$defs": {"B": TEXT}}}}) == TEXT


def test_a_definition_that_is_only_a_name_for_another_is_followed() -> None:
    assert to_text("#/$defs/A", **{"$defs": {"A": {"$ref": "#/$defs/B"}, "B": TEXT}}) == TEXT


def test_a_bool_is_a_schema() -> None:
    assert to_text("#/$defs/A", **{"$defs": {"A": False}}) is False
    assert inlined({"$ref": "#/$defs/A", "$defs": {"A": True}}) == {}
    assert inline_refs(False).schema == {"not": {}}


# -- where schemas stand, and where data does


@pytest.mark.parametrize(
    "place",
    [
        *("additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"),
        *("unevaluatedItems", "unevaluatedProperties", "contentSchema"),
    ],
)
def test_a_schema_under_a_keyword_is_reached(place: str) -> None:
    assert inlined({place: {"$ref": "#/definitions/T"}, "definitions": {"T": TEXT}}) == {place: TEXT}


@pytest.mark.parametrize("place", ["allOf", "anyOf", "oneOf", "prefixItems", "items"])
def test_a_schema_in_a_list_is_reached(place: str) -> None:
    assert inlined({place: [{}, {"$ref": "#/definitions/T"}], "definitions": {"T": TEXT}}) == {place: [{}, TEXT]}


@pytest.mark.parametrize("place", ["properties", "patternProperties", "dependentSchemas", "dependencies"])
@pytest.mark.parametrize("name", ["x", "$ref", "enum", "$defs", "$id"])
def test_a_schema_under_a_name_is_reached_whatever_the_name(place: str, name: str) -> None:
    schema: Any = {place: {name: {"$ref": "#/definitions/T"}, "list": ["x"]}, "definitions": {"T": TEXT}}
    assert inlined(schema) == {place: {name: TEXT, "list": ["x"]}}


@pytest.mark.parametrize("place", ["const", "default", "example", "x-mine"])
def test_data_is_left_alone(place: str) -> None:
    data = {"$ref": "#/$defs/T", "$id": "mine", "definitions": {"$schema": 1}}
    assert inlined({place: data, "$defs": {"T": TEXT}}) == {place: data}


@pytest.mark.parametrize("place", ["enum", "examples"])
def test_data_in_a_list_is_left_alone(place: str) -> None:
    assert inlined({place: [{"$ref": "#/$defs/T"}], "$defs": {"T": TEXT}}) == {place: [{"$ref": "#/$defs/T"}]}


# -- what stands beside a reference


@pytest.mark.parametrize("draft", [DRAFT_7, DRAFT_2019, DRAFT_2020])
def test_an_annotation_beside_a_reference_wins(draft: str) -> None:
    there = {"type": "string", "description": "any text", "title": "Text"}
    schema: Any = {
        "$schema": draft,
        "properties": {"x": {"$ref": "#/$defs/T", "description": "a city", "default": "", "x-order": 1}},
        "$defs": {"T": there},
    }
    assert inlined(schema)["properties"]["x"] == {**there, "description": "a city", "default": "", "x-order": 1}


def test_up_to_draft_7_nothing_else_beside_it_counts() -> None:
    x: Any = {"$ref": "#/definitions/T", "type": "null", "anyOf": [False]}
    assert inlined({"$schema": DRAFT_7, "items": x, "definitions": {"T": TEXT}}) == {"items": TEXT}


def test_a_warning_tells_that_where_the_schema_does_not_say_its_draft() -> None:
    x: Any = {"$ref": "#/definitions/T", "description": "x", "type": "null", "anyOf": [False]}
    made = inline_refs({"items": x, "definitions": {"T": TEXT}})
    assert made.schema == {"items": {**TEXT, "description": "x"}}
    assert made.complete
    assert made.warnings == (
        'without effect beside a $ref, and dropped: "anyOf", "type". '
        "A schema without $schema and $defs is read as draft 7",
    )


@pytest.mark.parametrize("further", [{}, {"contains": {"items": [{}, {}]}}])
def test_with_defs_and_without_a_draft_it_counts(further: dict[str, Any]) -> None:
    schema: Any = {"items": {"$ref": "#/$defs/T", "minLength": 2, **further}, "$defs": {"T": TEXT}}
    for one in (schema, inlined(schema)):
        assert is_valid(one, ["xy"])
        assert not is_valid(one, ["x"])


def test_the_draft_is_told_where_the_schema_would_be_read_otherwise_from_then_on() -> None:
    pair: Any = {"properties": {"x": {"$ref": "#/$defs/P"}}, "$defs": {"P": {"prefixItems": [TEXT]}}}
    assert inlined(pair)["$schema"] == DRAFT_2020
    node = {"dependencies": {"a": ["b"]}, "not": {"properties": {"x": {"$ref": "#/definitions/N"}}}}
    assert inlined({"items": {"$ref": "#/definitions/N"}, "definitions": {"N": node}})["$schema"] == DRAFT_7


def test_later_a_keyword_beside_it_is_added() -> None:
    schema: Any = {"$schema": DRAFT_2020, "items": {"$ref": "#/$defs/T", "minLength": 1}, "$defs": {"T": TEXT}}
    assert inlined(schema) == {"items": {"type": "string", "minLength": 1}}


def test_later_the_same_keyword_twice_makes_two_schemas_of_it() -> None:
    there = {"type": "string", "minLength": 3}
    schema: Any = {"$schema": DRAFT_2020, "items": {"$ref": "#/$defs/T", "minLength": 1}, "$defs": {"T": there}}
    assert inlined(schema) == {"items": {"minLength": 1, "allOf": [there]}}


def test_keywords_that_look_at_their_neighbours_are_kept_apart() -> None:
    there = {"properties": {"a": {}}, "additionalProperties": False}
    beside = {"patternProperties": {"b": {}}, "allOf": [{}]}
    schema: Any = {"$schema": DRAFT_2020, "items": {"$ref": "#/$defs/T", **beside}, "$defs": {"T": there}}
    assert inlined(schema)["items"] == {**beside, "allOf": [{}, there]}


# -- recursion


def test_a_definition_that_leads_back_to_itself_stays_and_the_rest_is_inlined() -> None:
    schema: Any = {
        "properties": {"tree": {"$ref": "#/definitions/Node"}, "name": {"$ref": "#/definitions/T"}},
        "definitions": {
            "Node": {"properties": {"next": {"$ref": "#/definitions/Node"}, "name": {"$ref": "#/definitions/T"}}},
            "T": TEXT,
            "Unused": TEXT,
        },
    }
    assert inlined(schema) == {
        "properties": {"tree": {"$ref": "#/$defs/Node"}, "name": TEXT},
        "$defs": {"Node": {"properties": {"next": {"$ref": "#/$defs/Node"}, "name": TEXT}}},
    }


def test_definitions_that_lead_to_each_other_stay() -> None:
    odd, even = {"items": {"$ref": "#/$defs/even"}}, {"items": {"$ref": "#/$defs/odd"}}
    schema: Any = {"not": {"$ref": "#/$defs/odd"}, "$defs": {"odd": odd, "even": even, "way": {"$ref": "#/$defs/odd"}}}
    made = inlined(schema)
    assert made == {"not": {"$ref": "#/$defs/odd"}, "$defs": {"odd": odd, "even": even}}


def test_a_root_that_leads_back_to_itself_is_pointed_at() -> None:
    schema: Any = {"properties": {"next": {"$ref": "#"}, "name": {"$ref": "#/$defs/T"}}, "$defs": {"T": TEXT}}
    assert inlined(schema) == {"properties": {"next": {"$ref": "#"}, "name": TEXT}}


def test_a_root_that_only_points_at_a_recursive_definition_becomes_a_copy_of_it() -> None:
    schema: Any = {"$ref": "#/$defs/Node", "description": "a list", "$defs": {"Node": NODE}}
    assert inlined(schema) == {**NODE, "description": "a list", "$defs": {"Node": NODE}}


def test_definitions_that_are_only_each_other_stay_as_they_are() -> None:
    schema: Any = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    made = inlined(schema)
    assert made["$ref"] in ("#/$defs/a", "#/$defs/b")
    SchemaChecker(made)


def test_two_kept_definitions_of_one_name_get_two_names() -> None:
    def node(place: str) -> dict[str, Any]:
        return {"items": {"$ref": f"#/{place}/a b"}, "title": place}

    schema: Any = {
        "allOf": [{"$ref": "#/$defs/a b"}, {"$ref": "#/definitions/a b"}],
        "$defs": {"a b": node("$defs")},
        "definitions": {"a b": node("definitions")},
    }
    made = inlined(schema)
    assert sorted(made["$defs"]) == ["a_b", "a_b_2"]
    assert [made["$defs"][one["$ref"].removeprefix("#/$defs/")]["title"] for one in made["allOf"]] == [
        "$defs",
        "definitions",
    ]


# -- what stays, with a warning


def test_a_reference_that_leads_nowhere_stays_with_a_warning() -> None:
    made = inline_refs(
        {"items": {"$ref": "#/$defs/Nope", "title": "t"}, "not": {"$ref": "#/$defs/T"}, "$defs": {"T": {}}}
    )
    assert made.schema == {"items": {"$ref": "#/$defs/Nope", "title": "t"}, "not": {}}
    assert made.warnings == ('the $ref "#/$defs/Nope" leads nowhere within the schema, and stays',)


def test_it_does_not_lead_to_a_kept_definition_of_that_name_afterwards() -> None:
    node: Any = {"items": {"$ref": "#/definitions/Node"}}
    schema: Any = {"not": {"$ref": "#/$defs/Node"}, "if": {"$ref": "#/definitions/Node"}, "definitions": {"Node": node}}
    assert list(inlined_anyway(schema)["$defs"]) == ["Node_2"]


def test_another_document_is_not_fetched() -> None:
    made = inline_refs({"items": {"$ref": "https://example.com/x.json#/a"}})
    assert made.schema == {"items": {"$ref": "https://example.com/x.json#/a"}}
    assert len(made.warnings) == 1


def test_a_schema_that_another_document_could_point_back_into_stays_whole() -> None:
    schema: Any = {
        "$id": "https://example.com/a",
        "items": {"$ref": "b"},
        "not": {"$ref": "#/$defs/T"},
        "$defs": {"T": {}},
    }
    made = inline_refs(schema)
    assert made.schema == schema
    assert len(made.warnings) == 1


@pytest.mark.parametrize("keyword", ["$dynamicRef", "$recursiveRef"])
def test_a_schema_with_dynamic_references_stays_whole(keyword: str) -> None:
    schema: Any = {"$schema": DRAFT_2020, "items": {keyword: "#"}, "not": {"$ref": "#/$defs/T"}, "$defs": {"T": {}}}
    made = inline_refs(schema)
    assert made.schema == schema
    assert made.warnings == (f"the schema is left as it is: it uses {keyword}",)


def test_a_part_in_another_draft_leaves_the_schema_whole() -> None:
    part = {"$id": "https://example.com/part", "$schema": DRAFT_7, "items": [{}]}
    schema: Any = {"$schema": DRAFT_2020, "not": {"$ref": "https://example.com/part"}, "$defs": {"P": part}}
    assert inline_refs(schema).schema == schema


def doubling(levels: int) -> dict[str, Any]:
    definitions: dict[str, Any] = {
        f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]} for i in range(levels)
    }
    return {"items": {"$ref": "#/$defs/d0"}, "$defs": {**definitions, f"d{levels}": TEXT}}


def test_definitions_that_would_double_at_each_level_stay() -> None:
    made = inline_refs(doubling(40))
    assert len(json.dumps(made.schema)) < 10_000
    assert "more than 20000 values" in made.warnings[-1]
    assert is_valid(made.schema, ["x"])


def test_a_limit_of_ones_own_is_kept() -> None:
    assert "$defs" not in inline_refs(doubling(3)).schema
    assert "$defs" in inline_refs(doubling(3), most_values=10).schema


def test_a_long_chain_of_definitions_is_not_nested_beyond_what_checkers_take() -> None:
    definitions: dict[str, Any] = {f"d{i}": {"items": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(5000)}
    made = inline_refs({"$ref": "#/$defs/d0", "$defs": {**definitions, "d5000": TEXT}})
    assert len(made.warnings) == 1
    assert "nested too deeply" in made.warnings[0]
    assert is_valid(wrap_root(made.schema).schema, {"value": []})


def test_a_long_chain_of_names_for_each_other_is_followed_as_far_as_it_may() -> None:
    definitions: dict[str, Any] = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(5000)}
    schema: Any = {"$ref": "#/$defs/d0", "$defs": {**definitions, "d5000": TEXT}}
    assert is_valid(inline_refs(schema).schema, "x")
    assert not is_valid(inline_refs(schema).schema, 1)


def test_a_large_schema_is_not_refused_what_does_not_make_it_larger() -> None:
    schema: Any = {"items": {"$ref": "#/$defs/T"}, "enum": [*range(30_000)], "$defs": {"T": TEXT}}
    assert inlined(schema)["items"] == TEXT


def test_a_schema_nested_too_deeply_is_a_config_error() -> None:
    schema: Any = {}
    for _ in range(5000):
        schema = {"not": schema}
    with pytest.raises(ConfigError, match=r"schema\.not\.not\.not: is nested deeper than 100 levels"):
        inline_refs(schema)


@pytest.mark.parametrize("schema", [3, [], "x", None])
def test_what_is_no_schema_is_a_config_error(schema: Any) -> None:
    with pytest.raises(ConfigError, match="schema: a JSON Schema is a mapping or a bool, not "):
        inline_refs(schema)


# -- the draft


def test_the_draft_goes_where_the_schema_reads_the_same_without_it() -> None:
    assert inlined({"$schema": DRAFT_2020, "$id": "https://example.com/a", **TEXT}) == TEXT
    assert inlined({"$schema": DRAFT_7, "additionalItems": False}) == {"additionalItems": False}


@pytest.mark.parametrize("keyword", ["prefixItems", "dependentRequired", "unevaluatedProperties", "minContains"])
def test_the_draft_stays_where_draft_7_reads_a_keyword_otherwise(keyword: str) -> None:
    schema: Any = {"$schema": DRAFT_2020, "items": {keyword: {}}}
    assert inlined(schema) == schema


def test_a_property_of_that_name_is_no_reason() -> None:
    assert inlined({"$schema": DRAFT_2020, "properties": {"prefixItems": {}}}) == {"properties": {"prefixItems": {}}}


def test_the_draft_stays_where_a_kept_reference_has_keywords_beside_it() -> None:
    schema: Any = {"$schema": DRAFT_2020, "items": {"$ref": "#", "minItems": 1}}
    assert inlined(schema) == schema


# -- what holds for all


@quick
@given(schemas(), values)
def test_the_same_values_are_valid(schema: dict[str, Any], value: Any) -> None:
    made = inline_refs(schema)
    assert is_valid(made.schema, value) == is_valid(schema, value)


@quick
@given(schemas(), values, st.sampled_from(["$defs", "definitions"]))
def test_the_same_values_are_valid_where_the_draft_is_not_said(schema: Any, value: Any, place: str) -> None:
    del schema["$schema"]
    schema = json.loads(json.dumps(schema).replace("$defs", place))
    made = inline_refs(schema)
    assert is_valid(made.schema, value) == is_valid(schema, value)


@quick
@given(schemas())
def test_the_given_schema_is_not_changed(schema: dict[str, Any]) -> None:
    before = copy.deepcopy(schema)
    inline_refs(schema)
    assert schema == before


@quick
@given(schemas())
def test_no_part_of_what_is_returned_stands_in_two_places(schema: dict[str, Any]) -> None:
    seen: set[int] = set()
    pending: list[Any] = [inline_refs(schema).schema]
    while pending:
        one = pending.pop()
        if isinstance(one, dict | list):
            assert id(one) not in seen
            seen.add(id(one))
            pending += one.values() if isinstance(one, dict) else one
