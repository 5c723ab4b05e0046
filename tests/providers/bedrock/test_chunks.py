"""Chunks of an agentic loop and V3 streams, there and back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.errors import BridgeShapeError, RateLimitError, ServerError
from neurolink_mw.protocol import (
    CallWarning,
    ErrorPart,
    Finish,
    FinishReason,
    InputTokens,
    OutputTokens,
    PartStream,
    Raw,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ResponseMetadata,
    StreamPart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    Usage,
    check_grammar,
)
from neurolink_mw.providers.bedrock.chunks import (
    AgenticLoopChunk,
    bedrock_chunks_to_v3_stream,
    bedrock_v3_stream_to_chunks,
)
from neurolink_mw.testing import check_stream

pytestmark = pytest.mark.anyio

USED = Usage(InputTokens(3), OutputTokens(2))
LAST = Finish(FinishReason("stop", "end_turn"), USED)

PARTS: list[StreamPart] = [
    StreamStart((CallWarning("unsupported", "seed"),)),
    ResponseMetadata("r1", None, "m"),
    ReasoningStart("0-0"),
    ReasoningDelta("0-0", "Hm."),
    ReasoningDelta("0-0", "", {"bedrock": {"signature": "s"}}),
    ReasoningEnd("0-0"),
    TextStart("0-1"),
    TextDelta("0-1", "Let me "),
    TextDelta("0-1", "look."),
    TextEnd("0-1"),
    Raw({"a": 1}),
    ToolCall("0-c1", "look", "{}", provider_executed=True),
    LAST,
]


async def finish() -> Finish:
    return LAST


async def chunks(*given: AgenticLoopChunk | Exception) -> AsyncIterator[AgenticLoopChunk]:
    for one in given:
        if isinstance(one, Exception):
            raise one
        yield one


async def parts_of(*given: AgenticLoopChunk | Exception) -> list[StreamPart]:
    parts = [part async for part in bedrock_chunks_to_v3_stream(chunks(*given), finish, lambda: None)]
    check_stream(parts)
    return parts


def bare(text: str = "", reasoning: str | None = None) -> AgenticLoopChunk:
    return AgenticLoopChunk(text, reasoning)


# -- there and back


async def test_every_part_but_the_last_is_a_chunk_and_text_stands_in_it() -> None:
    made = [chunk async for chunk in bedrock_v3_stream_to_chunks(PartStream.of(PARTS))]
    assert [chunk.part for chunk in made] == PARTS[:-1]
    assert [chunk.content for chunk in made if chunk.content] == ["Let me ", "look."]
    assert [chunk.reasoning for chunk in made if chunk.reasoning is not None] == ["Hm."]


async def test_chunks_of_parts_are_the_same_stream_again() -> None:
    made = bedrock_v3_stream_to_chunks(PartStream.of(PARTS))
    again = [part async for part in bedrock_chunks_to_v3_stream(made, finish, lambda: None)]
    assert again == PARTS


async def test_a_chunk_does_not_show_its_text() -> None:
    assert "secret" not in repr(AgenticLoopChunk("secret", "secret", TextDelta("0", "secret")))


# -- chunks of others


async def test_bare_text_gets_blocks_one_for_each_run_of_a_kind() -> None:
    parts = await parts_of(bare(reasoning="Hm"), bare(reasoning="m."), bare("Hel"), bare("lo"), bare(reasoning="Well"))
    assert [part.type for part in parts] == [
        "stream-start",
        *("reasoning-start", "reasoning-delta", "reasoning-delta", "reasoning-end"),
        *("text-start", "text-delta", "text-delta", "text-end"),
        *("reasoning-start", "reasoning-delta", "reasoning-end"),
        "finish",
    ]
    assert parts[-1] is LAST


async def test_a_chunk_with_both_reasons_first() -> None:
    parts = await parts_of(bare("Yes.", "Hm."))
    assert [part.type for part in parts if part.type.endswith("delta")] == ["reasoning-delta", "text-delta"]


async def test_a_chunk_of_nothing_says_nothing() -> None:
    assert [part.type for part in await parts_of(bare(), bare(reasoning=""))] == ["stream-start", "finish"]


async def test_no_chunk_at_all_is_an_empty_stream() -> None:
    assert await parts_of() == [StreamStart(), LAST]


async def test_the_id_of_a_bare_block_is_no_other_block_s() -> None:
    parts = await parts_of(
        AgenticLoopChunk(part=TextStart("chunk-0")),
        AgenticLoopChunk("a", part=TextDelta("chunk-0", "a")),
        bare("b"),
        AgenticLoopChunk(part=TextEnd("chunk-0")),
    )
    assert [part.id for part in parts if isinstance(part, TextStart)] == ["chunk-0", "chunk-1"]


async def test_a_part_with_an_id_that_bare_text_was_given_gets_another() -> None:
    bridged = await parts_of(
        AgenticLoopChunk("a"),
        AgenticLoopChunk(part=TextStart("chunk-0")),
        AgenticLoopChunk("b", None, TextDelta("chunk-0", "b")),
        AgenticLoopChunk(part=TextEnd("chunk-0")),
        AgenticLoopChunk(part=TextStart("0")),
        AgenticLoopChunk("c", None, TextDelta("0", "c")),
        AgenticLoopChunk(part=TextEnd("0")),
    )
    check_stream(bridged)
    assert [part.delta for part in bridged if isinstance(part, TextDelta)] == ["a", "b", "c"]


async def test_a_piece_of_a_block_that_has_not_begun_begins_it() -> None:
    bridged = await parts_of(AgenticLoopChunk("a", None, TextDelta("7", "a")))
    check_stream(bridged)
    assert bridged[1:3] == [TextStart("7"), TextDelta("7", "a")]


async def test_the_text_of_a_chunk_wins_over_that_of_its_part() -> None:
    bridged = await parts_of(
        AgenticLoopChunk(part=TextStart("t")),
        AgenticLoopChunk("[hidden]", None, TextDelta("t", "secret")),
        AgenticLoopChunk(part=ReasoningStart("r")),
        AgenticLoopChunk("", "[hidden]", ReasoningDelta("r", "secret")),
    )
    check_stream(bridged)
    assert "secret" not in repr([part.delta for part in bridged if isinstance(part, TextDelta | ReasoningDelta)])


async def test_warnings_of_a_start_that_comes_behind_text_are_told_at_the_end() -> None:
    bridged = await parts_of(
        AgenticLoopChunk("a"), AgenticLoopChunk(part=StreamStart((CallWarning("unsupported", "seed"),)))
    )
    check_stream(bridged)
    assert isinstance(last := bridged[-1], Finish)
    assert last.provider_metadata == {"bedrock": {"warnings": [{"type": "unsupported", "feature": "seed"}]}}


@pytest.mark.parametrize(
    "wrong",
    ["text", None, AgenticLoopChunk(5), AgenticLoopChunk(part="x"), AgenticLoopChunk(part=ToolInputDelta("c", "{"))],  # type: ignore[arg-type]
)
async def test_what_is_no_chunk_is_an_error_that_says_so(wrong: Any) -> None:
    bridged = await parts_of(AgenticLoopChunk("a"), wrong)
    check_stream(bridged)
    assert isinstance(error := bridged[-2], ErrorPart)
    assert isinstance(error.error, BridgeShapeError)


async def test_an_end_that_is_none_is_an_error_that_says_so() -> None:
    async def nothing() -> Finish:
        return None  # type: ignore[return-value]

    bridged = [part async for part in bedrock_chunks_to_v3_stream(chunks(AgenticLoopChunk("a")), nothing)]
    check_stream(bridged)
    assert isinstance(error := bridged[-2], ErrorPart)
    assert isinstance(error.error, BridgeShapeError)


async def test_a_failure_is_told_also_where_cancelling_fails() -> None:
    def broken() -> None:
        raise RuntimeError("cancel")

    source = chunks(AgenticLoopChunk("a"), RateLimitError("slow"))
    bridged = [part async for part in bedrock_chunks_to_v3_stream(source, finish, broken)]
    check_stream(bridged)
    assert isinstance(error := bridged[-2], ErrorPart)
    assert isinstance(error.error, RateLimitError)


async def test_a_source_that_gives_one_chunk_more_while_it_is_closed_is_not_heard_and_is_closed() -> None:
    asked, go, left = anyio.Event(), anyio.Event(), []

    async def source() -> AsyncIterator[AgenticLoopChunk]:
        try:
            yield AgenticLoopChunk("a")
            asked.set()
            await go.wait()
            yield AgenticLoopChunk("late")
        finally:
            left.append(True)

    stream = bedrock_chunks_to_v3_stream(source(), finish, go.set)
    heard: list[StreamPart] = []

    async def read() -> None:
        async for part in stream:
            heard.append(part)

    async def closed_reader() -> None:
        with pytest.raises(anyio.ClosedResourceError):
            await read()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(closed_reader)
        await asked.wait()
        await stream.aclose()
    assert [part.delta for part in heard if isinstance(part, TextDelta)] == ["a"]
    assert left == [True]


async def test_of_two_failures_behind_an_error_part_the_first_is_raised() -> None:
    async def source() -> AsyncIterator[StreamPart]:
        yield ErrorPart(RateLimitError("first"))
        raise ServerError("second")

    with pytest.raises(RateLimitError, match="first"):
        async for _ in bedrock_v3_stream_to_chunks(PartStream(source())):
            pass


async def test_a_block_that_was_left_open_is_ended() -> None:
    parts = await parts_of(AgenticLoopChunk(part=TextStart("t")), AgenticLoopChunk("a", part=TextDelta("t", "a")))
    assert parts[-2:] == [TextEnd("t"), LAST]


async def test_a_finish_within_is_not_the_last_word() -> None:
    parts = await parts_of(AgenticLoopChunk(part=Finish(FinishReason("length"))), bare("a"))
    assert [part for part in parts if isinstance(part, Finish)] == [LAST]


@given(
    st.lists(
        st.builds(AgenticLoopChunk, st.sampled_from(["", "a", "b"]), st.sampled_from([None, "", "x"]))
        | st.sampled_from([AgenticLoopChunk(part=part) for part in (StreamStart(), Raw({}), LAST, PARTS[1])])
    )
)
def test_any_chunks_make_a_grammatical_stream(made: list[AgenticLoopChunk]) -> None:
    async def run() -> Sequence[StreamPart]:
        return [part async for part in bedrock_chunks_to_v3_stream(chunks(*made), finish)]

    parts = anyio.run(run)
    check_grammar(parts)
    said = "".join(part.delta for part in parts if isinstance(part, TextDelta))
    assert said == "".join(chunk.content for chunk in made)


# -- failures


async def test_a_failure_ends_what_is_open_and_is_told_before_the_end() -> None:
    parts = await parts_of(bare("a"), RateLimitError("slow"))
    assert [part.type for part in parts[-3:]] == ["text-end", "error", "finish"]
    assert parts[-1] == LAST.replace(finish_reason=FinishReason("error", "interrupted"))


async def test_an_end_that_cannot_be_had_is_a_failure() -> None:
    async def fails() -> Finish:
        raise RateLimitError("slow")

    parts = [part async for part in bedrock_chunks_to_v3_stream(chunks(bare("a")), fails)]
    check_stream(parts)
    assert [part.type for part in parts[-2:]] == ["error", "finish"]


async def test_an_error_part_is_raised_behind_what_came_before_it() -> None:
    stream = PartStream.of(
        [StreamStart(), TextStart("0"), TextDelta("0", "a"), ErrorPart(RateLimitError("slow")), LAST]
    )
    seen: list[str] = []

    async def read_into() -> None:
        async for chunk in bedrock_v3_stream_to_chunks(stream):
            seen.append(chunk.content)

    with pytest.raises(RateLimitError):
        await read_into()
    assert seen == ["", "", "a"]


# -- closing


class Source:
    """Chunks without end, that tells whether it was closed."""

    def __init__(self) -> None:
        self.closed = 0
        self.waits = anyio.Event()
        self.stopped = anyio.Event()

    def __aiter__(self) -> Source:
        return self

    async def __anext__(self) -> AgenticLoopChunk:
        if self.waits.is_set():
            await self.stopped.wait()
            raise RateLimitError("it was cut")
        self.waits.set()
        return bare("a")

    async def aclose(self) -> None:
        self.closed += 1

    def cancel(self) -> None:
        self.stopped.set()


async def test_closing_the_stream_cancels_and_closes_the_source_once() -> None:
    source = Source()
    async with bedrock_chunks_to_v3_stream(source, finish, source.cancel) as stream:
        async for part in stream:
            if isinstance(part, TextDelta):
                break
    assert source.stopped.is_set()
    assert source.closed == 1


async def test_closing_it_before_the_first_part_cancels_too() -> None:
    source = Source()
    await bedrock_chunks_to_v3_stream(source, finish, source.cancel).aclose()
    assert source.stopped.is_set()


async def test_a_source_that_has_ended_is_not_cancelled() -> None:
    cancelled: list[None] = []
    stream = bedrock_chunks_to_v3_stream(chunks(bare("a")), finish, lambda: cancelled.append(None))
    async for _ in stream:
        pass
    await stream.aclose()
    assert cancelled == []


async def test_a_reader_in_another_task_is_told_that_the_stream_is_closed() -> None:
    source = Source()
    stream = bedrock_chunks_to_v3_stream(source, finish, source.cancel)

    async def read() -> None:
        with pytest.raises(anyio.ClosedResourceError):
            async for _ in stream:
                pass

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await source.waits.wait()
        await anyio.wait_all_tasks_blocked()
        await stream.aclose()


async def test_a_cancelled_reader_cancels_the_source() -> None:
    source = Source()
    with anyio.CancelScope() as scope:
        async for part in bedrock_chunks_to_v3_stream(source, finish, source.cancel):
            if isinstance(part, TextDelta):
                scope.cancel()
    assert source.stopped.is_set()


async def test_closing_the_chunks_closes_the_stream() -> None:
    closed: list[None] = []

    async def close() -> None:
        closed.append(None)

    async def endless() -> AsyncIterator[StreamPart]:
        yield StreamStart()
        await anyio.sleep_forever()

    async with bedrock_v3_stream_to_chunks(PartStream(endless(), close=close)) as made:
        await anext(made)
    assert closed == [None]
