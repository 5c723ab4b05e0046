"""One exception tree for the whole library.

Every error that this library raises on purpose derives from `NeurolinkError`. A provider's failures are
`ProviderError`s that carry what a retry or a fallback needs: the status, whether another try may help, and how long
the provider asked to wait. Messages name the place and the remedy; they never hold a secret or a user's content.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from .loop.step import StepResult
    from .protocol import Message, Usage
    from .tools import ToolExecution


class NeurolinkError(Exception):
    """The root of all errors of this library."""


class ConfigError(NeurolinkError):
    """A configuration, a chain or an argument that cannot work. The message names the place and what is allowed."""


class PluginError(NeurolinkError):
    """A plugin that cannot be loaded, that registers something unusable, or that refuses a pipeline."""


class ProtocolError(NeurolinkError, ValueError):
    """Data that does not have the protocol's shape. `path` says where, as in `prompt[2].content[0].data`."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


class SchemaValidationError(NeurolinkError):
    """An answer, or a tool's input, that does not fit its schema. `problems` says what is wrong, one place each, in
    words for the model; `text` is the answer itself, where it was a text, and is never part of the message."""

    def __init__(self, message: str, *, problems: tuple[str, ...] = (), text: str | None = None) -> None:
        super().__init__(message)
        self.problems = problems
        self.text = text


class TurnError(NeurolinkError):
    """A turn of several steps that failed after some of them were done; `__cause__` says why. It cannot be tried again
    as a whole, since tools have run.

    steps: the completed ones. usage: what they cost. messages: the conversation as far as it went, with a result for
    every tool call, to go on from. tool_executions: what became of each call.
    """

    def __init__(
        self,
        message: str,
        *,
        steps: Sequence[StepResult] = (),
        usage: Usage | None = None,
        messages: Sequence[Message] = (),
        tool_executions: Sequence[ToolExecution] = (),
    ) -> None:
        super().__init__(message)
        self.steps = tuple(steps)
        self.usage = usage
        self.messages = tuple(messages)
        self.tool_executions = tuple(tool_executions)


class BridgeShapeError(NeurolinkError):
    """A conversation that has no form on the other side of a bridge. `reason` names the place and what it holds."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PolicyDenied(NeurolinkError):
    """A policy refused a call. The message is the policy's own, for the user; `code` says why, for programs; `by` is
    the id of the member that refused, where it is known. final: it has left the call that it refused, and is an error
    like any other to whoever made that call, such as a policy that asked a judge."""

    def __init__(self, message: str, *, code: str, by: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.by = by
        self.final = False


class ProviderError(NeurolinkError):
    """A call that a provider did not answer, or answered with something that is no answer.

    provider, model_id: who was asked. status: the HTTP status, where there was one. retryable: whether the same
    request may work later. retry_after: seconds the provider asked to wait. request_id: the provider's own id.
    """

    default_retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        provider: str | None = None,
        model_id: str | None = None,
        status: int | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.model_id = model_id
        self.status = status
        self.retryable = self.default_retryable if retryable is None else retryable
        self.retry_after = retry_after
        self.request_id = request_id


class AuthenticationError(ProviderError):
    """The key is missing, wrong or expired (401)."""


class PermissionDeniedError(ProviderError):
    """The key is valid, and not allowed to do this (403)."""


class NotFoundError(ProviderError):
    """No such model or endpoint (404)."""


class InvalidRequestError(ProviderError):
    """The provider refuses the request as it is (400, 413, 422): the same request will fail again."""


class ContextOverflowError(InvalidRequestError):
    """The prompt does not fit into the model's context window.

    prompt_tokens, limit_tokens: how long it was and how long it may be, where the provider said so.
    """

    prompt_tokens: int | None = None
    limit_tokens: int | None = None


class RateLimitError(ProviderError):
    """Too many requests or tokens (429)."""

    default_retryable = True


class ServerError(ProviderError):
    """The provider failed (5xx)."""

    default_retryable = True


class OverloadedError(ServerError):
    """The provider is out of capacity (503, 529)."""


class ConnectionFailed(ProviderError):
    """No connection, or one that broke before the answer began."""

    default_retryable = True


class ProviderTimeoutError(ProviderError):
    """The provider did not answer in time (408, or a transport timeout)."""

    default_retryable = True


class StreamInterruptedError(ProviderError):
    """A stream that ended before its terminal event. What came before it is not a whole answer."""

    default_retryable = True


_BY_STATUS: dict[int, type[ProviderError]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    408: ProviderTimeoutError,
    413: InvalidRequestError,
    422: InvalidRequestError,
    429: RateLimitError,
    503: OverloadedError,
    529: OverloadedError,
}


def provider_error_for_status(status: int) -> tuple[type[ProviderError], bool]:
    """The error class of an HTTP status, and whether another try may help.

    408, 409, 429 and every 5xx may be tried again (the rule of the AI SDK's adapters); nothing else may.
    """
    retryable = status in (408, 409, 429) or status >= 500
    if status in _BY_STATUS:
        return _BY_STATUS[status], retryable
    if status >= 500:
        return ServerError, retryable
    if 400 <= status < 500 and status != 409:
        return InvalidRequestError, retryable
    return ProviderError, retryable
