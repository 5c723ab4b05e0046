"""The model: one call over the SDK's client, its answer or its events, its errors, its cancellation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeAlias, cast

from ...errors import ConfigError, ProviderError
from ...protocol import (
    JSON,
    CallOptions,
    CallWarning,
    Closer,
    GenerateResult,
    PartStream,
    RequestInfo,
    ResponseInfo,
    StreamResult,
    SupportedUrls,
    primed,
)
from ..common.body import close_response, read_body, transport_errors, whole_body
from ..common.headers import header_fault, in_lower_case, secrets_of
from ..common.stream import SseSource, parts_of
from .client import AnthropicClient, Calls, SdkStream, given_clients, own_clients
from .errors import ErrorReader
from .hosted import AWS_EVENTS, FrameSource
from .options import BETA_HEADER, with_option
from .readings import NOT_JSON, parsed_json
from .repair import refuses_format, refuses_system_role, repair
from .request import BETAS, DEFAULT_PROVIDER, Expected, build_request, expected_of
from .response import parse_response
from .stream import MessageStream

_ERROR_BODY_LIMIT = 64 * 1024
_EVENTS: Final = "text/event-stream"
_ADDRESSES: SupportedUrls = {"image/*": (r"^https?://",), "application/pdf": (r"^https?://",)}


Request: TypeAlias = tuple[dict[str, object], tuple[CallWarning, ...]]
"""What `build_request` makes."""


class AnthropicModel:
    """A model behind Anthropic's POST /v1/messages, called through the anthropic SDK.

        async with AnthropicModel("claude-sonnet-4-6") as model:
            result = await model.do_generate(CallOptions.from_text("Hello"))

    model_id: sent as `model`. client: an `anthropic.AsyncAnthropic`, or the SDK's async client for Claude behind
    Bedrock, Vertex, Foundry or another cloud; it stays the caller's to close, with its timeouts, headers and
    middlewares, and is copied with retries and tracing off, which are the pipeline's. keep_client_policy: use it as it
    is. Without a client one is made, and closed by `aclose()` or `async with`: connect 10 s, read 600 s, 20 idle
    connections; its key is `api_key`, else what the SDK finds (ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN, a profile), its
    address `base_url`, else ANTHROPIC_BASE_URL, else Anthropic's own. supported_urls: the addresses that the service
    fetches itself.

    Both calls raise ProviderError and its kin; a stream's failure after the first content is an error part. A 400 that
    names an optional parameter or a beta as unsupported is repaired once: the call is sent again without it and carries
    a warning. Nothing else is retried. A cancelled call closes its socket before the cancellation goes on.

    Raises ConfigError for what is no such client, and where none can be made.
    """

    def __init__(
        self,
        model_id: str,
        *,
        client: AnthropicClient | None = None,
        keep_client_policy: bool = False,
        api_key: str | None = None,
        base_url: str | None = None,
        supported_urls: SupportedUrls | None = None,
    ) -> None:
        if not model_id:
            raise ConfigError("model_id is empty: name the model, as in AnthropicModel('claude-sonnet-4-6')")
        if client is not None and (api_key is not None or base_url is not None):
            raise ConfigError("api_key and base_url are for the client that a model makes: the given one has its own")
        if client is None and keep_client_policy:
            raise ConfigError("keep_client_policy is for a given client, and there is none")
        self.provider = DEFAULT_PROVIDER
        self.model_id = model_id
        self.supported_urls = _ADDRESSES if supported_urls is None else supported_urls
        clients = (
            own_clients(api_key, base_url) if client is None else given_clients(client, keep_policy=keep_client_policy)
        )
        self._calls = Calls(clients)
        self._transport = transport_errors(None)  # httpx2's, which the SDK is built on

    def __repr__(self) -> str:
        return f"AnthropicModel(model_id={self.model_id!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the client that this model made itself. A later call opens new connections."""
        await self._calls.aclose()

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        """The whole answer. Never asks for events. Raises ProviderError."""
        call = self._call(options, stream=False)
        response = (await call.send()).response
        body = await whole_body(response, self._transport, call.errors)
        status, headers = response.status_code, in_lower_case(response.headers)
        return parse_response(
            _answer(body, call.errors, status, headers),
            provider=self.provider,
            model_id=self.model_id,
            status=status,
            headers=headers,
            warnings=call.warnings,
            request_body=call.body,
            errors=call.errors,
            expected=call.expected,
        )

    async def do_stream(self, options: CallOptions) -> StreamResult:
        """The answer in parts. Raises ProviderError for what fails before the first content."""
        call = self._call(options, stream=True)
        response = (await call.send()).response
        status, headers = response.status_code, in_lower_case(response.headers)
        media_type = headers.get("content-type", _EVENTS).partition(";")[0].strip().lower()
        if media_type not in (_EVENTS, AWS_EVENTS):
            body, _ = await read_body(response, self._transport, _ERROR_BODY_LIMIT)
            raise call.errors.no_stream(media_type or "no content", body, status=status, headers=headers)
        machine = MessageStream(
            provider=self.provider,
            model_id=self.model_id,
            warnings=call.warnings,
            include_raw=bool(options.include_raw_chunks),
            expected=call.expected,
            status=status,
            headers=headers,
            errors=call.errors,
        )
        closer = Closer(lambda: close_response(response))
        if media_type == AWS_EVENTS:
            parts = parts_of(FrameSource(response, call.errors, self._transport), machine, closer)
        else:
            parts = parts_of(SseSource(response, call.errors, self._transport, headers), machine, closer)
        stream = PartStream(parts, close=closer)
        return await primed(StreamResult(stream, RequestInfo(cast(JSON, call.body)), ResponseInfo(headers=headers)))

    def _call(self, options: CallOptions, *, stream: bool) -> _Call:
        given = options.headers or {}
        errors = ErrorReader(self.provider, self.model_id, [*self._calls.secrets(), *secrets_of(given)])
        if (fault := header_fault(given)) is not None:
            raise errors.refused(fault)
        build = partial(build_request, self.model_id, provider=self.provider, stream=stream)
        # Betas go with those of the request; None says not to send the client's.
        headers = {name.lower(): text for name, text in given.items() if text is None or name.lower() != BETA_HEADER}
        return _Call(self._calls, headers, build, options, errors)


class _Call:
    """One call on its way: what is sent, what had to be left out, and how its failures are told. build: makes the
    request of a call's options."""

    __slots__ = ("_build", "_calls", "_headers", "_native", "_options", "errors", "expected", "warnings")

    def __init__(
        self,
        calls: Calls,
        headers: dict[str, str | None],
        build: Callable[[CallOptions], Request],
        options: CallOptions,
        errors: ErrorReader,
    ) -> None:
        self._calls = calls
        self._headers = headers
        self._build = build
        self.errors = errors
        self._set(options, build(options))

    def _set(self, options: CallOptions, request: Request) -> None:
        self._options = options
        self._native, self.warnings = request
        self.expected: Expected = expected_of(options, self._native)

    @property
    def body(self) -> dict[str, object]:
        """What is sent, the betas aside, which go into a header."""
        return {name: item for name, item in self._native.items() if name != BETAS}

    async def send(self) -> SdkStream:
        """An answer of a good status, after one repair at most. Raises ProviderError."""
        answer = await self._post()
        if not isinstance(answer, ProviderError):
            return answer
        raise answer

    async def _post(self, *, repaired: bool = False) -> SdkStream | ProviderError:
        betas = self._native.get(BETAS)
        try:
            answer = await self._calls.post(self.body, self._headers, betas if isinstance(betas, list) else ())
            # What a cloud's credentials have made of the request is in it alone.
            self.errors.learn(getattr(getattr(answer.response, "request", None), "headers", {}))
            return answer
        except Exception as error:
            instead = None if repaired else self._instead_of_refused(error)
            failed = self.errors.of_client(error, during="before the answer began")
        # Out here, so that not even a context leads to the SDK's exception, which holds the request.
        if instead is None:
            return failed
        self._set(*instead)
        return await self._post(repaired=True)

    def _instead_of_refused(self, error: Exception) -> tuple[CallOptions, Request] | None:
        """The call as it may be sent once more."""
        status, response = getattr(error, "status_code", None), getattr(error, "response", None)
        content = getattr(response, "content", None)
        if not isinstance(status, int) or not isinstance(content, bytes):
            return None
        if refuses_system_role(status, content, self._native):
            return self._anew("lateSystemMessages", "user")
        if refuses_format(status, content, self._native):
            return self._anew("structuredOutputMode", "jsonTool")
        repaired = repair(status, content, self._native, no_calls=self.expected.no_calls)
        return None if repaired is None else (self._options, (repaired.native, (*self.warnings, repaired.warning)))

    def _anew(self, option: str, said: str) -> tuple[CallOptions, Request]:
        options = with_option(self._options, option, said)
        native, warnings = self._build(options)
        if option == "structuredOutputMode":
            details = "the API refused the format, so the answer was asked for by a tool"
            warnings = (*warnings, CallWarning("compatibility", "responseFormat", details))
        return options, (native, warnings)


def _answer(body: bytes, errors: ErrorReader, status: int, headers: Mapping[str, str]) -> object:
    native = parsed_json(body)
    if native is not NOT_JSON:
        return native
    what = "the answer is not JSON" if body.strip() else "the answer is empty"
    raise errors.malformed(what, body, status=status, headers=headers)
