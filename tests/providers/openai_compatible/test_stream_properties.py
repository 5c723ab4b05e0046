"""What holds for any sequence of events."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from neurolink_mw.errors import StreamInterruptedError
from neurolink_mw.protocol import TextDelta, check_grammar
from neurolink_mw.providers.openai_compatible.stream import ChatStream, NativeEvent

from ..streams import finish
from .chunks import STOP, chunk, parts_of

IDS = st.sampled_from([None, "", "a", "b", "txt-0", "txt-1", "reasoning-0", 7])
FRAGMENTS = st.fixed_dictionaries(
    {},
    optional={
        "index": st.sampled_from([0, 1, 2, None, "0", True]),
        "id": IDS,
        "function": st.fixed_dictionaries(
            {},
            optional={
                "name": st.sampled_from([None, "", "f", "g"]),
                "arguments": st.sampled_from([None, "", "{}", "{", '"q":1}', {"q": 1}, 5]),
            },
        )
        | st.none(),
    },
)
TEXTS = st.sampled_from([None, "", "x", "yz", 5, [], [{"type": "text", "text": "t"}, 3]])
DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "content": TEXTS,
        "reasoning": TEXTS,
        "reasoning_content": TEXTS,
        "refusal": st.sampled_from([None, "no"]),
        "tool_calls": st.none() | st.lists(FRAGMENTS, max_size=3) | st.just("x"),
        "function_call": st.none() | st.fixed_dictionaries({"name": st.just("f")}),
        "annotations": st.none() | st.just([{"url_citation": {"url": "https://a.test", "start_index": 1}}, 4]),
        "audio": st.none() | st.just({"data": "AAEC", "transcript": "t"}),
        "images": st.none() | st.just([{"image_url": {"url": "data:image/png;base64,AAEC"}}, "x"]),
    },
)
REASONS = st.sampled_from([None, None, None, "stop", "length", "tool_calls", "error", "odd", 5])
CHUNKS = st.fixed_dictionaries(
    {"choices": st.lists(st.fixed_dictionaries({"delta": DELTAS, "finish_reason": REASONS}), max_size=2)},
    optional={
        "id": IDS,
        "created": st.sampled_from([None, 1, 1.5, 10**30, "x"]),
        "usage": st.sampled_from([None, {}, {"prompt_tokens": 1}, {"completion_tokens": True}, "x"]),
        "error": st.sampled_from([None, {}, "no", {"code": 500}]),
        "citations": st.sampled_from([None, ["https://a.test", 5]]),
    },
)
EVENTS = CHUNKS | st.sampled_from(
    ["[DONE]", "{broken", "null", {"type": "ping"}, {"error": {"message": "boom"}}, {"choices": None}]
)


@settings(max_examples=400)
@given(st.lists(EVENTS, max_size=12), st.booleans(), st.sampled_from([None, b"[DONE]", b'{"cho']))
def test_any_sequence_of_events_makes_a_grammatical_stream(
    events: list[NativeEvent], include_raw: bool, unfinished: bytes | None
) -> None:
    machine = ChatStream(include_raw=include_raw)
    parts = [*machine.start(), *(part for event in events for part in machine.feed(event))]
    check_grammar([*parts, *machine.finish(unfinished)])
    assert machine.finish() == []


@given(st.lists(EVENTS, max_size=12))
def test_any_stream_that_its_source_interrupts_is_grammatical(events: list[NativeEvent]) -> None:
    machine = ChatStream()
    parts = [*machine.start(), *(part for event in events for part in machine.feed(event))]
    parts += machine.interrupt(StreamInterruptedError("cut"))
    check_grammar(parts)
    assert finish(parts)[0] == "error"


@given(st.text(alphabet="aé😀\u2028 ", max_size=40), st.data())
def test_text_is_delivered_as_it_was_sent(text: str, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    parts = parts_of(*(chunk({"content": piece}) for piece in pieces), STOP)
    assert [part.delta for part in parts if isinstance(part, TextDelta)] == [piece for piece in pieces if piece]
