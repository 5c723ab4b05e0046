"""What `do_stream` returns, and what a middleware does with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from inspect import isawaitable
from typing import TYPE_CHECKING

from ..errors import ProviderError
from .accumulate import Accumulator, parts_of
from .blocks import BlockFactory
from .part_stream import ExpandPart, MapPart, PartStream, Rest, Through
from .parts import ErrorPart, Finish, StreamPart, is_first_content
from .results import GenerateResult, RequestInfo, ResponseInfo
from .values import Value, value

if TYPE_CHECKING:
    from collections.abc import Iterable


@value
class StreamResult(Value):
    """A stream of parts, with what is known about the request and response before it is read."""

    stream: PartStream
    request: RequestInfo | None = None
    response: ResponseInfo | None = None

    @classmethod
    def of(cls, result: GenerateResult) -> StreamResult:
        """An answer that is already there, as a stream."""
        return cls(PartStream.of(parts_of(result)), result.request, result.response)

    @classmethod
    def of_parts(cls, parts: Iterable[StreamPart]) -> StreamResult:
        """Parts that are already there, as a stream."""
        return cls(PartStream.of(parts))

    def map(self, fn: MapPart) -> StreamResult:
        """See `PartStream.map`."""
        return StreamResult(self.stream.map(fn), self.request, self.response)

    def expand(self, fn: ExpandPart, *, rest: Rest | None = None) -> StreamResult:
        """See `PartStream.expand`."""
        return StreamResult(self.stream.expand(fn, rest=rest), self.request, self.response)

    def through(self, fn: Through) -> StreamResult:
        """See `PartStream.through`."""
        return StreamResult(self.stream.through(fn), self.request, self.response)

    def blocks(self, factory: BlockFactory, kinds: Sequence[str] = ("text",)) -> StreamResult:
        """See `PartStream.blocks`."""
        return StreamResult(self.stream.blocks(factory, kinds), self.request, self.response)

    def collected(self, fn: Callable[[GenerateResult], Awaitable[None] | None]) -> StreamResult:
        """Run `fn(answer)` on the whole answer, after everything else and before `finish` is passed on.

        Before, because many consumers stop at the finish part: what is done after it might never be done. A stream
        that is left early, fails or never finishes runs nothing.
        """

        async def watch(parts: PartStream) -> AsyncIterator[StreamPart]:
            accumulator = Accumulator()
            async for part in parts:
                accumulator.feed(part)
                if part.__class__ is Finish:
                    done = fn(accumulator.result())
                    if isawaitable(done):
                        await done
                yield part

        return self.through(watch)


async def primed(result: StreamResult) -> StreamResult:
    """Read a stream up to its first content and put back what was read: what fails until then is raised here.

    An error part before the first content is raised too, as the exception it carries. On failure, and when the task
    is cancelled, the stream is closed. Retry, fallback and adapters use it, so that an early failure is an exception
    of the call and not a part of its answer.
    """
    stream = result.stream
    source = stream.__aiter__()
    head: list[StreamPart] = []
    try:
        async for part in source:
            if isinstance(part, ErrorPart):
                raise as_exception(part.error)
            head.append(part)
            if is_first_content(part):
                break
    except BaseException:
        with suppress(Exception):  # a close that fails as well must not hide why, and whether to try again
            await stream.aclose()
        raise

    async def resumed(_: PartStream) -> AsyncIterator[StreamPart]:
        for part in head:
            yield part
        head.clear()
        async for part in source:
            yield part

    return result.replace(stream=stream.through(resumed))


def as_exception(error: object) -> BaseException:
    """The exception of an error part. One that came as data says what kind it was, and no more."""
    if isinstance(error, BaseException):
        return error
    kind = error.get("type") or error.get("name") if isinstance(error, Mapping) else None
    return ProviderError(f"the stream reported an error{f' of type {kind}' if isinstance(kind, str) else ''}")
