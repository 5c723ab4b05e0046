"""What stands around a turn, and what its caller gets of what it did."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.loop.builders import ASKED, call, check_paired, look, says, script, working

from neurolink_mw import CallOptions, GenerateResult, Middleware, generate, stream, to_json, wrap_model
from neurolink_mw.api import Generated
from neurolink_mw.errors import ConfigError
from neurolink_mw.loop import TurnModel
from neurolink_mw.protocol import (
    CallWarning,
    File,
    FinishReason,
    FunctionTool,
    LanguageModel,
    Reasoning,
    Source,
    StreamResult,
    Text,
    ToolCall,
    Usage,
)
from neurolink_mw.roles import RegexTransform, RequestPolicy, ResponsePolicy, Verdict, View, allow, deny, replace

pytestmark = pytest.mark.anyio

Ask = Callable[..., Awaitable[Generated[Any]]]


async def streamed(*arguments: Any, **named: Any) -> Generated[Any]:
    async with stream(*arguments, **named) as turn:
        return await turn.result()


both_ways = pytest.mark.parametrize("ask", [generate, streamed])


class NoBombs(ResponsePolicy):
    """Judges what all steps say together."""

    id = "no_bombs"

    def check(self, view: View) -> Verdict:
        return deny("bomb", "Not that.") if "bomb" in view.text else allow()


class Stars(ResponsePolicy):
    id = "stars"

    def check(self, view: View) -> Verdict:
        return replace(view.text.replace("bomb", "***")) if "bomb" in view.text else allow()


class Everything(RequestPolicy):
    """Something at the steps, so that a policy around the turn is no mistake."""

    judges = frozenset({"output"})

    def check(self, request: object) -> Verdict:
        return allow()


def around(*members: Any) -> dict[str, Any]:
    return {"middlewares": [Everything()], "turn_middlewares": list(members)}


def texts(result: Generated[Any]) -> str:
    return str([to_json(one) for one in (*result.messages, *result.content, *result.steps)])


deletion = working("delete", lambda given: pytest.fail("it ran"), needs_approval=True)


@both_ways
async def test_a_call_of_a_refused_turn_is_offered_to_nobody(ask: Ask) -> None:
    model = script(says("A bo", call("c0")), says("mb.", call("c1", "delete")))
    result = await ask(model, "Hi", tools=[look, deletion], **around(NoBombs()))
    assert (result.text, result.stopped_by, result.approvals) == ("Not that.", "answer", ())
    check_paired(result.messages)
    assert "mb." not in texts(result)


@both_ways
@pytest.mark.parametrize("member", [Stars, lambda: RegexTransform("bomb", "***")])
async def test_a_text_that_is_replaced_is_the_answer_and_in_the_conversation(ask: Ask, member: Any) -> None:
    model = script(says("Let me look.", call("c1")), says("It is a bomb."))
    result = await ask(model, "Hi", tools=[look], **around(member()))
    assert "It is a ***." in result.text
    assert "bomb" not in texts(result)
    check_paired(result.messages)
    assert result.messages[-1].role == "assistant" or result.messages[-1].role == "tool"


@both_ways
async def test_a_changed_turn_that_waits_for_an_approval_can_be_gone_on_with(ask: Ask) -> None:
    ran: list[object] = []
    guarded = working("delete", lambda given: ran.append(given), needs_approval=True)
    model = script(says("I will bomb it.", call("c1", "delete")), "Done.")
    first = await ask(model, "Hi", tools=[guarded], **around(RegexTransform("bomb", "***")))
    (pending,) = first.approvals
    assert first.stopped_by == "approval"
    second = await ask(model, messages=[*first.messages, pending.approve()], tools=[guarded])
    assert len(ran) == 1
    prompt = model.calls[1].options.prompt
    check_paired(prompt)
    assert prompt[-1].role == "tool"
    assert second.text == "Done."


class Changes(Middleware):
    """Changes the whole answer of a turn, and its parts by way of that."""

    def __init__(self, change: Callable[[GenerateResult], GenerateResult]) -> None:
        super().__init__()
        self.change = change

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return self.change(await model.do_generate(options))

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        return StreamResult.of(self.change(await model.do_generate(options)))


@both_ways
async def test_whatever_is_changed_of_the_answer_is_changed(ask: Ask) -> None:
    def without_files(answer: GenerateResult) -> GenerateResult:
        kept = [one for one in answer.content if not isinstance(one, File)]
        warning = CallWarning("other", message="no files")
        return answer.replace(content=[*kept, Source("url", "s1", url="https://x")], warnings=[warning])

    model = script(says("Here.", File("image/png", b"secret")))
    result = await ask(model, "Hi", **around(Changes(without_files)))
    assert [one.type for one in result.content] == ["text", "source"]
    assert [one.message for one in result.warnings] == ["no files"]
    assert [part.type for part in result.messages[-1].content] == ["text"]  # type: ignore[union-attr]  # an assistant's


@both_ways
async def test_what_is_said_of_an_unchanged_answer_is_said(ask: Ask) -> None:
    def dear(answer: GenerateResult) -> GenerateResult:
        return answer.replace(usage=Usage(raw=1), finish_reason=FinishReason("other", "mine"))

    result = await ask(script(says("Let me look.", call()), says("done")), "Hi", tools=[look], **around(Changes(dear)))
    assert (result.text, result.usage.raw, result.finish_reason.raw) == ("done", 1, "mine")
    assert [step.text for step in result.steps] == ["Let me look.", "done"]


@both_ways
async def test_files_of_a_refused_turn_are_nowhere(ask: Ask) -> None:
    model = script(says("Look:", File("image/png", b"secret"), call("c0")), says("a bomb"))
    result = await ask(model, "Hi", tools=[look], **around(NoBombs()))
    assert all(part.type != "file" for message in result.messages for part in message.content)  # type: ignore[union-attr]
    assert all(step.content == () for step in result.steps)


class HidesInput(ResponsePolicy):
    id = "hides_input"

    def check(self, view: View) -> Verdict:
        return replace('{"at": "***"}') if view.tool_call is not None and "secret" in view.text else allow()


@both_ways
@pytest.mark.parametrize("where", ["middlewares", "turn_middlewares"])
async def test_an_input_that_a_policy_replaced_is_told_by_nobody(ask: Ask, where: str) -> None:
    model = script(says(call(at="secret")), says("done"))
    members = {"middlewares": [Everything()], where: [HidesInput()]}
    result = await ask(model, "Hi", tools=[look], **members)
    assert result.tool_executions[0].input == {"at": "***"}
    assert getattr(result.tool_executions[0].output, "value", "") == "saw ***"
    assert "secret" not in texts(result)
    assert "secret" not in str(to_json(model.calls[1].options))


class First(Middleware):
    """Runs the turn twice, and gives the first answer."""

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        first = await model.do_generate(options)
        await model.do_generate(options)
        return first


async def test_of_several_runs_that_counts_whose_answer_came_out() -> None:
    model = script(says(call("c1")), says("first"), says("second"))
    result = await generate(model, "Hi", tools=[look], turn_middlewares=[First()])
    assert (result.text, len(result.steps), len(result.tool_executions)) == ("first", 2, 1)


@both_ways
async def test_reasoning_stays_where_the_text_alone_was_rewritten(ask: Ask) -> None:
    model = script(says(Reasoning("Hm."), "a bomb"))
    result = await ask(model, "Hi", **around(RegexTransform("bomb", "***")))
    assert (result.text, result.reasoning_text) == ("a ***", "Hm.")


@both_ways
async def test_what_stands_around_the_turn_is_built_once(ask: Ask) -> None:
    bound: list[object] = []

    class Counts(Middleware):
        def bind(self, build: object) -> None:
            bound.append(build)

    member, model = Counts(), script("one", "two")
    assert [(await ask(model, "Hi", turn_middlewares=[member])).text for _ in range(2)] == ["one", "two"]
    assert len(bound) == 1


class Asks(Middleware):
    """Asks the turn with options of its own."""

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return await model.do_generate(CallOptions(options.prompt))


def _anew(options: CallOptions) -> CallOptions:
    return CallOptions(options.prompt)


class AsksElsewhere(Middleware):
    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        return await model.do_generate(_anew(options))


async def test_options_that_nobody_can_place_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"use options.replace"):
        await generate(script("done"), "Hi", tools=[look], turn_middlewares=[AsksElsewhere()])


async def test_options_made_from_scratch_are_of_the_same_turn() -> None:
    result = await generate(script(says(call()), "done"), "Hi", tools=[look], turn_middlewares=[Asks()])
    assert (result.text, len(result.steps)) == ("done", 2)


@both_ways
async def test_a_denied_call_leaves_the_rest_of_the_result_as_it_was(ask: Ask) -> None:
    class NoLooking(ResponsePolicy):
        sees = ("tool_input",)

        def check(self, view: View) -> Verdict:
            return deny("no-looking", "Do not look.")

    model = script(says("Let me look.", call("c1")), says("I may not."))
    result = await ask(model, "Hi", tools=[look], turn_middlewares=[NoLooking()])
    assert [step.text for step in result.steps] == ["Let me look.", "I may not."]
    assert [one.status for one in result.tool_executions] == ["denied"]
    check_paired(result.messages)


async def test_a_turn_within_the_turn_keeps_its_own_settings() -> None:
    inner = TurnModel(script(says(call("c1", at="inside")), "inner"), [look])
    result = await generate(inner, "Hi", turn_middlewares=[RegexTransform("zebra", "ox")])
    assert result.text.endswith("inner")
    assert [one.role for one in result.messages] == ["user", "assistant", "tool", "assistant"]
    check_paired(result.messages)


async def test_the_finish_of_a_refused_step_keeps_its_mark() -> None:
    class No(ResponsePolicy):
        def check(self, view: View) -> Verdict:
            return deny("no", "No.")

    answer = await TurnModel(wrap_model(script("x"), [No()]), []).do_generate(ASKED)
    assert (answer.provider_metadata or {})["neurolink_mw"] == {
        "denied": "no",
        "by": "no",
        "turn": {"steps": 1, "stopped_by": "answer"},
    }
    assert answer.content == (Text("No."),)
    assert not any(isinstance(one, ToolCall) for one in answer.content)


class OneTool(Middleware):
    """Lets the model have the first tool alone, and calls it something else."""

    async def transform_params(self, options: CallOptions, kind: object, model: object) -> CallOptions:
        first = (options.tools or ())[0]
        assert isinstance(first, FunctionTool)
        return options.replace(tools=[first.replace(description="Looks about.")])


@both_ways
async def test_a_middleware_of_the_turn_says_which_tools_the_model_is_told_of_and_how(ask: Ask) -> None:
    model = script(says(call()), says("Done."))
    wipe = working("wipe", lambda given: pytest.fail("it ran"))
    result = await ask(model, ASKED.prompt, tools=[look, wipe], turn_middlewares=[OneTool()])
    for step in (0, 1):
        told = model.calls[step].options.tools or ()
        assert [(tool.name, tool.description) for tool in told if isinstance(tool, FunctionTool)] == [
            ("look", "Looks about.")
        ]
    assert [one.status for one in result.tool_executions] == ["ok"]


@both_ways
async def test_a_tool_that_a_middleware_of_the_turn_took_out_is_not_run(ask: Ask) -> None:
    wipe = working("wipe", lambda given: pytest.fail("it ran"))
    model = script(says(call("c1", "wipe")), says("Done."))
    result = await ask(model, ASKED.prompt, tools=[look, wipe], turn_middlewares=[OneTool()])
    assert [(one.tool_name, one.status) for one in result.tool_executions] == [("wipe", "error")]
