"""The innermost part of an execution: the tool itself, with its tries and its time. What goes wrong is an outcome."""

from __future__ import annotations

from contextlib import suppress

import anyio

from ..errors import PolicyDenied
from ..protocol import CallOptions, ExecutionDenied, ToolCall, ToolOutcome
from ..protocol.cancellation import interrupts
from .detached import run_detached
from .input import InvalidInput, read_input
from .output import FAILED, as_outcome, failure, timed_out
from .tool import Tool, ToolContext, ToolError

_DOUBLED_TO_S = 30.0


class Runner:
    """Runs one call of one tool. tries: how often it did. options: of the step that made the call; given: the input as
    the tool takes it; timeout: seconds for each try, where the tool sets none."""

    def __init__(self, tool: Tool, call: ToolCall, given: object, options: CallOptions, timeout: float | None) -> None:
        self.name = tool.name
        self.options = options
        self.tries = 0
        self._tool = tool
        self._call = call
        self._given = given
        self._timeout = timeout if tool.timeout is None else tool.timeout

    async def run(self, call: ToolCall) -> ToolOutcome:
        """Answer the call. Whoever runs it again, or with another input, gets what the tool then says."""
        given = self._given
        if call.input != self._call.input:
            try:
                given = read_input(self._tool, call)
            except InvalidInput as invalid:
                return failure(str(invalid))
        delay = self._tool.retry_delay
        for _ in range(self._tool.retries):
            outcome, may_retry = await self._try(call, given)
            if outcome.status not in FAILED or not may_retry:
                return outcome
            await anyio.sleep(delay)
            delay = max(delay, min(delay * 2, _DOUBLED_TO_S))
        outcome, _ = await self._try(call, given)
        return outcome

    async def _try(self, call: ToolCall, given: object) -> tuple[ToolOutcome, bool]:
        """One try, and whether another may help."""
        tool = self._tool
        assert tool.execute is not None
        self.tries += 1
        context = (ToolContext(call, self.options, self.tries),) if tool.takes_context else ()
        try:
            with anyio.move_on_after(self._timeout) as patience:
                returned = await run_detached(f"the tool {tool.name!r}", tool.execute, given, *context)
                return as_outcome(returned), True
        except PolicyDenied as denied:
            if denied.final:  # of another call, such as one of a judge
                return _failed(tool.name, denied)
            return ToolOutcome(ExecutionDenied(str(denied) or None), "denied"), False
        except BaseException as error:
            if interrupts(error):
                raise
            return _failed(tool.name, error)
        assert patience.cancelled_caught
        return timed_out(f"The tool {tool.name!r} had no result after {self._timeout:g} s."), True


def _failed(name: str, error: BaseException) -> tuple[ToolOutcome, bool]:
    """What an exception is to the model, and whether another try may help."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]  # a task group puts it there, and says nothing of it
    said = ""
    with suppress(Exception):  # a `__str__` of its own may fail
        said = str(error)
    if isinstance(error, ToolError):
        return failure(said or f"The tool {name!r} failed."), error.retry
    return failure(f"The tool {name!r} failed with {type(error).__name__}{said and f': {said}'}"), True
