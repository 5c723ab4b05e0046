"""What a call carries at run time: who it is, what its middlewares share, and which scope it belongs to.

A context never takes part in equality, JSON, cache keys or logs. It is made by the outermost pipeline of a call;
pipelines further in, steps of a turn and helper calls get children of it that share the request's identity.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Generic, Literal, Protocol, Self, TypeAlias, TypeVar, cast

from ..errors import ConfigError, PolicyDenied

if TYPE_CHECKING:
    from .results import Usage

T = TypeVar("T")

REFUSAL = "This request was refused by policy."
"""What a refusal says where a policy gives no words of its own."""

Kind: TypeAlias = Literal["generate", "stream"]
AtEnd: TypeAlias = Callable[..., "Awaitable[None] | None"]


class Slot(Generic[T]):
    """A typed place for a value that middlewares of one request share. Two slots of one name are two places."""

    __slots__ = ("default", "name")

    def __init__(self, name: str, default: T) -> None:
        self.name = name
        self.default = default

    def __repr__(self) -> str:
        return f"Slot({self.name!r})"


class Scope(Protocol):
    """The part of a pipeline's scope that others need: one wrapped call, from its start to its outcome."""

    attempts: int

    def begin(self, attempt: Attempt) -> None: ...

    def at_end(self, fn: AtEnd) -> None: ...

    def deny(self, code: str, message: str = ..., *, by: str | None = None) -> BaseException: ...


class Attempt:
    """One call that reached a model. `usage` is unset until the model reports it."""

    __slots__ = ("helper", "kind", "model_id", "provider", "status", "usage")

    def __init__(self, kind: Kind, provider: str, model_id: str, helper: bool) -> None:
        self.kind = kind
        self.provider = provider
        self.model_id = model_id
        self.helper = helper
        self.status: Literal["running", "ok", "error"] = "running"
        self.usage: Usage | None = None

    def __repr__(self) -> str:
        return f"Attempt({self.kind}, {self.provider}:{self.model_id}, {self.status})"


class CallContext:
    """The run-time side of one call. `step` is the number of a turn's step, where the call is one; `helper` marks a
    call that a middleware makes for itself."""

    __slots__ = ("_inherited", "_ledger", "_request_id", "_root", "_scope", "_values", "helper", "step")

    def __init__(self, *, request_id: str | None = None) -> None:
        self._root: CallContext | None = None
        self._request_id = request_id
        self._values: dict[object, object] | None = None
        self._inherited: Mapping[object, object] | None = None
        self._ledger: list[Attempt] | None = None
        self._scope: Scope | None = None
        self.step: int | None = None
        self.helper = False

    @property
    def scope(self) -> Scope | None:
        """The innermost scope that this call runs in."""
        return self._scope

    @property
    def root(self) -> CallContext:
        """The context of the request that this one belongs to."""
        return self if self._root is None else self._root

    @property
    def request_id(self) -> str:
        """One id for the request with all its steps, attempts and helper calls."""
        root = self.root
        if root._request_id is None:
            root._request_id = uuid.uuid4().hex
        return root._request_id

    @property
    def ledger(self) -> list[Attempt]:
        """Every attempt of the request, helper calls included, in the order in which they began."""
        root = self.root
        if root._ledger is None:
            root._ledger = []
        return root._ledger

    def get(self, slot: Slot[T]) -> T:
        """What some middleware of this request put there, else the slot's default."""
        values = self.root._values
        return slot.default if values is None else cast(T, values.get(slot, slot.default))

    def set(self, slot: Slot[T], value: T) -> None:
        """Leave a value for other middlewares of this request."""
        root = self.root
        if root._values is None:
            root._values = {}
        root._values[slot] = value

    def inherited(self, slot: Slot[T]) -> T:
        """What `with_inherited` put there for this call, else the slot's default."""
        values = self._inherited
        return slot.default if values is None else cast(T, values.get(slot, slot.default))

    def with_inherited(self, slot: Slot[T], value: T) -> CallContext:
        """A child in which, and in whose children, `inherited(slot)` is `value`: for this call alone, where other calls
        of the same request run beside it. `set` leaves a value for all of them."""
        child = self.child()
        child._inherited = {**(self._inherited or {}), slot: value}
        return child

    def child(self, *, step: int | None = None) -> CallContext:
        """The same request further in, in the same scope: shared id, slots and ledger."""
        child = CallContext()
        child._root = self.root
        child._inherited = self._inherited
        child._scope = self.scope
        child.step = self.step if step is None else step
        child.helper = self.helper
        return child

    def for_helper(self) -> CallContext:
        """The same request for a call of a middleware's own, such as a judge: a scope of its own, marked as helper."""
        child = CallContext()
        child._root = self.root
        child._inherited = self._inherited
        child.helper = True
        return child

    def for_tool(self) -> CallContext:
        """The same step while its tools run, which is after the scope of its model call has ended."""
        child = _OfTool()
        child._root = self.root
        child._inherited = self._inherited
        child._scope = self.scope
        child.step = self.step
        child.helper = self.helper
        return child

    def at_end(self, fn: AtEnd) -> None:
        """Call `fn(outcome)` once, when the outermost scope of this request ends, however it ends.

        `fn` may be async. When a stream is dropped after its event loop is gone, only sync functions can run.
        """
        scope = self.scope
        if scope is None:
            raise ConfigError(_NO_SCOPE.format("at_end"))
        scope.at_end(fn)

    def deny(self, code: str, message: str = REFUSAL, *, by: str | None = None) -> BaseException:
        """Refuse this call: `raise options.context.deny("no-secrets", "I cannot help with that.")`.

        The call is refused from here on, whether or not what is returned is raised, and whoever catches it: the
        outermost pipeline answers with a refusal of the finish reason `content-filter` that says `message`, or raises
        `PolicyDenied`. `code` says why, for programs; `by` who refused, for reports.
        """
        scope = self.scope
        if scope is None:
            raise ConfigError(_NO_SCOPE.format("deny"))
        return scope.deny(code, message, by=by)

    def __copy__(self) -> Self:
        return self  # it stands for a call that runs: a copy of its options belongs to the same call

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> str | tuple[object, ...]:
        return _detached, ()  # in another process that call does not run

    def __repr__(self) -> str:
        return f"CallContext(request_id={self.root._request_id!r}, step={self.step})"


_NO_SCOPE = (
    "context.{} needs a scope, and no member of this chain asked for one: set `needs_scope = True` on the middleware "
    "that uses it"
)


class _OfTool(CallContext):
    """The context that a tool runs in. Where nothing stands around the turn there is nothing to refuse but the call."""

    __slots__ = ()

    def at_end(self, fn: AtEnd) -> None:
        if self.scope is None:
            raise ConfigError(_NO_TURN)
        super().at_end(fn)

    def deny(self, code: str, message: str = REFUSAL, *, by: str | None = None) -> BaseException:
        """Refuse the turn, where a pipeline stands around it; else this call of a tool alone."""
        return PolicyDenied(message, code=code, by=by) if self.scope is None else super().deny(code, message, by=by)


_NO_TURN = (
    "context.at_end has no call to wait for while a tool runs: nothing stands around the turn. Put this middleware "
    "around the turn (turn_middlewares=), or call it in wrap_generate and wrap_stream"
)


class _Detached(CallContext):
    """The context of options that have not entered a pipeline: nothing can be shared through it."""

    __slots__ = ()

    @property
    def request_id(self) -> str:
        return ""

    @property
    def ledger(self) -> list[Attempt]:
        return []

    def set(self, slot: Slot[T], value: T) -> None:
        raise ConfigError(_NO_SCOPE.format("set"))

    def child(self, *, step: int | None = None) -> CallContext:
        root = CallContext()
        root.step = step
        return root

    def for_helper(self) -> CallContext:
        root = CallContext()
        root.helper = True
        return root

    def __repr__(self) -> str:
        return "CallContext(detached)"


DETACHED: CallContext = _Detached()
"""What `CallOptions.context` is until a pipeline or a caller sets it."""


def _detached() -> CallContext:
    return DETACHED
