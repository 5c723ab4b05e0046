"""`lifecycle`: your functions at the start, at each piece of text, and at the end of every call."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextvars import copy_context
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import anyio
from pydantic import Field, ImportString

from ..errors import ConfigError, provider_error_for_status
from ..pipeline import BuildContext, Middleware, MiddlewareConfig, Outcome, Stage
from ..pipeline.member import Effect
from ..protocol import (
    CallOptions,
    FinishReason,
    GenerateResult,
    JSONObject,
    Kind,
    LanguageModel,
    PartStream,
    Slot,
    StreamPart,
    StreamResult,
    TextDelta,
    Usage,
)
from ..protocol.late_close import current_loop

_log = logging.getLogger(__name__)

TIMEOUT_VARIABLE = "NEUROLINK_LIFECYCLE_TIMEOUT_MS"
DEFAULT_TIMEOUT_S = 5.0

if TYPE_CHECKING:
    Callback: TypeAlias = Callable[[Any], object]
else:
    Callback = ImportString[Callable[[Any], object]]


@dataclass(frozen=True, slots=True, repr=False)
class Started:
    """A call begins."""

    request_id: str
    kind: Kind
    provider: str
    model_id: str
    metadata: JSONObject | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Chunk:
    """A piece of streamed text, never empty. `sequence_number` counts from 0 within the call."""

    request_id: str
    text_delta: str
    sequence_number: int
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True, repr=False)
class Finished:
    """A call ended without failing. status: "ok", "denied", or "cancelled" / "abandoned" where the caller left early;
    `text` is what had come until then. duration: seconds."""

    request_id: str
    status: str
    text: str
    usage: Usage
    finish_reason: FinishReason | None
    duration: float


@dataclass(frozen=True, slots=True, repr=False)
class Failed:
    """A call failed. `recoverable`: the same call may work later. duration: seconds."""

    request_id: str
    error: BaseException | None
    recoverable: bool
    duration: float


def _timeout_from_environment() -> float:
    text = os.environ.get(TIMEOUT_VARIABLE)
    if text is None:
        return DEFAULT_TIMEOUT_S
    try:
        seconds = float(text) / 1000
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ConfigError(f"{TIMEOUT_VARIABLE} is a number of milliseconds, 0 or more")
    return seconds


class LifecycleConfig(MiddlewareConfig):
    """Callbacks, as functions or as `module:function`, sync or async; each gets one event. timeout: seconds that one
    callback may delay the call, 0 = do not wait for it; the default is 5, or NEUROLINK_LIFECYCLE_TIMEOUT_MS.
    """

    on_start: Callback | None = None
    on_chunk: Callback | None = None
    on_finish: Callback | None = None
    on_error: Callback | None = None
    timeout: float = Field(default_factory=_timeout_from_environment, ge=0, allow_inf_nan=False)


@dataclass
class _Progress:
    """What a call has said so far."""

    text: list[str] = field(default_factory=list)
    chunks: int = 0


class Lifecycle(Middleware):
    """Calls `on_start` once, `on_chunk` before each piece of streamed text is passed on, and at the end exactly one of
    `on_finish` and `on_error`, before the caller sees the end.

    A callback that raises is logged and changes nothing. One that is not done in time is left behind: the call goes
    on. (A sync callback cannot be interrupted: it delays the call for as long as it runs.) A failure is told once,
    also where the same instance stands in a pipeline within a pipeline, or the error was wrapped on its way.
    """

    stage: ClassVar[int] = Stage.OBSERVE
    reads: ClassVar[frozenset[Effect]] = frozenset({"output", "metadata"})
    needs_scope: ClassVar[bool | None] = True
    Config = LifecycleConfig
    config: LifecycleConfig

    def __init__(self, config: LifecycleConfig | None = None, **values: object) -> None:
        super().__init__(config, **values)
        self._progress: Slot[dict[int, _Progress] | None] = Slot("lifecycle", None)
        self._told: Slot[list[BaseException] | None] = Slot("failures that lifecycle told", None)

    def bind(self, build: BuildContext) -> None:
        # A little more than the callback's own deadline, which is the one that counts.
        build.observe(self._end, deadline=self.config.timeout + 1)

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        progress = await self._begin("generate", model, options)
        result = await model.do_generate(options)
        progress.text = [result.text]
        return result

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        progress = await self._begin("stream", model, options)
        result = await model.do_stream(options)
        return result.through(lambda parts: self._watch(parts, progress, options.context.request_id))

    async def _begin(self, kind: Kind, model: LanguageModel, options: CallOptions) -> _Progress:
        context = options.context
        by_scope = context.get(self._progress)
        if by_scope is None:
            by_scope = {}
            context.set(self._progress, by_scope)
        progress = by_scope.get(id(context.scope))
        if progress is None:
            progress = by_scope[id(context.scope)] = _Progress()
            event = Started(context.request_id, kind, model.provider, model.model_id, options.metadata)
            await self._call(self.config.on_start, "on_start", event)
        else:  # somebody further out tries again: it is the same call
            progress.text = []
        return progress

    async def _watch(self, parts: PartStream, progress: _Progress, request_id: str) -> AsyncIterator[StreamPart]:
        on_chunk = self.config.on_chunk
        async for part in parts:
            if part.__class__ is TextDelta and part.delta:
                progress.text.append(part.delta)
                if on_chunk is not None:
                    await self._call(on_chunk, "on_chunk", Chunk(request_id, part.delta, progress.chunks))
                progress.chunks += 1
            yield part

    async def _end(self, outcome: Outcome) -> None:
        by_scope = outcome.context.get(self._progress)
        progress = by_scope.pop(id(outcome.context), None) if by_scope is not None else None
        if outcome.status != "error":
            text = "".join(progress.text) if progress is not None else ""
            await self._call(
                self.config.on_finish,
                "on_finish",
                Finished(
                    outcome.request_id, outcome.status, text, outcome.usage, outcome.finish_reason, outcome.duration
                ),
            )
        elif not self._was_told(outcome):
            recoverable = is_recoverable(outcome.error)
            event = Failed(outcome.request_id, outcome.error, recoverable, outcome.duration)
            await self._call(self.config.on_error, "on_error", event)

    def _was_told(self, outcome: Outcome) -> bool:
        """Whether this request's failure was told before; it is noted as told."""
        context = outcome.context
        told = context.get(self._told)
        if told is None:
            told = []
            context.set(self._told, told)
        causes = _causes(outcome.error)
        before = any(one is known for one in causes for known in told)
        told += causes
        if context.root is context:  # the request is over, and its failure refers to it through its traceback
            context.set(self._told, None)
        return before

    async def _call(self, callback: Callback | None, name: str, event: object) -> None:
        if callback is None:
            return
        try:
            made = callback(event)
        except Exception as error:
            _log.warning("lifecycle %s failed: %s", name, type(error).__name__)
            return
        if not isawaitable(made):
            return
        done = anyio.Event()

        async def run() -> None:
            try:
                await made
            except (Exception, SystemExit) as error:
                _log.warning("lifecycle %s failed: %s", name, type(error).__name__)
            finally:
                done.set()

        # A task of its own, so that even a callback that ignores its cancellation cannot delay the call.
        _start(run)
        if self.config.timeout:
            with anyio.move_on_after(self.config.timeout) as patience:
                await done.wait()
            if patience.cancelled_caught:
                _log.warning("lifecycle %s was left behind after %s s", name, self.config.timeout)


_left_behind: set[asyncio.Task[None]] = set()  # asyncio keeps only weak references to its tasks


def _start(fn: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `fn` beside the call, with its context variables. The event loop cancels it when it ends."""
    loop = current_loop()
    if isinstance(loop, asyncio.AbstractEventLoop):
        task = loop.create_task(fn())
        _left_behind.add(task)
        task.add_done_callback(_left_behind.discard)
    else:
        sys.modules["trio"].lowlevel.spawn_system_task(fn, context=copy_context())


def is_recoverable(error: BaseException | None) -> bool:
    """Whether the same call may work later: by what the error itself says, else by its status or type, or by those of
    its causes; never by its words."""
    for one in _causes(error):
        for name in ("retryable", "retriable"):
            flag = getattr(one, name, None)
            if isinstance(flag, bool):
                return flag
        for name in ("status", "status_code"):
            status = getattr(one, name, None)
            if isinstance(status, int) and 400 <= status < 600:
                return provider_error_for_status(status)[1]
        if isinstance(one, TimeoutError | ConnectionError | anyio.BrokenResourceError):
            return True
    return False


def _causes(error: BaseException | None) -> list[BaseException]:
    chain: list[BaseException] = []
    while error is not None and not any(error is one for one in chain):
        chain.append(error)
        error = error.__cause__
    return chain
