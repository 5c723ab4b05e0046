"""A stream that is refused: what the caller gets of it, how it ends, and that everything is closed and told once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

import anyio
import pytest

from neurolink_mw.errors import PolicyDenied
from neurolink_mw.pipeline import BuildContext, Outcome, wrap_model
from neurolink_mw.protocol import (
    CallOptions,
    ErrorPart,
    Finish,
    Kind,
    LanguageModel,
    PartStream,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamPart,
    StreamResult,
    StreamStart,
    TextStart,
    ToolInputDelta,
    ToolInputStart,
    check_grammar,
)
from neurolink_mw.testing import ScriptedModel

from .builders import (
    ASKED,
    COST,
    NO_TOKENS,
    Layer,
    Member,
    Retry,
    Watch,
    answer,
    chain,
    denying_at,
    parts,
    policy,
    read,
    read_into,
    run,
    said,
    streaming,
    text_of,
)

pytestmark = pytest.mark.anyio


def types(parts: list[StreamPart]) -> list[str]:
    return [part.type for part in parts]


REFUSAL = ["text-start", "text-delta", "text-end", "finish"]


# -- what the caller gets


@pytest.mark.parametrize(
    ("position", "before"),
    [
        (0, ["stream-start"]),
        (1, ["stream-start"]),
        (2, ["stream-start", "text-start", "text-end"]),
        (3, ["stream-start", "text-start", "text-delta", "text-end"]),
        (5, ["stream-start", "text-start", "text-delta", "text-delta", "text-end"]),
    ],
)
async def test_open_blocks_are_closed_then_it_says_why_then_it_finishes(position: int, before: list[str]) -> None:
    inside = ScriptedModel([parts("a", "b")])
    seen = await read(wrap_model(inside, [denying_at(position)]))
    assert types(seen) == [*before, *REFUSAL]
    assert said(seen).endswith("I cannot.")
    check_grammar(seen)


async def test_blocks_of_all_kinds_are_closed() -> None:
    script: list[StreamPart] = [
        StreamStart(),
        ReasoningStart("r"),
        ReasoningDelta("r", "hm"),
        ToolInputStart("t", "look_up"),
        ToolInputDelta("t", "{"),
        TextStart("0"),
    ]
    seen = await read(wrap_model(ScriptedModel([script]), [denying_at(len(script))]))
    assert types(seen)[len(script) :] == ["reasoning-end", "tool-input-end", "text-end", *REFUSAL]


async def test_a_block_that_was_closed_is_not_closed_again() -> None:
    script = [StreamStart(), ReasoningStart("r"), ReasoningEnd("r"), *parts("a")[1:]]
    seen = await read(wrap_model(ScriptedModel([script]), [denying_at(3)]))
    assert types(seen) == ["stream-start", "reasoning-start", "reasoning-end", *REFUSAL]


async def test_the_finish_is_a_refusal_of_ours() -> None:
    finish = (await read(wrap_model(ScriptedModel([]), [policy()])))[-1]
    assert isinstance(finish, Finish)
    assert (finish.finish_reason.unified, finish.finish_reason.raw) == ("content-filter", "no")
    assert (finish.usage, finish.provider_metadata) == (NO_TOKENS, {"neurolink_mw": {"denied": "no", "by": "policy"}})


async def test_usage_is_unknown_where_the_model_had_not_said_it() -> None:
    *_, finish = await read(wrap_model(ScriptedModel([parts("a")]), [denying_at(2)]))
    assert isinstance(finish, Finish)
    assert finish.usage.input_tokens.total is None


async def test_usage_is_what_was_billed_where_the_model_had_finished() -> None:
    async def hold(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        held = [part async for part in stream]
        if held:
            raise options.context.deny("no", "I cannot.")
        yield StreamStart()

    *_, finish = await read(wrap_model(ScriptedModel([parts("a")]), [streaming(hold)]))
    assert isinstance(finish, Finish)
    assert finish.usage == COST


async def test_after_an_error_part_the_reason_stays_error() -> None:
    watch = Watch()
    script = [*parts("a", finish=None), ErrorPart(ValueError("broken")), parts()[-1]]
    seen = await read(chain(ScriptedModel([script]), [denying_at(5)], watch=watch))
    finish = seen[-1]
    assert isinstance(finish, Finish)
    assert (finish.finish_reason.unified, finish.finish_reason.raw) == ("error", "no")
    assert watch.only.finish_reason == finish.finish_reason
    assert (watch.only.status, type(watch.only.error)) == ("denied", PolicyDenied)
    assert sum(part.type == "finish" for part in seen) == 1


async def test_a_denial_without_words_has_no_words() -> None:
    assert types(await read(wrap_model(ScriptedModel([parts("a")]), [denying_at(0, message="")]))) == [
        "stream-start",
        "text-start",
        "text-end",
        "finish",
    ]


# -- what nobody can do about it


async def test_no_part_made_after_a_swallowed_denial_leaves() -> None:
    async def go_on(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield part
            if part.type == "text-start":
                with suppress(BaseException):
                    raise options.context.deny("no", "I cannot.")

    inside = ScriptedModel([parts("secret")])
    seen = await read(wrap_model(inside, [streaming(go_on)]))
    assert (said(seen), types(seen)[-4:]) == ("I cannot.", REFUSAL)
    assert inside.calls[0].closed == 1


async def test_a_stream_that_ends_without_a_part_after_it_is_refused_too() -> None:
    async def swallow(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        with suppress(BaseException):
            async for part in stream:
                yield part

    seen = await read(wrap_model(ScriptedModel([parts("a")]), [streaming(swallow, "outer"), denying_at(2)]))
    assert types(seen)[-4:] == REFUSAL


async def test_a_denial_in_another_task_stops_the_stream() -> None:
    noted: list[CallOptions] = []

    async def note(model: LanguageModel, options: CallOptions) -> StreamResult:
        noted.append(options)
        return await model.do_stream(options)

    model = wrap_model(ScriptedModel([parts("a", "b")]), [Member(wrap_stream=note, needs_scope=True)])
    async with (await model.do_stream(ASKED)).stream as stream:
        head = [await anext(stream) for _ in range(3)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(deny_later, noted[0])
        rest = [part async for part in stream]
    assert (said(head), types(rest)) == ("a", ["text-end", *REFUSAL])


async def deny_later(options: CallOptions) -> None:
    options.context.deny("no", "I cannot.")


async def test_after_the_finish_a_denial_comes_too_late_and_never_shows() -> None:
    """The caller has the whole answer by then."""

    async def late(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield part
        raise options.context.deny("no", "I cannot.")

    watch, inside = Watch(), ScriptedModel([parts("a")])
    seen = await read(chain(inside, [streaming(late)], watch=watch))
    assert (seen, watch.only.status, inside.calls[0].closed) == (parts("a"), "ok", 1)


async def test_unless_somebody_further_out_still_holds_the_answer_back() -> None:
    async def late(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield part
        raise options.context.deny("no", "I cannot.")

    async def hold(stream: PartStream, options: CallOptions) -> AsyncIterator[StreamPart]:
        for part in [part async for part in stream]:
            yield part

    inner = wrap_model(ScriptedModel([parts("secret")]), [streaming(late)])
    assert said(await read(wrap_model(inner, [streaming(hold)]))) == "I cannot."


async def test_a_retry_does_not_read_on_past_a_denial_in_the_middle() -> None:
    inside = ScriptedModel([parts("a"), parts("b")])
    assert said(await read(chain(inside, [Retry(3), denying_at(2)]))) == "I cannot."
    assert len(inside.calls) == 1


# -- denied="raise"


@pytest.mark.parametrize("position", [0, 2, 4])
async def test_callers_who_asked_for_it_get_an_exception_in_the_middle(position: int) -> None:
    watch, inside = Watch(), ScriptedModel([parts("a")])
    seen: list[StreamPart] = []
    model = wrap_model(inside, [watch, denying_at(position)], denied="raise")
    async with (await model.do_stream(ASKED)).stream as stream:
        with pytest.raises(PolicyDenied, match=r"^I cannot\.$"):
            await read_into(seen, stream)
    assert seen == parts("a")[:position]
    assert (watch.only.status, inside.calls[0].closed) == ("denied", 1)


async def test_or_from_the_call_itself() -> None:
    with pytest.raises(PolicyDenied):
        await wrap_model(ScriptedModel([]), [policy()], denied="raise").do_stream(ASKED)


# -- the outcome, and who is told


async def test_the_outcome_is_there_before_the_finish() -> None:
    watch = Watch()
    model = chain(ScriptedModel([parts("a")]), [denying_at(2)], watch=watch)
    async with (await model.do_stream(ASKED)).stream as stream:
        async for part in stream:
            assert bool(watch.outcomes) == (part.type == "finish")
    outcome = watch.only
    assert (outcome.status, outcome.answered_by, outcome.attempts, outcome.parts) == ("denied", None, 1, 7)
    assert isinstance(outcome.error, PolicyDenied)
    assert (outcome.error.code, outcome.error.by) == ("no", "policy")
    assert [(finding.by, finding.type) for finding in outcome.findings] == [("policy", "decision")]


async def test_who_watches_parts_sees_what_the_caller_gets() -> None:
    told: list[StreamPart] = []

    class Parts(Watch):
        def bind(self, build: BuildContext) -> None:
            build.observe(self.note, on_part=told.append)

    watch = Parts()
    seen = await read(chain(ScriptedModel([parts("a", "b")]), [denying_at(3), Layer()], watch=watch))
    assert told == seen
    assert watch.only.parts == len(seen)


@pytest.mark.parametrize("kind", ["generate", "stream"])
async def test_at_end_is_told_of_a_refusal_once(kind: Kind) -> None:
    told: list[Outcome] = []

    async def register(options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        options.context.at_end(told.append)
        return options

    members = [Member("outer", transform_params=register), policy() if kind == "generate" else denying_at(2)]
    await run(wrap_model(ScriptedModel([parts("a")]), members), kind)
    assert [outcome.status for outcome in told] == ["denied"]


async def test_a_listener_who_denies_an_outcome_changes_nothing() -> None:
    def deny_it(outcome: Outcome) -> None:
        raise outcome.context.deny("no")  # too late: the call is over

    class Denies(Watch):
        def bind(self, build: BuildContext) -> None:
            build.observe(deny_it)

    watch = Watch()
    model = chain(ScriptedModel([answer(), parts("a")]), [Denies("denies")], watch=watch)
    assert (await text_of(model, "generate"), await text_of(model, "stream")) == ("Hi", "a")
    assert [outcome.status for outcome in watch.outcomes] == ["ok", "ok"]
