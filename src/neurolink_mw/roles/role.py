"""What all roles share: an id, a place, typed options like any member, and an adapter for each chain they stand in."""

from __future__ import annotations

from typing import Generic, TypeVar

from ..errors import ConfigError
from ..events import Action, Decision, Subject
from ..pipeline import BuildContext, Member, Middleware, Rules
from ..pipeline.denial import Denial
from ..pipeline.scope import Scope
from ..protocol import CallContext
from .verdict import Verdict

OneRole = TypeVar("OneRole", bound="Role")


class Role(Member):
    """Base of all roles. One instance may stand in many chains: the rules of a place live in the adapter that stands
    there for it."""


class Adapter(Middleware, Generic[OneRole]):
    """What stands in a chain for a role."""

    needs_scope = True

    def __init__(self, role: OneRole, rules: Rules) -> None:
        super().__init__()
        self.role = role
        self.rules = rules
        self.id = role.id  # type: ignore[misc]  # each role has its own
        self.shadow = rules.mode == "shadow"

    def bind(self, build: BuildContext) -> None:
        self.role.bind(build)

    def note(
        self,
        context: CallContext,
        action: Action,
        code: str,
        subject: Subject,
        *,
        released: bool = False,
        tool_call_id: str | None = None,
    ) -> None:
        """Say in the outcome, and to plugins, what the role decided."""
        scope = context.scope
        if isinstance(scope, Scope):
            scope.note(
                Decision(context.request_id, self.id, action, code, subject, self.shadow, released, tool_call_id)
            )

    def denial(self, context: CallContext, verdict: Verdict, subject: Subject, *, released: bool = False) -> Denial:
        """The call is refused from here on; to be raised."""
        self.note(context, "denied", verdict.code, subject, released=released)
        scope = context.scope
        denial = Denial(verdict.code, verdict.message, self.id)
        return scope.latch(denial) if isinstance(scope, Scope) else denial


def as_verdict(id: str, said: object) -> Verdict:
    """What a check returned. One that says nothing has failed: a forgotten `return` must not let anything pass."""
    if isinstance(said, Verdict):
        return said
    hint = "; is there a `return` missing? Say allow() where there is nothing to say" if said is None else ""
    raise ConfigError(f"{id}.check returned {type(said).__name__}, not a verdict{hint}")
