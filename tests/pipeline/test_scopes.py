"""Scopes: opened only where somebody needs one, one per call, and `at_end` reports to the outermost."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest

from neurolink_mw.errors import ConfigError
from neurolink_mw.pipeline import Middleware, Outcome, WrappedModel, wrap_model
from neurolink_mw.protocol import (
    CallContext,
    CallOptions,
    GenerateResult,
    Kind,
    LanguageModel,
    PartStream,
    Slot,
    StreamPart,
    StreamResult,
    user,
)
from neurolink_mw.testing import ScriptedModel

from .builders import ASKED, Layer, Member, Watch, answer, chain, collected, dropping, parts, read, run

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])


def scoped(*members: Middleware) -> bool:
    model = wrap_model(ScriptedModel("Hi"), members)
    assert isinstance(model, WrappedModel)
    return model.scoped


# -- who needs one


class Mentions(Middleware):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        options.context.set(SEEN, True)
        return await model.do_generate(options)


SEEN = Slot("seen", False)


class Nested(Middleware):
    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        async def watch(stream: PartStream) -> AsyncIterator[StreamPart]:
            async for part in stream:
                options.context.set(SEEN, True)
                yield part

        return (await model.do_stream(options)).through(watch)


class InALambda(Middleware):
    def bind(self, build: object) -> None:
        self.key = lambda options: options.context.request_id


class InAProperty(Middleware):
    options = ASKED

    @property
    def request_id(self) -> str:
        return self.options.context.request_id


class InAStaticMethod(Middleware):
    @staticmethod
    def key(options: CallOptions) -> str:
        return options.context.request_id


def traced(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    async def call(*args: Any) -> Any:
        return await fn(*args)

    return call


class Decorated(Middleware):
    @traced
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        options.context.set(SEEN, True)
        return await model.do_generate(options)


class Inherits(Mentions):
    pass


async def mentioning(model: LanguageModel, options: CallOptions) -> GenerateResult:
    options.context.set(SEEN, True)
    return await model.do_generate(options)


@pytest.mark.parametrize(
    "member",
    [
        *(Mentions(), Nested(), InALambda(), InAProperty(), InAStaticMethod(), Decorated(), Inherits()),
        *(Member("instance", wrap_generate=mentioning), Watch()),
    ],
    ids=lambda member: type(member).__name__,
)
def test_a_member_that_mentions_the_context_or_listens_gets_a_scope(member: Middleware) -> None:
    assert scoped(member)


def test_members_that_do_not_are_spared_one() -> None:
    assert not scoped(Layer(), Layer("other"))


def test_a_member_may_say_for_itself_whether_it_needs_a_scope() -> None:
    class Needs(Middleware):
        needs_scope = True

    class Declines(Mentions):
        needs_scope = False

    assert scoped(Needs())
    assert not scoped(Declines())


@pytest.mark.parametrize("use", ["at_end", "set"])
async def test_without_a_scope_the_context_says_how_to_get_one(use: str) -> None:
    async def sly(model: LanguageModel, options: CallOptions) -> GenerateResult:
        context = getattr(options, "con" + "text")
        context.at_end(print) if use == "at_end" else context.set(SEEN, True)
        return await model.do_generate(options)

    with pytest.raises(ConfigError, match=r"needs a scope.*set `needs_scope = True` on the middleware"):
        await wrap_model(ScriptedModel("Hi"), [Member(wrap_generate=sly)]).do_generate(ASKED)


@both
async def test_members_of_one_call_share_slots_and_calls_do_not(kind: Kind) -> None:
    count = Slot("count", 0)
    seen: list[int] = []

    async def add(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        seen.append(options.context.get(count))
        options.context.set(count, seen[-1] + 1)
        return options

    model = wrap_model(
        ScriptedModel("Hi", repeat=True), [Member("a", transform_params=add), Member("b", transform_params=add)]
    )
    await run(model, kind)
    await run(model, kind)
    assert seen == [0, 1, 0, 1]


# -- at_end


def ending(fn: Callable[[Outcome], Any], id: str = "ending") -> Member:
    async def register(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        options.context.at_end(fn)
        return options

    return Member(id, transform_params=register)


@both
async def test_at_end_is_told_the_outcome_once(kind: Kind) -> None:
    told: list[Outcome] = []
    await run(wrap_model(ScriptedModel([answer()]), [ending(told.append)]), kind)
    assert [outcome.status for outcome in told] == ["ok"]


@both
async def test_at_end_is_told_of_a_failure(kind: Kind) -> None:
    told: list[Outcome] = []
    with pytest.raises(ZeroDivisionError):
        await run(wrap_model(ScriptedModel([ZeroDivisionError()]), [ending(told.append)]), kind)
    assert [outcome.status for outcome in told] == ["error"]


@both
async def test_at_end_may_be_async(kind: Kind) -> None:
    told: list[str] = []

    async def note(outcome: Outcome) -> None:
        await anyio.lowlevel.checkpoint()
        told.append(outcome.status)

    await run(wrap_model(ScriptedModel([answer()]), [ending(note)]), kind)
    assert told == ["ok"]


@both
async def test_at_end_in_nested_scopes_reports_to_the_outermost_and_once(kind: Kind) -> None:
    told: list[tuple[str, Outcome]] = []
    inner_watch, outer_watch = Watch("inner-watch"), Watch("outer-watch")
    inner = chain(
        ScriptedModel([answer()]), [ending(lambda outcome: told.append(("inner", outcome)), "inner")], watch=inner_watch
    )
    model = chain(inner, [ending(lambda outcome: told.append(("outer", outcome)), "outer")], watch=outer_watch)
    await run(model, kind)
    assert [who for who, _ in told] == ["outer", "inner"]
    assert all(outcome is outer_watch.only for _, outcome in told)
    assert inner_watch.only is not outer_watch.only


async def test_at_end_of_a_helper_call_reports_to_the_helper_call() -> None:
    told: list[Outcome] = []
    judge = chain(ScriptedModel("yes"), [ending(told.append)], watch=Watch("judging"))

    async def ask(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        await judge.do_generate(options.for_helper([user("?")]))
        assert [outcome.status for outcome in told] == ["ok"]
        return options

    watch = Watch()
    await chain(ScriptedModel("Hi"), [Member(transform_params=ask)], watch=watch).do_generate(ASKED)
    assert len(told) == 1
    assert told[0] is not watch.only


async def test_at_end_can_be_asked_for_while_a_stream_runs() -> None:
    told: list[Outcome] = []

    class Late(Middleware):
        async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
            async def watch(stream: PartStream) -> AsyncIterator[StreamPart]:
                options.context.at_end(told.append)
                async for part in stream:
                    yield part

            return (await model.do_stream(options)).through(watch)

    await read(wrap_model(ScriptedModel([parts("a")]), [Late()]))
    assert [outcome.status for outcome in told] == ["ok"]


@both
@pytest.mark.parametrize("listened", [True, False])
async def test_at_end_after_the_end_is_refused_and_not_forgotten(kind: Kind, listened: bool) -> None:
    contexts: list[CallContext] = []

    async def keep(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        contexts.append(options.context)
        return options

    members = [Member(transform_params=keep), *([Watch()] if listened else [])]
    await run(wrap_model(ScriptedModel("Hi"), members), kind)
    with pytest.raises(ConfigError, match=r"context\.at_end came too late"):
        contexts[0].at_end(print)


async def test_at_end_of_a_dropped_stream_is_told() -> None:
    told: list[str] = []
    with dropping():
        model = wrap_model(ScriptedModel([parts("a")]), [ending(lambda outcome: told.append(outcome.status))])
        await model.do_stream(ASKED)
        await collected(lambda: told)
    assert told == ["abandoned"]


async def test_an_at_end_that_raises_changes_nothing_and_the_others_are_told() -> None:
    told: list[str] = []

    def fail(outcome: Outcome) -> None:
        raise ZeroDivisionError

    members = [ending(fail, "a"), ending(lambda outcome: told.append(outcome.status), "b")]
    result = await wrap_model(ScriptedModel("Hi"), members).do_generate(ASKED)
    assert (result.text, told) == ("Hi", ["ok"])
