"""What an answer itself gives reason to warn about, once it is whole."""

from __future__ import annotations

from typing import Protocol

from ..protocol import CallWarning, FinishReason

_PAUSED = frozenset({"pause_turn"})  # the model goes on when it is asked again


class Shown(Protocol):
    """`AnswerContent` or `AnswerParts`: what an answer by a tool came to."""

    @property
    def answered(self) -> bool: ...

    @property
    def has_calls(self) -> bool: ...

    @property
    def unexecuted(self) -> tuple[str, ...]: ...


def answer_warnings(reason: FinishReason, shown: Shown | None, *, unwanted: bool) -> tuple[CallWarning, ...]:
    """reason: why it ended. shown: where the answer was to come by a tool. unwanted: calls came although the choice was
    none."""
    warnings: list[CallWarning] = []
    if unwanted:
        details = "the model called a tool although tool_choice was none; the call is in the answer"
        warnings.append(CallWarning("unsupported", "toolChoice", details))
    if shown is not None and shown.unexecuted:
        names = ", ".join(shown.unexecuted)
        message = f"the model gave its answer, so the calls beside it were left out and are not to be run: {names}"
        warnings.append(CallWarning("other", message=message))
    ended = reason.unified == "stop" and reason.raw not in _PAUSED
    if shown is not None and ended and not shown.answered and not shown.has_calls:
        message = "the model answered in words, and not by the tool that says what its answer has to look like"
        warnings.append(CallWarning("other", message=message))
    return tuple(warnings)
