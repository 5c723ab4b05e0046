"""`neurolink-mw run`: one prompt through a configured pipeline; with tools, a whole turn."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from time import perf_counter

import anyio
import typer

from ..config import Pipeline
from ..errors import ConfigError, NeurolinkError
from ..loop import TurnRecord
from ..loop.settings import MOST_STEPS
from ..pipeline import Outcome, Statistics
from ..protocol import CallOptions, LanguageModel, to_json
from ..tools import Tool
from .exits import DENIED, OK, PROVIDER_FAILURE, exits
from .load_tools import importable_here, load_tools
from .output import print_outcome, write, write_json
from .shown import Shown, waiting
from .turn import print_turn, take_turn, turn_as_json


class Report(Statistics):
    """Statistics that also keep the outcome of each call."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[Outcome] = []

    def add(self, outcome: Outcome) -> None:
        super().add(outcome)
        self.outcomes.append(outcome)


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


def run(
    config: Path, prompt: str | None, *, tools: Sequence[str], max_steps: int | None, stream: bool, as_json: bool
) -> None:
    """The command's body. tools: where to find them. Exits with the code that fits the outcome."""
    with exits(as_json=as_json), importable_here() if tools else nullcontext():
        report = Report()
        pipeline = Pipeline.from_config(config, statistics=report)
        _check(max_steps, tools)
        loaded = load_tools(tools)
        options = CallOptions.from_text(read_prompt(prompt))
        asking = partial(ask, tools=loaded, max_steps=max_steps, stream=stream, as_json=as_json)
        code = anyio.run(asking, pipeline, options, report)
    raise typer.Exit(code)


def _check(max_steps: int | None, tools: Sequence[str]) -> None:
    if max_steps is None:
        return
    if not tools:
        raise ConfigError("--max-steps is about turns with tools: give --tools as well, or leave it out")
    if not 1 <= max_steps <= MOST_STEPS:
        raise ConfigError(f"--max-steps {max_steps}: give a whole number from 1 to {MOST_STEPS}")


async def ask(
    pipeline: Pipeline,
    options: CallOptions,
    report: Report,
    *,
    tools: Sequence[Tool] = (),
    max_steps: int | None = None,
    stream: bool,
    as_json: bool,
) -> int:
    """One call, or with tools a turn of several, shown as it goes. The report is printed however it ends."""
    record, began, earlier = TurnRecord(), perf_counter(), len(report.outcomes)
    shown = Shown(record, as_json=as_json)
    code = OK
    async with pipeline:
        try:
            model = pipeline.model
            if tools:
                code = await take_turn(model, options, tools, max_steps, shown, stream=stream)
            elif stream:
                code = await _stream(model, options, shown, as_json)
            else:
                await _generate(model, options, shown, as_json)
        except NeurolinkError as error:
            code = shown.failed(error)
    outcomes = report.outcomes[earlier:]
    if as_json:
        _write_report(record, outcomes, code)
    else:
        _print_report(record, outcomes, perf_counter() - began)
    if outcomes and outcomes[-1].status == "denied":
        return DENIED
    if outcomes and outcomes[-1].status == "error" and code == OK:  # the answer says so itself, without an error part
        return PROVIDER_FAILURE
    return code


def _write_report(record: TurnRecord, outcomes: Sequence[Outcome], code: int) -> None:
    if record.steps:
        write_json(turn_as_json(record, code))
    for outcome in outcomes:
        step = outcome.context.step
        write_json({"type": "outcome", **({} if step is None else {"step": step}), **_as_object(outcome)})


def _print_report(record: TurnRecord, outcomes: Sequence[Outcome], seconds: float) -> None:
    """Of a turn, the last step stands for all: the members are the same for each."""
    if outcomes:
        print_outcome(outcomes[-1], of="last step" if len(outcomes) > 1 else "")
    if record.steps:
        print_turn(record, seconds)


async def _generate(model: LanguageModel, options: CallOptions, shown: Shown, as_json: bool) -> None:
    with waiting(f"waiting for {model.provider}:{model.model_id}", silent=as_json):
        result = await model.do_generate(options)
    if as_json:
        write_json({**_as_object(result), "type": "result"})
        return
    write(result.text + "\n")
    shown.calls(result.tool_calls)


async def _stream(model: LanguageModel, options: CallOptions, shown: Shown, as_json: bool) -> int:
    with waiting(f"waiting for {model.provider}:{model.model_id}", silent=as_json):
        result = await model.do_stream(options)
    return await shown.stream(result.stream)


def _as_object(value: object) -> dict[str, object]:
    data = to_json(value)
    assert isinstance(data, dict)
    return dict(data)
