"""Clients of both kinds, and waiting for a server without blocking the event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from types import ModuleType

import anyio.to_thread
import httpx
import httpx2
import pytest

from neurolink_mw.testing.wire import Exchange, ScriptedServer

Closed = Callable[[ScriptedServer, int], Awaitable[Exchange]]


@pytest.fixture(params=[httpx, httpx2], ids=["httpx", "httpx2"])
def http(request: pytest.FixtureRequest) -> ModuleType:
    """The two libraries whose clients can be passed."""
    module: ModuleType = request.param
    return module


@pytest.fixture
def ended() -> Closed:
    """Wait until the reply to request number n has ended, and return what became of it."""

    async def wait(server: ScriptedServer, number: int = 0) -> Exchange:
        return await anyio.to_thread.run_sync(partial(server.wait_for_closed, number))

    return wait
