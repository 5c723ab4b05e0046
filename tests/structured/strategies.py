"""Random schemas whose definitions point at each other, and random values that they may accept."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

quick = settings(
    max_examples=100,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

KEYS = ("p", "q", "$ref")
DEFINED = ("a", "b~c", "d/e", "f%g")
POINTERS = ("#/$defs/a", "#/$defs/b~0c", "#/$defs/d~1e", "#/$defs/f%25g")

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"

keys = st.sampled_from(KEYS)
scalars = st.sampled_from([None, True, 0, 1, 2.5, "", "xy"])
values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)

_assertions = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["object", "array", "string", "integer", ["integer", "null"]]),
        "enum": st.lists(scalars | st.just({"$ref": "#/$defs/a"}), min_size=1, max_size=3),
        "required": st.lists(keys, max_size=1),
        "minimum": st.just(1),
        "maxItems": st.just(1),
        "default": st.just({"$ref": "#/$defs/a"}),
        "description": st.sampled_from(["one", "two"]),
    },
)
_OBJECT = ("additionalProperties", "propertyNames")
_ARRAY = ("items", "contains")
_HERE = ("not", "if", "then", "else")
_LATER = ("unevaluatedProperties", "unevaluatedItems")


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Schemas in drafts 7, 2019-09 and 2020-12, with definitions; recursive ones come back only for a smaller value,
    since otherwise it is not defined what they accept."""
    draft = draw(st.sampled_from([DRAFT_7, DRAFT_2019, DRAFT_2020]))
    later = draft != DRAFT_7

    def part(depth: int, index: int) -> Any:
        """index: the definition it stands in, so that only later ones are pointed at for the same value."""
        if draw(st.integers(0, 9)) == 0:
            return draw(st.booleans())
        schema: dict[str, Any] = draw(_assertions)
        if draw(st.booleans()) and index + 1 < len(POINTERS):
            schema["$ref"] = draw(st.sampled_from(POINTERS[index + 1 :]))
        if depth == 0:
            return schema
        if draw(st.booleans()):
            schema["properties"] = {key: below(depth - 1) for key in draw(st.sets(keys, min_size=1))}
        for keyword in draw(st.sets(st.sampled_from([*_OBJECT, *_ARRAY, *(_LATER if later else ())]), max_size=2)):
            schema[keyword] = below(depth - 1)
        for keyword in draw(st.sets(st.sampled_from(_HERE), max_size=1)):
            schema[keyword] = part(depth - 1, index)
        for keyword in draw(st.sets(st.sampled_from(["allOf", "anyOf", "oneOf"]), max_size=1)):
            schema[keyword] = [part(depth - 1, index), part(depth - 1, index)]
        return schema

    def below(depth: int) -> Any:
        if draw(st.booleans()):
            return {"$ref": draw(st.sampled_from([*POINTERS, "#", "#/properties/p"])), **draw(_assertions)}
        return part(depth, -1)

    root = part(2, -1)
    root = root if isinstance(root, dict) else {}
    root.setdefault("properties", {}).setdefault("p", below(0))
    definitions = {name: part(1, index) for index, name in enumerate(DEFINED)}
    return {"$schema": draft, **root, "$defs": definitions}
