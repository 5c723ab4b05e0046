"""Events of a response as stream parts: the one place where a stream is read, fails, is closed and is cancelled."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final, Protocol, TypeVar

import anyio

from ...errors import ProviderError
from ...protocol import Closer, StreamPart
from .body import HttpResponse, let_go
from .errors import HttpErrorReader
from .sse import ServerSentEvent, SseDecoder

# How long to wait for the end of a body once the last event has come: some servers keep it open.
AFTER_DONE_S: Final = 1.0

E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)
E_contra = TypeVar("E_contra", contravariant=True)


class Machine(Protocol[E_contra]):
    """Makes the parts of a stream from a provider's events. `done`: nothing more is due; `begun`: content was made."""

    done: bool
    begun: bool

    def start(self) -> list[StreamPart]: ...

    def feed(self, event: E_contra, /) -> list[StreamPart]: ...

    def finish(self, unfinished: bytes | None = None) -> list[StreamPart]: ...

    def interrupt(self, error: ProviderError) -> list[StreamPart]: ...


class Source(Protocol[E_co]):
    """Where the events come from. failures: what reading may raise; ProviderError is for what is no event at all."""

    failures: tuple[type[BaseException], ...]

    async def next(self) -> Sequence[E_co] | None:
        """The events that came next; None at the end."""
        ...

    def rest(self, begun: bool) -> bytes | None:
        """What came of an event that never ended. Raises ProviderError where nothing that came was an event."""
        ...

    def error_of(self, failure: BaseException, begun: bool) -> ProviderError:
        """What a failure is to the caller."""
        ...

    async def let_go(self) -> None:
        """End what reading has left half-way, once the response is closed."""
        ...


class SseSource:
    """The server-sent events of a response. transport: what its client raises when a body fails."""

    def __init__(
        self,
        response: HttpResponse,
        errors: HttpErrorReader,
        transport: tuple[type[BaseException], ...],
        headers: Mapping[str, str],
    ) -> None:
        self.failures = (*transport, ProviderError)
        self._response = response
        self._chunks = response.aiter_bytes()
        self._decoder = SseDecoder()
        self._errors = errors
        self._transport = transport
        self._headers = headers

    async def next(self) -> Sequence[ServerSentEvent] | None:
        async for chunk in self._chunks:
            if events := self._decoder.feed(chunk):
                return events
        return None

    def rest(self, begun: bool) -> bytes | None:
        unfinished = self._decoder.finish()
        if self._decoder.stray and not begun:
            raise self._errors.no_stream(
                "something else", self._decoder.stray, status=self._response.status_code, headers=self._headers
            )
        return unfinished

    def error_of(self, failure: BaseException, begun: bool) -> ProviderError:
        status = self._response.status_code
        if isinstance(failure, ProviderError):  # of the framing: an event without end
            return self._errors.malformed(str(failure), None, status=status)
        return self._errors.of_transport(failure, during="in the middle of the stream", begun=begun, status=status)

    async def let_go(self) -> None:
        await let_go(self._chunks, self._response, self._transport)


async def parts_of(source: Source[E], machine: Machine[E], closer: Closer) -> AsyncIterator[StreamPart]:
    """The parts of a stream. closer: closes the response."""
    last: list[StreamPart] | None = None
    over = False
    try:
        for part in machine.start():
            yield part
        try:
            while not machine.done and (events := await source.next()) is not None:
                for event in events:
                    for part in machine.feed(event):
                        yield part
            deadline = anyio.current_time() + AFTER_DONE_S
            while machine.done and (events := await _next_before(deadline, source)) is not None:
                for event in events:
                    for part in machine.feed(event):
                        yield part
        except source.failures as failure:
            # Once the last event has come, nothing can be missing.
            if not machine.done:
                last = machine.interrupt(source.error_of(failure, machine.begun))
        if closer.done:
            # Closed by another task while this one was reading: what the read ended with is no news of the provider.
            raise anyio.ClosedResourceError from None
        if last is None:
            last = machine.finish(source.rest(machine.begun))
        # Before the finish part, behind which many consumers do not look.
        await closer()
        await source.let_go()
        over = True
        for part in last:
            yield part
    finally:
        if not over:
            await closer()
            await source.let_go()


async def _next_before(deadline: float, source: Source[E]) -> Sequence[E] | None:
    with anyio.CancelScope(deadline=deadline):
        return await source.next()
    return None
