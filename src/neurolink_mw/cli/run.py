"""`neurolink-mw run`: one prompt through a configured pipeline."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import typer

from ..config import Pipeline
from ..errors import ConfigError, NeurolinkError
from ..pipeline import Outcome, Statistics
from ..protocol import CallOptions, ErrorPart, TextDelta, ToolCall, to_json
from ..protocol.stream_result import as_exception
from .exits import DENIED, OK, PROVIDER_FAILURE, exit_code, exits
from .output import notes, print_error, print_outcome, write, write_json


class Report(Statistics):
    """Statistics that also keep the outcome of the newest call."""

    newest: Outcome | None = None

    def add(self, outcome: Outcome) -> None:
        super().add(outcome)
        self.newest = outcome


def read_prompt(prompt: str | None) -> str:
    """The argument, or standard input where it is `-` or absent."""
    if prompt is None and sys.stdin.isatty():
        raise ConfigError("there is no prompt: give one as an argument, or on standard input")
    try:
        text = sys.stdin.read() if prompt in (None, "-") else str(prompt)
    except UnicodeDecodeError:
        raise ConfigError("standard input is not text in the terminal's encoding") from None
    if not text.strip():
        raise ConfigError("the prompt is empty")
    return text


def run(config: Path, prompt: str | None, *, stream: bool, as_json: bool) -> None:
    """The command's body. Exits with the code that fits the outcome."""
    with exits(as_json=as_json):
        report = Report()
        pipeline = Pipeline.from_config(config, statistics=report)
        options = CallOptions.from_text(read_prompt(prompt))
        code = anyio.run(ask, pipeline, options, report, stream, as_json)
    raise typer.Exit(code)


async def ask(pipeline: Pipeline, options: CallOptions, report: Report, stream: bool, as_json: bool) -> int:
    """One call, printed as it goes. The report is printed however the call ends."""
    code = OK
    async with pipeline:
        try:
            code = await (_stream if stream else _generate)(pipeline, options, as_json)
        except NeurolinkError as error:
            print_error(error, as_json=as_json)
            code = exit_code(error)
    if report.newest is not None:
        if as_json:
            write_json({"type": "outcome", **_as_object(report.newest)})
        else:
            print_outcome(report.newest)
        if report.newest.status == "denied":
            code = DENIED
        elif report.newest.status == "error" and code == OK:  # the answer says so itself, without an error part
            code = PROVIDER_FAILURE
    return code


async def _generate(pipeline: Pipeline, options: CallOptions, as_json: bool) -> int:
    model = pipeline.model
    with waiting(f"{model.provider}:{model.model_id}", silent=as_json):
        result = await model.do_generate(options)
    if as_json:
        write_json({**_as_object(result), "type": "result"})
        return OK
    write(result.text + "\n")
    for call in result.tool_calls:
        _note_tool_call(call)
    return OK


async def _stream(pipeline: Pipeline, options: CallOptions, as_json: bool) -> int:
    model, code, wrote = pipeline.model, OK, False
    with waiting(f"{model.provider}:{model.model_id}", silent=as_json):
        result = await model.do_stream(options)
    async with result.stream as parts:
        async for part in parts:
            if as_json:
                write_json(to_json(part))
            elif isinstance(part, TextDelta):
                write(part.delta)
                wrote = wrote or bool(part.delta)
            if isinstance(part, ErrorPart):
                error = as_exception(part.error)
                code = exit_code(error)
                if not as_json:
                    write("\n" if wrote else "")
                    wrote = False
                    print_error(error)
            elif isinstance(part, ToolCall) and not as_json:
                _note_tool_call(part)
    if wrote and not as_json:
        write("\n")
    return code


@contextmanager
def waiting(who: str, *, silent: bool) -> Iterator[None]:
    """A progress line until the answer begins: live on a terminal, once elsewhere."""
    if silent:
        yield
        return
    console = notes()
    if console.is_terminal:
        with console.status(f"waiting for {who}"):
            yield
    else:
        console.print(f"waiting for {who} ...", markup=False)
        yield


def _note_tool_call(call: ToolCall) -> None:
    notes().print(f"tool call: {call.tool_name}({call.input})", markup=False)


def _as_object(value: object) -> dict[str, object]:
    data = to_json(value)
    assert isinstance(data, dict)
    return dict(data)
