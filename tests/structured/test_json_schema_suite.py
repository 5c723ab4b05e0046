"""Neither inlining nor wrapping changes which instances are valid: on the official JSON Schema Test Suite.

What is compared is the verdict of jsonschema-rs on the schema as it is, inlined, and put under a key. What cannot be
kept is listed here, with its reason; `docs/json-schema.md` says the same in words.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from neurolink_mw.errors import ConfigError
from neurolink_mw.protocol import JSONObject
from neurolink_mw.structured import inline_refs, wrap_root
from neurolink_mw.structured.drafts import draft_of
from neurolink_mw.structured.keywords import subschemas

SUITE = Path(__file__).parent / "json_schema_suite" / "suite.json.gz"
ADDRESSES = {
    "draft-04": "http://json-schema.org/draft-04/schema#",
    "draft-06": "http://json-schema.org/draft-06/schema#",
    "draft-07": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}
VALIDATORS: dict[str, Any] = {
    "draft-04": jsonschema_rs.Draft4Validator,
    "draft-06": jsonschema_rs.Draft6Validator,
    "draft-07": jsonschema_rs.Draft7Validator,
    "2019-09": jsonschema_rs.Draft201909Validator,
    "2020-12": jsonschema_rs.Draft202012Validator,
}

# Refused: a meta-schema of one's own, by which a schema says which keywords count.
UNREADABLE = {
    ("2019-09", "schema that uses custom metaschema with with no validation vocabulary"),
    ("2019-09", "ignore unrecognized optional vocabulary"),
    ("2020-12", "schema that uses custom metaschema with with no validation vocabulary"),
    ("2020-12", "ignore unrecognized optional vocabulary"),
}
# Kept whole, so that they accept the same still: how many schemas, by the reason that the warning gives.
LEFT_WHOLE = {
    "it has an $id, and a $ref to another document, which may point back": 31,
    "it uses $dynamicRef": 14,
    "it uses $dynamicAnchor": 4,
    "it uses $recursiveAnchor": 11,
    "it uses $recursiveRef": 1,
}
# Kept, each with a warning: $refs to other documents, which are not fetched.
LEFT_REFERENCES = 43
# Refused under a key: a $recursiveRef means "the outermost schema", and that would be another one there.
NOT_WRAPPED = 12


@cache
def suite() -> Any:
    with gzip.open(SUITE) as file:
        return json.load(file)


def cases(draft: str) -> list[tuple[str, Any, list[tuple[str, Any, bool]]]]:
    """Each schema of a draft with its instances. It says its draft: without that, it would be read as draft 7."""
    made = []
    for file, schemas in suite()["tests"][draft].items():
        for description, schema, tests in schemas:
            said = {"$schema": ADDRESSES[draft], **schema} if isinstance(schema, dict) else schema
            made.append((f"{file}: {description}", said, tests))
    return made


def readable(draft: str) -> list[tuple[str, Any, list[tuple[str, Any, bool]]]]:
    return [case for case in cases(draft) if (draft, case[0].partition(": ")[2]) not in UNREADABLE]


def validator(schema: JSONObject | bool) -> Any:
    draft = "draft-07" if isinstance(schema, bool) else draft_of(schema)
    return VALIDATORS[draft](schema, validate_formats=False, retriever=lambda uri: suite()["remotes"][uri])


@pytest.mark.parametrize("draft", ADDRESSES)
def test_an_inlined_schema_accepts_the_same_instances(draft: str) -> None:
    compared, wrong = 0, []
    for name, schema, tests in readable(draft):
        before, after = validator(schema), validator(inline_refs(schema).schema)
        for description, data, valid in tests:
            compared += 1
            if not before.is_valid(data) == after.is_valid(data) == valid:
                wrong.append(f"{name}: {description}")
    assert wrong == []
    assert compared > 600


@pytest.mark.parametrize("draft", ADDRESSES)
def test_a_wrapped_schema_accepts_the_same_values_under_its_key(draft: str) -> None:
    compared, wrong = 0, []
    for name, schema, tests in readable(draft):
        before = validator(schema)
        try:
            wrapped = wrap_root(inline_refs(schema).schema)
        except ConfigError:
            continue  # counted below
        after = validator(wrapped.schema)
        for description, data, _ in tests:
            compared += 1
            instance = data if wrapped.key is None else {wrapped.key: data}
            if before.is_valid(data) != after.is_valid(instance):
                wrong.append(f"{name}: {description}")
    assert wrong == []
    assert compared > 600


def test_what_is_left_of_references_is_listed() -> None:
    whole: Counter[str] = Counter()
    references = 0
    for draft in ADDRESSES:
        for _, schema, _ in readable(draft):
            warnings = inline_refs(schema).warnings
            left = [one.partition(": ")[2] for one in warnings if one.startswith("the schema is left as it is")]
            whole.update(left)
            references += len(warnings) - len(left)
            assert all(one.startswith(("the schema is left", 'the $ref "http')) for one in warnings)
    assert whole == LEFT_WHOLE
    assert references == LEFT_REFERENCES


def test_without_a_warning_nothing_is_left_but_recursive_definitions() -> None:
    for draft in ADDRESSES:
        for name, schema, _ in readable(draft):
            made = inline_refs(schema)
            for node in [] if made.warnings else every(made.schema):
                reference = node.get("$ref", "#")
                assert reference == "#" or reference.startswith("#/$defs/"), name


def every(schema: Any) -> list[dict[str, Any]]:
    found, pending = [], [schema]
    while pending:
        found.append(node := pending.pop())
        pending += [below for _, below in subschemas(node)]
    return found


def test_what_cannot_be_read_or_put_under_a_key_is_listed() -> None:
    unreadable, not_wrapped = set(), 0
    for draft in ADDRESSES:
        for name, schema, _ in cases(draft):
            try:
                made = inline_refs(schema).schema
            except ConfigError:
                unreadable.add((draft, name.partition(": ")[2]))
                continue
            try:
                wrap_root(made)
            except ConfigError:
                not_wrapped += 1
    assert unreadable == UNREADABLE
    assert not_wrapped == NOT_WRAPPED
