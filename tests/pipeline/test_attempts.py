"""Attempts and model calls: each is counted once, whoever asked, and stands in one ledger with what it cost."""

from __future__ import annotations

import pytest

from neurolink_mw.errors import ServerError
from neurolink_mw.pipeline import Outcome, Use, wrap_model
from neurolink_mw.protocol import Attempt, CallOptions, GenerateResult, Kind, LanguageModel, StreamPart, user
from neurolink_mw.roles import Observer
from neurolink_mw.testing import ScriptedModel

from .builders import (
    COST,
    NO_TOKENS,
    Layer,
    Member,
    Retry,
    Watch,
    answer,
    chain,
    hooked,
    parts,
    run,
    streaming,
    text_of,
)

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])
DOWN = ServerError("down", status=503)


class Attempts(Observer):
    """Is told of each call that reaches the model."""

    per = "attempt"
    id = "attempts"

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[Outcome] = []
        self.parts: list[StreamPart] = []

    def on_outcome(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def on_part(self, part: StreamPart) -> None:
        self.parts.append(part)


def ledger(watch: Watch) -> list[Attempt]:
    return watch.only.context.ledger


def counted(watch: Watch) -> tuple[int, int]:
    return watch.only.attempts, watch.only.model_calls


# -- counted once


@both
@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("depth", [0, 2])
async def test_one_call_is_one_attempt(kind: Kind, observed: bool, depth: int) -> None:
    watch = Watch()
    members = [Attempts()] if observed else []
    model = wrap_model(ScriptedModel([answer()]), [watch, *[Layer(f"l{index}") for index in range(depth)], *members])
    await run(model, kind)
    assert counted(watch) == (1, 1)
    assert [(one.kind, one.status, one.usage, one.helper) for one in ledger(watch)] == [(kind, "ok", COST, False)]


@both
@pytest.mark.parametrize("observed", [False, True])
async def test_each_try_of_a_retry_is_one(kind: Kind, observed: bool) -> None:
    watch, attempts = Watch(), Attempts()
    members = [watch, Retry(3), *([attempts] if observed else [])]
    await run(wrap_model(ScriptedModel([DOWN, DOWN, answer()]), members), kind)
    assert counted(watch) == (3, 3)
    assert [one.status for one in ledger(watch)] == ["error", "error", "ok"]
    assert watch.only.usage == COST
    assert [outcome.status for outcome in attempts.outcomes] == (["error", "error", "ok"] if observed else [])


@both
async def test_nested_chains_count_their_own_attempts_and_share_model_calls(kind: Kind) -> None:
    inner_watch, outer_watch = Watch("inner"), Watch("outer")
    inner = chain(ScriptedModel([DOWN, answer()]), [Retry(2)], watch=inner_watch)
    await run(chain(inner, [Layer()], watch=outer_watch), kind)
    assert (counted(inner_watch), counted(outer_watch)) == ((2, 2), (1, 2))
    assert len(ledger(outer_watch)) == 2
    assert ledger(outer_watch) is ledger(inner_watch)


@both
async def test_a_chain_around_a_chain_that_nobody_listens_to_counts_once_too(kind: Kind) -> None:
    watch = Watch()
    inner = wrap_model(wrap_model(ScriptedModel([answer()]), [Layer("a")]), [Layer("b")])
    await run(chain(inner, [Layer("c")], watch=watch), kind)
    assert (counted(watch), len(ledger(watch))) == ((1, 1), 1)


# -- helper calls


@both
@pytest.mark.parametrize("next_in", [False, True])
async def test_a_helper_call_is_in_the_ledger_and_counts_for_nobody_else(kind: Kind, next_in: bool) -> None:
    judge = wrap_model(ScriptedModel([answer("yes")]), [Watch("judging")])

    async def ask(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        await (model if next_in else judge).do_generate(options.for_helper([user("?")]))
        return options

    watch = Watch()
    inside = ScriptedModel([*([answer("yes")] if next_in else []), answer()])
    await run(chain(inside, [Member(transform_params=ask, needs_scope=True), Layer()], watch=watch), kind)
    assert counted(watch) == (1, 1)
    assert [one.helper for one in ledger(watch)] == [True, False]
    assert watch.only.usage == COST


@both
@pytest.mark.parametrize("rule", [{}, {"on_error": "skip"}, {"timeout": 60}])
async def test_also_where_the_place_has_rules(kind: Kind, rule: dict[str, object]) -> None:
    async def ask(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        await model.do_generate(options.for_helper([user("?")]))
        return options

    watch, inside = Watch(), ScriptedModel([answer("yes"), answer()])
    member = Member(transform_params=ask, needs_scope=True)
    await run(chain(inside, [Use(member, **rule)], watch=watch), kind)  # type: ignore[arg-type]
    assert counted(watch) == (1, 1)
    assert [one.helper for one in ledger(watch)] == [True, False]


# -- skipped, denied


@both
async def test_a_member_that_is_skipped_costs_no_attempt(kind: Kind) -> None:
    async def ask_and_fail(model: LanguageModel, options: CallOptions) -> GenerateResult:
        await model.do_generate(options)
        raise ZeroDivisionError

    watch = Watch()
    await run(chain(ScriptedModel([answer()]), [Use(hooked(ask_and_fail), on_error="skip")], watch=watch), kind)
    assert counted(watch) == (1, 1)


@both
async def test_a_call_denied_before_the_model_has_none_and_cost_nothing(kind: Kind) -> None:
    async def deny(model: LanguageModel, options: CallOptions) -> GenerateResult:
        raise options.context.deny("no")

    watch, attempts = Watch(), Attempts()
    await run(chain(ScriptedModel([]), [hooked(deny), attempts], watch=watch), kind)
    assert (counted(watch), watch.only.usage, attempts.outcomes) == ((0, 0), NO_TOKENS, [])


# -- what an observer of attempts is told


@both
async def test_an_attempt_has_an_outcome_of_its_own(kind: Kind) -> None:
    attempts, watch = Attempts(), Watch()
    await run(wrap_model(ScriptedModel([DOWN, answer()]), [watch, Retry(2), attempts]), kind)
    failed, worked = attempts.outcomes
    assert (failed.status, failed.error, failed.usage) == ("error", DOWN, NO_TOKENS)
    assert (worked.status, worked.attempts, worked.model_calls, worked.usage) == ("ok", 1, 1, COST)
    assert worked.request_id == failed.request_id == watch.only.request_id
    assert len(watch.outcomes) == 1


async def test_it_sees_the_parts_as_the_model_gave_them() -> None:
    attempts = Attempts()
    upper = streaming(lambda stream, options: stream.map(lambda part: part if part.type != "text-delta" else None))
    await run(wrap_model(ScriptedModel([parts("a", "b")]), [upper, attempts]), "stream")
    assert attempts.parts == parts("a", "b")


async def test_an_attempt_that_is_left_is_abandoned() -> None:
    attempts = Attempts()
    model = wrap_model(ScriptedModel([parts("a")]), [attempts])
    async with (await model.do_stream(CallOptions.from_text("Hello"))).stream as stream:
        await anext(stream)
    assert [outcome.status for outcome in attempts.outcomes] == ["abandoned"]


@both
async def test_an_attempt_stays_what_it_was_where_its_answer_is_denied(kind: Kind) -> None:
    async def judge(model: LanguageModel, options: CallOptions) -> GenerateResult:
        await model.do_generate(options)
        raise options.context.deny("no", "I cannot.")

    attempts, watch = Attempts(), Watch()
    assert await text_of(chain(ScriptedModel([answer()]), [hooked(judge), attempts], watch=watch), kind) == "I cannot."
    assert ([outcome.status for outcome in attempts.outcomes], watch.only.status) == (["ok"], "denied")
    assert watch.only.usage == COST


@both
async def test_one_instance_in_two_chains_is_told_of_both(kind: Kind) -> None:
    attempts = Attempts()
    for text in ("a", "b"):
        await run(wrap_model(ScriptedModel([answer(text)], model_id=text), [Layer(), attempts]), kind)
    assert [outcome.model_id for outcome in attempts.outcomes] == ["a", "b"]
