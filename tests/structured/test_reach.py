"""Which nodes of a graph lead back to themselves, against the definition of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from neurolink_mw.structured.reach import bottom_up, recursive

from .strategies import quick

graphs = st.integers(1, 7).flatmap(
    lambda count: st.fixed_dictionaries(
        {node: st.lists(st.integers(0, count - 1), max_size=3) for node in range(count)}
    )
)


def reached(edges: dict[int, list[int]], start: int) -> set[int]:
    """What can be reached by one step or more."""
    found: set[int] = set()
    pending = list(edges[start])
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending += edges[node]
    return found


@quick
@given(graphs)
def test_a_node_is_recursive_exactly_if_it_can_be_reached_from_itself(edges: dict[int, list[int]]) -> None:
    assert recursive(edges) == {node for node in edges if node in reached(edges, node)}


@quick
@given(graphs)
def test_each_node_comes_once_and_after_those_that_it_leads_to_and_that_do_not_lead_back(
    edges: dict[int, list[int]],
) -> None:
    order = bottom_up(edges)
    assert sorted(order) == sorted(edges)
    for node, following in edges.items():
        below = [one for one in following if node not in reached(edges, one) | {one}]
        assert all(order.index(one) < order.index(node) for one in below)


def test_a_long_chain_is_no_recursion_in_python() -> None:
    chain = {node: [node + 1] for node in range(50_000)} | {50_000: [0]}
    assert len(recursive(chain)) == 50_001
