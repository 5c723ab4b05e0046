"""The inner end of a chain that has a scope: what reaches the model is counted, with what it cost."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable
from typing import cast

from ..errors import ProviderError
from ..protocol import (
    DETACHED,
    NO_USAGE,
    Attempt,
    CallContext,
    CallOptions,
    Finish,
    GenerateResult,
    Kind,
    LanguageModel,
    PartStream,
    StreamPart,
    StreamResult,
)
from .bind import Call
from .scope import Scope

_log = logging.getLogger(__name__)


def is_turn(model: object) -> bool:
    """Whether a model is a whole turn, whose steps are what calls a model."""
    return getattr(model, "is_turn", False) is True


class Tap:
    """The innermost layer: every call that reaches the model goes into the scope's account.

    leaf: False where the model accounts for its calls itself: a chain with a scope of its own, or a turn. seen: no
    member stands between the boundary and the model, so that the boundary sees each answer as the model gave it and
    settles the account; the tap then only begins it, which spares a frame a call and a generator a part. counts: its
    calls are attempts of the scope that they are in; those of a turn's steps are not.
    """

    def __init__(self, model: LanguageModel, *, leaf: bool, seen: bool = False, counts: bool = True) -> None:
        self._leaf = leaf
        self._counts = counts
        self._generate = model.do_generate
        self._stream = model.do_stream
        self.provider = model.provider
        self.model_id = model.model_id
        passes_on = leaf and seen
        self.do_generate: Call[GenerateResult] = self._pass_generate if passes_on else self._watch_generate
        self.do_stream: Call[StreamResult] = self._pass_stream if passes_on else self._watch_stream

    def _pass_generate(self, options: CallOptions) -> Awaitable[GenerateResult]:
        scope = options.context
        if scope.__class__ is not Scope:
            return self._watch_generate(options)
        scope.begin_seen(Attempt("generate", self.provider, self.model_id, scope.helper))
        return self._generate(options)

    def _pass_stream(self, options: CallOptions) -> Awaitable[StreamResult]:
        scope = options.context
        if scope.__class__ is not Scope:
            return self._watch_stream(options)
        scope.begin_seen(Attempt("stream", self.provider, self.model_id, scope.helper))
        return self._stream(options)

    async def _watch_generate(self, options: CallOptions) -> GenerateResult:
        attempt = self._begin("generate", options.context)
        if attempt is None:
            return await self._generate(options)
        try:
            result = await self._generate(options)
        except BaseException as error:
            failed(attempt, error)
            raise
        attempt.status = "ok"
        attempt.usage = result.usage
        return result

    async def _watch_stream(self, options: CallOptions) -> StreamResult:
        context = options.context
        attempt = self._begin("stream", context)
        if attempt is None:
            result = await self._stream(options)
        else:
            try:
                result = await self._stream(options)
            except BaseException as error:
                failed(attempt, error)
                raise
            result = result.through(lambda parts: _accounted(parts, attempt))
        scope = cast("Scope | None", context.scope)
        if scope is not None and scope.opened is not None:
            scope.opened.append(result.stream)
        return result

    def _begin(self, kind: Kind, context: CallContext) -> Attempt | None:
        """Account for a call that reaches the model; None where a chain further in does."""
        scope = cast("Scope | None", context.scope)
        if scope is not None:
            if scope.denial is not None:  # somebody took it for a failure, and tries again
                raise scope.denial
            if self._counts:
                scope.attempts += 1
                scope.answered_by = None  # whoever answered an earlier try of this call
        if not self._leaf:
            return None
        attempt = Attempt(kind, self.provider, self.model_id, context.helper)
        if scope is not None:
            scope.begin(attempt)
        else:
            _begin_outside(attempt, context)
        return attempt


def _begin_outside(attempt: Attempt, context: CallContext) -> None:
    """A member's own call to the model: it stands in the request's ledger, and in no scope."""
    if context is DETACHED:
        _log.warning(
            "a member called the model with options of its own, which no account can show: "
            "use options.replace(...) for the same call, options.for_helper(prompt) for one of its own"
        )
    context.ledger.append(attempt)


async def _accounted(parts: PartStream, attempt: Attempt) -> AsyncIterator[StreamPart]:
    try:
        async for part in parts:
            if part.__class__ is Finish:
                attempt.status = "ok"
                attempt.usage = part.usage
            yield part
    finally:
        if attempt.status == "running":
            attempt.status = "error"


def failed(attempt: Attempt, error: BaseException) -> None:
    """Settle an attempt that failed. One that was refused with an HTTP status, before any work, costs nothing."""
    attempt.status = "error"
    if isinstance(error, ProviderError) and error.status is not None and error.status >= 400:
        attempt.usage = NO_USAGE
