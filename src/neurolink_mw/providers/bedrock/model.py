"""The model: one call over boto3, its answer or its events, its errors, its cancellation."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self, cast

from ...errors import ConfigError, ProviderError
from ...protocol import (
    JSON,
    CallOptions,
    Closer,
    GenerateResult,
    PartStream,
    RequestInfo,
    StreamResult,
    SupportedUrls,
    primed,
)
from ..common.stream import parts_of
from .call import Call, Ids
from .client import BedrockClient, given_client, own_client
from .errors import ErrorReader
from .pump import Event, Pump
from .readings import head_of
from .request import DEFAULT_PROVIDER
from .response import parse_response
from .stream import ConverseStream
from .threads import Threads, threads_of

_EVENT_STREAM = "application/vnd.amazon.eventstream"
_BUCKETS: SupportedUrls = {"*": (r"^s3://",)}


class BedrockModel:
    """A model behind Amazon Bedrock's Converse API, called through boto3.

        async with BedrockModel("anthropic.claude-sonnet-4-5-20250929-v1:0", region="eu-central-1") as model:
            result = await model.do_generate(CallOptions.from_text("Hello"))

    model_id: of a model, an inference profile, a provisioned model, a prompt or an endpoint, or its ARN. client: a
    boto3 `bedrock-runtime` client that stays the caller's, with its timeouts, retries and handlers; without it one is
    made: no retries, connect 10 s, read 600 s, a connection for each thread. Its credentials are found by boto3's own
    chain, or are those of `profile`; its region is that of the ARN, else `region`, else that of boto3's chain;
    endpoint_url: instead of the region's own. threads: how many calls may wait for bytes at one time, or a `Threads`
    to share; without it, all models of a process share 128. supported_urls: the addresses that the model reads itself.

    Both calls raise ProviderError and its kin; a stream's failure after the first content is an error part. A 400 that
    names an inference parameter as unsupported is repaired once: the call is sent again without it and carries a
    warning. A model that is served through inference profiles only is called by that of the region's geography, or
    the global one, from then on. Nothing else is retried. A cancelled call ends its request and returns at once.

    Raises ConfigError where no client can be made: no region, an unknown profile.
    """

    def __init__(
        self,
        model_id: str,
        *,
        client: BedrockClient | None = None,
        region: str | None = None,
        threads: int | Threads | None = None,
        profile: str | None = None,
        endpoint_url: str | None = None,
        supported_urls: SupportedUrls | None = None,
    ) -> None:
        if not model_id:
            raise ConfigError("model_id is empty: name the model, as in BedrockModel('amazon.nova-lite-v1:0')")
        if client is not None and (profile is not None or endpoint_url is not None):
            raise ConfigError(
                "profile and endpoint_url are for the client that a model makes: the given one has its own"
            )
        self.provider = DEFAULT_PROVIDER
        self.model_id = model_id
        self.supported_urls = _BUCKETS if supported_urls is None else supported_urls
        self._threads = threads_of(threads)
        if client is None:
            self._client = own_client(model_id, region, profile, endpoint_url, self._threads.size)
        else:
            self._client = given_client(client, region, self._threads.size)
        self._ids = Ids(model_id, self._client.region, self._client.host)

    def __repr__(self) -> str:
        return f"BedrockModel(model_id={self.model_id!r}, region={self._client.region!r}, host={self._client.host!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections that this model's calls have left open. A later call opens new ones."""
        self._client.close()

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        """The whole answer, by `converse`. Raises ProviderError."""
        call = self._call(options, stream=False)
        answer = await call.send()
        return parse_response(
            answer,
            provider=self.provider,
            model_id=call.model_id,
            warnings=call.warnings,
            request_body=call.native,
            errors=call.errors,
            expected=call.expected,
        )

    async def do_stream(self, options: CallOptions) -> StreamResult:
        """The answer in parts, by `converse_stream`. Raises ProviderError for what fails before the first content."""
        call = self._call(options, stream=True)
        answer = await call.send()
        metadata = answer.get("ResponseMetadata")
        head = head_of(metadata, call.model_id)
        came = (head.headers or {}).get("content-type", _EVENT_STREAM).partition(";")[0].strip().lower()
        if came == "text/html" or came.endswith("json"):
            call.pump.abort()
            what = f"expected an event stream, and {came} came"
            raise call.errors.malformed(what, status=head.status, request_id=head.id)
        machine = ConverseStream(
            provider=self.provider,
            model_id=call.model_id,
            warnings=call.warnings,
            include_raw=bool(options.include_raw_chunks),
            expected=call.expected,
            metadata=metadata,
            errors=call.errors,
        )
        closer = _Aborting(call.pump)
        parts = PartStream(parts_of(_Events(call), machine, closer), close=closer)
        return await primed(StreamResult(parts, RequestInfo(cast("JSON", call.native)), head.info(None)))

    def _call(self, options: CallOptions, *, stream: bool) -> Call:
        errors = ErrorReader(self.provider, self.model_id)
        return Call(self._client, self._threads, self._ids, options, errors, stream=stream)


class _Failed(Exception):
    """The pump has come to a failure, which it keeps: its traceback leads to the request."""


class _Aborting(Closer):
    """Closes a stream by aborting its call, which needs no event loop."""

    __slots__ = ("_pump",)

    def __init__(self, pump: Pump) -> None:
        super().__init__(self._abort)
        self._pump = pump

    async def _abort(self) -> None:
        self._pump.abort()

    def without_loop(self) -> None:
        super().without_loop()
        self._pump.abort()


class _Events:
    """What a pump reads; a `Source` of `common.stream`."""

    failures: tuple[type[BaseException], ...] = (_Failed,)

    def __init__(self, call: Call) -> None:
        self._call = call

    async def next(self) -> Sequence[Event] | None:
        pump = self._call.pump
        batch = await pump.batch()
        if not batch and pump.failure is not None:
            raise _Failed
        return batch or None

    def rest(self, begun: bool) -> bytes | None:
        return None

    def error_of(self, failure: BaseException, begun: bool) -> ProviderError:
        assert self._call.pump.failure is not None
        return self._call.error(self._call.pump.failure, during="in the middle of the stream", begun=begun)

    async def let_go(self) -> None:
        """Closing it has done all."""
