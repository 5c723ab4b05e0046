"""The rules of a place: what is refused when it is made, and that they belong to the place and not to the instance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from neurolink_mw.errors import ConfigError
from neurolink_mw.pipeline import Member as AnyMember
from neurolink_mw.pipeline import Middleware, Stage, Use, WrappedModel, wrap_model
from neurolink_mw.protocol import CallOptions, GenerateResult, Kind, LanguageModel
from neurolink_mw.testing import ScriptedModel

from .builders import Layer, Member, Watch, chain, hooked, run, text_of

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])


def sync(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
    return options


async def fail(model: LanguageModel, options: CallOptions) -> GenerateResult:
    raise ZeroDivisionError


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"on_error": "ignore"}, r"layer: on_error cannot be 'ignore'.*allowed: raise, deny, skip"),
    ({"on_error": "skp"}, r"did you mean 'skip'"),
    ({"on_error": True}, r"layer: on_error cannot be 'bool'"),
    ({"mode": "audit"}, r"layer: mode cannot be 'audit'.*allowed: enforce, shadow, off"),
    ({"mode": "shadow"}, r'layer: mode = "shadow" is for roles.*use "enforce" or "off"'),
    ({"timeout": 0}, r"layer: timeout is a number of seconds above 0, or None for no limit"),
    ({"timeout": -1.0}, "above 0"),
    ({"timeout": math.inf}, "above 0"),
    ({"timeout": math.nan}, "above 0"),
    ({"timeout": "5"}, "above 0"),
    ({"timeout": True}, "above 0"),
    ({"max_failures": 0, "on_error": "skip"}, r"layer: max_failures is a whole number from 1 on"),
    ({"max_failures": 1.5, "on_error": "skip"}, "whole number"),
    ({"max_failures": True, "on_error": "skip"}, "whole number"),
    ({"max_failures": 3}, r'on_error is "raise": set on_error = "skip" or "deny", or leave max_failures out'),
    ({"blocking": 1}, r"layer: blocking is true or false"),
    ({"blocking": True}, r"layer: blocking moves sync hooks to a worker thread, and all its hooks are async"),
]


@pytest.mark.parametrize(("rules", "sentence"), REFUSED, ids=lambda value: str(value)[:40])
def test_a_rule_that_cannot_hold_is_refused_with_what_to_do(rules: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Use(Layer(), **rules)


@pytest.mark.parametrize("rules", [{"on_error": "skip"}, {"on_error": "deny"}, {"timeout": 1.0}], ids=str)
def test_a_member_that_only_listens_cannot_fail_a_call(rules: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="on_error and timeout have nothing to do here: it has no hook"):
        Use(Watch(), **rules)


def test_rules_are_looked_at_before_any_chain_is_built() -> None:
    with pytest.raises(ConfigError, match="timeout"):
        Use(Layer(), timeout=0)


def test_a_place_says_nothing_of_the_value_it_refuses_but_its_kind() -> None:
    with pytest.raises(ConfigError) as refused:
        Use(Layer(), on_error=["SECRET"])  # type: ignore[arg-type]
    assert "SECRET" not in str(refused.value)
    assert "list" in str(refused.value)


def test_what_is_usual_for_a_member_holds_where_its_place_says_nothing() -> None:
    class Guard(Layer):
        default_on_error = "deny"

    assert Use(Layer()).rules.on_error == "raise"
    assert Use(Guard()).rules.on_error == "deny"
    assert Use(Guard(), on_error="skip").rules.on_error == "skip"
    assert Use(Guard(), max_failures=2).rules.max_failures == 2


def test_a_member_may_have_one_sync_hook_to_be_blocking() -> None:
    assert Use(Member(transform_params=sync, wrap_generate=fail), blocking=True).rules.blocking


# -- the place, not the instance


@both
async def test_one_instance_in_two_chains_has_the_rules_of_each(kind: Kind) -> None:
    member = hooked(fail)
    skips = chain(ScriptedModel("Hi"), [Use(member, on_error="skip")])
    denies = chain(ScriptedModel("Hi"), [Use(member, on_error="deny")])
    raises = chain(ScriptedModel("Hi"), [member])
    assert await text_of(skips, kind) == "Hi"
    assert await text_of(denies, kind) == "This request could not be checked, so it was refused."
    with pytest.raises(ZeroDivisionError):
        await run(raises, kind)


@both
async def test_nor_do_chains_share_who_failed_too_often(kind: Kind) -> None:
    asked: list[str] = []

    async def flaky(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        asked.append("asked")
        raise ZeroDivisionError

    member = Member(transform_params=flaky)
    first, second = (
        chain(ScriptedModel("Hi", repeat=True), [Use(member, on_error="skip", max_failures=1)]) for _ in range(2)
    )
    for _ in range(2):
        await run(first, kind)
        await run(second, kind)
    assert len(asked) == 2


@both
async def test_a_member_that_is_switched_off_is_left_out_and_listed(kind: Kind) -> None:
    model = wrap_model(ScriptedModel("Hi"), [Use(hooked(fail), mode="off")])
    assert await text_of(model, kind) == "Hi"
    assert isinstance(model, WrappedModel)
    assert model.chain.left_out == (("member", 'mode = "off"'),)


# -- members with two places


class Inner(Layer):
    stage = Stage.PROVIDER


class Outer(Middleware):
    """Stands at two places."""

    id = "outer"
    stage = Stage.EDGE

    def companions(self) -> Sequence[AnyMember]:
        return [Inner("outer.attempt")]

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return await model.do_generate(options)


def ids(model: LanguageModel) -> tuple[str, ...]:
    assert isinstance(model, WrappedModel)
    return model.chain.ids


def test_a_companion_stands_at_its_own_place_under_the_same_rules() -> None:
    model = wrap_model(ScriptedModel([]), [Layer(), Use(Outer(), on_error="skip", timeout=2.0)])
    assert ids(model) == ("outer", "layer", "outer.attempt")
    assert isinstance(model, WrappedModel)
    rules = {place.use.id: place.use.rules for place in model.chain.placed}
    assert rules["outer.attempt"] == rules["outer"]


def test_where_the_member_is_moved_its_companion_stays() -> None:
    model = wrap_model(ScriptedModel([]), [Layer(), Use(Outer(), priority=Stage.CACHE)])
    assert ids(model) == ("layer", "outer", "outer.attempt")


def test_switched_off_both_are() -> None:
    assert ids(wrap_model(ScriptedModel([]), [Layer(), Use(Outer(), mode="off")])) == ("layer",)


def test_an_id_that_a_companion_has_already_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"two members have the id 'outer\.attempt'"):
        wrap_model(ScriptedModel([]), [Outer(), Layer("outer.attempt")])
