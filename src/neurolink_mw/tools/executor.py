"""The tools of one turn: the calls of a step are answered together, in the order in which the model made them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio

from ..protocol import ToolOutput
from ..protocol.cancellation import is_cancellation
from ..protocol.excerpt import excerpt_output
from .answering import Answering, Around
from .breaker import BreakerState
from .output import FAILED
from .settings import ToolSettings
from .tool import Tool, by_name


class ToolExecutor:
    """Answers calls. One for each turn: what it counts belongs to the turn."""

    def __init__(self, tools: Sequence[Tool], settings: ToolSettings) -> None:
        self.tools: Mapping[str, Tool] = by_name(tools)
        self._settings = settings
        self._breaker = BreakerState(settings.breaker)

    def in_conversation(self, output: ToolOutput) -> ToolOutput:
        """An output as the model reads it: an excerpt where it is long."""
        limits = self._settings.output_limits
        return output if limits is None else excerpt_output(output, limits)

    async def answer(self, calls: Sequence[Answering], around: Around, judge: Around | None = None) -> None:
        """Answer all of them, several at once. Each has its outcome afterwards, or asks for an approval. judge: the
        policies in `around` alone.

        When the turn is cancelled meanwhile, or a middleware fails, that is raised, and every call has an outcome all
        the same: what was not done is answered as cancelled.
        """
        waiting = [call for call in calls if call.outcome is None]
        try:
            if len(waiting) == 1:  # no task group for one
                await self._answer(waiting[0], around, judge)
            elif waiting:
                await self._answer_all(waiting, around, judge)
        except BaseException:
            for call in calls:
                call.cancel()
            raise

    async def _answer_all(self, calls: Sequence[Answering], around: Around, judge: Around | None) -> None:
        failed: list[BaseException] = []
        todo = iter(calls)

        async def work() -> None:
            for call in todo:
                try:
                    await self._answer(call, around, judge)
                except BaseException as error:
                    if is_cancellation(error):
                        raise
                    # A task group would wrap it; and the first one is why the turn stops.
                    failed.append(error)
                    tasks.cancel_scope.cancel()
                    return

        async with anyio.create_task_group() as tasks:
            for _ in range(min(self._settings.parallel, len(calls))):
                tasks.start_soon(work)
        if failed:
            try:
                raise failed[0]
            finally:
                failed.clear()  # a frame that holds the error that refers to it would wait for the collector

    async def _answer(self, call: Answering, around: Around, judge: Around | None) -> None:
        name, settings = call.call.tool_name, self._settings
        await call.answer(
            self.tools.get(name),
            around,
            approve=settings.approve,
            timeout=settings.timeout,
            is_open=self._breaker.is_open(name),
            judge=judge,
        )
        if call.tries and call.outcome is not None:
            self._breaker.note(name, failed=call.outcome.status in FAILED)
