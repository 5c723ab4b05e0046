"""What a connection said when it failed, as one of the library's exceptions, and how they quote an answer. No I/O.

What a provider's own error bodies mean is its own to tell. Messages quote its words or a short excerpt, never a key:
what was sent as a secret is blotted out first.
"""

from __future__ import annotations

import base64
import html
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, quote_plus

import orjson

from ...errors import ConnectionFailed, InvalidRequestError, ProviderError, ProviderTimeoutError
from .error_maker import ErrorMaker
from .headers import secrets_of

EXCERPT_LENGTH: Final = 300
_READ_LENGTH = 64 * 1024
_SHORTEST_SECRET = 3
_REDACTED = "[redacted]"

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_KEY_SHAPES = re.compile(r"(?i)\b(?:bearer|basic)\s+[\w.~+/=*-]{6,}|\bsk-[\w*.-]{6,}")


class HttpErrorReader(ErrorMaker, ABC):
    """Makes typed errors for one call. secrets: the texts that must not be quoted from an answer."""

    __slots__ = ("_secrets",)

    def __init__(self, provider: str | None = None, model_id: str | None = None, secrets: Iterable[str] = ()) -> None:
        super().__init__(provider, model_id)
        self._secrets = tuple(secrets)

    def learn(self, headers: Mapping[str, object]) -> None:
        """What was sent with these headers must not be quoted either."""
        self._secrets = (*self._secrets, *secrets_of(headers))

    def malformed(
        self, what: str, body: object, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> ProviderError:
        """The error of an answer that is none. what: what is wrong with it; body: what is quoted."""
        said = self.excerpt(body if body is None or isinstance(body, bytes | str) else text_of(body))
        message = f"{what}: {said}" if said else what
        return self.make(ProviderError, message, status, None, None, request_id_of(headers or {}))

    def no_stream(
        self, sent: str, body: bytes, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> ProviderError:
        """The error of a good status whose body is no event stream: the one that it tells, or what it was."""
        told = self.of_error_in(parsed(body), status=status, headers=headers)
        what = f"expected an event stream, and the server sent {sent}"
        return told or self.malformed(what, body, status=status, headers=headers)

    @abstractmethod
    def of_error_in(
        self, native: object, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> ProviderError | None:
        """The error that an answer holds in place of content; None where it holds none."""

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
            return self.make(ProviderTimeoutError, message, status)
        if kinds & {"LocalProtocolError", "UnsupportedProtocol", "InvalidURL", "TooManyRedirects"}:
            return self.make(InvalidRequestError, message, status)
        if "DecodingError" in kinds:
            return self.make(ProviderError, message, status)
        return self.make(ConnectionFailed, message, status)

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

    def make(
        self,
        cls: type[ProviderError],
        message: str,
        status: int | None = None,
        retryable: bool | None = None,
        wait: float | None = None,
        request_id: str | None = None,
    ) -> ProviderError:
        # An id is the server's to choose, and so may be what was sent.
        return super().make(cls, message, status, retryable, wait, self._redacted(request_id) if request_id else None)


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


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """The provider's id of the request, for its support."""
    return headers.get("x-request-id") or headers.get("request-id")


def text_of(native: object) -> str:
    """What is quoted of an answer that was parsed."""
    try:
        return orjson.dumps(native, default=lambda _: None).decode()
    except TypeError:
        return ""
