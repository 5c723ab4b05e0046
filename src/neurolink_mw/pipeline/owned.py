"""A layer whose member's failures the host owns: one call of it, and the stream that it returns."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, nullcontext
from typing import Generic, TypeVar

from ..protocol import (
    CallContext,
    CallOptions,
    Finish,
    GenerateResult,
    Kind,
    LanguageModel,
    PartStream,
    StreamPart,
    StreamResult,
    collect,
)
from .denial import Denial
from .failing import Keeper, answered_by, checked_options, no_answer
from .inside import Inside, Upstream, can_end_a_read
from .own_time import OwnTime

R = TypeVar("R", GenerateResult, StreamResult)
_log = logging.getLogger(__name__)
_NO_CLOCK = nullcontext()


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

    def note_answer(self, inside: Inside, context: CallContext) -> None:
        if self._keeper.answers and not inside.upstreams and inside.answer is None:
            answered_by(self._keeper.id, context)


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
        except BaseException as error:
            if (denial := inside.denial_in(error)) is not None:
                raise denial from None
            if not isinstance(error, Exception) or inside.caused(error):
                raise
            keeper.failed(error, options.context)
            return await self._without_member(inside, options, error)
        finally:
            if clock is not None:
                clock.stop()
            if inside.upstreams:
                await inside.close_after_failure()
        keeper.worked()
        self.note_answer(inside, options.context)
        return answer

    async def _without_member(self, inside: Inside, options: CallOptions, error: Exception) -> GenerateResult:
        inside.check_denied()
        if inside.answer is not None:
            return inside.answer
        if inside.upstreams:  # it asked for a stream, to add it up
            upstream = inside.upstreams[-1]
            answer = collect([part async for part in upstream.rest(error)])
            return answer.replace(request=upstream.result.request, response=answer.response or upstream.result.response)
        if inside.asked:
            raise inside.reason(error)
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
            try:
                if (denial := inside.denial_in(error)) is not None:
                    raise denial from None
                if not isinstance(error, Exception) or inside.caused(error):
                    raise
                keeper.failed(error, options.context)
            except BaseException:
                await inside.close_after_failure()
                raise
            return await self._without_member(inside, options, error)
        self.note_answer(inside, options.context)
        reading = _Reading(keeper, inside, clock, result.stream, options, self._passing)
        return result.replace(stream=_OwnedStream(reading, reading.parts()))

    async def _without_member(self, inside: Inside, options: CallOptions, error: Exception) -> StreamResult:
        inside.check_denied()
        if inside.upstreams:
            upstream = inside.upstreams[-1]
            return upstream.result.replace(stream=_OwnedStream(inside, upstream.rest(error)))
        if inside.answer is not None:
            return StreamResult.of(inside.answer)
        if inside.asked:
            raise inside.reason(error)
        return await self._passing(options)


class _OwnedStream(PartStream):
    """The stream of an owned layer. What the member reads from is not upstream of it, and is closed by it."""

    __slots__ = ("_reads",)

    def __init__(self, reads: _Reading | Inside, source: AsyncIterator[StreamPart]) -> None:
        super().__init__(source, close=reads.aclose)
        self._reads = reads

    def _can_end_a_read(self) -> bool:
        return self._reads.can_end_a_read()


class _Reading:
    """The stream of an owned layer: the member's, until the member fails and is skipped."""

    def __init__(
        self,
        keeper: Keeper,
        inside: Inside,
        clock: OwnTime | None,
        stream: PartStream,
        options: CallOptions,
        passing: Callable[[CallOptions], Awaitable[StreamResult]],
    ) -> None:
        self._keeper = keeper
        self._inside = inside
        self._clock = clock
        self._stream = stream
        self._options = options
        self._passing = passing
        self._left = False  # by the member

    async def parts(self) -> AsyncIterator[StreamPart]:
        keeper, inside, clock, stream = self._keeper, self._inside, self._clock, self._stream
        stream._inner = True
        read = stream.__aiter__().__anext__
        source: Upstream | None = None  # what all parts so far came from, unchanged
        transparent = skips = inside.keeps_parts
        while True:
            try:
                if clock is None:
                    part = await read()
                else:
                    with clock:
                        part = await read()
            except StopAsyncIteration:
                keeper.worked()
                return
            except BaseException as error:
                if (denial := inside.denial_in(error)) is not None:
                    raise denial from None
                # Where somebody closed the stream while it was read, that is no failure either.
                if not isinstance(error, Exception) or inside.caused(error) or stream._ending is not None:
                    raise
                exact = transparent and (source is None or source in inside.upstreams[-1:])
                keeper.failed(error, self._options.context, too_late=skips and not exact)
                failure = error
                break
            if transparent and (source := inside.passed(part, source)) is None:
                transparent = False  # changed, left out or made by the member
                await inside.let_go()
            if part.__class__ is Finish:  # where many stop reading
                keeper.worked()
            yield part
        await self._leave(stream)
        async with aclosing((await self._without_member(failure)).rest(failure)) as rest:
            async for part in rest:
                yield part

    async def _leave(self, stream: PartStream) -> None:
        self._left = True
        try:
            await stream.aclose()
        except (Exception, Denial) as error:
            _log.warning("closing the stream of %s failed: %s", self._keeper.id, type(error).__name__)

    async def _without_member(self, error: Exception) -> Upstream:
        inside = self._inside
        inside.check_denied()
        if inside.upstreams:
            return inside.upstreams[-1]
        if inside.answer is not None:
            return inside.opened(StreamResult.of(inside.answer))
        if inside.asked:
            raise inside.reason(error)
        return inside.opened(await self._passing(self._options))

    def can_end_a_read(self) -> bool:
        return (self._left or can_end_a_read(self._stream)) and self._inside.can_end_a_read()

    async def aclose(self) -> None:
        """Close what the model opened, which ends a read that waits there, then what the member made of it."""
        if self._clock is not None:
            self._clock.stop()
        async with AsyncExitStack() as closing:
            closing.push_async_callback(self._stream.aclose)
            closing.push_async_callback(self._inside.aclose)
