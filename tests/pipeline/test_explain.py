"""Explaining a chain, and trying a request on it without asking a model."""

from __future__ import annotations

import pytest

from neurolink_mw.errors import ConfigError
from neurolink_mw.pipeline import Change, Middleware, Stage, Use, When, dry_run, explain, wrap_model
from neurolink_mw.pipeline.explain import explain_placed
from neurolink_mw.pipeline.order import arrange
from neurolink_mw.protocol import CallContext, CallOptions, Kind, LanguageModel, user
from neurolink_mw.testing import ScriptedModel

from .builders import ASKED, Layer, Member, Noted, NotedModel, Watch, only_when

pytestmark = pytest.mark.anyio


class Guard(Middleware):
    stage = Stage.GUARD

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        return options


# -- explain


def test_a_chain_is_shown_in_both_directions() -> None:
    shown = explain(wrap_model(ScriptedModel("Hi"), [Layer("a"), Layer("b")]))
    assert shown.request_order == ("a", "b", "scripted:scripted-1")
    assert shown.response_order == ("scripted:scripted-1", "b", "a")


def test_a_bare_model_has_no_members() -> None:
    shown = explain(ScriptedModel("Hi"))
    assert (shown.members, shown.left_out, shown.request_order) == ((), (), ("scripted:scripted-1",))


def test_each_member_is_shown_with_its_hooks_stage_and_reason() -> None:
    members: list[Middleware | Use] = [Guard(), Use(Layer("moved"), priority=1000, after=["guard"])]
    guard, moved = explain(wrap_model(ScriptedModel("Hi"), members)).members
    assert (guard.id, guard.stage, guard.why, guard.hooks) == ("guard", "GUARD", "stage 900", ("transform_params",))
    assert (moved.stage, moved.hooks) == ("REDACT", ("wrap_generate", "wrap_stream"))
    assert moved.why == "priority 1000, moved inside of guard, which must stand further out"


def test_a_condition_is_shown_without_its_values() -> None:
    when = When(provider="script*", options={"seed": 1}, metadata={"tenant": "secret"}, custom=lambda options: True)
    (member,) = explain(wrap_model(ScriptedModel("Hi"), [Use(Watch(), when=when)])).members
    assert member.when == (
        "provider is script* and options.seed matches and metadata.tenant matches and a function of the options says so"
    )
    assert member.hooks == ("outcomes",)


def test_a_stage_between_the_known_ones_is_a_number() -> None:
    (member,) = explain(wrap_model(ScriptedModel("Hi"), [Use(Layer(), priority=950)])).members
    assert (member.stage, member.why) == ("950", "priority 950")


def test_nested_chains_are_shown_from_the_outermost_in() -> None:
    inner = wrap_model(ScriptedModel("Hi"), [Layer("b"), only_when(Layer("no"), provider="x")])
    shown = explain(wrap_model(inner, [Layer("a")]))
    assert [(member.id, member.depth) for member in shown.members] == [("a", 0), ("b", 1)]
    assert shown.left_out == (("no", "when.provider is x, and the provider is scripted"),)
    assert shown.request_order == ("a", "b", "scripted:scripted-1")


def test_an_explanation_reads_well_and_goes_into_json() -> None:
    shown = explain(wrap_model(ScriptedModel("Hi"), [Guard(), only_when(Layer("no"), model="x")]))
    assert str(shown) == (
        "request:  caller -> guard -> scripted:scripted-1\n"
        "response: scripted:scripted-1 -> guard -> caller\n"
        "  guard: stage 900; transform_params\n"
        "  left out: no: when.model is x, and the model is scripted-1"
    )
    assert shown.to_json() == {
        "model": "scripted:scripted-1",
        "requestOrder": ["guard", "scripted:scripted-1"],
        "responseOrder": ["scripted:scripted-1", "guard"],
        "members": [
            {
                "id": "guard",
                "stage": "GUARD",
                "why": "stage 900",
                "hooks": ["transform_params"],
                "when": None,
                "depth": 0,
                "rules": None,
            }
        ],
        "leftOut": [{"id": "no", "why": "when.model is x, and the model is scripted-1"}],
    }


def test_a_chain_can_be_explained_before_it_has_a_model() -> None:
    shown = explain_placed(arrange([Use(Guard())]), [("b", "switched off")])
    assert shown.request_order == ("guard", "(any model)")
    assert shown.left_out == (("b", "switched off"),)


# -- dry_run


class Cold(Middleware):
    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        return options.replace(temperature=0, seed=1)


class Polite(Middleware):
    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        return options.replace(prompt=[*options.prompt, user("please")])


async def test_a_dry_run_says_what_each_member_changes_and_asks_no_model() -> None:
    model = ScriptedModel("never")
    run = await dry_run(wrap_model(model, [Cold(), Layer(), Polite()]), ASKED)
    assert run.changes == (
        Change("cold", True, ("temperature", "seed")),
        Change("layer", True, ()),
        Change("polite", True, ("prompt",)),
    )
    assert (run.options.temperature, len(run.options.prompt)) == (0, 2)
    assert model.calls == []


async def test_a_dry_run_says_whose_condition_did_not_hold() -> None:
    members: list[Middleware | Use] = [only_when(Polite(), options={"temperature": 0}), Cold()]
    run = await dry_run(wrap_model(ScriptedModel("never"), members), ASKED)
    assert run.changes == (Change("polite", False, ()), Change("cold", True, ("temperature", "seed")))


async def test_a_condition_in_a_dry_run_sees_what_members_further_out_changed() -> None:
    members: list[Middleware | Use] = [Cold(), only_when(Polite(), options={"temperature": 0})]
    run = await dry_run(wrap_model(ScriptedModel("never"), members), ASKED)
    assert run.changes[1] == Change("polite", True, ("prompt",))


@pytest.mark.parametrize("kind", ["generate", "stream"])
async def test_a_dry_run_is_of_one_kind(kind: Kind) -> None:
    journal: list[str] = []
    await dry_run(wrap_model(NotedModel(journal), [Noted("a", journal)]), ASKED, kind)
    assert journal == [f"a.transform({kind})"]


async def test_a_dry_run_goes_through_nested_chains() -> None:
    inner = wrap_model(ScriptedModel("never"), [Polite()])
    run = await dry_run(wrap_model(inner, [Cold()]), ASKED)
    assert [change.id for change in run.changes] == ["cold", "polite"]


async def test_a_dry_run_of_a_bare_model_changes_nothing() -> None:
    run = await dry_run(ScriptedModel("never"), ASKED)
    assert (run.options, run.changes) == (ASKED, ())


async def test_a_member_that_asks_the_model_in_a_dry_run_is_told_so() -> None:
    async def ask(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        await model.do_generate(options)
        return options

    model = ScriptedModel("never")
    with pytest.raises(ConfigError, match="a dry run asks no model"):
        await dry_run(wrap_model(model, [Member(transform_params=ask)]), ASKED)
    assert model.calls == []


async def test_a_transform_in_a_dry_run_sees_the_next_model_in_under_its_name() -> None:
    class Renames(Middleware):
        stage = Stage.PROVIDER

        def override_provider(self, model: LanguageModel) -> str:
            return "renamed"

    seen: list[str] = []

    async def note(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        seen.append(f"{model.provider}:{model.model_id}")
        return options

    members = [Member("note", transform_params=note), Renames()]
    await dry_run(wrap_model(ScriptedModel("never"), members, model_id="m"), ASKED)
    assert seen == ["renamed:m"]


async def test_a_transform_may_use_its_context_in_a_dry_run_and_nothing_is_ever_told() -> None:
    told: list[object] = []

    async def note(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        options.context.at_end(told.append)
        assert options.context.request_id
        return options

    context = CallContext(request_id="r")
    model = wrap_model(ScriptedModel("never"), [Member(transform_params=note), Watch()])
    run = await dry_run(model, ASKED.replace(context=context))
    assert run.options.context is context
    assert told == []


async def test_a_transform_that_makes_options_from_scratch_stays_in_the_dry_run() -> None:
    async def rewrite(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        return CallOptions.from_text("something else")

    async def note(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        options.context.at_end(print)
        return options

    members = [Member("rewrite", transform_params=rewrite), Member("note", transform_params=note)]
    run = await dry_run(wrap_model(ScriptedModel("never"), members), ASKED)
    assert run.changes == (Change("rewrite", True, ("prompt",)), Change("note", True, ()))


async def test_a_transform_that_returns_nothing_is_refused_in_a_dry_run_too() -> None:
    async def forget(options: CallOptions, kind: Kind, model: LanguageModel) -> None:
        pass

    with pytest.raises(ConfigError, match=r"forgets\.transform_params returns the options to go on with"):
        await dry_run(wrap_model(ScriptedModel("never"), [Member("forgets", transform_params=forget)]), ASKED)
