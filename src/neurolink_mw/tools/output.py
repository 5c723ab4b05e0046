"""What a tool returned, as what the model reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pydantic_core

from ..protocol import (
    JSON,
    ContentOutput,
    ErrorJsonOutput,
    ErrorTextOutput,
    ExecutionDenied,
    JsonOutput,
    OutputContent,
    TextOutput,
    ToolOutcome,
    ToolOutput,
)
from ..protocol.content import UnknownPart
from .execution import Status

FAILED: frozenset[Status] = frozenset({"error", "timeout"})
"""What a tool did not manage. A denial is no failure of the tool."""

_OUTPUTS = get_args(ToolOutput)
_ANY_PIECES = get_args(OutputContent)
_PIECES = tuple(cls for cls in _ANY_PIECES if cls is not UnknownPart)
_STATUS: dict[type[object], Status] = {ErrorTextOutput: "error", ErrorJsonOutput: "error", ExecutionDenied: "denied"}


def as_outcome(returned: object) -> ToolOutcome:
    """Text stays text, pieces of content become one content, a `ToolOutput` or `ToolOutcome` stands as it is; anything
    else is written as JSON. TypeError or ValueError for what is none: found here, it is a result that the model reads,
    and later it would break the next request."""
    if isinstance(returned, ToolOutcome):
        outcome = as_outcome(returned.output)
        return outcome if returned.status == "ok" else outcome.replace(status=returned.status)
    output = _checked(returned) if isinstance(returned, _OUTPUTS) else _output(returned)
    return ToolOutcome(output, _STATUS.get(type(output), "ok"))


def failure(text: str) -> ToolOutcome:
    """A failure that the model reads."""
    return ToolOutcome(ErrorTextOutput(_whole(text)), "error")


def timed_out(text: str) -> ToolOutcome:
    """The same, of a tool that took too long."""
    return ToolOutcome(ErrorTextOutput(text), "timeout")


def _output(returned: object) -> ToolOutput:
    if isinstance(returned, str):
        return TextOutput(_whole(str.__str__(returned)))  # of a member of an enum, its value
    if isinstance(returned, _PIECES):
        return ContentOutput((returned,))
    if isinstance(returned, list | tuple) and returned and all(isinstance(one, _PIECES) for one in returned):
        return ContentOutput(tuple(returned))
    if isinstance(returned, bytes | bytearray | memoryview):
        raise TypeError("bytes are no result: return OutputImageData(data, media_type) or OutputFileData(...)")
    if isinstance(returned, Iterator):
        raise TypeError("an iterator is no result, and may have no end: return a list")
    value = _json(returned)
    # How a result of MCP says that it is an error.
    failed = isinstance(value, dict) and value.get("isError") is True
    return ErrorJsonOutput(value) if failed else JsonOutput(value)


def _checked(output: ToolOutput) -> ToolOutput:
    if isinstance(output, TextOutput | ErrorTextOutput):
        if not isinstance(output.value, str):
            raise TypeError(f"{type(output).__name__}.value is a text, not {type(output.value).__name__}")
        return output.replace(value=_whole(output.value))
    if isinstance(output, JsonOutput | ErrorJsonOutput):
        return output.replace(value=_json(output.value))
    if isinstance(output, ContentOutput) and not all(isinstance(piece, _ANY_PIECES) for piece in output.value):
        raise TypeError("ContentOutput.value is a tuple of pieces, such as OutputText(...) and OutputImageData(...)")
    return output


def _json(value: object) -> JSON:
    """The value as it will be written, where there is no NaN and every key is a text."""
    written: JSON = pydantic_core.from_json(pydantic_core.to_json(value, inf_nan_mode="strings"))
    return written


def _whole(text: str) -> str:
    """Text that can be written in UTF-8: the names of files may hold lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
