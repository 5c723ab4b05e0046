"""The tool calls of a stream, in the many ways in which servers label their fragments."""

from __future__ import annotations

import pytest

from neurolink_mw.protocol import ToolCall, ToolInputDelta, ToolInputStart

from ..streams import errors, finish
from .chunks import CALLS, Json, call, chunk, parts_of


def calls(*fragments: Json) -> list[tuple[str, str]]:
    """The calls that fragments add up to, as (name, input); each fragment comes in a chunk of its own."""
    parts = parts_of(*(chunk({"tool_calls": [fragment]}) for fragment in fragments), CALLS, "[DONE]")
    assert errors(parts) == []
    made = [part for part in parts if isinstance(part, ToolCall)]
    for one in made:
        deltas = [part.delta for part in parts if isinstance(part, ToolInputDelta) and part.id == one.tool_call_id]
        assert "".join(deltas) == one.input or (not deltas and one.input == "{}")
    return [(one.tool_name, one.input) for one in made]


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        pytest.param(
            [call(0, "a", "f", '{"x":'), call(1, "b", "g", '{"y":'), call(0, arguments="1}"), call(1, arguments="2}")],
            [("f", '{"x":1}'), ("g", '{"y":2}')],
            id="interleaved by index",
        ),
        pytest.param(
            [
                call(None, "a", "f", "{"),
                call(None, "b", "g", "["),
                call(None, "a", None, "}"),
                call(None, "b", None, "]"),
            ],
            [("f", "{}"), ("g", "[]")],
            id="by id, without index",
        ),
        pytest.param([call(None, "a", "f", "{"), call(arguments="}")], [("f", "{}")], id="to the latest"),
        pytest.param([call(0, "a", None, "{"), call(0, None, "f", "}")], [("f", "{}")], id="late name"),
        pytest.param([call(None, "a", None, "{"), call(None, None, "f", "}")], [("f", "{}")], id="no index, late name"),
        pytest.param([call(arguments="{"), call(name="f"), call(arguments="}")], [("f", "{}")], id="nothing but order"),
        pytest.param([call(0, "a", "f", "{}"), call(0, "b", "f", "{}")], [("f", "{}")] * 2, id="one index, two ids"),
        pytest.param(
            [call(0, "a", "f", "{}"), call(0, "b", None, "{"), call(0, None, "g"), call(0, arguments="}")],
            [("f", "{}"), ("g", "{}")],
            id="one index, second id, late name",
        ),
        pytest.param([call(0, None, "f", "{"), call(0, None, None, "}")], [("f", "{}")], id="no ids"),
        pytest.param([call(0, "", "f", "{"), call(0, "", "", "}")], [("f", "{}")], id="empty ids and names"),
        pytest.param(
            [call(0, None, "f", "{}"), call(1, None, "g", "{}")], [("f", "{}"), ("g", "{}")], id="no ids, two"
        ),
        pytest.param([call(0, "", "f", "{}"), call(0, "", "f", "{}")], [("f", "{}")] * 2, id="whole calls, index 0"),
        pytest.param([call(0, None, "f"), call(0, None, "g")], [("f", "{}"), ("g", "{}")], id="names tell them apart"),
        pytest.param([call(0, None, "f", "{"), call(0, None, "f", "}")], [("f", "{}")], id="the name again and again"),
        pytest.param([call(0, "a", "f", "{"), call(0, "a", "f", "}")], [("f", "{}")], id="id and name again"),
        pytest.param([call(0, None, "f", "{"), call(0, "late", None, "}")], [("f", "{}")], id="late id"),
        pytest.param([call(0, None, None, "{"), call(0, "late", "f", "}")], [("f", "{}")], id="late id and name"),
        pytest.param([call(0, "a", "f", "{}"), call(1, "a", "g", "[]")], [("f", "{}"), ("g", "[]")], id="one id, two"),
        pytest.param(
            [call(0, "a", "f"), call(1, "a", "g"), call(0, "a", None, "{}"), call(1, "a", None, "[]")],
            [("f", "{}"), ("g", "[]")],
            id="one id, two indexes, interleaved",
        ),
        pytest.param([call(3, "a", "f", "{}")], [("f", "{}")], id="index 3 first"),
        pytest.param([call(0, "a", "f", "")], [("f", "{}")], id="no arguments"),
        pytest.param([call(0, "a", "f", {"q": 1})], [("f", '{"q":1}')], id="arguments as an object"),
        pytest.param([call(0, "txt-0", "f", "{}")], [("f", "{}")], id="an id like a text block's"),
    ],
)
def test_fragments_find_their_call(fragments: list[Json], expected: list[tuple[str, str]]) -> None:
    assert calls(*fragments) == expected


def test_a_made_id_is_kept_for_all_fragments_and_the_same_when_read_again() -> None:
    events = [
        chunk({"tool_calls": [call(0, None, "f", "{")]}),
        chunk({"tool_calls": [call(0, None, None, "}")]}),
        CALLS,
    ]
    first, second = parts_of(*events), parts_of(*events)
    assert first == second
    ids = {part.id for part in first if isinstance(part, ToolInputStart | ToolInputDelta)}
    assert len(ids) == 1
    assert ids == {part.tool_call_id for part in first if isinstance(part, ToolCall)}


def test_a_block_and_a_call_never_share_an_id() -> None:
    tool = chunk({"tool_calls": [call(0, "txt-0", "f", "{}")]})
    for events in ([tool, chunk({"content": "x"})], [chunk({"content": "x"}), tool]):
        parts = parts_of(*events, CALLS)
        starts = [part.id for part in parts if part.type in ("text-start", "tool-input-start")]  # type: ignore[union-attr]
        assert len(set(starts)) == 2


def test_a_name_that_never_comes_is_an_error() -> None:
    parts = parts_of(chunk({"tool_calls": [call(0, "c1", None, "{}"), call(1, "c2", "f", "{}")]}), CALLS)
    assert [part.tool_name for part in parts if isinstance(part, ToolCall)] == ["f"]
    assert "never got a name" in str(errors(parts)[0])
    assert finish(parts) == ("error", "tool_calls")


def test_the_form_before_tools_is_read() -> None:
    deltas = [{"function_call": {"name": "f", "arguments": "{"}}, {"function_call": {"arguments": "}"}}]
    parts = parts_of(*(chunk(delta) for delta in deltas), chunk({}, "function_call"))
    assert [(part.tool_name, part.input) for part in parts if isinstance(part, ToolCall)] == [("f", "{}")]


def test_a_thought_signature_stays_with_its_call() -> None:
    signed = {**call(0, "c1", "f", "{}"), "extra_content": {"google": {"thought_signature": "s"}}}
    (made,) = (part for part in parts_of(chunk({"tool_calls": [signed]}), CALLS) if isinstance(part, ToolCall))
    assert made.provider_metadata == {"openai-compatible": {"thoughtSignature": "s"}}


def test_interleaved_fragments_without_id_find_their_call_by_index() -> None:
    # continuedev/continue#13223
    chunks: list[Json] = [
        {"tool_calls": [call(0, "call_a", "tool_a", "")]},
        {"tool_calls": [call(1, "call_b", "tool_b", "")]},
        {"tool_calls": [call(0, arguments='{"t":')]},
        {"tool_calls": [call(1, arguments='{"t":"B"}'), call(0, arguments='"A"}')]},
    ]
    parts = parts_of(*({"choices": [{"index": 0, "delta": delta}]} for delta in chunks), CALLS)
    made = [(one.tool_call_id, one.tool_name, one.input) for one in parts if isinstance(one, ToolCall)]
    assert made == [("call_a", "tool_a", '{"t":"A"}'), ("call_b", "tool_b", '{"t":"B"}')]
