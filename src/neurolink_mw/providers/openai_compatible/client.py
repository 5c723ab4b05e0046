"""The HTTP client: what is needed of one, how its failures are told apart, how a body that is left early is let go.

httpx and httpx2 have the same interface and no type in common, and a caller may pass a client of either, or another
of that shape. So nothing here asks what a client is an instance of.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import anyio

from ...errors import ConfigError
from ...protocol.late_close import current_loop

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 600.0  # a reasoning model may think for minutes before it says anything
IDLE_CONNECTIONS = 20  # httpx looks at each idle connection in every request: 64 of them cost it 5 ms
IDLE_SECONDS = 30.0
CLOSE_DEADLINE_S = 5.0

_MODULES = ("httpx", "httpx2")
_ERRORS = ("RequestError", "StreamError", "InvalidURL")


class HttpResponse(Protocol):
    """What is read of a response."""

    @property
    def status_code(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def aiter_bytes(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None: ...


class HttpClient(Protocol):
    """The part of `httpx.AsyncClient` that is used. Requests and responses are of the client's own types."""

    def build_request(self, method: str, url: str, *, content: bytes, headers: dict[str, str]) -> Any: ...

    async def send(self, request: Any, *, stream: bool = False) -> Any: ...

    async def aclose(self) -> None: ...


class GivenClient:
    """A client that belongs to the caller, who set its timeouts and will close it."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    def get(self) -> HttpClient:
        return self._client

    async def aclose(self) -> None:
        return None


class OwnClients:
    """Our own httpx client, one per event loop: pooled connections die with the loop that they were made on.

    So one model serves several `asyncio.run` in a row. httpx is imported here, when a model is made.
    """

    def __init__(self) -> None:
        import httpx

        timeout = httpx.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        limits = httpx.Limits(
            max_connections=None, max_keepalive_connections=IDLE_CONNECTIONS, keepalive_expiry=IDLE_SECONDS
        )
        certificates: ssl.SSLContext = httpx.create_ssl_context()  # the slow part of making a client

        def make() -> HttpClient:
            return httpx.AsyncClient(timeout=timeout, limits=limits, verify=certificates)

        self._make = make
        self._clients: WeakKeyDictionary[object, HttpClient] = WeakKeyDictionary()

    def get(self) -> HttpClient:
        """The client of the running event loop."""
        loop = current_loop()
        client = self._clients.get(loop)
        if client is None:
            self._forget_ended_loops()
            try:
                client = self._clients[loop] = self._make()
            except (ImportError, ValueError) as error:  # what httpx makes of HTTP_PROXY and its like
                raise ConfigError(f"no HTTP client can be made with the proxies of this environment: {error}") from None
        return client

    def _forget_ended_loops(self) -> None:
        """A client refers to its asyncio loop, through its connections, and would keep both for ever."""
        for loop in list(self._clients):
            if isinstance(loop, asyncio.AbstractEventLoop) and loop.is_closed():
                del self._clients[loop]

    async def aclose(self) -> None:
        """Close the running loop's client. Those of other loops cannot be closed from here: their connections end with
        the loop."""
        client = self._clients.pop(current_loop(), None)
        if client is not None:
            await client.aclose()


def transport_errors(client: HttpClient | None) -> tuple[type[BaseException], ...]:
    """What a client raises when a request, a connection or a body fails: the classes of its own module and its bases',
    those of httpx and httpx2 where they are loaded, and those of sockets. None stands for our own client."""
    names = {cls.__module__.partition(".")[0] for cls in type(client).__mro__}
    modules = [sys.modules.get(name) for name in (*sorted(names - {"builtins"}), *_MODULES)]
    found = {getattr(module, name, None) for module in modules for name in _ERRORS}
    own = [cls for cls in found if isinstance(cls, type) and issubclass(cls, Exception)]
    return (*own, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)


async def close_response(response: HttpResponse) -> None:
    """Close a response at once, its socket too where the body has not been read to its end."""
    if getattr(response, "is_closed", False):  # by the client, which saw the body's end
        return
    with anyio.move_on_after(CLOSE_DEADLINE_S, shield=True):
        await response.aclose()


async def let_go(chunks: AsyncIterator[bytes], response: HttpResponse, errors: tuple[type[BaseException], ...]) -> None:
    """After `close_response`: end the generators that a client's body is made of, where they were left half-way.

    httpx nests several, and closing the outer one leaves the inner ones to the garbage collector, which trio reports
    as a leak. On a closed socket the next read fails, and the failure ends them all. The bounds are for clients whose
    body does not notice that it was closed.
    """
    if getattr(response, "http_version", None) != "HTTP/1.1":
        return
    with anyio.move_on_after(CLOSE_DEADLINE_S, shield=True), suppress(*errors):
        for _ in range(4096):
            if await anext(chunks, None) is None:
                return


async def read_body(
    response: HttpResponse, errors: tuple[type[BaseException], ...], limit: int
) -> tuple[bytes, BaseException | None]:
    """A body up to `limit` bytes, and the failure that cut it short, if one did. The response is closed."""
    chunks = response.aiter_bytes()
    body = bytearray()
    failure: BaseException | None = None
    try:
        async for chunk in chunks:
            body += chunk
            if len(body) > limit:
                break
    except errors as error:
        failure = error
    finally:
        await close_response(response)
        await let_go(chunks, response, errors)
    return bytes(body), failure
