"""When a member fails: whose failure it is, and what raise, deny and skip make of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from neurolink_mw.errors import ConfigError, PolicyDenied, ServerError
from neurolink_mw.events import MemberFailed
from neurolink_mw.pipeline import OnError, Use, wrap_model
from neurolink_mw.protocol import CallOptions, GenerateResult, Kind, LanguageModel, PartStream, StreamResult, user
from neurolink_mw.testing import ScriptedModel

from .builders import Cached, Hook, Layer, Member, Retry, Watch, answer, chain, hooked, parts, run, said, text_of

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("kind", ["generate", "stream"])
REFUSED = "This request could not be checked, so it was refused."


class OwnFault(Exception):
    """What a member of these tests raises by itself. Its text is nobody's business."""

    def __init__(self) -> None:
        super().__init__("SECRET of the member")


async def fail(model: LanguageModel, options: CallOptions) -> GenerateResult:
    raise OwnFault


async def ask_and_fail(model: LanguageModel, options: CallOptions) -> GenerateResult:
    await model.do_generate(options)
    raise OwnFault


async def fail_on_the_way_in(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
    raise OwnFault


async def return_nothing(model: LanguageModel, options: CallOptions) -> Any:
    await model.do_generate(options)


async def return_no_options(options: CallOptions, kind: Kind, model: LanguageModel) -> Any:
    return None


def members(hook: Hook = fail) -> Member:
    return hooked(hook)


FAILING: dict[str, Callable[[], Member]] = {
    "in": lambda: Member(transform_params=fail_on_the_way_in),
    "before": lambda: hooked(fail),
    "after": lambda: hooked(ask_and_fail),
    "nothing": lambda: Member(wrap_generate=return_nothing, wrap_stream=return_nothing),
    "no options": lambda: Member(transform_params=return_no_options),
}
failing = pytest.mark.parametrize("make", FAILING.values(), ids=FAILING)


# -- raise, deny, skip


@both
@failing
async def test_raise_passes_the_failure_on(kind: Kind, make: Callable[[], Member]) -> None:
    watch = Watch()
    with pytest.raises((OwnFault, ConfigError)):
        await run(chain(ScriptedModel("Hi"), [Use(make(), timeout=60)], watch=watch), kind)
    assert watch.only.status == "error"
    assert [(finding.by, finding.handling) for finding in failures(watch)] == [("member", "raise")]


def failures(watch: Watch) -> list[MemberFailed]:
    return [finding for finding in watch.only.findings if isinstance(finding, MemberFailed)]


@both
@failing
async def test_deny_refuses_the_call(kind: Kind, make: Callable[[], Member]) -> None:
    watch = Watch()
    assert await text_of(chain(ScriptedModel("Hi"), [Use(make(), on_error="deny")], watch=watch), kind) == REFUSED
    assert isinstance(watch.only.error, PolicyDenied)
    assert (watch.only.status, watch.only.error.code, watch.only.error.by) == ("denied", "middleware-failed", "member")
    assert [finding.handling for finding in failures(watch)] == ["deny"]


@both
@failing
async def test_skip_goes_on_as_if_it_were_not_there(kind: Kind, make: Callable[[], Member]) -> None:
    watch, inside = Watch(), ScriptedModel("Hi")
    assert await text_of(chain(inside, [Use(make(), on_error="skip")], watch=watch), kind) == "Hi"
    assert (len(inside.calls), watch.only.status, watch.only.answered_by) == (1, "ok", "model")
    assert [finding.handling for finding in failures(watch)] == ["skip"]


@both
async def test_denied_by_a_failure_callers_get_an_exception_where_they_asked_for_one(kind: Kind) -> None:
    with pytest.raises(PolicyDenied, match=REFUSED):
        await run(wrap_model(ScriptedModel([]), [Use(members(), on_error="deny")], denied="raise"), kind)


@both
async def test_a_retry_further_out_does_not_retry_what_a_failure_denied(kind: Kind) -> None:
    inside = ScriptedModel([])
    assert await text_of(chain(inside, [Retry(3), Use(members(), on_error="deny")]), kind) == REFUSED


@both
@pytest.mark.parametrize("rule", ["raise", "deny", "skip"])
async def test_the_text_of_an_exception_is_nowhere_to_be_read(
    kind: Kind, rule: OnError, caplog: pytest.LogCaptureFixture
) -> None:
    watch = Watch()
    with caplog.at_level(logging.DEBUG):
        try:
            model = chain(ScriptedModel("Hi"), [Use(members(), on_error=rule, timeout=60)], watch=watch)
            text = await text_of(model, kind)
        except OwnFault:
            text = ""
    assert "SECRET" not in text + caplog.text + repr(watch.only) + repr(watch.only.findings)
    assert failures(watch)[0].error == "OwnFault"


# -- skip, generate


async def test_an_answer_that_was_given_stands() -> None:
    async def twice(model: LanguageModel, options: CallOptions) -> GenerateResult:
        await model.do_generate(options)
        await model.do_generate(options)
        raise OwnFault

    inside = ScriptedModel([answer("first"), answer("second")])
    assert await text_of(chain(inside, [Use(members(twice), on_error="skip")]), "generate") == "second"
    assert len(inside.calls) == 2


async def test_and_so_does_one_that_was_streamed_to_be_added_up() -> None:
    async def add_up(model: LanguageModel, options: CallOptions) -> GenerateResult:
        async with (await model.do_stream(options)).stream as stream:
            await anext(stream)
            await anext(stream)
            raise OwnFault

    inside = ScriptedModel([parts("a", "b")])
    assert await text_of(chain(inside, [Use(members(add_up), on_error="skip")]), "generate") == "ab"
    assert (len(inside.calls), inside.calls[0].closed) == (1, 1)


@both
async def test_if_the_model_failed_its_failure_is_raised(kind: Kind) -> None:
    async def hide(model: LanguageModel, options: CallOptions) -> GenerateResult:
        try:
            return await model.do_generate(options)
        except ServerError:
            raise OwnFault from None

    inside = ScriptedModel([ServerError("down")])
    with pytest.raises(ServerError, match="down"):
        await run(chain(inside, [Use(members(hide), on_error="skip")]), kind)
    assert len(inside.calls) == 1


@both
async def test_the_model_is_asked_with_the_options_as_they_were_before_this_layer(kind: Kind) -> None:
    async def warm(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        return options.replace(temperature=1.0)

    inside = ScriptedModel("Hi")
    outer, member = Member("outer", transform_params=cool), hooked(fail)
    member.transform_params = warm  # type: ignore[method-assign]
    await run(chain(inside, [outer, Use(member, on_error="skip")]), kind)
    assert inside.calls[0].options.temperature == 0.5


async def cool(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
    return options.replace(temperature=0.5)


@both
async def test_a_failure_of_the_model_after_the_member_was_skipped_is_the_models(kind: Kind) -> None:
    watch = Watch()
    with pytest.raises(ServerError):
        await run(chain(ScriptedModel([ServerError("down")]), [Use(members(), on_error="skip")], watch=watch), kind)
    assert [finding.handling for finding in failures(watch)] == ["skip"]


@both
async def test_a_helper_call_is_no_answer(kind: Kind) -> None:
    async def consult(model: LanguageModel, options: CallOptions) -> GenerateResult:
        await model.do_generate(options.for_helper([user("?")]))
        raise OwnFault

    inside = ScriptedModel([answer("helped"), answer("Hi")])
    assert await text_of(chain(inside, [Use(members(consult), on_error="skip")]), kind) == "Hi"


@both
async def test_nor_is_the_failure_of_one_the_failure_of_the_call(kind: Kind) -> None:
    async def consult(model: LanguageModel, options: CallOptions) -> GenerateResult:
        try:
            await model.do_generate(options.for_helper([user("?")]))
        except ServerError:
            await model.do_generate(options)
        raise OwnFault

    inside = ScriptedModel([ServerError("down"), answer("Hi")])
    assert await text_of(chain(inside, [Use(members(consult), on_error="skip")]), kind) == "Hi"


# -- whose failure it is


async def pass_on(model: LanguageModel, options: CallOptions) -> GenerateResult:
    return await model.do_generate(options)


async def wrap_it(model: LanguageModel, options: CallOptions) -> GenerateResult:
    try:
        return await model.do_generate(options)
    except ServerError as error:
        raise OwnFault from error


async def wrap_it_twice(model: LanguageModel, options: CallOptions) -> GenerateResult:
    try:
        return await wrap_it(model, options)
    except OwnFault as error:
        raise KeyError from error


async def group_it(model: LanguageModel, options: CallOptions) -> GenerateResult:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pass_on, model, options)
    raise AssertionError


async def group_the_cause(model: LanguageModel, options: CallOptions) -> GenerateResult:
    try:
        return await model.do_generate(options)
    except ServerError as error:
        raise OwnFault from ExceptionGroup("tries", [ValueError(), error])


async def keep_for_later(model: LanguageModel, options: CallOptions) -> GenerateResult:
    kept: Exception | None = None
    try:
        return await model.do_generate(options)
    except ServerError as error:
        kept = error
    raise kept


@both
@pytest.mark.parametrize("rule", ["deny", "skip"])
@pytest.mark.parametrize(
    "hook", [pass_on, wrap_it, wrap_it_twice, group_it, group_the_cause, keep_for_later], ids=lambda hook: hook.__name__
)
async def test_a_failure_of_the_model_is_never_the_members(kind: Kind, rule: OnError, hook: Hook) -> None:
    watch, inside = Watch(), ScriptedModel([ServerError("down")])
    with pytest.raises((ServerError, OwnFault, KeyError, ExceptionGroup)):
        await run(chain(inside, [Use(members(hook), on_error=rule)], watch=watch), kind)
    assert (watch.only.status, watch.only.findings, len(inside.calls)) == ("error", (), 1)


@both
async def test_one_that_was_not_raised_from_it_is_the_members_own(kind: Kind) -> None:
    async def hide(model: LanguageModel, options: CallOptions) -> GenerateResult:
        try:
            return await model.do_generate(options)
        except ServerError:
            raise OwnFault  # noqa: B904  # while it was handled is not because of it

    assert await text_of(chain(ScriptedModel([ServerError("down")]), [Use(members(hide), on_error="deny")]), kind) == (
        REFUSED
    )


@both
async def test_causes_that_go_round_in_a_circle_are_no_trouble(kind: Kind) -> None:
    async def circle(model: LanguageModel, options: CallOptions) -> GenerateResult:
        first, second = OwnFault(), OwnFault()
        first.__cause__, second.__cause__ = second, first
        raise first

    assert await text_of(chain(ScriptedModel("Hi"), [Use(members(circle), on_error="skip")]), kind) == "Hi"


@both
@pytest.mark.parametrize("rule", ["deny", "skip"])
async def test_who_returns_no_answer_further_in_failed_and_not_the_member(kind: Kind, rule: OnError) -> None:
    watch, broken = Watch(), Member("broken", wrap_generate=return_nothing, wrap_stream=return_nothing)
    with pytest.raises(ConfigError, match=r"do_(generate|stream) of a member or model returned NoneType"):
        await run(chain(ScriptedModel("Hi"), [Use(Layer(), on_error=rule), broken], watch=watch), kind)
    assert watch.only.findings == ()


@both
@pytest.mark.parametrize("rule", ["raise", "deny", "skip"])
async def test_a_cancellation_is_nobodys_failure(kind: Kind, rule: OnError) -> None:
    async def wait(model: LanguageModel, options: CallOptions) -> GenerateResult:
        scope.cancel()
        await anyio.sleep_forever()
        raise AssertionError

    watch = Watch()
    with anyio.CancelScope() as scope:
        await run(chain(ScriptedModel([]), [Use(members(wait), on_error=rule, timeout=60)], watch=watch), kind)
    assert (watch.only.status, watch.only.findings) == ("cancelled", ())


@both
@pytest.mark.parametrize("rule", ["deny", "skip"])
async def test_a_policys_denial_is_no_failure(kind: Kind, rule: OnError) -> None:
    async def deny(model: LanguageModel, options: CallOptions) -> GenerateResult:
        raise options.context.deny("no", "I cannot.")

    async def refuse(model: LanguageModel, options: CallOptions) -> GenerateResult:
        raise PolicyDenied("I cannot.", code="no")

    for hook in (deny, refuse):
        watch = Watch()
        model = chain(ScriptedModel([]), [Retry(3), Use(members(hook), on_error=rule)], watch=watch)
        assert await text_of(model, kind) == "I cannot."
        assert failures(watch) == []


@both
async def test_what_stops_the_process_is_not_skipped(kind: Kind) -> None:
    async def stop(model: LanguageModel, options: CallOptions) -> GenerateResult:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await run(chain(ScriptedModel("Hi"), [Use(members(stop), on_error="skip")]), kind)


# -- who answered


@both
async def test_a_member_with_rules_that_answers_is_named(kind: Kind) -> None:
    watch = Watch()
    await run(chain(ScriptedModel([]), [Use(Cached(answer("hit")), on_error="skip")], watch=watch), kind)
    assert (watch.only.answered_by, watch.only.model_calls) == ("cached", 0)


async def test_one_that_streams_to_add_up_did_not_answer_itself() -> None:
    class Adds(Cached):
        async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
            async with (await model.do_stream(options)).stream as stream:
                return answer(said([part async for part in stream]))

    watch = Watch()
    assert await text_of(chain(ScriptedModel("Hi"), [Use(Adds(), on_error="skip")], watch=watch), "generate") == "Hi"
    assert watch.only.answered_by == "model"


# -- streams that were opened before it failed


@pytest.mark.parametrize("rule", ["raise", "deny"])
async def test_what_was_opened_is_closed_where_the_member_fails(rule: OnError) -> None:
    opened: list[PartStream] = []

    async def leave(model: LanguageModel, options: CallOptions) -> StreamResult:
        opened.append((await model.do_stream(options)).stream)
        if len(opened) == 1:
            raise OwnFault
        return StreamResult(opened[-1])

    inside = ScriptedModel([parts("a"), parts("b")])
    model = chain(inside, [Retry(2), Use(Member(wrap_stream=leave), on_error=rule, timeout=60)])
    assert await text_of(model, "stream") == {"raise": "b", "deny": REFUSED}[rule]
    assert [call.closed for call in inside.calls] == ([1, 1] if rule == "raise" else [1])


@pytest.mark.parametrize("rule", ["skip", "deny"])
async def test_a_stream_that_a_member_added_up_only_in_part_is_closed(rule: OnError) -> None:
    async def first_part(model: LanguageModel, options: CallOptions) -> GenerateResult:
        async with (await model.do_stream(options)).stream as stream:
            return answer((await anext(stream)).type)

    inside = ScriptedModel([parts("a", "b")])
    model = chain(inside, [Use(members(first_part), on_error=rule)])
    assert await text_of(model, "generate") == "stream-start"
    assert inside.calls[0].closed == 1
