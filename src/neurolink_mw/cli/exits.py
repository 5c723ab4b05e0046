"""What the command's exit codes mean, and how an error becomes one."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import typer

from ..errors import NeurolinkError, PolicyDenied, ProviderError
from .output import OutputFailed, cause_of, notes, print_error

OK = 0
OUTPUT_FAILED = 1
BAD_INPUT = 2
DENIED = 3
PROVIDER_FAILURE = 4
INTERRUPTED = 130


def exit_code(error: BaseException) -> int:
    """4 for what a provider did, 3 for what a policy refused; 2 for everything else that this library raises on
    purpose. Of a turn that failed, why it did."""
    error = cause_of(error)
    if isinstance(error, PolicyDenied):
        return DENIED
    return PROVIDER_FAILURE if isinstance(error, ProviderError) else BAD_INPUT


@contextmanager
def exits(*, as_json: bool = False) -> Iterator[None]:
    """Run a command's body; turn its errors into one message and the right exit code."""
    try:
        yield
    except NeurolinkError as error:
        print_error(error, as_json=as_json)
        raise typer.Exit(exit_code(error)) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # Whoever read our output has gone. Python would complain again when it flushes at exit.
        _silence_output()
        raise typer.Exit(OUTPUT_FAILED) from None
    except OutputFailed as error:
        _silence_output()
        notes().print(f"error: {error}", markup=False)
        raise typer.Exit(OUTPUT_FAILED) from None


def leave_threads_behind() -> None:
    """End an interrupted program now where threads still run. Python would wait for them, and nobody can stop a tool
    that runs in one."""
    if all(thread.daemon or thread is threading.main_thread() for thread in threading.enumerate()):
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # there is none, or it is closed
            stream.flush()
    os._exit(INTERRUPTED)


def _silence_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ is not None else 1)
