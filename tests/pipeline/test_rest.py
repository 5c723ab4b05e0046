"""A member that fails too often is left alone for a while."""

from __future__ import annotations

import pytest

from neurolink_mw.pipeline import OnError, Surroundings, Use, wrap_model
from neurolink_mw.protocol import CallOptions, Kind, LanguageModel
from neurolink_mw.testing import ScriptedModel

from .builders import ASKED, Layer, Watch, chain, run, text_of

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])
REFUSED = "This request could not be checked, so it was refused."


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Flaky(Layer):
    """Fails as long as it is broken."""

    broken = True

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        self.asked += 1
        if self.broken:
            raise ZeroDivisionError
        return options


def resting(member: Layer, clock: Clock, *, on_error: OnError = "skip", watch: Watch | None = None) -> LanguageModel:
    place = Use(member, on_error=on_error, max_failures=2)
    watching = [watch] if watch else []
    return wrap_model(ScriptedModel("Hi", repeat=True), [*watching, place], surroundings=Surroundings(clock=clock))


@both
async def test_after_too_many_failures_in_a_row_it_is_left_alone_for_a_while(kind: Kind) -> None:
    member, clock, watch = Flaky(), Clock(), Watch()
    model = resting(member, clock, watch=watch)
    for _ in range(5):
        assert await text_of(model, kind) == "Hi"
    assert member.asked == 2
    tried = [[finding.tried for finding in outcome.findings] for outcome in watch.outcomes]  # type: ignore[union-attr]
    assert tried == [[True], [True], [False], [False], [False]]


@both
async def test_deny_then_denies_at_once(kind: Kind) -> None:
    member = Flaky()
    model = resting(member, Clock(), on_error="deny")
    assert [await text_of(model, kind) for _ in range(4)] == [REFUSED] * 4
    assert member.asked == 2


@both
async def test_when_the_time_is_up_one_call_tries_it_again(kind: Kind) -> None:
    member, clock = Flaky(), Clock()
    model = resting(member, clock)
    for clock.now in (0.0, 1.0, 30.9, 31.0, 31.1, 60.9, 61.0):
        await run(model, kind)
    assert member.asked == 4


@both
async def test_and_if_it_works_all_do(kind: Kind) -> None:
    member, clock = Flaky(), Clock()
    model = resting(member, clock)
    for clock.now in (0.0, 0.0, 30.0, 30.0):
        member.broken = clock.now == 0.0
        await run(model, kind)
    assert member.asked == 4


@both
async def test_failures_that_are_not_in_a_row_do_not_count(kind: Kind) -> None:
    member = Flaky()
    model = resting(member, Clock())
    for member.broken in (True, False, True, False, True, False):
        await run(model, kind)
    assert member.asked == 6


async def test_a_stream_that_is_left_at_its_finish_shows_that_the_member_works() -> None:
    member, clock = Flaky(), Clock()
    model = resting(member, clock)
    for clock.now in (0.0, 0.0, 30.0, 30.0):
        member.broken = clock.now == 0.0
        async with (await model.do_stream(ASKED)).stream as stream:
            async for part in stream:
                if part.type == "finish":
                    break
    assert member.asked == 4


@both
async def test_a_policy_that_denies_works(kind: Kind) -> None:
    class Policy(Flaky):
        async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
            self.asked += 1
            if self.broken:
                raise ZeroDivisionError
            raise options.context.deny("no", "I cannot.")

    member = Policy()
    model = resting(member, Clock())
    for member.broken in (True, False, True, False):
        await run(model, kind)
    assert member.asked == 4


@both
async def test_a_model_that_fails_is_no_failure_of_the_member(kind: Kind) -> None:
    member = Flaky()
    member.broken = False
    place = Use(member, on_error="skip", max_failures=1)
    model = chain(ScriptedModel([ZeroDivisionError()], repeat=True), [place])
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            await run(model, kind)
    assert member.asked == 3
