"""Lint: an order that is plainly wrong is refused, with what to do; and nothing else is."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from neurolink_mw.errors import ConfigError
from neurolink_mw.pipeline import Middleware, Stage, Use, When, wrap_model
from neurolink_mw.protocol import LanguageModel
from neurolink_mw.testing import ScriptedModel

from .builders import Layer


def kind_of(id: str, stage: int, **says: Any) -> Middleware:
    """A member that says of itself what it does."""
    made: type[Layer] = type(id.title(), (Layer,), {"stage": stage, **says})
    return made(id)


def cache(id: str = "cache") -> Middleware:
    return kind_of(id, Stage.CACHE, may_answer=True, reads=frozenset({"prompt"}))


def redactor() -> Middleware:
    return kind_of("redact", Stage.REDACT, reads=frozenset({"prompt"}), writes=frozenset({"prompt"}))


def policy(judges: str = "output") -> Middleware:
    return kind_of("policy", Stage.GUARD, judges=frozenset({judges}), writes=frozenset({judges}))


def budget() -> Middleware:
    return kind_of("budget", Stage.BUDGET)


def retry(id: str = "retry") -> Middleware:
    return kind_of(id, Stage.RETRY)


def inside(member: Middleware) -> Use:
    """At the innermost place."""
    return Use(member, priority=Stage.PROVIDER)


class Turn:
    """A whole turn: calls its model step after step, and runs tools."""

    is_turn = True
    provider, model_id = "turn", "turn-1"

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.do_generate, self.do_stream = model.do_generate, model.do_stream


def around(*members: Middleware | Use, model: LanguageModel | None = None, **more: Any) -> LanguageModel:
    return wrap_model(ScriptedModel("Hi") if model is None else model, members, **more)


def refused(*members: Middleware | Use, model: LanguageModel | None = None) -> str:
    with pytest.raises(ConfigError) as found:
        around(*members, model=model)
    return str(found.value)


# -- what is wrong, and what to do


def test_a_cache_outside_of_what_changes_the_prompt() -> None:
    assert refused(cache(), inside(redactor())) == (
        "Middleware 'cache' may answer and sits outside 'redact', which changes the prompt: it would look up and keep "
        "prompts as they were before that: move 'redact' further out, or set cache.after = [\"redact\"]"
    )


def test_what_may_answer_and_does_not_say_by_what_is_taken_to_look_at_the_prompt() -> None:
    assert "which changes the prompt" in refused(kind_of("cache", Stage.CACHE, may_answer=True), inside(redactor()))


def test_a_kind_of_member_is_known_by_a_stage_of_its_own_beside_the_usual_one() -> None:
    near = kind_of("near", Stage.BUDGET + 50)
    assert "would charge for answers that no model gave" in refused(near, inside(cache()))


def test_a_fallback_that_handles_denials_stands_outside_of_the_policy_that_denies() -> None:
    around(kind_of("fallback", Stage.EDGE, may_answer=True, reads=frozenset({"params"}), sees_denials=True), policy())


@pytest.mark.parametrize("judges", ["prompt", "output"])
def test_a_cache_outside_of_a_policy(judges: str) -> None:
    assert refused(cache(), inside(policy(judges))) == (
        "Middleware 'cache' may answer and sits outside the policy 'policy', which would not see those calls: move "
        "'policy' further out, or set cache.after = [\"policy\"]"
    )


def test_a_budget_outside_of_a_cache() -> None:
    assert refused(budget(), inside(cache())) == (
        "Middleware 'budget' sits outside 'cache', so it would charge for answers that no model gave: move 'cache' "
        'further out, or set budget.after = ["cache"]'
    )


def test_what_it_says_to_do_helps() -> None:
    around(Use(cache(), after=["redact"]), inside(redactor()))
    around(Use(cache(), after=["policy"]), inside(policy()))
    around(Use(budget(), after=["cache"]), inside(cache()))


def test_two_retries_one_around_the_other() -> None:
    assert refused(retry("again"), model=around(retry())) == (
        "Middleware 'again' tries again what 'retry' has tried again already, so that attempts multiply: leave one of "
        "them out"
    )


def test_two_retries_in_one_chain() -> None:
    assert refused(retry("again"), retry()).startswith("Middleware 'again' tries again what 'retry' has tried again")


def test_a_cache_around_a_turn() -> None:
    assert refused(cache(), model=Turn(ScriptedModel("Hi"))) == (
        "Middleware 'cache' is around a whole turn, so an answer that tools were run for would be given again without "
        "running them: put it around the steps (middlewares= of generate and stream, wrap_model around the model of a "
        "turn model), not around the turn"
    )


def test_a_policy_on_answers_that_no_step_has() -> None:
    assert "judges the answer of a whole turn only, and tools run before that: put it around the steps" in refused(
        policy(), model=Turn(ScriptedModel("Hi"))
    )
    around(policy(), model=Turn(around(policy())))
    around(policy("prompt"), model=Turn(ScriptedModel("Hi")))


def test_every_fault_is_named() -> None:
    said = refused(Use(budget(), priority=Stage.EDGE), cache(), inside(redactor()), inside(policy()))
    assert len(said.splitlines()) == 3


# -- through chains that are wrapped already


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("turn", [False, True])
def test_chains_further_in_are_looked_at_too(depth: int, turn: bool) -> None:
    model = around(redactor(), policy())
    for index in range(depth - 1):
        model = around(Layer(f"between-{index}"), model=model)
    if turn:
        model = Turn(model)
    said = refused(Use(cache(), priority=Stage.EDGE), model=model)
    assert "sits outside 'redact'" in said
    assert "sits outside the policy 'policy'" in said


def test_there_it_says_what_can_be_done_there() -> None:
    """`after` can only name members of the same chain."""
    said = refused(cache(), model=around(redactor()))
    assert "cache.after" not in said
    assert said.endswith(
        "'redact' is in the chain of the model that this one is around: move it to this chain, or 'cache' to that one"
    )


# -- less strict


def test_warn_says_it_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        around(cache(), inside(redactor()), lint="warn")
    (record,) = caplog.records
    assert "sits outside 'redact'" in record.message


def test_off_does_not_look(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        around(cache(), inside(redactor()), lint="off")
    assert caplog.records == []


def test_no_other_word_is_known() -> None:
    with pytest.raises(ConfigError, match='lint is "error", "warn" or "off"'):
        around(Layer(), lint="strict")


# -- no false alarm


def test_the_usual_order_of_all_stages_is_fine(caplog: pytest.LogCaptureFixture) -> None:
    members = [
        kind_of("telemetry", Stage.OBSERVE, reads=frozenset({"output", "metadata"})),
        kind_of("instructions", Stage.NORMALIZE, reads=frozenset({"prompt"}), writes=frozenset({"prompt"})),
        redactor(),
        policy(),
        cache(),
        kind_of("validation", Stage.VALIDATE, reads=frozenset({"output"}), writes=frozenset({"output"})),
        budget(),
        kind_of("fallback", Stage.FALLBACK, may_answer=True),
        retry(),
        kind_of("breaker", Stage.LIMIT),
        kind_of("examples", Stage.ADAPT, reads=frozenset({"tools"}), writes=frozenset({"tools"})),
        kind_of("attempts", Stage.PROVIDER),
    ]
    with caplog.at_level(logging.WARNING):
        around(*reversed(members), lint="warn")
    assert caplog.records == []


def test_a_member_that_may_answer_and_does_not_look_at_the_prompt_may_stand_anywhere() -> None:
    around(kind_of("replay", Stage.EDGE, may_answer=True, reads=frozenset({"metadata"})), redactor())


def test_who_does_not_take_part_is_not_looked_at() -> None:
    around(cache(), Use(redactor(), priority=Stage.PROVIDER, mode="off"))
    around(cache(), Use(redactor(), priority=Stage.PROVIDER, when=When(provider="another")))


def test_two_chains_around_one_model_do_not_see_each_other() -> None:
    shared = ScriptedModel("Hi")
    around(cache(), model=shared)
    around(redactor(), model=shared)
