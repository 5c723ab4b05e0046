"""`primed` turns early failures into exceptions of the call; `collected` sees the whole answer before it is over."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest

from neurolink_mw.errors import OverloadedError, ProviderError
from neurolink_mw.protocol import (
    ErrorPart,
    File,
    Finish,
    FinishReason,
    GenerateResult,
    PartStream,
    Raw,
    ReasoningDelta,
    ReasoningStart,
    RequestInfo,
    ResponseInfo,
    ResponseMetadata,
    Source,
    StreamPart,
    StreamResult,
    StreamStart,
    TextDelta,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
    ToolResult,
    collect,
    primed,
)

from .builders import HELLO, STOP, Connection, layered, passed_on, read, text_block, whole

pytestmark = pytest.mark.anyio

PREAMBLE: list[StreamPart] = [StreamStart(), ResponseMetadata("r1"), Raw({"a": 1}), TextStart("0"), TextDelta("0", "")]
FAILED = Finish(FinishReason("error"))


class Scripted:
    """A source that notes how far it was read; an exception in it is raised there."""

    def __init__(self, *script: StreamPart | Exception) -> None:
        self._script = script
        self.read = 0
        self.connection = Connection(())

    async def _parts(self) -> AsyncIterator[StreamPart]:
        for step in self._script:
            if isinstance(step, Exception):
                raise step
            self.read += 1
            yield step

    def result(self) -> StreamResult:
        stream = PartStream(self._parts(), close=self.connection.close)
        return StreamResult(layered(stream, 4), RequestInfo(body=1), ResponseInfo("r1"))


# ------------------------------------------------------------------------------------------------------------- primed


async def test_what_was_read_is_put_back_in_order() -> None:
    parts = [*PREAMBLE, *HELLO[2:]]
    result = await primed(Scripted(*parts).result())
    assert await read(result.stream) == parts


async def test_request_and_response_are_kept() -> None:
    result = await primed(Scripted(*HELLO).result())
    assert (result.request, result.response) == (RequestInfo(body=1), ResponseInfo("r1"))
    await result.stream.aclose()


@pytest.mark.parametrize(
    "first",
    [
        [TextStart("0"), TextDelta("0", "a")],
        [ReasoningStart("0"), ReasoningDelta("0", "a")],
        [ToolInputStart("0", "t"), ToolInputDelta("0", "{")],
        [ToolCall("c", "t", "{}")],
        [ToolResult("c", "t", 1)],
        [Source("url", "s", "https://a.b")],
        [File("m", b"")],
        [STOP],
    ],
    ids=lambda parts: parts[-1].type,
)
async def test_a_stream_is_read_up_to_its_first_content_and_no_further(first: list[StreamPart]) -> None:
    source = Scripted(*PREAMBLE, *first, Raw("more"))
    result = await primed(source.result())
    assert source.read == len(PREAMBLE) + len(first)
    assert source.connection.closed == 0
    await result.stream.aclose()
    assert source.connection.closed == 1


async def test_an_error_before_the_first_content_is_raised_and_the_source_freed() -> None:
    source = Scripted(*PREAMBLE, OverloadedError("busy", provider="p"))
    with pytest.raises(OverloadedError, match="busy"):
        await primed(source.result())
    assert source.connection.closed == 1


async def test_an_error_part_before_the_first_content_is_raised_as_its_exception() -> None:
    source = Scripted(*PREAMBLE, ErrorPart(OverloadedError("busy", provider="p")), FAILED)
    with pytest.raises(OverloadedError) as caught:
        await primed(source.result())
    assert caught.value.retryable
    assert source.connection.closed == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ({"type": "overloaded_error", "message": "secret"}, "reported an error of type overloaded_error$"),
        ({"name": "OverloadedError", "message": "secret"}, "reported an error of type OverloadedError$"),
        ({"message": "secret"}, "reported an error$"),
        ("secret", "reported an error$"),
        (None, "reported an error$"),
    ],
)
async def test_an_error_part_that_came_as_data_says_its_kind_and_no_more(error: object, message: str) -> None:
    with pytest.raises(ProviderError, match=message):
        await primed(Scripted(*PREAMBLE, ErrorPart(error), FAILED).result())


async def test_an_error_after_the_first_content_is_left_to_the_reader() -> None:
    source = Scripted(*HELLO[:3], OverloadedError("busy"))
    result = await primed(source.result())
    with pytest.raises(OverloadedError, match="busy"):
        await read(result.stream)
    assert source.connection.closed == 1


async def test_an_error_part_after_the_first_content_is_passed_on() -> None:
    parts = [*HELLO[:4], ErrorPart("late"), *HELLO[4:5], FAILED]
    result = await primed(Scripted(*parts).result())
    assert await read(result.stream) == parts


async def test_why_it_failed_is_raised_also_where_the_close_fails_as_well() -> None:
    async def fail() -> None:
        raise ValueError("cannot close")

    async def source() -> AsyncIterator[StreamPart]:
        yield StreamStart()
        yield ErrorPart(OverloadedError("busy"))

    with pytest.raises(OverloadedError, match="busy"):
        await primed(StreamResult(PartStream(source(), close=fail)))


async def test_cancellation_frees_the_source() -> None:
    connection = Connection(PREAMBLE, held=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(primed, StreamResult(layered(connection.stream())))
        await connection.waiting.wait()
        tasks.cancel_scope.cancel()
    assert (connection.closed, connection.left) == (1, True)


@pytest.mark.parametrize("parts", [[], [StreamStart()], PREAMBLE], ids=["nothing", "a start", "a preamble"])
async def test_a_stream_that_ends_before_its_first_content_is_given_back_as_it_is(parts: list[StreamPart]) -> None:
    source = Scripted(*parts)
    result = await primed(source.result())
    assert await read(result.stream) == parts
    assert source.connection.closed == 1


async def test_a_stream_that_is_derived_can_be_primed_and_derived_again() -> None:
    def upper(part: StreamPart) -> StreamPart:
        return part.replace(delta=part.delta.upper()) if isinstance(part, TextDelta) else part

    result = (await primed(Scripted(*HELLO).result().map(upper))).map(upper).through(passed_on)
    async with result.stream as stream:
        assert collect(await read(stream)).text == "HELLO"


async def test_a_stream_can_be_primed_twice() -> None:
    result = await primed(await primed(Scripted(*HELLO).result()))
    assert await read(result.stream) == HELLO


async def test_a_primed_stream_that_is_closed_unread_frees_its_source() -> None:
    source = Scripted(*HELLO)
    result = await primed(source.result())
    await result.stream.aclose()
    assert source.connection.closed == 1


async def test_a_primed_stream_can_be_closed_while_it_is_read() -> None:
    connection = Connection(HELLO[:3], held=True)
    result = await primed(StreamResult(layered(connection.stream())))
    async with anyio.create_task_group() as tasks:

        async def reader() -> None:
            with pytest.raises(anyio.ClosedResourceError):
                await read(result.stream)

        tasks.start_soon(reader)
        await connection.waiting.wait()
        await result.stream.aclose()
    assert (connection.closed, connection.left) == (1, True)


# ----------------------------------------------------------------------------------------------------------- collected


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_gets_the_whole_answer_before_the_finish_is_passed_on(is_async: bool) -> None:
    events: list[str] = []

    def note(answer: GenerateResult) -> None:
        events.append(f"answer {answer.text}")

    async def note_later(answer: GenerateResult) -> None:
        await anyio.lowlevel.checkpoint()
        note(answer)

    async for part in StreamResult.of_parts(HELLO).collected(note_later if is_async else note).stream:
        events.append(part.type)
    assert events == ["stream-start", "text-start", "text-delta", "text-delta", "text-end", "answer Hello", "finish"]


async def test_the_answer_is_whole() -> None:
    seen: list[GenerateResult] = []
    parts = whole(text_block("a"), ToolCall("c", "t", "{}"), finish=Finish(FinishReason("tool-calls")))
    await read(StreamResult.of_parts(parts).collected(seen.append).stream)
    assert seen == [collect(parts)]


async def test_a_consumer_that_stops_at_the_finish_loses_nothing() -> None:
    seen: list[GenerateResult] = []
    async with StreamResult.of_parts(HELLO).collected(seen.append).stream as stream:
        async for part in stream:
            if isinstance(part, Finish):
                break
    assert len(seen) == 1


async def test_a_stream_that_is_left_early_runs_nothing() -> None:
    seen: list[GenerateResult] = []
    connection = Connection(held=True)
    async with StreamResult(connection.stream()).collected(seen.append).stream as stream:
        await anext(stream)
    assert seen == []
    assert connection.closed == 1


async def test_a_stream_that_fails_runs_nothing() -> None:
    seen: list[GenerateResult] = []
    with pytest.raises(OverloadedError):
        await read(Scripted(*HELLO[:3], OverloadedError("busy")).result().collected(seen.append).stream)
    assert seen == []


async def test_a_stream_without_a_finish_runs_nothing() -> None:
    seen: list[GenerateResult] = []
    await read(StreamResult.of_parts(HELLO[:-1]).collected(seen.append).stream)
    assert seen == []


async def test_what_the_function_raises_comes_instead_of_the_finish() -> None:
    async def refuse(answer: GenerateResult) -> None:
        raise ValueError("not good enough")

    source = Scripted(*HELLO)
    seen: list[StreamPart] = []
    with pytest.raises(ValueError, match="not good enough"):  # noqa: PT012  # what came before it counts
        async with source.result().collected(refuse).stream as stream:
            async for part in stream:
                seen.append(part)
    assert seen == HELLO[:-1]
    assert source.connection.closed == 1
