"""What a server said when it failed, as one of the library's exceptions. No I/O.

Servers of this format share a success body and little else: the error body may be OpenAI's `{"error": {...}}`, a
FastAPI `{"detail": ...}`, a list, a bare string, or a proxy's HTML page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http.client import responses as _REASONS
from typing import NamedTuple

from ...errors import (
    AuthenticationError,
    ContextOverflowError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    ServerError,
    provider_error_for_status,
)
from ...protocol.retry_after import retry_after
from ..common.errors import HttpErrorReader, parsed, request_id_of, text_of

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


class ErrorReader(HttpErrorReader):
    """Makes typed errors for one call, of the error bodies of this format too."""

    __slots__ = ()

    def of_response(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """The error of an HTTP status above 299."""
        details = error_details(parsed(body))
        cls, retryable = provider_error_for_status(status)
        if issubclass(cls, InvalidRequestError) and _is_overflow(details):
            cls = ContextOverflowError
        said = self.excerpt(details.message) or self.excerpt(body) or _REASONS.get(status, "no explanation")
        return self.make(cls, f"HTTP {status}: {said}", status, retryable, retry_after(headers), request_id_of(headers))

    def of_error_in(
        self, native: object, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> ProviderError | None:
        return None if error_object(native) is None else self.of_object(native, status=status, headers=headers)

    def of_object(
        self, error: object, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> ProviderError:
        """The error of an error object that came where an answer was due. status: the HTTP status it came under."""
        details = error_details(error)
        cls, retryable = _kind(details)
        said = self.excerpt(details.message) or self.excerpt(text_of(error)) or "no explanation"
        headers = headers or {}
        return self.make(
            cls,
            f"the provider reported an error: {said}",
            details.status or status,
            retryable,
            retry_after(headers),
            request_id_of(headers),
        )


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
