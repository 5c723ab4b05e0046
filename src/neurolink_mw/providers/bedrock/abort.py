"""Ending a call that a thread is blocked in: its socket is shut down, from any other thread, in any phase of the call.

Nothing else ends a blocked read safely. `EventStream.close()` waits for the lock that the reader holds, and would
freeze an event loop that called it; urllib3's and ssl's own `shutdown` drop the TLS state under the reader, which then
reads ciphertext. So the one thing that is touched across threads is the socket, and by the plain `socket.shutdown`.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import RLock, local
from typing import Self

_thread = local()


class CallAborted(BaseException):
    """How an aborted call ends in its thread. Not an Exception, so that neither urllib3 nor botocore makes an error of
    it, or another try. No user sees it."""


class Cell:
    """One call, and the socket it is on now. It is entered, `with cell:`, by the thread that does the call.

    The lock makes "which socket is mine" and "shut it down" one act, so that a connection that another call has got
    from the pool is never hit. It is an RLock since the garbage collector may abort in the middle of anything; each
    method therefore sets before it looks.
    """

    __slots__ = ("_lock", "_owner", "_pin", "_socket", "aborted", "headers", "seen")

    def __init__(self, headers: dict[str, str | None] | None = None) -> None:
        self.headers = headers
        """Header fields that the call adds to its request, and with None takes away."""
        self.aborted = False
        self.seen = False
        """Whether a socket was ever known."""
        self._lock = RLock()
        self._owner: object = None
        self._socket: socket.socket | None = None
        self._pin: socket.SocketIO | None = None

    def __enter__(self) -> Self:
        _thread.cell = self
        return self

    def __exit__(self, *_: object) -> None:
        _thread.cell = None

    def attach(self, owner: object, sock: object) -> None:
        """The call goes on over `sock`, which belongs to the connection `owner`. Raises CallAborted where it must not.

        The socket itself is kept, since http.client forgets it while a response with `connection: close` is still
        read; and pinned, so that its number is not given to another socket while it may be shut down here.
        """
        plain = _plain(sock)
        if plain is None:
            return
        pin = plain.makefile("rb", buffering=0)
        with self._lock:
            former = self._pin
            self._owner, self._socket, self._pin, self.seen = owner, plain, pin, True
            aborted = self.aborted
        if former is not None:
            former.close()
        if aborted:
            raise CallAborted

    def see(self, stream: object) -> None:
        """The call goes on over the stream that was opened, of botocore where it is one. For clients whose connections
        tell nothing. Raises CallAborted as `attach` does."""
        if not self.seen:
            raw = getattr(stream, "_raw_stream", None)  # of a botocore EventStream, which promises no such name
            self.attach(raw, getattr(getattr(raw, "connection", None), "sock", None))

    def detach(self, owner: object) -> bool:
        """The connection `owner` is done with this call. True: its socket has been shut down, and is of no more use.

        Asked of a connection and not of a thread: the collector runs the clean-up of one stream in the thread of
        another.
        """
        with self._lock:
            if self._owner is not owner:
                return False
            self._forget()
            return self.aborted

    def release(self) -> None:
        """The call is over."""
        with self._lock:
            self._forget()

    def abort(self) -> bool:
        """End the call, now or at the latest when it next takes a connection. Never waits for its thread.

        True: a socket was shut down, so that a blocked read returns at once.
        """
        with self._lock:
            self.aborted = True
            if self._socket is None:
                return False
            with suppress(OSError):  # it is closed already
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            return True

    def _forget(self) -> None:
        pin, self._pin, self._socket, self._owner = self._pin, None, None, None
        if pin is not None:
            pin.close()


def current_cell() -> Cell | None:
    """The call that this thread does; None where the thread is not one of ours."""
    cell: Cell | None = getattr(_thread, "cell", None)
    return cell


def _plain(sock: object) -> socket.socket | None:
    """The socket itself, where TLS of another make, or TLS within TLS, stands before it."""
    while sock is not None and not isinstance(sock, socket.socket):
        sock = getattr(sock, "socket", None)
    return sock
