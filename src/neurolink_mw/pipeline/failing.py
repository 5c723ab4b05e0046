"""Whose failure it is, and what the host does about it.

A member that has a rule of its own (`on_error`, `timeout`) or sees denials gets, instead of the next model in, a
stand-in that remembers what came from inside. A failure that came from there, or was caused by one that did, is never
the member's. For the rest:

- "deny" refuses the call.
- "skip" goes on as if the member were not there, and never calls a model twice: if the model answered, that answer
  stands; if it failed, that failure does; if it was not asked, it is asked with the options as they were before this
  layer. In a stream that works as long as the member has passed on every part unchanged: what it took and has not
  passed on is given out, then the rest. After a changed part the failure is raised, since nobody could tell what is
  missing. A policy that denied or replaced something of this call before it failed refuses it, as with "deny": to give
  out the model's answer would undo what was decided.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ..events import Decision, Handling, MemberFailed
from ..protocol import DETACHED, CallContext, CallOptions, with_context
from .mistake import Mistake
from .own_time import Overdue, OwnTime
from .rest import Rest
from .rules import Rules
from .scope import Scope

_log = logging.getLogger(__name__)

TOO_MANY = "TooManyFailures"
"""What stands for the name of an error where a member was left alone."""

FAILED = "middleware-failed"
"""The code of a denial that a member's own failure led to."""
_FAILED = "This request could not be checked, so it was refused."


class Keeper:
    """What the host knows about one place of one chain, whichever call runs there."""

    def __init__(self, id: str, rules: Rules, clock: Callable[[], float], *, sees_denials: bool, answers: bool) -> None:
        self.id = id
        self.rules = rules
        self.sees_denials = sees_denials
        self.answers = answers
        self._rest = Rest(rules.max_failures, clock) if rules.max_failures is not None else None

    @property
    def needed(self) -> bool:
        """Whether there is anything to do but to let the member run."""
        return self.rules.owned or self.sees_denials

    def clock(self) -> OwnTime | None:
        return None if self.rules.timeout is None else OwnTime(self.rules.timeout, self.id)

    def rests(self, context: CallContext) -> bool:
        """Whether the member has failed too often of late. Then "skip" leaves it out, and "deny" refuses the call."""
        if not self.is_left_alone(context):
            return False
        if self.rules.on_error == "deny":
            raise self.denial(context)
        return True

    def is_left_alone(self, context: CallContext) -> bool:
        """Whether the member has failed too often of late, so that `on_error` holds at once."""
        if self._rest is None or not self._rest.resting():
            return False
        self._note(context, None, self.rules.on_error)
        return True

    def worked(self) -> None:
        if self._rest is not None:
            self._rest.worked()

    def failed(self, error: Exception, context: CallContext, *, too_late: bool = False) -> None:
        """The member failed. Returns only if it is to be skipped. too_late: it cannot be skipped any more."""
        handling = self.handle(error, context, too_late=too_late)
        if handling == "deny":
            raise self.denial(context) from error
        if handling == "raise":
            raise error

    def handle(self, error: Exception, context: CallContext, *, too_late: bool = False) -> Handling:
        """Note that the member failed, and say what is to be done about it."""
        if self._rest is not None:
            self._rest.failed()
        handling: Handling = "raise" if too_late else self.rules.on_error
        if handling == "skip" and self._has_decided(context):
            handling = "deny"
        self._note(context, error, handling)
        return handling

    def _has_decided(self, context: CallContext) -> bool:
        """Whether the member changed something of this call by a verdict."""
        scope = context.scope
        findings = scope.findings if isinstance(scope, Scope) else None
        return any(
            isinstance(one, Decision) and one.by == self.id and not one.shadow and one.action != "flagged"
            for one in findings or ()
        )

    def denial(self, context: CallContext) -> BaseException:
        """What refuses the call, where its member cannot decide."""
        return context.deny(FAILED, _FAILED, by=self.id)

    def _note(self, context: CallContext, error: Exception | None, handling: Handling) -> None:
        """Say that the member failed, or (None) that it was not asked because it had failed too often."""
        ours = isinstance(error, Mistake | Overdue)  # only these messages are known to hold nothing of the call
        name = TOO_MANY if error is None else type(error).__mro__[1 if ours else 0].__name__
        said = f"{name}: {error}" if ours else name
        _log.warning("%s failed, and its on_error is %s: %s", self.id, handling, said)
        scope = context.scope
        if isinstance(scope, Scope):
            shadow = self.rules.mode == "shadow"
            scope.note(MemberFailed(context.request_id, self.id, name, handling, shadow, tried=error is not None))


def answered_by(id: str, context: CallContext) -> None:
    if isinstance(context.scope, Scope):
        context.scope.answer(id)


def checked_options(id: str, changed: object, given: CallOptions) -> CallOptions:
    """What a `transform_params` returned. Made from scratch, it is still the same call."""
    if not isinstance(changed, CallOptions):
        raise Mistake(f"{id}.transform_params returns the options to go on with, not {type(changed).__name__}")
    if changed.context is DETACHED and given.context is not DETACHED:
        return with_context(changed, given.context)
    return changed


def rejoined(options: CallOptions, context: CallContext) -> CallOptions:
    """The options that a member asks the model with. Made from scratch, they are still of the call that it is in;
    those of a helper call are not."""
    made = options.context
    if made.scope is None and not made.helper and context.scope is not None:
        return with_context(options, context)
    return options


def no_answer(result: object, call: str, expected: type) -> Mistake:
    kind = type(result).__name__
    hint = "; is there a `return` missing?" if result is None else ""
    return Mistake(f"{call} returned {kind}, not a {expected.__name__}{hint}")
