"""Order: by stage from the outside in, then as `before` and `after` ask; what already holds moves nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.errors import ConfigError
from neurolink_mw.pipeline import Middleware, Stage, Use, explain, wrap_model
from neurolink_mw.pipeline.order import Placed, arrange
from neurolink_mw.testing import ScriptedModel

from .builders import Member


def at(id: str, stage: int = 1000, before: Sequence[str] = (), after: Sequence[str] = ()) -> Use:
    return Use(Member(id), priority=stage, before=before, after=after)


def ids(placed: Sequence[Placed]) -> list[str]:
    return [place.use.id for place in placed]


def arranged(*uses: Use) -> list[str]:
    return ids(arrange(uses))


def test_a_higher_stage_stands_further_out() -> None:
    assert arranged(at("provider", 100), at("edge", 1400), at("cache", 800)) == ["edge", "cache", "provider"]


def test_members_of_one_stage_keep_the_order_in_which_they_were_given() -> None:
    assert arranged(at("b"), at("a"), at("c")) == ["b", "a", "c"]


def test_the_stages_are_those_of_the_plan_from_the_outside_in() -> None:
    assert [f"{stage.name} {stage.value}" for stage in Stage] == [
        *("EDGE 1400", "OBSERVE 1300", "AUTH 1200", "NORMALIZE 1100", "REDACT 1000", "GUARD 900", "CACHE 800"),
        *("VALIDATE 700", "BUDGET 600", "FALLBACK 500", "RETRY 400", "LIMIT 300", "ADAPT 200", "PROVIDER 100"),
    ]


def test_a_member_stands_at_the_stage_of_its_class() -> None:
    class Inner(Middleware):
        stage = Stage.ADAPT

    class Outer(Middleware):
        stage = Stage.AUTH

    assert ids(arrange([Use(Inner()), Use(Outer())])) == ["outer", "inner"]


def test_a_priority_wins_over_the_stage_of_the_class() -> None:
    class Inner(Middleware):
        stage = Stage.ADAPT

    assert ids(arrange([at("other", 800), Use(Inner(), priority=900)])) == ["inner", "other"]


def test_priority_zero_is_a_priority() -> None:
    assert arranged(at("low", 0), at("high", 1)) == ["high", "low"]


def test_before_moves_a_member_further_out_than_the_one_it_names() -> None:
    assert arranged(at("a", 900), at("b", 100, before=["a"])) == ["b", "a"]


def test_after_moves_a_member_further_in_than_the_one_it_names() -> None:
    assert arranged(at("a", 900, after=["b"]), at("b", 100)) == ["b", "a"]


def test_the_constraints_of_the_class_count_like_those_of_the_place() -> None:
    class Inner(Middleware):
        stage = Stage.EDGE
        after = ("anchor",)

    class Outer(Middleware):
        stage = Stage.PROVIDER
        before = ("anchor",)

    assert ids(arrange([Use(Inner()), at("anchor"), Use(Outer())])) == ["outer", "anchor", "inner"]


def test_a_constraint_of_a_class_on_somebody_absent_is_ignored() -> None:
    class Picky(Middleware):
        before = ("nobody",)
        after = ("nowhere",)

    assert ids(arrange([at("a"), Use(Picky(), priority=1)])) == ["a", "picky"]


def test_a_constraint_of_a_place_on_somebody_unknown_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"b\.after names 'cachin', which is unknown; did you mean 'caching'\?"):
        arranged(at("caching"), at("b", after=["cachin"]))


def test_a_constraint_on_somebody_known_but_absent_is_ignored() -> None:
    assert ids(arrange([at("a"), at("b", before=["caching"])], known={"caching"})) == ["a", "b"]


def test_two_of_one_id_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="two members have the id 'twin'"):
        arranged(at("twin"), at("other"), at("twin"))


def test_a_cycle_is_refused_with_the_names_of_its_members_and_of_no_others() -> None:
    with pytest.raises(ConfigError) as caught:
        arranged(at("free"), at("a", after=["c"]), at("b", after=["a"]), at("c", after=["b"]), at("late", after=["c"]))
    assert "a is inside c is inside b is inside a" in str(caught.value)
    assert "late" not in str(caught.value)


def test_a_member_that_must_stand_inside_itself_is_refused() -> None:
    with pytest.raises(ConfigError, match="me is inside me"):
        arranged(at("me", after=["me"]))


def test_a_cycle_between_a_class_and_a_place_is_refused() -> None:
    class Inner(Middleware):
        after = ("anchor",)

    with pytest.raises(ConfigError, match="inside"):
        arrange([Use(Inner(), before=["anchor"]), at("anchor")])


def test_a_member_says_why_it_stands_where_it_stands() -> None:
    placed = arrange([at("a", 900, after=["b"]), at("b", 100), Use(Member("c"))])
    assert {place.use.id: place.why for place in placed} == {
        "c": "stage 1100",
        "b": "priority 100",
        "a": "priority 900, moved inside of b, which must stand further out",
    }


def test_wrap_model_sorts_its_members() -> None:
    model = wrap_model(ScriptedModel("Hi"), [at("in", 1), at("out", 2)])
    assert explain(model).request_order == ("out", "in", "scripted:scripted-1")


# -- random chains

NAMES = [f"m{index}" for index in range(8)]


@st.composite
def chains(draw: st.DrawFn) -> list[Use]:
    """Random chains whose constraints can all hold: each names only members that a hidden order allows."""
    hidden = draw(st.permutations(NAMES[: draw(st.integers(1, len(NAMES)))]))
    uses = []
    for position, name in enumerate(hidden):
        inner, outer = hidden[position + 1 :], hidden[:position]
        before = draw(st.lists(st.sampled_from(inner), max_size=2)) if inner else []
        after = draw(st.lists(st.sampled_from(outer), max_size=2)) if outer else []
        uses.append(at(name, draw(st.integers(1, 4)) * 100, before, after))
    return draw(st.permutations(uses))


def broken_constraints(order: Sequence[str], uses: Sequence[Use]) -> list[tuple[str, str]]:
    pairs = [(use.id, inner) for use in uses for inner in use.before]
    pairs += [(outer, use.id) for use in uses for outer in use.after]
    return [(outer, inner) for outer, inner in pairs if order.index(outer) > order.index(inner)]


@given(chains())
def test_all_constraints_hold_wherever_they_can(uses: list[Use]) -> None:
    order = ids(arrange(uses))
    assert sorted(order) == sorted(use.id for use in uses)
    assert broken_constraints(order, uses) == []


@given(chains())
def test_a_satisfied_constraint_never_moves_anything(uses: list[Use]) -> None:
    settled = ids(arrange(uses))
    by_id = {use.id: use for use in uses}
    # A chain whose base order is the one that was found, with all its constraints.
    again = [at(id, 1000 - position, by_id[id].before, by_id[id].after) for position, id in enumerate(settled)]
    assert ids(arrange(again)) == settled
    assert all("moved" not in place.why for place in arrange(again))


@given(chains())
def test_where_nothing_is_asked_for_the_order_is_that_of_the_stages(uses: list[Use]) -> None:
    base = sorted(uses, key=lambda use: -use.stage)
    unasked = [at(use.id, use.stage) for use in uses]
    assert ids(arrange(unasked)) == [use.id for use in base]


@given(chains())
def test_a_chain_whose_stages_satisfy_everything_is_left_as_it_is(uses: list[Use]) -> None:
    base = [use.id for use in sorted(uses, key=lambda use: -use.stage)]
    if not broken_constraints(base, uses):
        assert ids(arrange(uses)) == base


@given(chains())
def test_members_before_the_first_broken_constraint_stay_where_they_are(uses: list[Use]) -> None:
    base = [use.id for use in sorted(uses, key=lambda use: -use.stage)]
    broken = broken_constraints(base, uses)
    first = min((base.index(inner) for _, inner in broken), default=len(base))
    assert ids(arrange(uses))[:first] == base[:first]


@given(chains(), st.data())
def test_one_constraint_too_many_is_refused_with_both_names(uses: list[Use], data: st.DataObject) -> None:
    order = ids(arrange(uses))
    if len(order) < 2:
        return
    inner = data.draw(st.integers(1, len(order) - 1))
    outer = data.draw(st.integers(0, inner - 1))
    pinned = [at(id, 500, after=order[:position]) for position, id in enumerate(order)]
    pinned[inner] = at(order[inner], 500, before=[order[outer]], after=order[:inner])
    with pytest.raises(ConfigError) as caught:
        arrange(pinned)
    assert order[inner] in str(caught.value)
    assert order[outer] in str(caught.value)
