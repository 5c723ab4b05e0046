"""Denials in chains around chains, in helper calls, and before members that see them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from neurolink_mw.errors import PolicyDenied
from neurolink_mw.pipeline import Member as AnyMember
from neurolink_mw.pipeline import Use, wrap_model
from neurolink_mw.protocol import (
    CallOptions,
    GenerateResult,
    Kind,
    LanguageModel,
    PartStream,
    StreamPart,
    StreamResult,
    user,
)
from neurolink_mw.testing import HOLD, ScriptedModel

from .builders import (
    Handler,
    Layer,
    Member,
    Retry,
    Watch,
    answer,
    answer_and_deny,
    chain,
    deny,
    denying_at,
    hooked,
    parts,
    policy,
    read,
    said,
    streaming,
    swallow,
    text_of,
)

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])


async def deny_on_the_way_in(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
    raise options.context.deny("no", "I cannot.", by="policy")


# -- chains in chains


@both
@pytest.mark.parametrize("inner_denied", ["refuse", "raise"])
async def test_a_chain_further_in_passes_a_denial_on(kind: Kind, inner_denied: str) -> None:
    inner_watch, outer_watch = Watch("inner"), Watch("outer")
    inner = wrap_model(ScriptedModel([]), [inner_watch, policy()], denied=inner_denied)  # type: ignore[arg-type]
    assert await text_of(chain(inner, [Retry(3)], watch=outer_watch), kind) == "I cannot."
    assert (inner_watch.only.status, outer_watch.only.status) == ("denied", "denied")
    assert [finding.code for finding in outer_watch.only.findings] == ["no"]  # type: ignore[union-attr]


@both
async def test_what_is_denied_further_in_is_latched_further_out(kind: Kind) -> None:
    inner = wrap_model(ScriptedModel([]), [policy()])
    assert await text_of(chain(inner, [hooked(swallow, id="outer")], watch=Watch()), "generate") == "I cannot."


@both
async def test_a_chain_without_listeners_around_it_still_never_takes_a_refusal_for_an_answer(kind: Kind) -> None:
    answered: list[object] = []

    async def keep(model: LanguageModel, options: CallOptions) -> GenerateResult:
        answered.append(await model.do_generate(options))
        return answer("kept")

    async def keep_streamed(model: LanguageModel, options: CallOptions) -> StreamResult:
        answered.append([part async for part in (await model.do_stream(options)).stream])
        return StreamResult.of(answer("kept"))

    model = wrap_model(wrap_model(ScriptedModel([]), [policy()]), [hooked(keep, keep_streamed)])
    assert await text_of(model, kind) == "I cannot."
    assert answered == []


# -- helper calls


def judging(judge: LanguageModel | None, journal: list[str]) -> Member:
    """Asks a judge, or the next model in, before each call."""

    async def ask(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        try:
            said = await (judge or model).do_generate(options.for_helper([user("?")]))
            journal.append(said.text)
        except PolicyDenied as error:
            journal.append(f"denied: {error.code}")
        return options

    return Member("judging", transform_params=ask)


@both
@pytest.mark.parametrize(("denied", "heard"), [("refuse", "I cannot."), ("raise", "denied: no")])
async def test_a_helper_call_that_is_denied_does_not_deny_the_call(kind: Kind, denied: str, heard: str) -> None:
    journal: list[str] = []
    judge = wrap_model(ScriptedModel([]), [policy()], denied=denied)  # type: ignore[arg-type]
    watch = Watch()
    model = chain(ScriptedModel(["Hi"]), [judging(judge, journal)], watch=watch)
    assert await text_of(model, kind) == "Hi"
    assert (journal, watch.only.status) == ([heard], "ok")


@both
@pytest.mark.parametrize("rule", ["skip", "deny"])
async def test_a_helper_call_that_was_denied_by_an_error_fails_the_member_alone(kind: Kind, rule: str) -> None:
    judge = wrap_model(ScriptedModel([]), [policy()], denied="raise")

    async def ask(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        await judge.do_generate(options.for_helper([user("?")]))
        return options

    member: AnyMember = Member("judging", transform_params=ask)
    model = chain(ScriptedModel(["Hi"]), [Use(member, on_error=rule)], watch=Watch())  # type: ignore[arg-type]
    expected = {"skip": "Hi", "deny": "This request could not be checked, so it was refused."}[rule]
    assert await text_of(model, kind) == expected


@both
@pytest.mark.parametrize("denies", ["in", "wrap"])
async def test_nor_does_one_that_goes_to_the_next_model_in(kind: Kind, denies: str) -> None:
    """A policy further in denies the helper's question, and not the user's."""

    def denied(options: CallOptions) -> bool:
        return options.context.helper

    async def on_the_way_in(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        return await deny_on_the_way_in(options, kind, model) if denied(options) else options

    async def wrap(model: LanguageModel, options: CallOptions) -> GenerateResult:
        return await (deny(model, options) if denied(options) else model.do_generate(options))

    hooks = {"transform_params": on_the_way_in} if denies == "in" else {"wrap_generate": wrap}
    journal: list[str] = []
    watch = Watch()
    members = [judging(None, journal), Layer(), Member("policy", **hooks)]
    assert await text_of(chain(ScriptedModel(["Hi"]), members, watch=watch), kind) == "Hi"
    assert (journal, watch.only.status) == (["I cannot."], "ok")


# -- who may handle it


@both
async def test_who_sees_denials_may_answer_otherwise(kind: Kind) -> None:
    handler, watch = Handler(), Watch()
    assert await text_of(chain(ScriptedModel([]), [handler, policy()], watch=watch), kind) == "instead"
    assert [(error.code, error.by, str(error)) for error in handler.seen] == [("no", "policy", "I cannot.")]
    assert watch.only.status == "ok"
    assert [finding.code for finding in watch.only.findings] == ["no"]  # type: ignore[union-attr]


@both
async def test_or_raise_it_again_and_then_nobody_can_swallow_it_either(kind: Kind) -> None:
    handler = Handler(handles=False)
    members = [hooked(swallow_failures, id="outer"), Retry(3), handler, policy()]
    assert await text_of(chain(ScriptedModel([]), members), kind) == "I cannot."
    assert len(handler.seen) == 1


async def swallow_failures(model: LanguageModel, options: CallOptions) -> GenerateResult:
    try:
        return await model.do_generate(options)
    except Exception:
        return answer("swallowed")


@both
async def test_a_denial_that_was_swallowed_further_in_is_seen_too(kind: Kind) -> None:
    handler = Handler()
    members = [handler, hooked(swallow, id="swallower"), policy()]
    assert await text_of(chain(ScriptedModel([]), members), kind) == "instead"
    assert [error.code for error in handler.seen] == ["no"]


@both
async def test_a_denial_of_somebody_further_out_is_not_for_it_to_handle(kind: Kind) -> None:
    async def note(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        options.context.deny("outer", "Not at all.")
        return options

    handler = Handler()
    members = [Member("outer", transform_params=note), handler, policy()]
    assert await text_of(chain(ScriptedModel([]), members), kind) == "Not at all."
    assert [error.code for error in handler.seen] == ["no"]


@both
async def test_who_fails_before_it_handled_a_denial_is_not_skipped_past_it(kind: Kind) -> None:
    class Fails(Handler):
        def _answer(self, error: PolicyDenied) -> GenerateResult:
            raise ZeroDivisionError

    for inner in ([policy()], [hooked(swallow, id="swallower"), policy()], [policy(answer_and_deny)]):
        model = chain(ScriptedModel(["secret"]), [Use(Fails(), on_error="skip"), *inner])
        assert await text_of(model, kind) == "I cannot."


# -- in the middle of a stream


async def test_who_sees_denials_sees_one_in_the_middle() -> None:
    handler, watch = Handler(), Watch()
    inside = ScriptedModel([[*parts("secret", finish=None), HOLD]])
    assert said(await read(chain(inside, [handler, denying_at(3)], watch=watch))) == "instead"
    assert [error.code for error in handler.seen] == ["no"]
    assert (watch.only.status, inside.calls[0].closed) == ("ok", 1)


async def test_and_one_that_was_swallowed_in_the_middle() -> None:
    async def swallow(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        async for part in stream:
            if part.type == "text-delta":
                options.context.deny("no", "I cannot.")
            yield part

    handler = Handler()
    assert said(await read(chain(ScriptedModel([parts("secret")]), [handler, streaming(swallow)]))) == "instead"
    assert [error.code for error in handler.seen] == ["no"]
