"""A place in a chain: the member that stands there and the rules the host gives it.

Rules belong to the place and never to the instance: one instance may stand in two pipelines under different rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ConfigError
from .conditions import When
from .middleware import Middleware

MODEL = "model"
"""What outcomes and records call the model itself; no member may be called so."""


@dataclass(frozen=True)
class Use:
    """A member with the rules of its place.

    when: in which calls it takes part. priority: its stage as a number, higher stands further out. before / after:
    ids that it stands outside of / inside of; they must be in the chain.
    """

    member: Middleware
    when: When | None = None
    priority: int | None = None
    before: Sequence[str] = ()
    after: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_member(self.member)
        for name in ("before", "after"):
            ids = getattr(self, name)
            if isinstance(ids, str) or not all(isinstance(id, str) for id in ids):
                given = "one string" if isinstance(ids, str) else "objects"
                raise ConfigError(f"Use({self.id}, {name}=...) takes a list of ids, not {given}")
        if self.when is not None and not isinstance(self.when, When):
            raise ConfigError(f"Use({self.id}, when=...) takes a When(...), not {type(self.when).__name__}")
        if self.priority is not None and (isinstance(self.priority, bool) or not isinstance(self.priority, int)):
            raise ConfigError(f"Use({self.id}, priority=...) takes a whole number, not {type(self.priority).__name__}")

    @property
    def id(self) -> str:
        return self.member.id

    @property
    def stage(self) -> int:
        return int(self.member.stage if self.priority is None else self.priority)


def as_uses(members: Sequence[Middleware | Use]) -> list[Use]:
    """Members as places. ConfigError for what is no member."""
    if isinstance(members, Middleware | Use):
        raise ConfigError("members are given as a list: [member]")
    uses = []
    for member in members:
        if isinstance(member, Use):
            uses.append(member)
        else:
            check_member(member)
            uses.append(Use(member))
    return uses


def check_member(member: object) -> None:
    if isinstance(member, type) and issubclass(member, Middleware):
        raise ConfigError(f"{member.__name__} is a class: give an instance, {member.__name__}()")
    if not isinstance(member, Middleware):
        raise ConfigError(f"a member of a chain is a Middleware or Use(middleware), not {type(member).__name__}")
    if not isinstance(member.id, str) or not member.id:
        raise ConfigError(f"{type(member).__name__}.id is a non-empty text, not {member.id!r}")
    if member.id == MODEL:
        raise ConfigError(f"{type(member).__name__} cannot have the id {MODEL!r}: in outcomes it stands for the model")
