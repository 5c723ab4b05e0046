"""`neurolink-mw run --tools`: a turn through a pipeline, against a server that speaks the real wire format."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import WORD_COUNT, WriteModule, config_for, finish, invoke, json_lines, start
from tests.plugins.distributions import install
from typer.testing import Result

from neurolink_mw.cli.exits import exit_code
from neurolink_mw.errors import PolicyDenied, ServerError, TurnError
from neurolink_mw.testing import wire
from neurolink_mw.testing.wire import openai

COUNT = openai.answer("Let me count.", tool_calls=[openai.ToolCall("word_count", {"text": "one two"})])
TWO = openai.answer("There are two.", usage=openai.usage(20, 7))
BOTH = pytest.mark.parametrize("flag", ["--stream", "--no-stream"])


def asks(tool: str, **arguments: object) -> openai.Answer:
    return openai.answer(tool_calls=[openai.ToolCall(tool, arguments)])


def run(folder: Path, server: wire.ScriptedServer, *flags: object, tools: str = "word_count", **options: Any) -> Result:
    config = config_for(server, folder, **options)
    return invoke("run", "--config", config, "--tools", f"mytools:{tools}", *flags, "How many words?")


def in_order(text: str, *pieces: str) -> bool:
    places = [text.find(piece) for piece in pieces]
    return -1 not in places and places == sorted(places)


# --------------------------------------------------------------------------------------------------- what people read


@BOTH
def test_a_tool_runs_and_its_result_goes_back_to_the_model(
    write_module: WriteModule, tmp_path: Path, flag: str
) -> None:
    write_module(WORD_COUNT)
    with wire.openai_server([COUNT, TWO]) as server:
        assert run(tmp_path, server, flag).exit_code == 0
        first, second = server.journal
    assert first.json["tools"][0]["function"]["name"] == "word_count"
    assert second.json["messages"][-1] == {"role": "tool", "tool_call_id": "call_1", "content": "2"}
    assert [one.json.get("stream", False) for one in (first, second)] == [flag == "--stream"] * 2


@BOTH
def test_the_text_of_each_step_goes_to_standard_output_on_lines_of_its_own(
    write_module: WriteModule, tmp_path: Path, flag: str
) -> None:
    write_module(WORD_COUNT)
    with wire.openai_server([COUNT, TWO]) as server:
        assert run(tmp_path, server, flag).stdout == "Let me count.\nThere are two.\n"


@BOTH
def test_steps_calls_and_results_are_told_on_standard_error_in_their_order(
    write_module: WriteModule, tmp_path: Path, flag: str
) -> None:
    write_module(WORD_COUNT)
    with wire.openai_server([COUNT, TWO]) as server:
        err = run(tmp_path, server, flag).stderr
    assert in_order(
        err,
        "step 1: waiting for openai-compatible:m",
        'tool call: word_count({"text": "one two"})\n',
        "tool result: word_count ok in ",
        ": 2\n",
        "step 2: waiting for openai-compatible:m",
    )


@BOTH
def test_a_call_is_told_before_its_tool_has_run(write_module: WriteModule, tmp_path: Path, flag: str) -> None:
    write_module("def wait() -> str:\n    return open('pipe').read()\n")
    os.mkfifo(tmp_path / "pipe")
    with wire.openai_server([asks("wait"), TWO]) as server:
        program = start("run", "-c", config_for(server, tmp_path), "--tools", "mytools:wait", flag, "x", cwd=tmp_path)
        assert program.stderr is not None
        while not program.stderr.readline().startswith(b"tool call: wait({})"):
            assert program.poll() is None
        (tmp_path / "pipe").write_text("over")
        code, _, err = finish(program)
    assert code == 0
    assert err.startswith("tool result: wait ok in ")
    assert err.splitlines()[0].endswith(": over")


def test_a_long_result_is_told_in_one_line_without_what_a_terminal_would_obey(
    write_module: WriteModule, tmp_path: Path
) -> None:
    write_module("def page() -> str:\n    return 'first\\n\\x1b[31m[bold]' + 'x' * 5000 + '\\nlast'\n")
    with wire.openai_server([asks("page"), TWO]) as server:
        err = run(tmp_path, server, tools="page").stderr
    (line,) = (line for line in err.splitlines() if line.startswith("tool result: "))
    assert ": first [31m[bold]xx" in line
    assert "bytes left out" in line
    assert line.endswith("xx last")
    assert len(line) < 180
    assert "\x1b" not in err


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ("text", "a text"),
        ("data", '{"n":[1,2]}'),
        ("picture", "a chart [image/png of 3 bytes left out]"),
        ("nothing", "null"),
    ],
)
def test_every_kind_of_result_has_its_line(write_module: WriteModule, tmp_path: Path, tools: str, said: str) -> None:
    write_module(
        """
        from neurolink_mw.protocol import OutputImageData, OutputText

        def text() -> str: return "a text"
        def data() -> dict: return {"n": [1, 2]}
        def picture() -> object: return [OutputText("a chart"), OutputImageData(b"png", "image/png")]
        def nothing() -> None: ...
        """
    )
    with wire.openai_server([asks(tools), TWO]) as server:
        err = run(tmp_path, server, tools=tools).stderr
    assert f": {said}\n" in err


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (asks("divide", by=0), "tool result: divide error in "),
        (asks("divide", by=0), "The tool 'divide' failed with ZeroDivisionError"),
        (asks("divide", by="x"), "tool result: divide error: The input does not fit the schema of divide:"),
        (asks("dance"), "tool result: dance error: There is no tool 'dance' here."),
    ],
)
def test_a_call_that_fails_is_told_and_the_turn_goes_on(
    write_module: WriteModule, tmp_path: Path, call: openai.Answer, said: str
) -> None:
    write_module("def divide(by: int) -> float:\n    return 1 / by\n")
    with wire.openai_server([call, TWO]) as server:
        ran = run(tmp_path, server, tools="divide")
    assert (ran.exit_code, ran.stdout) == (0, "There are two.\n")
    assert said in ran.stderr
    assert "1 tool call (1 not ok)" in ran.stderr


def test_a_tool_that_needs_an_approval_is_denied_since_nobody_can_be_asked(
    write_module: WriteModule, tmp_path: Path
) -> None:
    write_module("from neurolink_mw import tool\n\n@tool(needs_approval=True)\ndef delete() -> None: ...\n")
    with wire.openai_server([asks("delete"), TWO]) as server:
        ran = run(tmp_path, server, tools="delete")
    assert ran.exit_code == 0
    assert "tool result: delete denied: Nobody is there to approve it.\n" in ran.stderr


def test_the_report_is_that_of_the_last_step_with_the_totals_of_the_turn(
    write_module: WriteModule, tmp_path: Path
) -> None:
    write_module(WORD_COUNT)
    with wire.openai_server([COUNT, TWO]) as server:
        err = run(tmp_path, server).stderr
    assert err.count("default_settings") == 1
    *_, last, whole = err.splitlines()
    assert last.startswith("last step: ok in ")
    assert last.endswith("1 attempt; 20 tokens in, 7 out")
    assert whole.startswith("whole turn: 2 steps, 1 tool call in ")
    assert whole.endswith("; 30 tokens in, 12 out")


def test_calls_that_were_not_run_since_the_answer_was_cut_are_warned_of(
    write_module: WriteModule, tmp_path: Path
) -> None:
    write_module(WORD_COUNT)
    cut = openai.answer(tool_calls=[openai.ToolCall("word_count", '{"text": "on')], finish_reason="length")
    with wire.openai_server([cut]) as server:
        ran = run(tmp_path, server)
    assert "warning: calls were not run, since the answer was cut: word_count" in ran.stderr


@BOTH
def test_a_turn_ends_at_its_limit_of_steps(write_module: WriteModule, tmp_path: Path, flag: str) -> None:
    write_module(WORD_COUNT)
    with wire.openai_server([COUNT], repeat="all") as server:
        ran = run(tmp_path, server, flag, "--max-steps", 2)
    assert (ran.exit_code, ran.stdout) == (0, "Let me count.\nLet me count.\n")
    assert "whole turn: 2 steps, 2 tool calls in " in ran.stderr
    assert "stopped at the limit of steps; " in ran.stderr
    assert len(server.journal) == 2


# ------------------------------------------------------------------------------------------------ what programs read


def test_json_of_a_streamed_turn_is_its_parts_the_result_and_an_outcome_for_each_step(
    write_module: WriteModule, tmp_path: Path
) -> None:
    write_module(WORD_COUNT)
    with wire.openai_server([COUNT, TWO]) as server:
        ran = run(tmp_path, server, "--json")
    assert (ran.exit_code, ran.stderr) == (0, "")
    *parts, result, first, second = json_lines(ran.stdout)
    assert "".join(part["delta"] for part in parts if part["type"] == "text-delta") == "Let me count.There are two."
    assert [part["result"] for part in parts if part["type"] == "tool-result"] == [2]
    assert parts[-1]["type"] == "finish"
    assert result["type"] == "result"
    assert [(one["type"], one["step"], one["status"]) for one in (first, second)] == [
        ("outcome", 0, "ok"),
        ("outcome", 1, "ok"),
    ]


@BOTH
def test_the_result_in_json_holds_all_that_the_turn_did(write_module: WriteModule, tmp_path: Path, flag: str) -> None:
    write_module(WORD_COUNT)
    with wire.openai_server([COUNT, TWO]) as server:
        ran = run(tmp_path, server, "--json", flag)
    (result,) = (line for line in json_lines(ran.stdout) if line["type"] == "result")
    assert result["content"] == [{"type": "text", "text": "There are two."}]
    assert (result["finishReason"]["unified"], result["stoppedBy"]) == ("stop", "answer")
    assert (result["usage"]["inputTokens"]["total"], result["usage"]["outputTokens"]["total"]) == (30, 12)
    assert [step["toolCalls"] for step in result["steps"]] == [
        [{"toolName": "word_count", "toolCallId": "call_1", "input": {"text": "one two"}}],
        [],
    ]
    (done,) = result["toolExecutions"]
    assert (done["toolName"], done["status"], done["output"]) == ("word_count", "ok", {"type": "json", "value": 2})
    assert [message["role"] for message in result["messages"]] == ["user", "assistant", "tool", "assistant"]


def test_json_of_a_turn_that_is_not_streamed_is_the_result_and_the_outcomes_alone(
    write_module: WriteModule, tmp_path: Path
) -> None:
    write_module(WORD_COUNT)
    with wire.openai_server([COUNT, TWO]) as server:
        ran = run(tmp_path, server, "--json", "--no-stream")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert [line["type"] for line in json_lines(ran.stdout)] == ["result", "outcome", "outcome"]


# -------------------------------------------------------------------------------------------------------- failures


@BOTH
def test_a_provider_that_fails_at_a_later_step_is_exit_4_with_what_was_done(
    write_module: WriteModule, tmp_path: Path, flag: str
) -> None:
    write_module(WORD_COUNT)
    with wire.openai_server([COUNT, openai.error(401, "bad key")]) as server:
        ran = run(tmp_path, server, flag)
    assert ran.exit_code == 4
    assert in_order(
        ran.stderr,
        "tool result: word_count ok",
        "provider failed: HTTP 401: bad key\n",
        "provider failed: the turn ended there, with 1 step done\n",
        "last step: error in ",
        "whole turn: 1 step, 1 tool call in ",
        "not finished; 10 tokens in, 5 out",
    )


@BOTH
def test_a_turn_that_failed_says_in_json_why_and_what_to_go_on_from(
    write_module: WriteModule, tmp_path: Path, flag: str
) -> None:
    write_module(WORD_COUNT)
    with wire.openai_server([COUNT, openai.error(401, "bad key")]) as server:
        ran = run(tmp_path, server, flag, "--json")
    assert (ran.exit_code, ran.stderr) == (4, "")
    lines = json_lines(ran.stdout)
    (error,) = (line["error"] for line in lines if "error" in line and line.get("type", "error") == "error")
    assert (error["name"], error["cause"]["name"], error["cause"]["statusCode"]) == (
        "TurnError",
        "AuthenticationError",
        401,
    )
    result, *outcomes = lines[-3:]
    assert (result["type"], result["stoppedBy"], len(result["steps"])) == ("result", "error", 1)
    assert [message["role"] for message in result["messages"]] == ["user", "assistant", "tool"]
    assert [outcome["status"] for outcome in outcomes] == ["ok", "error"]


@BOTH
def test_a_provider_that_fails_at_the_first_step_has_done_no_turn(
    write_module: WriteModule, tmp_path: Path, flag: str
) -> None:
    write_module(WORD_COUNT)
    with wire.openai_server([openai.error(401, "bad key")]) as server:
        ran = run(tmp_path, server, flag)
        in_json = run(tmp_path, server, flag, "--json")
    assert (ran.exit_code, ran.stdout) == (4, "")
    assert "provider failed: HTTP 401: bad key" in ran.stderr
    assert "turn" not in ran.stderr
    assert [line.get("type") for line in json_lines(in_json.stdout)] == [None, "outcome"]


@pytest.mark.parametrize(
    ("cause", "code"),
    [(ServerError("down"), 4), (PolicyDenied("no", code="secret"), 3), (ValueError("odd"), 2), (None, 2)],
)
def test_the_code_of_a_turn_that_failed_is_that_of_its_cause(cause: Exception | None, code: int) -> None:
    error = TurnError("step 1 of the turn failed")
    error.__cause__ = cause
    assert exit_code(error) == code


@BOTH
def test_an_interrupt_does_not_wait_for_a_tool_that_runs(write_module: WriteModule, tmp_path: Path, flag: str) -> None:
    write_module(
        "import sys\n\ndef wait() -> str:\n    print('running', file=sys.stderr)\n    return open('pipe').read()\n"
    )
    os.mkfifo(tmp_path / "pipe")
    with wire.openai_server([asks("wait")]) as server:
        program = start("run", "-c", config_for(server, tmp_path), "--tools", "mytools:wait", flag, "x", cwd=tmp_path)
        assert program.stderr is not None
        while program.stderr.readline() != b"running\n":
            assert program.poll() is None
        program.send_signal(signal.SIGINT)
        code, out, err = finish(program)
    assert (code, out) == (130, "")
    assert "Traceback" not in err


# ------------------------------------------------------------------------------------- the pipeline around the steps

MEMBERS = """
    import sys

    from neurolink_mw import Middleware, hookimpl
    from neurolink_mw.protocol import TextOutput
    from neurolink_mw.roles import ResponsePolicy, allow, deny

    class Numbers(ResponsePolicy):
        def check(self, view):
            return deny("number", "I count for nobody.") if "two" in view.text else allow()

    class Mask(Middleware):
        async def wrap_tool(self, tool, call):
            outcome = await tool.run(call)
            return outcome.replace(output=TextOutput("masked"))

    class Faulty(Middleware):
        async def wrap_tool(self, tool, call):
            raise LookupError("no disk")

    @hookimpl
    def register_middlewares(register):
        register(Numbers)
        register(Mask)
        register(Faulty)

    @hookimpl
    def on_event(event):
        if event.type in ("step-ended", "tool-executed"):
            print("heard", event.type, file=sys.stderr)
"""


def run_with(
    member: str, folder: Path, replies: list[openai.Answer], *flags: str, **options: Any
) -> tuple[int, str, str]:
    install(folder, "acme-members", MEMBERS)
    with wire.openai_server(replies) as server:
        config = config_for(server, folder, middlewares=[member], **options)
        args = ("run", "-c", config, "--tools", "mytools:word_count", *flags, "x")
        return finish(start(*args, cwd=folder, PYTHONPATH=str(folder)))


@BOTH
@pytest.mark.parametrize(
    ("denied", "told"), [("refuse", "denied in "), ("raise", "denied by numbers (number): I count")]
)
def test_a_step_that_a_policy_denies_is_exit_3(
    write_module: WriteModule, tmp_path: Path, flag: str, denied: str, told: str
) -> None:
    write_module(WORD_COUNT)
    call = openai.answer("Let me count.", tool_calls=[openai.ToolCall("word_count", {"text": "one"})])
    code, out, err = run_with("numbers", tmp_path, [call, TWO], flag, denied=denied)
    assert code == 3
    assert told in err
    assert "two" not in out
    assert ("I count for nobody." in out) is (denied == "refuse")
    assert "tool result: word_count ok" in err


@BOTH
def test_a_tool_call_that_a_policy_denies_is_told_and_the_turn_goes_on(
    write_module: WriteModule, tmp_path: Path, flag: str
) -> None:
    write_module(WORD_COUNT)
    code, out, err = run_with("numbers", tmp_path, [COUNT, openai.answer("As you like.")], flag)
    assert (code, out) == (0, "Let me count.\nAs you like.\n")
    assert "tool result: word_count denied: I count for nobody.\n" in err


@BOTH
def test_what_the_pipeline_puts_around_tools_stands_around_these(
    write_module: WriteModule, tmp_path: Path, flag: str
) -> None:
    write_module(WORD_COUNT)
    code, _, err = run_with("mask", tmp_path, [COUNT, TWO], flag)
    assert (code, ": masked\n" in err) == (0, True)
    assert [line for line in err.splitlines() if line.startswith("heard")] == [
        "heard tool-executed",
        "heard step-ended",
        "heard step-ended",
    ]


@BOTH
def test_a_member_that_fails_around_a_tool_ends_the_turn_with_its_error(
    write_module: WriteModule, tmp_path: Path, flag: str
) -> None:
    write_module(WORD_COUNT)
    code, _, err = run_with("faulty", tmp_path, [COUNT, TWO], flag)
    assert code == 2
    assert "error: LookupError: no disk\n" in err
    assert "Traceback" not in err
