"""What the command prints: answers to standard output, everything about them to standard error."""

from __future__ import annotations

import json
import sys
from typing import IO, Any, TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..errors import NeurolinkError, PolicyDenied, ProviderError, TurnError
from ..pipeline import MemberRecord, Outcome
from ..protocol import Usage, to_json

_UNCUT = 10_000


def notes() -> Console:
    """Where people read what happened. Made anew each time, so that a redirected stream is honoured."""
    return console(sys.stderr)


def console(file: IO[str]) -> Console:
    """Nothing is cut off where the output goes to a file or another program."""
    return Console(file=file, highlight=False, soft_wrap=True, width=None if file.isatty() else _UNCUT)


class OutputFailed(Exception):
    """Standard output cannot be written: it is closed, or its disk is full."""


def write(text: str) -> None:
    """A piece of an answer, at once. Raises OutputFailed; BrokenPipeError where the reader has gone."""
    out: TextIO | None = sys.stdout
    if out is None:
        raise OutputFailed("standard output is closed")
    try:
        try:
            out.write(text)
        except UnicodeEncodeError:  # a lone surrogate, or a character that this output cannot show
            out.write(text.encode(out.encoding, "backslashreplace").decode(out.encoding))
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(f"standard output cannot be written: {error.strerror}") from None


def write_json(data: Any) -> None:
    """One JSON document on a line of its own."""
    text = json.dumps(data, ensure_ascii=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        text = json.dumps(data)
    write(text + "\n")


def print_error(error: BaseException, *, as_json: bool = False) -> None:
    """Why it failed, and of a turn how far it had come."""
    if as_json:
        write_json({"error": to_json(error)})
        return
    cause = cause_of(error)
    label = _label(cause)
    said = str(cause) if isinstance(cause, NeurolinkError) else f"{type(cause).__name__}: {cause}"
    for line in said.splitlines() or [type(cause).__name__]:
        notes().print(f"{label}: {line}", markup=False)
    if isinstance(error, TurnError):
        notes().print(f"{label}: the turn ended there, with {counted(len(error.steps), 'step')} done", markup=False)


def cause_of(error: BaseException) -> BaseException:
    """Why a turn failed; of any other error, itself."""
    while isinstance(error, TurnError) and error.__cause__ is not None:
        error = error.__cause__
    return error


def _label(error: BaseException) -> str:
    if isinstance(error, PolicyDenied):
        return f"denied by {error.by} ({error.code})" if error.by else f"denied ({error.code})"
    return "provider failed" if isinstance(error, ProviderError) else "error"


def print_outcome(outcome: Outcome, *, of: str = "") -> None:
    """What each member did, from the outside in, and what the call cost. of: which call it was, where several were."""
    record = outcome.record
    if record is not None:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("#", justify="right")
        table.add_column("middleware")
        table.add_column("calls", justify="right")
        table.add_column("self time", justify="right")
        table.add_column("outcome")
        for number, row in enumerate((*record.members, record.model), 1):
            table.add_row(
                str(number),
                escape(_name(row, outcome)),
                str(row.calls),
                describe_duration(row.self_seconds),
                row.status,
            )
        notes().print(table)
    by = f", answered by {outcome.answered_by}" if outcome.answered_by not in ("model", None) else ""
    notes().print(
        f"{of}{': ' if of else ''}{outcome.status} in {describe_duration(outcome.duration)}{by}; "
        f"{counted(outcome.attempts, 'attempt')}; {describe_usage(outcome.usage)}",
        markup=False,
    )


def counted(number: int, thing: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def describe_usage(usage: Usage) -> str:
    """`12 tokens in (4 from the provider's cache), 30 out`; a question mark where the provider did not say."""
    read, written = usage.input_tokens, usage.output_tokens
    cached = f" ({read.cache_read} from the provider's cache)" if read.cache_read else ""
    reasoned = f" ({written.reasoning} of it reasoning)" if written.reasoning else ""
    return f"{_count(read.total)} tokens in{cached}, {_count(written.total)} out{reasoned}"


def _name(row: MemberRecord, outcome: Outcome) -> str:
    return f"{outcome.provider}:{outcome.model_id}" if row.id == "model" else row.id


def _count(number: int | None) -> str:
    return "?" if number is None else str(number)


def describe_duration(seconds: float) -> str:
    """In the unit that fits."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
