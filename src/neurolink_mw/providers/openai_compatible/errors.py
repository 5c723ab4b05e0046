"""What a server or a connection said when it failed, as one of the library's exceptions. No I/O.

Servers of this format share a success body and little else: the error body may be OpenAI's `{"error": {...}}`, a
FastAPI `{"detail": ...}`, a list, a bare string, or a proxy's HTML page. Messages quote the server's own message or a
short excerpt, never a key: what was sent as a secret is blotted out first.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Mapping
from http.client import responses as _REASONS
from typing import Final, NamedTuple
from urllib.parse import quote, quote_plus

import orjson

from ...errors import (
    AuthenticationError,
    ConnectionFailed,
    ContextOverflowError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    ServerError,
    StreamInterruptedError,
    provider_error_for_status,
)
from ...protocol.overflow import overflow_figures
from ...protocol.retry_after import retry_after

EXCERPT_LENGTH: Final = 300
_READ_LENGTH = 64 * 1024
_SHORTEST_SECRET = 3
_REDACTED = "[redacted]"

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_KEY_SHAPES = re.compile(r"(?i)\b(?:bearer|basic)\s+[\w.~+/=*-]{6,}|\bsk-[\w*.-]{6,}")
_OVERFLOW = re.compile(
    r"(?i)maximum context length|context[ _](?:length|window|size)|prompt is too long|input is too long"
    r"|too many (?:input )?tokens|reduce the length of"
)
# Words of `code` and `type`, where no number says it. The first that occurs decides.
_KINDS: tuple[tuple[str, type[ProviderError]], ...] = (
    ("context_length", ContextOverflowError),
    ("rate_limit", RateLimitError),
    ("too_many_requests", RateLimitError),
    ("quota", RateLimitError),
    ("overloaded", OverloadedError),
    ("unavailable", OverloadedError),
    ("api_key", AuthenticationError),
    ("authentication", AuthenticationError),
    ("unauthorized", AuthenticationError),
    ("permission", PermissionDeniedError),
    ("forbidden", PermissionDeniedError),
    ("not_found", NotFoundError),
    ("timeout", ProviderTimeoutError),
    ("server_error", ServerError),
    ("internal", ServerError),
    ("api_error", ServerError),
    ("invalid", InvalidRequestError),
    ("bad_request", InvalidRequestError),
    ("unsupported", InvalidRequestError),
)


class ErrorDetails(NamedTuple):
    """What an error body says, whatever its shape. `param`: the parameter that it names, as in `temperature`."""

    message: str | None = None
    code: str | None = None
    type: str | None = None
    param: str | None = None

    @property
    def status(self) -> int | None:
        """The HTTP status that `code` spells, where it is one of an error."""
        code = self.code
        return int(code) if code is not None and re.fullmatch(r"[45]\d\d", code) else None


class ErrorReader:
    """Makes typed errors for one call. secrets: the texts that must not be quoted from an answer."""

    __slots__ = ("_secrets", "model_id", "provider")

    def __init__(self, provider: str | None = None, model_id: str | None = None, secrets: Iterable[str] = ()) -> None:
        self.provider = provider
        self.model_id = model_id
        self._secrets = tuple(secrets)

    def of_response(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """The error of an HTTP status above 299."""
        details = error_details(parsed(body))
        cls, retryable = provider_error_for_status(status)
        if issubclass(cls, InvalidRequestError) and _is_overflow(details):
            cls = ContextOverflowError
        said = self.excerpt(details.message) or self.excerpt(body) or _REASONS.get(status, "no explanation")
        return self._make(
            cls, f"HTTP {status}: {said}", status, retryable, retry_after(headers), request_id_of(headers)
        )

    def of_object(
        self, error: object, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> ProviderError:
        """The error of an error object that came where an answer was due. status: the HTTP status it came under."""
        details = error_details(error)
        cls, retryable = _kind(details)
        said = self.excerpt(details.message) or self.excerpt(_text(error)) or "no explanation"
        headers = headers or {}
        return self._make(
            cls,
            f"the provider reported an error: {said}",
            details.status or status,
            retryable,
            retry_after(headers),
            request_id_of(headers),
        )

    def malformed(
        self, what: str, body: object, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> ProviderError:
        """The error of an answer that is none. what: what is wrong with it; body: what is quoted."""
        said = self.excerpt(body if body is None or isinstance(body, bytes | str) else _text(body))
        message = f"{what}: {said}" if said else what
        return self._make(ProviderError, message, status, None, None, request_id_of(headers or {}))

    def interrupted(self, what: str, *, status: int | None = None) -> StreamInterruptedError:
        """The error of a stream that ended before its terminal event."""
        return StreamInterruptedError(what, provider=self.provider, model_id=self.model_id, status=status)

    def of_transport(
        self, error: BaseException, *, during: str, begun: bool = False, status: int | None = None
    ) -> ProviderError:
        """The error of a connection that failed. during: what was being done; begun: content had already been read.

        Only the failure's kind is told: the client's own message may quote an address, and the exception itself holds
        the request with its headers, which is why it must not become a cause either.
        """
        kinds = {cls.__name__ for cls in type(error).__mro__}
        message = f"{type(error).__name__} {during}"
        if begun:
            return self.interrupted(message, status=status)
        if kinds & {"TimeoutException", "TimeoutError"}:
            return self._make(ProviderTimeoutError, message, status)
        if kinds & {"LocalProtocolError", "UnsupportedProtocol", "InvalidURL", "TooManyRedirects"}:
            return self._make(InvalidRequestError, message, status)
        if "DecodingError" in kinds:
            return self._make(ProviderError, message, status)
        return self._make(ConnectionFailed, message, status)

    def refused(self, message: str) -> InvalidRequestError:
        """The error of a request that cannot be put into this format, found before anything was sent."""
        return InvalidRequestError(message, provider=self.provider, model_id=self.model_id)

    def excerpt(self, said: bytes | str | None) -> str:
        """The first 300 characters on one line, without control characters and without secrets."""
        if not said:
            return ""
        text = said[:_READ_LENGTH].decode("utf-8", "replace") if isinstance(said, bytes) else said[:_READ_LENGTH]
        text = _CONTROL.sub(" ", text)
        text = self._redacted(text)
        text = _KEY_SHAPES.sub(_REDACTED, text).strip()
        return text if len(text) <= EXCERPT_LENGTH else text[: EXCERPT_LENGTH - 1] + "…"

    def _redacted(self, text: str) -> str:
        # Only when something is quoted: most calls quote nothing.
        long = (secret for secret in self._secrets if len(secret) >= _SHORTEST_SECRET)
        for form in sorted({form for secret in long for form in _spellings(secret)}, key=len, reverse=True):
            text = text.replace(form, _REDACTED)
        return text

    def _make(
        self,
        cls: type[ProviderError],
        message: str,
        status: int | None = None,
        retryable: bool | None = None,
        wait: float | None = None,
        request_id: str | None = None,
    ) -> ProviderError:
        error = cls(
            message,
            provider=self.provider,
            model_id=self.model_id,
            status=status,
            retryable=retryable,
            retry_after=wait,
            request_id=self._redacted(request_id) if request_id else None,
        )
        if isinstance(error, ContextOverflowError):
            error.prompt_tokens, error.limit_tokens = overflow_figures(message)
        return error


def _spellings(secret: str) -> set[str]:
    """A secret in every form that a server may echo it in: as it is, in JSON, an address, HTML, or base64."""
    in_json = json.dumps(secret)[1:-1]
    encoded = base64.b64encode(secret.encode()).decode()
    forms = {secret, in_json, in_json.replace("/", r"\/"), quote(secret, safe=""), quote_plus(secret), quote(secret)}
    return forms | {html.escape(secret), encoded, encoded.rstrip("=")}


def parsed(body: bytes) -> object:
    """The JSON of a body, or None where it has none."""
    try:
        data: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return data


def error_object(native: object) -> object:
    """The error that an answer or an event holds in place of content; None where it holds none."""
    if not isinstance(native, Mapping):
        return None
    if native.get("error"):
        return native
    return native if native.get("object") == "error" else None


def error_details(native: object) -> ErrorDetails:
    """Read an error body: OpenAI's, a bare object or text, FastAPI's `detail`, or a list of one of them."""
    if isinstance(native, list) and native:
        native = native[0]
    if isinstance(native, str):
        return ErrorDetails(native)
    if not isinstance(native, Mapping):
        return ErrorDetails()
    inner = native.get("error")
    if isinstance(inner, Mapping):
        native = inner
    elif isinstance(inner, str):
        native = {**native, "message": native.get("message") or inner}
    message, param = native.get("message"), _word(native.get("param"))
    detail = message.get("detail") if isinstance(message, Mapping) else native.get("detail")
    if isinstance(detail, list) and detail and isinstance(detail[0], Mapping):
        # FastAPI: {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "..."}]}
        first = detail[0]
        place = first.get("loc")
        path = [str(step) for step in place if step != "body"] if isinstance(place, list) else []
        return ErrorDetails(
            _word(first.get("msg")), _word(native.get("code")), _word(first.get("type")), ".".join(path)
        )
    if not isinstance(message, str):
        message = detail if isinstance(detail, str) else None
    return ErrorDetails(message, _word(native.get("code")), _word(native.get("type")), param)


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """The provider's id of the request, for its support."""
    return headers.get("x-request-id") or headers.get("request-id")


def _kind(details: ErrorDetails) -> tuple[type[ProviderError], bool]:
    if _is_overflow(details):
        return ContextOverflowError, False
    if details.status is not None:
        return provider_error_for_status(details.status)
    for said in (details.code, details.type):
        words = (said or "").lower().replace(" ", "_").replace("-", "_")
        for word, cls in _KINDS:
            if word in words:
                return cls, cls.default_retryable
    return ProviderError, False


def _is_overflow(details: ErrorDetails) -> bool:
    if details.status is not None and details.status not in (400, 413, 422):
        return False
    if details.code == "context_length_exceeded":
        return True
    if "rate_limit" in f"{details.code} {details.type}":  # "too many tokens" per minute is another matter
        return False
    return details.message is not None and _OVERFLOW.search(details.message) is not None


def _word(said: object) -> str | None:
    if isinstance(said, bool) or said is None:
        return None
    return str(said) if isinstance(said, str | int) else None


def _text(native: object) -> str:
    try:
        return orjson.dumps(native, default=lambda _: None).decode()
    except TypeError:
        return ""
