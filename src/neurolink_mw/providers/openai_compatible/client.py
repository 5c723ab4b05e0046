"""The HTTP client: what is needed of one, and our own."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any, Protocol

from ...errors import ConfigError
from ..common.clients import CONNECT_TIMEOUT_S, IDLE_CONNECTIONS, IDLE_SECONDS, READ_TIMEOUT_S


class HttpClient(Protocol):
    """The part of `httpx.AsyncClient` that is used. Requests and responses are of the client's own types."""

    def build_request(self, method: str, url: str, *, content: bytes, headers: dict[str, str]) -> Any: ...

    async def send(self, request: Any, *, stream: bool = False) -> Any: ...

    async def aclose(self) -> None: ...


def own_client_maker() -> Callable[[], HttpClient]:
    """Makes clients of our own. httpx is imported here, when a model is made."""
    import httpx

    timeout = httpx.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    limits = httpx.Limits(
        max_connections=None, max_keepalive_connections=IDLE_CONNECTIONS, keepalive_expiry=IDLE_SECONDS
    )
    certificates: ssl.SSLContext = httpx.create_ssl_context()  # the slow part of making a client

    def make() -> HttpClient:
        try:
            return httpx.AsyncClient(timeout=timeout, limits=limits, verify=certificates)
        except (ImportError, ValueError) as error:  # what httpx makes of HTTP_PROXY and its like
            raise ConfigError(f"no HTTP client can be made with the proxies of this environment: {error}") from None

    return make
