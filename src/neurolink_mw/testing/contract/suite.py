"""The suite: every check, on every backend, and what failed told at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from importlib.util import find_spec

import anyio

from ...errors import ConfigError
from ...pipeline import Member, Surroundings
from ...protocol import CallOptions, GenerateResult
from ...protocol.late_close import current_loop
from . import (
    accounts,
    agreement,
    cancelling,
    carried,
    cost,
    declared,
    failing,
    in_turns,
    leaving,
    orphans,
    plain,
    refusing,
    shape,
    sharing,
    tools,
    turns,
)
from .in_turns import NO_SCOPE_AROUND_A_YIELD
from .material import asking, saying
from .subject import Subject

Check = Callable[[Subject], Awaitable[None]]

CHECKS: tuple[Check, ...] = (
    plain.check_a_plain_request_is_no_trouble,
    plain.check_a_chain_without_listeners_works,
    shape.check_the_stream_grammar_is_kept,
    agreement.check_generate_and_stream_agree,
    agreement.check_what_is_found_twice_is_changed_twice,
    agreement.check_the_same_answer_comes_out_the_same_again,
    agreement.check_answers_of_many_kinds_agree,
    agreement.check_tool_inputs_say_what_their_calls_say,
    agreement.check_interleaved_blocks_are_kept_apart,
    agreement.check_odd_ids_are_ids_like_any_other,
    carried.check_parts_of_every_kind_are_passed_on,
    carried.check_what_stands_beside_the_answer_is_kept,
    shape.check_metadata_is_kept,
    shape.check_raw_parts_are_untouched,
    cost.check_a_thousand_tiny_deltas_cost_a_thousand_times_one,
    orphans.check_deltas_of_no_block_are_changed_like_others,
    failing.check_a_stream_without_an_end_loses_nothing,
    failing.check_an_error_part_is_passed_on,
    failing.check_a_failure_of_the_model_comes_out,
    leaving.check_a_caller_may_leave_at_every_part,
    leaving.check_what_is_opened_and_not_returned_is_closed,
    leaving.check_what_is_done_at_the_end_is_done_at_the_finish,
    leaving.check_an_attempt_that_is_given_up_is_closed,
    leaving.check_what_has_left_is_not_said_again,
    cancelling.check_a_cancellation_comes_out_wherever_it_hits,
    sharing.check_calls_at_once_do_not_mix,
    sharing.check_one_member_may_stand_in_two_pipelines,
    in_turns.check_one_task_may_read_streams_in_turns,
    in_turns.check_context_variables_stay_as_they_were,
    sharing.check_the_options_are_left_as_they_were,
    refusing.check_a_refusal_further_in_comes_out,
    declared.check_changes_of_the_request_are_declared,
    declared.check_changes_of_the_answer_are_declared,
    declared.check_answers_of_its_own_are_declared,
    declared.check_a_monotone_refusal_is_final,
    accounts.check_every_call_has_one_outcome,
    tools.check_a_tool_is_no_trouble,
    tools.check_a_tool_runs_once_for_a_call,
    tools.check_a_call_reaches_the_tool_as_it_was_made,
    tools.check_a_denied_tool_call_stays_denied,
    tools.check_a_cancellation_comes_out_of_a_tool,
    tools.check_tools_at_once_do_not_mix,
    turns.check_a_turn_is_the_same_generated_and_streamed,
    turns.check_the_marks_of_a_turn_are_kept,
)


def check_middleware(
    factory: Callable[[], Member],
    *,
    options: CallOptions | None = None,
    answers: Sequence[str | GenerateResult] = (),
    surroundings: Surroundings | None = None,
    patience: float = 20.0,
) -> None:
    """Check that a middleware or role keeps the contract: `check_middleware(MyMiddleware)`, in a plain test.

    factory: makes a fresh member at each call; a class that needs no configuration, or a function. options: the
    request it is asked, where the usual one would not set it to work. answers: what the model says, next to the usual
    answers, each of them several times; give texts that it changes or refuses, and such that end in half of what it
    looks for. surroundings: where it looks up models and stores when it is bound. patience: seconds that one check may
    take. A retry is to be made without delays: the suite waits for it.

    Runs on asyncio, and on trio where that is installed, each around scripted models. AssertionError says for each
    promise that is broken what was fed, what came out and what to do. A refusal by policy is an answer like any
    other. ConfigError where it is called from a running event loop, or cannot make a chain with the member.
    """
    if current_loop() is not None:
        raise ConfigError("check_middleware starts event loops of its own: call it from a plain test, not an async one")
    made: object = factory
    if isinstance(made, Member) or not callable(made):
        kind = type(made).__name__
        raise ConfigError(
            f"check_middleware takes what makes a fresh member, such as the class {kind}, not an instance"
        )
    asked = asking("Hello, who are you?") if options is None else options
    given = tuple(saying(answer) if isinstance(answer, str) else answer for answer in answers)
    subject = Subject(factory, asked, given, surroundings)
    name = _name_of(subject)
    for backend in ("asyncio", "trio") if find_spec("trio") else ("asyncio",):
        failures = _failures_on(backend, subject, patience)
        if failures:
            told = "\n\n".join(failures)
            raise AssertionError(f"{name} breaks {len(failures)} of {len(CHECKS)} promises, on {backend}.\n\n{told}")


def _name_of(subject: Subject) -> str:
    one, other = subject.factory(), subject.factory()
    if one is other:
        raise ConfigError(f"the factory gives the same {type(one).__name__} twice: let it make a fresh one each time")
    return type(one).__name__


def promise_of(check: Check) -> str:
    """What a check is about, in words: its name."""
    return getattr(check, "__name__", "").removeprefix("check_").replace("_", " ")


def _failures_on(backend: str, subject: Subject, patience: float) -> list[str]:
    failures = []
    for check in CHECKS:
        hangs, failure = False, None
        try:
            # Each on an event loop of its own, since a member may leave cancel scopes and context variables behind.
            hangs = anyio.run(_within, patience, check, subject, backend=backend)
        except AssertionError as error:
            failure = str(error)
        except Exception as error:
            if not _is_about_cancel_scopes(error):
                raise
            failure = f"cancel scopes were left in another order than entered. {NO_SCOPE_AROUND_A_YIELD}"
        if hangs:
            failure = f"it hangs: what it waits for did not come within {patience:g} s. Later checks were not run"
        if failure is not None:
            failures.append(f"{promise_of(check)}:\n  {failure}")
        if hangs:
            break
    return failures


async def _within(patience: float, check: Check, subject: Subject) -> bool:
    """Run a check. Whether it was cut off, since it hangs."""
    with anyio.move_on_after(patience) as limit:
        await check(subject)
    return limit.cancelled_caught


def _is_about_cancel_scopes(error: BaseException) -> bool:
    """anyio and trio both say so in words, wherever they notice, which may be in a task group."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_about_cancel_scopes, error.exceptions))
    return isinstance(error, RuntimeError) and "cancel scope" in str(error).lower()
