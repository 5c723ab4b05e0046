"""A scripted HTTP server on 127.0.0.1, in a thread with an event loop of its own: any test can drive it."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from threading import Thread
from types import TracebackType
from typing import Final, Literal, Self

from neurolink_mw.testing.wire.connection import Connection, Gate
from neurolink_mw.testing.wire.journal import Exchange, Journal
from neurolink_mw.testing.wire.reply import JsonReply, Reply

BACKLOG: Final = 2048
HANDSHAKE_TIMEOUT: Final = 5.0
"""Seconds a client may take over TLS's handshake; a server that stops waits for it so long."""

Repeat = Literal["never", "last", "all"]
"""What follows the last reply: an error that says so, that reply again, or the script from its start."""

ScriptedReply = Reply | Callable[[Exchange], Reply]
"""A reply, or a function of the request that returns one. It runs on the server's event loop and must not block."""

Screen = Callable[[Exchange], Reply | None]
"""The server's own rules: a reply to a request the real server would refuse, which uses up nothing of the script."""


class Script:
    """Replies in order, one a request."""

    def __init__(self, replies: Iterable[ScriptedReply], repeat: Repeat) -> None:
        self._replies = list(replies)
        self._repeat = repeat
        self._taken = 0

    def push(self, reply: ScriptedReply) -> None:
        self._replies.append(reply)

    def take(self) -> ScriptedReply | None:
        if self._taken == len(self._replies):
            if self._repeat == "never" or not self._replies:
                return None
            self._taken -= 1 if self._repeat == "last" else self._taken
        self._taken += 1
        return self._replies[self._taken - 1]


class ScriptedServer:
    """Answers each request with the next reply of its script, and writes down what it saw.

    Use it as a context manager, from sync code and from any async library: it blocks for moments only, save the
    `wait_` methods, which async tests call in a worker thread (`anyio.to_thread.run_sync`). On exit every connection is
    closed and the thread has ended; the journal stays readable.

    Args:
        replies: the script; `push` adds to it.
        repeat: what follows the last reply.
        prefix: what `base_url` has behind the port.
        screen: rules that come before the script.
        tls: the context, with a certificate, of a server that speaks TLS; None is plain TCP.
    """

    def __init__(
        self,
        replies: Iterable[ScriptedReply] = (),
        *,
        repeat: Repeat = "never",
        prefix: str = "",
        screen: Screen = lambda _: None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.journal = Journal()
        self._script = Script(replies, repeat)
        self._prefix = prefix
        self._screen = screen
        self._tls = tls
        self._running: _Running | None = None

    def __enter__(self) -> Self:
        if self._running is not None:
            raise RuntimeError("the server runs already: use a new one for a second `with`")
        self._running = _Running(self.journal, self._answer, self._tls)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._running is not None:
            self._running.stop()

    @property
    def port(self) -> int:
        if self._running is None:
            raise RuntimeError("the server has no port yet: enter it first, `with ... as server:`")
        return self._running.port

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:PORT`, or `https:` with TLS, and the prefix."""
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}{self._prefix}"

    @property
    def open_connections(self) -> int:
        return self.journal.open_connections

    @property
    def connections_total(self) -> int:
        return self.journal.connections_total

    def push(self, reply: ScriptedReply) -> None:
        """Add a reply to the end of the script."""
        self._script.push(reply)

    def release(self) -> None:
        """Let every reply that is open now pass one `HOLD`, whether it has reached it or not."""
        if self._running is not None:
            self._running.release()

    def wait_until(self, predicate: Callable[[Journal], bool], timeout: float = 5.0) -> None:
        """Block until the journal satisfies `predicate` (see `Journal.wait_until`)."""
        self.journal.wait_until(predicate, timeout)

    def wait_for_closed(self, index: int = 0, timeout: float = 5.0) -> Exchange:
        """Block until exchange number `index` has come and its reply has ended, and return it.

        Raises:
            TimeoutError: see `Journal.wait_until`.
        """
        self.wait_until(lambda journal: len(journal) > index and journal[index].outcome != "open", timeout)
        return self.journal[index]

    def _answer(self, exchange: Exchange) -> Reply:
        try:
            refusal = self._screen(exchange)
            if refusal is not None:
                exchange.source = "server"
                return refusal
            reply = self._script.take()
            if reply is None:
                exchange.source = "exhausted"
                return _refusal("The script is exhausted: no reply is left for this request.", "script_exhausted")
            reply = reply if isinstance(reply, Reply) else reply(exchange)
            reply.plan  # noqa: B018 - laid out here, so that a body that is not JSON is told from a server that fails
            return reply
        except Exception as error:
            exchange.source = "failed"
            return _refusal(f"The scripted reply raised {type(error).__name__}: {error}", "script_failed")


class _Running:
    """The thread, its event loop and the listening socket, from the first request it could take to the last."""

    def __init__(self, journal: Journal, answer: Callable[[Exchange], Reply], tls: ssl.SSLContext | None) -> None:
        self.journal = journal
        self.answer = answer
        self._tls = tls
        self.connections: set[Connection] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self.port: int = self._listener.getsockname()[1]
        self._started: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = Thread(target=self._run, name=f"wire-{self.port}", daemon=True)
        self._thread.start()
        self._loop = self._started.result()

    def release(self) -> None:
        self._tell(self.gate.release)

    def stop(self) -> None:
        self._tell(self._stopping.set)
        self._thread.join()

    def _tell(self, act: Callable[[], None]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(act)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            # Before the start there is a caller waiting to be told, such as of a process out of file descriptors.
            if self._started.done():
                raise
            self._started.set_exception(error)
        finally:
            self._listener.close()

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        self.gate = Gate()
        self._stopping = asyncio.Event()
        listening = await loop.create_server(
            lambda: Connection(self),
            sock=self._listener,
            backlog=BACKLOG,
            ssl=self._tls,
            ssl_handshake_timeout=None if self._tls is None else HANDSHAKE_TIMEOUT,
        )
        self._started.set_result(loop)
        await self._stopping.wait()
        listening.close()
        # A transport closes its socket in a later turn of the loop, and another connection may just be being accepted:
        # leaving before both are done would leak a socket.
        while self.connections or len(asyncio.all_tasks()) > 1:
            for connection in list(self.connections):
                connection.abort("cut")
            await asyncio.sleep(0)


def _refusal(message: str, kind: str) -> JsonReply:
    # In the shape of OpenAI's errors and of Amazon's, so that the SDK of either shows the message.
    return JsonReply({"error": {"message": message, "type": kind}, "message": message}, status=500)
