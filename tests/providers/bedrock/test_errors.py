"""What the service, botocore or a connection says, as typed errors. Real exceptions of botocore are made and read."""

from __future__ import annotations

from typing import Any

import pytest
from botocore import exceptions
from botocore.eventstream import ChecksumMismatch
from botocore.exceptions import ClientError, EventStreamError
from botocore.parsers import ResponseParserError
from botocore.validate import ParamValidator

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
from neurolink_mw.providers.bedrock.errors import EXCERPT_LENGTH, ErrorReader, excerpt

from .native import Json, service

READER = ErrorReader("bedrock", "m-1")


def parsed(code: str, message: str = "no", status: int = 400, headers: Json | None = None, **more: Any) -> Json:
    metadata = {"RequestId": "r-1", "HTTPStatusCode": status, "HTTPHeaders": headers or {}, "RetryAttempts": 0}
    return {"Error": {"Code": code, "Message": message}, "ResponseMetadata": metadata, **more}


def refused(*args: Any, **more: Any) -> ProviderError:
    return READER.of_client_error(ClientError(parsed(*args, **more), "Converse").response, "Converse")


# ------------------------------------------------------------------------------------------------------ by their code


@pytest.mark.parametrize(
    ("code", "status", "cls", "retryable"),
    [
        ("ThrottlingException", 429, RateLimitError, True),
        ("Throttling", 400, RateLimitError, True),
        ("TooManyRequestsException", 429, RateLimitError, True),
        ("throttlingException", 400, RateLimitError, True),
        ("ServiceQuotaExceededException", 400, RateLimitError, True),
        ("ModelTimeoutException", 408, ProviderTimeoutError, True),
        ("ModelNotReadyException", 429, OverloadedError, True),
        ("ServiceUnavailableException", 503, OverloadedError, True),
        ("ServiceUnavailable", 503, OverloadedError, True),
        ("InternalServerException", 500, ServerError, True),
        ("InternalFailure", 500, ServerError, True),
        ("ModelErrorException", 424, ServerError, True),
        ("ModelStreamErrorException", 424, ServerError, True),
        ("ValidationException", 400, InvalidRequestError, False),
        ("ResourceNotFoundException", 404, NotFoundError, False),
        ("AccessDeniedException", 403, PermissionDeniedError, False),
        ("ExpiredTokenException", 403, AuthenticationError, False),
        ("ExpiredToken", 403, AuthenticationError, False),
        ("UnrecognizedClientException", 403, AuthenticationError, False),
        ("InvalidSignatureException", 403, AuthenticationError, False),
        ("NewException", 418, InvalidRequestError, False),
        ("502", 502, ServerError, True),
        ("", 401, AuthenticationError, False),
        ("com.amazon.coral#ThrottlingException:http://x", 400, RateLimitError, True),
    ],
)
def test_a_code_decides_and_the_status_where_the_code_is_new(
    code: str, status: int, cls: type[ProviderError], retryable: bool
) -> None:
    error = refused(code, "no", status)
    assert type(error) is cls
    assert (error.status, error.retryable) == (status, retryable)
    assert (error.provider, error.model_id, error.request_id) == ("bedrock", "m-1", "r-1")


def test_every_exception_of_the_service_model_is_known() -> None:
    shapes = service().shape_names
    for name in shapes:
        shape = service().shape_for(name)
        if shape.metadata.get("exception") and name not in ("ConflictException", "ServiceQuotaExceededException"):
            status = shape.metadata["error"]["httpStatusCode"]
            error = READER.of_event(name, "no")
            assert (type(error) is not ProviderError, error.status) == (True, status), name


def test_a_message_names_operation_status_and_code() -> None:
    assert str(refused("ValidationException", "bad input")) == "Converse: HTTP 400 ValidationException: bad input"
    assert str(refused("", "", 500)) == "Converse: HTTP 500: no explanation"


def test_the_wait_is_read_from_the_headers() -> None:
    assert refused("ThrottlingException", status=429, headers={"Retry-After": "3"}).retry_after == 3


@pytest.mark.parametrize(("original", "retryable"), [(400, False), (429, True), (503, True), (None, True)])
def test_what_the_models_own_server_said_decides_about_another_try(original: int | None, retryable: bool) -> None:
    error = refused("ModelErrorException", status=424, originalStatusCode=original, resourceName="arn")
    assert error.retryable is retryable


def test_a_wrong_api_key_is_no_question_of_permission() -> None:
    error = refused("AccessDeniedException", "Authentication failed: Please make sure your API Key is valid.", 403)
    assert type(error) is AuthenticationError
    assert type(refused("AccessDeniedException", "not authorized to perform", 403)) is PermissionDeniedError


# -------------------------------------------------------------------------------------------------- context overflow


@pytest.mark.parametrize(
    ("message", "figures"),
    [
        ("Input is too long for requested model.", (None, None)),
        (
            "The model returned the following errors: prompt is too long: 210000 tokens > 200000 maximum",
            (210000, 200000),
        ),
        ("The input exceeds the maximum number of tokens allowed", (None, None)),
        ("Too many input tokens. Max input tokens: 128000", (None, None)),
        ("Input tokens exceed the configured limit", (None, None)),
        ("input length and `max_tokens` exceed context limit: 190000 + 21000 > 204000", (190000, 204000)),
        ("This model's maximum context length is 8192 tokens. Please reduce the length of the prompt", (None, 8192)),
    ],
)
def test_a_prompt_that_is_too_long_is_told_apart(message: str, figures: tuple[int | None, int | None]) -> None:
    error = refused("ValidationException", message)
    assert isinstance(error, ContextOverflowError)
    assert (error.prompt_tokens, error.limit_tokens) == figures
    assert not error.retryable


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("ValidationException", "The maximum tokens you requested exceeds the model limit of 4096."),
        ("ValidationException", "messages: roles must alternate"),
        ("ThrottlingException", "Too many tokens, please wait before trying again."),
    ],
)
def test_other_words_about_tokens_are_not(code: str, message: str) -> None:
    assert not isinstance(refused(code, message), ContextOverflowError)


# ---------------------------------------------------------------------------------------------------- inside a stream


@pytest.mark.parametrize(
    ("kind", "cls", "status", "retryable"),
    [
        ("throttlingException", RateLimitError, 429, True),
        ("ThrottlingException", RateLimitError, 429, True),
        ("modelStreamErrorException", ServerError, 424, True),
        ("internalServerException", ServerError, 500, True),
        ("serviceUnavailableException", OverloadedError, 503, True),
        ("validationException", InvalidRequestError, 400, False),
        ("brandNewException", ProviderError, None, False),
    ],
)
def test_an_exception_event_is_read_in_any_spelling(
    kind: str, cls: type[ProviderError], status: int | None, retryable: bool
) -> None:
    error = READER.of_event(kind, "boom")
    assert type(error) is cls
    assert (error.status, error.retryable) == (status, retryable)
    assert str(error).endswith("in the stream: boom")


def test_an_event_stream_error_of_botocore_is_the_exception_and_not_its_made_up_status() -> None:
    headers = {":message-type": "exception", ":exception-type": "throttlingException"}
    raised = EventStreamError(parsed("throttlingException", "slow down", 400, headers), "ConverseStream")
    error = READER.of_client_error(raised.response, "ConverseStream")
    assert (type(error), error.status) == (RateLimitError, 429)


# --------------------------------------------------------------------------------------------------------- transport


@pytest.mark.parametrize(
    ("exception", "cls"),
    [
        (exceptions.ConnectTimeoutError(endpoint_url="https://secret.test"), ProviderTimeoutError),
        (exceptions.ReadTimeoutError(endpoint_url="https://secret.test"), ProviderTimeoutError),
        (exceptions.EndpointConnectionError(endpoint_url="https://secret.test"), ConnectionFailed),
        (exceptions.ConnectionClosedError(endpoint_url="https://secret.test"), ConnectionFailed),
        (exceptions.SSLError(endpoint_url="https://secret.test", error="secret"), ConnectionFailed),
        (exceptions.ResponseStreamingError(error="secret"), ConnectionFailed),
        (ChecksumMismatch(1, 2), ConnectionFailed),
        (ConnectionResetError("secret"), ConnectionFailed),
        (TimeoutError("secret"), ProviderTimeoutError),
        (exceptions.NoCredentialsError(), AuthenticationError),
        (exceptions.PartialCredentialsError(provider="env", cred_var="secret"), AuthenticationError),
        (exceptions.TokenRetrievalError(provider="sso", error_msg="secret"), AuthenticationError),
        (ResponseParserError("secret"), ProviderError),
        (TypeError("secret"), ProviderError),
    ],
    ids=lambda item: type(item).__name__ if isinstance(item, Exception) else "",
)
def test_a_failure_is_told_by_its_kind_alone(exception: Exception, cls: type[ProviderError]) -> None:
    error = READER.of_transport(exception, during="while waiting for the answer")
    assert type(error) is cls
    assert type(exception).__name__ in str(error)
    assert "secret" not in str(error)
    assert error.retryable is (cls in (ProviderTimeoutError, ConnectionFailed))


def test_a_failure_after_content_is_an_interruption() -> None:
    error = READER.of_transport(ChecksumMismatch(1, 2), during="while reading the stream", begun=True)
    assert type(error) is StreamInterruptedError
    assert error.retryable


def test_a_fault_after_content_that_is_not_the_connection_s_is_not_tried_again() -> None:
    error = READER.of_transport(TypeError("secret"), during="while reading the stream", begun=True)
    assert (type(error), error.retryable) == (ProviderError, False)


def test_what_botocore_refuses_is_told_by_its_place_and_never_by_its_value() -> None:
    native = {
        "messages": [{"role": "user", "content": [{"text": 5}, {"txt": "secret"}]}],
        "inferenceConfig": {"maxTokens": 0, "topK": 5},
    }
    shape = service().operation_model("Converse").input_shape
    report = ParamValidator().validate(native, shape).generate_report()
    error = READER.of_transport(exceptions.ParamValidationError(report=report), during="")
    assert type(error) is InvalidRequestError
    said = str(error)
    assert "secret" not in said
    for part in (
        "missing required parameter 'modelId' in input",
        "invalid type of messages[0].content[0].text",
        "unknown parameter 'txt' in messages[0].content[1]",
        "inferenceConfig.maxTokens",
        "unknown parameter 'topK' in inferenceConfig",
    ):
        assert part in said


# ----------------------------------------------------------------------------------------------------------- excerpts


def test_an_excerpt_is_one_short_line_without_keys() -> None:
    assert excerpt("a\n\x00b\u2028c") == "a b c"
    assert len(excerpt("x" * 1000)) == EXCERPT_LENGTH
    assert excerpt("key AKIAABCDEFGHIJKLMNOP is wrong") == "key [redacted] is wrong"
    assert excerpt("Bearer abcdefghijkl refused") == "[redacted] refused"
    assert "wJalrXUtn" not in excerpt("aws_secret_access_key=wJalrXUtnFEMI/K7MDENG is wrong")
    assert "FwoGZXIv" not in excerpt("x-amz-security-token: FwoGZXIvYXdzEBYaD")


@pytest.mark.parametrize("said", [" " * 64_000 + "x", "\n" * 64_000, "a" * 64_000, "Invalid " + "a" * 64_000])
def test_what_a_service_says_at_length_is_read_in_no_time(said: str) -> None:
    assert len(excerpt(said)) <= EXCERPT_LENGTH
    READER.of_client_error({"Error": {"Code": "ValidationException", "Message": said}})
    READER.of_transport(exceptions.ParamValidationError(report=said), during="")


def test_a_refused_signature_does_not_repeat_the_request() -> None:
    message = (
        "The request signature we calculated does not match the signature you provided. Check your key.\n\n"
        "The Canonical String for this request should have been\n'POST\nx-amz-security-token:secret'"
    )
    error = refused("InvalidSignatureException", message, 403)
    assert str(error).endswith("does not match the signature you provided")
