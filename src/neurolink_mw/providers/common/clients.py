"""Clients that hold connections: the caller's own, or ours, one per event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from ...protocol.late_close import current_loop

CONNECT_TIMEOUT_S: Final = 10.0
READ_TIMEOUT_S: Final = 600.0  # a reasoning model may think for minutes before it says anything
IDLE_CONNECTIONS: Final = 20  # httpx looks at each idle connection in every request: 64 of them cost it 5 ms
IDLE_SECONDS: Final = 30.0

C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)


class Clients(Protocol[C_co]):
    """Where a model gets the client of a call."""

    def get(self) -> C_co: ...

    async def aclose(self) -> None: ...


class GivenClient(Generic[C]):
    """A client that belongs to the caller, who set its timeouts and will close it."""

    def __init__(self, client: C) -> None:
        self._client = client

    def get(self) -> C:
        return self._client

    async def aclose(self) -> None:
        return None


class OwnClients(Generic[C]):
    """Clients of our own, one per event loop: pooled connections die with the loop that they were made on.

    So one model serves several `asyncio.run` in a row. make: a new client; close: ends one.
    """

    def __init__(self, make: Callable[[], C], close: Callable[[C], Awaitable[None]]) -> None:
        self._make = make
        self._close = close
        self._clients: WeakKeyDictionary[object, C] = WeakKeyDictionary()

    def get(self) -> C:
        """The client of the running event loop."""
        loop = current_loop()
        client = self._clients.get(loop)
        if client is None:
            self._forget_ended_loops()
            client = self._clients[loop] = self._make()
        return client

    def _forget_ended_loops(self) -> None:
        """A client refers to its asyncio loop, through its connections, and would keep both for ever."""
        for loop in list(self._clients):
            if isinstance(loop, asyncio.AbstractEventLoop) and loop.is_closed():
                self._clients.pop(loop, None)  # another thread may have been here

    async def aclose(self) -> None:
        """Close the running loop's client. Those of other loops cannot be closed from here: their connections end with
        the loop."""
        client = self._clients.pop(current_loop(), None)
        if client is not None:
            await self._close(client)
