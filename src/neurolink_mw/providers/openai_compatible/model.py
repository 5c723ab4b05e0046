"""The model: one call as an HTTP request, its answer or its events, its errors, its cancellation."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

import orjson

from ...errors import ConfigError, ProviderError
from ...protocol import (
    JSON,
    CallOptions,
    CallWarning,
    Closer,
    GenerateResult,
    JSONObject,
    PartStream,
    RequestInfo,
    ResponseInfo,
    StreamResult,
    SupportedUrls,
    primed,
)
from ..common.body import HttpResponse, close_response, read_body, transport_errors, whole_body
from ..common.clients import Clients, GivenClient, OwnClients
from ..common.headers import header_fault, in_lower_case
from ..common.stream import SseSource, parts_of
from .client import HttpClient, own_client_maker
from .endpoint import Endpoint
from .errors import ErrorReader
from .messages import json_bytes
from .readings import audio_type, loose_json
from .repair import repair
from .request import DEFAULT_PROVIDER, build_request
from .response import parse_response
from .stream import ChatStream

_ERROR_BODY_LIMIT = 64 * 1024

_IMAGES_BY_ADDRESS: SupportedUrls = {"image/*": (r"^https?://",)}


class OpenAICompatibleModel:
    """A chat model behind OpenAI's POST {base_url}/chat/completions, of OpenAI or any server that speaks it.

        async with OpenAICompatibleModel("gpt-5", base_url="https://api.openai.com/v1", api_key=key) as model:
            result = await model.do_generate(CallOptions.from_text("Hello"))

    model_id: sent as `model`. base_url: up to and without `/chat/completions`; a query in it is kept. api_key: sent
    as a bearer token; without it no `authorization` is sent. http_client: any client with the interface of
    `httpx.AsyncClient`, whose timeouts then hold, and which stays the caller's to close; else a client of our own,
    closed by `aclose()` or `async with`: connect 10 s, read 600 s, 20 idle connections, no bound on busy ones.

    provider: the name in errors and metadata, and the key of provider options. headers: sent with every call;
    `options.headers` are merged over them, and a None there removes one. query_params: added to the address.
    extra_body: merged over every request. supports_structured_outputs: the server knows `json_schema`.
    include_usage: ask for the usage of streams. supported_urls: the addresses that the server fetches itself.

    Both calls raise ProviderError and its kin; a stream's failure after the first content is an error part. A 400
    that names an optional parameter as unsupported is repaired once: the call is sent again without it and carries a
    warning. Nothing else is retried. A cancelled call closes its socket before the cancellation goes on.
    """

    def __init__(
        self,
        model_id: str,
        *,
        base_url: str,
        api_key: str | None = None,
        http_client: HttpClient | None = None,
        provider: str = DEFAULT_PROVIDER,
        headers: Mapping[str, str] | None = None,
        query_params: Mapping[str, str] | None = None,
        extra_body: JSONObject | None = None,
        supports_structured_outputs: bool = False,
        include_usage: bool = True,
        supported_urls: SupportedUrls | None = None,
    ) -> None:
        if not model_id:
            raise ConfigError("model_id is empty: name the model, as in OpenAICompatibleModel('gpt-5', base_url=...)")
        self.provider = provider
        self.model_id = model_id
        self.supported_urls = _IMAGES_BY_ADDRESS if supported_urls is None else supported_urls
        self._endpoint = Endpoint(base_url, api_key, headers or {}, query_params or {})
        self._extra_body = dict(extra_body) if extra_body is not None else None
        self._supports_structured_outputs = supports_structured_outputs
        self._include_usage = include_usage
        self._clients: Clients[HttpClient] = (
            OwnClients(own_client_maker(), lambda client: client.aclose())
            if http_client is None
            else GivenClient(http_client)
        )
        self._transport = transport_errors(http_client)

    def __repr__(self) -> str:
        shown = f"provider={self.provider!r}, model_id={self.model_id!r}, host={self._endpoint.host!r}"
        return f"OpenAICompatibleModel({shown})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the client that this model made itself. A later call opens new connections."""
        await self._clients.aclose()

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        """The whole answer. Never sends a streaming request. Raises ProviderError."""
        call = self._call(options, stream=False)
        response = await call.send()
        body = await whole_body(response, call.transport, call.errors)
        status, headers = response.status_code, in_lower_case(response.headers)
        return parse_response(
            _answer(body, call.errors, status, headers),
            provider=self.provider,
            model_id=self.model_id,
            status=status,
            headers=headers,
            warnings=call.warnings,
            request_body=call.native,
            errors=call.errors,
        )

    async def do_stream(self, options: CallOptions) -> StreamResult:
        """The answer in parts. Raises ProviderError for what fails before the first content."""
        call = self._call(options, stream=True)
        response = await call.send()
        status, headers = response.status_code, in_lower_case(response.headers)
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type == "text/html" or media_type.endswith("json") or status in (204, 205):
            body, _ = await read_body(response, call.transport, _ERROR_BODY_LIMIT)
            raise call.errors.no_stream(media_type or "no content", body, status=status, headers=headers)
        machine = ChatStream(
            provider=self.provider,
            warnings=call.warnings,
            include_raw=bool(options.include_raw_chunks),
            audio_type=audio_type(call.native),
            status=status,
            headers=headers,
            errors=call.errors,
        )
        closer = Closer(lambda: close_response(response))
        source = SseSource(response, call.errors, call.transport, headers)
        parts = parts_of(source, machine, closer)
        return await primed(
            StreamResult(PartStream(parts, close=closer), RequestInfo(call.native), ResponseInfo(headers=headers))
        )

    def _call(self, options: CallOptions, *, stream: bool) -> _Call:
        native, warnings = build_request(
            self.model_id,
            options,
            provider=self.provider,
            stream=stream,
            include_usage=self._include_usage,
            supports_structured_outputs=self._supports_structured_outputs,
            extra_body=self._extra_body,
        )
        accept = "text/event-stream" if stream else "application/json"
        headers = self._endpoint.headers_for(options.headers or {}, accept)
        errors = ErrorReader(self.provider, self.model_id, self._endpoint.secrets_in(headers))
        fault = header_fault(headers)
        if fault is not None:
            raise errors.refused(fault)
        return _Call(self._clients.get(), self._endpoint.url, headers, native, warnings, errors, self._transport)


class _Call:
    """One call on its way: what is sent, what had to be left out, and how its failures are told."""

    __slots__ = ("_client", "_headers", "_url", "errors", "native", "transport", "warnings")

    def __init__(
        self,
        client: HttpClient,
        url: str,
        headers: dict[str, str | None],
        native: dict[str, JSON],
        warnings: tuple[CallWarning, ...],
        errors: ErrorReader,
        transport: tuple[type[BaseException], ...],
    ) -> None:
        self._client = client
        self._url = url
        self._headers = headers
        self.native = native
        self.warnings = warnings
        self.errors = errors
        self.transport = transport

    async def send(self) -> HttpResponse:
        """A response with a good status, after one repair at most. Raises ProviderError."""
        response = await self._request()
        if not _is_good(response):
            body = await self._error_body(response)
            repaired = repair(response.status_code, body, self.native)
            if repaired is None:
                raise self._refusal(response, body)
            self.native = repaired.native
            self.warnings = (*self.warnings, repaired.warning)
            response = await self._request()
            if not _is_good(response):
                raise self._refusal(response, await self._error_body(response))
        return response

    async def _request(self) -> HttpResponse:
        content = json_bytes(self.native, "the request", self.errors)
        sent = {name: text for name, text in self._headers.items() if text is not None}
        try:
            request = self._client.build_request("POST", self._url, content=content, headers=sent)
            for name in self._headers.keys() - sent.keys():
                request.headers.pop(name, None)
            response: HttpResponse = await self._client.send(request, stream=True)
            return response
        except self.transport as error:
            failed = self.errors.of_transport(error, during="before the answer began")
        # Raised out here, so that not even its context leads to the client's exception, which holds the request.
        raise failed

    async def _error_body(self, response: HttpResponse) -> bytes:
        body, _ = await read_body(response, self.transport, _ERROR_BODY_LIMIT)
        return body

    def _refusal(self, response: HttpResponse, body: bytes) -> ProviderError:
        return self.errors.of_response(response.status_code, in_lower_case(response.headers), body)


def _answer(body: bytes, errors: ErrorReader, status: int, headers: Mapping[str, str]) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    try:
        return loose_json(body.decode("utf-8", "replace"))
    except ValueError:
        pass
    what = "the answer is not JSON" if body.strip() else "the answer is empty"
    raise errors.malformed(what, body, status=status, headers=headers)


def _is_good(response: HttpResponse) -> bool:
    return 200 <= response.status_code < 300
