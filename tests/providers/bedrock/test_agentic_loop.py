"""The loop over conversations in Converse's shape."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.loop.builders import COST, call, look, says, script, sent, working

from neurolink_mw import wrap_model
from neurolink_mw.errors import BridgeShapeError, ConfigError, RateLimitError, ServerError, TurnError
from neurolink_mw.loop import step_count_is
from neurolink_mw.middlewares.retry import Retry
from neurolink_mw.protocol import (
    CallOptions,
    ContentOutput,
    ErrorPart,
    Finish,
    GenerateResult,
    LanguageModel,
    OutputFileData,
    OutputImageUrl,
    PartStream,
    Reasoning,
    StreamPart,
    StreamResult,
    StreamStart,
    TextDelta,
    TextStart,
)
from neurolink_mw.providers.bedrock.agentic_loop import AgenticLoop, AgenticLoopChunk, run_agentic_loop
from neurolink_mw.providers.bedrock.bridge import bedrock_chunks_to_v3_stream
from neurolink_mw.testing import check_stream
from neurolink_mw.testing.wire.converse_rules import faults
from neurolink_mw.tools import Tool

pytestmark = pytest.mark.anyio

HELLO: list[dict[str, Any]] = [{"role": "user", "content": [{"text": "Umbrella?"}]}]
BEGUN: list[StreamPart] = [StreamStart(), TextStart("0"), TextDelta("0", "Ha")]


def loop_of(model: LanguageModel, conversation: Sequence[Any] = HELLO, **settings: Any) -> AgenticLoop:
    return run_agentic_loop(model, conversation, system="Be brief.", **settings)


async def read(loop: AgenticLoop) -> list[AgenticLoopChunk]:
    return [chunk async for chunk in loop.stream]


def check_converse(conversation: Sequence[Any]) -> None:
    """As the service would have it, with tools declared."""
    config = {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}]}
    assert faults({"messages": list(conversation), "toolConfig": config}) == []


# -- a turn


async def test_a_turn_of_two_steps_with_parallel_tools() -> None:
    signed = Reasoning("Hm.", {"bedrock": {"signature": "s1"}})
    model = script(says(signed, "Let me look.", call("c1", at="sea"), call("c2", at="sky")), says("Rain."))
    loop = loop_of(model, tools=[look])
    chunks = await read(loop)
    assert "".join(chunk.content for chunk in chunks) == "Let me look.Rain."
    assert "".join(chunk.reasoning or "" for chunk in chunks) == "Hm."
    assert loop.result.text == "Rain."
    assert loop.result.conversation == [
        *HELLO,
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s1"}}},
                {"text": "Let me look."},
                {"toolUse": {"toolUseId": "c1", "name": "look", "input": {"at": "sea"}}},
                {"toolUse": {"toolUseId": "c2", "name": "look", "input": {"at": "sky"}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "c1", "content": [{"text": "saw sea"}]}},
                {"toolResult": {"toolUseId": "c2", "content": [{"text": "saw sky"}]}},
            ],
        },
        {"role": "assistant", "content": [{"text": "Rain."}]},
    ]
    assert sent(model, 0).prompt[0].role == "system"


async def test_the_result_tells_what_was_done() -> None:
    loop = loop_of(script(says(call("c1", at="sea")), says("Rain.")), tools=[look])
    await read(loop)
    result = loop.result
    assert [(one.tool_name, one.input) for one in result.tool_calls] == [("look", {"at": "sea"})]
    assert [one.status for one in result.tool_executions] == ["ok"]
    assert (result.usage, result.finish_reason.unified, result.stopped_by) == (COST + COST, "stop", "answer")
    assert (result.stop_reason, result.aborted, result.error) == (None, False, None)


async def test_the_conversation_that_was_given_is_neither_changed_nor_converted_anew() -> None:
    odd = [{"role": "user", "content": [{"text": "a"}, {"text": "b"}, {"cachePoint": {"type": "default"}}]}]
    before = repr(odd)
    loop = loop_of(script("Hi."), odd)
    await read(loop)
    assert loop.result.conversation[0] is odd[0]
    assert repr(odd) == before


async def test_nothing_happens_before_the_first_chunk_is_asked_for() -> None:
    model = script("Hi.")
    loop = loop_of(model)
    await anyio.lowlevel.checkpoint()
    assert (len(model.calls), loop.settled) == (0, False)
    with pytest.raises(ConfigError, match="to the end"):
        _ = loop.result
    await loop.stream.aclose()


async def test_a_tool_does_not_run_while_nobody_reads() -> None:
    ran: list[object] = []
    loop = loop_of(script(says("Well.", call("c1", "note")), "Done."), tools=[working("note", ran.append)])
    async for chunk in loop.stream:
        if chunk.content == "Well.":
            break
    await anyio.wait_all_tasks_blocked()
    assert ran == []
    await loop.stream.aclose()


async def test_the_options_of_the_calls_are_sent_with_each() -> None:
    model = script(says(call()), "Rain.")
    await read(loop_of(model, tools=[look], options=CallOptions((), temperature=0.0, max_output_tokens=5)))
    assert [(one.options.temperature, one.options.max_output_tokens) for one in model.calls] == [(0.0, 5)] * 2


def test_a_prompt_beside_the_conversation_is_refused() -> None:
    with pytest.raises(ConfigError, match="without one"):
        loop_of(script("Hi."), options=CallOptions.from_text("Hi"))


def test_what_is_no_conversation_is_refused_with_the_place() -> None:
    with pytest.raises(BridgeShapeError, match=r"\[0\]"):
        loop_of(script("Hi."), [{"role": "nobody", "content": []}])


async def test_middlewares_of_the_model_stand_around_each_step() -> None:
    model = script(says(call()), RateLimitError("slow", retry_after=0), "Rain.")
    loop = loop_of(wrap_model(model, [Retry(delay=0)]), tools=[look])
    await read(loop)
    assert (loop.result.text, len(loop.result.steps)) == ("Rain.", 2)


async def test_nothing_is_tried_again_behind_the_first_chunk() -> None:
    model = script([*BEGUN, RateLimitError("slow", retry_after=0)], "Rain.")
    loop = loop_of(wrap_model(model, [Retry(delay=0)]))
    with pytest.raises(RateLimitError):
        await read(loop)
    assert len(model.calls) == 1


# -- how it ends


async def test_at_the_limit_of_steps_the_answer_says_so() -> None:
    loop = loop_of(script(says(call("c1")), says(call("c2"))), tools=[look], max_steps=1)
    chunks = await read(loop)
    result = loop.result
    assert (result.stop_reason, result.finish_reason.unified) == ("step-cap", "tool-calls")
    assert result.text == "".join(chunk.content for chunk in chunks) != ""
    check_converse(result.conversation)


async def test_a_stop_condition_ends_it() -> None:
    loop = loop_of(script(says(call())), tools=[look], stop_when=step_count_is(1))
    await read(loop)
    assert (loop.result.stopped_by, loop.result.stop_reason) == ("stop-condition", None)
    check_converse(loop.result.conversation)


async def test_a_failure_of_the_first_step_is_raised_as_it_is_and_settles_the_loop() -> None:
    loop = loop_of(script(RateLimitError("slow")))
    with pytest.raises(RateLimitError) as caught:
        await read(loop)
    assert (loop.result.error, loop.result.finish_reason.unified) == (caught.value, "error")
    assert loop.result.conversation == HELLO


async def test_a_later_failure_comes_behind_the_chunks_before_it_with_what_was_done() -> None:
    loop = loop_of(script(says("Well.", call()), RateLimitError("slow")), tools=[look])
    seen: list[str] = []

    async def read_into() -> None:
        async for chunk in loop.stream:
            seen.append(chunk.content)

    with pytest.raises(TurnError) as caught:
        await read_into()
    assert "Well." in seen
    assert loop.result.error is caught.value
    assert (len(loop.result.steps), loop.result.aborted) == (1, False)
    check_converse(loop.result.conversation)


async def test_closing_before_the_first_chunk_settles_it() -> None:
    model = script("Hi.")
    loop = loop_of(model)
    await loop.stream.aclose()
    assert (loop.result.stop_reason, loop.result.finish_reason.unified) == ("aborted", "other")
    assert (loop.result.conversation, len(model.calls)) == (HELLO, 0)


async def test_cancelling_within_a_batch_keeps_what_has_run() -> None:
    waits = anyio.Event()

    async def hangs(given: object) -> None:
        waits.set()
        await anyio.sleep_forever()

    model = script(says(call("c1"), call("c2", "hangs")))
    loop = loop_of(model, tools=[look, working("hangs", hangs)])

    async def leave(scope: anyio.CancelScope) -> None:
        await waits.wait()
        await anyio.wait_all_tasks_blocked()
        scope.cancel()

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(leave, scope)
            await read(loop)
    assert loop.result.aborted
    results = [block["toolResult"] for block in loop.result.conversation[-1]["content"]]  # type: ignore[attr-defined]
    assert [one["toolUseId"] for one in results] == ["c1", "c2"]
    assert results[0]["content"] == [{"text": "saw sky"}]
    assert results[1]["status"] == "error"


async def test_closing_from_another_task_settles_it_for_the_reader_too() -> None:
    waits = anyio.Event()

    async def hangs(given: object) -> None:
        waits.set()
        await anyio.sleep_forever()

    loop = loop_of(script(says(call("c1", "hangs"))), tools=[working("hangs", hangs)])

    async def reader() -> None:
        with pytest.raises(anyio.ClosedResourceError):
            await read(loop)
        assert loop.result.aborted
        assert [one.status for one in loop.result.tool_executions] == ["cancelled"]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader)
        await waits.wait()
        await loop.stream.aclose()
    check_converse(loop.result.conversation)


async def test_closing_while_the_first_step_is_opened_ends_the_call() -> None:
    asked = anyio.Event()

    class Hangs:
        provider = model_id = "hangs"

        async def do_generate(self, options: CallOptions) -> Any:
            raise NotImplementedError

        async def do_stream(self, options: CallOptions) -> Any:
            asked.set()
            await anyio.sleep_forever()

    loop = loop_of(Hangs())

    async def reader() -> None:
        with pytest.raises(anyio.ClosedResourceError):
            await read(loop)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader)
        await asked.wait()
        await loop.stream.aclose()
    assert loop.result.aborted


class OpensLate:
    """Opens its stream only when it is told to, also where it is cancelled meanwhile."""

    provider, model_id = "late", "late-1"

    def __init__(self) -> None:
        self.asked, self.go, self.opened, self.closed = anyio.Event(), anyio.Event(), 0, 0

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        raise NotImplementedError

    async def do_stream(self, options: CallOptions) -> StreamResult:
        self.asked.set()
        with anyio.CancelScope(shield=True):
            await self.go.wait()
        self.opened += 1

        async def close() -> None:
            self.closed += 1

        async def source() -> AsyncIterator[StreamPart]:
            for part in BEGUN:
                yield part

        return StreamResult(PartStream(source(), close=close))


async def test_a_step_that_is_opened_all_the_same_when_the_loop_is_closed_is_closed_too() -> None:
    model = OpensLate()
    loop = loop_of(model)

    async def reader() -> None:
        with pytest.raises(anyio.ClosedResourceError):
            await read(loop)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader)
        await model.asked.wait()
        tasks.start_soon(loop.stream.aclose)
        await anyio.wait_all_tasks_blocked()
        model.go.set()
    assert (model.opened, model.closed) == (1, 1)
    assert loop.result.aborted


async def test_of_several_failures_the_first_is_the_loop_s() -> None:
    class FailsTwice(OpensLate):
        async def do_stream(self, options: CallOptions) -> StreamResult:
            async def source() -> AsyncIterator[StreamPart]:
                for part in BEGUN:
                    yield part
                yield ErrorPart(RateLimitError("first"))
                raise ServerError("second")

            return StreamResult(PartStream(source()))

    loop = loop_of(FailsTwice())
    parts = [part async for part in bedrock_chunks_to_v3_stream(loop.stream, loop.finish)]
    check_stream(parts)
    assert [type(part.error) for part in parts if isinstance(part, ErrorPart)] == [RateLimitError]
    assert isinstance(loop.result.error, RateLimitError)


async def test_a_conversation_with_calls_that_wait_for_an_approval_says_where_to_go_on() -> None:
    asks = Tool(
        name="look", description="", input_schema={"type": "object"}, execute=lambda input: "x", needs_approval=True
    )
    loop = loop_of(script(says(call())), tools=[asks])
    await read(loop)
    assert len(loop.result.approvals) == 1
    with pytest.raises(BridgeShapeError, match="messages"):
        _ = loop.result.conversation


async def test_documents_of_tools_are_not_named_like_those_that_were_given() -> None:
    report = {"document": {"name": "report", "format": "pdf", "source": {"bytes": b"%PDF"}}}
    asked = [{"role": "user", "content": [report, {"text": "And the new one?"}]}]
    read_it = working("look", lambda given: ContentOutput((OutputFileData(b"%PDF", "application/pdf", "report.pdf"),)))
    loop = loop_of(script(says(call()), says("Longer.")), asked, tools=[read_it])
    await read(loop)
    check_converse(loop.result.conversation)
    answer: Any = loop.result.conversation[2]
    assert answer["content"][0]["toolResult"]["content"][0]["document"]["name"] == "report-2"


async def test_what_the_conversation_cannot_say_has_a_warning() -> None:
    loop = loop_of(script(says(Reasoning("unsigned thought"), "Rain.")))
    await read(loop)
    assert loop.result.conversation[1:] == [{"role": "assistant", "content": [{"text": "Rain."}]}]
    (warning,) = loop.result.warnings
    assert "prompt[2].content[0]" in (warning.details or "")


async def test_what_converse_cannot_carry_at_all_is_a_shape_error_of_the_conversation() -> None:
    far = working("look", lambda given: ContentOutput((OutputImageUrl("https://pictures.test/x.png"),)))
    loop = loop_of(script(says(call()), says("Done.")), tools=[far])
    await read(loop)
    with pytest.raises(BridgeShapeError):
        loop.result.conversation  # noqa: B018  # it is read


async def test_wherever_it_is_left_the_conversation_is_valid() -> None:
    total = len(await read(loop_of(_three_steps(), tools=[look])))
    for left in range(total + 1):
        loop = loop_of(_three_steps(), tools=[look])
        for _ in range(left):
            await anext(loop.stream)
        await loop.stream.aclose()
        assert loop.settled
        check_converse(loop.result.conversation)


def _three_steps() -> Any:
    return script(says("One.", call("c1"), call("c2")), says("Two.", call("c3")), says("Three."))


@settings(max_examples=60)
@given(
    st.lists(
        st.sampled_from(["text", "call", "two calls", "nothing", "bad input", "unknown", "cut", "fails", "breaks"]),
        min_size=1,
        max_size=5,
    ),
    st.integers(0, 40),
)
def test_any_script_left_anywhere_gives_a_conversation_that_converse_takes(script_of: list[str], left: int) -> None:
    replies: dict[str, Any] = {
        "text": says("Well."),
        "call": says(call("c1")),
        "two calls": says("Both.", call("c1"), call("c2", at="sea")),
        "nothing": says(reason="tool-calls"),
        "bad input": says(call("c1").replace(input='{"at":')),
        "unknown": says(call("c1", "nope")),
        "cut": says("Half", call("c1"), reason="length"),
        "fails": RateLimitError("slow"),
        "breaks": [*BEGUN, RateLimitError("slow")],
    }

    async def run() -> None:
        loop = loop_of(script(*(replies[one] for one in script_of), "Done."), tools=[look])
        try:
            for _ in range(left):
                await anext(loop.stream)
        except (StopAsyncIteration, RateLimitError, TurnError):
            pass
        await loop.stream.aclose()
        check_converse(loop.result.conversation)

    anyio.run(run)


# -- to the common protocol


async def test_a_loop_as_a_v3_stream_ends_as_the_loop_did() -> None:
    loop = loop_of(script(says("Look.", call()), says("Rain.")), tools=[look])
    parts = [part async for part in bedrock_chunks_to_v3_stream(loop.stream, loop.finish)]
    check_stream(parts)
    assert isinstance(parts[-1], Finish)
    assert (parts[-1].finish_reason, parts[-1].usage) == (loop.result.finish_reason, loop.result.usage)
    assert [part.type for part in parts if part.type.startswith("tool")] == [
        *("tool-input-start", "tool-input-delta", "tool-input-end", "tool-call", "tool-result")
    ]


async def test_a_loop_that_fails_as_a_v3_stream() -> None:
    loop = loop_of(script([*BEGUN, RateLimitError("slow")]))
    parts = [part async for part in bedrock_chunks_to_v3_stream(loop.stream, loop.finish)]
    check_stream(parts)
    assert [part.type for part in parts[-2:]] == ["error", "finish"]


async def test_a_loop_shows_no_text() -> None:
    loop = loop_of(script(says("secret", call())), tools=[look], stop_when=step_count_is(1))
    await read(loop)
    assert "secret" not in repr(loop.result)
    assert "Umbrella" not in repr(loop.result)
