"""`lifecycle`: what a callback can never do to a call, what counts as recoverable, and that nothing is kept."""

from __future__ import annotations

import gc
import logging
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.middlewares.lifecycle_kit import ANSWER, ASKED, Told, call, parts, read

from neurolink_mw import CallOptions, wrap_model
from neurolink_mw.errors import ConfigError, ProviderError, RateLimitError
from neurolink_mw.middlewares import lifecycle as module
from neurolink_mw.middlewares.lifecycle import Lifecycle, Started
from neurolink_mw.protocol import StreamPart
from neurolink_mw.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def told() -> Told:
    return Told()


# ------------------------------------------------------------------------------------------------------ deadlines


async def _never(event: object) -> None:
    await anyio.sleep_forever()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("which", ["on_start", "on_chunk", "on_finish"])
async def test_a_callback_that_hangs_is_left_behind(
    which: str, streamed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    values: dict[str, Any] = {which: _never, "timeout": 0.01}
    model = wrap_model(ScriptedModel([parts("a")]), [Lifecycle(**values)])
    with anyio.fail_after(5), caplog.at_level(logging.WARNING):
        await call(model, streamed)
    left = [f"lifecycle {which} was left behind after 0.01 s"] if streamed or which != "on_chunk" else []
    assert caplog.messages == left


async def test_a_failure_is_raised_though_on_error_hangs() -> None:
    model = wrap_model(ScriptedModel([RateLimitError("x")]), [Lifecycle(on_error=_never, timeout=0.01)])
    with anyio.fail_after(5), pytest.raises(RateLimitError):
        await model.do_generate(ASKED)


async def test_a_callback_that_swallows_its_cancellation_delays_nothing() -> None:
    stop, ended = anyio.Event(), anyio.Event()

    async def deaf(event: object) -> None:
        while not stop.is_set():
            try:
                await stop.wait()
            except BaseException:
                continue
        ended.set()

    model = wrap_model(ScriptedModel([ANSWER]), [Lifecycle(on_finish=deaf, timeout=0.01)])
    with anyio.fail_after(5):
        await model.do_generate(ASKED)
        stop.set()
        await ended.wait()


async def test_a_callback_that_is_left_behind_may_still_finish() -> None:
    go, done = anyio.Event(), anyio.Event()

    async def slow(event: object) -> None:
        await go.wait()
        done.set()

    await wrap_model(ScriptedModel([ANSWER]), [Lifecycle(on_finish=slow, timeout=0.01)]).do_generate(ASKED)
    go.set()
    with anyio.fail_after(5):
        await done.wait()


async def test_with_a_timeout_of_zero_nothing_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    began = anyio.Event()

    async def hang(event: object) -> None:
        began.set()
        await anyio.sleep_forever()

    model = wrap_model(ScriptedModel([parts("a")]), [Lifecycle(on_start=hang, on_chunk=_never, timeout=0)])
    with anyio.fail_after(5):
        await read(model)
        await began.wait()
    assert caplog.messages == []


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_callback_that_raises_changes_nothing_and_its_words_are_not_logged(
    streamed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def sync_raise(event: object) -> None:
        raise ValueError("a user's words")

    async def async_raise(event: object) -> None:
        raise ValueError("a user's words")

    for failing in (sync_raise, async_raise):
        member = Lifecycle(on_start=failing, on_chunk=failing, on_finish=failing)
        await call(wrap_model(ScriptedModel([parts("a")]), [member]), streamed)
    assert set(caplog.messages) == {
        f"lifecycle {name} failed: ValueError" for name in ("on_start", "on_finish", *(["on_chunk"] * streamed))
    }


async def test_a_callback_that_raises_does_not_hide_the_failure_it_is_told() -> None:
    def failing(event: object) -> None:
        raise ValueError("mine")

    with pytest.raises(RateLimitError):
        await wrap_model(ScriptedModel([RateLimitError("x")]), [Lifecycle(on_error=failing)]).do_generate(ASKED)


@pytest.mark.parametrize(("milliseconds", "seconds"), [("250", 0.25), ("0", 0.0), ("1e3", 1.0)])
def test_the_timeout_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, milliseconds: str, seconds: float
) -> None:
    monkeypatch.setenv("NEUROLINK_LIFECYCLE_TIMEOUT_MS", milliseconds)
    assert Lifecycle().config.timeout == seconds
    assert Lifecycle(timeout=2).config.timeout == 2


@pytest.mark.parametrize("milliseconds", ["-1", "nan", "inf", "soon", ""])
def test_a_timeout_of_the_environment_that_is_none_is_refused(
    monkeypatch: pytest.MonkeyPatch, milliseconds: str
) -> None:
    monkeypatch.setenv("NEUROLINK_LIFECYCLE_TIMEOUT_MS", milliseconds)
    with pytest.raises(ConfigError, match="NEUROLINK_LIFECYCLE_TIMEOUT_MS is a number of milliseconds, 0 or more"):
        Lifecycle()


def test_without_a_word_about_it_the_timeout_is_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEUROLINK_LIFECYCLE_TIMEOUT_MS", raising=False)
    assert Lifecycle().config.timeout == 5


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf"), "long"])
def test_a_bad_timeout_is_refused(timeout: object) -> None:
    with pytest.raises(ConfigError, match="timeout: input should be"):
        Lifecycle(timeout=timeout)


@pytest.mark.parametrize("callback", ["json", "json:nothing", 5, "os:sep"])
def test_what_is_no_callback_is_refused(callback: object) -> None:
    with pytest.raises(ConfigError, match="on_start: "):
        Lifecycle(on_start=callback)


# ------------------------------------------------------------------------------------------------- recoverability


class _WithStatus(Exception):
    def __init__(self, status_code: int) -> None:
        super().__init__("an SDK's own error")
        self.status_code = status_code


class _WithFlag(Exception):
    retriable = True


def _caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "recoverable"),
    [
        (RateLimitError("x"), True),
        (ProviderError("x", status=400), False),
        (ProviderError("x", retryable=True), True),
        (RateLimitError("x", retryable=False), False),
        (_WithStatus(429), True),
        (_WithStatus(503), True),
        (_WithStatus(529), True),
        (_WithStatus(400), False),
        (_WithFlag(), True),
        (TimeoutError(), True),
        (ConnectionResetError(), True),
        (anyio.BrokenResourceError(), True),
        (_caused(LookupError(), RateLimitError("x")), True),
        (_caused(RateLimitError("x", retryable=False), TimeoutError()), False),
        (ValueError("network policy violation"), False),
        (ValueError("socket to me: 503 rate limit timeout 429"), False),
        (KeyError("etimedout"), False),
    ],
    ids=lambda value: f"{type(value).__name__}({value})",
)
async def test_recoverability_goes_by_type_and_status_and_never_by_words(
    told: Told, error: Exception, recoverable: bool
) -> None:
    with pytest.raises(type(error)):
        await wrap_model(ScriptedModel([error]), [told.lifecycle()]).do_generate(ASKED)
    assert told.events[-1].recoverable is recoverable


# ---------------------------------------------------------------------------------------------- state and memory


async def test_concurrent_calls_share_nothing(told: Told) -> None:
    def echo(options: CallOptions) -> list[StreamPart]:
        (message,) = options.prompt
        word = message.content[0].text  # type: ignore[union-attr]  # a user's text
        return parts(word, word)

    model = wrap_model(ScriptedModel([echo], repeat=True), [told.lifecycle()])
    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(read, model, CallOptions.from_text(str(number)))
    by_request: dict[str, list[Any]] = {}
    for event in told.events:
        by_request.setdefault(event.request_id, []).append(event)
    assert len(by_request) == 8
    for events in by_request.values():
        _, first, second, finished = events
        assert (first.sequence_number, second.sequence_number) == (0, 1)
        assert finished.text == first.text_delta + second.text_delta


async def test_a_callback_sees_the_context_variables_of_the_call() -> None:
    seen = []

    async def look(event: object) -> None:
        seen.append(_tenant.get())

    _tenant.set("acme")
    await wrap_model(ScriptedModel([ANSWER]), [Lifecycle(on_start=look, on_finish=look)]).do_generate(ASKED)
    assert seen == ["acme", "acme"]


_tenant: ContextVar[str] = ContextVar("tenant")


async def test_one_instance_may_stand_in_two_chains(told: Told) -> None:
    member = told.lifecycle()
    for name in ("first", "second"):
        await wrap_model(ScriptedModel([ANSWER], model_id=name), [member]).do_generate(ASKED)
    assert [event.model_id for event in told.events if isinstance(event, Started)] == ["first", "second"]


async def test_nothing_is_left_in_memory_after_calls() -> None:
    async def fine(event: object) -> None: ...

    def kept() -> list[object]:
        gc.collect()
        kinds = (module.Started, module.Chunk, module.Finished, module.Failed, module._Progress)
        return [one for one in gc.get_objects() if isinstance(one, kinds)]

    before = len(kept())  # other tests' events
    member = Lifecycle(on_start=fine, on_chunk=fine, on_finish=fine, on_error=fine)
    error = RateLimitError("kept by the program")
    model = wrap_model(ScriptedModel([parts("a"), error], repeat=True), [member])
    for _ in range(10):
        await read(model)
        with pytest.raises(RateLimitError):
            await read(model)
    error.__traceback__ = None
    await anyio.wait_all_tasks_blocked()
    assert len(kept()) == before
    assert vars(error) == vars(RateLimitError("kept by the program"))
