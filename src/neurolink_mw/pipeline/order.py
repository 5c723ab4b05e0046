"""The order of a chain, from the outside in: by stage, then as `before` and `after` demand.

A constraint that already holds moves nothing. Where one does not, members are taken in the base order, always the
first one that nothing left has to stand outside of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ..errors import ConfigError
from .middleware import Middleware
from .place import Use
from .wording import did_you_mean


@dataclass(frozen=True)
class Placed:
    """A place in its order, with the reason why it stands there, and what stands there in this chain."""

    use: Use
    why: str
    member: Middleware

    def anew(self) -> Placed:
        """The same place in another chain."""
        return replace(self, member=self.use.as_middleware())


def arrange(uses: Sequence[Use], *, known: Collection[str] = ()) -> list[Placed]:
    """Sort places from the outside in. `known`: ids that exist though they are not in this chain.

    ConfigError for two of one id, a constraint that names an unknown id, and a cycle; with the names.
    """
    uses = [place for use in uses for place in (use, *use.companions())]
    twice = [id for id, count in Counter(use.id for use in uses).items() if count > 1]
    if twice:
        raise ConfigError(f"two members have the id {twice[0]!r}: give one of them another id, or leave one out")
    present = {use.id for use in uses}
    outside_of = _edges(uses, present, known)
    base = sorted(uses, key=lambda use: -use.stage)
    placed: list[Placed] = []
    left = list(base)
    waited_for: dict[str, set[str]] = {}
    while left:
        ids = {use.id for use in left}
        free = next((use for use in left if not outside_of[use.id] & ids), None)
        if free is None:
            raise ConfigError(f"these members cannot all stand as asked: {_cycle(outside_of, left)}")
        for use in left[: left.index(free)]:
            waited_for.setdefault(use.id, set()).update(outside_of[use.id] & ids)
        why = _why(free, waited_for.get(free.id, set()))
        placed.append(Placed(free, why, free.as_middleware()))
        left.remove(free)
    return placed


def _edges(uses: Sequence[Use], present: set[str], known: Collection[str]) -> dict[str, set[str]]:
    """For each id, the ids that must stand further out."""
    outside_of: dict[str, set[str]] = {use.id: set() for use in uses}
    for use in uses:
        for name, ids in (("before", use.before), ("after", use.after)):
            for id in ids:
                if id not in present and id not in known:
                    allowed = sorted({*present, *known} - {use.id})
                    raise ConfigError(f"{use.id}.{name} names {id!r}, which is unknown{did_you_mean(id, allowed)}")
        inward = {*use.before, *use.member.before} & present
        outward = {*use.after, *use.member.after} & present
        outside_of[use.id] |= outward
        for id in inward:
            outside_of[id].add(use.id)
    return outside_of


def _why(use: Use, waited_for: Collection[str]) -> str:
    where = f"priority {use.priority}" if use.priority is not None else f"stage {use.stage}"
    if not waited_for:
        return where
    return f"{where}, moved inside of {', '.join(sorted(waited_for))}, which must stand further out"


def _cycle(outside_of: dict[str, set[str]], left: Sequence[Use]) -> str:
    ids = {use.id for use in left}
    path = [left[0].id]
    while path.count(path[-1]) == 1:
        path.append(sorted(outside_of[path[-1]] & ids)[0])
    ring = path[path.index(path[-1]) :]
    return " is inside ".join(ring)
