"""Input that cannot be used is an error that the model can act on. The tool does not run, and its input is never
taken for an empty one."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, field_validator, model_validator

from neurolink_mw.protocol import ErrorTextOutput, JsonOutput, TextOutput, ToolCall, ToolOutcome, ToolRunner
from neurolink_mw.tools import Tool, parsed_or_text, tool

from .builders import Turn, call, explicit, failed, said, text_of, wrapped

pytestmark = pytest.mark.anyio

AGE = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}


class Range(BaseModel):
    low: int
    high: int

    @field_validator("low")
    @classmethod
    def _is_small(cls, low: int) -> int:
        if low > 100:
            raise ValueError("low is at most 100")
        return low

    @model_validator(mode="after")
    def _in_order(self) -> Range:
        if self.low > self.high:
            raise ValueError("low comes before high")
        return self


class Fragile(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        return {"a": "A"}[name]


class Noted:
    """A tool's function that notes what it got."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def __call__(self, given: object) -> str:
        self.seen.append(given)
        return "ran"


INVALID = ["{", "{'city': 'Oslo'}", '{"a": 1', "nonsense", '{"a": NaN}', '{"a": 1}}', '{"a": "\ud800"}', "[" * 5000]


@pytest.mark.parametrize("text", INVALID)
async def test_invalid_json_is_an_error_and_the_tool_does_not_run(text: str) -> None:
    noted = Noted()
    said = await failed(explicit(noted), text)
    assert said.startswith("The input is not valid JSON (")
    assert said.endswith("Call the tool again with one JSON object.")
    assert noted.seen == []


@pytest.mark.parametrize("text", ["", "  ", "\n\t"])
async def test_no_text_is_an_object_with_nothing_in_it(text: str) -> None:
    noted = Noted()
    assert (await said(explicit(noted), text)).output == TextOutput("ran")
    assert noted.seen == [{}]


@pytest.mark.parametrize("text", ["[1]", '"x"', "5", "null"])
async def test_json_that_is_no_object_is_an_error(text: str) -> None:
    noted = Noted()
    assert "- input: must be an object" in await failed(explicit(noted), text)
    assert noted.seen == []


async def test_what_does_not_fit_the_schema_is_listed() -> None:
    noted = Noted()
    schema = {
        "type": "object",
        "properties": {"age": {"type": "integer"}, "on": {"type": "boolean"}},
        "required": ["x"],
    }
    lines = (await failed(explicit(noted, input_schema=schema), {"age": "old", "on": 3})).splitlines()
    assert lines[0] == "The input does not fit the schema of tool:"
    assert sorted(line.split(":")[0] for line in lines[1:]) == ["- input", "- input.age", "- input.on"]
    assert noted.seen == []


async def test_of_very_many_problems_the_first_are_listed() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    text = await failed(explicit(Noted(), input_schema=schema), {f"k{index}": "x" for index in range(50)})
    assert 10 <= len(text.splitlines()) <= 12


async def test_what_only_a_pydantic_model_knows_is_listed_too() -> None:
    made = explicit(Noted(), input_schema=Range)
    assert "- low: Value error, low is at most 100" in await failed(made, {"low": 200, "high": 300})
    assert "- input: Value error, low comes before high" in await failed(made, {"low": 9, "high": 3})


async def test_in_the_names_of_a_functions_parameters() -> None:
    @tool
    def count(between: Range) -> None: ...

    text = await failed(count, {"between": {"low": 200, "high": 300}})
    assert "- between.low: Value error, low is at most 100" in text


async def test_many_problems_that_only_a_pydantic_model_knows_are_cut() -> None:
    @tool
    def count(ranges: list[Range]) -> None: ...

    text = await failed(count, {"ranges": [{"low": 200, "high": 300}] * 15})
    assert text.splitlines()[-1] == "- and 5 more"
    assert len(text.splitlines()) == 12


async def test_a_validator_that_fails_itself_is_an_error_of_that_input() -> None:
    noted = Noted()
    assert "- input: cannot be read: KeyError" in await failed(explicit(noted, input_schema=Fragile), {"name": "b"})
    assert noted.seen == []


async def test_an_unknown_tool_is_an_error_that_names_those_there_are() -> None:
    turn = Turn(explicit(Noted(), "a"), explicit(Noted(), "b"))
    outcome = await turn.one(call("c"))
    assert outcome == ToolOutcome(ErrorTextOutput("There is no tool 'c' here. The available tools are: a, b."), "error")


async def test_where_there_is_none_it_says_so() -> None:
    outcome = await Turn().one(call("c"))
    assert outcome.output == ErrorTextOutput("There is no tool 'c' here. No tool is available now.")


async def test_a_tool_that_the_step_was_not_told_of_does_not_run() -> None:
    noted = Noted()
    turn = Turn(explicit(noted, "a"), explicit(noted, "b"))
    outcome = await turn.one(call("a"), available=["b"])
    assert outcome.output == ErrorTextOutput("There is no tool 'a' here. The available tools are: b.")
    assert noted.seen == []


@pytest.mark.parametrize("turn", [lambda: Turn(Tool(name="a")), Turn], ids=["no-execute", "only-declared"])
async def test_a_tool_that_nothing_stands_behind_is_an_error(turn: Any) -> None:
    outcome = await turn().one(call("a"), available=["a"])
    assert outcome.output == ErrorTextOutput(
        "The tool 'a' cannot be run here: nothing stands behind it. Go on without it."
    )


async def test_the_other_calls_run() -> None:
    noted = Noted()
    turn = Turn(explicit(noted))
    await turn.answer(call("unknown"), call("tool", "{"), call("tool", {"a": 1}), call("tool", "[]"))
    assert turn.outcomes() == ["error", "error", "ok", "error"]
    assert noted.seen == [{"a": 1}]


async def test_a_refused_call_is_recorded_as_the_model_wrote_it_and_as_not_run() -> None:
    turn = Turn(explicit(Noted(), input_schema=AGE))
    broken, misfit = await turn.answer(call("tool", '{"age": '), call("tool", {"age": "x"}))
    assert (broken.report().input, broken.report().tries, broken.report().status) == ('{"age": ', 0, "error")
    assert (misfit.report().input, misfit.report().tries) == ({"age": "x"}, 0)


async def test_an_input_that_a_middleware_changes_is_checked_again() -> None:
    async def change(runner: ToolRunner, call: ToolCall) -> ToolOutcome:
        return await runner.run(call.replace(input=changes.pop()))

    noted = Noted()
    turn = Turn(explicit(noted, input_schema=AGE), around=wrapped(change))
    changes = ['{"age": 5}']
    assert (await turn.one(call("tool", {"age": 4}))).status == "ok"
    for text, problem in (('{"age": "x"}', "input.age"), ("{", "not valid JSON")):
        changes = [text]
        assert problem in text_of((await turn.one(call("tool", {"age": 4}))).output)
    assert noted.seen == [{"age": 5}]


@pytest.mark.parametrize(
    ("text", "read"), [('{"a": 1}', {"a": 1}), ("", {}), ("{", "{"), ("[1]", [1]), (f"{2**80}", 2**80)]
)
def test_for_the_conversation_it_is_parsed_where_it_is_json(text: str, read: object) -> None:
    assert parsed_or_text(text) == read


async def test_what_is_given_is_json_again() -> None:
    assert (await said(explicit(lambda given: given), {"a": [1, None, "é"]})).output == JsonOutput(
        {"a": [1, None, "é"]}
    )
