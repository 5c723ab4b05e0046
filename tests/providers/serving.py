"""What the tests of every provider ask of a scripted server, without blocking the event loop."""

from __future__ import annotations

from functools import partial

import anyio.to_thread

from neurolink_mw.testing.wire import Exchange, Reply, ScriptedServer


def content(reply: Reply) -> bytes:
    """The body of a reply without pauses."""
    return b"".join(part for part in reply.parts() if isinstance(part, bytes))


def size(reply: Reply) -> int:
    return len(content(reply))


async def ended(server: ScriptedServer, number: int = 0) -> Exchange:
    """What became of the reply to request `number`, once it has ended."""
    return await anyio.to_thread.run_sync(partial(server.wait_for_closed, number))


async def asked(server: ScriptedServer, count: int = 1) -> None:
    """Until so many requests have come."""
    await anyio.to_thread.run_sync(server.wait_until, lambda journal: len(journal) >= count)


async def all_closed(server: ScriptedServer) -> None:
    """Until no connection is open."""
    await anyio.to_thread.run_sync(server.wait_until, lambda journal: journal.open_connections == 0)
