"""Connections of botocore that tell the call which they serve about their socket. Imports botocore.

Before the headers of an answer, while the model thinks, botocore has made no object that could be aborted; a stream
of botocore's tells nothing of its socket. So a call goes through a session of ours, a copy of the client's own with
connection classes that note the socket in the `Cell` of the thread's call. The caller's client, and what else it is
used for, stays as it was: the session is held by a second client object, which shares everything else with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from functools import partial
from http.client import IncompleteRead
from typing import Any, Protocol, cast
from weakref import WeakSet

from botocore import awsrequest
from botocore.client import BaseClient

from .abort import CallAborted, Cell, current_cell
from .client import BedrockClient

SERVICE = "bedrock-runtime"

# What a session is copied by. botocore promises none of these names.
_SESSION = ("_manager", "_pool_classes_by_scheme", "_proxy_managers", "_get_pool_manager_kwargs")


class _Noting:
    """A connection that notes its socket in the call that uses it. Outside of our calls it does what it always did."""

    sock: Any
    _cell: Cell | None = None

    def _new_conn(self) -> Any:
        sock = super()._new_conn()  # type: ignore[misc]  # of urllib3's connection
        cell = current_cell()
        if cell is not None:
            self._cell = cell
            try:
                # For the TLS handshake and a proxy's answer. The handshake takes the socket over into another object,
                # so the call gets a handle of its own, which ends when the next socket is attached.
                with sock.dup() as handle:
                    cell.attach(self, handle)
            except BaseException:
                sock.close()
                raise
        return sock

    def connect(self) -> None:
        cell = current_cell()
        if cell is None:
            super().connect()  # type: ignore[misc]
            return
        if cell.aborted:
            raise CallAborted
        self._cell = cell
        try:
            super().connect()  # type: ignore[misc]
            cell.attach(self, self.sock)
        except BaseException:
            cell.detach(self)
            raise

    def request(self, *args: Any, **kwargs: Any) -> Any:
        cell = self._cell = current_cell()
        if cell is not None and self.sock is not None:
            cell.attach(self, self.sock)
        return super().request(*args, **kwargs)  # type: ignore[misc]


class _NotingPool:
    """A pool that takes a connection back from the call which it served."""

    def _put_conn(self, conn: Any) -> None:
        # Asked of the connection, never of the thread: see `Cell.detach`.
        cell: Cell | None = getattr(conn, "_cell", None)
        if cell is not None:
            conn._cell = None
            if cell.detach(conn):
                conn.close()
        super()._put_conn(conn)  # type: ignore[misc]


class HTTPConnection(_Noting, awsrequest.AWSHTTPConnection):  # type: ignore[misc]  # botocore has no types
    pass


class HTTPSConnection(_Noting, awsrequest.AWSHTTPSConnection):  # type: ignore[misc]
    pass


class HTTPPool(_NotingPool, awsrequest.AWSHTTPConnectionPool):  # type: ignore[misc]
    ConnectionCls = HTTPConnection


class HTTPSPool(_NotingPool, awsrequest.AWSHTTPSConnectionPool):  # type: ignore[misc]
    ConnectionCls = HTTPSConnection


_POOLS = {"http": HTTPPool, "https": HTTPSPool}


class ClosableClient(BedrockClient, Protocol):
    """A client with connections of its own."""

    def close(self) -> None: ...


def noting_client(client: BedrockClient, pool_size: int) -> ClosableClient | None:
    """A client whose connections note their socket, and keep up to `pool_size` of them; it shares everything else with
    the given one. None where this release of botocore has its session elsewhere."""
    try:
        endpoint = cast("Any", client)._endpoint
        session = endpoint.http_session
        if not all(hasattr(session, name) for name in _SESSION):
            return None
        own = copy(session)
        own._pool_classes_by_scheme = _POOLS
        own._proxy_managers = {}
        own._max_pool_connections = max(pool_size, session._max_pool_connections)
        own._manager = type(session._manager)(**own._get_pool_manager_kwargs())
        own._manager.pool_classes_by_scheme = _POOLS
        # Not by copy(): a half-made client looks its attributes up in itself, for ever.
        noting: Any = object.__new__(type(client))
        vars(noting).update(vars(client))
        noting._endpoint = copy(endpoint)
        noting._endpoint.http_session = own
        noting.close = partial(_close_session, own)
        _sessions.add(own)
    except (AttributeError, TypeError):
        return None
    return cast("ClosableClient", noting)


def _close_session(session: Any) -> None:
    """Close the idle connections of a session now. Its own `close` only forgets them, until they are collected."""
    for manager in (session._manager, *session._proxy_managers.values()):
        pools = [manager.pools.get(key) for key in manager.pools.keys()]  # noqa: SIM118  # it cannot be iterated
        manager.clear()
        for pool in pools:
            if pool is not None:  # taken out meanwhile
                pool.close()


_sessions: WeakSet[Any] = WeakSet()


def _forget_connections() -> None:
    """In a forked process: connections that its parent uses, too, would bring each the other's answers."""
    for session in list(_sessions):
        session._proxy_managers = {}
        session._manager = type(session._manager)(**session._get_pool_manager_kwargs())
        session._manager.pool_classes_by_scheme = _POOLS


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_connections)


def is_botocore_client(client: object) -> bool:
    return isinstance(client, BaseClient)


def hook_calls(client: BedrockClient) -> None:
    """Have a client veto retries of aborted calls, send the headers of a call, and notice a body that was cut. Once is
    enough for each client, and twice no harm; other calls than ours are let be."""
    events = cast("Any", client).meta.events
    # Before botocore's own handler, which takes the end of an aborted connection for an error to try again.
    events.register_first(f"needs-retry.{SERVICE}", _veto, unique_id="neurolink-mw-veto")
    events.register_last(f"before-call.{SERVICE}", _add_headers, unique_id="neurolink-mw-headers")
    events.register_first(f"before-parse.{SERVICE}", _check_length, unique_id="neurolink-mw-length")


def hook_answers(client: BedrockClient) -> None:
    """Have a client note the socket of a stream when its headers are there, by public means alone. What is before the
    headers cannot be ended then."""
    events = cast("Any", client).meta.events
    events.register(f"response-received.{SERVICE}.ConverseStream", _note_answer, unique_id="neurolink-mw-answers")


def _veto(response: tuple[Any, object] | None = None, **_: object) -> None:
    cell = current_cell()
    # A good answer is let through, for its stream has to be closed.
    if cell is not None and cell.aborted and (response is None or response[0].status_code >= 300):
        raise CallAborted


def _add_headers(params: Mapping[str, Any], **_: object) -> None:
    cell = current_cell()
    if cell is None or not cell.headers:
        return
    sent = params["headers"]
    for name, text in cell.headers.items():
        for former in [known for known in sent if known.lower() == name.lower()]:
            del sent[former]
        if text is not None:
            sent[name] = text


def _check_length(response_dict: Mapping[str, Any], **_: object) -> None:
    """botocore has urllib3 not count a body, and takes one that is no JSON for an empty answer."""
    body, status = response_dict["body"], response_dict["status_code"]
    if current_cell() is None or status >= 300 or not isinstance(body, bytes):
        return
    due = response_dict["headers"].get("content-length", "")
    if due.isdigit() and len(body) < int(due):
        raise IncompleteRead(b"", int(due) - len(body))


def _note_answer(response_dict: Mapping[str, Any] | None = None, **_: object) -> None:
    cell = current_cell()
    if cell is None or response_dict is None or response_dict["status_code"] >= 300:
        return
    raw = response_dict["body"]
    release = raw.release_conn

    def release_and_detach() -> None:
        cell.detach(raw)
        release()

    raw.release_conn = release_and_detach
    try:
        cell.attach(raw, getattr(raw.connection, "sock", None))
    except CallAborted:
        raw.close()
        raise
