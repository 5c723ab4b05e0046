"""What goes over the socket for one reply: bytes and pauses in order, laid out before anything is sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http.client import responses as reason_phrases
from itertools import pairwise
from typing import Final, Literal

Framing = Literal["length", "chunked", "until-close"]
"""How the client learns where the body ends: Content-Length, chunked transfer coding, or the end of the connection."""

Ending = Literal["keep-alive", "close", "cut", "reset"]
"""What becomes of the connection after the last byte. `cut` (FIN) and `reset` (RST) leave the body unfinished."""

LAST_CHUNK: Final = b"0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Pause:
    """A silence between two pieces of a reply: `seconds` long, or until `server.release()` when None."""

    seconds: float | None = None


HOLD: Final = Pause()
"""Holds a reply at this point until `server.release()`, or until the client goes away."""

Step = bytes | Pause


@dataclass(frozen=True, slots=True)
class Plan:
    """A reply made ready to send. Each bytes step is one write on the socket; the last step is always bytes."""

    status: int | None
    steps: tuple[Step, ...]
    ending: Ending


@dataclass(frozen=True, slots=True)
class Body:
    """The bytes of a body, the offsets of its natural borders (events, frames), and its pauses by offset."""

    content: bytes
    borders: tuple[int, ...]
    pauses: tuple[tuple[int, Pause], ...]

    @classmethod
    def of(cls, parts: Iterable[Step]) -> Body:
        content, borders, pauses = bytearray(), [], []
        for part in parts:
            if isinstance(part, Pause):
                pauses.append((len(content), part))
            else:
                content += part
                borders.append(len(content))
        return cls(bytes(content), tuple(borders), tuple(pauses))

    def pieces(self, edges: Iterable[int], pauses: Mapping[int, Pause], stop: int | None) -> list[Step]:
        """Cut the content at `edges` and at every pause, up to `stop`; a pause behind the stop never starts."""
        end = len(self.content) if stop is None else min(stop, len(self.content))
        silences: defaultdict[int, list[Pause]] = defaultdict(list)
        for offset, pause in [*self.pauses, *pauses.items()]:
            silences[offset].append(pause)
        offsets = sorted(offset for offset in {0, end, *edges, *silences} if 0 <= offset <= end)
        pieces: list[Step] = [*silences[0]]
        for start, border in pairwise(offsets):
            pieces += [self.content[start:border], *silences[border]]
        return pieces


def frame(
    status: int, headers: Mapping[str, str], pieces: Sequence[Step], framing: Framing, length: int, ending: Ending
) -> Plan:
    """Put the response head before the pieces of a body and the framing around them.

    The head travels with the first piece and the last chunk with the last one: a short reply is one write, and a
    client that hangs up once it has read the text has been sent the whole reply.
    """
    fields = dict(headers)
    if framing == "until-close" and ending == "keep-alive":
        ending = "close"
    if framing == "length":
        fields["content-length"] = str(length)
    elif framing == "chunked":
        fields["transfer-encoding"] = "chunked"
        pieces = [piece if isinstance(piece, Pause) else b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]
    if ending == "close":
        fields["connection"] = "close"
    first = head(status, fields)
    if pieces and isinstance(pieces[0], bytes):
        first, pieces = first + pieces[0], pieces[1:]
    steps: list[Step] = [first, *pieces]
    last = steps[-1]
    terminator = LAST_CHUNK if framing == "chunked" and ending in ("keep-alive", "close") else b""
    steps[-1:] = [last + terminator] if isinstance(last, bytes) else [last, terminator]
    return Plan(status, tuple(steps), ending)


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """The status line and the header fields, down to the empty line."""
    lines = [f"HTTP/1.1 {status} {reason_phrases.get(status, '')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
