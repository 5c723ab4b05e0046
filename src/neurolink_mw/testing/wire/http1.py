"""The little of HTTP/1.1 that a server must read: requests, cut out of a stream of bytes without any I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HEAD_LIMIT: Final = 64 * 1024


class MalformedRequest(Exception):
    """The bytes are not an HTTP/1.1 request. The message never repeats what was received."""


@dataclass(frozen=True, slots=True)
class Head:
    method: str
    path: str
    headers: dict[str, str]

    @property
    def keeps_alive(self) -> bool:
        return self.headers.get("connection", "").lower() != "close"


@dataclass(frozen=True, slots=True)
class Request:
    head: Head
    body: bytes


class RequestParser:
    """Feed it bytes as they come and take whole requests; pipelined ones wait for their turn."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._head: Head | None = None
        self._decoded = bytearray()

    def feed(self, data: bytes) -> None:
        self._bytes += data

    def take(self) -> Request | None:
        """The next whole request, or None until more bytes have come.

        Raises:
            MalformedRequest: what came cannot be read. No later request can be found behind it.
        """
        if self._head is None:
            self._head = self._take_head()
        if self._head is None:
            return None
        body = self._take_body(self._head.headers)
        if body is None:
            return None
        request = Request(self._head, body)
        self._head = None
        return request

    def _take_head(self) -> Head | None:
        if self._bytes and not self._bytes[:1].isalpha():
            # Told at once: whoever speaks TLS to a plain port sends no empty line, and would wait for ever.
            raise MalformedRequest("the request does not begin with a method")
        end = self._bytes.find(b"\r\n\r\n")
        if end < 0 and len(self._bytes) <= HEAD_LIMIT:
            return None
        if end < 0 or end > HEAD_LIMIT:
            raise MalformedRequest(f"the request head is longer than {HEAD_LIMIT} bytes")
        return parse_head(self._take_bytes(end + 4)[:-4])

    def _take_body(self, headers: dict[str, str]) -> bytes | None:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return self._take_chunks()
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise MalformedRequest("content-length is not a number of bytes")
        return self._take_bytes(int(length)) if len(self._bytes) >= int(length) else None

    def _take_chunks(self) -> bytes | None:
        while (line_end := self._bytes.find(b"\r\n")) >= 0:
            try:
                size = int(self._bytes[:line_end].partition(b";")[0], 16)
            except ValueError:
                size = -1
            if size < 0:
                raise MalformedRequest("a chunk of the body has no size in hexadecimal")
            # Trailer fields are not supported: no client of a model API sends them.
            if len(self._bytes) < line_end + 2 + size + 2:
                return None
            chunk = self._take_bytes(line_end + 2 + size + 2)
            if not chunk.endswith(b"\r\n"):
                raise MalformedRequest("a chunk of the body is not as long as its size says")
            if size == 0:
                body = bytes(self._decoded)
                self._decoded.clear()
                return body
            self._decoded += chunk[line_end + 2 : -2]
        return None

    def _take_bytes(self, count: int) -> bytes:
        taken = bytes(self._bytes[:count])
        del self._bytes[:count]
        return taken


def parse_head(data: bytes) -> Head:
    """Read a request line and header fields; names come out in lower case, repeated fields joined by a comma.

    Raises:
        MalformedRequest: see `RequestParser.take`.
    """
    first, *lines = data.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[0].isalpha() or not words[1] or words[2] != "HTTP/1.1":
        raise MalformedRequest("the request line is not `METHOD path HTTP/1.1`")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise MalformedRequest("a header field is not `name: value`")
        name, value = name.lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return Head(words[0], words[1], headers)
