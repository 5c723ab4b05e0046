"""How a failure is told: what was fed, what came out, what to do. All of it is test data, so content is shown."""

from __future__ import annotations

from collections.abc import Sequence

from ...protocol import Finish, FinishReason, GenerateResult, Reasoning, StreamPart, Text, ToolCall

_LONGEST = 60
_MOST = 14


def require(condition: bool, advice: str) -> None:
    # Not `assert`, which `python -O` leaves out: a check that checks nothing would pass.
    if not condition:
        raise AssertionError(advice)


def show(text: str) -> str:
    """A text, quoted; of a long one, the beginning."""
    return repr(text) if len(text) <= _LONGEST else f"{text[:_LONGEST]!r}... ({len(text)} characters)"


def show_pieces(pieces: Sequence[str]) -> str:
    shown = [repr(piece) for piece in pieces[:_MOST]]
    return " ".join(shown) + (f" ... ({len(pieces)} pieces)" if len(pieces) > _MOST else "")


def show_parts(parts: Sequence[StreamPart]) -> str:
    """A stream on one line: `stream-start, text-start '0', text-delta '0' 'Hel', ...`."""
    shown = [_show_part(part) for part in parts]
    if len(shown) > 2 * _MOST:
        shown = [*shown[:_MOST], f"... ({len(parts)} parts)", *shown[-_MOST:]]
    return "[" + ", ".join(shown) + "]"


def show_answer(result: GenerateResult) -> str:
    content = ", ".join(_show_content(item) for item in result.content) or "nothing"
    return f"{content}; finish {show_reason(result.finish_reason)}"


def show_error(error: object) -> str:
    return f"{type(error).__name__}: {show(str(error))}"


def show_reason(reason: FinishReason) -> str:
    return repr(reason.unified) if reason.raw is None else f"{reason.unified!r} (raw {reason.raw!r})"


def _show_part(part: StreamPart) -> str:
    if isinstance(part, Finish):
        return f"finish {show_reason(part.finish_reason)}"
    named = [show(str(getattr(part, name))) for name in ("id", "delta", "error") if hasattr(part, name)]
    return " ".join([part.type, *named])


def _show_content(item: object) -> str:
    if isinstance(item, Text | Reasoning):
        return f"{item.type} {show(item.text)}"
    if isinstance(item, ToolCall):
        return f"tool-call {item.tool_name}({show(item.input)})"
    return str(getattr(item, "type", type(item).__name__))
