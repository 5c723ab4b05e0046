"""The tool that carries an answer: its texts, its schema, and what its input is as text."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from neurolink_mw.errors import ConfigError
from neurolink_mw.structured import (
    FINAL_RESULT_DESCRIPTION,
    FINAL_RESULT_INSTRUCTION,
    FINAL_RESULT_TOOL_NAME,
    SchemaChecker,
    answer_schema,
    stringify_answer,
    tool_answer_instruction,
)

from .strategies import DRAFT_2020


def test_the_description_says_when_the_tool_must_be_called_and_with_what() -> None:
    assert FINAL_RESULT_TOOL_NAME == "final_result"
    for said in (
        "final structured result",
        "MUST",
        "once you have gathered all the information",
        "arguments",
        "schema",
    ):
        assert said in FINAL_RESULT_DESCRIPTION


def test_the_instruction_is_marked_names_the_tool_and_forbids_a_plain_text_answer() -> None:
    instruction = tool_answer_instruction("report")
    assert instruction.startswith("\n\nIMPORTANT: ")
    assert instruction.count("`report`") == 2
    assert "Do not write the final answer as plain text" in instruction
    assert "\n\n" not in instruction.strip()
    assert tool_answer_instruction("final_result") == FINAL_RESULT_INSTRUCTION


# -- the schema


def test_an_object_schema_stands_for_itself_and_says_no_draft() -> None:
    schema: Any = {
        "$schema": DRAFT_2020,
        "type": "object",
        "properties": {"city": {"$ref": "#/$defs/City"}},
        "$defs": {"City": {"type": "string"}},
    }
    given = copy.deepcopy(schema)
    made = answer_schema(schema)
    assert made.schema == {"type": "object", "properties": {"city": {"type": "string"}}}
    assert (made.key, made.warnings) == (None, ())
    assert schema == given


def test_a_schema_whose_draft_matters_says_none_either() -> None:
    schema: Any = {"$schema": DRAFT_2020, "type": "object", "properties": {"a": {"prefixItems": [{}]}}}
    assert "$schema" not in answer_schema(schema).schema


@pytest.mark.parametrize("schema", [{"type": "array", "items": {"type": "string"}}, {"type": "string"}, {}, True])
def test_any_other_root_is_put_under_one_key(schema: Any) -> None:
    made = answer_schema(schema)
    assert made.key == "value"
    assert made.schema["type"] == "object"
    assert made.schema["required"] == ["value"]


def test_a_recursive_root_under_a_key_still_leads_to_itself() -> None:
    made = answer_schema({"type": "array", "items": {"$ref": "#"}})
    checker = SchemaChecker(made.schema)
    assert checker.problems({"value": [[[]]]}) == ()
    assert checker.problems({"value": [[1]]}) != ()


def test_what_cannot_be_inlined_is_told() -> None:
    made = answer_schema({"type": "object", "properties": {"x": {"$ref": "#/nowhere"}}})
    assert made.warnings == ('the $ref "#/nowhere" leads nowhere within the schema, and stays',)


def test_a_broken_schema_is_refused() -> None:
    with pytest.raises(ConfigError, match="a JSON Schema is a mapping or a bool, not list"):
        answer_schema([])  # type: ignore[arg-type]


# -- the text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('{ "b": 1,\n  "a": [1, 2.50, null] }', '{"b":1,"a":[1,2.5,null]}'),
        ('"é"', '"é"'),
        ('"\\u00e9"', '"é"'),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("{}", "{}"),
    ],
)
def test_an_answer_becomes_canonical_text_in_the_models_own_order(text: str, canonical: str) -> None:
    assert stringify_answer(text) == canonical


@pytest.mark.parametrize(
    "text", ['{"city": "Os', "", "prose", '{"a": NaN}', "1e999", '"\\ud800"', "[" * 300 + "]" * 300]
)
def test_what_is_no_json_is_kept_as_it_is(text: str) -> None:
    assert stringify_answer(text) == text
