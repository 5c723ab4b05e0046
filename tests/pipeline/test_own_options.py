"""A member that asks the model in ways of its own: with options from scratch, in a task, twice, or after a denial."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from neurolink_mw.errors import PolicyDenied, ServerError
from neurolink_mw.pipeline import Use, wrap_model
from neurolink_mw.protocol import CallContext, CallOptions, GenerateResult, Kind, LanguageModel, StreamResult
from neurolink_mw.testing import ScriptedModel

from .builders import ASKED, Member, Retry, Watch, answer, parts, read, run

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("kind", ["generate", "stream"])

Ask = Callable[[LanguageModel, CallOptions, Kind], Awaitable[object]]


def asking(model: LanguageModel, options: CallOptions, kind: Kind) -> Awaitable[object]:
    return model.do_generate(options) if kind == "generate" else model.do_stream(options)


async def from_scratch(model: LanguageModel, options: CallOptions, kind: Kind) -> object:
    return await asking(model, CallOptions(options.prompt), kind)


async def with_a_context_of_its_own(model: LanguageModel, options: CallOptions, kind: Kind) -> object:
    return await asking(model, CallOptions(options.prompt, context=CallContext()), kind)


OWN: list[Ask] = [from_scratch, with_a_context_of_its_own]


def swallowing(ask: Ask) -> Member:
    """Answers by itself whatever comes."""

    async def generate(model: LanguageModel, options: CallOptions) -> GenerateResult:
        CallOptions  # noqa: B018  # what its own code names: it makes options from scratch
        with suppress(BaseException):
            await ask(model, options, "generate")
        return answer("haha")

    async def stream(model: LanguageModel, options: CallOptions) -> StreamResult:
        return StreamResult.of(await generate(model, options))

    return Member("swallows", wrap_generate=generate, wrap_stream=stream)


def denying() -> Member:
    async def deny(model: LanguageModel, options: CallOptions) -> GenerateResult:
        raise options.context.deny("no", "No.")

    return Member("denies", wrap_generate=deny, wrap_stream=deny)


@both
@pytest.mark.parametrize("ask", OWN)
async def test_a_denial_stands_though_it_was_swallowed_in_a_call_with_options_made_from_scratch(
    ask: Ask, kind: Kind
) -> None:
    watch = Watch()
    await run(wrap_model(ScriptedModel([]), [watch, swallowing(ask), denying()]), kind)
    assert watch.only.status == "denied"


def failing_after(ask: Ask) -> Member:
    async def generate(model: LanguageModel, options: CallOptions) -> GenerateResult:
        CallOptions  # noqa: B018
        await ask(model, options, "generate")
        raise ValueError

    async def stream(model: LanguageModel, options: CallOptions) -> StreamResult:
        await ask(model, options, "stream")
        raise ValueError

    return Member("fails", wrap_generate=generate, wrap_stream=stream)


@both
@pytest.mark.parametrize("ask", OWN)
async def test_skipping_asks_the_model_once_whatever_options_the_member_asked_with(ask: Ask, kind: Kind) -> None:
    model = ScriptedModel([answer("once")])
    wrapped = wrap_model(model, [Use(failing_after(ask), on_error="skip")])
    if kind == "generate":
        assert (await wrapped.do_generate(ASKED)).text == "once"
    else:
        assert [part.type for part in await read(wrapped)][-1] == "finish"
        assert model.calls[0].closed == 1
    assert len(model.calls) == 1


async def test_a_call_that_was_begun_in_a_task_of_its_own_counts_from_there(anyio_backend: str) -> None:
    if anyio_backend != "asyncio":
        pytest.skip("tasks that nobody waits for are asyncio's")
    left: list[asyncio.Task[GenerateResult]] = []

    async def generate(model: LanguageModel, options: CallOptions) -> GenerateResult:
        left.append(asyncio.ensure_future(model.do_generate(options)))
        raise ValueError("in the same moment")

    model = ScriptedModel([answer("once")])
    wrapped = wrap_model(model, [Use(Member("hurries", wrap_generate=generate), on_error="skip")])
    with pytest.raises(ValueError, match="in the same moment"):  # there is no answer yet, and it is not asked twice
        await wrapped.do_generate(ASKED)
    await left[0]
    assert len(model.calls) == 1


@both
async def test_the_model_is_not_asked_again_once_the_call_is_denied(kind: Kind) -> None:
    async def disguise(model: LanguageModel, options: CallOptions) -> GenerateResult:
        await model.do_generate(options)
        try:
            raise options.context.deny("no", "No.")
        except BaseException:
            raise ServerError("try again", status=500) from None

    watch, model = Watch(), ScriptedModel([answer()] * 3)
    await run(
        wrap_model(model, [watch, Retry(3), Member("disguises", wrap_generate=disguise, wrap_stream=disguise)]), kind
    )
    assert (len(model.calls), watch.only.status) == (1, "denied")


@both
async def test_what_callers_catch_does_not_lead_back_to_what_was_judged(kind: Kind) -> None:
    async def fail(model: LanguageModel, options: CallOptions) -> GenerateResult:
        raise ValueError("a secret text")

    guarded = Use(Member("guards", wrap_generate=fail, wrap_stream=fail), on_error="deny")
    with pytest.raises(PolicyDenied) as caught:
        await run(wrap_model(ScriptedModel([]), [guarded], denied="raise"), kind)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


async def test_a_stream_that_a_member_opened_and_did_not_return_is_closed_with_the_other() -> None:
    held: list[StreamResult] = []

    async def stream(model: LanguageModel, options: CallOptions) -> StreamResult:
        held.append(await model.do_stream(options))
        return await model.do_stream(options)

    model = ScriptedModel([parts("a"), parts("b")])
    wrapped = wrap_model(model, [Watch(), Member("opens two", wrap_stream=stream)])
    await read(wrapped)
    assert [call.closed for call in model.calls] == [1, 1]
