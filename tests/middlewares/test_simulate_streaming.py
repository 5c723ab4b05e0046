"""`simulate_streaming`: a whole answer, given out as a stream that says the same."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neurolink_mw import CallOptions, GenerateResult, wrap_model
from neurolink_mw.errors import RateLimitError
from neurolink_mw.middlewares.extract_reasoning import ExtractReasoning
from neurolink_mw.middlewares.simulate_streaming import SimulateStreaming
from neurolink_mw.protocol import (
    CallWarning,
    File,
    Finish,
    FinishReason,
    InputTokens,
    OutputTokens,
    Reasoning,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    RequestInfo,
    ResponseInfo,
    ResponseMetadata,
    Source,
    StreamPart,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolResult,
    Usage,
    collect,
)
from neurolink_mw.testing import ScriptedModel, check_middleware, check_model, check_stream

pytestmark = pytest.mark.anyio
ASKED = CallOptions.from_text("Hello")
COST = Usage(InputTokens(7), OutputTokens(3))


async def streamed(answer: GenerateResult) -> list[StreamPart]:
    async with (await wrap_model(ScriptedModel([answer]), [SimulateStreaming()]).do_stream(ASKED)).stream as stream:
        return [part async for part in stream]


async def test_a_stream_asks_the_model_for_a_whole_answer_once() -> None:
    bare = ScriptedModel(["hi"])
    async with (await wrap_model(bare, [SimulateStreaming()]).do_stream(ASKED)).stream as stream:
        assert collect([part async for part in stream]).text == "hi"
    assert [(call.kind, call.options) for call in bare.calls] == [("generate", ASKED)]


async def test_a_whole_answer_is_left_as_it_is() -> None:
    answer = GenerateResult((Text("hi", {"m": {"id": 1}}),), usage=COST)
    assert await wrap_model(ScriptedModel([answer]), [SimulateStreaming()]).do_generate(ASKED) == answer


async def test_the_parts_of_an_answer_come_in_its_order_with_metadata_on_each_start() -> None:
    answer = GenerateResult(
        (Reasoning("hm", {"m": {"signature": "s"}}), Text("hi", {"m": {"id": 1}})),
        FinishReason("length", "max"),
        COST,
        (CallWarning("unsupported", "topK"),),
        {"m": {"finish": 1}},
        response=ResponseInfo("r", model_id="m-1"),
    )
    assert await streamed(answer) == [
        StreamStart((CallWarning("unsupported", "topK"),)),
        ResponseMetadata("r", model_id="m-1"),
        *(ReasoningStart("0", {"m": {"signature": "s"}}), ReasoningDelta("0", "hm"), ReasoningEnd("0")),
        *(TextStart("1", {"m": {"id": 1}}), TextDelta("1", "hi"), TextEnd("1")),
        Finish(FinishReason("length", "max"), COST, {"m": {"finish": 1}}),
    ]


async def test_tool_calls_results_sources_and_files_come_as_they_are() -> None:
    content = (
        ToolCall("c", "search", '{"q": 1}', provider_executed=True),
        ToolResult("c", "search", {"found": 1}),
        Source("url", "s", url="https://example.org"),
        File("image/png", b"\x89PNG"),
        ToolCall("d", "look", "{}"),
    )
    made = await streamed(GenerateResult(content, FinishReason("tool-calls"), COST))
    check_stream(made)
    assert [part for part in made if part in content] == list(content)


async def test_what_is_known_of_request_and_response_is_known_before_the_stream_is_read() -> None:
    answer = GenerateResult((Text("hi"),), request=RequestInfo({"q": 1}), response=ResponseInfo(headers={"x-id": "1"}))
    result = await wrap_model(ScriptedModel([answer]), [SimulateStreaming()]).do_stream(ASKED)
    async with result.stream:
        assert (result.request, result.response) == (answer.request, answer.response)


async def test_a_failure_is_raised_by_the_call() -> None:
    model = wrap_model(ScriptedModel([RateLimitError("slow down", status=429)]), [SimulateStreaming()])
    with pytest.raises(RateLimitError):
        await model.do_stream(ASKED)


@pytest.mark.parametrize("inner", [0, 1])
async def test_members_further_in_and_further_out_change_the_answer_all_the_same(inner: int) -> None:
    members = [SimulateStreaming(), ExtractReasoning()]
    model = wrap_model(ScriptedModel("<think>a</think>b"), [members[1 - inner], members[inner]])
    async with (await model.do_stream(ASKED)).stream as stream:
        assert collect([part async for part in stream]).content == (Reasoning("a"), Text("b"))


async def test_the_simulated_model_keeps_the_promises_of_a_model() -> None:
    await check_model(wrap_model(ScriptedModel("hello", repeat=True), [SimulateStreaming()]))


texts = st.text(max_size=6)
marks = st.none() | st.fixed_dictionaries({"m": st.integers()})
answers = st.lists(st.builds(Text, texts, marks) | st.builds(Reasoning, texts, marks), max_size=5)


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(answers)
def test_the_stream_adds_up_to_the_answer(content: list[Text | Reasoning]) -> None:
    answer = GenerateResult(content, FinishReason("stop"), COST)
    made = anyio.run(streamed, answer)
    check_stream(made)
    assert collect(made) == answer


def test_it_keeps_the_contract_of_middlewares() -> None:
    check_middleware(SimulateStreaming)
