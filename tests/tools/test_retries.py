"""Further tries of a tool that failed."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from neurolink_mw.protocol import ErrorTextOutput, ExecutionDenied, TextOutput, ToolOutcome
from neurolink_mw.tools import Tool, ToolContext, ToolError

from .builders import Turn, call, explicit

pytestmark = pytest.mark.anyio


class Flaky:
    """Says one thing after another; what is an exception is raised."""

    def __init__(self, *script: object) -> None:
        self.script = list(script)
        self.attempts: list[int] = []
        self.at: list[float] = []

    async def __call__(self, given: object, context: ToolContext) -> object:
        self.attempts.append(context.attempt)
        self.at.append(anyio.current_time())
        now = self.script.pop(0)
        if isinstance(now, BaseException):
            raise now
        if now is Ellipsis:
            await anyio.sleep_forever()
        return now

    def tool(self, retries: int = 2, retry_delay: float = 0, **settings: Any) -> Tool:
        return explicit(self, retries=retries, retry_delay=retry_delay, **settings)


async def test_it_is_tried_again_until_it_works_and_no_more() -> None:
    flaky = Flaky(ValueError(), ValueError(), "ok", "never")
    done = await Turn(flaky.tool(retries=3)).report(call())
    assert (done.status, done.output, done.tries) == ("ok", TextOutput("ok"), 3)
    assert flaky.attempts == [1, 2, 3]


async def test_then_the_last_failure_is_the_result() -> None:
    flaky = Flaky(ValueError("1"), ValueError("2"), ValueError("3"), "never")
    done = await Turn(flaky.tool()).report(call())
    assert (done.status, done.tries) == ("error", 3)
    assert done.output == ErrorTextOutput("The tool 'tool' failed with ValueError: 3")


@pytest.mark.parametrize("failure", [ErrorTextOutput("no"), ToolError("no", retry=True), Ellipsis, {"isError": True}])
async def test_returned_errors_and_timeouts_are_failures_too(failure: object) -> None:
    flaky = Flaky(failure, "ok")
    assert (await Turn(flaky.tool(timeout=0.02)).report(call())).status == "ok"
    assert flaky.attempts == [1, 2]


@pytest.mark.parametrize(
    "outcome", [ToolError("no"), ExecutionDenied("no"), "ok", None, ToolOutcome(TextOutput("x"), "cancelled")]
)
async def test_what_another_try_cannot_mend_is_not_tried_again(outcome: object) -> None:
    flaky = Flaky(outcome, "never")
    await Turn(flaky.tool()).report(call())
    assert flaky.attempts == [1]


async def test_without_retries_there_is_one_try() -> None:
    flaky = Flaky(ValueError(), "never")
    assert (await Turn(flaky.tool(retries=0)).report(call())).tries == 1


async def test_between_tries_it_waits_twice_as_long_each_time() -> None:
    flaky = Flaky(*[ValueError()] * 4)
    await Turn(flaky.tool(retries=3, retry_delay=0.01)).report(call())
    waits = [later - earlier for earlier, later in zip(flaky.at, flaky.at[1:], strict=False)]
    assert all(wait >= least for wait, least in zip(waits, (0.01, 0.02, 0.04), strict=True))


async def test_very_many_tries_are_no_problem() -> None:
    flaky = Flaky(*[ValueError()] * 1100, "ok")
    done = await Turn(flaky.tool(retries=1500, retry_delay=0.0)).report(call())
    assert (done.status, done.tries) == ("ok", 1101)


async def test_each_try_has_its_own_time() -> None:
    flaky = Flaky(..., ..., "ok")
    assert (await Turn(flaky.tool(timeout=0.02)).report(call())).status == "ok"
    assert flaky.attempts == [1, 2, 3]
