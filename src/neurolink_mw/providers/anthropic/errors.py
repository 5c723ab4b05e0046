"""What Anthropic's API, its SDK or a connection said when a call failed, as one of the library's exceptions. No I/O.

The API answers `{"type": "error", "error": {"type", "message"}, "request_id"}`, also inside a stream that began under
200, where the type alone says what it is. Clouds that host Claude answer in shapes of their own: `{"message"}`, or
`{"error": {"code", "message", "status"}}`. Failures of the SDK are told apart by the names of their classes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http.client import responses as _REASONS
from typing import Final, NamedTuple

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

# The types of the API's errors, with the status that each comes under (docs, "Errors"; `ErrorType` of the SDK).
_TYPES: Final[Mapping[str, tuple[type[ProviderError], int]]] = {
    "invalid_request_error": (InvalidRequestError, 400),
    "authentication_error": (AuthenticationError, 401),
    "billing_error": (PermissionDeniedError, 402),
    "permission_error": (PermissionDeniedError, 403),
    "not_found_error": (NotFoundError, 404),
    "conflict_error": (ProviderError, 409),
    "request_too_large": (InvalidRequestError, 413),
    "rate_limit_error": (RateLimitError, 429),
    "api_error": (ServerError, 500),
    "timeout_error": (ProviderTimeoutError, 504),
    "overloaded_error": (OverloadedError, 529),
}
# Of Bedrock: exception frames, which the SDK passes on as errors of a type of that name, and a header of its answers.
_OF_BEDROCK: Final[Mapping[str, tuple[type[ProviderError], int]]] = {
    "throttling": (RateLimitError, 429),
    "modeltimeout": (ProviderTimeoutError, 408),
    "modelnotready": (OverloadedError, 429),
    "serviceunavailable": (OverloadedError, 503),
    "internalserver": (ServerError, 500),
    "modelerror": (ServerError, 424),
    "modelstreamerror": (ServerError, 424),
    "validation": (InvalidRequestError, 400),
    "accessdenied": (PermissionDeniedError, 403),
    "expiredtoken": (AuthenticationError, 403),
    "unrecognizedclient": (AuthenticationError, 403),
    "invalidsignature": (AuthenticationError, 403),
}
_BEDROCK_TYPE: Final = "x-amzn-errortype"
_BEDROCK_ID: Final = "x-amzn-requestid"
_OVERFLOW = re.compile(
    r"(?i)prompt is too long|input is too long|exceeds? (?:the )?(?:maximum|model'?s?) (?:context|number of tokens)"
    r"|input length and `?max_tokens`? exceed context limit|context (?:window|length|limit)"
)
_TOO_LARGE: Final = frozenset({400, 413, 422})
_READ_LENGTH = 4096

# Classes of the SDK, botocore and google-auth: there are no credentials, or they could not be renewed.
_NO_CREDENTIALS: Final = frozenset(
    {
        *("CredentialsError", "WorkloadIdentityError", "DefaultCredentialsError", "RefreshError"),
        *("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound"),
        *("TokenRetrievalError", "NoAuthTokenError", "UnauthorizedSSOTokenError", "SSOTokenLoadError"),
    }
)
# Of httpx2 and sockets; ParserError is that of broken frames of a stream.
_CONNECTION: Final = frozenset(
    {
        "RequestError",
        "InvalidURL",
        "OSError",
        "BrokenResourceError",
        "ClosedResourceError",
        "EndOfStream",
        "ParserError",
    }
)
_NO_KEY = "no usable credentials: give AnthropicModel a client with a key, api_key=, or set ANTHROPIC_API_KEY"


class ErrorDetails(NamedTuple):
    """What an error body says, whatever its shape."""

    message: str | None = None
    type: str | None = None
    request_id: str | None = None


class ErrorReader(HttpErrorReader):
    """Makes typed errors for one call, of the error bodies of this API too."""

    __slots__ = ()

    def of_response(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """The error of an HTTP status above 299."""
        details = error_details(parsed(body))
        cls, retryable = provider_error_for_status(status)
        kind, documented = _kind(details.type or headers.get(_BEDROCK_TYPE, "").partition(":")[0])
        if documented == status:
            cls, retryable = kind, retryable or kind.default_retryable
        elif details.type in ("overloaded_error", "timeout_error"):  # whatever status a gateway has made of it
            cls, retryable = kind, True
        if status in _TOO_LARGE and _is_overflow(details.message):
            cls, retryable = ContextOverflowError, False
        said = self.excerpt(details.message) or self.excerpt(body) or _REASONS.get(status, "no explanation")
        request_id = _request_id(headers, details)
        return self.make(cls, f"HTTP {status}: {said}", status, retryable, retry_after(headers), request_id)

    def of_error_in(
        self, native: object, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> ProviderError | None:
        return self.of_object(native, status=status, headers=headers) if is_error(native) else None

    def of_object(
        self, error: object, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> ProviderError:
        """The error of an error object that came where an answer was due.

        `status` of the error is the one that the API documents for its type; status: the HTTP status that it came
        under, for a type that is new.
        """
        details = error_details(error)
        cls, known = _kind(details.type)
        retryable = cls.default_retryable or (known is not None and provider_error_for_status(known)[1])
        if known is not None and known in _TOO_LARGE and _is_overflow(details.message):
            cls, retryable = ContextOverflowError, False
        said = self.excerpt(details.message) or self.excerpt(text_of(error)) or "no explanation"
        kind = f"{self.excerpt(details.type)}: " if details.type else ""
        return self.make(
            cls,
            f"the provider reported an error: {kind}{said}",
            known if known is not None else status,
            retryable,
            retry_after(headers or {}),
            _request_id(headers or {}, details),
        )

    def of_client(self, error: BaseException, *, during: str, begun: bool = False) -> ProviderError:
        """The error of a call that the SDK did not bring to an end. during, begun: as in `of_transport`.

        Only the failure's kind is told, and what the service said: the SDK's exceptions hold the request.
        """
        kinds = {cls.__name__ for cls in type(error).__mro__}
        status = getattr(error, "status_code", None)
        if "APIStatusError" in kinds and isinstance(status, int):
            response = getattr(error, "response", None)
            self.learn(getattr(getattr(response, "request", None), "headers", {}))
            headers = {name.lower(): text for name, text in getattr(response, "headers", {}).items()}
            body = getattr(error, "body", None)
            if status < 300:  # told inside a stream that had begun well
                return self.of_object(body, status=status, headers=headers)
            content = getattr(response, "content", b"")
            return self.of_response(status, headers, content if isinstance(content, bytes) else b"")
        if "APIConnectionError" in kinds and error.__cause__ is not None:
            return self.of_client(error.__cause__, during=during, begun=begun)
        if kinds & _NO_CREDENTIALS or _is_about_credentials(error):
            return self.make(AuthenticationError, f"{type(error).__name__} {during}: {_NO_KEY}")
        if kinds & _CONNECTION:
            return self.of_transport(error, during=during, begun=begun)
        if isinstance(error, UnicodeEncodeError):
            return self.refused("the request holds half a surrogate pair, which is no text: take it out of the prompt")
        # Of the SDK's own checks, or of a middleware of the client: their words may quote what was to be sent.
        return self.make(ProviderError, f"the client failed: {type(error).__name__} {during}")


def is_error(native: object) -> bool:
    """Whether this is an error object and no answer."""
    return isinstance(native, Mapping) and (native.get("type") == "error" or bool(native.get("error")))


def error_details(native: object) -> ErrorDetails:
    """Read an error body of the API, of a cloud, or a bare text."""
    if isinstance(native, list) and native:
        native = native[0]
    if isinstance(native, str):
        return ErrorDetails(native)
    if not isinstance(native, Mapping):
        return ErrorDetails()
    request_id, inner = _word(native.get("request_id")), native.get("error")
    if isinstance(inner, str):
        return ErrorDetails(_word(native.get("message")) or inner, inner, request_id)
    said = inner if isinstance(inner, Mapping) else native
    kind = _word(said.get("type")) or _word(said.get("status"))
    message = _word(said.get("message")) or _word(said.get("Message"))
    return ErrorDetails(message, None if kind == "error" else kind, request_id)


def _kind(name: str | None) -> tuple[type[ProviderError], int | None]:
    known = _TYPES.get(name or "") or _OF_BEDROCK.get((name or "").lower().removesuffix("exception"))
    return known or (ProviderError, None)


def _request_id(headers: Mapping[str, str], details: ErrorDetails) -> str | None:
    return request_id_of(headers) or headers.get(_BEDROCK_ID) or details.request_id


def _is_overflow(message: str | None) -> bool:
    return message is not None and _OVERFLOW.search(message[:_READ_LENGTH]) is not None


def _is_about_credentials(error: BaseException) -> bool:
    """The SDK has a plain TypeError or RuntimeError for the want of a key."""
    said = str(error)[:_READ_LENGTH].lower()
    return isinstance(error, TypeError | RuntimeError | ValueError) and any(
        word in said for word in ("authentication", "credential", "api token", "api key")
    )


def _word(said: object) -> str | None:
    return said if isinstance(said, str) and said else None
