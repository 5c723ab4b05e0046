"""`wrap_tool`: what the members around a step, and around the turn that it belongs to, put around a tool.

A tool runs between two calls of the model, so no layer of a chain stands around it. The loop asks its model for the
hooks of the chain around each step, and the scopes that the turn runs in for those of the chains around the turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..protocol import CallContext, CallOptions, ExecutionDenied, LanguageModel, ToolCall, ToolOutcome, ToolRunner
from .bind import awaiting
from .conditions import When
from .denial import find_denial
from .enclosing import enclosing_scopes
from .failing import Keeper
from .middleware import overrides
from .mistake import Mistake
from .own_time import OwnTime

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


def has_tool_hooks(placed: Sequence[Placed], model: LanguageModel) -> bool:
    """Whether a chain around a model would have any."""
    return any(overrides(place.member, "wrap_tool") or place.member.judge_tool(model) is not None for place in placed)


def around_tools(model: object, options: CallOptions, *, judged: bool = True) -> Callable[[ToolRunner], ToolRunner]:
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

    def around(runner: ToolRunner) -> ToolRunner:
        for hook in reversed(hooks):
            runner = hook.around(runner)
        return runner

    return around


def _around_turn(context: CallContext) -> Iterator[ToolHook]:
    for scope in reversed(list(enclosing_scopes(context))):
        yield from scope.host.tool_hooks


def _around_step(model: object, judged: bool) -> Iterator[ToolHook]:
    """Chains around a turn further in are not looked into: its tools are its own."""
    while (chain := getattr(model, "chain", None)) is not None:
        hooks: ToolHooks = model.tool_hooks  # type: ignore[attr-defined]  # a wrapped model
        yield from hooks.wrapping if judged else hooks.judging
        model = chain.model


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
        return self._checked(await self._hook.wrap(self._inner, call))

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
        except BaseException as error:
            if not isinstance(error, Exception) or find_denial(error) is not None or error is inside.failure:
                raise
            handling = keeper.handle(error, context)
            if handling == "raise":
                raise
            if handling == "deny":
                return self._refused()
            if inside.outcome is not None:
                return inside.outcome
            if inside.asked:
                raise
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
