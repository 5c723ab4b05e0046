"""`run --tools module:name`: what it takes, and what it says of anything else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.cli.commands import WORD_COUNT, WriteModule, config_for, invoke, json_lines

from neurolink_mw.cli.load_tools import importable_here, load_tools
from neurolink_mw.errors import ConfigError
from neurolink_mw.testing import wire


def loaded(*names: str) -> list[str]:
    with importable_here():
        return [tool.name for tool in load_tools(names)]


def refusal(*names: str) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(*names)
    return str(caught.value)


# ------------------------------------------------------------------------------------------------------ what it takes


def test_a_typed_function_becomes_a_tool_as_with_the_decorator(write_module: WriteModule) -> None:
    write_module(WORD_COUNT)
    with importable_here():
        (tool,) = load_tools(["mytools:word_count"])
    assert (tool.name, tool.description) == ("word_count", "Count the words of a text.")
    assert tool.schema["required"] == ["text"]


SEVERAL = """
    from neurolink_mw import Tool, tool

    @tool(name="lookup")
    async def look_up(word: str) -> str: ...

    def shout(word: str) -> str: ...

    declared = Tool(name="declared")
    every = [look_up, shout]
    pair = (declared, shout)

    class Of:
        animals = [shout]
"""


@pytest.mark.parametrize(
    ("name", "tools"),
    [
        ("look_up", ["lookup"]),
        ("declared", ["declared"]),
        ("every", ["lookup", "shout"]),
        ("pair", ["declared", "shout"]),
        ("Of.animals", ["shout"]),
    ],
)
def test_a_tool_or_a_list_of_tools_is_taken_as_it_is(write_module: WriteModule, name: str, tools: list[str]) -> None:
    write_module(SEVERAL)
    assert loaded(f"mytools:{name}") == tools


def test_the_option_can_be_given_several_times(write_module: WriteModule) -> None:
    write_module(SEVERAL)
    write_module(WORD_COUNT, "more")
    assert loaded("mytools:every", "more:word_count") == ["lookup", "shout", "word_count"]


def test_a_module_may_be_an_installed_one() -> None:
    assert loaded("textwrap:dedent") == ["dedent"]


def test_the_current_directory_is_on_the_path_for_as_long_as_tools_may_run(write_module: WriteModule) -> None:
    write_module("def answer() -> int:\n    import neighbour\n\n    return neighbour.ANSWER\n")
    write_module("ANSWER = 42\n", "neighbour")
    before = list(sys.path)
    with importable_here():
        (answer,) = load_tools(["mytools:answer"])
        assert answer() == 42
    assert sys.path == before


# ------------------------------------------------------------------------------------------------------- what it says


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mytools", "write module:name, such as mytools:word_count for a function of mytools.py"),
        ("mytools:", "write module:name"),
        (":word_count", "write module:name"),
        ("./mytools.py:word_count", "write module:name"),
        (
            "mytools.py:word_count",
            "there is no module 'mytools.py', here or among the installed ones: leave out the .py",
        ),
        ("nowhere:f", "there is no module 'nowhere', here or among the installed ones: check the name, or go to"),
        (
            "mytools:wordcount",
            "there is no 'wordcount' in mytools; did you mean 'word_count'? (allowed: word_count, many,",
        ),
        ("mytools:number", "this is of the type int: give a typed function, a Tool, or a list of them"),
        ("mytools:Counter", "this is the class Counter: give a typed function"),
        ("mytools:mixed", "item 2 of this list is of the type str: give a typed function"),
        ("mytools:none", "this list is empty: put tools into it, or leave the option out"),
        ("mytools:many", "tool 'many': *texts has no names for its values: take a list instead"),
        ("mytools:unnamed", "a tool's name has 1 to 128 letters, digits and any of '_.:-', not '<lambda>'"),
    ],
)
def test_what_is_no_tool_is_refused_with_its_argument_and_a_remedy(
    write_module: WriteModule, name: str, said: str
) -> None:
    write_module(
        WORD_COUNT
        + """
    def many(*texts: str) -> int: ...

    class Counter: ...

    number = 3
    none = []
    mixed = [word_count, "word_count"]
    unnamed = lambda text: text
    """
    )
    assert refusal(name).startswith(f"--tools {name}: {said}")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import os\n\nraise LookupError('no\\n licence')", "LookupError: no licence (mytools.py, line 3)"),
        ("def f(:", "SyntaxError: invalid syntax (mytools.py, line 1)"),
        ("import acme_gone", "ModuleNotFoundError: No module named 'acme_gone' (mytools.py, line 1)"),
        ("import sys\nsys.exit('usage')", "SystemExit: usage (mytools.py, line 2)"),
        ("assert False", "AssertionError (mytools.py, line 1)"),
    ],
)
def test_a_module_that_cannot_be_imported_is_refused_with_the_reason(
    write_module: WriteModule, source: str, said: str
) -> None:
    write_module(source)
    assert refusal("mytools:f") == f"--tools mytools:f: mytools cannot be imported: {said}"


def test_two_tools_of_one_name_are_refused_with_both_arguments(write_module: WriteModule) -> None:
    write_module(SEVERAL)
    assert refusal("mytools:every", "mytools:shout") == (
        "--tools mytools:shout: there is a tool 'shout' already, from --tools mytools:every: leave one out, or give it "
        "another name with @tool(name=...)"
    )


def test_bad_tools_are_exit_2_and_nothing_is_sent(write_module: WriteModule, tmp_path: Path) -> None:
    with wire.openai_server() as server:
        args = ("run", "-c", config_for(server, tmp_path), "--tools", "nowhere:f", "x")
        ran, in_json = invoke(*args), invoke(*args, "--json")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: --tools nowhere:f: there is no module 'nowhere'")
    assert len(ran.stderr.splitlines()) == 1
    assert (in_json.exit_code, in_json.stderr) == (2, "")
    assert "no module 'nowhere'" in json_lines(in_json.stdout)[0]["error"]["message"]
    assert len(server.journal) == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--max-steps", "3"], "--max-steps is about turns with tools: give --tools as well, or leave it out"),
        (["--max-steps", "0", "--tools", "mytools:word_count"], "--max-steps 0: give a whole number from 1 to 500"),
        (["--max-steps", "501", "--tools", "mytools:word_count"], "--max-steps 501: give a whole number from 1 to 500"),
    ],
)
def test_a_limit_of_steps_that_is_none_is_exit_2(
    write_module: WriteModule, tmp_path: Path, flags: list[str], said: str
) -> None:
    write_module(WORD_COUNT)
    with wire.openai_server() as server:
        ran = invoke("run", "-c", config_for(server, tmp_path), *flags, "x")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (2, "", f"error: {said}\n")
