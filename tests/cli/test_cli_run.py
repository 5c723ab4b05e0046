"""`neurolink-mw run`: one prompt through a pipeline, against a server that speaks the real wire format."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import config_for, finish, invoke, json_lines, start
from tests.plugins.distributions import install

from neurolink_mw.cli.exits import exit_code
from neurolink_mw.cli.output import write, write_json
from neurolink_mw.errors import PolicyDenied
from neurolink_mw.testing import wire
from neurolink_mw.testing.wire import openai

HELLO = openai.answer(deltas=["Hel", "lo"], usage=openai.usage(7, 2))


def test_the_answer_goes_to_standard_output_and_everything_else_to_standard_error(tmp_path: Path) -> None:
    with wire.openai_server([HELLO]) as server:
        ran = invoke("run", "--config", config_for(server, tmp_path), "Say hello")
    assert (ran.exit_code, ran.stdout) == (0, "Hello\n")
    assert "waiting for openai-compatible:m" in ran.stderr
    assert "default_settings" in ran.stderr
    assert "ok in " in ran.stderr
    assert "7 tokens in, 2 out" in ran.stderr
    assert server.journal[0].json["messages"] == [{"role": "user", "content": "Say hello"}]


@pytest.mark.parametrize(("flag", "streamed"), [("--stream", True), ("--no-stream", False)])
def test_the_request_is_streamed_unless_told_otherwise(tmp_path: Path, flag: str, streamed: bool) -> None:
    with wire.openai_server([HELLO]) as server:
        ran = invoke("run", "--config", config_for(server, tmp_path), flag, "Say hello")
    assert (ran.exit_code, ran.stdout) == (0, "Hello\n")
    assert server.journal[0].json.get("stream", False) is streamed


@pytest.mark.parametrize("argument", [[], ["-"]])
def test_the_prompt_may_come_on_standard_input(tmp_path: Path, argument: list[str]) -> None:
    with wire.openai_server([HELLO]) as server:
        ran = invoke("run", "--config", config_for(server, tmp_path), *argument, input="Grüße\n")
    assert ran.exit_code == 0
    assert server.journal[0].json["messages"][0]["content"] == "Grüße\n"


@pytest.mark.parametrize(
    ("input", "said"), [("  \n", "the prompt is empty"), (b"\xff\xfe", "standard input is not text")]
)
def test_a_prompt_that_is_none_is_bad_input(tmp_path: Path, input: str | bytes, said: str) -> None:
    with wire.openai_server() as server:
        ran = invoke("run", "--config", config_for(server, tmp_path), input=input)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: {said}")
    assert len(server.journal) == 0


def test_json_of_a_stream_is_one_part_a_line_and_the_outcome(tmp_path: Path) -> None:
    with wire.openai_server([HELLO]) as server:
        ran = invoke("run", "--config", config_for(server, tmp_path), "--json", "Say hello")
    assert (ran.exit_code, ran.stderr) == (0, "")
    *parts, outcome = json_lines(ran.stdout)
    assert [part["delta"] for part in parts if part["type"] == "text-delta"] == ["Hel", "lo"]
    assert parts[-1]["type"] == "finish"
    assert (outcome["type"], outcome["status"], outcome["attempts"]) == ("outcome", "ok", 1)
    assert [member["id"] for member in outcome["record"]["members"]] == ["default_settings"]


def test_json_of_a_whole_answer_is_the_result_and_the_outcome(tmp_path: Path) -> None:
    with wire.openai_server([HELLO]) as server:
        ran = invoke("run", "--config", config_for(server, tmp_path), "--json", "--no-stream", "Say hello")
    result, outcome = json_lines(ran.stdout)
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert (result["type"], result["content"]) == ("result", [{"type": "text", "text": "Hello"}])
    assert outcome["status"] == "ok"


def test_a_tool_call_is_told_beside_the_answer(tmp_path: Path) -> None:
    call = openai.ToolCall("search", {"q": "[bold]x"})
    for flag in ("--stream", "--no-stream"):
        with wire.openai_server([openai.answer("Let me see.", tool_calls=[call])]) as server:
            ran = invoke("run", "--config", config_for(server, tmp_path), flag, "Find it")
        assert (ran.exit_code, ran.stdout) == (0, "Let me see.\n")
        assert 'tool call: search({"q": "[bold]x"})' in ran.stderr


def test_text_is_printed_as_it_arrives(tmp_path: Path) -> None:
    with wire.openai_server([openai.answer(deltas=["Hel", wire.HOLD, "lo"])]) as server:
        program = start("run", "--config", config_for(server, tmp_path), "Say hello")
        assert program.stdout is not None
        assert os.read(program.stdout.fileno(), 100) == b"Hel"  # while the server holds back the rest
        server.release()
        code, out, _ = finish(program)
    assert (code, out) == (0, "lo\n")


# -------------------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize("flag", ["--stream", "--no-stream"])
@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (openai.error(500, "the model is on fire"), "the model is on fire"),
        (openai.error(401, "bad key"), "bad key"),
        (wire.RawReply(body=b"<html>gateway</html>", status=200), "html"),
    ],
    ids=["500", "401", "html"],
)
def test_a_provider_that_fails_before_any_content_is_exit_4(
    tmp_path: Path, flag: str, reply: wire.Reply, said: str
) -> None:
    with wire.openai_server([reply]) as server:
        ran = invoke("run", "--config", config_for(server, tmp_path), flag, "Say hello")
    assert (ran.exit_code, ran.stdout) == (4, "")
    assert "provider failed: " in ran.stderr
    assert said in ran.stderr
    assert "sk-secret-key" not in ran.stderr


def test_a_stream_that_breaks_off_is_exit_4_after_what_had_come(tmp_path: Path) -> None:
    cut = openai.stream_text(["Hel", "lo"], cut_after=500)
    with wire.openai_server([cut]) as server:
        ran = invoke("run", "--config", config_for(server, tmp_path), "Say hello")
    assert (ran.exit_code, ran.stdout) == (4, "Hel\n")
    assert "provider failed: " in ran.stderr
    assert "error in " in ran.stderr


def test_a_failure_is_json_too_where_json_is_asked_for(tmp_path: Path) -> None:
    with wire.openai_server([openai.error(429, "slow down", headers={"retry-after": "7"})]) as server:
        ran = invoke("run", "--config", config_for(server, tmp_path), "--json", "Say hello")
    failure, outcome = json_lines(ran.stdout)
    assert (ran.exit_code, ran.stderr) == (4, "")
    assert (failure["error"]["name"], failure["error"]["statusCode"]) == ("RateLimitError", 429)
    assert outcome["status"] == "error"


def test_nobody_there_is_exit_4(tmp_path: Path) -> None:
    with wire.openai_server() as server:
        config = config_for(server, tmp_path)
    assert invoke("run", "--config", config, "Say hello").exit_code == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"middlewares": ["loging"]}, "there is no middleware 'loging'"),
        ({"model": None}, "this pipeline names no model"),
        ({"model": "openai-compatible:m"}, "openai-compatible:m needs its base_url: set OPENAI_BASE_URL"),
    ],
)
def test_a_bad_configuration_is_exit_2_and_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], said: str
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with wire.openai_server() as server:
        config = config_for(server, tmp_path, **options)
        ran = invoke("run", "--config", config, "Say hello")
        in_json = invoke("run", "--config", config, "--json", "Say hello")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert said in ran.stderr
    assert (in_json.exit_code, in_json.stderr) == (2, "")
    assert said in json_lines(in_json.stdout)[0]["error"]["message"]
    assert len(server.journal) == 0


NO_SECRETS = """
    from neurolink_mw import hookimpl
    from neurolink_mw.roles import RequestPolicy, allow, deny

    class NoSecrets(RequestPolicy):
        def check(self, request):
            return deny("secret", "Keep that to yourself.") if "secret" in request.text else allow()

    @hookimpl
    def register_middlewares(register):
        register(NoSecrets)
"""


@pytest.mark.parametrize("flag", ["--stream", "--no-stream"])
def test_a_refusal_is_an_answer_and_exit_3(tmp_path: Path, flag: str) -> None:
    install(tmp_path, "acme-secrets", NO_SECRETS)
    with wire.openai_server() as server:
        config = config_for(server, tmp_path, middlewares=["no_secrets"])
        code, out, err = finish(start("run", "-c", config, flag, "my secret", PYTHONPATH=str(tmp_path)))
    assert (code, out) == (3, "Keep that to yourself.\n")
    assert "denied in " in err
    assert len(server.journal) == 0


@pytest.mark.parametrize("flag", ["--stream", "--no-stream"])
def test_a_refusal_that_is_raised_is_exit_3_too(tmp_path: Path, flag: str) -> None:
    install(tmp_path, "acme-secrets", NO_SECRETS)
    with wire.openai_server() as server:
        config = config_for(server, tmp_path, middlewares=["no_secrets"], denied="raise")
        code, out, err = finish(start("run", "-c", config, flag, "my secret", PYTHONPATH=str(tmp_path)))
    assert (code, out) == (3, "")
    assert "denied by no_secrets (secret): Keep that to yourself." in err


def test_what_a_policy_refused_is_exit_3_wherever_it_comes_from() -> None:
    assert exit_code(PolicyDenied("no", code="secret")) == 3


def test_base_url_and_key_may_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with wire.openai_server([HELLO]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment")
        ran = invoke("run", "--config", config_for(server, tmp_path, model="openai-compatible:m"), "Say hello")
    assert ran.exit_code == 0
    assert server.journal[0].headers["authorization"] == "Bearer sk-from-environment"


# ------------------------------------------------------------------------------------------------ ends from outside


def test_an_interrupt_closes_the_connection_and_is_exit_130(tmp_path: Path) -> None:
    with wire.openai_server([openai.answer(deltas=["Hel", wire.HOLD, "lo"])]) as server:
        program = start("run", "--config", config_for(server, tmp_path), "Say hello")
        assert program.stdout is not None
        assert os.read(program.stdout.fileno(), 100) == b"Hel"
        program.send_signal(signal.SIGINT)
        code, _, err = finish(program)
        server.journal.wait_until(lambda journal: journal[0].outcome == "client-closed", timeout=5)
    assert code == 130
    assert "Traceback" not in err


def test_an_interrupt_while_nothing_has_come_is_exit_130_too(tmp_path: Path) -> None:
    with wire.openai_server([openai.answer("late", delay=wire.HOLD)]) as server:
        program = start("run", "--config", config_for(server, tmp_path), "Say hello")
        server.journal.wait_until(lambda journal: len(journal) == 1, timeout=20)
        program.send_signal(signal.SIGINT)
        code, out, err = finish(program)
        server.journal.wait_until(lambda journal: journal[0].outcome == "client-closed", timeout=5)
    assert (code, out) == (130, "")
    assert "Traceback" not in err


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_reader_that_has_gone_ends_the_program_quietly(tmp_path: Path, flags: list[str]) -> None:
    with wire.openai_server([openai.answer(deltas=["Hel", wire.HOLD, "lo"])]) as server:
        program = start("run", "--config", config_for(server, tmp_path), *flags, "Say hello")
        assert program.stdout is not None
        assert os.read(program.stdout.fileno(), 100)
        program.stdout.close()
        server.release()
        assert program.stderr is not None
        err = program.stderr.read().decode()
        assert program.wait(timeout=30) == 1
        program.stderr.close()
        assert program.stdin is not None
        program.stdin.close()
    assert "Traceback" not in err
    assert "BrokenPipe" not in err


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_character_that_the_output_cannot_show_is_escaped(tmp_path: Path, flags: list[str]) -> None:
    with wire.openai_server([openai.answer("Grüße")]) as server:
        program = start("run", "--config", config_for(server, tmp_path), *flags, "x", PYTHONIOENCODING="ascii")
        code, out, _ = finish(program)
    assert code == 0
    if flags:
        assert "".join(line.get("delta", "") for line in json_lines(out)) == "Grüße"
    else:
        assert out == "Gr\\xfc\\xdfe\n"


def test_half_a_character_in_an_answer_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    write("a\ud800b")
    write_json({"delta": "a\ud800b"})
    assert capsys.readouterr().out == 'a\\ud800b{"delta": "a\\ud800b"}\n'
