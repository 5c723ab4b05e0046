"""One client connection: reads requests, sends plans, and notices at any moment that the client has gone."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Protocol

from neurolink_mw.testing.wire.http1 import MalformedRequest, Request, RequestParser
from neurolink_mw.testing.wire.journal import Exchange, Journal, Outcome
from neurolink_mw.testing.wire.plan import Ending, Pause, Plan
from neurolink_mw.testing.wire.reply import JsonReply, Reply

RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Gate:
    """Where held replies wait. Each release lets every reply that is open pass one hold, reached or still ahead.

    Counting the releases since a reply began, instead of waking who waits now, keeps a release that comes between the
    client's reading of an event and the server's reaching of the hold behind it.
    """

    def __init__(self) -> None:
        self.released = 0
        self._next = asyncio.Event()

    def release(self) -> None:
        self.released += 1
        self._next.set()
        self._next = asyncio.Event()

    async def wait_past(self, count: int) -> None:
        while self.released < count:
            await self._next.wait()


class Host(Protocol):
    """What a connection needs of its server."""

    journal: Journal
    gate: Gate
    connections: set[Connection]

    def answer(self, exchange: Exchange) -> Reply: ...


class Connection(asyncio.Protocol):
    """Answers one request at a time; a task sends the reply while the event loop goes on reading.

    The end of the client's stream counts as its leaving, also when it only shut down its sending side: no HTTP client
    does that while it still wants a reply.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._parser = RequestParser()
        self._exchange: Exchange | None = None
        self._sending: asyncio.Task[None] | None = None
        self._flushed = asyncio.Event()
        self._flushed.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # asyncio does this by itself only for sockets made with the protocol number of TCP, which accepted ones lack.
        _socket_of(transport).setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Without a buffer of its own the transport's "writing resumed" means that the kernel has everything. A TLS
        # transport pauses at its mark, not above it, and has the buffer of the TCP transport below it (64 KiB).
        transport.set_write_buffer_limits(high=0 if transport.get_extra_info("sslcontext") is None else 1, low=0)
        self._host.connections.add(self)
        self._number = self._host.journal.connection_opened()

    def data_received(self, data: bytes) -> None:
        self._parser.feed(data)
        self._take_next()

    def eof_received(self) -> None:
        self.abort("client-closed")

    def connection_lost(self, error: Exception | None) -> None:
        self._stop_sending("client-closed")
        self._host.connections.discard(self)
        self._host.journal.connection_closed()

    def pause_writing(self) -> None:
        self._flushed.clear()

    def resume_writing(self) -> None:
        self._flushed.set()

    def abort(self, outcome: Outcome) -> None:
        """Drop the connection and what is still unsent."""
        self._stop_sending(outcome)
        self._transport.abort()

    def _stop_sending(self, outcome: Outcome) -> None:
        if self._exchange is not None:
            self._exchange.end(outcome)
        if self._sending is not None:
            self._sending.cancel()

    def _take_next(self) -> None:
        if self._sending is not None or self._transport.is_closing():
            return
        try:
            request = self._parser.take()
        except MalformedRequest as error:
            self._refuse(error)
            return
        if request is not None:
            self._begin(request)

    def _refuse(self, error: MalformedRequest) -> None:
        body = {"error": {"message": f"Malformed request: {error}.", "type": "malformed_request"}}
        for step in JsonReply(body, status=400, headers={"connection": "close"}).plan.steps:
            assert isinstance(step, bytes)
            self._transport.write(step)
        self._transport.close()

    def _begin(self, request: Request) -> None:
        # The reply is taken from the script and the exchange recorded before anything can be cancelled: a client that
        # leaves right behind its request still finds both in the journal.
        head = request.head
        exchange = Exchange(
            head.method, head.path, head.headers, request.body, self._number, _changed=self._host.journal.changed
        )
        plan = self._host.answer(exchange).plan
        exchange.status = plan.status
        released = self._host.gate.released
        self._exchange = exchange
        self._host.journal.add(exchange)
        ending: Ending = plan.ending if head.keeps_alive or plan.ending != "keep-alive" else "close"
        self._sending = asyncio.get_running_loop().create_task(self._send(plan, exchange, ending, released))

    async def _send(self, plan: Plan, exchange: Exchange, ending: Ending, passed: int) -> None:
        *opening, last = plan.steps
        for step in opening:
            if isinstance(step, bytes):
                await self._write(step)
            elif step.seconds is None:
                passed += 1
                await self._host.gate.wait_past(passed)
            else:
                await asyncio.sleep(step.seconds)
        assert not isinstance(last, Pause)
        outcome: Outcome = "complete" if ending in ("keep-alive", "close") else "cut"
        # Readers of the outcome wait for this lock: whoever has read the end of the reply finds it ended.
        with self._host.journal.changed:
            self._transport.write(last)
            if self._flushed.is_set():
                exchange.end(outcome)
        await self._flushed.wait()
        exchange.end(outcome)
        self._sending = None
        if ending == "keep-alive":
            self._take_next()
        else:
            self._hang_up(ending)

    async def _write(self, data: bytes) -> None:
        self._transport.write(data)
        # The turn given to the event loop is what notices a client that has gone, and serves the other connections.
        await asyncio.sleep(0)
        await self._flushed.wait()

    def _hang_up(self, ending: Ending) -> None:
        if ending == "reset":
            _socket_of(self._transport).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            self._transport.abort()
        else:
            self._transport.close()


def _socket_of(transport: asyncio.Transport) -> socket.socket:
    found: socket.socket = transport.get_extra_info("socket")
    return found
