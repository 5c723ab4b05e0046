"""Whatever a model says and whatever its tools do, the conversation stays whole, and both drives decide alike."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neurolink_mw import Tool
from neurolink_mw.errors import RateLimitError, TurnError
from neurolink_mw.loop import TurnRecord, has_tool_call, step_count_is
from neurolink_mw.protocol import (
    CallOptions,
    ErrorPart,
    Finish,
    FinishReason,
    GenerateResult,
    JSONObject,
    StreamResult,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
)
from neurolink_mw.testing import ScriptedModel
from neurolink_mw.tools import Breaker

from .builders import ASKED, Drive, check_paired, generated, says, streamed, working

TOOLS = ["ok", "text", "fails", "cancels_itself", "hangs", "asks", "stops_the_turn", "unknown", "final"]
STOP = Finish(FinishReason("error"))
REASONS = ["tool-calls", "stop", "length", "content-filter", "error", "other"]


@dataclass(frozen=True)
class Reply:
    """What the model says in one step. fails: it raises instead, at once or after half of it, or says so in an error
    part; or the turn is cancelled while it thinks. twice: its calls have one id."""

    text: str
    calls: tuple[tuple[str, str], ...]
    reason: str
    fails: str | None
    twice: bool = False


def replies() -> st.SearchStrategy[list[Reply]]:
    inputs = st.sampled_from(["{}", '{"x": 1}', '{"x": "wrong"}', "{broken", ""])
    calls = st.lists(st.tuples(st.sampled_from(TOOLS), inputs), max_size=4).map(tuple)
    fails = st.sampled_from([None] * 16 + ["error", "cancel", "half", "part"])
    twice = st.sampled_from([False] * 4 + [True])
    reply = st.builds(Reply, st.sampled_from(["", "Hm."]), calls, st.sampled_from(REASONS), fails, twice)
    return st.lists(reply, min_size=1, max_size=5)


@dataclass(frozen=True)
class Rules:
    max_steps: int
    parallel: int
    breaker: Breaker | None
    stop: bool


rules = st.builds(
    Rules, st.integers(1, 5), st.integers(1, 3), st.sampled_from([None, Breaker(1), Breaker(2, consecutive=False)]),
    st.booleans(),
)  # fmt: skip


class Model(ScriptedModel):
    """Plays the replies. One that cancels calls `cancel` and waits for it."""

    def __init__(self, script: list[Reply], cancel: Callable[[], None]) -> None:
        super().__init__([self._answer(at, reply) for at, reply in enumerate(script)] + [says("The end.")] * 3)
        self._script = script
        self._cancel = cancel

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        fails = await self._failing()
        answer = await super().do_generate(options)
        if fails in ("half", "part"):
            raise RateLimitError("slow down")
        return answer

    async def do_stream(self, options: CallOptions) -> StreamResult:
        await self._failing()
        return await super().do_stream(options)

    async def _failing(self) -> str | None:
        at = len(self.calls)
        fails = self._script[at].fails if at < len(self._script) else None
        if fails == "cancel":
            self._cancel()
            await anyio.sleep_forever()
        return fails

    @staticmethod
    def _answer(at: int, reply: Reply) -> Any:
        error = RateLimitError("slow down")
        if reply.fails == "error":
            return error
        ids = [f"s{at}c0" if reply.twice else f"s{at}c{n}" for n in range(len(reply.calls))]
        calls = [ToolCall(id, name, text) for id, (name, text) in zip(ids, reply.calls, strict=True)]
        answer = says(*([reply.text] if reply.text else []), *calls, reason=reply.reason)
        if reply.fails not in ("half", "part"):
            return answer
        # A stream that fails after it has begun, in the middle of a block.
        half = [StreamStart(), TextStart("t"), TextDelta("t", "Ha")]
        return lambda options: (
            [*half, error] if reply.fails == "half" else [*half, ErrorPart(error), TextEnd("t"), STOP]
        )


async def play(drive: Drive, script: list[Reply], rules: Rules) -> tuple[TurnRecord, str, Model]:
    """One turn: how far it came, how it ended, and what the model was asked."""
    record = TurnRecord()

    async def hangs(given: object) -> None:
        await anyio.sleep_forever()

    async def cancels_itself(given: object) -> None:
        raise asyncio.CancelledError

    async def stops_the_turn(given: object) -> None:
        scope.cancel()
        await anyio.sleep_forever()

    def fails(given: object) -> None:
        raise KeyError

    async def ok(given: dict[str, int]) -> dict[str, int]:
        return given

    async def text(given: object) -> str:
        return "text"

    async def final(given: object) -> None:
        pytest.fail("a terminal tool is never run")

    schema: JSONObject = {"type": "object", "properties": {"x": {"type": "integer"}}}
    tools = [
        Tool(name="ok", input_schema=schema, execute=ok),
        working("text", text),
        working("fails", fails),
        working("cancels_itself", cancels_itself),
        working("hangs", hangs, timeout=0.005),
        working("asks", ok, needs_approval=True),
        working("stops_the_turn", stops_the_turn),
        working("final", final),
    ]
    with anyio.CancelScope() as scope:
        model = Model(script, scope.cancel)
        try:
            result = await drive(
                model,
                tools=tools,
                record=record,
                max_steps=rules.max_steps,
                parallel_tools=rules.parallel,
                breaker=rules.breaker,
                terminal_tools=["final"],
                stop_when=[has_tool_call("text"), step_count_is(4)] if rules.stop else (),
            )
        except (RateLimitError, TurnError) as error:
            return record, type(error).__name__, model
        return record, result.stopped_by, model
    return record, "cancelled", model


def check_whole(record: TurnRecord) -> None:
    """Every call has one result, but for the last ones where they wait for an approval."""
    messages = list(record.messages)
    waiting = record.result is not None and record.result.stopped_by == "approval"
    if waiting:
        while messages and messages[-1].role != "user" and (messages[-1].role == "tool" or _calls(messages[-1])):
            messages.pop()
    check_paired(messages)
    assert messages[: len(ASKED.prompt)] == list(ASKED.prompt)


def _calls(message: Any) -> bool:
    return any(part.type == "tool-call" for part in message.content)


def _told(record: TurnRecord) -> list[tuple[str, str]]:
    return [(one.tool_call_id, one.status) for one in record.tool_executions]


@settings(max_examples=150, deadline=None)
@given(replies(), rules)
def test_every_call_has_exactly_one_result_whatever_happens(script: list[Reply], rules: Rules) -> None:
    async def run() -> None:
        for drive in (generated, streamed):
            record, _, model = await play(drive, script, rules)
            check_whole(record)
            for asked in model.calls:  # nor is the model ever sent anything else
                check_paired(asked.options.prompt)

    anyio.run(run)


@settings(max_examples=150, deadline=None)
@given(replies(), rules)
def test_generated_and_streamed_turns_decide_alike(script: list[Reply], rules: Rules) -> None:
    async def run() -> None:
        one, how, asked = await play(generated, script, rules)
        other, how_else, asked_else = await play(streamed, script, rules)
        assert how == how_else
        assert [call.options for call in asked.calls] == [call.options for call in asked_else.calls]
        assert one.messages == other.messages
        assert one.steps == other.steps
        assert _told(one) == _told(other)
        if one.result is not None and other.result is not None:
            if not any(reply.fails in ("half", "part") for reply in script):  # what has been streamed has been shown
                assert one.result.shown == other.result.shown
            assert (one.result.text, one.result.finish_reason) == (other.result.text, other.result.finish_reason)

    anyio.run(run)


@settings(max_examples=50, deadline=None)
@given(replies(), rules)
def test_the_same_holds_on_trio(script: list[Reply], rules: Rules) -> None:
    async def run() -> None:
        one, how, _ = await play(generated, script, rules)
        other, how_else, _ = await play(streamed, script, rules)
        check_whole(one)
        check_whole(other)
        assert (how, one.messages, one.steps) == (how_else, other.messages, other.steps)

    anyio.run(run, backend="trio")


@settings(max_examples=100, deadline=None)
@given(replies(), rules)
def test_a_model_is_never_asked_more_often_than_the_limit_and_once(script: list[Reply], rules: Rules) -> None:
    async def run() -> None:
        _, _, model = await play(generated, script, rules)
        assert len(model.calls) <= rules.max_steps + 1

    anyio.run(run)
