"""How a JSON answer is asked for."""

from __future__ import annotations

from itertools import product

import pytest

from neurolink_mw.structured import choose_answer_way

BOTH = (False, True)


@pytest.mark.parametrize("can_force", BOTH)
def test_without_tools_native_output_is_taken_where_the_model_has_it(can_force: bool) -> None:
    way = choose_answer_way(has_tools=False, native=True, native_with_tools=False, can_force=can_force)
    assert way == "native"


def test_without_tools_and_native_output_the_only_tool_is_forced() -> None:
    assert choose_answer_way(has_tools=False, native=False, native_with_tools=False) == "forced-tool"


def test_while_the_model_thinks_the_only_tool_is_offered() -> None:
    way = choose_answer_way(has_tools=False, native=False, native_with_tools=False, can_force=False)
    assert way == "final-result"


@pytest.mark.parametrize(("can_force", "forbidden", "taken"), [*product(BOTH, BOTH, BOTH)])
def test_native_output_beside_tools_is_always_taken(can_force: bool, forbidden: bool, taken: bool) -> None:
    way = choose_answer_way(
        has_tools=True,
        native=True,
        native_with_tools=True,
        can_force=can_force,
        calls_forbidden=forbidden,
        name_taken=taken,
    )
    assert way == "native"


@pytest.mark.parametrize(("native", "can_force"), [*product(BOTH, BOTH)])
def test_beside_tools_the_final_result_is_appended(native: bool, can_force: bool) -> None:
    way = choose_answer_way(has_tools=True, native=native, native_with_tools=False, can_force=can_force)
    assert way == "final-result"


@pytest.mark.parametrize(("can_force", "forbidden"), [*product(BOTH, BOTH)])
def test_a_tool_of_that_name_is_never_shadowed(can_force: bool, forbidden: bool) -> None:
    way = choose_answer_way(
        has_tools=True,
        native=False,
        native_with_tools=False,
        can_force=can_force,
        calls_forbidden=forbidden,
        name_taken=True,
    )
    assert way == "instruction"


@pytest.mark.parametrize(("can_force", "way"), [(True, "forced-tool"), (False, "instruction")])
def test_where_calls_are_forbidden_only_the_answer_may_be_called(can_force: bool, way: str) -> None:
    chosen = choose_answer_way(
        has_tools=True, native=False, native_with_tools=False, can_force=can_force, calls_forbidden=True
    )
    assert chosen == way
