"""The SDK's client that a model calls through: its own, or a given one. The SDK is imported when a model is made.

Retries and tracing belong to the pipeline around a model, so that one policy holds: the SDK's own are switched off, on
a copy of a given client that shares its connections.
"""

from __future__ import annotations

import inspect
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, cast
from urllib.parse import urlsplit

from ...errors import ConfigError
from ..common.body import HttpResponse
from ..common.clients import (
    CONNECT_TIMEOUT_S,
    IDLE_CONNECTIONS,
    IDLE_SECONDS,
    READ_TIMEOUT_S,
    Clients,
    GivenClient,
    OwnClients,
)
from ..common.headers import VALUE, secrets_of
from .options import BETA_HEADER

_PATH: Final = "/v1/messages"
# What the SDK's own method calls it, for a given client that is to trace.
_SPAN: Final = "anthropic.messages.create"
# Attributes of the SDK's clients.
_SECRETS: Final = ("api_key", "auth_token", "access_token", "aws_secret_key", "aws_session_token")


class AnthropicClient(Protocol):
    """The part of `anthropic.AsyncAnthropic`, or of its classes for Bedrock, Vertex and others, that is used."""

    @property
    def post(self) -> Any: ...

    @property
    def with_options(self) -> Any: ...

    @property
    def close(self) -> Any: ...


def own_clients(api_key: str | None, base_url: str | None) -> Clients[AnthropicClient]:
    """Clients of our own, one per event loop. What is not given comes from where the SDK looks for it."""
    import anthropic
    import httpx2

    _check(api_key, base_url)
    timeout = httpx2.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    limits = httpx2.Limits(
        max_connections=None, max_keepalive_connections=IDLE_CONNECTIONS, keepalive_expiry=IDLE_SECONDS
    )
    certificates: ssl.SSLContext = httpx2.create_ssl_context()  # the slow part of making a client

    def make() -> AnthropicClient:
        try:
            http_client = anthropic.DefaultAsyncHttpxClient(timeout=timeout, limits=limits, verify=certificates)
            client = anthropic.AsyncAnthropic(
                api_key=api_key,
                base_url=base_url,
                timeout=timeout,
                http_client=http_client,
                max_retries=0,
                open_telemetry=False,
            )
        except (anthropic.AnthropicError, ImportError, TypeError, ValueError, httpx2.InvalidURL) as error:
            fault = type(error).__name__
        else:
            _check(client.api_key or client.auth_token, str(client.base_url))
            return client
        # Out here, so that no context leads to an exception that may quote a proxy's password.
        raise ConfigError(
            f"no Anthropic client can be made with the proxies, the address and the profile found here: {fault}"
        )

    return OwnClients(make, lambda client: client.close())


def given_clients(client: object, *, keep_policy: bool) -> Clients[AnthropicClient]:
    """A client that belongs to the caller. keep_policy: as it is, its retries and its tracing included."""
    is_async = not isinstance(client, type) and inspect.iscoroutinefunction(getattr(client, "post", None))
    if not is_async or not callable(getattr(client, "with_options", None)):
        raise ConfigError(
            "client is an async client of the anthropic SDK, as of anthropic.AsyncAnthropic(), not "
            f"{type(client).__name__}"
        )
    given = cast(AnthropicClient, client)
    if keep_policy:
        return GivenClient(given)
    with suppress(TypeError):  # of another SDK, or of a release that does not trace
        return GivenClient(given.with_options(max_retries=0, open_telemetry=False))
    raise ConfigError(
        f"client is a {type(client).__name__} that cannot be copied with retries and tracing off: give one of the "
        "anthropic SDK, or keep_client_policy=True to use it as it is"
    )


def _check(api_key: str | None, base_url: str | None) -> None:
    """Refuse what no call could be made with. No message quotes a value."""
    if api_key is not None and (not api_key or not VALUE.fullmatch(api_key) or api_key != api_key.strip()):
        raise ConfigError(
            "api_key is empty or holds a character that a header cannot: is there a line break at its end?"
        )
    if base_url is None:
        return
    try:
        url = urlsplit(base_url)
        is_address = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise ConfigError("base_url is an http or https address, as in https://api.anthropic.com")


class SdkStream(Protocol):
    """`anthropic.AsyncStream[object]`: an answer of which nothing has been read."""

    @property
    def response(self) -> HttpResponse: ...


class Calls:
    """Posts bodies through a client. The SDK signs the request and makes its address and its headers; the answer is
    left unread, whatever it is, since reading it here costs half of what the SDK's own reading does."""

    def __init__(self, clients: Clients[AnthropicClient]) -> None:
        from anthropic import AsyncStream, omit

        self._clients = clients
        self._stream: type = AsyncStream[object]
        self._omit: object = omit

    async def post(
        self, body: Mapping[str, object], headers: Mapping[str, str | None], betas: Sequence[str] = ()
    ) -> SdkStream:
        """The answer of a good status. A header that is None is not sent. Raises what the SDK raises.

        betas: for the header `anthropic-beta`, beside those that the client sends with every call.
        """
        client = self._clients.get()
        sent = {name: self._omit if text is None else text for name, text in headers.items()}
        if betas:
            # The SDK would put the call's header in the place of the client's.
            every = "" if BETA_HEADER in sent else _headers_of(client).get(BETA_HEADER, "")
            sent[BETA_HEADER] = ",".join(sorted({*betas, *filter(None, map(str.strip, every.split(",")))}))
        answer = await client.post(
            _PATH,
            cast_to=object,
            body=body,
            options={"headers": sent, "span_name": _SPAN, "span_route": _PATH},
            stream=True,
            stream_cls=self._stream,
        )
        if not hasattr(answer, "response"):
            raise TypeError("a middleware of the client answered in the place of the API")
        stream: SdkStream = answer
        return stream

    def secrets(self) -> list[str]:
        """What the client signs with, which no message may quote."""
        client = self._clients.get()
        named = [getattr(client, name, None) for name in _SECRETS]
        password = getattr(getattr(client, "base_url", None), "password", None)
        own = [text for text in (*named, password) if isinstance(text, str) and text]
        return [*own, *secrets_of(_headers_of(client))]

    async def aclose(self) -> None:
        await self._clients.aclose()


def _headers_of(client: AnthropicClient) -> dict[str, str]:
    """What a client sends with every call, by names in lower case."""
    headers = getattr(client, "default_headers", None)
    given = headers.items() if isinstance(headers, Mapping) else ()
    return {name.lower(): text for name, text in given if isinstance(text, str)}
