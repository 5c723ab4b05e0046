"""What stands around an execution: it sees the call, may change it, may answer in its place, may refuse it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from neurolink_mw.errors import PolicyDenied
from neurolink_mw.pipeline import Middleware, wrap_model
from neurolink_mw.pipeline.tool_hooks import around_tools
from neurolink_mw.protocol import ExecutionDenied, JsonOutput, TextOutput, ToolCall, ToolOutcome, ToolRunner
from neurolink_mw.testing import ScriptedModel
from neurolink_mw.tools import ToolContext

from .builders import OPTIONS, Turn, call, explicit, wrapped

pytestmark = pytest.mark.anyio

ECHO = explicit(lambda given: given)


async def test_it_sees_the_call_the_tools_name_and_the_options_of_the_step() -> None:
    seen: list[object] = []

    async def look(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        seen.extend([runner.name, runner.options, call])
        return await runner.run(call)

    made = call("tool", {"a": 1})
    assert (await Turn(ECHO, around=wrapped(look)).one(made)).output == JsonOutput({"a": 1})
    assert seen[0] == "tool"
    assert seen[1] is OPTIONS
    assert seen[2] is made


async def test_it_may_change_the_input() -> None:
    async def change(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        return await runner.run(call.replace(input='{"a": 2}'))

    turn = Turn(ECHO, around=wrapped(change))
    done = await turn.report(call("tool", {"a": 1}))
    assert done.output == JsonOutput({"a": 2})
    assert done.input == {"a": 1}  # what the model wrote


async def test_the_tool_sees_the_call_as_it_was_changed() -> None:
    def seen(given: object, context: ToolContext) -> str:
        return context.call.input

    async def change(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        return await runner.run(call.replace(input="{ }"))

    assert (await Turn(explicit(seen), around=wrapped(change)).one(call())).output == TextOutput("{ }")


async def test_it_may_change_the_outcome() -> None:
    async def change(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        return (await runner.run(call)).replace(output=TextOutput("other"))

    assert (await Turn(ECHO, around=wrapped(change)).one(call())).output == TextOutput("other")


async def test_it_may_answer_without_the_tool() -> None:
    async def cached(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        return ToolOutcome(TextOutput("cached"))

    done = await Turn(ECHO, around=wrapped(cached)).report(call())
    assert (done.output, done.status, done.tries) == (TextOutput("cached"), "ok", 0)


async def test_it_may_run_the_tool_again() -> None:
    attempts = []

    def seen(given: object, context: ToolContext) -> str:
        attempts.append(context.attempt)
        return "no" if context.attempt == 1 else "yes"

    async def again(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        await runner.run(call)
        return await runner.run(call)

    done = await Turn(explicit(seen), around=wrapped(again)).report(call())
    assert (done.output, done.tries, attempts) == (TextOutput("yes"), 2, [1, 2])


async def test_its_time_is_not_the_tools() -> None:
    async def slow(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        await anyio.sleep(0.06)
        return await runner.run(call)

    done = await Turn(explicit(lambda given: "ok", timeout=0.05), around=wrapped(slow)).report(call())
    assert done.status == "ok"
    assert done.duration >= 0.05  # but what the call took is the whole


@pytest.mark.parametrize(("message", "reason"), [("No tools today.", "No tools today."), ("", None)])
async def test_a_policy_that_denies_is_an_outcome_that_the_model_reads(message: str, reason: str | None) -> None:
    async def refuse(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        raise PolicyDenied(message, code="no")

    done = await Turn(ECHO, around=wrapped(refuse)).report(call())
    assert (done.output, done.status, done.tries) == (ExecutionDenied(reason), "denied", 0)


async def test_so_is_one_that_denies_what_the_tool_said() -> None:
    async def refuse(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        await runner.run(call)
        raise PolicyDenied("Not this.", code="no")

    turn = Turn(ECHO, around=wrapped(refuse))
    await turn.answer(call(), call())
    assert turn.outcomes() == ["denied", "denied"]
    assert [one.tries for one in turn.answering] == [1, 1]


async def test_the_denial_of_another_call_such_as_a_judges_is_none_of_this_one() -> None:
    async def judged(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        denied = PolicyDenied("The judge was refused.", code="no")
        denied.final = True
        raise denied

    turn = Turn(ECHO, around=wrapped(judged))
    with pytest.raises(PolicyDenied, match="The judge was refused"):
        await turn.one(call())
    assert turn.outcomes() == ["cancelled"]


async def test_of_several_the_first_is_outermost() -> None:
    journal: list[str] = []

    def noting(name: str) -> Any:
        async def hook(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
            journal.append(f"{name}>")
            outcome = await runner.run(call)
            journal.append(f"{name}<")
            return outcome

        return hook

    await Turn(ECHO, around=wrapped(noting("a"), noting("b"))).one(call())
    assert journal == ["a>", "b>", "b<", "a<"]


async def test_nothing_stands_around_a_call_that_does_not_run() -> None:
    async def never(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        raise AssertionError

    turn = Turn(explicit(len, needs_approval=True), around=wrapped(never))
    await turn.answer(call("unknown"), call("tool", "{"), call("tool"))
    assert turn.outcomes() == ["error", "error", None]


async def test_the_hooks_of_a_pipeline_stand_there() -> None:
    class Stamp(Middleware):
        id = "stamp"

        async def wrap_tool(self, runner: ToolRunner, call: ToolCall) -> ToolOutcome:
            return await runner.run(call.replace(input='{"stamped": true}'))

    model = wrap_model(ScriptedModel(["unused"]), [Stamp()])
    turn = Turn(ECHO, around=around_tools(model, OPTIONS))
    assert (await turn.one(call())).output == JsonOutput({"stamped": True})
