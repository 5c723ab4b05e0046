"""A long turn stays inside the model's window."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from neurolink_mw.errors import ContextOverflowError
from neurolink_mw.loop import ContextGuard, StepResult
from neurolink_mw.protocol import (
    CallOptions,
    FinishReason,
    FunctionTool,
    GenerateResult,
    InputTokens,
    Message,
    ModelLimits,
    OutputTokens,
    StreamResult,
    ToolCall,
    Usage,
    to_json,
)

from .builders import ASKED, Drive, both_ways, call, check_paired, look, says, script, working

pytestmark = pytest.mark.anyio

OUTPUT = "a line of the output of a tool\n" * 661  # 20 KiB
STEPS = 200
CHARACTERS_PER_TOKEN = 3.6


class Reader:
    """A model that reads one thing after the other, counts tokens its own way, and refuses what is too long.

    changes: how often a request did not begin with the whole of the one before it.
    """

    provider, model_id = "reader", "reader-1"

    def __init__(self, window: int, *, counts: bool = True) -> None:
        self.window = window
        self.counts = counts
        self.asked = self.changes = 0
        self.before: Sequence[Message] = ()
        self._sizes: dict[int, tuple[Message, int]] = {}

    async def do_generate(self, options: CallOptions) -> GenerateResult:
        tokens = round(sum(map(self._size, options.prompt)) / CHARACTERS_PER_TOKEN)
        if tokens > self.window:
            raise ContextOverflowError("too long")
        self.changes += tuple(options.prompt[: len(self.before)]) != tuple(self.before)
        self.before = options.prompt
        self.asked += 1
        usage = Usage(InputTokens(tokens), OutputTokens(10)) if self.counts else Usage()
        if self.asked > STEPS:
            return says("Read it all.", usage=usage)
        return GenerateResult((ToolCall(f"c{self.asked}", "read", "{}"),), FinishReason("tool-calls"), usage)

    async def do_stream(self, options: CallOptions) -> StreamResult:
        return StreamResult.of(await self.do_generate(options))

    def _size(self, message: Message) -> int:
        known = self._sizes.get(id(message))
        if known is None:
            known = self._sizes[id(message)] = (message, len(json.dumps(to_json(message))))
        return known[1]


read = working("read", lambda given: OUTPUT)


@both_ways
async def test_two_hundred_steps_in_a_large_window_keep_the_prefix_on_more_than_four_steps_of_five(
    drive: Drive,
) -> None:
    model = Reader(128_000)
    result = await drive(model, tools=[read], max_steps=STEPS + 1)
    assert (result.text, result.stopped_by) == ("Read it all.", "answer")
    assert model.changes < STEPS / 5
    check_paired(result.messages)


@both_ways
@pytest.mark.parametrize("counts", [True, False])
async def test_two_hundred_steps_in_a_small_window_do_not_overflow(drive: Drive, counts: bool) -> None:
    model = Reader(32_000, counts=counts)
    limits = ContextGuard(limits={"reader:*": 32_000})
    result = await drive(model, tools=[read], max_steps=STEPS + 1, context_guard=limits)
    assert result.text == "Read it all."
    assert len(result.steps) == STEPS + 1


@both_ways
async def test_the_steps_keep_what_the_conversation_has_lost(drive: Drive) -> None:
    result = await drive(Reader(128_000), tools=[read], max_steps=STEPS + 1)
    assert all(getattr(one.output, "value", None) == OUTPUT for one in result.tool_executions)
    assert len(result.tool_executions) == STEPS


def told(steps: Sequence[StepResult]) -> list[tuple[bool, int, int]]:
    return [(one.context.fire, one.context.budget_tokens, one.context.headroom_tokens) for one in steps if one.context]


@both_ways
async def test_each_step_tells_its_budget_and_what_is_left_of_it_also_where_nothing_was_done(drive: Drive) -> None:
    result = await drive(script(says(call()), "done"), tools=[look])
    first, second = told(result.steps)
    assert first[0] is second[0] is False
    assert first[1] == 108_000
    assert 0 < second[2] < first[2] < first[1]


@both_ways
async def test_a_conversation_that_fits_is_sent_as_the_same_objects(drive: Drive) -> None:
    model = script(says(call()), says(call()), "done")
    await drive(model, tools=[look])
    second, third = model.calls[1].options.prompt, model.calls[2].options.prompt
    assert all(now is before for now, before in zip(third, second, strict=False))


@both_ways
async def test_the_window_may_be_told(drive: Drive) -> None:
    guard = ContextGuard(limits={"scripted:*": ModelLimits(5_000, 1_000)})
    (step,) = (await drive(script("done"), context_guard=guard)).steps
    assert step.context is not None
    assert step.context.budget_tokens == 4_000


@both_ways
async def test_the_answers_share_follows_the_request(drive: Drive) -> None:
    options = ASKED.replace(max_output_tokens=28_000)
    (step,) = (await drive(script("done"), options)).steps
    assert step.context is not None
    assert step.context.budget_tokens == 100_000


@both_ways
async def test_tool_schemas_count(drive: Drive) -> None:
    large = FunctionTool("large", {"type": "object", "description": "x" * 40_000})
    with_it = await drive(script("done"), ASKED.replace(tools=[large]))
    without = await drive(script("done"))
    assert told(without.steps)[0][2] - told(with_it.steps)[0][2] > 9_000


@both_ways
async def test_without_a_guard_nothing_is_reclaimed(drive: Drive) -> None:
    with pytest.raises(Exception, match="does not fit"):
        await drive(Reader(32_000), tools=[read], context_guard=ContextGuard(enabled=False))


@both_ways
async def test_what_cannot_be_reclaimed_is_warned_about(drive: Drive, caplog: pytest.LogCaptureFixture) -> None:
    guard = ContextGuard(limits={"*": 2_000})
    model = script(says(call("c1", "read")), "done")
    await drive(model, tools=[read], context_guard=guard)
    assert "cannot be reclaimed further" in caplog.text


@both_ways
async def test_relief_in_the_tail_is_given_where_it_is_asked_for(drive: Drive) -> None:
    guard = ContextGuard(limits={"*": 4_000}, tail_relief=True)
    model = script(says(call("c1", "read")), "done")
    await drive(model, tools=[read], context_guard=guard)
    assert len(json.dumps(to_json(tuple(model.calls[1].options.prompt)))) < 5_000
