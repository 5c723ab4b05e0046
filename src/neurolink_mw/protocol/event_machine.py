"""How a provider's state machine is driven over events that are there, or that come."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from typing import Protocol, TypeVar

from .parts import StreamPart

E_contra = TypeVar("E_contra", contravariant=True)


class EventMachine(Protocol[E_contra]):
    """Makes the parts of a stream from a provider's events, without I/O."""

    def start(self) -> Sequence[StreamPart]:
        """The parts that open the stream."""
        ...

    def feed(self, event: E_contra) -> Sequence[StreamPart]:
        """The parts that one event makes."""
        ...

    def finish(self) -> Sequence[StreamPart]:
        """The parts that end the stream, once the source has ended."""
        ...


async def parts_of_events(
    machine: EventMachine[E_contra], events: AsyncIterable[E_contra] | Iterable[E_contra]
) -> AsyncIterator[StreamPart]:
    """The parts that a machine makes of all events."""
    for part in machine.start():
        yield part
    if isinstance(events, AsyncIterable):
        async for event in events:
            for part in machine.feed(event):
                yield part
    else:
        for event in events:
            for part in machine.feed(event):
                yield part
    for part in machine.finish():
        yield part
