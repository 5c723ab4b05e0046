"""The frames of `application/vnd.amazon.eventstream`, sound or broken on purpose.

A frame is its total length, the length of its headers and the CRC32 of those eight bytes; the headers; the payload; and
the CRC32 of all before. Numbers are unsigned, big-endian, four bytes long.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Final, Literal
from zlib import crc32

Corrupt = Literal["prelude", "message"]
"""Which of the two checksums is made wrong."""

Payload = Mapping[str, object] | bytes
"""A JSON object, or the bytes to send as they are: half a JSON text, nothing."""

STRING: Final = 7
"""The type of a header value that is a text; Bedrock sends no other."""


def event(name: str, payload: Payload, *, corrupt: Corrupt | None = None) -> bytes:
    """An event of the stream, such as `contentBlockDelta`."""
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return frame(headers, _body(payload), corrupt=corrupt)


def exception(name: str, payload: Payload, *, corrupt: Corrupt | None = None) -> bytes:
    """An exception the service has modelled, such as `throttlingException`; it ends a stream."""
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, _body(payload), corrupt=corrupt)


def error(code: str, message: str, *, corrupt: Corrupt | None = None) -> bytes:
    """An error outside the service's model: all of it stands in the headers."""
    headers = {":error-code": code, ":error-message": message, ":message-type": "error"}
    return frame(headers, b"", corrupt=corrupt)


def frame(headers: Mapping[str, str], payload: bytes, *, corrupt: Corrupt | None = None) -> bytes:
    """A frame with any headers.

    Raises:
        ValueError: a header's name is empty or longer than 255 bytes of UTF-8, or its value longer than 32767.
    """
    block = b"".join(_header(name, value) for name, value in headers.items())
    lengths = struct.pack("!II", 16 + len(block) + len(payload), len(block))
    prelude = lengths + _checksum(lengths, wrong=corrupt == "prelude")
    content = prelude + block + payload
    return content + _checksum(content, wrong=corrupt == "message")


def _header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    if not 0 < len(key) <= 255:
        raise ValueError(f"a header's name is 1 to 255 bytes of UTF-8, not {len(key)}")
    if len(text) > 32767:
        raise ValueError(f"the value of the header {name!r} is {len(text)} bytes of UTF-8: at most 32767 fit")
    return struct.pack("!B", len(key)) + key + struct.pack("!BH", STRING, len(text)) + text


def _body(payload: Payload) -> bytes:
    if isinstance(payload, bytes):
        return payload
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


def _checksum(content: bytes, *, wrong: bool) -> bytes:
    return struct.pack("!I", crc32(content) ^ (0xFFFFFFFF if wrong else 0))
