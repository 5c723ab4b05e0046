"""`wrap_tool`: what the members around a step, and around the turn that it belongs to, put around a tool.

A tool runs between two calls of the model, so no layer of a chain stands around it. The loop asks its model for the
hooks of the chain around each step, and the scopes that the turn runs in for those of the chains around the turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..protocol import CallContext, CallOptions, ExecutionDenied, LanguageModel, Slot, ToolCall, ToolOutcome, ToolRunner
from ..protocol.cancellation import is_called_cancellation, is_cancellation
from .bind import awaiting
from .conditions import When
from .denial import find_denial
from .enclosing import enclosing_scopes
from .failing import Keeper
from .middleware import overrides
from .mistake import Mistake
from .own_time import OwnTime
from .scope import Scope

if TYPE_CHECKING:
    from .order import Placed

_NO_CLOCK = nullcontext()
_COULD_NOT_CHECK = "The call could not be checked, so it was refused."


@dataclass(frozen=True)
class ToolHook:
    """One member's hook. owner: the member as it was given, by which one that stands in several chains is known;
    keeper: the rules of its place, where the host has anything to do beyond passing failures on. judges: it is a
    policy's, which judges the same call in the answer too; then one that cannot decide refuses the whole, as there."""

    owner: object
    id: str
    wrap: Callable[[ToolRunner, ToolCall], Awaitable[Any]]
    when: When | None
    keeper: Keeper | None
    judges: bool = False

    def around(self, runner: ToolRunner) -> ToolRunner:
        return _Wrapped(self, runner) if self.keeper is None else _Owned(self, runner, self.keeper)


@dataclass(frozen=True)
class ToolHooks:
    """The hooks of a chain, from the outside in. wrapping: `wrap_tool` of its members; judging: those, and the
    policies that judge calls where no answer of a step brings the call to them first."""

    wrapping: tuple[ToolHook, ...] = ()
    judging: tuple[ToolHook, ...] = ()


def hooks_of(placed: Sequence[Placed], model: LanguageModel, keeper_of: Callable[[Placed], Keeper | None]) -> ToolHooks:
    """The hooks of a chain around a model."""
    judging = []
    for place in placed:
        wraps = overrides(place.member, "wrap_tool")
        hook = place.member.wrap_tool if wraps else place.member.judge_tool(model)
        if hook is not None:
            keeper, when = keeper_of(place), place.use.when
            wrap = awaiting(hook, f"{place.use.id}.wrap_tool", blocking=wraps and place.use.rules.blocking)
            per_call = when if when is not None and when.per_call else None
            owned = keeper if keeper is not None and keeper.rules.owned else None
            judging.append(ToolHook(place.use.member, place.use.id, wrap, per_call, owned, judges=not wraps))
    return ToolHooks(tuple(hook for hook in judging if not hook.judges), tuple(judging))


class ToolChain:
    """What stands around the tools of one step. Called with a runner it gives what to run in its place."""

    def __init__(self, hooks: Sequence[ToolHook], context: CallContext) -> None:
        self._hooks = hooks
        self._judges = [hook for hook in hooks if hook.judges]
        scope = context.scope
        self._scope = scope if isinstance(scope, Scope) else None

    @property
    def judge(self) -> Callable[[ToolRunner], ToolRunner] | None:
        """The policies among them alone; None where there are none."""
        return (lambda runner: self._wrapped(runner, self._judges)) if self._judges else None

    def __call__(self, runner: ToolRunner) -> ToolRunner:
        return self._wrapped(runner, self._hooks)

    def _wrapped(self, runner: ToolRunner, hooks: Sequence[ToolHook]) -> ToolRunner:
        scope = self._scope
        if scope is None:
            return _around(runner, hooks)
        # Within: a hook may refuse the call and run the tool all the same. Outside: or swallow what was refused.
        return _Guarded(_around(_Guarded(runner, scope), hooks) if hooks else runner, scope)


def _around(runner: ToolRunner, hooks: Sequence[ToolHook]) -> ToolRunner:
    for hook in reversed(hooks):
        runner = hook.around(runner)
    return runner


def around_tools(model: object, options: CallOptions, *, judged: bool = True) -> ToolChain:
    """What to put around the tools that a step of `model` called: the hooks around the turn, then those around the
    step. options: of the step, in the context of the turn. judged: the calls come from an answer of the step, where its
    policies have seen them; those that a conversation brings along have not been. One member runs once, at its
    outermost place."""
    hooks: list[ToolHook] = []
    seen: set[int] = set()
    for hook in (*_around_turn(options.context), *_around_step(model, judged)):
        if id(hook.owner) not in seen and (hook.when is None or hook.when.matches(options)):
            seen.add(id(hook.owner))
            hooks.append(hook)
    return ToolChain(hooks, options.context)


_REPLACED: Slot[dict[tuple[int | None, str], str] | None] = Slot("neurolink_mw.replaced_inputs", None)


def note_replaced(context: CallContext, tool_call_id: str, input: str) -> None:
    """A policy has replaced the input of a call: nobody may tell what it was before."""
    known = context.get(_REPLACED)
    if known is None:
        context.set(_REPLACED, known := {})
    known[context.step, tool_call_id] = input


def replaced_input(context: CallContext, tool_call_id: str) -> str | None:
    """What a policy has put in place of the input of a call that ran; None where none did."""
    known = context.get(_REPLACED)
    return None if known is None else known.get((context.step, tool_call_id))


def _around_turn(context: CallContext) -> Iterator[ToolHook]:
    for scope in reversed(list(enclosing_scopes(context))):
        yield from scope.host.tool_hooks


def _around_step(model: object, judged: bool) -> Iterator[ToolHook]:
    """Chains around a turn further in are not looked into: its tools are its own."""
    while isinstance(hooks := getattr(model, "tool_hooks", None), ToolHooks):
        yield from hooks.wrapping if judged else hooks.judging
        model = model.chain.model  # type: ignore[attr-defined]  # a wrapped model


class _Guarded:
    """Runs nothing once the call that it is part of is refused, whoever swallows that."""

    def __init__(self, inner: ToolRunner, scope: Scope) -> None:
        self._inner = inner
        self._scope = scope

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def options(self) -> CallOptions:
        return self._inner.options

    async def run(self, call: ToolCall) -> ToolOutcome:
        self._check()
        outcome = await self._inner.run(call)
        self._check()
        return outcome

    def _check(self) -> None:
        if (denial := self._scope.denial) is not None:
            raise denial


class _Wrapped:
    """The next thing in, as the hook further out sees it."""

    def __init__(self, hook: ToolHook, inner: ToolRunner) -> None:
        self._hook = hook
        self._inner = inner

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def options(self) -> CallOptions:
        return self._inner.options

    async def run(self, call: ToolCall) -> ToolOutcome:
        try:
            return self._checked(await self._hook.wrap(self._inner, call))
        except BaseException as error:
            if (failure := self._as_failure(error)) is error:
                raise
            raise failure from None

    def _as_failure(self, error: BaseException) -> BaseException:
        """A cancellation that nobody asked for is a failure of the hook, and must not end the turn as if it were."""
        if is_cancellation(error) or not is_called_cancellation(error):
            return error
        return RuntimeError(f"{self._hook.id}.wrap_tool raised a cancellation, and nobody cancelled it")

    def _checked(self, outcome: object) -> ToolOutcome:
        if isinstance(outcome, ToolOutcome):
            return outcome
        hint = "; is there a `return` missing?" if outcome is None else ""
        raise Mistake(f"{self._hook.id}.wrap_tool returned {type(outcome).__name__}, not a ToolOutcome{hint}")


class _Owned(_Wrapped):
    """A hook whose failures the host owns, as it does those of the others: "deny" answers the call with "denied",
    since a verdict on one tool call refuses nothing else; "skip" goes on without the hook, and never runs a tool
    twice."""

    def __init__(self, hook: ToolHook, inner: ToolRunner, keeper: Keeper) -> None:
        super().__init__(hook, inner)
        self._keeper = keeper

    async def run(self, call: ToolCall) -> ToolOutcome:
        keeper, context = self._keeper, self.options.context
        if keeper.is_left_alone(context):
            return await self._inner.run(call) if keeper.rules.on_error == "skip" else self._refused()
        clock = keeper.clock()
        inside = _Inside(self._inner, clock)
        try:
            with clock or _NO_CLOCK:
                outcome = self._checked(await self._hook.wrap(inside, call))
        except BaseException as caught:
            error = self._as_failure(caught)
            if not isinstance(error, Exception) or find_denial(error) is not None or error is inside.failure:
                raise
            handling = keeper.handle(error, context)
            if handling == "raise":
                raise error from None
            if handling == "deny":
                return self._refused()
            if inside.outcome is not None:
                return inside.outcome
            if inside.asked:
                raise error from None
            return await self._inner.run(call)
        finally:
            if clock is not None:
                clock.stop()
        keeper.worked()
        return outcome

    def _refused(self) -> ToolOutcome:
        context = self.options.context
        if self._hook.judges and context.scope is not None:
            raise self._keeper.denial(context)
        return ToolOutcome(ExecutionDenied(_COULD_NOT_CHECK), "denied")


class _Inside:
    """What an owned hook gets: it stops the member's clock while the tool runs, and remembers what it said."""

    def __init__(self, inner: ToolRunner, clock: OwnTime | None) -> None:
        self._inner = inner
        self._clock = clock
        self.asked = False
        self.outcome: ToolOutcome | None = None
        self.failure: BaseException | None = None

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def options(self) -> CallOptions:
        return self._inner.options

    async def run(self, call: ToolCall) -> ToolOutcome:
        self.asked = True
        clock = self._clock
        if clock is not None:
            clock.pause()
        try:
            self.outcome = await self._inner.run(call)
        except BaseException as error:
            self.failure = error
            raise
        finally:
            if clock is not None:
                clock.resume()
        return self.outcome
