"""The checks: good models pass, and each broken promise is caught with advice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import pytest
import trio.testing

from neurolink_mw.errors import OverloadedError, ProviderError, StreamInterruptedError
from neurolink_mw.protocol import (
    INTERRUPTED,
    CallOptions,
    ErrorPart,
    Finish,
    FinishReason,
    GenerateResult,
    PartStream,
    Reasoning,
    StreamPart,
    StreamResult,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    parts_of,
    primed,
)
from neurolink_mw.testing import HOLD, ScriptedModel, check_model, check_stream

pytestmark = pytest.mark.anyio

OPTIONS = CallOptions.from_text("hi")
ANSWER = GenerateResult(
    (Reasoning("hm"), Text("Hello"), ToolCall("c", "t", "{}")), FinishReason("tool-calls"), provider_metadata={"p": {}}
)
CUT: list[StreamPart] = [
    StreamStart(),
    *(TextStart("0"), TextDelta("0", "He"), TextEnd("0")),
    ErrorPart(StreamInterruptedError("cut", provider="p")),
    Finish(INTERRUPTED),
]


class Model:
    """A model that keeps every promise. Each test breaks one."""

    provider, model_id = "example", "good"

    def __init__(self, answer: GenerateResult = ANSWER) -> None:
        self.answer = answer
        self.open = 0

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        return self.answer

    async def do_stream(self, options: CallOptions) -> StreamResult:
        return self.streaming(list(parts_of(self.answer)))

    def streaming(self, parts: Sequence[StreamPart]) -> StreamResult:
        async def source() -> AsyncIterator[StreamPart]:
            for part in parts:
                yield part

        async def close() -> None:
            self.open -= 1

        self.open += 1
        return StreamResult(PartStream(source(), close=close))


class Failing(Model):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        raise self._error

    async def do_stream(self, options: CallOptions) -> StreamResult:
        raise self._error


async def caught(model: Any, **others: Any) -> str:
    with pytest.raises(AssertionError) as error:
        await check_model(model, **others)
    return str(error.value)


# -------------------------------------------------------------------------------------------------------- what passes


async def test_a_good_model_passes_and_nothing_is_left_open() -> None:
    model = Model()
    await check_model(model)
    assert model.open == 0


async def test_a_good_adapter_passes() -> None:
    await check_model(
        Model(), failing=Failing(OverloadedError("busy", provider="p")), interrupted=ScriptedModel([CUT], repeat=True)
    )


@pytest.mark.parametrize("reply", ["", "Hello", ANSWER], ids=["empty", "text", "everything"])
async def test_a_scripted_model_passes(reply: str | GenerateResult) -> None:
    await check_model(ScriptedModel([reply], repeat=True))


async def test_a_primed_adapter_passes_where_the_provider_fails_early() -> None:
    class Primed(Failing):
        async def do_stream(self, options: CallOptions) -> StreamResult:
            return await primed(self.streaming([StreamStart(), ErrorPart(self._error), Finish(FinishReason("error"))]))

    failing = Primed(OverloadedError("busy", provider="p"))
    await check_model(Model(), failing=failing)
    assert failing.open == 0


async def test_the_given_options_are_used() -> None:
    model = ScriptedModel(["Hello"], repeat=True)
    await check_model(model, options=OPTIONS)
    assert {call.options for call in model.calls} == {OPTIONS}


async def test_a_model_is_called_no_more_often_than_it_says() -> None:
    await check_model(ScriptedModel(["Hello"] * 8))


def test_a_well_formed_stream_passes() -> None:
    check_stream(parts_of(ANSWER))
    check_stream(CUT)


# -------------------------------------------------------------------------------------------------- what is caught


def test_a_stream_that_is_not_well_formed_is_caught_with_the_place() -> None:
    with pytest.raises(AssertionError, match=r"parts\[1\]: text-delta for '0', and no text block of that id is open"):
        check_stream([StreamStart(), TextDelta("0", "a"), Finish(FinishReason("stop"))])


@pytest.mark.parametrize(("name", "wrong"), [("provider", ""), ("model_id", None)])
async def test_a_model_without_a_name_is_caught(name: str, wrong: object) -> None:
    model = Model()
    setattr(model, name, wrong)
    assert await caught(model) == f"model.{name} is a non-empty string, not {wrong!r}"


async def test_an_answer_of_another_type_is_caught() -> None:
    class Texting(Model):
        async def do_generate(self, options: CallOptions) -> GenerateResult:
            return "Hello"  # type: ignore[return-value]

    assert await caught(Texting()) == "do_generate returns a GenerateResult, not str"


async def test_a_stream_of_another_type_is_caught() -> None:
    class Bare(Model):
        async def do_stream(self, options: CallOptions) -> StreamResult:
            return PartStream.of(parts_of(ANSWER))  # type: ignore[return-value]

    assert await caught(Bare()) == "do_stream returns a StreamResult, not PartStream"


async def test_a_bare_generator_in_a_stream_result_is_caught() -> None:
    class Generating(Model):
        async def do_stream(self, options: CallOptions) -> StreamResult:
            async def source() -> AsyncIterator[StreamPart]:
                yield StreamStart()

            return StreamResult(source())  # type: ignore[arg-type]

    assert "wrap it as PartStream(source, close=...)" in await caught(Generating())


async def test_a_stream_that_breaks_the_grammar_is_caught() -> None:
    class Endless(Model):
        async def do_stream(self, options: CallOptions) -> StreamResult:
            return self.streaming(list(parts_of(self.answer))[:-1])

    assert "the stream ended without a finish part" in await caught(Endless())


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ((Reasoning("hm"), Text("Bye"), ToolCall("c", "t", "{}")), "different text"),
        ((Reasoning("no"), Text("Hello"), ToolCall("c", "t", "{}")), "different reasoning"),
        ((Reasoning("hm"), Text("Hello"), ToolCall("c", "t", "[]")), "different tool calls"),
        ((Reasoning("hm"), Text("Hello")), "different tool calls"),
    ],
)
async def test_a_stream_that_says_something_else_is_caught(other: tuple[Any, ...], what: str) -> None:
    class Forked(Model):
        async def do_stream(self, options: CallOptions) -> StreamResult:
            return StreamResult.of(self.answer.replace(content=other))

    assert await caught(Forked()) == f"do_generate and do_stream give {what} for one request"


async def test_a_stream_that_ends_for_another_reason_is_caught() -> None:
    class Stopping(Model):
        async def do_stream(self, options: CallOptions) -> StreamResult:
            return StreamResult.of(self.answer.replace(finish_reason=FinishReason("length")))

    assert await caught(Stopping()) == "the finish reason is 'tool-calls' generated and 'length' streamed"


async def test_a_model_that_changes_its_options_is_caught() -> None:
    class Meddling(Model):
        async def do_generate(self, options: CallOptions) -> GenerateResult:
            assert isinstance(options.headers, dict)
            options.headers["x-mine"] = "1"
            return self.answer

    advice = await caught(Meddling(), options=OPTIONS.replace(headers={}))
    assert advice == "the model changed the options it was given: copy them with options.replace(...)"


async def test_a_model_that_keeps_the_state_of_a_stream_on_itself_is_caught() -> None:
    class Shared(Model):
        current = 0

        async def do_stream(self, options: CallOptions) -> StreamResult:
            self.current += 1
            return StreamResult(PartStream(self._parts(self.current)))

        async def _parts(self, mine: int) -> AsyncIterator[StreamPart]:
            for part in parts_of(self.answer):
                text = "mixed" if mine != self.current else None
                yield part.replace(delta=text) if text and isinstance(part, TextDelta) else part

    assert await caught(Shared()) == "two streams at once mix their parts: keep state per call"


async def test_a_model_whose_streams_take_parts_from_each_other_is_caught() -> None:
    class Sharing(Model):
        pending: list[StreamPart]

        async def do_stream(self, options: CallOptions) -> StreamResult:
            self.pending = list(parts_of(self.answer))
            return StreamResult(PartStream(self._parts()))

        async def _parts(self) -> AsyncIterator[StreamPart]:
            while self.pending:
                yield self.pending.pop(0)

    assert await caught(Sharing()) == "two streams at once mix their parts: keep state per call"


async def test_an_adapter_that_hides_an_early_failure_in_its_stream_is_caught_and_its_stream_closed() -> None:
    class Quiet(Failing):
        async def do_stream(self, options: CallOptions) -> StreamResult:
            return self.streaming([StreamStart(), ErrorPart(self._error), Finish(FinishReason("error"))])

    failing = Quiet(OverloadedError("busy", provider="p"))
    assert "do_stream raised nothing" in await caught(Model(), failing=failing)
    assert failing.open == 0


async def test_an_adapter_that_answers_although_the_provider_failed_is_caught() -> None:
    advice = await caught(Model(), failing=Model())
    assert advice.startswith("do_generate raised nothing: what fails before the first content is raised from the call")


async def test_an_adapter_that_lets_a_foreign_exception_through_is_caught() -> None:
    advice = await caught(Model(), failing=Failing(KeyError("choices")))
    assert advice == "do_generate raised KeyError: what a provider does wrong is raised as a ProviderError"


async def test_an_error_that_does_not_say_whose_it_is_is_caught() -> None:
    advice = await caught(Model(), failing=Failing(ProviderError("oops")))
    assert advice == "do_generate raised a ProviderError that does not say which provider failed"


async def test_an_adapter_that_ends_a_cut_stream_without_an_error_is_caught() -> None:
    advice = await caught(Model(), interrupted=Model(GenerateResult((Text("He"),))))
    assert advice == "a cut stream says so in an error part"


async def test_an_adapter_that_ends_a_cut_stream_with_another_reason_is_caught() -> None:
    parts = [*CUT[:-1], Finish(FinishReason("error", "end_turn"))]
    advice = await caught(Model(), interrupted=ScriptedModel([parts], repeat=True))
    assert "ends with finish reason 'error', raw 'interrupted'" in advice


# ------------------------------------------------------------------------------------------------ what hangs is caught


# The clock jumps to the next deadline, so that patience costs no time.
jumping_clock = pytest.mark.parametrize(
    "anyio_backend", [pytest.param(("trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}), id="trio")]
)


@jumping_clock
async def test_a_close_that_hangs_is_caught() -> None:
    class Clinging(Model):
        async def do_stream(self, options: CallOptions) -> StreamResult:
            ended: list[bool] = []

            async def source() -> AsyncIterator[StreamPart]:
                for part in parts_of(self.answer):
                    yield part
                ended.append(True)

            async def close() -> None:
                if not ended:
                    await anyio.Event().wait()

            return StreamResult(PartStream(source(), close=close))

    assert (await caught(Clinging())).startswith("closing a stream after 0 reads hangs")


@jumping_clock
async def test_a_read_that_hangs_is_caught() -> None:
    class Stalling(ScriptedModel):
        async def do_stream(self, options: CallOptions) -> StreamResult:
            if len(self.calls) > 2:
                self._replies[0] = [StreamStart(), HOLD]
            return await super().do_stream(options)

    assert await caught(Stalling(["Hello"], repeat=True)) == "a read of a stream hangs"
