"""`append_json_schema_instruction`: a schema in words, in one system message."""

from __future__ import annotations

import json
import types
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.strategies import quick, values_of

from neurolink_mw.errors import ConfigError
from neurolink_mw.protocol import AssistantMessage, Message, SystemMessage, TextPart, ToolMessage, UserMessage, user
from neurolink_mw.structured import append_json_schema_instruction

SCHEMA: Any = {"type": "array", "items": {"type": "string", "description": "né"}}
WRITTEN = '{"type":"array","items":{"type":"string","description":"né"}}'

messages = st.lists(
    st.one_of(*(values_of(kind) for kind in (SystemMessage, UserMessage, AssistantMessage, ToolMessage)))
)


def test_without_a_system_message_there_is_one_in_front() -> None:
    first, *rest = append_json_schema_instruction([user("hi")], SCHEMA)
    assert isinstance(first, SystemMessage)
    assert first.content.endswith(WRITTEN)
    assert rest == [user("hi")]


def test_a_system_message_gets_it_after_a_blank_line_and_keeps_the_rest() -> None:
    cached = {"anthropic": {"cacheControl": {"type": "ephemeral"}}}
    given_ = SystemMessage("Be brief.", provider_options=cached, extra={"later": 1})
    first, second = append_json_schema_instruction([given_, user("hi")], SCHEMA)
    assert isinstance(first, SystemMessage)
    assert first.content.startswith("Be brief.\n\n")
    assert first.content.endswith(WRITTEN)
    assert (first.provider_options, first.extra) == (cached, {"later": 1})
    assert second == user("hi")


def test_of_several_system_messages_the_last_gets_it_wherever_it_stands() -> None:
    given_: list[Message] = [SystemMessage("one"), user("hi"), SystemMessage("two"), user("ho")]
    made = append_json_schema_instruction(given_, SCHEMA)
    assert [*made[:2], made[3]] == [*given_[:2], given_[3]]
    assert isinstance(made[2], SystemMessage)
    assert made[2].content.startswith("two\n\n")


def test_an_empty_system_message_becomes_the_instruction_alone() -> None:
    (first,) = append_json_schema_instruction([SystemMessage(" \n")], SCHEMA)
    assert (first,) == append_json_schema_instruction([], SCHEMA)


def test_it_asks_for_a_value_not_for_an_object() -> None:
    (first,) = append_json_schema_instruction([], SCHEMA)
    assert isinstance(first, SystemMessage)
    words = first.content.removesuffix(WRITTEN)
    assert "one JSON value" in words
    assert "object" not in words


def test_the_schema_is_compact_and_in_its_authors_order() -> None:
    schema: Any = types.MappingProxyType(
        {"properties": {"why": {}, "answer": {}}, "required": ("why", "answer"), "maximum": 2**70}
    )
    (first,) = append_json_schema_instruction([], schema)
    assert isinstance(first, SystemMessage)
    written = f'{{"properties":{{"why":{{}},"answer":{{}}}},"required":["why","answer"],"maximum":{2**70}}}'
    assert first.content.endswith(f"JSON Schema: {written}")


def test_what_is_no_schema_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="schema: a JSON Schema is a mapping or a bool, not list"):
        append_json_schema_instruction([], [])  # type: ignore[arg-type]  # no schema


@quick
@given(messages)
def test_it_stands_in_exactly_one_system_message_and_nothing_is_changed(given_: list[Message]) -> None:
    before = list(given_)
    made = append_json_schema_instruction(given_, SCHEMA)
    assert given_ == before
    systems = [one for one in made if isinstance(one, SystemMessage)]
    assert len([one for one in systems if one.content.endswith(WRITTEN)]) == 1
    assert len(systems) == max(1, len([one for one in before if isinstance(one, SystemMessage)]))
    assert [one for one in made if not isinstance(one, SystemMessage)] == [
        one for one in before if not isinstance(one, SystemMessage)
    ]
    assert json.loads(systems[-1].content.rpartition("JSON Schema: ")[2]) == SCHEMA


def test_parts_of_other_messages_are_the_same_objects() -> None:
    message = UserMessage([TextPart("hi")])
    assert append_json_schema_instruction([message], SCHEMA)[1] is message
