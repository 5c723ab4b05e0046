"""What a call cost and who answered it: attempts, model calls, usage billed and claimed, the request's ledger."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest

from neurolink_mw.errors import RateLimitError
from neurolink_mw.pipeline import Middleware, wrap_model
from neurolink_mw.protocol import (
    Attempt,
    CallContext,
    CallOptions,
    GenerateResult,
    InputTokens,
    Kind,
    LanguageModel,
    OutputTokens,
    PartStream,
    StreamPart,
    StreamResult,
    TextDelta,
    Usage,
    primed,
    user,
)
from neurolink_mw.testing import ScriptedModel

from .builders import (
    ASKED,
    COST,
    NO_TOKENS,
    Cached,
    Layer,
    Member,
    Retry,
    Watch,
    answer,
    chain,
    parts,
    read,
    run,
    usage,
)

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])


class Broken(Exception):
    pass


# -- attempts


@both
async def test_each_call_of_the_model_is_an_attempt_and_all_are_billed(kind: Kind) -> None:
    class Twice(Middleware):
        async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
            await model.do_generate(options)
            return await model.do_generate(options)

        async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
            await read(model, options)
            return await model.do_stream(options)

    watch = Watch()
    await run(
        chain(ScriptedModel([answer(cost=usage(1, 2)), answer(cost=usage(10, 20))]), [Twice()], watch=watch), kind
    )
    outcome = watch.only
    assert (outcome.attempts, outcome.model_calls) == (2, 2)
    assert outcome.usage == usage(11, 22)
    assert outcome.answer_usage == usage(10, 20)


@both
async def test_an_attempt_that_was_refused_with_a_status_costs_nothing(kind: Kind) -> None:
    watch = Watch()
    model = ScriptedModel([RateLimitError("slow down", status=429), answer()])
    await run(chain(model, [Retry()], watch=watch), kind)
    assert (watch.only.status, watch.only.attempts, watch.only.usage) == ("ok", 2, COST)


@both
async def test_an_attempt_that_broke_may_have_cost_anything(kind: Kind) -> None:
    watch = Watch()
    await run(chain(ScriptedModel([Broken(), answer()]), [Retry()], watch=watch), kind)
    assert (watch.only.status, watch.only.attempts, watch.only.usage) == ("ok", 2, Usage())
    assert watch.only.answer_usage == COST


@both
async def test_a_usage_that_the_model_did_not_report_is_unset_and_never_zero(kind: Kind) -> None:
    watch = Watch()
    partly = Usage(InputTokens(10), OutputTokens())
    await run(chain(ScriptedModel([answer(cost=partly), answer(cost=Usage())], repeat=True), [], watch=watch), kind)
    assert watch.only.usage == Usage(InputTokens(10), OutputTokens())


async def test_a_sum_with_an_unknown_in_it_is_unknown_there_and_known_elsewhere() -> None:
    watch = Watch()
    model = ScriptedModel([answer(cost=usage(1, 2)), answer(cost=Usage(InputTokens(10)))])

    async def twice(inner: LanguageModel, options: CallOptions) -> GenerateResult:
        await inner.do_generate(options)
        return await inner.do_generate(options)

    await chain(model, [Member(wrap_generate=twice)], watch=watch).do_generate(ASKED)
    assert watch.only.usage == Usage(InputTokens(11), OutputTokens())


async def test_a_stream_given_up_before_its_finish_has_an_unknown_bill() -> None:
    watch = Watch()
    model = chain(ScriptedModel([parts("a", "b")]), [], watch=watch)
    async with (await model.do_stream(ASKED)).stream as stream:
        await stream.__anext__()
    assert (watch.only.model_calls, watch.only.usage, watch.only.answer_usage) == (1, Usage(), None)


async def test_an_attempt_that_a_fallback_gave_up_in_the_middle_is_still_counted() -> None:
    async def restart(model: LanguageModel, options: CallOptions) -> StreamResult:
        async def go(stream: PartStream) -> AsyncIterator[StreamPart]:
            try:
                async with stream:
                    async for part in stream:
                        yield part
            except Broken:
                async with (await model.do_stream(options)).stream as again:
                    async for part in again:
                        yield part

        return (await model.do_stream(options)).through(go)

    watch = Watch()
    model = ScriptedModel([[*parts("a", finish=None), Broken()], answer()])
    await read(chain(model, [Member(wrap_stream=restart)], watch=watch))
    assert (watch.only.status, watch.only.attempts, watch.only.model_calls) == ("ok", 2, 2)
    assert [call.closed for call in model.calls] == [1, 1]


async def test_a_retry_that_reads_ahead_counts_both_streams() -> None:
    async def retry(model: LanguageModel, options: CallOptions) -> StreamResult:
        try:
            return await primed(await model.do_stream(options))
        except Broken:
            return await primed(await model.do_stream(options))

    watch = Watch()
    model = ScriptedModel([[Broken()], answer()])
    await read(chain(model, [Member(wrap_stream=retry)], watch=watch))
    assert (watch.only.status, watch.only.attempts) == ("ok", 2)
    assert [call.closed for call in model.calls] == [1, 1]


# -- who answered


@both
async def test_a_member_that_answers_is_named_and_nothing_is_billed(kind: Kind) -> None:
    watch = Watch()
    model = ScriptedModel("never")
    await run(chain(model, [Cached(answer(cost=COST))], watch=watch, depth=10), kind)
    outcome = watch.only
    assert (outcome.status, outcome.answered_by) == ("ok", "cached")
    assert (outcome.attempts, outcome.model_calls) == (0, 0)
    assert (outcome.usage, outcome.answer_usage) == (NO_TOKENS, COST)
    assert model.calls == []


@both
async def test_a_member_that_passes_on_is_not_named(kind: Kind) -> None:
    watch = Watch()
    await run(chain(ScriptedModel([answer()]), [Cached()], watch=watch), kind)
    assert watch.only.answered_by == "model"


@both
async def test_of_two_members_that_may_answer_the_one_that_did_is_named(kind: Kind) -> None:
    watch = Watch()
    await run(chain(ScriptedModel("never"), [Cached(id="outer"), Cached(answer(), id="inner")], watch=watch), kind)
    assert watch.only.answered_by == "inner"


@both
async def test_a_fallback_that_answers_after_the_model_failed_is_named(kind: Kind) -> None:
    class Fallback(Cached):
        async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
            with pytest.raises(Broken):
                await model.do_generate(options)
            return answer()

        async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
            with pytest.raises(Broken):
                await model.do_stream(options)
            return StreamResult.of(answer())

    watch = Watch()
    await run(chain(ScriptedModel([Broken()]), [Fallback(id="fallback")], watch=watch), kind)
    assert (watch.only.status, watch.only.answered_by, watch.only.attempts) == ("ok", "fallback", 1)


@both
async def test_a_second_try_that_reaches_the_model_was_answered_by_the_model(kind: Kind) -> None:
    class Again(Middleware):
        async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
            await model.do_generate(options)
            return await model.do_generate(options)

        async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
            await read(model, options)
            return await model.do_stream(options)

    watch = Watch()
    await run(chain(ScriptedModel([answer()]), [Again(), Cached(answer("stale"), None)], watch=watch), kind)
    assert (watch.only.answered_by, watch.only.model_calls) == ("model", 1)


async def test_a_stream_that_asks_the_model_only_when_it_is_read_was_answered_by_the_model() -> None:
    class Lazy(Middleware):
        may_answer = True

        async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
            async def later() -> AsyncIterator[StreamPart]:
                for part in await read(model, options):
                    yield part

            return StreamResult(PartStream(later()))

    watch = Watch()
    await read(chain(ScriptedModel([answer()]), [Lazy()], watch=watch))
    assert watch.only.answered_by == "model"


async def test_a_member_that_may_answer_sees_the_next_model_in_under_its_own_name() -> None:
    seen: list[tuple[str, str, object]] = []

    class Curious(Cached):
        async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
            seen.append((model.provider, model.model_id, getattr(model, "supported_urls", None)))
            return await super().wrap_generate(model, options)

    await chain(ScriptedModel("Hi", supported_urls={"image/*": [".*"]}), [Curious()], watch=Watch()).do_generate(ASKED)
    assert seen == [("scripted", "scripted-1", {"image/*": [".*"]})]


# -- nested chains


@both
@pytest.mark.parametrize("watched_inside", [True, False])
async def test_a_call_through_a_nested_chain_is_counted_once(kind: Kind, watched_inside: bool) -> None:
    outer, inner = Watch("outer"), Watch("inner")
    nested = chain(ScriptedModel([answer()]), [Layer("nested")], watch=inner if watched_inside else None)
    await run(chain(nested, [Layer()], watch=outer), kind)
    assert (outer.only.attempts, outer.only.model_calls, outer.only.usage) == (1, 1, COST)
    assert outer.only.answered_by == "model"
    assert [one.model_calls for one in inner.outcomes] == ([1] if watched_inside else [])


@both
async def test_retries_of_a_nested_chain_are_its_attempts_and_everybodys_model_calls(kind: Kind) -> None:
    outer, inner = Watch("outer"), Watch("inner")
    nested = chain(ScriptedModel([Broken(), answer()]), [Retry()], watch=inner)
    await run(chain(nested, [], watch=outer), kind)
    assert (outer.only.attempts, outer.only.model_calls) == (1, 2)
    assert (inner.only.attempts, inner.only.model_calls) == (2, 2)


@both
async def test_retries_around_a_nested_chain_are_two_scopes_further_in(kind: Kind) -> None:
    outer, inner = Watch("outer"), Watch("inner")
    nested = chain(ScriptedModel([Broken(), answer()]), [], watch=inner)
    await run(chain(nested, [Retry()], watch=outer), kind)
    assert (outer.only.attempts, outer.only.model_calls, outer.only.usage) == (2, 2, Usage())
    assert [(one.status, one.model_calls) for one in inner.outcomes] == [("error", 1), ("ok", 1)]
    assert inner.outcomes[1].usage == COST


@both
async def test_scopes_of_one_request_share_its_id(kind: Kind) -> None:
    outer, middle, inner = Watch("outer"), Watch("middle"), Watch("inner")
    model = chain(chain(chain(ScriptedModel([answer()]), [], watch=inner), [], watch=middle), [], watch=outer)
    await run(model, kind)
    assert outer.only.request_id == middle.only.request_id == inner.only.request_id != ""
    assert outer.only.model_calls == middle.only.model_calls == inner.only.model_calls == 1


@both
async def test_a_member_of_a_nested_chain_that_answers_is_named_outside_too(kind: Kind) -> None:
    outer, inner = Watch("outer"), Watch("inner")
    nested = chain(ScriptedModel("never"), [Cached(answer())], watch=inner)
    await run(chain(nested, [], watch=outer), kind)
    assert outer.only.answered_by == inner.only.answered_by == "cached"
    assert (outer.only.attempts, outer.only.model_calls, outer.only.usage) == (1, 0, NO_TOKENS)


@both
async def test_two_calls_of_one_request_are_accounted_for_separately(kind: Kind) -> None:
    watch = Watch()
    model = chain(ScriptedModel([answer(cost=usage(1, 1)), answer(cost=usage(5, 5))]), [], watch=watch)
    options = ASKED.replace(context=CallContext(request_id="turn"))
    await run(model, kind, options)
    await run(model, kind, options)
    assert [one.usage for one in watch.outcomes] == [usage(1, 1), usage(5, 5)]
    assert [attempt.usage for attempt in options.context.ledger] == [usage(1, 1), usage(5, 5)]


# -- helper calls


class Judge(Middleware):
    """Asks a model of its own, or the next one in, before the call goes on."""

    may_answer = True

    def __init__(self, helper: LanguageModel | None = None) -> None:
        super().__init__()
        self.helper = helper
        self.ledger: list[Attempt] = []

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        await (self.helper or model).do_generate(options.for_helper([user("Is it good?")]))
        self.ledger = options.context.ledger
        return options


@both
@pytest.mark.parametrize("own_model", [True, False])
@pytest.mark.parametrize("nested", [True, False])
async def test_a_helper_call_is_not_counted_as_the_users_and_stands_in_the_ledger(
    kind: Kind, own_model: bool, nested: bool
) -> None:
    watch, helping = Watch(), Watch("helping")
    script = [answer()] if own_model else [answer("yes", cost=usage(1, 1)), answer()]
    model: LanguageModel = ScriptedModel(script)
    if nested:
        model = chain(model, [Layer()], watch=Watch("nested"))
    judge = Judge(chain(ScriptedModel([answer("yes", cost=usage(1, 1))]), [], watch=helping) if own_model else None)
    await run(chain(model, [judge], watch=watch), kind)
    assert (watch.only.attempts, watch.only.model_calls, watch.only.usage) == (1, 1, COST)
    assert [(attempt.helper, attempt.usage) for attempt in judge.ledger] == [(True, usage(1, 1)), (False, COST)]
    assert [(one.model_calls, one.usage) for one in helping.outcomes] == ([(1, usage(1, 1))] if own_model else [])


@both
async def test_a_helper_call_to_the_next_model_in_is_no_answer_from_it(kind: Kind) -> None:
    class Choosy(Cached):
        async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
            await model.do_generate(options.for_helper([user("Is it stale?")]))
            return answer()

        async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
            await read(model, options.for_helper([user("Is it stale?")]))
            return StreamResult.of(answer())

    watch = Watch()
    await run(chain(ScriptedModel("no"), [Choosy(id="choosy")], watch=watch), kind)
    assert (watch.only.answered_by, watch.only.model_calls) == ("choosy", 0)


async def test_a_failing_helper_call_is_not_the_users_failure() -> None:
    async def shrug(model: LanguageModel, options: CallOptions) -> GenerateResult:
        with pytest.raises(Broken):
            await model.do_generate(options.for_helper([user("?")]))
        return await model.do_generate(options)

    watch = Watch()
    await chain(ScriptedModel([Broken(), answer()]), [Member(wrap_generate=shrug)], watch=watch).do_generate(ASKED)
    assert (watch.only.status, watch.only.attempts, watch.only.usage) == ("ok", 1, COST)


# -- options that lose their context


@both
async def test_a_transform_that_makes_options_from_scratch_stays_in_its_call(kind: Kind) -> None:
    async def rewrite(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        return CallOptions.from_text("something else")

    watch = Watch()
    await run(chain(ScriptedModel([answer()]), [Member(transform_params=rewrite)], watch=watch), kind)
    assert (watch.only.attempts, watch.only.usage, watch.only.answered_by) == (1, COST, "model")


@both
async def test_options_that_a_wrap_makes_from_scratch_are_of_the_same_call(kind: Kind) -> None:
    async def generate(model: LanguageModel, options: CallOptions) -> GenerateResult:
        return await model.do_generate(CallOptions.from_text("something else"))

    async def stream(model: LanguageModel, options: CallOptions) -> StreamResult:
        return await model.do_stream(CallOptions.from_text("something else"))

    watch = Watch()
    member = Member(wrap_generate=generate, wrap_stream=stream)
    await run(chain(ScriptedModel([answer()]), [member], watch=watch), kind)
    assert (watch.only.attempts, watch.only.usage) == (1, COST)


@pytest.mark.parametrize(("left", "status"), [("broken", "error"), ("abandoned", "error"), ("whole", "ok")])
async def test_the_ledger_says_what_became_of_a_streamed_attempt(left: str, status: str) -> None:
    model = ScriptedModel([[*parts("a", finish=None), Broken()]] if left == "broken" else [parts("a")])
    options = ASKED.replace(context=CallContext())
    stream = (await chain(model, [], watch=Watch()).do_stream(options)).stream
    with contextlib.suppress(Broken):
        async with stream:
            async for part in stream:
                if left == "abandoned" and isinstance(part, TextDelta):
                    break
    assert [attempt.status for attempt in options.context.ledger] == [status]


@both
async def test_the_models_own_names_stand_in_the_ledger(kind: Kind) -> None:
    watch = Watch()
    model = wrap_model(ScriptedModel([answer()], provider="bedrock", model_id="claude"), [watch], provider="shown")
    options = ASKED.replace(context=CallContext())
    await run(model, kind, options)
    (attempt,) = options.context.ledger
    assert (attempt.provider, attempt.model_id, attempt.kind, attempt.status) == ("bedrock", "claude", kind, "ok")
    assert watch.only.provider == "shown"
