"""Typed errors of one call: who was asked, and what is the same in each."""

from __future__ import annotations

from ...errors import ContextOverflowError, InvalidRequestError, ProviderError, StreamInterruptedError
from ...protocol.overflow import overflow_figures


class ErrorMaker:
    """Makes typed errors for one call. provider, model_id: who was asked; request_id: of the answer that came, once one
    has."""

    __slots__ = ("model_id", "provider", "request_id")

    def __init__(self, provider: str | None = None, model_id: str | None = None) -> None:
        self.provider = provider
        self.model_id = model_id
        self.request_id: str | None = None

    def make(
        self,
        cls: type[ProviderError],
        message: str,
        status: int | None = None,
        retryable: bool | None = None,
        wait: float | None = None,
        request_id: str | None = None,
    ) -> ProviderError:
        """An error of this call. Where a prompt was too long, the figures are read from the message."""
        error = cls(
            message,
            provider=self.provider,
            model_id=self.model_id,
            status=status,
            retryable=retryable,
            retry_after=wait,
            request_id=request_id or self.request_id,
        )
        if isinstance(error, ContextOverflowError):
            error.prompt_tokens, error.limit_tokens = overflow_figures(message)
        return error

    def interrupted(self, what: str, *, status: int | None = None) -> StreamInterruptedError:
        """The error of a stream that ended before its terminal event."""
        return StreamInterruptedError(
            what, provider=self.provider, model_id=self.model_id, status=status, request_id=self.request_id
        )

    def refused(self, message: str) -> InvalidRequestError:
        """The error of a request that cannot be put into this format, found before anything was sent."""
        return InvalidRequestError(message, provider=self.provider, model_id=self.model_id)
