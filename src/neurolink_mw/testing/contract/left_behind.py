"""Async generators that nobody closed: what is in them runs when the garbage collector gets to it, or never."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def noting_what_is_left_behind() -> Iterator[list[str]]:
    """The names of the generators that began in here and that the garbage collector took before they had ended."""
    left: list[str] = []
    firstiter, finalizer = sys.get_asyncgen_hooks()

    def note(generator: object) -> None:
        frame = getattr(generator, "ag_frame", None)
        module = frame.f_globals.get("__name__", "") if frame is not None else ""
        left.append(f"{module}.{getattr(generator, '__qualname__', '')}")
        if finalizer is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)  # trio's, which says the same
                finalizer(generator)  # type: ignore[arg-type]  # the hook's own argument

    sys.set_asyncgen_hooks(firstiter, note)
    try:
        yield left
        gc.collect(1)  # the young ones: what was made in here
    finally:
        sys.set_asyncgen_hooks(firstiter, finalizer)
