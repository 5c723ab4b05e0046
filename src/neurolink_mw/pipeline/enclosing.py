"""What a turn finds out from the scopes that it runs in: who stands around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..events import Event
from ..protocol import CallContext
from .build import Surroundings
from .scope import Scope


def enclosing_scopes(context: CallContext) -> Iterator[Scope]:
    """From the innermost out."""
    scope = context.scope
    while isinstance(scope, Scope):
        yield scope
        scope = scope.parent


def listener_of(model: object, context: CallContext) -> Callable[[Event], None] | None:
    """Whom to tell what happens in a turn: the plugins that listen to the chain around its steps, or around it."""
    inner = model
    while isinstance(surroundings := getattr(getattr(inner, "chain", None), "surroundings", None), Surroundings):
        if surroundings.events is not None:
            return surroundings.events
        inner = inner.chain.model  # type: ignore[attr-defined]  # a wrapped model
    return next((scope.host.events for scope in enclosing_scopes(context) if scope.host.events is not None), None)


def output_is_judged(context: CallContext) -> bool:
    """Whether somebody around the turn may yet deny or change what it says."""
    return any(scope.host.judges_output for scope in enclosing_scopes(context))
