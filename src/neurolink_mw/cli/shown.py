"""What people and programs are shown of an answer while it comes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..loop import TurnRecord
from ..protocol import (
    Content,
    ContentOutput,
    ErrorJsonOutput,
    ErrorPart,
    ErrorTextOutput,
    ExcerptLimits,
    ExecutionDenied,
    JsonOutput,
    OutputText,
    PartStream,
    StreamPart,
    Text,
    TextDelta,
    TextOutput,
    ToolCall,
    ToolOutput,
    to_json,
)
from ..protocol.excerpt import OUTPUT_LIMITS, excerpt, excerpt_output
from ..protocol.stream_result import as_exception
from ..protocol.tokens import json_text
from ..tools import ToolExecution
from .exits import OK, exit_code
from .output import describe_duration, notes, print_error, write, write_json

_ONE_LINE = ExcerptLimits(120, 1)


class Shown:
    """An answer on its way: its text goes to standard output, what is done for it to standard error.

    as_json: instead, each part is a JSON document on standard output, and standard error stays silent. record: of the
    turn, where it is one.
    """

    def __init__(self, record: TurnRecord, *, as_json: bool) -> None:
        self.record = record
        self._as_json = as_json
        self._results = 0
        self._in_line = False

    async def stream(self, parts: PartStream) -> int:
        """A stream, to its end. Returns the exit code."""
        code = OK
        async with parts:
            async for part in parts:
                if isinstance(part, ErrorPart):
                    code = self._error(part)
                elif self._as_json:
                    write_json(to_json(part))
                else:
                    self._part(part)
        self.end()
        return code

    def content(self, content: Iterable[Content]) -> None:
        """A whole answer, whose tool calls have been shown already."""
        self.end()
        for one in content:
            if isinstance(one, Text):
                self._text(one.text)
            else:
                self._end_line()
        self.end()

    @contextmanager
    def step(self, number: int, who: str) -> Iterator[None]:
        """A step of a turn, until its answer begins. number: from 0."""
        self.end()
        with waiting(f"step {number + 1}: waiting for {who}", silent=self._as_json):
            yield

    def calls(self, calls: Iterable[ToolCall]) -> None:
        """What the model wants to be run."""
        for call in calls:
            self._note(_printable(f"tool call: {call.tool_name}({call.input})"))

    def failed(self, error: BaseException) -> int:
        """The end of an answer that failed. Returns the exit code."""
        self.end()
        print_error(error, as_json=self._as_json)
        return exit_code(error)

    def end(self) -> None:
        """End what was begun: the line, and the tool calls that have results by now."""
        self._end_line()
        for done in self.record.tool_executions[self._results :]:
            self._note(_result(done))
        self._results = len(self.record.tool_executions)

    def _part(self, part: StreamPart) -> None:
        if isinstance(part, TextDelta):
            self._text(part.delta)
        elif isinstance(part, ToolCall):
            self.calls([part])

    def _error(self, part: ErrorPart) -> int:
        error = as_exception(part.error)
        if not self._as_json:
            return self.failed(error)
        write_json(to_json(part))
        return exit_code(error)

    def _text(self, text: str) -> None:
        if not self._as_json:
            write(text)
            self._in_line = self._in_line or bool(text)

    def _note(self, text: str) -> None:
        self._end_line()
        if not self._as_json:
            notes().print(text, markup=False)

    def _end_line(self) -> None:
        if self._in_line:
            write("\n")
            self._in_line = False


@contextmanager
def waiting(what: str, *, silent: bool) -> Iterator[None]:
    """A progress line until the answer begins: live on a terminal, once elsewhere."""
    if silent:
        yield
        return
    console = notes()
    if console.is_terminal:
        with console.status(what):
            yield
    else:
        console.print(f"{what} ...", markup=False)
        yield


def _result(done: ToolExecution) -> str:
    time = f" in {describe_duration(done.duration)}" if done.tries else ""
    said = _said(done.output)
    return f"tool result: {_printable(done.tool_name)} {done.status}{time}" + (f": {said}" if said else "")


def _said(output: ToolOutput) -> str:
    """An excerpt, in one line."""
    return excerpt(" ".join(_printable(_text(output)).split()), _ONE_LINE)


def _printable(text: str) -> str:
    """Without what a terminal would obey: tools and models say what others have told them."""
    return "".join(one if one.isprintable() else " " for one in text)


def _text(output: ToolOutput) -> str:
    short = excerpt_output(output, OUTPUT_LIMITS, files="describe")
    if isinstance(short, TextOutput | ErrorTextOutput):
        return short.value
    if isinstance(short, ExecutionDenied):
        return short.reason or ""
    if isinstance(short, ContentOutput):
        return " ".join(one.text for one in short.value if isinstance(one, OutputText))
    return json_text(short.value if isinstance(short, JsonOutput | ErrorJsonOutput) else short.data)
