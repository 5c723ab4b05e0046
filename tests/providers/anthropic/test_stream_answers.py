"""From events to parts: answers by a tool, and calls that were not wanted."""

from __future__ import annotations

from neurolink_mw.protocol import TextDelta, TextEnd, TextStart, collect
from neurolink_mw.providers.anthropic.request import Expected
from neurolink_mw.structured import AnswerTool

from ..streams import finish, last
from .events import BEGIN, CALLED, TEXT, call_events, kinds, own_metadata, parts_of, start, stop, text

ANSWER = Expected(answer=AnswerTool("final_result"))


def test_an_answer_by_a_tool_streams_as_text_of_its_block() -> None:
    events = [BEGIN, start(text("noise")), stop()]
    events += call_events('{"city":', '"Oslo"}', name="final_result", index=1)
    parts = parts_of(*events, *CALLED, expected=ANSWER)
    assert parts[2:-1] == [TextStart("1"), TextDelta("1", '{"city":'), TextDelta("1", '"Oslo"}'), TextEnd("1")]
    assert finish(parts) == ("stop", "tool_use")


def test_an_answer_is_taken_out_of_its_wrapper_while_it_comes() -> None:
    events = call_events('{"value":[1', ",2]}", name="final_result")
    parts = parts_of(BEGIN, *events, *CALLED, expected=Expected(answer=AnswerTool("final_result", "value")))
    assert [part.delta for part in parts if isinstance(part, TextDelta)] == ["[1", ",2]"]


def test_calls_beside_the_answer_are_left_out_and_named_at_the_end() -> None:
    events = [*call_events('{"q":1}'), *call_events("{}", id="t2", name="final_result", index=1)]
    parts = parts_of(BEGIN, *events, *CALLED, expected=ANSWER)
    answer = collect(parts)
    assert (answer.text, answer.tool_calls) == ("{}", ())
    told = own_metadata(last(parts).provider_metadata)
    assert told["unexecuted_tool_calls"] == ["look"]
    assert "look" in told["warnings"][0]["message"]


def test_texts_are_the_answer_where_no_tool_was_called() -> None:
    parts = parts_of(*TEXT, expected=ANSWER)
    assert collect(parts).text == "Hello"
    assert finish(parts) == ("stop", "end_turn")


def test_an_answer_that_the_connection_cut_is_closed_as_far_as_it_came() -> None:
    parts = parts_of(BEGIN, *call_events('{"a":', name="final_result")[:-1], expected=ANSWER)
    assert collect(parts).text == '{"a":'
    assert finish(parts) == ("error", "interrupted")


def test_raw_events_come_with_an_answer_by_a_tool_too() -> None:
    parts = parts_of(BEGIN, *call_events("{}", name="final_result"), *CALLED, expected=ANSWER, include_raw=True)
    assert kinds(parts).count("raw") == 6


def test_a_call_that_was_not_wanted_is_kept_and_warned_about() -> None:
    parts = parts_of(BEGIN, *call_events("{}"), *CALLED, expected=Expected(no_calls=True))
    assert len(collect(parts).tool_calls) == 1
    assert own_metadata(last(parts).provider_metadata)["warnings"][0]["feature"] == "toolChoice"
