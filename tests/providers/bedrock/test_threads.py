"""The pool of threads: bounded, first come first served, never in the way of the process's end."""

from __future__ import annotations

import subprocess
import sys
import threading
import weakref

import pytest

from neurolink_mw.errors import ConfigError
from neurolink_mw.providers.bedrock.threads import Threads, threads_of

from .wire_builders import until


def waited(gate: threading.Event) -> None:
    gate.wait()


def test_work_is_done_in_the_order_it_came_in() -> None:
    pool, gate, done = Threads(1), threading.Event(), list[int]()
    pool.submit(lambda: waited(gate))
    for number in range(20):
        pool.submit(lambda number=number: done.append(number))  # type: ignore[misc]
    gate.set()
    until(lambda: len(done) == 20)
    assert done == list(range(20))


def test_there_are_never_more_threads_than_the_size() -> None:
    pool, gate = Threads(3), threading.Event()
    for _ in range(10):
        pool.submit(lambda: waited(gate))
    until(lambda: pool.busy == 3)
    assert pool.alive == 3
    gate.set()
    until(lambda: pool.busy == 0)


def test_a_free_thread_is_used_before_another_is_started() -> None:
    pool = Threads(8)
    for _ in range(5):
        done = threading.Event()
        pool.submit(done.set)
        assert done.wait(5)
        until(lambda: pool.busy == 0)
    assert pool.alive == 1


def test_threads_without_work_end() -> None:
    pool, done = Threads(2, idle_s=0.01), threading.Event()
    pool.submit(done.set)
    assert done.wait(5)
    until(lambda: pool.alive == 0)
    again = threading.Event()
    pool.submit(again.set)
    assert again.wait(5)


def test_a_thread_keeps_nothing_of_what_it_has_done() -> None:
    class Held:
        def work(self) -> None:
            pass

    pool, held = Threads(1), Held()
    alive = weakref.ref(held)
    pool.submit(held.work)
    del held
    until(lambda: alive() is None)


def test_a_thread_whose_work_fails_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: reported.append(args.exc_type.__name__))
    pool, done = Threads(1), threading.Event()
    pool.submit(lambda: [][0])
    until(lambda: pool.alive == 0)
    pool.submit(done.set)
    assert done.wait(5)
    assert reported == ["IndexError"]


def test_a_blocked_thread_does_not_hold_up_the_end_of_the_process() -> None:
    code = (
        "import threading\n"
        "from neurolink_mw.providers.bedrock.threads import Threads\n"
        "Threads().submit(threading.Event().wait)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    code = (
        "import os, threading\n"
        "from neurolink_mw.providers.bedrock.threads import Threads\n"
        "pool = Threads(1)\n"
        "pool.submit(threading.Event().wait)\n"
        "child = os.fork()\n"
        "done = threading.Event()\n"
        "if not child:\n"
        "    pool.submit(done.set)\n"
        "    os._exit(0 if done.wait(5) else 1)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_models_share_a_pool_unless_they_are_given_one() -> None:
    assert threads_of(None) is threads_of(None)
    assert threads_of(None).size == 128
    own = Threads(2)
    assert threads_of(own) is own
    assert threads_of(3).size == 3
    assert repr(own) == "Threads(size=2, busy=0)"


@pytest.mark.parametrize("size", [0, -1, True, "8", 1.5])
def test_a_size_that_is_none_is_refused(size: object) -> None:
    with pytest.raises(ConfigError, match="threads is how many threads"):
        threads_of(size)  # type: ignore[arg-type]
