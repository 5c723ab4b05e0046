"""What all roles share: an id, a place, typed options like any member, and an adapter for each chain they stand in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import FunctionType
from typing import Any, ClassVar, Generic, TypeVar

import anyio

from ..errors import ConfigError
from ..events import Action, Decision, Subject
from ..pipeline import BuildContext, Member, Middleware, Rules
from ..pipeline.bind import awaiting
from ..pipeline.denial import Denial
from ..pipeline.hook_checks import check_method
from ..pipeline.middleware import is_sync
from ..pipeline.mistake import Mistake
from ..pipeline.scope import Scope
from ..pipeline.wording import did_you_mean
from ..protocol import CallContext
from .verdict import Verdict

PATIENCE_S = 5.0
"""How long somebody who only watches may delay a call, where the place sets no timeout."""

T = TypeVar("T")
OneRole = TypeVar("OneRole", bound="Role")


class Role(Member):
    """Base of all roles. One instance may stand in many chains: the rules of a place live in the adapter that stands
    there for it."""

    answers: ClassVar[frozenset[str]] = frozenset()  # methods that have to return something
    told: ClassVar[frozenset[str]] = frozenset()  # methods that need not

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for name in cls.answers | cls.told:
            expected = next((vars(base)[name] for base in cls.__mro__[:0:-1] if name in vars(base)), None)
            if isinstance(expected, FunctionType):
                check_method(cls, name, expected, returns=name in cls.answers)
        for name in vars(cls):
            if cls.told and name.startswith("on_") and name not in cls.told:
                raise ConfigError(f"{cls.__name__}.{name} is never called{did_you_mean(name, sorted(cls.told))}")


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

    def denial(
        self, context: CallContext, verdict: Verdict, subject: Subject, *, released: bool = False
    ) -> BaseException:
        """The call is refused from here on; to be raised. A call that belongs to no scope (options that somebody made
        from scratch) is refused with an error: there is no boundary that could turn a denial into anything."""
        self.note(context, "denied", verdict.code, subject, released=released)
        scope = context.scope
        denial = Denial(verdict.code, verdict.message, self.id)
        if isinstance(scope, Scope):
            return scope.latch(denial)
        error = denial.as_error()
        error.final = True
        return error


def within(seconds: float, fn: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
    """An async function that raises TimeoutError instead of taking longer."""

    async def called(*args: object) -> T:
        with anyio.fail_after(seconds):
            return await fn(*args)

    return called


def asking(role: Role, check: Callable[..., Any], base: type[Role], rules: Rules) -> Callable[..., Awaitable[Any]]:
    """The check of a policy as an async function. ConfigError for a policy without one, and for rules that mean
    nothing to it. In shadow it has only so long, also where its place sets no limit, since it may hold up nobody."""
    if getattr(check, "__func__", check) is vars(base)["check"]:
        raise ConfigError(f"{type(role).__name__} has no check(): a policy says what it allows")
    if rules.blocking and not is_sync(check):
        raise ConfigError(f"{role.id}: blocking moves a sync check to a worker thread, and this one is async: omit it")
    asked = awaiting(check, f"{role.id}.check", blocking=rules.blocking)
    return within(PATIENCE_S, asked) if rules.mode == "shadow" and rules.timeout is None else asked


def as_verdict(id: str, said: object) -> Verdict:
    """What a check returned. One that says nothing has failed: a forgotten `return` must not let anything pass."""
    if isinstance(said, Verdict):
        return said
    hint = "; is there a `return` missing? Say allow() where there is nothing to say" if said is None else ""
    raise Mistake(f"{id}.check returned {type(said).__name__}, not a verdict{hint}")
