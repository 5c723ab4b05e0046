"""`demo`, `explain`, `check`, `plugins`, `schema`, and the commands that plugins add."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import jsonschema_rs
import pytest
from tests.cli.commands import config_for, finish, invoke, json_lines, start
from tests.plugins.distributions import GREETER, install

from neurolink_mw.testing import wire


def written(folder: Path, config: object) -> Path:
    path = folder / "pipeline.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return path


# ------------------------------------------------------------------------------------------------------------ demo


def test_the_demo_needs_nothing_and_shows_what_three_built_ins_did() -> None:
    nowhere = "http://127.0.0.1:9"
    code, out, err = finish(start("demo", HTTP_PROXY=nowhere, ALL_PROXY=nowhere))
    assert code == 0
    assert "It stands around every call to a model" in out
    assert all(f"{id} " in err for id in ("logging", "lifecycle", "default_settings"))
    assert "[neurolink_mw.calls] stream openai-compatible:recorded ok" in err
    assert "[lifecycle] it ended ok after" in err
    assert err.endswith("the server saw 3 requests, all of them streamed\n")


def test_the_demo_shows_a_turn_of_two_steps_whose_answer_is_what_the_tool_said() -> None:
    code, out, err = finish(start("demo"))
    assert code == 0
    shown = [
        "step 1: waiting",
        "tool call: members({})",
        "tool result: members ok in",
        "step 2: waiting",
        "whole turn: 2",
    ]
    assert [err.find(line) for line in shown] == sorted(err.find(line) for line in shown)
    assert '["logging","lifecycle","default_settings"]' in err
    assert out.endswith(
        "There are logging, lifecycle and default_settings: each of them saw both steps of this turn.\n"
    )


# --------------------------------------------------------------------------------------------------------- explain


def test_explain_prints_the_chain_in_both_directions(tmp_path: Path) -> None:
    with wire.openai_server() as server:
        config = config_for(server, tmp_path, preset="observe", disable=["lifecycle"])
        ran = invoke("explain", "--config", config)
        in_json = invoke("explain", "--config", config, "--json")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert "request:  caller -> logging -> default_settings -> openai-compatible:m" in ran.stdout
    assert "response: openai-compatible:m -> default_settings -> logging -> caller" in ran.stdout
    assert "sk-secret-key" not in ran.stdout + in_json.stdout
    (explained,) = json_lines(in_json.stdout)
    assert explained["requestOrder"] == ["logging", "default_settings", "openai-compatible:m"]
    assert len(server.journal) == 0


def test_a_pipeline_without_a_model_can_be_explained(tmp_path: Path) -> None:
    ran = invoke("explain", "-c", written(tmp_path, {"preset": "observe"}))
    assert (ran.exit_code, ran.stdout.splitlines()[0]) == (0, "request:  caller -> logging -> (any model)")


def test_explain_says_what_a_place_does_and_how_streams_are_judged(tmp_path: Path) -> None:
    source = """
        from neurolink_mw import hookimpl
        from neurolink_mw.roles import ResponsePolicy, Window, allow

        class Tone(ResponsePolicy):
            streaming = Window(200)
            allow_partial_release = True

            def check(self, view):
                return allow()

        @hookimpl
        def register_middlewares(register):
            register(Tone)
    """
    install(tmp_path, "acme-tone", source)
    path = written(tmp_path, {"middlewares": [{"id": "tone", "mode": "shadow", "timeout": 0.5}]})
    code, out, err = finish(start("explain", "-c", path, PYTHONPATH=str(tmp_path)))
    assert (code, err) == (0, "")
    assert "mode shadow" in out
    assert "at most 0.5 s of its own time" in out
    assert "text may leave before the verdict" in out
    code, out, err = finish(start("explain", "-c", path, "--json", PYTHONPATH=str(tmp_path)))
    (member,) = json.loads(out)["members"]
    assert member["rules"].startswith("streaming Window(")


def test_a_bad_configuration_cannot_be_explained(tmp_path: Path) -> None:
    ran = invoke("explain", "--config", written(tmp_path, {"preset": "obs"}), "--json")
    assert ran.exit_code == 2
    assert "there is no preset 'obs'" in json_lines(ran.stdout)[0]["error"]["message"]


# ----------------------------------------------------------------------------------------------------------- check


def test_check_says_that_a_configuration_is_good(tmp_path: Path) -> None:
    config = written(tmp_path, {"preset": "observe"})
    ran = invoke("check", "--config", config)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, f"{config}: ok\n", "")
    assert json_lines(invoke("check", "--config", config, "--json").stdout) == [
        {"ok": True, "faults": [], "warnings": []}
    ]


def test_check_tells_every_fault_on_a_line_of_its_own(tmp_path: Path) -> None:
    config = written(tmp_path, {"preset": "obs", "middlewares": ["loging", {"id": "logging", "config": {"x": 1}}]})
    ran = invoke("check", "--config", config)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert [line.split(": ")[2] for line in ran.stderr.splitlines()] == [
        "preset",
        "middlewares[0].id",
        "middlewares[1].config.x",
    ]
    in_json = invoke("check", "--config", config, "--json")
    (report,) = json_lines(in_json.stdout)
    assert (in_json.exit_code, in_json.stderr, report["ok"], len(report["faults"])) == (2, "", False, 3)


ODD_ORDER = """
    from neurolink_mw import Middleware, Stage, hookimpl
    from neurolink_mw.roles import RequestPolicy, allow

    class Keep(Middleware):
        stage = Stage.CACHE
        may_answer = True

    class Judge(RequestPolicy):
        stage = Stage.PROVIDER

        def check(self, request):
            return allow()

    @hookimpl
    def register_middlewares(register):
        register(Keep)
        register(Judge)
"""
BY_PASSED = "Middleware 'keep' may answer and sits outside the policy 'judge', which would not see those calls"
REMEDY = "move 'judge' further out, or set keep.after = [\"judge\"]"


@pytest.mark.parametrize("around", ["a model", "no model"])
def test_check_tells_an_order_that_is_plainly_wrong(tmp_path: Path, around: str) -> None:
    install(tmp_path, "acme-odd-order", ODD_ORDER)
    with wire.openai_server() as server:
        model = {
            "model": {"provider": "openai-compatible", "model_id": "m", "base_url": server.base_url, "api_key": "k"}
        }
        config = {"middlewares": ["keep", "judge"], **(model if around == "a model" else {})}

        def checked(*flags: str, **more: object) -> tuple[int, str, str]:
            path = written(tmp_path, {**config, **more})
            return finish(start("check", "-c", path, *flags, PYTHONPATH=str(tmp_path)))

        path = tmp_path / "pipeline.json"
        assert checked() == (2, "", f"error: {path}: {BY_PASSED}: {REMEDY}\n")
        assert checked(lint="warn") == (0, f"{path}: ok\n", f"warning: {path}: {BY_PASSED}: {REMEDY}\n")
        assert checked(lint="off") == (0, f"{path}: ok\n", "")
        code, out, err = checked("--json", lint="warn")
    assert (code, err) == (0, "")
    warning = {"rule": "answers-past-a-policy", "members": ["keep", "judge"], "message": BY_PASSED, "fix": REMEDY}
    assert json.loads(out) == {"ok": True, "faults": [], "warnings": [warning]}


def test_members_for_different_models_are_not_judged_by_their_order_before_there_is_one(tmp_path: Path) -> None:
    install(tmp_path, "acme-odd-order", ODD_ORDER)
    members = [{"id": "keep", "when": {"model": "small-*"}}, {"id": "judge", "when": {"model": "big-*"}}]
    path = written(tmp_path, {"middlewares": members})
    assert finish(start("check", "-c", path, PYTHONPATH=str(tmp_path))) == (0, f"{path}: ok\n", "")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("p.json", "{\n]", "p.json, line 2, column 1: this is not JSON"),
        ("p.toml", "a =\n", "p.toml: this is not TOML: Invalid value (at line 1"),
        ("p.yaml", "a: [", "p.yaml, line 1, column 5: this is not YAML"),
        ("p.ini", "", "p.ini: a configuration is a file that ends in .toml, .json, .yaml, .yml"),
        ("p.json", '{"middlewares": ["logging", "logging"]}', "p.json: middlewares[1]: 'logging' stands twice"),
        (
            "p.json",
            '{"middlewares": [{"id": "logging", "before": ["lifecycle"], "after": ["lifecycle"]}, "lifecycle"]}',
            "p.json: these members cannot all stand as asked: logging is inside lifecycle is inside logging",
        ),
        ("p.json", '{"plugins": ["acme_nowhere"]}', "p.json: plugins: plugin 'acme_nowhere' cannot be imported"),
        (
            "p.json",
            '{"model": "acme:x"}',
            "p.json: model: there is no provider 'acme' (allowed: anthropic, bedrock, openai-compatible)",
        ),
        (
            "p.json",
            '{"middlewares": [{"id": "default_settings", "config": {"seed": "${ENV:ACME_GONE}"}}]}',
            "p.json: middlewares[0].config.seed: the environment variable ACME_GONE is not set",
        ),
    ],
)
@pytest.mark.parametrize("command", ["check", "explain", "run"])
def test_bad_input_is_one_sentence_and_exit_2(tmp_path: Path, command: str, name: str, text: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    ran = invoke(command, "--config", path, *(["Hello"] if command == "run" else []))
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: {tmp_path}/{said}")
    assert len(ran.stderr.splitlines()) == 1


def test_a_missing_file_is_exit_2(tmp_path: Path) -> None:
    ran = invoke("check", "--config", tmp_path / "gone.toml")
    assert (ran.exit_code, ran.stderr) == (2, f"error: {tmp_path}/gone.toml: there is no such file\n")


@pytest.mark.parametrize("args", [["unknown"], ["run"], ["check"], ["explain", "--nope"], ["run", "-c"]])
def test_a_command_line_that_is_none_is_exit_2(args: list[str]) -> None:
    ran = invoke(*args)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr != ""


# --------------------------------------------------------------------------------------------------------- plugins


def test_plugins_are_listed_with_what_they_offer() -> None:
    ran = invoke("plugins")
    assert ran.exit_code == 0
    assert all(
        offer in " ".join(ran.stdout.split()) for offer in ("default_settings,", "logging", "openai-compatible:")
    )
    listed = json.loads(invoke("plugins", "--json").stdout)
    builtin = next(info for info in listed if info["name"] == "builtin")
    assert builtin["status"] == "loaded"
    assert builtin["providers"] == ["openai-compatible", "bedrock", "anthropic"]


def test_a_plugin_that_cannot_be_loaded_is_listed_with_the_whole_reason(tmp_path: Path) -> None:
    reason = "the licence [bold]of[/bold] this plugin " + "expired " * 20
    install(tmp_path, "acme-broken", f"raise RuntimeError({reason!r})")
    code, out, err = finish(start("plugins", PYTHONPATH=str(tmp_path)))
    assert code == 0
    assert f"RuntimeError: {reason.strip()}" in out
    assert err.count("PluginWarning") == 1


def test_an_allow_listed_plugin_that_is_absent_ends_every_command_with_exit_2() -> None:
    code, out, err = finish(start("plugins", NEUROLINK_MW_PLUGINS="acme-absent"))
    assert (code, out) == (2, "")
    assert err.startswith("error: NEUROLINK_MW_PLUGINS names acme-absent")
    assert len(err.splitlines()) == 1


def test_a_plugin_adds_a_command(tmp_path: Path) -> None:
    source = """
        from neurolink_mw import hookimpl
        @hookimpl
        def register_commands(app):
            @app.command()
            def greet(name: str):
                print(f"Hello {name}")
    """
    install(tmp_path, "acme-greet", source)
    assert finish(start("greet", "Ada", PYTHONPATH=str(tmp_path))) == (0, "Hello Ada\n", "")


def test_commands_that_fail_or_take_a_name_that_is_taken_are_left_out(tmp_path: Path) -> None:
    taken = """
        from neurolink_mw import hookimpl
        @hookimpl
        def register_commands(app):
            @app.command()
            def check():
                print("all is well")
    """
    failing = """
        from neurolink_mw import hookimpl
        @hookimpl
        def register_commands(app):
            @app.command()
            def half(): ...
            raise LookupError("no terminal")
    """
    install(tmp_path, "acme-taken", taken)
    install(tmp_path, "acme-failing", failing)
    code, out, err = finish(start("check", "-c", written(tmp_path, {"preset": "observe"}), PYTHONPATH=str(tmp_path)))
    assert (code, out) == (0, f"{tmp_path}/pipeline.json: ok\n")
    assert "the commands of plugin 'acme-failing' are left out: LookupError: no terminal" in err
    assert "the commands of plugin 'acme-taken' are left out: there is a command 'check' already" in err


# ---------------------------------------------------------------------------------------------------------- schema


def test_schema_prints_a_schema_with_the_middlewares_of_installed_plugins(tmp_path: Path) -> None:
    install(tmp_path, "acme-greeter", GREETER.format(id="greeter"))
    code, out, err = finish(start("schema", PYTHONPATH=str(tmp_path)))
    assert (code, err) == (0, "")
    validator = jsonschema_rs.validator_for(json.loads(out))
    assert validator.is_valid({"middlewares": ["greeter", "logging"]})
    assert not validator.is_valid({"middlewares": ["greeters"]})


def test_schema_may_be_written_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    ran = invoke("schema", "--output", path)
    assert (ran.exit_code, ran.stdout) == (0, "")
    assert json.loads(path.read_text())["title"] == "neurolink-mw pipeline"
    refused = invoke("schema", "--output", tmp_path / "no" / "schema.json")
    assert (refused.exit_code, refused.stderr.count("cannot be written")) == (2, 1)


@pytest.mark.parametrize("args", [["schema"], ["plugins", "--json"], ["plugins"]])
def test_a_reader_that_has_gone_is_no_traceback(args: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    program = start(*args)
    finish(program)
    with os.fdopen(write_end, "wb") as gone:
        ran = subprocess.run([*program.args], stdout=gone, stderr=subprocess.PIPE, check=False)  # type: ignore[misc]
    assert (ran.returncode, ran.stderr) == (1, b"")
