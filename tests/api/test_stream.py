"""`stream`: the same turn in parts."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest

from neurolink_mw import GenerateResult, Middleware, generate, stream, stream_sync, tool, wrap_model
from neurolink_mw.errors import ConfigError, RateLimitError, StreamInterruptedError, TurnError
from neurolink_mw.pipeline import Outcome
from neurolink_mw.protocol import (
    CallOptions,
    ErrorPart,
    Finish,
    FinishReason,
    LanguageModel,
    PartStream,
    StreamPart,
    StreamResult,
    StreamStart,
    Text,
    TextDelta,
    TextStart,
    ToolCall,
    ToolResult,
)
from neurolink_mw.roles import Observer, RegexTransform, ResponsePolicy, Verdict, View, allow, deny
from neurolink_mw.testing import HOLD, ScriptedModel, check_stream, wire
from neurolink_mw.testing.wire import openai

pytestmark = pytest.mark.anyio


@tool
async def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


CALL = GenerateResult((Text("Let me see. "), ToolCall("c1", "weather", '{"city": "Oslo"}')), FinishReason("tool-calls"))


def two_steps() -> ScriptedModel:
    return ScriptedModel([CALL, "It is sunny."])


async def test_parts_come_as_they_are_made_tools_included() -> None:
    async with stream(two_steps(), "Hi", tools=[weather]) as turn:
        parts = [part async for part in turn]
    check_stream(parts)
    assert [type(part) for part in parts if isinstance(part, ToolCall | ToolResult | Finish)] == [
        ToolCall,
        ToolResult,
        Finish,
    ]


async def test_text_comes_as_deltas_of_all_steps() -> None:
    async with stream(two_steps(), "Hi", tools=[weather]) as turn:
        assert [text async for text in turn.text_deltas()] == ["Let me see. ", "It is sunny."]


async def test_the_result_is_that_of_generate() -> None:
    generated = await generate(two_steps(), "Hi", tools=[weather])
    async with stream(two_steps(), "Hi", tools=[weather]) as turn:
        streamed = await turn.result()
    assert (streamed.text, streamed.steps, streamed.messages) == (generated.text, generated.steps, generated.messages)
    assert streamed.tools_used == generated.tools_used
    assert (await turn.result()).text == "It is sunny."


async def test_the_result_reads_what_was_not_read() -> None:
    async with stream(two_steps(), "Hi", tools=[weather]) as turn:
        async for _ in turn:
            break
        assert (await turn.result()).text == "It is sunny."


async def test_parts_come_once_however_often_they_are_asked_for() -> None:
    async with stream(ScriptedModel("Hello"), "Hi") as turn:
        async for part in turn:
            if isinstance(part, TextDelta):
                break
        assert [part.type async for part in turn] == ["text-end", "finish"]


async def test_an_early_failure_is_raised_on_entering() -> None:
    with pytest.raises(RateLimitError):
        async with stream(ScriptedModel([RateLimitError("slow")]), "Hi"):
            pytest.fail("nothing was opened")


CUT: list[StreamPart | BaseException] = [
    StreamStart(),
    TextStart("0"),
    TextDelta("0", "Hel"),
    StreamInterruptedError("cut"),
]


async def test_a_later_failure_is_raised_after_what_came_before() -> None:
    seen: list[str] = []
    async with stream(ScriptedModel([CALL, CUT]), "Hi", tools=[weather]) as turn:
        with pytest.raises(TurnError) as caught:
            await _read_into(seen, turn.text_deltas())
    assert seen == ["Let me see. ", "Hel"]
    assert isinstance(caught.value.__cause__, StreamInterruptedError)
    assert len(caught.value.steps) == 1


async def _read_into(seen: list[str], texts: AsyncIterator[str]) -> None:
    async for text in texts:
        seen.append(text)


async def test_a_failed_stream_has_no_result() -> None:
    async with stream(ScriptedModel([CUT]), "Hi") as turn:
        with pytest.raises(StreamInterruptedError):
            await turn.result()
        with pytest.raises(ConfigError, match="has no result"):
            await turn.result()


class Outcomes(Observer):
    def __init__(self) -> None:
        super().__init__()
        self.all: list[Outcome] = []

    def on_outcome(self, outcome: Outcome) -> None:
        self.all.append(outcome)


async def test_a_failure_is_an_outcome_and_no_leaving() -> None:
    failing: list[StreamPart] = [
        StreamStart(),
        TextStart("0"),
        TextDelta("0", "x"),
        ErrorPart(StreamInterruptedError("cut")),
    ]
    outcomes = Outcomes()
    with pytest.raises(StreamInterruptedError):
        async with stream(ScriptedModel([failing]), "Hi", middlewares=[outcomes]) as turn:
            await turn.result()
    assert [one.status for one in outcomes.all] == ["error"]


async def test_leaving_the_block_stops_the_turn() -> None:
    model, outcomes = ScriptedModel([CALL]), Outcomes()
    async with stream(model, "Hi", tools=[weather], middlewares=[outcomes]) as turn:
        async for part in turn:
            if isinstance(part, ToolCall):
                break
    assert len(model.calls) == 1
    assert [one.status for one in outcomes.all] == ["abandoned"]
    with pytest.raises(ConfigError, match="left before its end"):
        await turn.result()
    with pytest.raises(ConfigError, match="within its block"):
        aiter(turn)


async def test_the_result_stays_when_the_block_is_left() -> None:
    async with stream(ScriptedModel("Hello"), "Hi") as turn:
        async for _ in turn:
            pass
    assert (await turn.result()).text == "Hello"


async def test_cancelling_the_reader_stops_the_turn() -> None:
    model = ScriptedModel([[StreamStart(), TextStart("0"), TextDelta("0", "x"), HOLD]])
    begun = anyio.Event()

    async def read() -> None:
        async with stream(model, "Hi") as turn:
            async for _ in turn.text_deltas():
                begun.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await begun.wait()
        tasks.cancel_scope.cancel()
    assert model.calls[0].closed == 1


async def test_a_turn_is_read_within_its_block_and_entered_once() -> None:
    turn = stream(ScriptedModel("ok"), "Hi")
    with pytest.raises(ConfigError, match="within its block"):
        aiter(turn)
    async with turn:
        with pytest.raises(ConfigError, match="entered once"):
            await turn.__aenter__()


class Shout(Middleware):
    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        async def loud(parts: PartStream) -> AsyncIterator[StreamPart]:
            async for part in parts:
                yield part.replace(delta=part.delta.upper()) if isinstance(part, TextDelta) else part

        return (await model.do_stream(options)).through(loud)


async def test_middlewares_around_the_turn_see_its_parts() -> None:
    async with stream(two_steps(), "Hi", tools=[weather], turn_middlewares=[Shout()]) as turn:
        result = await turn.result()
    assert result.text == "IT IS SUNNY."
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "assistant"]


class NoSun(ResponsePolicy):
    def check(self, view: View) -> Verdict:
        return deny("no-sun", "Not that.") if "sunny" in view.text else allow()


async def test_a_refusal_around_the_turn_leaves_no_forbidden_text_anywhere() -> None:
    model = two_steps()
    async with stream(model, "Hi", tools=[weather], turn_middlewares=[NoSun()], middlewares=[NoSun()]) as turn:
        parts = [part async for part in turn]
        result = await turn.result()
    assert "It is" not in "".join(part.delta for part in parts if isinstance(part, TextDelta))
    assert (result.text, result.finish_reason.unified) == ("Not that.", "content-filter")
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "assistant"]
    assert all(step.text == "" for step in result.steps)


async def test_what_is_rewritten_at_the_steps_is_rewritten_in_the_stream() -> None:
    async with stream(two_steps(), "Hi", tools=[weather], middlewares=[RegexTransform("sunny", "rainy")]) as turn:
        assert "".join([text async for text in turn.text_deltas()]) == "Let me see. It is rainy."
        assert (await turn.result()).text == "It is rainy."


async def test_output_is_read_from_the_stream() -> None:
    async with stream(ScriptedModel('{"value": [1, 2]}'), "Hi", output=list[int]) as turn:
        assert (await turn.result()).output == [1, 2]


async def test_a_model_by_name_is_opened_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    replies = [openai.stream_tool_call("weather", {"city": "Oslo"}), openai.stream_text(["It is ", "sunny."])]
    with wire.openai_server(replies) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        async with stream("openai-compatible:gpt-5", "Hi", tools=[weather]) as turn:
            assert (await turn.result()).text == "It is sunny."
        assert all(exchange.json["stream"] for exchange in server.journal)


async def test_five_hundred_turns_that_are_left_leave_nothing_open() -> None:
    model = ScriptedModel([CALL] * 500)
    chained = wrap_model(model, [Outcomes()])
    for _ in range(500):
        async with stream(chained, "Hi", tools=[weather]) as turn:
            async for part in turn:
                if isinstance(part, TextDelta):
                    break
    assert [call.closed for call in model.calls] == [1] * 500


# -- scripts


def test_scripts_iterate_without_an_event_loop() -> None:
    with stream_sync(two_steps(), "Hi", tools=[weather]) as turn:
        assert list(turn.text_deltas()) == ["Let me see. ", "It is sunny."]
        assert turn.result().tools_used == ("weather",)


def test_the_sync_form_raises_what_failed_after_what_came_before() -> None:
    seen: list[str] = []
    with stream_sync(ScriptedModel([CUT]), "Hi") as turn:
        texts = turn.text_deltas()
        seen.append(next(texts))
        with pytest.raises(StreamInterruptedError):
            next(texts)
    assert seen == ["Hel"]


def test_the_result_stays_for_scripts_too() -> None:
    with stream_sync(ScriptedModel("Hello"), "Hi") as turn:
        assert list(turn.text_deltas()) == ["Hello"]
    assert turn.result().text == "Hello"


def test_the_sync_form_can_be_left() -> None:
    model = ScriptedModel([CALL])
    with stream_sync(model, "Hi", tools=[weather]) as turn:
        for part in turn:
            if isinstance(part, ToolCall):
                break
    assert (len(model.calls), model.calls[0].closed) == (1, 1)


async def test_the_sync_form_is_refused_where_a_loop_runs() -> None:
    with pytest.raises(ConfigError, match="async with stream"):
        stream_sync(ScriptedModel("ok"), "Hi")


def test_the_sync_form_is_read_within_its_block() -> None:
    with pytest.raises(ConfigError, match="within its block"):
        next(iter(stream_sync(ScriptedModel("ok"), "Hi")))
