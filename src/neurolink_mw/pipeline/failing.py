"""Whose failure it is, and what the host does about it.

A member that has a rule of its own (`on_error`, `timeout`) or sees denials gets, instead of the next model in, a
stand-in that remembers what came from inside. A failure that came from there, or was caused by one that did, is never
the member's. For the rest:

- "deny" refuses the call.
- "skip" goes on as if the member were not there, and never calls a model twice: if the model answered, that answer
  stands; if it failed, that failure does; if it was not asked, it is asked with the options as they were before this
  layer. In a stream that works as long as the member has passed on every part unchanged: what it took and has not
  passed on is given out, then the rest. After a changed part the failure is raised, since nobody could tell what is
  missing.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, nullcontext
from typing import Generic, TypeVar, cast

from ..errors import ConfigError, PolicyDenied
from ..events import Handling, MemberFailed
from ..protocol import (
    DETACHED,
    SPECIFICATION_VERSION,
    CallContext,
    CallOptions,
    Closer,
    GenerateResult,
    Kind,
    LanguageModel,
    PartStream,
    StreamPart,
    StreamResult,
    SupportedUrls,
    supported_urls,
    with_context,
)
from .denial import Denial, find_denial
from .own_time import OwnTime
from .rest import Rest
from .rules import Rules
from .scope import Scope

R = TypeVar("R", GenerateResult, StreamResult)
_log = logging.getLogger(__name__)
_NO_CLOCK = nullcontext()

TOO_MANY = "TooManyFailures"
"""What stands for the name of an error where a member was left alone."""

FAILED = "middleware-failed"
"""The code of a denial that a member's own failure led to."""
_FAILED = "This request could not be checked, so it was refused."


class Keeper:
    """What the host knows about one place of one chain, whichever call runs there."""

    def __init__(self, id: str, rules: Rules, clock: Callable[[], float], *, sees_denials: bool, answers: bool) -> None:
        self.id = id
        self.rules = rules
        self.sees_denials = sees_denials
        self.answers = answers
        self._rest = Rest(rules.max_failures, clock) if rules.max_failures is not None else None

    @property
    def needed(self) -> bool:
        """Whether there is anything to do but to let the member run."""
        return self.rules.owned or self.sees_denials

    def clock(self) -> OwnTime | None:
        return None if self.rules.timeout is None else OwnTime(self.rules.timeout, self.id)

    def rests(self, context: CallContext) -> bool:
        """Whether the member has failed too often of late. Then "skip" leaves it out, and "deny" refuses the call."""
        if self._rest is None or not self._rest.resting():
            return False
        self._note(context, None, self.rules.on_error)
        if self.rules.on_error == "deny":
            raise self._denial(context)
        return True

    def worked(self) -> None:
        if self._rest is not None:
            self._rest.worked()

    def failed(self, error: Exception, context: CallContext, *, too_late: bool = False) -> None:
        """The member failed. Returns only if it is to be skipped. too_late: it cannot be skipped any more."""
        if self._rest is not None:
            self._rest.failed()
        handling: Handling = "raise" if too_late else self.rules.on_error
        self._note(context, error, handling)
        if handling == "deny":
            raise self._denial(context) from error
        if handling == "raise":
            raise error

    def _denial(self, context: CallContext) -> BaseException:
        return context.deny(FAILED, _FAILED, by=self.id)

    def _note(self, context: CallContext, error: Exception | None, handling: Handling) -> None:
        """Say that the member failed, or (None) that it was not asked because it had failed too often."""
        name = TOO_MANY if error is None else type(error).__name__
        # Only messages of our own are known to hold nothing of the call.
        said = f"{name}: {error}" if isinstance(error, ConfigError | TimeoutError) else name
        _log.warning("%s failed, and its on_error is %s: %s", self.id, handling, said)
        scope = context.scope
        if isinstance(scope, Scope):
            shadow = self.rules.mode == "shadow"
            scope.note(MemberFailed(context.request_id, self.id, name, handling, shadow, tried=error is not None))


class Inside:
    """The model that an owned member gets for one call.

    It stops the member's clock while the model works, and remembers what came from inside. `answer`: the last answer
    to the call itself, not to a helper call that the member made for its own use.
    """

    __slots__ = ("_clock", "_keeper", "_model", "_scope", "answer", "asked", "failures", "upstreams")
    specification_version = SPECIFICATION_VERSION

    def __init__(self, model: LanguageModel, keeper: Keeper, clock: OwnTime | None, context: CallContext) -> None:
        self._model = model
        self._keeper = keeper
        self._clock = clock
        self._scope = context.scope
        self.asked = False
        self.answer: GenerateResult | None = None
        self.upstreams: Sequence[_Upstream] = ()
        self.failures: Sequence[BaseException] = ()

    @property
    def provider(self) -> str:
        return self._model.provider

    @property
    def model_id(self) -> str:
        return self._model.model_id

    @property
    def supported_urls(self) -> SupportedUrls:
        return supported_urls(self._model)

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        answer = await self._ask(self._model.do_generate, options)
        if self._is_the_call(options):
            self.answer = answer
        return answer

    async def do_stream(self, options: CallOptions) -> StreamResult:
        for earlier in self.upstreams:
            await earlier.close_if_given_up()
        result = await self._ask(self._model.do_stream, options)
        if not self._is_the_call(options):
            return result
        upstream = _Upstream(result.stream, self)
        self.upstreams = [*self.upstreams, upstream]
        return result.replace(stream=upstream.view)

    def _is_the_call(self, options: CallOptions) -> bool:
        return options.context.scope is self._scope

    async def _ask(self, ask: Callable[[CallOptions], Awaitable[R]], options: CallOptions) -> R:
        self.asked = self.asked or self._is_the_call(options)
        clock = self._clock
        if clock is not None:
            clock.pause()
        try:
            answer = await ask(options)
        except BaseException as error:
            came_out = self.came_out(error)
            if came_out is error:
                raise
            raise came_out from None
        finally:
            if clock is not None:
                clock.resume()
        if (swallowed := self._latched()) is not None:
            raise self._shown(swallowed)
        return answer

    def came_out(self, error: BaseException) -> BaseException:
        """Note what the model raised. A denial is shown to a member that sees denials, and noted for no other."""
        denial = find_denial(error)
        if denial is not None and self._keeper.sees_denials:
            return self._shown(denial)
        if denial is None:
            self.failures = [*self.failures, error]
        return error

    def _latched(self) -> Denial | None:
        return self._scope.denial if self._keeper.sees_denials and isinstance(self._scope, Scope) else None

    def _shown(self, denial: Denial) -> PolicyDenied:
        if isinstance(self._scope, Scope):
            self._scope.denial = None
        shown = denial.as_error()
        self.failures = [*self.failures, shown]
        return shown

    def caused(self, error: BaseException) -> bool:
        """Whether a failure came from inside: it is one that did, was raised from one, or is a group of such."""
        seen: BaseException | None = error
        while seen is not None:
            if any(seen is one for one in self.failures):
                return True
            if isinstance(seen, BaseExceptionGroup) and any(self.caused(one) for one in seen.exceptions):
                return True
            seen = seen.__cause__
        return False

    def failure(self) -> Exception | None:
        """The last failure of the model."""
        return next((one for one in reversed(self.failures) if isinstance(one, Exception)), None)


class _Upstream:
    """A stream of the model on its way to the member. Where the member may be skipped, its view does not close the
    stream: what comes after the failure is read from there."""

    __slots__ = ("_given_up", "_inside", "held", "stream", "view")

    def __init__(self, stream: PartStream, inside: Inside) -> None:
        self._inside = inside
        self._given_up = False
        self.stream = stream
        self.held: deque[StreamPart] | None = None
        if inside._keeper.rules.on_error == "skip":
            self.held = deque()
            stream._inner = True  # our view reads it, as a derived stream does
            self.view = PartStream(self._watched(stream))
            self.view._close = Closer(self._give_up)
        else:
            self.view = stream.through(self._watched)

    async def _give_up(self) -> None:
        self._given_up = True

    async def close_if_given_up(self) -> None:
        if self._given_up:
            await self.stream.aclose()

    async def _watched(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        inside = self._inside
        clock = inside._clock
        read = stream.__aiter__().__anext__
        while True:
            if clock is not None:
                clock.pause()
            try:
                part = await read()
            except StopAsyncIteration:
                return
            except BaseException as error:
                came_out = inside.came_out(error)
                if came_out is error:
                    raise
                raise came_out from None
            finally:
                if clock is not None:
                    clock.resume()
            if self.held is not None:
                self.held.append(part)
            yield part


class Owned(Generic[R]):
    """One call of an owned layer: the member's hooks, and the model further in."""

    _answer_type: type[R]
    _passing: Callable[[CallOptions], Awaitable[R]]
    _wrap: Callable[..., Awaitable[R]] | None

    def __init__(
        self,
        keeper: Keeper,
        kind: Kind,
        model: LanguageModel,
        passing: Callable[[CallOptions], Awaitable[R]],
        transform: Callable[..., Awaitable[CallOptions]] | None,
        wrap: Callable[..., Awaitable[R]] | None,
    ) -> None:
        self._keeper = keeper
        self._kind = kind
        self._model = model
        self._passing = passing
        self._transform = transform
        self._wrap = wrap
        # The member's hooks, in their order. The usual one, a wrap alone, spares a frame at every call.
        self.enter: Callable[[Inside, CallOptions], Awaitable[R]] = (
            wrap if wrap is not None and transform is None else self._enter
        )

    async def _enter(self, inside: Inside, options: CallOptions) -> R:
        if self._transform is not None:
            changed = await self._transform(options, self._kind, inside)
            options = checked_options(self._keeper.id, changed, options)
        if self._wrap is not None:
            return await self._wrap(inside, options)
        ask: Callable[[CallOptions], Awaitable[R]] = getattr(inside, f"do_{self._kind}")
        return await ask(options)

    def check(self, answer: R) -> None:
        """A failure of the member, where its wrap returned no answer."""
        if not isinstance(answer, self._answer_type):
            raise no_answer(answer, f"{self._keeper.id}.wrap_{self._kind}", self._answer_type)


class OwnedGenerate(Owned[GenerateResult]):
    _answer_type = GenerateResult

    async def __call__(self, options: CallOptions) -> GenerateResult:
        keeper = self._keeper
        if keeper.rests(options.context):
            return await self._passing(options)
        clock = keeper.clock()
        inside = Inside(self._model, keeper, clock, options.context)
        try:
            with clock or _NO_CLOCK:
                answer = await self.enter(inside, options)
            self.check(answer)
        except Exception as error:
            if inside.caused(error):
                raise
            keeper.failed(error, options.context)
            return await self._without_member(inside, options, error)
        finally:
            if clock is not None:
                clock.stop()
        keeper.worked()
        if keeper.answers and inside.answer is None:
            answered_by(keeper.id, options.context)
        return answer

    async def _without_member(self, inside: Inside, options: CallOptions, error: Exception) -> GenerateResult:
        if inside.answer is not None:
            return inside.answer
        if inside.asked:  # its answer never came: it failed, or the member left it
            raise inside.failure() or error
        return await self._passing(options)


class OwnedStream(Owned[StreamResult]):
    _answer_type = StreamResult

    async def __call__(self, options: CallOptions) -> StreamResult:
        keeper = self._keeper
        if keeper.rests(options.context):
            return await self._passing(options)
        clock = keeper.clock()
        inside = Inside(self._model, keeper, clock, options.context)
        try:
            with clock or _NO_CLOCK:
                result = await self.enter(inside, options)
            self.check(result)
        except BaseException as error:
            if clock is not None:
                clock.stop()
            if not isinstance(error, Exception) or inside.caused(error):
                raise
            keeper.failed(error, options.context)
            return await self._without_member(inside, options, error)
        if keeper.answers and not inside.upstreams and inside.answer is None:
            answered_by(keeper.id, options.context)
        reading = _Reading(keeper, inside, clock, result.stream, options.context)
        return result.replace(stream=PartStream(reading.parts(), close=reading.aclose))

    async def _without_member(self, inside: Inside, options: CallOptions, error: Exception) -> StreamResult:
        if inside.upstreams:
            reading = _Reading(self._keeper, inside, None, None, options.context)
            return StreamResult(PartStream(reading.parts(), close=reading.aclose))
        if inside.answer is not None:
            return StreamResult.of(inside.answer)
        if inside.asked:
            raise inside.failure() or error
        return await self._passing(options)


class _Reading:
    """The stream of an owned layer: the member's, until the member fails and is skipped."""

    def __init__(
        self, keeper: Keeper, inside: Inside, clock: OwnTime | None, stream: PartStream | None, context: CallContext
    ) -> None:
        self._keeper = keeper
        self._inside = inside
        self._clock = clock
        self._stream = stream
        self._context = context

    async def parts(self) -> AsyncIterator[StreamPart]:
        if self._stream is not None:
            async with aclosing(self._of_member(self._stream)) as parts:
                async for part in parts:
                    yield part
            if self._stream is not None:
                return
        upstream = self._inside.upstreams[-1]
        held = cast("deque[StreamPart]", upstream.held)
        while held:
            yield held.popleft()
        async for part in upstream.stream:
            yield part

    async def _of_member(self, stream: PartStream) -> AsyncGenerator[StreamPart, None]:
        stream._inner = True
        read = stream.__aiter__().__anext__
        clock, inside = self._clock, self._inside
        transparent = bool(inside.upstreams) and inside.upstreams[-1].held is not None
        while True:
            try:
                if clock is None:
                    part = await read()
                else:
                    with clock:
                        part = await read()
            except StopAsyncIteration:
                self._keeper.worked()
                return
            except Exception as error:
                if inside.caused(error) or self._inside_closed(error):
                    raise
                too_late = self._keeper.rules.on_error == "skip" and not transparent
                self._keeper.failed(error, self._context, too_late=too_late)
                self._stream = None
                return
            if transparent:
                held = cast("deque[StreamPart]", inside.upstreams[-1].held)
                if held and held[0] is part:
                    held.popleft()
                else:  # changed, left out or made by the member: from here on it cannot be taken out
                    transparent = False
                    for upstream in inside.upstreams:
                        upstream.held = None
            yield part

    def _inside_closed(self, error: Exception) -> bool:
        """Whether somebody closed the stream while it was read: that is no failure."""
        return self._stream is None or self._stream._ending is not None

    async def aclose(self) -> None:
        """Close what the model opened, which ends a read that waits there, then what the member made of it."""
        if self._clock is not None:
            self._clock.stop()
        async with AsyncExitStack() as closing:
            if self._stream is not None:
                closing.push_async_callback(self._stream.aclose)
            for upstream in self._inside.upstreams:
                closing.push_async_callback(upstream.stream.aclose)


def answered_by(id: str, context: CallContext) -> None:
    if isinstance(context.scope, Scope):
        context.scope.answer(id)


def checked_options(id: str, changed: object, given: CallOptions) -> CallOptions:
    """What a `transform_params` returned. Made from scratch, it is still the same call."""
    if not isinstance(changed, CallOptions):
        raise ConfigError(f"{id}.transform_params returns the options to go on with, not {type(changed).__name__}")
    if changed.context is DETACHED and given.context is not DETACHED:
        return with_context(changed, given.context)
    return changed


def no_answer(result: object, call: str, expected: type) -> ConfigError:
    kind = type(result).__name__
    hint = "; is there a `return` missing?" if result is None else ""
    return ConfigError(f"{call} returned {kind}, not a {expected.__name__}{hint}")
