"""Attempts as an observer sees them: each call that reaches the model has an outcome of its own."""

from __future__ import annotations

from ..protocol import Attempt, CallOptions, LanguageModel
from .boundary import Boundary
from .build import Listener
from .scope import Host, Scope


class AttemptBoundary(Boundary):
    """A boundary around the model itself. It makes outcomes, and no scope of its own: the call goes on in the one that
    it came in, which accounts for the attempt."""

    def __init__(self, model: LanguageModel, listener: Listener) -> None:
        super().__init__(Host(model, (listener,), (), frozenset({listener.id})), timed=False)
        self.model = model
        self._in_scope = self._watched

    def _watched(self, options: CallOptions, scope: Scope) -> CallOptions:
        scope.seen = Attempt(scope.kind, self.model.provider, self.model.model_id, scope.helper)
        scope.calls = [scope.seen]
        scope.attempts = 1
        return options
