"""`async with pipeline`: opened from the inside out, closed in reverse, whatever happens in between."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup

from neurolink_mw import CallOptions, Middleware
from neurolink_mw.config import Pipeline
from neurolink_mw.config import opened as opened_module
from neurolink_mw.errors import RateLimitError
from neurolink_mw.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Noting(Middleware):
    """Writes down when it is opened and closed; fails where it is told to."""

    def __init__(self, id: str, journal: list[str], *, fails: Sequence[str] = ()) -> None:
        super().__init__()
        self.id = id  # type: ignore[misc]  # a chain may have many of a kind
        self.journal = journal
        self.fails = fails

    async def open(self, tasks: TaskGroup) -> None:
        await anyio.lowlevel.checkpoint()
        if "open" in self.fails:
            raise ConnectionError(f"{self.id} found no server")
        self.journal.append(f"open {self.id}")

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()  # raises in a scope that is cancelled, unless it is shielded
        self.journal.append(f"close {self.id}")
        if "aclose" in self.fails:
            raise OSError(f"{self.id} cannot flush")


@pytest.fixture
def journal() -> list[str]:
    return []


def pipeline_of(*members: Middleware) -> Pipeline:
    return Pipeline(members, model=ScriptedModel("hi"))


async def test_members_open_from_the_inside_out_and_close_in_reverse(journal: list[str]) -> None:
    async with pipeline_of(Noting("outer", journal), Noting("inner", journal)):
        journal.append("body")
    assert journal == ["open inner", "open outer", "body", "close outer", "close inner"]


async def test_a_failing_open_closes_what_was_opened_and_is_raised_as_it_is(journal: list[str]) -> None:
    pipeline = pipeline_of(
        Noting("outer", journal), Noting("middle", journal, fails=["open"]), Noting("inner", journal)
    )
    with pytest.raises(ConnectionError, match="middle found no server"):
        await pipeline.__aenter__()
    assert journal == ["open inner", "close inner"]


async def test_a_pipeline_whose_open_failed_can_be_opened_again(journal: list[str]) -> None:
    flaky = Noting("flaky", journal, fails=["open"])
    pipeline = pipeline_of(flaky)
    with pytest.raises(ConnectionError):
        await pipeline.__aenter__()
    flaky.fails = ()
    async with pipeline:
        assert journal == ["open flaky"]


async def test_an_exception_of_the_body_comes_out_as_it_is(journal: list[str]) -> None:
    error = RateLimitError("too many requests")
    with pytest.raises(RateLimitError) as caught:
        async with pipeline_of(Noting("outer", journal)):
            raise error
    assert caught.value is error
    assert journal == ["open outer", "close outer"]


async def test_a_member_that_cannot_close_does_not_keep_the_others_open(journal: list[str]) -> None:
    pipeline = pipeline_of(Noting("outer", journal, fails=["aclose"]), Noting("inner", journal))
    with pytest.raises(OSError, match="outer cannot flush"):
        async with pipeline:
            pass
    assert journal[-2:] == ["close outer", "close inner"]


async def test_background_work_runs_while_the_pipeline_is_open_and_ends_with_it() -> None:
    started, ended = anyio.Event(), anyio.Event()

    class Working(Middleware):
        async def open(self, tasks: TaskGroup) -> None:
            tasks.start_soon(self.work)

        async def work(self) -> None:
            started.set()
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()

    async with pipeline_of(Working()):
        await started.wait()
        assert not ended.is_set()
    assert ended.is_set()


async def test_background_work_outlives_the_close_of_its_member(journal: list[str]) -> None:
    class Flushing(Middleware):
        async def open(self, tasks: TaskGroup) -> None:
            self.wanted, self.flushed = anyio.Event(), anyio.Event()
            tasks.start_soon(self.work)

        async def work(self) -> None:
            await self.wanted.wait()
            self.flushed.set()

        async def aclose(self) -> None:
            self.wanted.set()
            await self.flushed.wait()
            journal.append("flushed")

    async with pipeline_of(Flushing()):
        pass
    assert journal == ["flushed"]


async def test_a_cancelled_body_still_closes_every_member(journal: list[str]) -> None:
    with anyio.CancelScope() as scope:
        async with pipeline_of(Noting("outer", journal), Noting("inner", journal)):
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert journal[-2:] == ["close outer", "close inner"]


async def test_a_cancelled_task_stays_cancelled(anyio_backend: str, journal: list[str]) -> None:
    if anyio_backend == "trio":
        pytest.skip("only asyncio cancels tasks from outside")
    opened = asyncio.Event()

    async def run() -> None:
        async with pipeline_of(Noting("outer", journal)):
            opened.set()
            await asyncio.sleep(3600)

    task = asyncio.create_task(run())
    await opened.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert journal == ["open outer", "close outer"]


async def test_failing_background_work_ends_the_body_and_is_told() -> None:
    class Failing(Middleware):
        async def open(self, tasks: TaskGroup) -> None:
            tasks.start_soon(self.work)

        async def work(self) -> None:
            raise LookupError("no more work")

    with pytest.raises(ExceptionGroup) as caught:
        async with pipeline_of(Failing()):
            await anyio.sleep_forever()
    assert [type(error) for error in caught.value.exceptions] == [LookupError]


async def test_a_close_that_hangs_is_given_up(
    journal: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Hanging(Middleware):
        async def aclose(self) -> None:
            await anyio.sleep_forever()

    monkeypatch.setattr(opened_module, "CLOSE_DEADLINE_S", 0.01)
    with caplog.at_level(logging.WARNING):
        async with pipeline_of(Hanging(), Noting("inner", journal)):
            pass
    assert journal == ["open inner", "close inner"]
    assert "hanging was not closed after 0.01 s" in caplog.messages


async def test_an_open_pipeline_cannot_be_opened_twice_and_a_closed_one_can(journal: list[str]) -> None:
    pipeline = pipeline_of(Noting("one", journal))
    async with pipeline:
        with pytest.raises(RuntimeError, match="open already"):
            await pipeline.__aenter__()
    async with pipeline:
        await pipeline.model.do_generate(CallOptions.from_text("Hello"))
    assert journal == ["open one", "close one"] * 2


async def test_a_model_given_in_code_is_left_open() -> None:
    closed = []

    class Closable(ScriptedModel):
        async def aclose(self) -> None:
            closed.append(self)

    async with Pipeline(model=Closable("hi")):
        pass
    assert closed == []
