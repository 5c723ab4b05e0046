"""What Anthropic, a cloud, the SDK or a connection says when it fails, and what becomes of it."""

from __future__ import annotations

import base64
import json
from typing import Any

import anthropic as sdk
import httpx2
import pytest
from botocore.eventstream import ParserError
from botocore.exceptions import NoCredentialsError, ProfileNotFound

from neurolink_mw.errors import (
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
)
from neurolink_mw.providers.anthropic.errors import ErrorReader, error_details, is_error

Json = dict[str, Any]
SECRET = "my-own-key-0815"
SAID = "what-nobody-may-quote"
REQUEST = httpx2.Request("POST", f"http://user:{SECRET}@127.0.0.1/v1/messages", content=SAID)


def refused(status: int, body: object = b"", headers: dict[str, str] | None = None) -> ProviderError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ErrorReader("anthropic", "m", [SECRET]).of_response(status, headers or {}, data)


def native(kind: str | None = None, message: str = "no", **more: object) -> Json:
    """An error body as the API writes it."""
    return {"type": "error", "error": {"type": kind, "message": message}, **more}


# ----------------------------------------------------------------------------------------------------- of a status


@pytest.mark.parametrize(
    ("status", "kind", "cls", "retryable"),
    [
        (400, "invalid_request_error", InvalidRequestError, False),
        (401, "authentication_error", AuthenticationError, False),
        (402, "billing_error", PermissionDeniedError, False),
        (403, "permission_error", PermissionDeniedError, False),
        (404, "not_found_error", NotFoundError, False),
        (409, "conflict_error", ProviderError, True),
        (413, "request_too_large", InvalidRequestError, False),
        (429, "rate_limit_error", RateLimitError, True),
        (500, "api_error", ServerError, True),
        (504, "timeout_error", ProviderTimeoutError, True),
        (529, "overloaded_error", OverloadedError, True),
    ],
)
def test_an_error_is_the_same_under_its_status_and_inside_a_stream(
    status: int, kind: str, cls: type[ProviderError], retryable: bool
) -> None:
    headers = {"request-id": "req_1", "retry-after": "2"}
    told = ErrorReader("anthropic", "m").of_object(native(kind), status=200, headers=headers)
    for error in (refused(status, native(kind), headers), told):
        assert (type(error), error.status, error.retryable) == (cls, status, retryable)
        assert (error.provider, error.model_id) == ("anthropic", "m")
        assert (error.request_id, error.retry_after) == ("req_1", 2)


@pytest.mark.parametrize(
    ("status", "cls", "retryable"),
    [
        (408, ProviderTimeoutError, True),
        (422, InvalidRequestError, False),
        (503, OverloadedError, True),
        (302, ProviderError, False),
        (418, InvalidRequestError, False),
    ],
)
def test_a_status_that_the_api_does_not_document_has_its_usual_class(
    status: int, cls: type[ProviderError], retryable: bool
) -> None:
    error = refused(status, native("api_error"))
    assert (type(error), error.retryable) == (cls, retryable)


@pytest.mark.parametrize(
    ("kind", "cls"), [("overloaded_error", OverloadedError), ("timeout_error", ProviderTimeoutError)]
)
def test_a_gateway_that_changes_the_status_hides_no_overload(kind: str, cls: type[ProviderError]) -> None:
    for status in (400, 500, 502):
        error = refused(status, native(kind))
        assert (type(error), error.retryable, error.status) == (cls, True, status)


def test_a_type_alone_does_not_make_a_retry_of_what_the_status_says_is_final() -> None:
    assert type(refused(400, native("api_error"))) is InvalidRequestError
    assert refused(401, native("rate_limit_error")).retryable is False


@pytest.mark.parametrize(
    ("status", "name", "cls", "retryable"),
    [
        (429, "ThrottlingException", RateLimitError, True),
        (429, "ModelNotReadyException", OverloadedError, True),
        (408, "ModelTimeoutException", ProviderTimeoutError, True),
        (424, "ModelErrorException", ServerError, True),
        (403, "AccessDeniedException", PermissionDeniedError, False),
        (403, "ExpiredTokenException", AuthenticationError, False),
        (400, "ValidationException:http://internal.amazon.com/coral/", InvalidRequestError, False),
        (418, "NobodyKnowsException", InvalidRequestError, False),
    ],
)
def test_bedrock_names_its_errors_in_a_header(
    status: int, name: str, cls: type[ProviderError], retryable: bool
) -> None:
    headers = {"x-amzn-errortype": name, "x-amzn-requestid": "aws-1"}
    error = refused(status, {"message": "no"}, headers)
    assert (type(error), error.retryable, error.request_id) == (cls, retryable, "aws-1")
    assert str(error) == f"HTTP {status}: no"


@pytest.mark.parametrize(
    ("name", "cls", "retryable"),
    [
        ("throttlingException", RateLimitError, True),
        ("modelTimeoutException", ProviderTimeoutError, True),
        ("modelStreamErrorException", ServerError, True),
        ("serviceUnavailableException", OverloadedError, True),
        ("internalServerException", ServerError, True),
        ("validationException", InvalidRequestError, False),
        ("newException", ProviderError, False),
    ],
)
def test_an_exception_frame_of_bedrock_is_known_by_its_name(
    name: str, cls: type[ProviderError], retryable: bool
) -> None:
    error = ErrorReader().of_object(native(name), status=200)
    assert (type(error), error.retryable) == (cls, retryable)
    assert str(error) == f"the provider reported an error: {name}: no"


# ------------------------------------------------------------------------------------------------- what is quoted


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (native("invalid_request_error", "a"), "a"),
        ({"error": {"message": "a", "code": 400, "status": "INVALID_ARGUMENT"}}, "a"),
        ([{"error": {"message": "a"}}], "a"),
        ({"error": "a"}, "a"),
        ({"error": "Bad Request", "message": "a"}, "a"),
        ({"message": "a"}, "a"),
        ({"Message": "a"}, "a"),
        (b"<html>bad\r\ngateway\x1b[31m</html>", "<html>bad gateway [31m</html>"),
        ({"odd": 1}, '{"odd": 1}'),
        (b"", "Bad Request"),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_the_services_own_words_are_quoted_else_an_excerpt_else_the_status(body: object, message: str) -> None:
    assert str(refused(400, body)) == f"HTTP 400: {message}"


def test_an_excerpt_is_short() -> None:
    said = str(refused(400, native(message="x" * 10_000))).removeprefix("HTTP 400: ")
    assert len(said) == 300


def test_the_id_of_the_request_is_the_headers_else_the_bodys() -> None:
    body = native(request_id="req_body")
    assert refused(400, body).request_id == "req_body"
    assert refused(400, body, {"request-id": "req_header"}).request_id == "req_header"
    assert ErrorReader().of_object(body).request_id == "req_body"


def test_an_error_that_says_nothing_says_so() -> None:
    assert str(ErrorReader().of_object({"type": "error"})) == 'the provider reported an error: {"type":"error"}'
    assert str(ErrorReader().of_object("")) == 'the provider reported an error: ""'
    assert str(refused(599)) == "HTTP 599: no explanation"


@pytest.mark.parametrize(
    "said",
    [
        f"no such key: {SECRET}",
        f"{SECRET[:8]}\x00{SECRET[8:]} {SECRET}",
        "got 'Authorization: Bearer abcdefgh12345'",
        "invalid x-api-key: sk-ant-api03-12345678",
        "x" * 290 + SECRET,
        base64.b64encode(SECRET.encode()).decode(),
    ],
)
def test_no_secret_is_quoted(said: str) -> None:
    reader = ErrorReader("anthropic", "m", [SECRET])
    for body in (native(message=said), {"error": said}, {"other": said}):
        for error in (refused(401, body), reader.of_object(body), reader.malformed("odd", body)):
            shown = f"{error} {error!r} {error.args}"
            assert SECRET not in shown
            assert "sk-ant" not in shown
            assert "abcdefgh" not in shown
            assert base64.b64encode(SECRET.encode()).decode() not in shown


# ---------------------------------------------------------------------------------------------- a prompt too long


@pytest.mark.parametrize(
    ("message", "figures"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", (210_000, 200_000)),
        (
            "input length and `max_tokens` exceed context limit: 199000 + 20000 > 200000, decrease input length or "
            "`max_tokens` and try again",
            (199_000, 200_000),
        ),
        ("Input is too long for requested model.", (None, None)),
    ],
)
def test_a_prompt_that_does_not_fit_is_an_overflow_with_its_figures(
    message: str, figures: tuple[int | None, int | None]
) -> None:
    body = native("invalid_request_error", message)
    for error in (refused(400, body), refused(413, body), ErrorReader().of_object(body)):
        assert isinstance(error, ContextOverflowError)
        assert (error.prompt_tokens, error.limit_tokens) == figures
        assert not error.retryable


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (413, "request_too_large", "Request exceeds the maximum size"),
        (
            400,
            "invalid_request_error",
            "max_tokens: 200000 > 8192, which is the maximum allowed number of output tokens",
        ),
        (400, "invalid_request_error", "messages.0.content.0: image exceeds 5 MB maximum"),
        (429, "rate_limit_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    ],
)
def test_other_limits_are_no_overflow(status: int, kind: str, message: str) -> None:
    body = native(kind, message)
    for error in (refused(status, body), ErrorReader().of_object(body)):
        assert not isinstance(error, ContextOverflowError)


# ---------------------------------------------------------------------------------- what the SDK and the wire raise


def of_client(error: BaseException, *, begun: bool = False) -> ProviderError:
    made = ErrorReader("anthropic", "m", [SECRET]).of_client(error, during="before the answer began", begun=begun)
    assert SAID not in f"{made} {made!r} {vars(made)}"
    assert SECRET not in f"{made} {made!r} {vars(made)}"
    return made


def connection(cause: Exception, cls: type[sdk.APIConnectionError] = sdk.APIConnectionError) -> Exception:
    """What the SDK makes of a failure of its client."""
    error = cls(request=REQUEST)
    error.__cause__ = cause
    return error


def status_error(status: int, body: object, headers: dict[str, str] | None = None) -> sdk.APIStatusError:
    response = httpx2.Response(status, request=REQUEST, json=body, headers=headers)
    return sdk.APIStatusError(f"{SAID}", response=response, body=body)


@pytest.mark.parametrize(
    ("failure", "cls", "says"),
    [
        (connection(httpx2.ReadTimeout(SAID), sdk.APITimeoutError), ProviderTimeoutError, "ReadTimeout before"),
        (connection(httpx2.PoolTimeout(SAID), sdk.APITimeoutError), ProviderTimeoutError, "PoolTimeout before"),
        (connection(httpx2.ConnectError(SAID)), ConnectionFailed, "ConnectError before the answer began"),
        (connection(OSError(SAID)), ConnectionFailed, "OSError before"),
        (connection(httpx2.LocalProtocolError(SAID)), InvalidRequestError, "LocalProtocolError before"),
        (httpx2.ReadError(SAID), ConnectionFailed, "ReadError before"),
        (ParserError(SAID), ConnectionFailed, "ParserError before"),
        (httpx2.DecodingError(SAID), ProviderError, "DecodingError before"),
    ],
)
def test_a_connection_that_fails_is_told_by_its_kind(failure: Exception, cls: type[ProviderError], says: str) -> None:
    error = of_client(failure)
    assert type(error) is cls
    assert says in str(error)
    assert type(of_client(failure, begun=True)) is StreamInterruptedError


@pytest.mark.parametrize(
    "failure",
    [
        TypeError('"Could not resolve authentication method. Expected one of api_key, ..."'),
        RuntimeError("Could not resolve AWS credentials from session"),
        sdk.CredentialsError("no profile"),
        sdk.WorkloadIdentityError("expired"),
        NoCredentialsError(),
        ProfileNotFound(profile=SAID),
        connection(sdk.CredentialsError(SAID)),
    ],
)
def test_the_want_of_credentials_is_told_with_the_remedy(failure: Exception) -> None:
    error = of_client(failure)
    assert type(error) is AuthenticationError
    assert not error.retryable
    assert "set ANTHROPIC_API_KEY" in str(error)


@pytest.mark.parametrize("failure", [TypeError(SAID), ValueError(SAID), KeyError(SAID), sdk.AnthropicError(SAID)])
def test_what_the_sdk_or_a_middleware_of_its_client_raises_is_no_failed_connection(failure: Exception) -> None:
    for one in (failure, connection(failure)):
        error = of_client(one)
        assert (type(error), error.retryable) == (ProviderError, False)
        assert str(error) == f"the client failed: {type(failure).__name__} before the answer began"


def test_a_status_that_the_sdk_raises_is_read_from_its_response() -> None:
    error = of_client(status_error(429, native("rate_limit_error", "slow"), {"Retry-After": "7", "Request-Id": "r"}))
    assert type(error) is RateLimitError
    assert (str(error), error.retry_after, error.request_id) == ("HTTP 429: slow", 7, "r")


def test_an_error_that_the_sdk_raises_inside_a_stream_is_known_by_its_type() -> None:
    error = of_client(status_error(200, native("overloaded_error", "busy"), {"X-Amzn-RequestId": "aws-1"}))
    assert (type(error), error.status, error.request_id) == (OverloadedError, 529, "aws-1")
    assert str(error) == "the provider reported an error: overloaded_error: busy"


# ------------------------------------------------------------------------------------------------------- harmless


def test_what_is_an_error_and_what_an_answer() -> None:
    assert is_error(native())
    assert is_error({"error": "no"})
    assert is_error({"type": "error"})
    answers: list[object] = [None, [], "error", {}, {"type": "message", "error": None}, {"error": {}}]
    for answer in answers:
        assert not is_error(answer)


def test_error_details_of_anything_are_harmless() -> None:
    nothing: list[object] = [
        None,
        5,
        [],
        {},
        {"error": {"message": 5, "type": True}},
        {"error": []},
        [5],
        {"error": [5]},
    ]
    for odd in nothing:
        assert error_details(odd).message is None
        assert isinstance(ErrorReader().of_object(odd), ProviderError)
