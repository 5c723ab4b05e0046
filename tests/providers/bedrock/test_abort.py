"""The cell of a call: which socket is its own, and how it is shut down."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from neurolink_mw.providers.bedrock.abort import CallAborted, Cell, current_cell

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    near, far = socket.socketpair()
    with near, far:
        yield near, far


def test_an_abort_ends_a_read_that_another_thread_is_blocked_in(pair: Pair) -> None:
    near, _ = pair
    cell, read = Cell(), list[bytes]()
    cell.attach("connection", near)
    reader = threading.Thread(target=lambda: read.append(near.recv(1)))
    reader.start()
    assert cell.abort()
    reader.join(5)
    assert read == [b""]


def test_a_connection_that_is_done_with_the_call_is_not_hit(pair: Pair) -> None:
    near, far = pair
    cell = Cell()
    cell.attach("connection", near)
    assert not cell.detach("connection")
    assert not cell.abort()
    far.sendall(b"x")
    assert near.recv(1) == b"x"


def test_a_connection_of_an_earlier_try_does_not_take_the_present_one_along(pair: Pair) -> None:
    near, far = pair
    cell = Cell()
    cell.attach("first", near)
    cell.attach("second", near)
    assert not cell.detach("first")
    assert cell.abort()
    assert far.recv(1) == b""


def test_an_aborted_call_takes_no_other_connection(pair: Pair) -> None:
    cell = Cell()
    assert not cell.abort()
    with pytest.raises(CallAborted):
        cell.attach("connection", pair[0])
    assert cell.detach("connection")


def test_the_number_of_a_socket_is_not_given_away_while_it_may_be_shut_down() -> None:
    near, far = socket.socketpair()
    number = near.fileno()
    cell = Cell()
    cell.attach("connection", near)
    near.close()
    os.fstat(number)
    assert cell.abort()
    cell.release()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
    far.close()


def test_the_socket_is_found_behind_tls_of_another_make(pair: Pair) -> None:
    class Wrapped:
        socket = pair[0]

    cell = Cell()
    cell.attach("connection", Wrapped())
    assert cell.abort()
    assert pair[1].recv(1) == b""


def test_what_is_no_socket_is_let_be() -> None:
    cell = Cell()
    cell.attach("connection", object())
    assert not cell.seen
    assert not cell.abort()


def test_a_call_is_that_of_its_thread() -> None:
    cell, seen = Cell(), list[object]()
    with cell:
        assert current_cell() is cell
        other = threading.Thread(target=lambda: seen.append(current_cell()))
        other.start()
        other.join()
    assert seen == [None]
    assert current_cell() is None


def test_an_abort_passes_through_handlers_of_errors() -> None:
    assert not issubclass(CallAborted, Exception)
