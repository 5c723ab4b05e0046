"""One call from the model's words to its result: known, understood, approved, run.

Whatever goes wrong is a result that the model can read. Only what stops the turn itself is raised: its cancellation,
and what a middleware around the tool raises.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from inspect import isawaitable
from time import perf_counter, time
from typing import TypeAlias

from ..errors import PolicyDenied
from ..protocol import CallOptions, ErrorTextOutput, ExecutionDenied, TextOutput, ToolCall, ToolOutcome, ToolRunner
from ..protocol.cancellation import interrupts, raise_if_cancelled
from .approval import Approval, Approve
from .execution import ToolExecution
from .input import InvalidInput, parsed_or_text, read_input
from .output import failure
from .runner import Runner
from .tool import Tool

Around: TypeAlias = Callable[[ToolRunner], ToolRunner]
"""Puts the middlewares' `wrap_tool` around one execution."""

_log = logging.getLogger(__name__)


class Answering:
    """One call on its way. `outcome` is set when it is answered; `asks` where somebody has to approve it first.

    options: of the step that made the call. available: the names of the tools that the step was told of; a call of
    another one is not run. approved: somebody has approved it already.
    """

    def __init__(
        self,
        call: ToolCall,
        options: CallOptions,
        *,
        step: int,
        available: Sequence[str],
        approved: bool = False,
        outcome: ToolOutcome | None = None,
    ) -> None:
        self.call = call
        self.outcome = outcome
        self.asks = False
        self._options = options
        self._step = step
        self._available = available
        self._approved = approved
        self._runner: Runner | None = None
        self._started = time()
        self._duration = 0.0

    @property
    def tries(self) -> int:
        """How often the tool was run."""
        return 0 if self._runner is None else self._runner.tries

    async def answer(
        self,
        tool: Tool | None,
        around: Around,
        *,
        approve: Approve | None,
        timeout: float | None,
        is_open: bool,
        judge: Around | None = None,
    ) -> None:
        """Answer the call, or find that it has to be approved first. tool: the one of that name, if there is one;
        is_open: it has failed too often. judge: the policies in `around` alone, which come before an approval."""
        if tool is None or tool.execute is None or tool.name not in self._available:
            self.outcome = failure(self._why_not(declared=self.call.tool_name in self._available))
            return
        if is_open:
            self.outcome = failure(f"The tool {tool.name!r} failed too often and is not run again: go on without it.")
            return
        try:
            given = read_input(tool, self.call)
        except InvalidInput as invalid:
            self.outcome = failure(str(invalid))
            return
        if not self._approved and not await self._may_run(tool, given, approve, judge):
            return
        self._runner = Runner(tool, self.call, given, self._options, timeout)
        self._started, began = time(), perf_counter()
        try:
            self.outcome = await around(self._runner).run(self.call)
        except PolicyDenied as denied:
            if denied.final:  # of another call, such as one of a judge
                raise
            self._deny(str(denied) or None)
        finally:
            self._duration = perf_counter() - began

    def cancel(self) -> None:
        """Answer a call that had no result when the turn was stopped."""
        if self.outcome is None:
            self.asks = False
            self.outcome = ToolOutcome(ErrorTextOutput("The call was cancelled before it had a result."), "cancelled")

    def report(self) -> ToolExecution:
        """What became of it."""
        call, outcome = self.call, self.outcome
        assert outcome is not None
        return ToolExecution(
            call.tool_call_id,
            call.tool_name,
            parsed_or_text(call.input),
            outcome.output,
            outcome.status,
            self._step,
            self.tries,
            self._started,
            self._duration,
        )

    def _deny(self, reason: str | None) -> None:
        self.outcome = ToolOutcome(ExecutionDenied(reason), "denied")

    def _why_not(self, *, declared: bool) -> str:
        name = self.call.tool_name
        if declared:
            return f"The tool {name!r} cannot be run here: nothing stands behind it. Go on without it."
        names = ", ".join(self._available)
        return f"There is no tool {name!r} here. " + (
            f"The available tools are: {names}." if names else "No tool is available now."
        )

    async def _may_run(self, tool: Tool, given: object, approve: Approve | None, judge: Around | None) -> bool:
        """Whether it may run as far as approval goes. What cannot be decided is denied; what a policy denies, nobody
        is asked about."""
        if tool.needs_approval is False:
            return True
        if judge is not None:
            outcome = await judge(_Nothing(tool.name, self._options)).run(self.call)
            if outcome.status == "denied":
                self.outcome = outcome
                return False
        try:
            approval = await _approval(tool, self.call, given, approve)
            await raise_if_cancelled()  # a hook may have swallowed it
        except BaseException as error:
            if interrupts(error):
                raise
            await raise_if_cancelled()
            _log.warning("deciding on a call of %r failed, so it is denied: %s", tool.name, type(error).__name__)
            approval = Approval("deny", "The call could not be approved.")
        if approval.decision == "deny":
            self._deny(approval.reason)
        self.asks = approval.decision == "ask"
        return approval.decision == "approve"


class _Nothing:
    """In place of the tool, to hear what stands around it."""

    def __init__(self, name: str, options: CallOptions) -> None:
        self.name = name
        self.options = options

    async def run(self, call: ToolCall) -> ToolOutcome:
        return ToolOutcome(TextOutput(""))


async def _approval(tool: Tool, call: ToolCall, given: object, approve: Approve | None) -> Approval:
    needed = tool.needs_approval
    if callable(needed):
        said = needed(given)
        needed = await said if isawaitable(said) else said
    if needed is False:
        return Approval("approve")
    if approve is None:
        return Approval("ask")
    decided = approve(call)
    approval = await decided if isawaitable(decided) else decided
    if not isinstance(approval, Approval):
        raise TypeError("an approval is approve(), deny(reason) or ask()")
    return approval
