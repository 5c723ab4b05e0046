"""What holds for any sequence of events, and for any message that is streamed."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from neurolink_mw.errors import StreamInterruptedError
from neurolink_mw.protocol import Content, GenerateResult, TextDelta, ToolCall, check_grammar, collect
from neurolink_mw.providers.anthropic.request import Document, Expected
from neurolink_mw.providers.anthropic.response import parse_response
from neurolink_mw.providers.anthropic.stream import MessageStream, NativeEvent
from neurolink_mw.providers.common.sse import SseDecoder
from neurolink_mw.structured import AnswerTool
from neurolink_mw.testing import chunkings

from ..streams import finish
from .events import (
    BEGIN,
    END,
    PING,
    STOPPED,
    WEB_CITATION,
    Json,
    began,
    delta,
    ended,
    events_of,
    failed,
    framed,
    mcp_result,
    mcp_use,
    message,
    parts_of,
    redacted,
    server_result,
    server_use,
    start,
    stop,
    text,
    thinking,
    use,
)

INDICES: st.SearchStrategy[object] = st.sampled_from([0, 0, 1, 2, "0", None, True, [], -1])
WORDS = st.sampled_from(["", "x", "yz", '{"q":1}', "{", None, 5])
IDS = st.sampled_from(["a", "b", "0", "1", "0-2"])
NAMES = st.sampled_from(["look", "final_result", "web_search", "bash_code_execution", "", None])
DELTAS = st.one_of(
    st.builds(lambda text: {"type": "text_delta", "text": text}, WORDS),
    st.builds(lambda text: {"type": "thinking_delta", "thinking": text}, WORDS),
    st.builds(lambda text: {"type": "signature_delta", "signature": text}, WORDS),
    st.builds(lambda text: {"type": "input_json_delta", "partial_json": text}, WORDS),
    st.sampled_from(
        [
            {"type": "citations_delta", "citation": WEB_CITATION},
            {"type": "citations_delta", "citation": 5},
            {"type": "compaction_delta", "content": "c"},
            {"type": "brand_new_delta"},
            {"type": []},
            {},
            None,
            "x",
        ]
    ),
)
INPUTS = st.sampled_from([{}, None, {"q": 1}, "{}", 5])
BLOCKS: st.SearchStrategy[object] = st.one_of(
    st.builds(
        lambda kind, id, name, input: {"type": kind, "id": id, "name": name, "input": input},
        st.sampled_from(["tool_use", "server_tool_use", "mcp_tool_use", "brand_new_use"]),
        IDS,
        NAMES,
        INPUTS,
    ),
    st.builds(
        lambda kind, id, content: {"type": f"{kind}_tool_result", "tool_use_id": id, "content": content},
        st.sampled_from(["web_search", "web_fetch", "bash_code_execution", "tool_search", "mcp", "brand_new"]),
        IDS,
        st.sampled_from(
            [None, [], "x", {"type": "x_tool_result_error", "error_code": "e"}, [{"url": "https://a.test"}]]
        ),
    ),
    st.sampled_from(
        [
            text(""),
            text("a", WEB_CITATION),
            {"type": "text", "text": 5, "citations": 3},
            thinking("t"),
            {"type": "thinking"},
            redacted(),
            {"type": "redacted_thinking", "data": None},
            {"type": "fallback", "to": {"model": "m"}},
            {"type": "compaction"},
            {"type": []},
            {},
            None,
            "x",
        ]
    ),
)
EVENTS: st.SearchStrategy[NativeEvent] = st.one_of(
    st.builds(lambda index, piece: {"type": "content_block_delta", "index": index, "delta": piece}, INDICES, DELTAS),
    st.builds(
        lambda index, block: {"type": "content_block_start", "index": index, "content_block": block}, INDICES, BLOCKS
    ),
    st.builds(lambda index: {"type": "content_block_stop", "index": index}, INDICES),
    st.builds(lambda blocks: began(content=blocks), st.lists(BLOCKS, max_size=2)),
    st.sampled_from(
        [
            BEGIN,
            began(id="other"),
            {"type": "message_start", "message": None},
            ended(),
            ended("tool_use"),
            ended("max_tokens"),
            ended(None),
            {"type": "message_delta", "delta": 5, "usage": "x"},
            STOPPED,
            PING,
            failed(),
            {"type": "error"},
            {"error": "boom"},
            {"type": "brand_new", "z": 1},
            {"type": ["x"]},
            {},
            b"{broken",
            b"",
            "[DONE]",
            "null",
        ]
    ),
)
EXPECTED = st.sampled_from(
    [
        Expected(),
        Expected(answer=AnswerTool("final_result")),
        Expected(answer=AnswerTool("final_result", "value"), no_calls=True),
        Expected(no_calls=True, tool_names={"look": "look.up", "web_search": "finder"}),
    ]
)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(EVENTS, max_size=14), st.booleans(), EXPECTED, st.sampled_from([None, b'{"type":"message_stop"}', b"x"])
)
def test_any_sequence_of_events_makes_a_grammatical_stream(
    events: list[NativeEvent], include_raw: bool, expected: Expected, unfinished: bytes | None
) -> None:
    machine = MessageStream(include_raw=include_raw, expected=expected)
    parts = [*machine.start(), *(part for event in events for part in machine.feed(event))]
    check_grammar([*parts, *machine.finish(unfinished)])
    assert machine.finish() == []


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENTS, max_size=14), EXPECTED)
def test_any_stream_that_its_source_interrupts_is_grammatical(events: list[NativeEvent], expected: Expected) -> None:
    machine = MessageStream(expected=expected)
    parts = [*machine.start(), *(part for event in events for part in machine.feed(event))]
    parts += machine.interrupt(StreamInterruptedError("cut"))
    check_grammar(parts)
    assert finish(parts)[0] == "error"


@settings(deadline=None)
@given(st.lists(EVENTS, max_size=10), EXPECTED)
def test_asking_for_raw_events_changes_nothing_else(events: list[NativeEvent], expected: Expected) -> None:
    plain, raw = MessageStream(expected=expected), MessageStream(include_raw=True, expected=expected)
    for event in events:
        made = [part for part in raw.feed(event) if part.type != "raw"]
        assert [part.type for part in plain.feed(event)] == [part.type for part in made]


# --------------------------------------------------------------------------------------------------- streamed messages

SAID = st.text(alphabet='aé😀\u2028 "\\{}', max_size=12)
OBJECTS = st.dictionaries(st.sampled_from(["q", "value", "é"]), SAID | st.integers(-5, 5) | st.none(), max_size=2)
PAGES = st.lists(st.builds(lambda url: {"type": "web_search_result", "url": url, "page_age": None}, SAID), max_size=2)
CITATIONS = st.lists(
    st.one_of(
        st.just(WEB_CITATION),
        st.builds(
            lambda index: {"type": "page_location", "document_index": index, "cited_text": "c"}, st.integers(0, 2)
        ),
    ),
    max_size=2,
)
MESSAGE_BLOCKS = st.one_of(
    st.builds(lambda said, cited: text(said, *cited), SAID, CITATIONS),
    st.builds(thinking, SAID, st.sampled_from(["SG", "SG2"])),
    st.builds(redacted),
    st.builds(use, IDS, st.sampled_from(["look", "final_result"]), OBJECTS),
    st.builds(server_use, IDS, st.sampled_from(["web_search", "bash_code_execution", "advisor"]), OBJECTS),
    st.builds(server_result, IDS, st.just("web_search"), PAGES),
    st.builds(mcp_use, IDS, st.just("echo"), OBJECTS),
    st.builds(mcp_result, IDS, SAID, st.booleans()),
    st.sampled_from([{"type": "container_upload", "file_id": "f"}, {"type": "brand_new", "z": [1]}]),
)
REASONS = st.sampled_from(["end_turn", "tool_use", "max_tokens", "pause_turn", "refusal", "odd", "stop_sequence"])
USAGES = st.fixed_dictionaries(
    {"input_tokens": st.integers(0, 9), "output_tokens": st.integers(0, 9)},
    optional={"cache_read_input_tokens": st.integers(0, 9), "output_tokens_details": st.just({"thinking_tokens": 1})},
)
TOLD = st.fixed_dictionaries(
    {},
    optional={
        "container": st.just({"id": "ct"}),
        "context_management": st.just({"applied_edits": []}),
        "stop_details": st.just({"type": "refusal"}),
    },
)
MESSAGES = st.builds(
    lambda blocks, reason, usage, told: message(*blocks, reason=reason, usage=usage, **told),
    st.lists(MESSAGE_BLOCKS, max_size=5),
    REASONS,
    USAGES,
    TOLD,
)
LAW = Document(title="The Law", filename=None, media_type="application/pdf")


@settings(max_examples=300, deadline=None)
@example(message(use("a", "final_result"), mcp_use("0")), Expected(answer=AnswerTool("final_result")), 1)
@given(MESSAGES, EXPECTED, st.integers(1, 30))
def test_a_stream_adds_up_to_the_same_answer_as_the_whole_message(native: Json, expected: Expected, size: int) -> None:
    expected = expected._replace(documents=(LAW,))
    streamed = collect(parts_of(*events_of(native, size), expected=expected))
    answer = parse_response(native, expected=expected)
    assert list(map(_compared, streamed.content)) == list(map(_compared, answer.content))
    assert streamed.finish_reason == answer.finish_reason
    assert streamed.usage == answer.usage
    assert streamed.provider_metadata == answer.provider_metadata
    assert _response_of(streamed) == _response_of(answer)


def _compared(part: Content) -> object:
    """A part with the input of a call as its value: spaces in JSON are the model's in one, and ours in the other."""
    return part.replace(input=_value(part.input)) if isinstance(part, ToolCall) else part


def _value(input: str) -> Any:
    return json.dumps(json.loads(input)) if input else ""


def _response_of(answer: GenerateResult) -> object:
    return None if answer.response is None else (answer.response.id, answer.response.model_id)


@settings(max_examples=50, deadline=None)
@given(MESSAGES, st.data())
def test_however_the_bytes_are_cut_the_parts_are_the_same(native: Json, draw: st.DataObject) -> None:
    events = events_of(native)
    decoder, machine = SseDecoder(), MessageStream()
    parts = [*machine.start()]
    for piece in draw.draw(chunkings(framed(*events).decode("latin-1"))):  # one character a byte
        for event in decoder.feed(piece.encode("latin-1")):
            parts += machine.feed(event)
    assert [*parts, *machine.finish(decoder.finish())] == parts_of(*events)


@given(st.text(alphabet="aé😀\u2028 ", max_size=40), st.data())
def test_text_is_delivered_as_it_was_sent(said: str, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(said)), max_size=6)))
    pieces = [said[a:b] for a, b in zip([0, *cuts], [*cuts, len(said)], strict=True)]
    parts = parts_of(BEGIN, start(text("")), *(delta(text=piece) for piece in pieces), stop(), *END)
    assert [part.delta for part in parts if isinstance(part, TextDelta)] == [piece for piece in pieces if piece]
