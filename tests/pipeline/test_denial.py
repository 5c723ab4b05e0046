"""A denied call is refused, whoever stands around the policy: generate and stream alike, and at the root only."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from neurolink_mw.errors import ConfigError, PolicyDenied
from neurolink_mw.pipeline import Middleware, wrap_model
from neurolink_mw.protocol import CallOptions, GenerateResult, Kind, LanguageModel, StreamResult
from neurolink_mw.testing import ScriptedModel

from .builders import (
    ASKED,
    COST,
    NO_TOKENS,
    Hook,
    Member,
    Retry,
    Watch,
    answer,
    answer_and_deny,
    chain,
    hooked,
    policy,
    run,
    swallow,
    text_of,
)

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])


async def deny_on_the_way_in(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
    raise options.context.deny("no", "I cannot.", by="policy")


# -- where it may be said


@both
@pytest.mark.parametrize(
    "member", [Member("policy", transform_params=deny_on_the_way_in), policy()], ids=["in", "wrap"]
)
async def test_a_call_is_refused_before_the_model_is_asked(kind: Kind, member: Member) -> None:
    inside = ScriptedModel([])
    assert await text_of(wrap_model(inside, [member]), kind) == "I cannot."
    assert inside.calls == []


async def test_a_refusal_says_what_it_is() -> None:
    result = await wrap_model(ScriptedModel([]), [policy()]).do_generate(ASKED)
    assert (result.finish_reason.unified, result.finish_reason.raw) == ("content-filter", "no")
    assert result.usage == NO_TOKENS
    assert result.provider_metadata == {"neurolink_mw": {"denied": "no", "by": "policy"}}


async def test_a_call_that_is_denied_after_the_model_answered_says_what_was_billed() -> None:
    result = await wrap_model(ScriptedModel([answer("secret")]), [policy(answer_and_deny)]).do_generate(ASKED)
    assert (result.text, result.usage) == ("I cannot.", COST)


@both
async def test_a_denial_need_not_be_raised(kind: Kind) -> None:
    async def note(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        options.context.deny("no", "I cannot.")
        return options

    assert await text_of(wrap_model(ScriptedModel(["secret"]), [Member(transform_params=note)]), kind) == "I cannot."


@both
async def test_of_two_denials_the_one_that_is_raised_is_told(kind: Kind) -> None:
    async def twice(model: LanguageModel, options: CallOptions) -> GenerateResult:
        options.context.deny("first", "one")
        raise options.context.deny("second", "two")

    assert await text_of(wrap_model(ScriptedModel([]), [hooked(twice)]), kind) == "two"


@both
async def test_a_denial_wins_in_a_group_beside_other_errors(kind: Kind) -> None:
    async def group(model: LanguageModel, options: CallOptions) -> GenerateResult:
        inner = BaseExceptionGroup("inner", [ValueError(), options.context.deny("no", "I cannot.")])
        raise BaseExceptionGroup("outer", [KeyError(), inner])

    assert await text_of(wrap_model(ScriptedModel([]), [hooked(group)]), kind) == "I cannot."


@both
async def test_policy_denied_that_a_member_raises_by_itself_is_a_denial(kind: Kind) -> None:
    class Refuses(Middleware):
        async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
            raise PolicyDenied("I cannot.", code="no")

    assert await text_of(wrap_model(ScriptedModel([]), [Refuses()]), kind) == "I cannot."


# -- what nobody can do about it


async def swallow_in_finally(model: LanguageModel, options: CallOptions) -> GenerateResult:
    try:
        await model.do_generate(options)
    finally:
        return answer("swallowed")  # noqa: B012


async def swallow_by_suppressing(model: LanguageModel, options: CallOptions) -> GenerateResult:
    with suppress(BaseException):
        await model.do_generate(options)
    return answer("swallowed")


async def swallow_in_a_task_group(model: LanguageModel, options: CallOptions) -> GenerateResult:
    async def ask() -> None:
        await model.do_generate(options)

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
    except BaseException:
        pass
    return answer("swallowed")


async def leave_in_a_task_group(model: LanguageModel, options: CallOptions) -> GenerateResult:
    async def ask() -> None:
        await model.do_generate(options)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        tasks.start_soon(anyio.sleep_forever)
    return answer("swallowed")


async def ask_again(model: LanguageModel, options: CallOptions) -> GenerateResult:
    return await model.do_generate(options)


async def swallow_in_a_thread(model: LanguageModel, options: CallOptions) -> GenerateResult:
    def ask() -> GenerateResult:
        try:
            return anyio.from_thread.run(ask_again, model, options)
        except BaseException:
            return answer("swallowed")

    return await anyio.to_thread.run_sync(ask)


async def leave_a_thread(model: LanguageModel, options: CallOptions) -> GenerateResult:
    return await anyio.to_thread.run_sync(lambda: anyio.from_thread.run(ask_again, model, options))


SWALLOWERS: list[Hook] = [
    swallow,
    swallow_in_finally,
    swallow_by_suppressing,
    swallow_in_a_task_group,
    leave_in_a_task_group,
    swallow_in_a_thread,
    leave_a_thread,
]
swallowers = pytest.mark.parametrize("swallower", SWALLOWERS, ids=lambda hook: hook.__name__)


@swallowers
async def test_whoever_swallows_a_denial_does_not_make_it_an_answer(swallower: Hook) -> None:
    watch = Watch()
    model = chain(ScriptedModel("secret"), [Member("outer", wrap_generate=swallower), policy()], watch=watch)
    result = await model.do_generate(ASKED)
    assert (result.text, watch.only.status) == ("I cannot.", "denied")


@swallowers
async def test_nor_a_streamed_one(swallower: Hook) -> None:
    async def streamed(model: LanguageModel, options: CallOptions) -> StreamResult:
        return StreamResult.of(await swallower(model, options))

    watch = Watch()
    model = chain(ScriptedModel("secret"), [Member("outer", wrap_stream=streamed), policy()], watch=watch)
    assert await text_of(model, "stream") == "I cannot."
    assert watch.only.status == "denied"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("streams", [False, True])
async def test_nor_do_the_ways_in_which_asyncio_swallows(streams: bool) -> None:
    async def gather(model: LanguageModel, options: CallOptions) -> GenerateResult:
        await asyncio.gather(model.do_generate(options), return_exceptions=True)
        return answer("swallowed")

    async def wait(model: LanguageModel, options: CallOptions) -> GenerateResult:
        task = asyncio.ensure_future(model.do_generate(options))
        await asyncio.wait([task])
        task.exception()  # asked for, and not raised
        return answer("swallowed")

    for swallower in (gather, wait):

        async def streamed(model: LanguageModel, options: CallOptions, hook: Hook = swallower) -> StreamResult:
            return StreamResult.of(await hook(model, options))

        outer = Member("outer", wrap_generate=swallower, wrap_stream=streamed)
        assert await text_of(
            chain(ScriptedModel("secret"), [outer, policy()]), "stream" if streams else "generate"
        ) == ("I cannot.")


@both
async def test_a_retry_does_not_retry_a_denial(kind: Kind) -> None:
    asked: list[str] = []

    async def count(model: LanguageModel, options: CallOptions) -> GenerateResult:
        asked.append("asked")
        raise options.context.deny("no", "I cannot.")

    assert await text_of(chain(ScriptedModel([]), [Retry(4), policy(count)]), kind) == "I cannot."
    assert asked == ["asked"]


@both
async def test_a_member_that_fails_after_it_swallowed_a_denial_does_not_hide_it(kind: Kind) -> None:
    async def hide(model: LanguageModel, options: CallOptions) -> GenerateResult:
        try:
            return await model.do_generate(options)
        except BaseException:
            raise ZeroDivisionError from None

    assert await text_of(chain(ScriptedModel([]), [hooked(hide, id="outer"), policy()]), kind) == "I cannot."


# -- who comes before it


@both
async def test_a_cancellation_wins_over_a_denial_that_was_swallowed(kind: Kind) -> None:
    async def wait(model: LanguageModel, options: CallOptions) -> GenerateResult:
        options.context.deny("no", "I cannot.")
        scope.cancel()
        await anyio.sleep_forever()
        raise AssertionError

    watch = Watch()
    with anyio.CancelScope() as scope:
        await run(chain(ScriptedModel([]), [hooked(wait)], watch=watch), kind)
    assert scope.cancelled_caught
    assert watch.only.status == "cancelled"


@both
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
async def test_what_stops_the_process_passes(kind: Kind, stop: type[BaseException]) -> None:
    async def interrupt(model: LanguageModel, options: CallOptions) -> GenerateResult:
        options.context.deny("no", "I cannot.")
        raise stop

    watch = Watch()
    with pytest.raises(stop):
        await run(chain(ScriptedModel([]), [hooked(interrupt)], watch=watch), kind)
    assert watch.only.status == "error"


@both
async def test_what_stops_the_process_passes_in_a_group_beside_a_denial_too(kind: Kind) -> None:
    async def interrupt(model: LanguageModel, options: CallOptions) -> GenerateResult:
        raise BaseExceptionGroup("both", [options.context.deny("no", "I cannot."), KeyboardInterrupt(), ValueError()])

    with pytest.raises(BaseExceptionGroup) as raised:
        await run(chain(ScriptedModel([]), [hooked(interrupt)], watch=Watch()), kind)
    assert [type(error) for error in raised.value.exceptions] == [KeyboardInterrupt, ValueError]


@both
async def test_a_cancellation_in_a_group_beside_a_denial_is_a_cancellation(kind: Kind) -> None:
    async def group(model: LanguageModel, options: CallOptions) -> GenerateResult:
        scope.cancel()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class() as error:
            raise BaseExceptionGroup("both", [error, options.context.deny("no", "I cannot.")]) from None
        raise AssertionError

    watch = Watch()
    with anyio.CancelScope() as scope:
        await run(chain(ScriptedModel([]), [hooked(group)], watch=watch), kind)
    assert scope.cancelled_caught
    assert watch.only.status == "cancelled"


# -- denied="raise"


@both
async def test_callers_may_ask_for_an_exception_instead(kind: Kind) -> None:
    watch = Watch()
    with pytest.raises(PolicyDenied, match=r"^I cannot\.$") as raised:
        await run(wrap_model(ScriptedModel([]), [watch, policy()], denied="raise"), kind)
    assert (raised.value.code, raised.value.by) == ("no", "policy")
    assert (watch.only.status, watch.only.finish_reason and watch.only.finish_reason.unified) == (
        "denied",
        "content-filter",
    )


async def test_only_two_ways_are_known() -> None:
    with pytest.raises(ConfigError, match='denied is "refuse" or "raise"'):
        wrap_model(ScriptedModel([]), [policy()], denied="ignore")  # type: ignore[arg-type]
