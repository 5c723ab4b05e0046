"""What Bedrock, botocore or a connection said when a call failed, as one of the library's exceptions. No I/O.

Failures are told apart by names alone (error codes, and the classes of an exception), so that this reads any release
of botocore and imports none. Messages quote a short excerpt of the service's own words, without what it may repeat of
a signed request; what botocore says of a parameter is told by its place, never by its value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

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
    provider_error_for_status,
)
from ...protocol.retry_after import retry_after
from ..common.error_maker import ErrorMaker

EXCERPT_LENGTH: Final = 300
_READ_LENGTH = 4096

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# A refused signature is answered with the canonical request, session token included.
_SIGNED = re.compile(r"(?is)the canonical string for this request should have been.*")
_KEYS = re.compile(
    r"\b(?:A3T|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}\b|\b(?:bedrock-api-key-|ABSK)[\w+/=-]{8,}|(?i:\bbearer\s+[\w.~+/=-]{8,})"
    r"|(?i:(?<=secret_access_key)|(?<=secretaccesskey)|(?<=session_token)|(?<=sessiontoken)|(?<=security-token))"
    r"[\"'\s]{0,3}[:=]\s?[\"']?[\w+/=.-]{8,}"
)
_OVERFLOW = re.compile(
    r"(?i)(?:input|prompt|conversation|request) is too long|too many (?:input|prompt) tokens|maximum context length"
    r"|context[ _](?:length|window|limit|size)|exceeds? the (?:maximum number of (?:input )?tokens|model'?s maximum)"
    r"|input tokens? (?:count )?exceeds?|input length exceeds|max(?:imum)? input tokens"
    r"|reduce the length of the (?:prompt|input)"
)
_KEY_REFUSED = re.compile(r"(?i)api key|bearer token|security token|authentication failed")

_OK_STATUS = 200

# By the name of an exception, without its ending. Bedrock's own are those of its service model, with their status;
# the other names for throttling are those that botocore itself takes for it.
_KINDS: Final[Mapping[str, tuple[type[ProviderError], int]]] = {
    **dict.fromkeys(
        (
            *("throttling", "throttled", "requestthrottled", "toomanyrequests", "requestlimitexceeded"),
            *("limitexceeded", "provisionedthroughputexceeded", "bandwidthlimitexceeded", "slowdown"),
            *("transactioninprogress", "priorrequestnotcomplete", "ec2throttled"),
        ),
        (RateLimitError, 429),
    ),
    "servicequotaexceeded": (RateLimitError, 400),
    "modeltimeout": (ProviderTimeoutError, 408),
    "requesttimeout": (ProviderTimeoutError, 408),
    "modelnotready": (OverloadedError, 429),
    "serviceunavailable": (OverloadedError, 503),
    "internalserver": (ServerError, 500),
    "internalfailure": (ServerError, 500),
    "modelerror": (ServerError, 424),
    "modelstreamerror": (ServerError, 424),
    "validation": (InvalidRequestError, 400),
    "accessdenied": (PermissionDeniedError, 403),
    "unauthorized": (PermissionDeniedError, 403),
    "optinrequired": (PermissionDeniedError, 403),
    "resourcenotfound": (NotFoundError, 404),
    **dict.fromkeys(
        (
            *("expiredtoken", "unrecognizedclient", "invalidsignature", "signaturedoesnotmatch", "incompletesignature"),
            *("invalidclienttokenid", "invalidaccesskeyid", "invalidtoken", "missingauthenticationtoken"),
            *("missingauthentication", "tokenrefreshrequired", "requestexpired", "requesttimetooskewed", "authfailure"),
        ),
        (AuthenticationError, 403),
    ),
}
# Classes of botocore that say that no credentials were found, or that they could not be renewed.
_NO_CREDENTIALS = frozenset(
    {
        *(
            "NoCredentialsError",
            "PartialCredentialsError",
            "CredentialRetrievalError",
            "RefreshWithMFAUnsupportedError",
        ),
        *("TokenRetrievalError", "NoAuthTokenError", "UnauthorizedSSOTokenError", "SSOTokenLoadError", "SSOError"),
        *("MetadataRetrievalError", "ConfigNotFound", "ProfileNotFound", "LoginError"),
    }
)
_TIMEOUTS = frozenset({"ConnectTimeoutError", "ReadTimeoutError", "TimeoutError", "ConnectTimeout", "ReadTimeout"})
# Of botocore, urllib3 and http.client; ParserError is that of broken frames of a stream.
_CONNECTION = frozenset(
    {
        *("OSError", "ConnectionError", "HTTPClientError", "IncompleteReadError"),
        *("HTTPError", "HTTPException", "ParserError"),
    }
)
_NOT_SENDABLE = frozenset({"InvalidEndpointDiscoveryConfigurationError", "UnknownEndpointError", "InvalidRegionError"})


class ErrorReader(ErrorMaker):
    """Makes typed errors for one call. provider, model_id: who was asked; request_id: of the answer that came, once one
    has."""

    __slots__ = ()

    def of_client_error(
        self, response: Mapping[str, object], operation: str | None = None, *, in_stream: bool = False
    ) -> ProviderError:
        """The error of an answer that botocore parsed: `ClientError.response`; in_stream: `EventStreamError.response`.

        operation: the API operation, as in `Converse`.
        """
        said, metadata = _mapping(response.get("Error")), _mapping(response.get("ResponseMetadata"))
        headers = {
            key.lower(): item for key, item in _mapping(metadata.get("HTTPHeaders")).items() if type(item) is str
        }
        code, message = _text(said.get("Code")), _text(said.get("Message")) or _text(response.get("message"))
        original = _status(response.get("originalStatusCode"))
        # An error inside a stream comes without an answer of its own, or with the frame's headers, by release.
        if in_stream or ":message-type" in headers:
            return self.of_event(code, message or headers.get(":error-message"), original_status=original)
        status = _status(metadata.get("HTTPStatusCode")) or _status(code)
        cls, retryable = _kind(code, status, message, original)
        name = _name(code) if not code.isdigit() else ""
        label = f"HTTP {status} {name}".rstrip() if status is not None else name or "the service reported an error"
        head = f"{operation}: {label}" if operation else label
        request_id = _text(metadata.get("RequestId")) or headers.get("x-amzn-requestid")
        return self.make(cls, _sentence(head, cls, message), status, retryable, retry_after(headers), request_id)

    def of_event(self, kind: str, message: str | None = None, *, original_status: int | None = None) -> ProviderError:
        """The error of an exception event inside a stream. kind: its name in any spelling, as `throttlingException` or
        `ThrottlingException`; original_status: what the model's server said, where the event tells it.

        `status` is the one that the service model gives the exception, since the stream itself came under 200.
        """
        known = _KINDS.get(_key(kind))
        cls, retryable = _kind(kind, None if known is None else known[1], message, original_status)
        name = _name(kind) or "an error"
        return self.make(
            cls, _sentence(f"{name} in the stream", cls, message), None if known is None else known[1], retryable
        )

    def of_transport(self, exception: BaseException, *, during: str, begun: bool = False) -> ProviderError:
        """The error of a call that never got a whole answer. during: what was being done; begun: content was read.

        Only the failure's kind is told: botocore's own message may quote an address or a value, and the exception
        itself may hold the request, which is why it must not become a cause either.
        """
        kinds = {cls.__name__ for cls in type(exception).__mro__}
        message = f"{type(exception).__name__} {during}"
        if begun and kinds & _CONNECTION | kinds & _TIMEOUTS:
            return self.interrupted(message)
        if "ParamValidationError" in kinds:
            return self.make(InvalidRequestError, f"botocore refuses the request: {_places(str(exception))}")
        if kinds & _NO_CREDENTIALS:
            hint = "no usable AWS credentials: set them in the environment, a profile or the client"
            return self.make(AuthenticationError, f"{message}: {hint}")
        if kinds & _NOT_SENDABLE:
            return self.make(InvalidRequestError, message)
        if kinds & _TIMEOUTS:
            return self.make(ProviderTimeoutError, message)
        if "ResponseParserError" in kinds:
            return self.malformed(f"the answer could not be read: {message}")
        if kinds & _CONNECTION:
            return self.make(ConnectionFailed, message)
        # Of a handler that somebody has put on the client, or of a fault in it: another try fails the same way.
        return self.make(ProviderError, f"the client failed: {message}")

    def malformed(self, what: str, *, status: int | None = None, request_id: str | None = None) -> ProviderError:
        """The error of an answer that is none. what: what is wrong with it, without its content."""
        return self.make(ProviderError, what, status, None, None, request_id)


def excerpt(said: str | None) -> str:
    """The first 300 characters on one line, without control characters, keys and signed requests."""
    text = _CONTROL.sub(" ", _SIGNED.sub("", (said or "")[:_READ_LENGTH]))
    text = _KEYS.sub("[redacted]", text).strip()
    return text if len(text) <= EXCERPT_LENGTH else text[: EXCERPT_LENGTH - 1] + "…"


def error_kind(kind: str) -> str | None:
    """The name of an error with a capital, as in `ThrottlingException`, where it is one that this reader knows."""
    return _name(kind) if _key(kind) in _KINDS else None


def _kind(
    code: str, status: int | None, message: str | None, original_status: int | None = None
) -> tuple[type[ProviderError], bool | None]:
    key = _key(code)
    known = _KINDS.get(key)
    cls: type[ProviderError]
    if known is not None:
        cls, retryable = known[0], known[0].default_retryable
    elif status is not None and status != _OK_STATUS:
        cls, retryable = provider_error_for_status(status)
    else:
        cls, retryable = ProviderError, False
    if key in ("modelerror", "modelstreamerror") and original_status is not None:
        # The service passes on what the model's own server answered: a 4xx of it will come again.
        retryable = provider_error_for_status(original_status)[1]
        if not retryable and _is_overflow(message):
            cls = ContextOverflowError
    if cls is InvalidRequestError and _is_overflow(message):
        cls = ContextOverflowError
    if cls is PermissionDeniedError and message is not None and _KEY_REFUSED.search(message):
        cls = AuthenticationError
    return cls, retryable


def _is_overflow(message: str | None) -> bool:
    return message is not None and _OVERFLOW.search(message[:_READ_LENGTH]) is not None


def _sentence(head: str, cls: type[ProviderError], message: str | None) -> str:
    said = excerpt(message)
    if issubclass(cls, AuthenticationError):
        said = said.partition(". ")[0]  # what follows may repeat the request
    return f"{head}: {said or 'no explanation'}"


def _name(code: str) -> str:
    """The bare name of an error code: without a namespace before `#` and an address after `:`, as AWS's protocols
    have them."""
    name = code.rpartition("#")[2].partition(":")[0].strip()
    return name[:1].upper() + name[1:80]


def _key(code: str) -> str:
    name = re.sub(r"[^a-z0-9]", "", _name(code).lower())
    for ending in ("exception", "error", "fault"):
        # `ModelErrorException` keeps its middle: one ending goes, not two.
        if name.endswith(ending) and name not in _KINDS:
            return name.removesuffix(ending)
    return name


# Lines of botocore's report: `Unknown parameter in messages[0]: "x", must be one of: ...`,
# `Invalid type for parameter messages[0].content, value: ..., type: ...`.
_IN = re.compile(r'^(Unknown|Missing required) parameter in ([^\s:]{1,500}): "([\w.-]{1,64})"')
_OF = re.compile(r"^(Invalid \w{1,20})(?: [\w ]{0,40})? for parameter ([^\s,]{1,500})(?:,|$)")


def _places(report: str) -> str:
    """What botocore's validator said, place by place, without the values that it quotes."""
    told: list[str] = []
    for line in report.splitlines():
        if found := _IN.match(line):
            told.append(f"{found[1].lower()} parameter {found[3]!r} in {found[2]}")
        elif found := _OF.match(line):
            told.append(f"{found[1].lower()} of {found[2]}")
    shown = "; ".join(told[:5]) or "a parameter does not fit"
    return excerpt(shown if len(told) <= 5 else f"{shown}; and {len(told) - 5} more")


def _mapping(item: object) -> Mapping[str, object]:
    return item if isinstance(item, Mapping) else {}


def _text(item: object) -> str:
    return item if isinstance(item, str) else str(item) if isinstance(item, int) and not isinstance(item, bool) else ""


def _status(item: object) -> int | None:
    if isinstance(item, str) and item.isdigit():
        item = int(item)
    return item if isinstance(item, int) and not isinstance(item, bool) and 100 <= item <= 599 else None
