"""Events: what is told when, that they hold nothing of a call, and that nobody is hurt by who listens."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import anyio
import pytest

from neurolink_mw import events
from neurolink_mw.errors import ServerError
from neurolink_mw.events import CallEnded, Decision, Event, MemberFailed
from neurolink_mw.pipeline import BuildContext, Surroundings, Use, wrap_model
from neurolink_mw.pipeline import Member as AnyMember
from neurolink_mw.protocol import CallOptions, GenerateResult, Kind, LanguageModel, user
from neurolink_mw.testing import ScriptedModel

from .builders import ASKED, COST, NO_TOKENS, Cached, Layer, Member, Retry, Watch, answer, hooked, parts, run, text_of

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])

EXAMPLES: list[Event] = [
    Decision("r", "policy", "denied", "no", "call"),
    MemberFailed("r", "member", "ValueError", "skip"),
    CallEnded("r", "generate", "ok", "p", "m", "model", 1, 1, COST, 0.5),
    events.CacheLookup("r", "cache", True, 3.0),
    events.Retry("r", "retry", 1, 0.5, "ServerError", 503),
    events.Fallback("r", "fallback", "a:b", "c:d", "ServerError"),
    events.ToolExecuted("r", "look_up", "call-1", "ok", 0.1),
    events.StepEnded("r", 1, "stop", 0, COST),
]


def telling(heard: list[Event]) -> Surroundings:
    return Surroundings(events=heard.append)


def told(model: LanguageModel, *members: AnyMember | Use, heard: list[Event]) -> LanguageModel:
    return wrap_model(model, members, surroundings=telling(heard))


async def deny(model: LanguageModel, options: CallOptions) -> GenerateResult:
    raise options.context.deny("no", "I cannot.", by="policy")


async def fail(model: LanguageModel, options: CallOptions) -> GenerateResult:
    raise ZeroDivisionError("SECRET")


def of(heard: list[Event], kind: type[Event]) -> list[Event]:
    return [event for event in heard if type(event) is kind]


# -- what they are


def all_types() -> set[type[Event]]:
    return {
        one for one in vars(events).values() if isinstance(one, type) and issubclass(one, Event) and one is not Event
    }


def test_there_is_an_example_of_each_type() -> None:
    assert {type(event) for event in EXAMPLES} == all_types()


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.type)
def test_an_event_cannot_be_changed_and_can_be_compared(event: Event) -> None:
    with pytest.raises(AttributeError):
        event.request_id = "other"  # type: ignore[misc]
    assert event == event.replace(request_id="r")
    assert hash(event) == hash(event.replace(request_id="r"))
    assert not hasattr(event, "__dict__")


def test_every_type_has_a_name_of_its_own() -> None:
    assert len({one.type for one in all_types()}) == len(all_types())


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.type)
def test_its_repr_shows_all_that_is_set(event: Event) -> None:
    for field in dataclasses.fields(event):  # type: ignore[arg-type]
        assert (f"{field.name}=" in repr(event)) == (getattr(event, field.name) is not None)


# -- calls


@both
async def test_each_call_is_told_once_when_it_ends(kind: Kind) -> None:
    heard: list[Event] = []
    await run(told(ScriptedModel([answer()]), Layer(), heard=heard), kind)
    (event,) = heard
    assert isinstance(event, CallEnded)
    assert (event.kind, event.status, event.answered_by) == (kind, "ok", "model")
    assert (event.attempts, event.model_calls, event.usage, event.finish_reason) == (1, 1, COST, "stop")
    assert (event.provider, event.model_id, event.helper, event.error) == ("scripted", "scripted-1", False, None)
    assert event.request_id


@both
async def test_a_call_that_nobody_stands_around_is_told_too(kind: Kind) -> None:
    heard: list[Event] = []
    model = wrap_model(ScriptedModel([answer()]), [], provider="shown", surroundings=telling(heard))
    await run(model, kind)
    assert [type(event) for event in heard] == [CallEnded]


@both
async def test_a_call_that_fails_is_told_by_the_name_of_its_error(kind: Kind) -> None:
    heard: list[Event] = []
    with pytest.raises(ServerError):
        await run(told(ScriptedModel([ServerError("SECRET")]), Layer(), heard=heard), kind)
    (event,) = heard
    assert isinstance(event, CallEnded)
    assert (event.status, event.error) == ("error", "ServerError")
    assert "SECRET" not in repr(heard)


@both
async def test_a_cancelled_one_too(kind: Kind) -> None:
    async def wait(model: LanguageModel, options: CallOptions) -> GenerateResult:
        scope.cancel()
        await anyio.sleep_forever()
        raise AssertionError

    heard: list[Event] = []
    with anyio.CancelScope() as scope:
        await run(told(ScriptedModel([]), hooked(wait), heard=heard), kind)
    assert [event.status for event in heard if isinstance(event, CallEnded)] == ["cancelled"]


async def test_and_one_that_is_left() -> None:
    heard: list[Event] = []
    async with (await told(ScriptedModel([parts("a")]), Layer(), heard=heard).do_stream(ASKED)).stream as stream:
        await anext(stream)
    assert [event.status for event in heard if isinstance(event, CallEnded)] == ["abandoned"]


@both
async def test_chains_in_chains_tell_their_own_and_helper_calls_are_marked(kind: Kind) -> None:
    heard: list[Event] = []
    judge = told(ScriptedModel("yes"), Layer("judging"), heard=heard)

    async def ask(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        await judge.do_generate(options.for_helper([user("?")]))
        return options

    inner = told(ScriptedModel("Hi"), Layer("inner"), heard=heard)
    await run(told(inner, Member(transform_params=ask, needs_scope=True), heard=heard), kind)
    ended = [event for event in heard if isinstance(event, CallEnded)]
    assert [event.helper for event in ended] == [True, False, False]
    assert len({event.request_id for event in ended}) == 1


@both
async def test_an_answer_that_cost_nothing_says_so(kind: Kind) -> None:
    heard: list[Event] = []
    await run(told(ScriptedModel([]), Cached(answer("hit")), heard=heard), kind)
    (event,) = heard
    assert isinstance(event, CallEnded)
    assert (event.answered_by, event.model_calls, event.usage) == ("cached", 0, NO_TOKENS)


# -- decisions and failures


@both
async def test_a_denial_is_told_before_the_call_ends(kind: Kind) -> None:
    heard: list[Event] = []
    await run(told(ScriptedModel([]), hooked(deny), heard=heard), kind)
    decision, ended = heard
    assert decision == Decision(decision.request_id, "policy", "denied", "no", "call")
    assert isinstance(ended, CallEnded)
    assert (ended.status, ended.error, ended.request_id) == ("denied", "PolicyDenied", decision.request_id)
    assert "I cannot" not in repr(heard)


@both
async def test_a_failure_of_a_member_is_told_with_what_was_made_of_it(kind: Kind) -> None:
    heard: list[Event] = []
    await run(told(ScriptedModel("Hi"), Use(hooked(fail), on_error="skip"), heard=heard), kind)
    failed, _ = heard
    assert failed == MemberFailed(failed.request_id, "member", "ZeroDivisionError", "skip")
    assert "SECRET" not in repr(heard)


@both
@pytest.mark.parametrize("who", ["inner", "outer", "both"])
async def test_what_happens_further_in_is_told_once_where_somebody_listens(kind: Kind, who: str) -> None:
    heard: list[Event] = []
    inner = wrap_model(ScriptedModel([]), [hooked(deny)], surroundings=telling(heard) if who != "outer" else None)
    outer = wrap_model(inner, [Layer()], surroundings=telling(heard) if who != "inner" else None)
    await run(outer, kind)
    assert len(of(heard, Decision)) == 1


@both
async def test_a_middleware_tells_events_of_its_own(kind: Kind) -> None:
    class Looks(Layer):
        def bind(self, build: BuildContext) -> None:
            self.tell = build.events

        async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
            self.tell(events.CacheLookup(options.context.request_id, self.id, False))
            return options

    heard: list[Event] = []
    await run(told(ScriptedModel("Hi"), Looks(), heard=heard), kind)
    await run(wrap_model(ScriptedModel("Hi"), [Looks()]), kind)  # where nobody listens it goes nowhere
    assert [type(event) for event in heard] == [events.CacheLookup, CallEnded]
    assert len({event.request_id for event in heard}) == 1


# -- who listens


def failing_sink(event: Event) -> None:
    raise ZeroDivisionError


CALLS: dict[str, tuple[Callable[[], AnyMember | Use], str]] = {
    "an answer": (Layer, "Hi"),
    "a denial": (lambda: hooked(deny), "I cannot."),
    "a denial of who is skipped": (lambda: Use(hooked(deny), on_error="skip"), "I cannot."),
    "a failure": (lambda: Use(hooked(fail), on_error="skip"), "Hi"),
    "a failure that denies": (
        lambda: Use(hooked(fail), on_error="deny"),
        "This request could not be checked, so it was refused.",
    ),
}


@both
@pytest.mark.parametrize(("make", "said"), CALLS.values(), ids=CALLS)
async def test_a_listener_that_raises_changes_nothing(
    kind: Kind, make: Callable[[], AnyMember | Use], said: str
) -> None:
    watch = Watch()
    members = [watch, Retry(2), make()]
    model = wrap_model(ScriptedModel("Hi"), members, surroundings=Surroundings(events=failing_sink))
    assert await text_of(model, kind) == said
    assert watch.only.status == ("denied" if said != "Hi" else "ok")


@both
async def test_nor_does_it_hurt_a_middleware_that_tells_an_event(kind: Kind) -> None:
    class Tells(Layer):
        def bind(self, build: BuildContext) -> None:
            build.events(events.CacheLookup("r", self.id, False))

    model = wrap_model(ScriptedModel("Hi"), [Tells()], surroundings=Surroundings(events=failing_sink))
    assert await text_of(model, kind) == "Hi"
