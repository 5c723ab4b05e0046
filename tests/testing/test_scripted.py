"""The scripted model: any reply serves both calls, and it remembers what was done with it."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from neurolink_mw.errors import OverloadedError, ProtocolError
from neurolink_mw.protocol import (
    CallOptions,
    ErrorPart,
    Finish,
    FinishReason,
    GenerateResult,
    LanguageModel,
    RequestInfo,
    ResponseInfo,
    StreamPart,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    collect,
    parts_of,
    supported_urls,
    user_text,
)
from neurolink_mw.testing import HOLD, Pause, ScriptedModel, check_stream
from neurolink_mw.testing.scripted import ScriptedPart

pytestmark = pytest.mark.anyio

OPTIONS = CallOptions.from_text("hi")
ANSWER = GenerateResult(
    (Text("Hello"), ToolCall("c", "t", "{}")),
    FinishReason("tool-calls"),
    request=RequestInfo(body=1),
    response=ResponseInfo("r1", headers={"a": "b"}),
)
PARTS = list(parts_of(GenerateResult((Text("Hello"),))))


async def streamed(model: ScriptedModel, options: CallOptions = OPTIONS) -> list[StreamPart]:
    async with (await model.do_stream(options)).stream as stream:
        return [part async for part in stream]


# ------------------------------------------------------------------------------------------------------------- replies


def test_it_is_a_model() -> None:
    model: LanguageModel = ScriptedModel("hi", provider="p", model_id="m", supported_urls={"*": [".*"]})
    assert (model.provider, model.model_id, supported_urls(model)) == ("p", "m", {"*": [".*"]})


async def test_a_text_is_an_answer_of_that_text() -> None:
    model = ScriptedModel(["Hello", "Hello"])
    assert await model.do_generate(OPTIONS) == GenerateResult((Text("Hello"),))
    assert await streamed(model) == PARTS


async def test_one_text_is_a_script_of_one_reply() -> None:
    assert (await ScriptedModel("Hello").do_generate(OPTIONS)).text == "Hello"


async def test_a_result_is_returned_and_replayed_with_its_request_and_response() -> None:
    model = ScriptedModel([ANSWER, ANSWER])
    assert await model.do_generate(OPTIONS) is ANSWER
    result = await model.do_stream(OPTIONS)
    assert (result.request, result.response) == (ANSWER.request, ANSWER.response)
    assert [part async for part in result.stream] == list(parts_of(ANSWER))


async def test_a_result_may_be_its_json() -> None:
    data = {"content": [{"type": "text", "text": "Hello"}], "finishReason": {"unified": "length"}}
    model = ScriptedModel([data, data])
    expected = GenerateResult((Text("Hello"),), FinishReason("length"))
    assert await model.do_generate(OPTIONS) == expected
    assert collect(await streamed(model)) == expected


async def test_parts_are_given_and_added_up() -> None:
    model = ScriptedModel([PARTS, PARTS])
    assert await streamed(model) == PARTS
    assert await model.do_generate(OPTIONS) == GenerateResult((Text("Hello"),))


async def test_parts_may_be_their_json() -> None:
    script: list[ScriptedPart] = [
        {"type": "stream-start", "warnings": []},
        {"type": "finish", "finishReason": {"unified": "stop"}},
    ]
    assert await streamed(ScriptedModel([script])) == [StreamStart(), Finish(FinishReason("stop"))]


async def test_json_that_is_no_part_is_refused_with_its_place() -> None:
    with pytest.raises(ProtocolError, match="delta: TextDelta needs it"):
        await streamed(ScriptedModel([[{"type": "text-delta", "id": "0"}]]))


async def test_an_exception_is_raised_by_either_call() -> None:
    model = ScriptedModel([OverloadedError("one"), OverloadedError("two")])
    with pytest.raises(OverloadedError, match="one"):
        await model.do_generate(OPTIONS)
    with pytest.raises(OverloadedError, match="two"):
        await model.do_stream(OPTIONS)


@pytest.mark.parametrize("after", range(len(PARTS) + 1))
async def test_an_exception_in_a_list_is_raised_after_what_stands_before_it(after: int) -> None:
    model = ScriptedModel([[*PARTS[:after], OverloadedError("cut"), *PARTS[after:]]], repeat=True)
    seen: list[StreamPart] = []
    with pytest.raises(OverloadedError, match="cut"):  # noqa: PT012  # what came before it counts
        async for part in (await model.do_stream(OPTIONS)).stream:
            seen.append(part)
    assert seen == PARTS[:after]
    with pytest.raises(OverloadedError, match="cut"):
        await model.do_generate(OPTIONS)


async def test_an_error_part_is_given_and_not_raised() -> None:
    parts: list[StreamPart] = [StreamStart(), ErrorPart("e"), Finish(FinishReason("error"))]
    model = ScriptedModel([parts, parts])
    assert await streamed(model) == parts
    assert (await model.do_generate(OPTIONS)).finish_reason.unified == "error"


async def test_a_function_of_the_options_makes_any_reply() -> None:
    replies: list[Callable[[CallOptions], object]] = [
        lambda options: user_text(options.prompt).upper(),
        lambda options: ANSWER,
        lambda options: PARTS,
        lambda options: OverloadedError("busy"),
    ]
    model = ScriptedModel(replies)  # type: ignore[arg-type]
    assert (await model.do_generate(OPTIONS)).text == "HI"
    assert await model.do_generate(OPTIONS) is ANSWER
    assert await streamed(model) == PARTS
    with pytest.raises(OverloadedError, match="busy"):
        await model.do_generate(OPTIONS)


async def test_replies_come_in_their_order_whatever_the_call() -> None:
    model = ScriptedModel(["a", "b", "c"])
    assert (await model.do_generate(OPTIONS)).text == "a"
    assert collect(await streamed(model)).text == "b"
    assert (await model.do_generate(OPTIONS)).text == "c"


async def test_one_call_too_many_says_how_many_there_are() -> None:
    model = ScriptedModel(["a"])
    await model.do_generate(OPTIONS)
    with pytest.raises(AssertionError, match="got call 2, and its script has 1 replies"):
        await model.do_generate(OPTIONS)
    with pytest.raises(AssertionError, match="got call 3"):
        await model.do_stream(OPTIONS)


async def test_an_empty_script_has_no_reply_even_when_it_repeats() -> None:
    with pytest.raises(AssertionError, match="script has 0 replies"):
        await ScriptedModel([], repeat=True).do_generate(OPTIONS)


async def test_a_script_may_start_over() -> None:
    model = ScriptedModel(["a", "b"], repeat=True)
    assert [(await model.do_generate(OPTIONS)).text for _ in range(5)] == ["a", "b", "a", "b", "a"]


# -------------------------------------------------------------------------------------------------------------- pauses


async def test_a_pause_of_no_length_changes_nothing() -> None:
    model = ScriptedModel([[PARTS[0], Pause(0), *PARTS[1:]]], repeat=True, delay=0.0001)
    assert await streamed(model) == PARTS
    assert (await model.do_generate(OPTIONS)).text == "Hello"


async def test_a_held_stream_gives_its_parts_and_waits_until_it_is_closed() -> None:
    model = ScriptedModel([[*PARTS[:2], HOLD, *PARTS[2:]]])
    stream = (await model.do_stream(OPTIONS)).stream
    seen: list[StreamPart] = []
    waiting = anyio.Event()
    async with anyio.create_task_group() as tasks:

        async def reader() -> None:
            with pytest.raises(anyio.ClosedResourceError):  # noqa: PT012
                async for part in stream:
                    seen.append(part)
                    if len(seen) == 2:
                        waiting.set()

        tasks.start_soon(reader)
        await waiting.wait()
        await stream.aclose()
    assert seen == PARTS[:2]
    assert (model.calls[0].read, model.calls[0].closed, model.calls[0].ended) == (2, 1, False)


@pytest.mark.parametrize("call", ["do_generate", "do_stream"])
async def test_a_hold_ends_when_its_task_is_cancelled(call: str) -> None:
    model = ScriptedModel([[*PARTS[:2], HOLD]])
    with anyio.move_on_after(0.01) as scope:
        if call == "do_generate":
            await model.do_generate(OPTIONS)
        else:
            await streamed(model)
    assert scope.cancelled_caught
    assert model.calls[0].read == 2


# -------------------------------------------------------------------------------------------------------------- records


async def test_calls_are_remembered_with_their_kind_and_options() -> None:
    model = ScriptedModel(["a", "b"])
    other = CallOptions.from_text("you")
    await model.do_generate(OPTIONS)
    await streamed(model, other)
    assert [(call.kind, call.options) for call in model.calls] == [("generate", OPTIONS), ("stream", other)]


async def test_a_call_that_fails_is_remembered_too() -> None:
    model = ScriptedModel([OverloadedError("busy")])
    for _ in range(2):
        with pytest.raises((OverloadedError, AssertionError)):
            await model.do_generate(OPTIONS)
    assert len(model.calls) == 2


async def test_a_stream_that_was_read_out_has_ended_and_is_closed_once() -> None:
    model = ScriptedModel(["Hello"])
    await streamed(model)
    assert (model.calls[0].read, model.calls[0].closed, model.calls[0].ended) == (len(PARTS), 1, True)


async def test_a_stream_that_was_left_early_has_not_ended_and_is_closed_once() -> None:
    model = ScriptedModel(["Hello"])
    async with (await model.do_stream(OPTIONS)).stream as stream:
        await anext(stream)
    assert (model.calls[0].read, model.calls[0].closed, model.calls[0].ended) == (1, 1, False)


async def test_an_unread_stream_is_open_until_it_is_closed() -> None:
    model = ScriptedModel(["Hello"])
    stream = (await model.do_stream(OPTIONS)).stream
    assert (model.calls[0].read, model.calls[0].closed) == (0, 0)
    await stream.aclose()
    await stream.aclose()
    assert (model.calls[0].read, model.calls[0].closed) == (0, 1)


async def test_a_stream_that_failed_is_closed_and_has_not_ended() -> None:
    model = ScriptedModel([[*PARTS[:2], OverloadedError("cut")]])
    with pytest.raises(OverloadedError, match="cut"):
        await streamed(model)
    assert (model.calls[0].read, model.calls[0].closed, model.calls[0].ended) == (2, 1, False)


async def test_streams_at_once_are_remembered_apart() -> None:
    model = ScriptedModel(["a", "b"])
    async with (await model.do_stream(OPTIONS)).stream as one, (await model.do_stream(OPTIONS)).stream as other:
        await anext(one)
        await anext(other)
        await anext(other)
    assert [call.read for call in model.calls] == [1, 2]


async def test_its_streams_are_well_formed() -> None:
    check_stream(await streamed(ScriptedModel([ANSWER])))
    assert PARTS[1:4] == [TextStart("0"), TextDelta("0", "Hello"), TextEnd("0")]


def test_its_repr_names_it_and_shows_no_prompt() -> None:
    assert repr(ScriptedModel("secret")) == "ScriptedModel(scripted:scripted-1, 0 calls)"
