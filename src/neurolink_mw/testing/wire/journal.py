"""What a server saw: every request with its ending, and the connections, for any thread to read and wait on."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Condition
from typing import Any, Literal, overload

Outcome = Literal["open", "complete", "client-closed", "cut"]
"""How a reply ended: not yet; sent whole; the client left first; broken off by its own options or by the server's stop.

`complete` means handed to the operating system, not read. It is set before the client can see the end of the reply.
"""

Source = Literal["script", "server", "exhausted", "failed"]
"""Who answered: the script; the server's own rules (unknown path, bad body); an empty script; a reply that raised."""


@dataclass(eq=False)
class Exchange:
    """One request and what became of its reply. The repr leaves headers and body out: they hold keys and prompts."""

    method: str
    path: str
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    connection: int = 1
    """The number of the connection it came on, from 1."""
    status: int | None = None
    """The status of the reply, None before there is one or when the connection ends without."""
    source: Source = "script"
    _outcome: Outcome = "open"
    _changed: Condition = field(default_factory=Condition, repr=False)

    @cached_property
    def json(self) -> Any:
        """The body parsed, as in `httpx.Response.json`: the test that reads it knows its shape.

        Raises:
            ValueError: the body is not JSON.
        """
        return json.loads(self.body)

    @property
    def outcome(self) -> Outcome:
        with self._changed:
            return self._outcome

    def end(self, outcome: Outcome) -> None:
        """Set the outcome, once: a later one is dropped, because only the first is what happened."""
        with self._changed:
            if self._outcome == "open":
                self._outcome = outcome
                self._changed.notify_all()


class Journal(Sequence[Exchange]):
    """The exchanges in the order of their requests, and a count of connections. Safe to read from any thread."""

    def __init__(self) -> None:
        self.changed = Condition()
        self._exchanges: list[Exchange] = []
        self._opened = 0
        self._closed = 0

    @overload
    def __getitem__(self, index: int) -> Exchange: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Exchange]: ...
    def __getitem__(self, index: int | slice) -> Exchange | Sequence[Exchange]:
        with self.changed:
            return self._exchanges[index]

    def __len__(self) -> int:
        with self.changed:
            return len(self._exchanges)

    def __repr__(self) -> str:
        with self.changed:
            return f"Journal({self._exchanges!r}, {self.open_connections} of {self._opened} connections open)"

    @property
    def connections_total(self) -> int:
        with self.changed:
            return self._opened

    @property
    def open_connections(self) -> int:
        with self.changed:
            return self._opened - self._closed

    def connection_opened(self) -> int:
        with self.changed:
            self._opened += 1
            self.changed.notify_all()
            return self._opened

    def connection_closed(self) -> None:
        with self.changed:
            self._closed += 1
            self.changed.notify_all()

    def add(self, exchange: Exchange) -> None:
        with self.changed:
            self._exchanges.append(exchange)
            self.changed.notify_all()

    def wait_until(self, predicate: Callable[[Journal], bool], timeout: float) -> None:
        """Block the calling thread until `predicate(self)` holds; it is asked again after every change.

        Raises:
            TimeoutError: it did not hold within `timeout` seconds. The message tells what the journal held instead.
        """
        with self.changed:
            if not self.changed.wait_for(lambda: predicate(self), timeout):
                raise TimeoutError(f"the awaited state was not reached in {timeout} s: {self!r}")
