"""The body of a response: how it is read, how its failures are told apart, how one that is left early is let go.

httpx and httpx2 have the same interface and no type in common, and a caller may pass a client of either, or another
of that shape. So nothing here asks what a response is an instance of.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Protocol

import anyio

from .errors import HttpErrorReader

CLOSE_DEADLINE_S = 5.0

_BODY_LIMIT = 256 * 1024 * 1024
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


def transport_errors(client: object) -> tuple[type[BaseException], ...]:
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


async def whole_body(
    response: HttpResponse, transport: tuple[type[BaseException], ...], errors: HttpErrorReader
) -> bytes:
    """The body of an answer. Raises ProviderError where it was cut short; the response is closed."""
    body, failure = await read_body(response, transport, _BODY_LIMIT)
    if failure is None:
        return body
    failed = errors.of_transport(failure, during="while the answer was read", status=response.status_code)
    failure = None
    raise failed


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
