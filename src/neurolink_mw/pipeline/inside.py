"""The model that an owned member gets: a stand-in that remembers what came from inside, and what is left of it."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import TypeVar

from ..errors import PolicyDenied
from ..protocol import (
    SPECIFICATION_VERSION,
    CallContext,
    CallOptions,
    Closer,
    GenerateResult,
    LanguageModel,
    PartStream,
    StreamPart,
    StreamResult,
    SupportedUrls,
    supported_urls,
)
from .denial import Denial, find_denial
from .failing import Keeper, no_answer, rejoined
from .own_time import OwnTime
from .scope import Scope

R = TypeVar("R", GenerateResult, StreamResult)
_log = logging.getLogger(__name__)


class Inside:
    """The model that an owned member gets for one call.

    It stops the member's clock while the model works, and remembers what came from inside. `answer`, `upstreams` and
    `failure`: the last answer to the call itself, its streams that are not given up, and its last failure; a helper
    call that the member makes for its own use is none of these.
    """

    __slots__ = (
        *("_already_denied", "_clock", "_context", "_denied", "_failures", "_keeper", "_model", "_scope", "_shown"),
        *("answer", "asked", "failure", "keeps_parts", "upstreams"),
    )
    specification_version = SPECIFICATION_VERSION

    def __init__(self, model: LanguageModel, keeper: Keeper, clock: OwnTime | None, context: CallContext) -> None:
        self._model = model
        self._keeper = keeper
        self._clock = clock
        self._context = context
        scope = self._scope = context.scope
        self.asked = False
        self.answer: GenerateResult | None = None
        self.failure: BaseException | None = None
        self.upstreams: Sequence[Upstream] = ()
        self.keeps_parts = keeper.rules.on_error == "skip"
        self._failures: Sequence[BaseException] = ()
        self._denied = False
        self._shown: PolicyDenied | None = None
        # By somebody further out. That is no business of a member that sees what is denied further in.
        self._already_denied = scope.denial if keeper.sees_denials and isinstance(scope, Scope) else None

    @property
    def provider(self) -> str:
        return self._model.provider

    @property
    def model_id(self) -> str:
        return self._model.model_id

    @property
    def supported_urls(self) -> SupportedUrls:
        return supported_urls(self._model)

    # Not coroutine functions: a call that is begun in a task of its own counts from here, not from its first step.

    def do_generate(self, options: CallOptions) -> Awaitable[GenerateResult]:
        options, is_the_call = self._begun(options)
        return self._ask(self._model.do_generate, options, is_the_call, GenerateResult)

    def do_stream(self, options: CallOptions) -> Awaitable[StreamResult]:
        options, is_the_call = self._begun(options)
        return self._stream(options, is_the_call)

    def _begun(self, options: CallOptions) -> tuple[CallOptions, bool]:
        """The options to ask with, and whether it is the call itself that is asked."""
        if options.context is not self._context:
            options = rejoined(options, self._context)
            if options.context.scope is not self._scope:
                return options, False
        self.asked = True
        return options, True

    async def _stream(self, options: CallOptions, is_the_call: bool) -> StreamResult:
        if is_the_call:
            await self._close_given_up()
        result = await self._ask(self._model.do_stream, options, is_the_call, StreamResult)
        return self.opened(result).shown if is_the_call else result

    def opened(self, result: StreamResult) -> Upstream:
        """A stream of the model, for the call itself."""
        upstream = Upstream(result, self)
        self.upstreams = [*self.upstreams, upstream]
        return upstream

    async def _ask(
        self, ask: Callable[[CallOptions], Awaitable[R]], options: CallOptions, is_the_call: bool, expected: type[R]
    ) -> R:
        clock = self._clock
        if clock is not None:
            clock.pause()
        try:
            answer = await ask(options)
            if answer.__class__ is not expected and not isinstance(answer, expected):
                call = "do_generate" if expected is GenerateResult else "do_stream"
                raise no_answer(answer, f"{call} of a member or model", expected)
        except BaseException as error:
            came_out = self.came_out(error)
            if is_the_call:
                self.failure = came_out
            if came_out is error:
                raise
            raise came_out from None
        finally:
            if clock is not None:
                clock.resume()
        if self._keeper.sees_denials:
            self.check_swallowed()
        if is_the_call and isinstance(answer, GenerateResult):
            self.answer = answer
        return answer

    # -- whose failure it is

    def came_out(self, error: BaseException) -> BaseException:
        """Note what the model raised. A denial is shown to a member that sees denials, and noted for no other."""
        denial = find_denial(error)
        if denial is None and self._keeper.sees_denials and isinstance(error, Exception):
            denial = self._swallowed()
        if denial is None:
            self._failures = [*self._failures, error]
        elif self._keeper.sees_denials:
            return self._show(denial)
        else:
            self._denied = True
        return error

    def check_swallowed(self) -> None:
        """Show a member that sees denials one that somebody further in swallowed."""
        if (denial := self._swallowed()) is not None:
            raise self._show(denial)

    def _swallowed(self) -> Denial | None:
        denial = self._scope.denial if isinstance(self._scope, Scope) else None
        return None if denial is self._already_denied else denial

    def _show(self, denial: Denial) -> PolicyDenied:
        """What a member sees of a denial. The call is not denied by it any more; one from further out stands."""
        if isinstance(self._scope, Scope):
            self._scope.denial = self._already_denied
        self._shown = denial.as_error()
        self._failures = [*self._failures, self._shown]
        return self._shown

    def denial_in(self, error: BaseException) -> Denial | None:
        """The denial that leaves a member: its own, one from further in, or one that it saw and raised again."""
        denial = find_denial(error)
        if denial is not None:
            if not self._denied:
                self._keeper.worked()
            if isinstance(self._scope, Scope):
                self._scope.latch(denial)
        return denial

    def caused(self, error: BaseException, seen: set[int] | None = None) -> bool:
        """Whether it came from inside: it is a failure that did, was raised from one, or is a group of such."""
        seen = set() if seen is None else seen
        at: BaseException | None = error
        while at is not None and id(at) not in seen:
            seen.add(id(at))
            if any(at is one for one in self._failures):
                return True
            if isinstance(at, BaseExceptionGroup) and any(self.caused(one, seen) for one in at.exceptions):
                return True
            at = at.__cause__
        return False

    # -- what there is without the member

    def check_denied(self) -> None:
        """A denial that the member was shown stands, where the member failed before it had handled it."""
        if self._shown is not None:
            raise self._shown

    def reason(self, error: Exception) -> Exception:
        """What to raise where the model was asked and there is no answer: its failure, else that of the member."""
        return self.failure if isinstance(self.failure, Exception) else error

    def passed(self, part: StreamPart, source: Upstream | None) -> Upstream | None:
        """Note a part that the member passed on. Returns the stream that it is the next part of; None if of none, or
        not of `source`, which those before it came from."""
        last = self.upstreams[-1] if self.upstreams else None
        if last is None or (source is not None and source is not last) or not last.held or last.held[0] is not part:
            return None
        last.held.popleft()
        return last

    async def let_go(self) -> None:
        """The member cannot be taken out any more: nothing needs to be kept for that."""
        self.keeps_parts = False
        for upstream in self.upstreams:
            upstream.held.clear()
        await self._close_given_up()

    async def _close_given_up(self) -> None:
        given_up = [upstream for upstream in self.upstreams if upstream.given_up]
        self.upstreams = [upstream for upstream in self.upstreams if not upstream.given_up]
        for upstream in given_up:
            await upstream.aclose()

    def can_end_a_read(self) -> bool:
        return all(can_end_a_read(upstream.result.stream) for upstream in self.upstreams)

    async def aclose(self) -> None:
        """Close what the model opened, whatever one of them raises."""
        async with AsyncExitStack() as closing:
            for upstream in self.upstreams:
                closing.push_async_callback(upstream.aclose)

    async def close_after_failure(self) -> None:
        try:
            await self.aclose()
        except (Exception, Denial) as error:  # the failure that the caller gets is the first one
            _log.warning("closing a stream that %s left failed: %s", self._keeper.id, type(error).__name__)


class Upstream:
    """A stream of the model on its way to the member. Where the member may be skipped, the view that it gets does not
    close the stream: what comes after the failure is read from there."""

    __slots__ = ("_inside", "_view", "failure", "given_up", "held", "result", "shown")

    def __init__(self, result: StreamResult, inside: Inside) -> None:
        self._inside = inside
        self.result = result
        self.held: deque[StreamPart] = deque()
        self.failure: BaseException | None = None
        self.given_up = False
        if inside.keeps_parts:
            result.stream._inner = True  # our view reads it, as a derived stream does
            self._view = PartStream(self._watched(result.stream))
            self._view._close = Closer(self._give_up)
        else:
            self._view = result.stream.through(self._watched)
        self.shown = result.replace(stream=self._view)

    async def _give_up(self) -> None:
        self.given_up = True
        if not self._inside.keeps_parts:
            await self.result.stream.aclose()

    async def aclose(self) -> None:
        """Close the stream, which ends a read that waits there, then the view of it."""
        try:
            await self.result.stream.aclose()
        finally:
            await self._view.aclose()

    async def _watched(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        inside, held = self._inside, self.held
        clock = inside._clock
        sees_denials = inside._keeper.sees_denials
        read = stream.__aiter__().__anext__
        while True:
            if clock is not None:
                clock.pause()
            try:
                part = await read()
            except StopAsyncIteration:
                break
            except BaseException as error:
                self.failure = came_out = inside.came_out(error)
                if came_out is error:
                    raise
                raise came_out from None
            finally:
                if clock is not None:
                    clock.resume()
            if sees_denials:
                inside.check_swallowed()
            if inside.keeps_parts:
                held.append(part)
            yield part
        if sees_denials:
            inside.check_swallowed()

    async def rest(self, error: Exception) -> AsyncGenerator[StreamPart, None]:
        """What the member took and did not pass on, then what it did not take. `error`: why it was left out, which is
        raised where the stream was cut off in its hands."""
        while self.held:
            yield self.held.popleft()
        if self.failure is not None:
            raise self.failure if isinstance(self.failure, Exception) else error
        async for part in self.result.stream:
            yield part


def can_end_a_read(stream: PartStream) -> bool:
    """Whether closing a stream ends a read that waits at its source."""
    *_, source = stream._lineage()
    asks: Callable[[], bool] | None = getattr(source, "_can_end_a_read", None)
    return source._close is not None if asks is None else asks()
