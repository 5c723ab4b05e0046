"""What holds for any sequence of events."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from neurolink_mw.errors import StreamInterruptedError
from neurolink_mw.protocol import TextDelta, check_grammar
from neurolink_mw.providers.bedrock.request import Expected
from neurolink_mw.providers.bedrock.stream import ConverseStream, NativeEvent
from neurolink_mw.structured import AnswerTool

from ..streams import finish
from .native import METADATA, delta, ended, parts_of, stop

INDICES = st.sampled_from([0, 0, 1, 2, "0", None, True])
WORDS = st.sampled_from(["", "x", "yz", None, 5])
PIECES = st.fixed_dictionaries(
    {},
    optional={
        "text": WORDS,
        "toolUse": st.sampled_from([{"input": ""}, {"input": '{"q":1}'}, {"input": {"q": 1}}, {}, None]),
        "reasoningContent": st.fixed_dictionaries(
            {}, optional={"text": WORDS, "signature": WORDS, "redactedContent": st.sampled_from([b"", b"x", None])}
        ),
        "citation": st.sampled_from([{}, {"title": "t", "location": {"web": {"url": "https://a.test"}}}, "x"]),
        "toolResult": st.sampled_from([[{"text": "a"}, {"json": {}}], [3], "x"]),
        "image": st.sampled_from([{"source": {"bytes": b"x"}}, {"error": {"message": "m"}}, 5]),
        "SDK_UNKNOWN_MEMBER": st.just({"name": "brandNew"}),
        "brandNew": st.just([1]),
    },
)
STARTS: st.SearchStrategy[object] = st.sampled_from(
    [
        {},
        None,
        {"toolUse": {"toolUseId": "a", "name": "f"}},
        {"toolUse": {"toolUseId": "0", "name": "json"}},
        {"toolUse": {"name": "f", "type": "server_tool_use"}},
        {"toolUse": {"toolUseId": "a"}},
        {"toolUse": None},
        {"toolResult": {"toolUseId": "a", "type": "x"}},
        {"image": {"format": "png"}},
        {"text": {}},
        {"brandNew": {"a": 1}},
    ]
)
EVENTS: st.SearchStrategy[NativeEvent] = st.one_of(
    st.builds(
        lambda index, piece: {"contentBlockDelta": {"contentBlockIndex": index, "delta": piece}}, INDICES, PIECES
    ),
    st.builds(
        lambda index, begin: {"contentBlockStart": {"contentBlockIndex": index, "start": begin}}, INDICES, STARTS
    ),
    st.builds(lambda index: {"contentBlockStop": {"contentBlockIndex": index}}, INDICES),
    st.sampled_from(
        [
            {"messageStart": {"role": "assistant"}},
            {"messageStop": {"stopReason": "end_turn"}},
            {"messageStop": {"stopReason": "tool_use"}},
            {"messageStop": None},
            METADATA,
            {"metadata": {"usage": "x", "trace": 5}},
            {"throttlingException": {"message": "boom"}},
            {"ModelStreamErrorException": None},
            {"brandNew": {"z": 1}},
            {},
        ]
    ),
)
EXPECTED = st.sampled_from([Expected(), Expected(AnswerTool("json")), Expected(no_calls=True, tool_names={"f": "f.x"})])


@settings(max_examples=400, deadline=None)
@given(st.lists(EVENTS, max_size=14), st.booleans(), EXPECTED)
def test_any_sequence_of_events_makes_a_grammatical_stream(
    events: list[NativeEvent], include_raw: bool, expected: Expected
) -> None:
    machine = ConverseStream(include_raw=include_raw, expected=expected)
    parts = [*machine.start(), *(part for event in events for part in machine.feed(event))]
    check_grammar([*parts, *machine.finish()])
    assert machine.finish() == []


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENTS, max_size=14), EXPECTED)
def test_any_stream_that_its_source_interrupts_is_grammatical(events: list[NativeEvent], expected: Expected) -> None:
    machine = ConverseStream(expected=expected)
    parts = [*machine.start(), *(part for event in events for part in machine.feed(event))]
    parts += machine.interrupt(StreamInterruptedError("cut"))
    check_grammar(parts)
    assert finish(parts)[0] == "error"


@given(st.lists(EVENTS, max_size=10))
def test_asking_for_raw_events_changes_nothing_else(events: list[NativeEvent]) -> None:
    plain, raw = ConverseStream(), ConverseStream(include_raw=True)
    for event in events:
        made = [part for part in raw.feed(event) if part.type != "raw"]
        assert [part.type for part in plain.feed(event)] == [part.type for part in made]


@given(st.text(alphabet="aé😀\u2028 ", max_size=40), st.data())
def test_text_is_delivered_as_it_was_sent(text: str, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    parts = parts_of(*map(delta, pieces), stop(), ended())
    assert [part.delta for part in parts if isinstance(part, TextDelta)] == [piece for piece in pieces if piece]
