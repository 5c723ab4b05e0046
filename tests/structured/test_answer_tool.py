"""An answer that comes as a call of a tool: what the caller sees of it, whole and streamed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.protocol import (
    Content,
    ErrorPart,
    Finish,
    FinishReason,
    Raw,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Source,
    StreamPart,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolApprovalRequest,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
    check_grammar,
    collect,
)
from neurolink_mw.protocol.parts import END_OF
from neurolink_mw.structured import AnswerContent, AnswerParts, AnswerTool, answer_from_content
from neurolink_mw.testing import chunkings

from .strategies import quick

ANSWER = AnswerTool("final_result")
WRAPPED = AnswerTool("final_result", "value")
OSLO = '{"city":"Oslo"}'


def answering(input: str = OSLO, id: str = "a") -> ToolCall:
    return ToolCall(id, "final_result", input)


def calling(name: str = "look", id: str = "c", input: str = '{"q":1}') -> ToolCall:
    return ToolCall(id, name, input)


SEARCH = ToolCall("s", "search", "{}", provider_executed=True)
FOUND = ToolResult("s", "search", [])


def text_parts(id: str, *pieces: str) -> list[StreamPart]:
    return [TextStart(id), *(TextDelta(id, piece) for piece in pieces), TextEnd(id)]


def thinking_parts(id: str, *pieces: str) -> list[StreamPart]:
    return [ReasoningStart(id), *(ReasoningDelta(id, piece) for piece in pieces), ReasoningEnd(id)]


def call_parts(call: ToolCall, *pieces: str) -> list[StreamPart]:
    start = ToolInputStart(call.tool_call_id, call.tool_name, call.provider_executed)
    deltas = [ToolInputDelta(call.tool_call_id, piece) for piece in pieces or (call.input,)]
    return [start, *deltas, ToolInputEnd(call.tool_call_id), call]


# -- whole answers


def test_the_answers_input_becomes_its_text() -> None:
    made = answer_from_content([answering()], ANSWER)
    assert made == AnswerContent((Text(OSLO),), True)
    assert not made.has_calls


def test_a_wrapped_answer_is_unwrapped() -> None:
    assert answer_from_content([answering('{"value":[1]}')], WRAPPED).content == (Text("[1]"),)


def test_an_answer_that_is_not_wrapped_as_asked_keeps_its_text() -> None:
    assert answer_from_content([answering("[1]")], WRAPPED).content == (Text("[1]"),)


def test_a_cut_answer_keeps_its_text() -> None:
    assert answer_from_content([answering('{"city":"Os')], ANSWER).content == (Text('{"city":"Os'),)


def test_texts_beside_the_answer_are_left_out_and_reasoning_stays() -> None:
    content: list[Content] = [Reasoning("hm"), Text("noise"), answering(), Text("more")]
    assert answer_from_content(content, ANSWER).content == (Reasoning("hm"), Text(OSLO))


def test_texts_beside_calls_are_left_out_and_the_calls_stay() -> None:
    made = answer_from_content([Text("noise"), calling()], ANSWER)
    assert made == AnswerContent((calling(),), False)
    assert made.has_calls is True


def test_texts_where_nothing_was_called_are_the_answer_and_keep_their_place() -> None:
    made = answer_from_content([Text("a"), Reasoning("hm"), Text("b")], ANSWER)
    assert made == AnswerContent((Text("a"), Reasoning("hm"), Text("b")), False)


def test_reasoning_between_calls_keeps_its_place() -> None:
    content: list[Content] = [Reasoning("1"), Text("a"), calling(id="c1"), Reasoning("2"), calling(id="c2")]
    assert answer_from_content(content, ANSWER).content == tuple(content[:1] + content[2:])


def test_what_the_provider_ran_is_no_call_for_the_caller() -> None:
    made = answer_from_content([SEARCH, FOUND, Text("found")], ANSWER)
    assert made == AnswerContent((SEARCH, FOUND, Text("found")), False)
    assert not made.has_calls
    assert answer_from_content([SEARCH, FOUND, answering()], ANSWER).content == (SEARCH, FOUND, Text(OSLO))


def test_a_tool_of_the_provider_by_that_name_is_not_the_answer() -> None:
    own = answering().replace(provider_executed=True)
    assert answer_from_content([own], ANSWER) == AnswerContent((own,), False)


def test_calls_beside_the_answer_are_left_out_and_named_once_for_each() -> None:
    content = [calling("look", "1"), answering(), calling("find", "2"), calling("look", "3")]
    assert answer_from_content(content, ANSWER) == AnswerContent((Text(OSLO),), True, ("look", "find", "look"))


def test_a_second_answer_is_dropped_and_not_named() -> None:
    made = answer_from_content([answering(), answering("{}", "b")], ANSWER)
    assert made == AnswerContent((Text(OSLO),), True)


def test_a_request_for_approval_goes_where_its_call_goes() -> None:
    asked, own = ToolApprovalRequest("r", "c"), ToolApprovalRequest("r2", "s")
    assert answer_from_content([calling(), asked, answering()], ANSWER).content == (Text(OSLO),)
    assert answer_from_content([calling(), asked, Reasoning("")], ANSWER).content == (calling(), asked, Reasoning(""))
    assert answer_from_content([SEARCH, own, answering()], ANSWER).content == (SEARCH, own, Text(OSLO))


def test_of_a_message_that_was_cut_the_texts_beside_calls_stay() -> None:
    content: list[Content] = [Text("I look."), calling()]
    assert answer_from_content(content, ANSWER, whole=False).content == tuple(content)


# -- streams


def test_the_answer_is_shown_while_it_comes() -> None:
    machine = AnswerParts(ANSWER)
    assert machine.feed([ToolInputStart("a", "final_result")], text_id="1") == [TextStart("1")]
    assert machine.feed([ToolInputDelta("a", '{"city":')]) == [TextDelta("1", '{"city":')]
    assert machine.feed([ToolInputDelta("a", '"Oslo"}')]) == [TextDelta("1", '"Oslo"}')]
    assert machine.feed([ToolInputEnd("a"), answering()]) == [TextEnd("1")]
    assert machine.end() == []
    assert machine.answered
    assert not machine.has_calls


def test_its_text_has_the_calls_id_where_no_other_is_given() -> None:
    assert AnswerParts(ANSWER).feed(call_parts(answering())) == text_parts("a", OSLO)


def test_a_wrapped_answer_is_unwrapped_on_the_way() -> None:
    machine = AnswerParts(WRAPPED)
    parts = machine.feed(call_parts(answering('{"value":[1,2]}'), '{"val', 'ue":[1', ",2]", "}"))
    assert parts == text_parts("a", "[1", ",2]")


def test_a_call_that_comes_without_parts_of_its_input_is_the_answer_too() -> None:
    assert AnswerParts(ANSWER).feed([answering()]) == text_parts("a", OSLO)


def test_an_answer_without_input_is_an_empty_object() -> None:
    start: list[StreamPart] = [ToolInputStart("a", "final_result"), ToolInputEnd("a"), answering("{}")]
    assert AnswerParts(ANSWER).feed(start) == text_parts("a", "{}")


def test_texts_are_held_and_dropped_when_the_answer_begins() -> None:
    machine = AnswerParts(ANSWER)
    assert machine.feed(text_parts("0", "noise")) == []
    assert machine.feed(call_parts(answering())) == text_parts("a", OSLO)
    assert machine.feed(text_parts("2", "more")) == []
    assert machine.end() == []


def test_texts_are_held_and_dropped_when_tools_were_called() -> None:
    machine = AnswerParts(ANSWER)
    assert machine.feed([*text_parts("0", "noise"), *call_parts(calling())]) == []
    assert machine.has_calls is True
    assert machine.end() == call_parts(calling())


def test_texts_are_shown_at_the_end_where_nothing_was_called() -> None:
    machine = AnswerParts(ANSWER)
    assert machine.feed(thinking_parts("0", "hm")) == thinking_parts("0", "hm")
    assert machine.feed([*text_parts("1", "a", "b"), *thinking_parts("2", "hm")]) == []
    assert machine.end() == [*text_parts("1", "a", "b"), *thinking_parts("2", "hm")]


def test_what_waited_behind_a_text_comes_when_the_answer_begins() -> None:
    machine = AnswerParts(ANSWER)
    assert (
        machine.feed([*text_parts("0", "a"), *call_parts(calling()), *thinking_parts("2", "hm"), SEARCH, FOUND]) == []
    )
    parts = machine.feed(call_parts(answering()), text_id="5")
    assert parts == [*thinking_parts("2", "hm"), SEARCH, FOUND, *text_parts("5", OSLO)]


def test_calls_beside_the_answer_are_dropped_and_named() -> None:
    machine = AnswerParts(ANSWER)
    parts = [*call_parts(calling("look", "1")), *call_parts(answering()), *call_parts(calling("find", "2"))]
    assert machine.feed(parts) == text_parts("a", OSLO)
    assert machine.end() == []
    assert machine.unexecuted == ("look", "find")
    assert not machine.has_calls


def test_what_the_provider_ran_reasoning_and_all_else_pass_at_once() -> None:
    parts: list[StreamPart] = [
        *call_parts(SEARCH),
        FOUND,
        Source("url", "0", url="https://example.com"),
        *thinking_parts("1", "hm"),
        Raw({}),
        ErrorPart("broken"),
        ToolApprovalRequest("r", "s"),
    ]
    assert AnswerParts(ANSWER).feed(parts) == parts


def test_a_second_answer_is_dropped_even_between_the_pieces_of_the_first() -> None:
    machine = AnswerParts(ANSWER)
    first, second = call_parts(answering(), '{"city":', '"Oslo"}'), call_parts(answering("{}", "b"))
    parts = [*first[:2], *second[:2], *first[2:], *second[2:], answering("{}", "c")]
    assert machine.feed(parts) == text_parts("a", '{"city":', '"Oslo"}')
    assert machine.end() == []


def test_a_call_that_is_open_when_the_answer_begins_is_dropped_with_what_comes_of_it() -> None:
    machine = AnswerParts(ANSWER)
    look = call_parts(calling())
    assert machine.feed([*look[:2], ToolInputStart("a", "final_result"), *look[2:]]) == [TextStart("a")]
    assert machine.unexecuted == ("look",)


def test_an_answer_that_is_cut_is_closed_at_the_end() -> None:
    machine = AnswerParts(WRAPPED)
    machine.feed([ToolInputStart("a", "final_result"), ToolInputDelta("a", '{"value"'), ToolInputEnd("a")])
    assert machine.end(whole=False) == [TextDelta("a", '{"value"'), TextEnd("a")]
    assert machine.answered


@pytest.mark.parametrize("whole", [True, False])
def test_a_call_that_never_came_to_its_end_hides_no_text(whole: bool) -> None:
    machine = AnswerParts(ANSWER)
    parts = [*text_parts("0", "a"), *call_parts(calling())[:-1]]
    machine.feed(parts)
    assert not machine.has_calls
    assert machine.end(whole) == parts


def test_of_a_message_that_was_cut_the_texts_beside_calls_are_shown_too() -> None:
    machine = AnswerParts(ANSWER)
    parts = [*text_parts("0", "a"), *call_parts(calling())]
    machine.feed(parts)
    assert machine.end(whole=False) == parts


# -- both


def ids(items: Sequence[Content]) -> list[Content]:
    """The same with an id of its own for each call."""
    made: list[Content] = []
    for n, item in enumerate(items):
        made.append(item.replace(tool_call_id=f"id{n}") if isinstance(item, ToolCall | ToolResult) else item)
    return made


inputs = st.sampled_from(
    ["{}", OSLO, '{"value":[1,"}"]}', '{ "value" : 12 }', '{"value":"a', '{"value":1,"b":2}', "[1]"]
)
words = st.sampled_from(["", "a", "hm, so"])
contents = st.lists(
    st.builds(Text, words)
    | st.builds(Reasoning, words)
    | st.builds(ToolCall, st.just(""), st.sampled_from(["look", "find", "final_result", "final_result"]), inputs)
    | st.builds(ToolCall, st.just(""), st.sampled_from(["search", "final_result"]), inputs, st.just(True))
    | st.builds(ToolResult, st.just(""), st.just("search"), st.just([]))
    | st.just(Source("url", "0", url="https://example.com")),
    max_size=6,
).map(ids)


@st.composite
def streams(draw: st.DrawFn, content: Sequence[Content]) -> list[list[StreamPart]]:
    """The content as the events of a stream, its blocks in any interleaving in which they begin in their order. A call
    stands where it comes to its end, so nothing begins while one is open."""

    def parts(n: int, item: Content) -> list[StreamPart]:
        if isinstance(item, Text):
            return text_parts(str(n), *draw(chunkings(item.text)))
        if isinstance(item, Reasoning):
            return thinking_parts(str(n), *draw(chunkings(item.text)))
        if isinstance(item, ToolCall):
            if draw(st.booleans()):
                return [item]
            return call_parts(item, *([""] if item.input == "{}" else draw(chunkings(item.input))))
        assert isinstance(item, Source | ToolResult)
        return [item]

    waiting = [parts(n, item) for n, item in enumerate(content)]
    running: list[list[StreamPart]] = []
    events: list[list[StreamPart]] = []
    while waiting or running:
        ready = [
            one
            for n, one in enumerate(running)
            if not (isinstance(one[0], ToolCall) and any(isinstance(other[-1], ToolCall) for other in running[:n]))
        ]
        may_begin = waiting and not any(isinstance(one[-1], ToolCall) for one in running)
        if may_begin and (not ready or draw(st.booleans())):
            running.append(one := waiting.pop(0))
        else:
            one = draw(st.sampled_from(ready))
        events.append([one.pop(0)])
        running = [one for one in running if one]
    return events


@quick
@given(contents, st.sampled_from([ANSWER, WRAPPED]), st.data())
def test_a_stream_adds_up_to_what_the_whole_answer_shows(
    content: list[Content], answer: AnswerTool, data: st.DataObject
) -> None:
    whole = answer_from_content(content, answer)
    machine = AnswerParts(answer)
    parts: list[StreamPart] = [StreamStart()]
    for event in data.draw(streams(content)):
        parts.extend(machine.feed(event))
    parts.extend(machine.end())
    parts.append(Finish(FinishReason("stop" if machine.answered else "tool-calls")))
    check_grammar(parts)
    assert tuple(collect(parts).content) == whole.content
    assert (machine.answered, machine.unexecuted, machine.has_calls) == (*whole[1:], whole.has_calls)


@quick
@given(contents, st.sampled_from([ANSWER, WRAPPED]), st.data())
def test_a_cut_stream_keeps_the_grammar_and_never_shows_the_tool(
    content: list[Content], answer: AnswerTool, data: st.DataObject
) -> None:
    events = data.draw(streams(content))
    events = events[: data.draw(st.integers(0, len(events)))]
    open_blocks: dict[str, StreamPart] = {}
    for part in (part for event in events for part in event):
        if isinstance(part, TextStart | ReasoningStart | ToolInputStart):
            open_blocks[part.id] = END_OF[part.__class__](part.id)
        elif isinstance(part, TextEnd | ReasoningEnd | ToolInputEnd):
            del open_blocks[part.id]
    machine = AnswerParts(answer)
    parts: list[StreamPart] = [StreamStart()]
    for event in [*events, [*open_blocks.values()]]:
        parts.extend(machine.feed(event))
    parts.extend([*machine.end(whole=False), ErrorPart("cut"), Finish(FinishReason("error"))])
    check_grammar(parts)
    for part in parts:
        if isinstance(part, ToolInputStart | ToolCall):
            assert part.provider_executed or part.tool_name != answer.name
