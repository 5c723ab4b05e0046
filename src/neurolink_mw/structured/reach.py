"""Which definitions of a schema lead back to themselves, and in which order the others build upon each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def bottom_up(edges: Mapping[int, Sequence[int]]) -> list[int]:
    """Every node after those that it leads to, save those that lead back to it."""
    return _finished(edges, edges, set())


def recursive(edges: Mapping[int, Sequence[int]]) -> set[int]:
    """The nodes that lead back to themselves (Kosaraju's strongly connected components, and loops of one)."""
    backwards: dict[int, list[int]] = {node: [] for node in edges}
    for node, following in edges.items():
        for one in following:
            backwards[one].append(node)
    found: set[int] = set()
    placed: set[int] = set()
    for node in reversed(bottom_up(edges)):
        component = _finished(backwards, [node], placed)
        if len(component) > 1 or node in edges[node]:
            found.update(component)
    return found


def _finished(edges: Mapping[int, Sequence[int]], starts: Iterable[int], seen: set[int]) -> list[int]:
    """The nodes reached from `starts`, in the order in which a search in depth leaves them; `seen` ones are skipped."""
    left: list[int] = []
    for start in starts:
        if start in seen:
            continue
        seen.add(start)
        path = [(start, iter(edges[start]))]  # not recursion: a chain of definitions may be long
        while path:
            node, rest = path[-1]
            following = next((one for one in rest if one not in seen), None)
            if following is None:
                path.pop()
                left.append(node)
            else:
                seen.add(following)
                path.append((following, iter(edges[following])))
    return left
