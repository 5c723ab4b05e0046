"""Server-sent events, framed on bytes: feed what the network brought, take whole events. No I/O.

The rules are those of the WHATWG HTML standard, section "Parsing an event stream". Lines end at CR, LF or CRLF and
nowhere else: U+2028, U+2029 and U+0085 are ordinary characters of a JSON text, which is why this works on bytes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...errors import ProviderError

MAX_EVENT_BYTES: Final = 16 * 1024 * 1024

_FIELDS = frozenset({b"", b"data", b"event", b"id", b"retry"})  # b"": a comment
_STRAY_BYTES = 4096
_RETRY_DIGITS = 15  # milliseconds; Python refuses to read a number of thousands of digits
_BOM = b"\xef\xbb\xbf"


class ServerSentEvent(NamedTuple):
    """One event. `data`: its data lines joined by LF, not yet decoded. `event`: its type, "" where none was given."""

    data: bytes
    event: str = ""
    id: str = ""
    retry: int | None = None


class SseDecoder:
    """`feed(bytes)` returns the events that became complete; `finish()` the data of one that never did.

    How the bytes are cut into chunks makes no difference to the events. `max_event_bytes` bounds the lines of a single
    event (a server that never ends an event would fill the memory): beyond it `feed` raises ProviderError. `stray` is
    the beginning of the first line that is no field of an event, which the standard ignores: where no event comes at
    all, it shows what the server sent instead.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._limit = max_event_bytes
        self._at_start = True
        self._after_cr = False
        self._partial: list[bytes] = []  # pieces of a line whose end has not come
        self._partial_size = 0
        self._data: list[bytes] = []
        self._size = 0
        self._event = ""
        self._id = ""
        self._retry: int | None = None
        self.stray = b""

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """The events that `chunk` completes, in order. Raises ProviderError where one is larger than the bound."""
        if self._at_start:
            chunk = self._without_bom(chunk)
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[0] == 10:  # the LF of a CRLF that was cut in two
                chunk = chunk[1:]
        if not chunk:
            return []
        lines = chunk.splitlines()  # of bytes: at CR, LF and CRLF only
        last = chunk[-1]
        rest = None if last == 10 or last == 13 else lines.pop()
        self._after_cr = last == 13
        if self._partial and lines:
            self._partial.append(lines[0])
            lines[0] = b"".join(self._partial)
            self._partial.clear()
            self._partial_size = 0
        events: list[ServerSentEvent] = []
        for line in lines:
            if line:
                self._line(line)
            elif self._data:
                events.append(self._dispatch())
            else:
                self._size, self._event, self._retry = 0, "", None
        if rest is not None:
            self._partial.append(rest)
            self._partial_size += len(rest)
            self._check(self._size + self._partial_size)
        return events

    def finish(self) -> bytes | None:
        """The source has ended. The data of an event without its empty line, which the standard drops; else None.

        An empty line that is missing is how a cut shows: the caller decides what it means.
        """
        if self._at_start and self._partial:
            self._at_start = False
        if self._partial:
            line = b"".join(self._partial)
            self._partial.clear()
            self._line(line)
        return b"\n".join(self._data) if self._data else None

    def _line(self, line: bytes) -> None:
        self._size += len(line)
        if self._size > self._limit:
            self._check(self._size)
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            return
        name, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) <= _RETRY_DIGITS:
            self._retry = int(value)
        elif name not in _FIELDS and not self.stray:
            self.stray = line[:_STRAY_BYTES]

    def _dispatch(self) -> ServerSentEvent:
        data = self._data
        event = ServerSentEvent(data[0] if len(data) == 1 else b"\n".join(data), self._event, self._id, self._retry)
        self._data = []
        self._size, self._event, self._retry = 0, "", None
        return event

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise ProviderError(f"a single server-sent event is larger than {self._limit} bytes")

    def _without_bom(self, chunk: bytes) -> bytes:
        """Drop a byte order mark at the very start; it may come in pieces, which wait in `_partial`."""
        head = b"".join(self._partial) + chunk
        self._partial.clear()
        self._partial_size = 0
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._partial.append(head)
            self._partial_size = len(head)
            return b""
        self._at_start = False
        return head.removeprefix(_BOM)
