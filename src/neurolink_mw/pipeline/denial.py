"""A denial on its way out of a chain.

Inside a chain it is a `BaseException`, so that a retry's `except Exception` does not take it for a failure; and it is
latched on the scope, so that what swallows it (`except BaseException`, `finally: return`) still cannot turn it into an
answer. Only the root boundary turns it into what callers see: a refusal, or a `PolicyDenied`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from ..errors import PolicyDenied
from ..protocol import (
    ErrorPart,
    Finish,
    FinishReason,
    GenerateResult,
    StreamPart,
    StreamStart,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    Usage,
)
from ..protocol.parts import BLOCK_ENDS, BLOCK_STARTS, END_OF, BlockEnd, BlockStart
from .marks import MARK

_BLOCK_ID = "neurolink_mw.refusal"


class Denial(BaseException):
    """A call is refused. Control flow, and no error: nobody outside of a chain ever sees it."""

    def __init__(self, code: str, message: str, by: str | None) -> None:
        super().__init__(code)
        self.code = code
        self.message = message
        self.by = by

    def as_error(self) -> PolicyDenied:
        return PolicyDenied(self.message, code=self.code, by=self.by)

    @property
    def finish_reason(self) -> FinishReason:
        return FinishReason("content-filter", self.code)

    @property
    def metadata(self) -> Mapping[str, Mapping[str, str | None]]:
        """How a refusal says that it is one of ours."""
        return {MARK: {"denied": self.code, "by": self.by}}


def find_denial(error: BaseException) -> Denial | None:
    """The denial that an exception is or holds: task groups wrap what leaves them. It wins over other failures there,
    and not over what cancels the task or stops the process.

    A `PolicyDenied` counts too, where a member that sees denials raises it again or one raises it by itself; one that
    the root of another call (a helper's) has made final is an error like any other here.
    """
    if isinstance(error, Denial):
        return error
    if isinstance(error, PolicyDenied):
        return None if error.final else Denial(error.code, str(error), error.by)
    if isinstance(error, BaseExceptionGroup) and error.split(_interrupts)[0] is None:
        return next((found for one in error.exceptions if (found := find_denial(one)) is not None), None)
    return None


def _interrupts(error: BaseException) -> bool:
    return not isinstance(error, Exception | Denial | BaseExceptionGroup)


def without_denials(error: BaseException) -> BaseException:
    """What leaves a chain where a denial does not win: none is left in a group."""
    rest = error.split(Denial)[1] if isinstance(error, BaseExceptionGroup) else error
    return error if rest is None else rest


def refusal(denial: Denial, usage: Usage) -> GenerateResult:
    """The answer that a refused call gets."""
    return GenerateResult((Text(denial.message),), denial.finish_reason, usage, provider_metadata=denial.metadata)


class RefusedStream:
    """What a stream says after it was refused: open blocks are closed, then the refusal, then the finish."""

    __slots__ = ("_failed", "_id", "_open", "_started")

    def __init__(self) -> None:
        self._open: dict[str, type] = {}
        self._started = self._failed = False
        self._id = _BLOCK_ID

    def note(self, part: StreamPart) -> None:
        """A part that is no text delta was passed on."""
        cls = part.__class__
        if cls in BLOCK_STARTS:
            id = cast(BlockStart, part).id
            self._open[id] = cls
            if id.startswith(self._id):  # ids are unique within a stream
                self._id = f"{id}+"
        elif cls in BLOCK_ENDS:
            self._open.pop(cast(BlockEnd, part).id, None)
        elif cls is StreamStart:
            self._started = True
        elif cls is ErrorPart:
            self._failed = True

    def body(self, denial: Denial) -> Iterator[StreamPart]:
        """All but the finish."""
        if not self._started:
            yield StreamStart()
        for id, cls in self._open.items():
            yield END_OF[cls](id)
        yield TextStart(self._id)
        if denial.message:
            yield TextDelta(self._id, denial.message)
        yield TextEnd(self._id)

    def finish(self, denial: Denial, usage: Usage) -> Finish:
        reason = denial.finish_reason
        if self._failed:  # after an error part the reason stays "error"
            reason = reason.replace(unified="error")
        return Finish(reason, usage, denial.metadata)
