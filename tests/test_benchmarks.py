"""The benchmark runner works and writes what its README says. How fast anything is, is not asserted anywhere."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.figure import Figure, Lead
from benchmarks.measure import series_of

ROOT = Path(__file__).parents[1]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """What a short run of some groups printed, and what it wrote."""
    file = tmp_path_factory.mktemp("benchmarks") / "run.json"
    done = run("--quick", "--only", "generate", "plugins", "loop_guard", "turns", "long_turns", "--json", str(file))
    assert done.returncode == 0, done.stderr
    written: dict[str, Any] = json.loads(file.read_text())
    return done.stdout, written


def test_the_run_says_how_and_on_what_it_was_measured(quick: tuple[str, dict[str, Any]]) -> None:
    _, written = quick
    assert set(written) == {"schema", "quick", "rounds", "clock", "machine", "versions", "figures", "skipped"}
    assert (written["schema"], written["quick"], written["clock"]) == (1, True, "process_time")
    assert set(written["machine"]) == {"system", "architecture", "processor", "cpus", "load"}
    assert {"python", "neurolink-mw", "pluggy"} <= set(written["versions"])


def test_every_figure_has_the_documented_fields(quick: tuple[str, dict[str, Any]]) -> None:
    _, written = quick
    fields = {"name", "n", "value", "unit", "spread", "floor", "ratio", "goal", "met", "times_ours"}
    for figure in written["figures"]:
        assert set(figure) == fields
        assert (figure["floor"] is None) == (figure["ratio"] is None)
        assert (figure["goal"] is None) == (figure["met"] is None)


def test_a_cost_is_measured_for_each_length_of_chain(quick: tuple[str, dict[str, Any]]) -> None:
    _, written = quick
    figures = [figure for figure in written["figures"] if figure["name"] == "generate.wrap_generate"]
    assert [figure["n"] for figure in figures] == [0, 1, 5, 10, 20]
    assert [figure["floor"]["name"] for figure in figures] == [f"closures/{n}" for n in (0, 1, 5, 10, 20)]
    assert all(figure["value"] > 0 and figure["ratio"] > 0 for figure in figures)


def test_pluggy_has_no_part_in_a_call_or_in_a_stream(quick: tuple[str, dict[str, Any]]) -> None:
    _, written = quick
    counts = {figure["name"]: figure for figure in written["figures"] if figure["name"].startswith("plugins.hook")}
    assert len(counts) == 2
    assert all(figure["value"] == 0 and figure["met"] for figure in counts.values())


def test_a_turn_is_measured_bare_and_through_ten_layers(quick: tuple[str, dict[str, Any]]) -> None:
    _, written = quick
    turns = [(figure["name"], figure["n"]) for figure in written["figures"] if figure["name"].startswith("turns.")]
    assert turns == [
        ("turns.generate, one step", 0),
        ("turns.generate, one step", 10),
        ("turns.generate, one step, middlewares=[...] at each call", 10),
        ("turns.generate, two steps and a tool", 10),
        ("turns.stream, one step", 0),
        ("turns.stream, one step", 10),
    ]


def test_the_memory_of_a_long_turn_is_held_against_the_conversation_by_hand(quick: tuple[str, dict[str, Any]]) -> None:
    _, written = quick
    memory = [figure for figure in written["figures"] if figure["name"].startswith("long_turns.memory")]
    assert len(memory) == 2
    assert all(figure["floor"]["value"] > 199 * 20 for figure in memory)  # KB: all the outputs
    assert all(figure["met"] for figure in memory)  # what is allocated does not depend on how busy the machine is


@pytest.mark.parametrize(("theirs", "met"), [(36.0, True), (34.0, False)])
def test_a_goal_against_another_library_is_how_many_times_ours_it_costs(theirs: float, met: bool) -> None:
    figure = Figure("peers.one, turn", series_of([theirs * 2]), "us/turn", goal=Lead(35), ours=series_of([2]))
    assert figure.is_met is met
    assert figure.as_json()["goal"] == {"of": "times_ours", "at_least": 35}


def test_the_table_has_a_line_for_each_figure(quick: tuple[str, dict[str, Any]]) -> None:
    printed, written = quick
    for figure in written["figures"]:
        assert f"  {figure['name'].partition('.')[2]} " in printed
    assert "goals met" in printed


def test_nothing_written_leads_back_to_the_machine(quick: tuple[str, dict[str, Any]]) -> None:
    import platform

    _, written = quick
    text = json.dumps(written)
    assert str(ROOT) not in text
    assert platform.node() not in text


def test_an_unknown_group_is_refused_with_the_known_ones() -> None:
    done = run("--only", "speed")
    assert done.returncode == 2
    assert "generate" in done.stderr
