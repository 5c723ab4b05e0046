"""Reading a stream, and deriving others from it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.protocol import (
    Closer,
    GenerateResult,
    PartStream,
    Raw,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamPart,
    StreamResult,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    check_grammar,
    collect,
    parts_of,
)

from .builders import HELLO, STOP, Connection, layered, passed_on, read, said, text_block, unchanged, whole
from .strategies import quick, results, streams

pytestmark = pytest.mark.anyio


def upper(part: StreamPart) -> StreamPart:
    return part.replace(delta=part.delta.upper()) if isinstance(part, TextDelta) else part


def without_raw(part: StreamPart) -> StreamPart | None:
    return None if isinstance(part, Raw) else part


# ------------------------------------------------------------------------------------------------------------ reading


async def test_a_stream_gives_the_parts_of_its_source_in_order() -> None:
    assert await read(PartStream.of(HELLO)) == HELLO


async def test_parts_can_be_read_one_by_one() -> None:
    stream = PartStream.of(HELLO)
    assert [await anext(stream), await anext(stream)] == HELLO[:2]
    assert await read(stream) == HELLO[2:]


async def test_a_stream_that_was_read_out_has_no_more_parts() -> None:
    stream = PartStream.of(HELLO)
    await read(stream)
    assert await read(stream) == []
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_what_the_source_raises_reaches_the_reader_after_what_came_before() -> None:
    async def source() -> AsyncIterator[StreamPart]:
        yield HELLO[0]
        raise ValueError("broken")

    seen: list[StreamPart] = []

    def note(part: StreamPart) -> StreamPart:
        seen.append(part)
        return part

    with pytest.raises(ValueError, match="broken"):
        await read(layered(PartStream(source())).map(note))
    assert seen == HELLO[:1]


async def test_a_closed_stream_cannot_be_read() -> None:
    stream = PartStream.of(HELLO)
    await stream.aclose()
    with pytest.raises(anyio.ClosedResourceError):
        await anext(stream)
    with pytest.raises(anyio.ClosedResourceError):
        await read(stream)


@pytest.mark.parametrize(
    "derive",
    [lambda s: s.map(unchanged), lambda s: s.expand(unchanged), lambda s: s.through(passed_on)],
    ids=["map", "expand", "through"],
)
async def test_what_is_derived_from_a_closed_stream_cannot_be_read(derive: Callable[[PartStream], PartStream]) -> None:
    stream = PartStream.of(HELLO)
    derived = derive(stream)
    await stream.aclose()
    with pytest.raises(anyio.ClosedResourceError):
        await read(derived)


async def test_a_stream_has_one_reader_at_a_time() -> None:
    connection = Connection(held=True)
    async with connection.stream() as stream, anyio.create_task_group() as tasks:

        async def reader() -> None:
            with pytest.raises(anyio.ClosedResourceError):
                await read(stream)

        tasks.start_soon(reader)
        await connection.waiting.wait()
        with pytest.raises(RuntimeError, match="already running"):
            await anext(stream)
        await stream.aclose()


@pytest.mark.parametrize("source", [[StreamStart()], StreamStart(), None, "text"])
def test_what_is_no_async_iterator_is_refused(source: object) -> None:
    with pytest.raises(TypeError, match=f"reads an async iterator, not {type(source).__name__}"):
        PartStream(source)  # type: ignore[arg-type]


class Countdown:
    """An async iterator that is a class, with a close method as many clients have."""

    def __init__(self, parts: Sequence[StreamPart]) -> None:
        self._parts = list(parts)
        self.closed = 0

    def __aiter__(self) -> Countdown:
        return self

    async def __anext__(self) -> StreamPart:
        if not self._parts:
            raise StopAsyncIteration
        return self._parts.pop(0)

    async def aclose(self) -> None:
        self.closed += 1


async def test_a_source_may_be_any_async_iterator() -> None:
    assert await read(layered(PartStream(Countdown(HELLO)))) == HELLO


async def test_the_close_method_of_an_iterator_is_used() -> None:
    source = Countdown(HELLO)
    async with layered(PartStream(source)) as stream:
        await anext(stream)
    assert source.closed == 1


async def test_the_close_method_of_an_iterator_is_used_when_nothing_was_read() -> None:
    source = Countdown(HELLO)
    await layered(PartStream(source)).aclose()
    assert source.closed == 1


async def test_a_close_function_and_the_iterators_own_are_both_used() -> None:
    source, connection = Countdown(HELLO), Connection()
    await PartStream(source, close=connection.close).aclose()
    assert (source.closed, connection.closed) == (1, 1)


async def test_the_iterators_own_is_used_when_the_close_function_fails() -> None:
    async def fail() -> None:
        raise ValueError("no")

    source = Countdown(HELLO)
    with pytest.raises(ValueError, match="no"):
        await PartStream(source, close=fail).aclose()
    assert source.closed == 1


async def test_an_iterator_that_calls_its_own_closer_ends_as_any_other() -> None:
    connection = Connection()
    closer = Closer(connection.close)

    class Tidy(Countdown):
        async def __anext__(self) -> StreamPart:
            try:
                return await super().__anext__()
            except StopAsyncIteration:
                await closer()
                raise

    assert await read(PartStream(Tidy(HELLO), close=closer)) == HELLO
    assert connection.closed == 1


# ---------------------------------------------------------------------------------------------------------------- map


async def test_map_replaces_each_part() -> None:
    assert said(await read(PartStream.of(HELLO).map(upper))) == "HELLO"


async def test_map_leaves_out_what_becomes_none() -> None:
    parts = whole(Raw(1), text_block("a"), Raw(2))
    assert await read(PartStream.of(parts).map(without_raw)) == whole(text_block("a"))


async def test_maps_run_in_the_order_in_which_they_were_added() -> None:
    def add(letter: str) -> Callable[[StreamPart], StreamPart]:
        return lambda part: part.replace(delta=part.delta + letter) if isinstance(part, TextDelta) else part

    stream = PartStream.of(whole(text_block("x"))).map(add("a")).map(add("b")).map(add("c"))
    assert said(await read(stream)) == "xabc"


async def test_a_part_that_one_map_left_out_is_not_shown_to_the_next() -> None:
    seen: list[StreamPart] = []

    def watch(part: StreamPart) -> StreamPart:
        seen.append(part)
        return part

    await read(PartStream.of(whole(Raw(1))).map(unchanged).map(without_raw).map(watch))
    assert seen == whole()


async def test_a_map_can_be_added_to_one_that_is_being_read() -> None:
    stream = PartStream.of(HELLO).map(unchanged)
    await anext(stream)
    assert await read(stream.map(upper)) == [upper(part) for part in HELLO[1:]]


async def test_nothing_runs_before_the_first_read() -> None:
    def fail(part: StreamPart) -> StreamPart:
        raise AssertionError("read too early")

    await PartStream.of(HELLO).map(fail).expand(fail).aclose()


async def test_what_a_map_raises_reaches_the_reader_and_the_source_is_closed_by_leaving() -> None:
    def fail(part: StreamPart) -> StreamPart:
        raise ValueError("mine")

    connection = Connection()
    with pytest.raises(ValueError, match="mine"):
        async with connection.stream().map(fail) as stream:
            await read(stream)
    assert connection.closed == 1


# ----------------------------------------------------------------------------------------------------- expand, through


async def test_expand_takes_a_part_parts_or_nothing() -> None:
    def letters(part: StreamPart) -> StreamPart | list[StreamPart] | None:
        if isinstance(part, TextDelta):
            return [part.replace(delta=letter) for letter in part.delta]
        return without_raw(part)

    parts = whole(Raw(1), text_block("ab", ""))
    assert await read(PartStream.of(parts).expand(letters)) == whole(text_block("a", "b"))


async def test_expand_takes_any_iterable() -> None:
    assert await read(PartStream.of(HELLO).expand(lambda part: iter((part, part)))) == [p for p in HELLO for _ in "ab"]


async def test_through_makes_what_it_likes_of_the_stream() -> None:
    async def framed(parts: PartStream) -> AsyncIterator[StreamPart]:
        yield Raw("before")
        async for part in parts:
            yield part
        yield Raw("after")

    assert await read(PartStream.of([STOP]).through(framed)) == [Raw("before"), STOP, Raw("after")]


async def test_through_may_stop_early_and_the_source_is_closed_by_leaving() -> None:
    async def first(parts: PartStream) -> AsyncIterator[StreamPart]:
        async for part in parts:
            yield part
            return

    connection = Connection(held=True)
    async with connection.stream().through(first) as stream:
        assert await read(stream) == HELLO[:1]
    assert connection.closed == 1


async def test_through_refuses_a_function_that_is_no_async_generator_and_names_it() -> None:
    async def forgot_to_yield(parts: PartStream) -> list[StreamPart]:
        return [part async for part in parts]

    with pytest.raises(TypeError, match="takes an async generator function; 'forgot_to_yield' returned coroutine"):
        PartStream.of(HELLO).through(forgot_to_yield)  # type: ignore[arg-type]


@quick
@given(parts=streams, layers=st.integers(0, 12))
def test_layers_that_change_nothing_change_nothing(parts: list[StreamPart], layers: int) -> None:
    async def check() -> None:
        async with layered(PartStream.of(parts), layers) as stream:
            assert await read(stream) == parts

    anyio.run(check)


# -------------------------------------------------------------------------------------------------------------- blocks


class Masking:
    """Replaces every "bomb", however it is cut, and holds back what could be the start of one."""

    word = "bomb"

    def __init__(self) -> None:
        self._held = ""

    def delta(self, text: str) -> str:
        text = (self._held + text).replace(self.word, "****")
        keep = max(n for n in range(len(self.word)) if n <= len(text) and text.endswith(self.word[:n]))
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def end(self) -> str:
        held, self._held = self._held, ""
        return held


def masking(kind: str, id: str) -> Masking:
    return Masking()


async def masked(parts: list[StreamPart], kinds: Sequence[str] = ("text",)) -> list[StreamPart]:
    return await read(PartStream.of(parts).blocks(masking, kinds))


async def test_a_match_is_found_across_deltas() -> None:
    made = await masked(whole(text_block("a b", "om", "b c")))
    assert said(made) == "a **** c"
    check_grammar(made)


async def test_half_a_match_is_released_when_its_block_ends() -> None:
    made = await masked(whole(text_block("a", " bo")))
    assert made == whole(text_block("a", " ", "bo"))


async def test_a_delta_that_is_held_back_whole_is_left_out() -> None:
    assert await masked(whole(text_block("bo", "x"))) == whole(text_block("box"))


async def test_a_delta_that_is_held_back_whole_still_brings_its_metadata() -> None:
    metadata = {"p": {"k": 1}}
    made = await masked(whole([TextStart("0"), TextDelta("0", "bo", metadata), TextEnd("0")]))
    assert made == whole([TextStart("0"), TextDelta("0", "", metadata), TextDelta("0", "bo"), TextEnd("0")])


async def test_starts_ends_ids_and_metadata_are_kept() -> None:
    block: list[StreamPart] = [
        TextStart("7", {"p": {"s": 1}}),
        TextDelta("7", "a", {"p": {"d": 1}}),
        TextEnd("7", {"p": {"e": 1}}),
    ]
    assert await masked(whole(block)) == whole(block)


async def test_an_empty_delta_passes() -> None:
    block: list[StreamPart] = [TextStart("0"), TextDelta("0", ""), TextEnd("0")]
    assert await masked(whole(block)) == whole(block)


async def test_each_of_several_open_blocks_has_its_own_state() -> None:
    made = await masked(
        whole(
            [TextStart("0"), TextStart("1"), TextDelta("0", "bo"), TextDelta("1", "mb"), TextDelta("0", "mb")],
            [TextEnd("0"), TextEnd("1")],
        )
    )
    assert [part.text for part in collect(made).content if isinstance(part, Text)] == ["****", "mb"]


async def test_a_match_does_not_reach_from_one_block_into_the_next() -> None:
    assert said(await masked(whole(text_block("bo"), text_block("mb", id="1")))) == "bomb"


async def test_other_kinds_of_blocks_pass_unchanged() -> None:
    block: list[StreamPart] = [ReasoningStart("0"), ReasoningDelta("0", "bomb"), ReasoningEnd("0")]
    assert await masked(whole(block)) == whole(block)


async def test_reasoning_and_tool_input_are_rewritten_where_they_are_named() -> None:
    made = await masked(
        [
            *(ReasoningStart("0"), ReasoningDelta("0", "bomb"), ReasoningEnd("0")),
            *(ToolInputStart("c", "t"), ToolInputDelta("c", "bo"), ToolInputEnd("c"), ToolCall("c", "t", "bo")),
        ],
        ["reasoning", "tool_input"],
    )
    assert made[1] == ReasoningDelta("0", "****")
    assert made[4] == ToolInputDelta("c", "bo")


async def test_what_is_held_is_released_at_the_finish_of_a_source_that_never_closes_its_blocks() -> None:
    made = await masked([StreamStart(), TextStart("0"), TextDelta("0", "bo"), STOP])
    assert made == [StreamStart(), TextStart("0"), TextDelta("0", "bo"), STOP]


async def test_what_is_held_is_released_where_a_source_stops_without_a_finish() -> None:
    made = await masked([StreamStart(), TextStart("0"), TextDelta("0", "bo")])
    assert made == [StreamStart(), TextStart("0"), TextDelta("0", "bo")]


async def test_what_an_expansion_still_holds_comes_after_the_source() -> None:
    held: list[StreamPart] = []

    def hold(part: StreamPart) -> None:
        held.append(part)

    assert await read(PartStream.of(HELLO).expand(hold, rest=lambda: held)) == list(HELLO)


async def test_a_delta_of_no_open_block_is_rewritten_all_the_same() -> None:
    before, after = TextDelta("0", "bomb"), TextDelta("1", "bomb")
    made = await masked([before, TextStart("1"), TextEnd("1"), after, STOP])
    assert [part.delta for part in made if isinstance(part, TextDelta)] == ["****", "****"]


def test_an_unknown_kind_of_block_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="knows the kinds text, reasoning, tool_input; not tools"):
        PartStream.of(HELLO).blocks(masking, ["tools"])


@quick
@given(pieces=st.lists(st.text("bom ", max_size=3), max_size=8))
def test_a_rewritten_text_does_not_depend_on_how_it_was_cut(pieces: list[str]) -> None:
    async def check() -> None:
        made = await masked(whole(text_block(*pieces)))
        check_grammar(made)
        assert said(made) == "".join(pieces).replace("bomb", "****")

    anyio.run(check)


# ------------------------------------------------------------------------------------------------------ whole answers


@quick
@given(result=results())
def test_an_answer_can_be_replayed(result: GenerateResult) -> None:
    async def check() -> None:
        replayed = StreamResult.of(result)
        assert (replayed.request, replayed.response) == (result.request, result.response)
        assert await read(replayed.stream) == list(parts_of(result))

    anyio.run(check)


async def test_a_derived_result_keeps_request_and_response() -> None:
    result = StreamResult.of_parts(HELLO)
    for derived in (
        result.map(unchanged),
        result.expand(unchanged),
        result.through(passed_on),
        result.blocks(masking),
        result.collected(lambda answer: None),
    ):
        assert (derived.request, derived.response) == (result.request, result.response)
        await derived.stream.aclose()
