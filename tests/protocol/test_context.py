"""The context: what the calls of one request share, and what a detached one refuses."""

from __future__ import annotations

import pytest

from neurolink_mw.errors import ConfigError
from neurolink_mw.protocol import DETACHED, Attempt, CallContext, CallOptions, Slot, to_json, with_context

COUNT = Slot("count", 0)


def test_a_slot_has_its_default_until_it_is_set() -> None:
    context = CallContext()
    assert context.get(COUNT) == 0
    context.set(COUNT, 3)
    assert context.get(COUNT) == 3


def test_slots_are_told_apart_by_identity_and_not_by_name() -> None:
    context, other = CallContext(), Slot("count", 0)
    context.set(COUNT, 3)
    assert context.get(other) == 0


def test_a_slot_may_hold_what_its_default_is_not() -> None:
    slot: Slot[str | None] = Slot("answer", "none yet")
    context = CallContext()
    context.set(slot, None)
    assert context.get(slot) is None


def test_a_child_shares_slots_id_and_ledger_in_both_directions() -> None:
    context = CallContext()
    child = context.child().child()
    child.set(COUNT, 1)
    child.ledger.append(Attempt("generate", "p", "m", False))
    assert context.get(COUNT) == 1
    assert context.request_id == child.request_id != ""
    assert context.ledger is child.ledger
    assert child.root is context


def test_the_request_id_is_made_once_and_differs_between_requests() -> None:
    context = CallContext()
    assert context.request_id == context.request_id
    assert context.request_id != CallContext().request_id


def test_a_request_id_can_be_given() -> None:
    assert CallContext(request_id="mine").child().request_id == "mine"


def test_a_child_has_the_step_it_is_given_and_hands_it_on() -> None:
    step = CallContext().child(step=2)
    assert (step.step, step.child().step, step.child(step=0).step) == (2, 2, 0)


def test_a_helper_shares_the_request_and_is_marked() -> None:
    context = CallContext()
    context.set(COUNT, 3)
    helper = context.for_helper()
    assert helper.helper
    assert not context.helper
    assert helper.request_id == context.request_id
    assert helper.get(COUNT) == 3


def test_a_helper_has_no_scope_and_no_step_of_the_call_it_helps() -> None:
    helper = CallContext().child(step=3).for_helper()
    assert helper.scope is None
    assert helper.step is None


def test_what_a_helper_calls_is_a_helpers_too() -> None:
    assert CallContext().for_helper().child().helper


def test_a_context_without_a_scope_refuses_at_end_with_the_remedy() -> None:
    with pytest.raises(ConfigError, match=r"context\.at_end needs a scope.*needs_scope = True"):
        CallContext().at_end(print)


def test_a_detached_context_refuses_to_be_written_to_with_the_remedy() -> None:
    with pytest.raises(ConfigError, match=r"context\.set needs a scope.*needs_scope = True"):
        DETACHED.set(COUNT, 1)
    with pytest.raises(ConfigError, match=r"context\.at_end needs a scope"):
        DETACHED.at_end(print)


def test_a_detached_context_has_defaults_no_id_and_no_scope() -> None:
    assert DETACHED.get(COUNT) == 0
    assert DETACHED.request_id == ""
    assert DETACHED.ledger == []
    assert DETACHED.scope is None


def test_nothing_is_kept_in_the_ledger_of_a_detached_context() -> None:
    DETACHED.ledger.append(Attempt("generate", "p", "m", False))
    assert DETACHED.ledger == []


def test_children_of_a_detached_context_are_requests_of_their_own() -> None:
    one, other = DETACHED.child(step=1), DETACHED.child()
    assert one.request_id != other.request_id
    assert one.step == 1
    one.set(COUNT, 1)
    assert other.get(COUNT) == 0


def test_a_helper_of_detached_options_is_a_request_of_its_own() -> None:
    helper = CallOptions.from_text("hi").for_helper(prompt=()).context
    assert helper.helper
    assert helper.request_id != DETACHED.for_helper().request_id


def test_options_are_detached_until_somebody_says_otherwise() -> None:
    assert CallOptions.from_text("hi").context is DETACHED


def test_the_context_shows_up_in_no_equality_json_or_repr() -> None:
    options = CallOptions.from_text("hi")
    attached = with_context(options, CallContext(request_id="r-1"))
    assert attached == options
    assert to_json(attached) == to_json(options)
    assert repr(attached) == repr(options)


def test_a_repr_shows_who_and_never_what() -> None:
    context = CallContext(request_id="r-1")
    context.set(COUNT, 31337)
    assert repr(context.child(step=1)) == "CallContext(request_id='r-1', step=1)"
    assert repr(DETACHED) == "CallContext(detached)"
    assert repr(COUNT) == "Slot('count')"
    assert repr(Attempt("stream", "p", "m", False)) == "Attempt(stream, p:m, running)"
