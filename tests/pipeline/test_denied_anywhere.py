"""Whatever stands around a policy, a denied call is a refusal: random chains, in both calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neurolink_mw.pipeline import Member as AnyMember
from neurolink_mw.pipeline import Use, wrap_model
from neurolink_mw.protocol import (
    CallOptions,
    Finish,
    GenerateResult,
    LanguageModel,
    PartStream,
    StreamPart,
    StreamResult,
    check_grammar,
)
from neurolink_mw.testing import ScriptedModel

from .builders import ASKED, Layer, Member, Retry, Watch, answer, hooked, parts, read, said

SECRET = parts("s", "e", "c", "r", "e", "t")


async def swallow(model: LanguageModel, options: CallOptions) -> GenerateResult:
    with suppress(BaseException):
        return await model.do_generate(options)
    return answer("swallowed")


async def swallow_stream(model: LanguageModel, options: CallOptions) -> StreamResult:
    async def play(stream: PartStream) -> AsyncIterator[StreamPart]:
        try:
            async for part in stream:
                yield part
        except Exception:
            pass
        except BaseException as error:
            if isinstance(error, GeneratorExit):
                raise

    try:
        return (await model.do_stream(options)).through(play)
    except BaseException:
        return StreamResult.of(answer("swallowed"))


async def fall_back(model: LanguageModel, options: CallOptions) -> GenerateResult:
    try:
        return await model.do_generate(options)
    except BaseException:
        return await model.do_generate(options)


async def fall_back_stream(model: LanguageModel, options: CallOptions) -> StreamResult:
    try:
        result = await model.do_stream(options)
        return StreamResult.of_parts([part async for part in result.stream])
    except BaseException:
        return StreamResult.of(answer("swallowed"))


async def fail(model: LanguageModel, options: CallOptions) -> GenerateResult:
    await model.do_generate(options)
    raise ZeroDivisionError


async def fail_stream(stream: PartStream) -> AsyncIterator[StreamPart]:
    yield await anext(stream.__aiter__())
    raise ZeroDivisionError


async def failing_stream(model: LanguageModel, options: CallOptions) -> StreamResult:
    return (await model.do_stream(options)).through(fail_stream)


MEMBERS: dict[str, Callable[[str], AnyMember | Use]] = {
    "layer": Layer,
    "retry": lambda id: Retry(2, id),
    "swallow": lambda id: hooked(swallow, swallow_stream, id),
    "fall back": lambda id: hooked(fall_back, fall_back_stream, id),
    "skipped": lambda id: Use(hooked(fail, failing_stream, id), on_error="skip"),
    "skipped swallow": lambda id: Use(hooked(swallow, swallow_stream, id), on_error="skip"),
    "limited": lambda id: Use(Layer(id), timeout=60),
    "limited fall back": lambda id: Use(hooked(fall_back, fall_back_stream, id), on_error="deny", timeout=60),
}


def policy(position: int) -> Member:
    """Denies at this part of a stream, and a generated answer once it is there; -1: at once."""

    async def judge(model: LanguageModel, options: CallOptions) -> GenerateResult:
        if position >= 0:
            await model.do_generate(options)
        raise options.context.deny("no", "I cannot.")

    async def judge_stream(model: LanguageModel, options: CallOptions) -> StreamResult:
        async def play(stream: PartStream) -> AsyncIterator[StreamPart]:
            index = 0
            async for part in stream:
                if index == position:
                    raise options.context.deny("no", "I cannot.")
                yield part
                index += 1

        if position < 0:
            raise options.context.deny("no", "I cannot.")
        return (await model.do_stream(options)).through(play)

    return hooked(judge, judge_stream, "policy")


def build(inside: ScriptedModel, chains: list[list[str]], position: int, watch: Watch) -> LanguageModel:
    """Chains around chains, the policy innermost."""
    model: LanguageModel = wrap_model(inside, [policy(position)])
    for level, names in enumerate(chains):
        model = wrap_model(model, [MEMBERS[name](f"m{level}-{index}") for index, name in enumerate(names)])
    return wrap_model(model, [watch])


chains = st.lists(st.lists(st.sampled_from(sorted(MEMBERS)), min_size=1, max_size=3), max_size=3)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(max_examples=150, deadline=None)
@given(chains=chains, position=st.integers(-1, len(SECRET) - 1))
def test_a_denied_call_is_a_refusal(backend: str, chains: list[list[str]], position: int) -> None:
    async def play() -> None:
        watch, inside = Watch(), ScriptedModel([SECRET], repeat=True)
        model = build(inside, chains, position, watch)

        result = await model.do_generate(ASKED)
        assert (result.text, result.finish_reason.unified) == ("I cannot.", "content-filter")
        assert [outcome.status for outcome in watch.outcomes] == ["denied"]

        inside.calls.clear()
        seen = await read(model)
        check_grammar(seen)
        finish = seen[-1]
        assert isinstance(finish, Finish)
        assert finish.finish_reason.unified == "content-filter"
        assert "secret"[: max(0, position - 2)].startswith(said(seen).removesuffix("I cannot."))
        assert said(seen).endswith("I cannot.")
        assert [outcome.status for outcome in watch.outcomes] == ["denied", "denied"]
        assert [call.closed for call in inside.calls if call.kind == "stream"] == [1] * len(inside.calls)

    anyio.run(play, backend=backend)
