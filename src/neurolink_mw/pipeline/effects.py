"""Lint: an order that is plainly wrong, found by what members say they read, write, judge and answer.

Chains further in are looked at too, and the steps of a turn. Each fault says what to do about it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from ..errors import ConfigError
from .member import Member, Stage

if TYPE_CHECKING:
    from .order import Placed
    from .wrap import Chain

Lint: TypeAlias = Literal["error", "warn", "off"]
_log = logging.getLogger(__name__)
_STEPS = "the steps (middlewares= of generate and stream, wrap_model around the model of a turn model)"


@dataclass(frozen=True)
class Fault:
    """rule: its name. members: the ids that it is about, from the outside in. message: what is wrong; fix: what to do
    about it."""

    rule: str
    members: tuple[str, ...]
    message: str
    fix: str

    def __str__(self) -> str:
        return f"{self.message}: {self.fix}"


def find_faults(chain: Chain) -> list[Fault]:
    """What is plainly wrong with a chain, chains further in included."""
    own = [place.use.member for place in chain.placed]
    further_in = list(_further_in(chain.model))
    faults = [fault for outer, inner in combinations(own, 2) for fault in _between(outer, inner, _swap)]
    faults += [fault for outer in own for inner in further_in for fault in _between(outer, inner, _join)]
    faults += _attempts_multiply(own, further_in)
    if getattr(chain.model, "is_turn", False):
        faults += _around_a_turn(own, further_in)
    return faults


def find_faults_without_model(placed: Sequence[Placed]) -> list[Fault]:
    """What is plainly wrong with members in this order, whatever model they will be around. One whose condition looks
    at the model may not stand in the same chain as the others: it is looked at when there is one."""
    settled = [
        place.use.member
        for place in placed
        if place.use.when is None or (place.use.when.provider is None and place.use.when.model is None)
    ]
    faults = [fault for outer, inner in combinations(settled, 2) for fault in _between(outer, inner, _swap)]
    return [*faults, *_attempts_multiply(settled, ())]


def report(faults: Sequence[Fault], lint: Lint) -> None:
    """ConfigError with a sentence for each fault, or a warning in the log."""
    if lint not in get_args(Lint):
        raise ConfigError('lint is "error", "warn" or "off"')
    if lint == "error" and faults:
        raise ConfigError("\n".join(map(str, faults)))
    if lint == "warn":
        for fault in faults:
            _log.warning("%s", fault)


def _further_in(model: object) -> Iterator[Member]:
    """The members of the chains that a model already has around it. A turn's model is what its steps call."""
    while model is not None:
        chain = getattr(model, "chain", None)
        if chain is not None:
            yield from (place.use.member for place in chain.placed)
            model = chain.model
        else:
            model = getattr(model, "model", None) if getattr(model, "is_turn", False) else None


def _between(outer: Member, inner: Member, fix: Callable[[Member, Member], str]) -> Iterator[Fault]:
    ids = (outer.id, inner.id)
    looks_up = outer.may_answer and "prompt" in (outer.reads or {"prompt"})  # by what else, if it does not say
    if looks_up and "prompt" in inner.writes and not inner.judges:
        yield Fault(
            "answers-by-another-prompt",
            ids,
            f"Middleware {outer.id!r} may answer and sits outside {inner.id!r}, which changes the prompt: it would "
            f"look up and keep prompts as they were before that",
            fix(outer, inner),
        )
    if outer.may_answer and inner.judges and not getattr(outer, "sees_denials", False):  # as a fallback does
        yield Fault(
            "answers-past-a-policy",
            ids,
            f"Middleware {outer.id!r} may answer and sits outside the policy {inner.id!r}, which would not see those "
            f"calls",
            fix(outer, inner),
        )
    if _usually_at(outer, Stage.BUDGET) and _usually_at(inner, Stage.CACHE) and inner.may_answer:
        yield Fault(
            "charges-for-hits",
            ids,
            f"Middleware {outer.id!r} sits outside {inner.id!r}, so it would charge for answers that no model gave",
            fix(outer, inner),
        )


def _swap(outer: Member, inner: Member) -> str:
    return f'move {inner.id!r} further out, or set {outer.id}.after = ["{inner.id}"]'


def _join(outer: Member, inner: Member) -> str:
    """What to do where they are in two chains: `after` names members of one."""
    return (
        f"{inner.id!r} is in the chain of the model that this one is around: move it to this chain, or {outer.id!r} to "
        f"that one"
    )


def _usually_at(member: Member, stage: Stage) -> bool:
    """Whether a member is of the kind that stands at a stage, or between it and the next one further out."""
    return stage <= type(member).stage < stage + 100


def _attempts_multiply(own: Sequence[Member], further_in: Sequence[Member]) -> Iterator[Fault]:
    """Two retries, in one chain or in chains within each other."""
    retries = [one for one in own if _usually_at(one, Stage.RETRY)]
    further = [one for one in (*retries[1:], *further_in) if _usually_at(one, Stage.RETRY)]
    if retries and further:
        yield Fault(
            "attempts-multiply",
            (retries[0].id, further[0].id),
            f"Middleware {retries[0].id!r} tries again what {further[0].id!r} has tried again already, so that "
            f"attempts multiply",
            "leave one of them out",
        )


def _around_a_turn(own: Sequence[Member], further_in: Sequence[Member]) -> Iterator[Fault]:
    for member in own:
        if _usually_at(member, Stage.CACHE) and member.may_answer:
            yield Fault(
                "keeps-tool-results",
                (member.id,),
                f"Middleware {member.id!r} is around a whole turn, so an answer that tools were run for would be given "
                f"again without running them",
                f"put it around {_STEPS}, not around the turn",
            )
        judges_answers = "output" in member.judges and tuple(getattr(member, "sees", ())) != ("tool_input",)
        if judges_answers and not any("output" in one.judges for one in further_in):
            yield Fault(
                "judges-too-late",
                (member.id,),
                f"The policy {member.id!r} judges the answer of a whole turn only, and tools run before that",
                f"put it around {_STEPS}; it may stand around the turn as well",
            )
