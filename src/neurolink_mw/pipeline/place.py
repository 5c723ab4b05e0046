"""A place in a chain: the member that stands there and the rules the host gives it.

Rules belong to the place and never to the instance: one instance may stand in two pipelines under different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import ConfigError
from .conditions import When
from .member import Member
from .middleware import Middleware
from .rules import Mode, OnError, Rules, check_rules

MODEL = "model"
"""What outcomes and records call the model itself; no member may be called so."""

MODE_OFF = 'mode = "off"'
"""Why a member was left out that its place switched off."""


@dataclass(frozen=True)
class Use:
    """A member with the rules of its place.

    when: in which calls it takes part. priority: its stage as a number, higher stands further out. before / after:
    ids that it stands outside of / inside of; they must be in the chain. The others say what happens when it fails,
    how long it may take, and whether it acts at all: see `Rules`. on_error None: as is usual for its kind ("deny" for
    policies, "skip" for observers, else "raise").
    """

    member: Member
    when: When | None = None
    priority: int | None = None
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    on_error: OnError | None = None
    timeout: float | None = None
    mode: Mode = "enforce"
    max_failures: int | None = None
    blocking: bool = False

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
        check_rules(self.id, self.rules)
        self.as_middleware()

    @property
    def rules(self) -> Rules:
        on_error = self.member.default_on_error if self.on_error is None else self.on_error
        if self.mode == "shadow":
            on_error = "skip"  # what changes nothing cannot fail a call either
        return Rules(on_error, self.timeout, self.mode, self.max_failures, self.blocking)

    def as_middleware(self) -> Middleware:
        """What stands in one chain. A role gives another one each time: chains share none of their state."""
        return self.member.as_middleware(self.rules)

    def companions(self) -> list[Use]:
        """The other places of a member that needs more than one, under the same rules."""
        return [replace(self, member=one, priority=None, before=(), after=()) for one in self.member.companions()]

    @property
    def id(self) -> str:
        return self.member.id

    @property
    def stage(self) -> int:
        return int(self.member.stage if self.priority is None else self.priority)


def as_uses(members: Sequence[Member | Use]) -> list[Use]:
    """Members as places. ConfigError for what is no member."""
    if isinstance(members, Member | Use):
        raise ConfigError("members are given as a list: [member]")
    return [member if isinstance(member, Use) else Use(member) for member in members]


def check_member(member: object) -> None:
    if isinstance(member, type) and issubclass(member, Member):
        raise ConfigError(f"{member.__name__} is a class: give an instance, {member.__name__}()")
    if not isinstance(member, Member):
        raise ConfigError(
            f"a member of a chain is a Middleware, a role, or Use(...) of one, not {type(member).__name__}"
        )
    if not isinstance(member.id, str) or not member.id:
        raise ConfigError(f"{type(member).__name__}.id is a non-empty text, not {member.id!r}")
    if member.id == MODEL:
        raise ConfigError(f"{type(member).__name__} cannot have the id {MODEL!r}: in outcomes it stands for the model")
