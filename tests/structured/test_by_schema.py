"""What is made of a schema is made once."""

from __future__ import annotations

from neurolink_mw.protocol import JSON, JSONObject
from neurolink_mw.structured import answer_schema, strict_schema
from neurolink_mw.structured.by_schema import Schema, by_schema


def test_the_same_schema_is_gone_through_once_and_each_call_gets_its_own() -> None:
    asked: list[Schema] = []

    @by_schema
    def made_of(schema: Schema) -> dict[str, JSON]:
        asked.append(schema)
        return {"made": {"of": str(schema)}}

    first, second = made_of({"type": "object"}), made_of({"type": "object"})
    assert len(asked) == 1
    assert first == second
    first["made"] = None
    assert made_of({"type": "object"}) == second
    made_of(True)
    made_of({"type": "array"})
    assert len(asked) == 3


def test_a_change_of_what_was_made_changes_no_other() -> None:
    schema: JSONObject = {"type": "array", "items": {"type": "string"}}
    wrapped = answer_schema(schema)
    wrapped.schema["properties"]["value"]["items"] = False  # type: ignore[index,call-overload]
    assert answer_schema(schema).schema["properties"] == {"value": {"type": "array", "items": {"type": "string"}}}
    strict = strict_schema(schema)
    strict["items"] = False  # type: ignore[index]
    assert strict_schema(schema)["items"] == {"type": "string"}
