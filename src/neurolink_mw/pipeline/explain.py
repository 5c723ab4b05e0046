"""Saying what a chain is and what it would do: who stands where and why, who was left out, what each member changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from ..errors import ConfigError
from ..protocol import DETACHED, CallOptions, Kind, LanguageModel, with_context
from .bind import awaiting
from .conditions import When
from .failing import checked_options
from .hook_checks import HOOKS
from .member import Stage
from .middleware import Middleware, overrides
from .order import Placed
from .rules import Rules
from .scope import Host, Scope
from .wrap import WrappedModel


@dataclass(frozen=True)
class MemberView:
    """One member of a chain. hooks: those it fills in, and "outcomes" where it
    is told them. depth: in which of nested wrapped models it stands, 0 the outermost. rules: what the host does when
    it fails, and how it treats streams, in words."""

    id: str
    stage: str
    why: str
    hooks: tuple[str, ...]
    when: str | None = None
    depth: int = 0
    rules: str | None = None


@dataclass(frozen=True)
class Explanation:
    """A chain in both directions. `str()` of it is for people, `to_json()` for programs."""

    model: str
    members: tuple[MemberView, ...]
    left_out: tuple[tuple[str, str], ...]

    @property
    def request_order(self) -> tuple[str, ...]:
        """Who sees the request, in this order; the model last."""
        return (*(member.id for member in self.members), self.model)

    @property
    def response_order(self) -> tuple[str, ...]:
        """Who sees the answer, in this order; the model first."""
        return tuple(reversed(self.request_order))

    def to_json(self) -> dict[str, object]:
        return {
            "model": self.model,
            "requestOrder": list(self.request_order),
            "responseOrder": list(self.response_order),
            "members": [
                {
                    "id": member.id,
                    "stage": member.stage,
                    "why": member.why,
                    "hooks": list(member.hooks),
                    "when": member.when,
                    "depth": member.depth,
                    "rules": member.rules,
                }
                for member in self.members
            ],
            "leftOut": [{"id": id, "why": why} for id, why in self.left_out],
        }

    def __str__(self) -> str:
        lines = [
            "request:  caller -> " + " -> ".join(self.request_order),
            "response: " + " -> ".join(self.response_order) + " -> caller",
        ]
        for member in self.members:
            hooks = ", ".join(member.hooks) or "no hooks"
            wraps = [hook for hook in ("wrap_generate", "wrap_stream") if hook in member.hooks]
            if len(wraps) == 1:
                hooks += f" ({wraps[0].removeprefix('wrap_')} only)"
            more = [f"only when {member.when}"] if member.when else []
            more += [member.rules] if member.rules else []
            lines.append("; ".join((f"  {member.id}: {member.why}", hooks, *more)))
        lines += [f"  left out: {id}: {why}" for id, why in self.left_out]
        return "\n".join(lines)


@dataclass(frozen=True)
class Change:
    """What one member did to a request: the names of the call options it changed. `took_part`: its condition held."""

    id: str
    took_part: bool
    changed: tuple[str, ...]


@dataclass(frozen=True)
class DryRun:
    """A request on its way in, as far as it can be told without asking a model."""

    options: CallOptions
    changes: tuple[Change, ...]


def explain(model: LanguageModel) -> Explanation:
    """The chain of a wrapped model, chains further in included. A bare model has no members."""
    chains = [wrapped.chain for wrapped in _wrapped(model)]
    innermost = chains[-1].model if chains else model
    return Explanation(
        f"{innermost.provider}:{innermost.model_id}",
        tuple(_view(place, depth, chain.listening) for depth, chain in enumerate(chains) for place in chain.placed),
        tuple(left for chain in chains for left in chain.left_out),
    )


def explain_placed(placed: Sequence[Placed], left_out: Sequence[tuple[str, str]]) -> Explanation:
    """A chain that is not around a model yet: conditions on provider and model are still open."""
    return Explanation("(any model)", tuple(_view(place) for place in placed), tuple(left_out))


async def dry_run(model: LanguageModel, options: CallOptions, kind: Kind = "generate") -> DryRun:
    """Run a request through the `transform_params` of each member, outermost first, and ask no model.

    What a member changes while it wraps the call cannot be seen this way, nor what one would answer by itself. A
    member that asks the model in its `transform_params` gets a ConfigError.
    """
    changes = []
    scope = Scope(Host(model, (), ()), kind, with_context(options, DETACHED))  # a call that never ends
    given, options = options.context, with_context(options, scope)
    for wrapped in _wrapped(model):
        for index, place in enumerate(wrapped.chain.placed):
            member, when = place.member, place.use.when
            if when is not None and not when.matches(options):
                changes.append(Change(member.id, False, ()))
                continue
            before = options
            if overrides(member, "transform_params"):
                transform = awaiting(member.transform_params, f"{member.id}.transform_params")
                inner = wrapped.seen_by(index)
                inner.do_generate = inner.do_stream = _ask_nobody
                options = await transform(options, kind, inner)
                options = with_context(checked_options(member.id, options, before), scope)
            changes.append(Change(member.id, True, _changed(before, options)))
    return DryRun(with_context(options, given), tuple(changes))


async def _ask_nobody(options: CallOptions) -> NoReturn:
    raise ConfigError("a dry run asks no model: what this member does depends on an answer")


def _wrapped(model: LanguageModel) -> Iterator[WrappedModel]:
    while isinstance(model, WrappedModel):
        yield model
        model = model.chain.model


def _view(place: Placed, depth: int = 0, listening: Collection[str] = ()) -> MemberView:
    use = place.use
    hooks = tuple(hook for hook in HOOKS if overrides(place.member, hook))
    hooks += ("outcomes",) if use.id in listening else ()
    rules = _rules(use.rules, place.member)
    return MemberView(use.id, _stage_name(use.stage), place.why, hooks, _conditions(use.when), depth, rules)


def _rules(rules: Rules, member: Middleware) -> str | None:
    said = [member.about] if member.about else []
    if rules.mode != "enforce":
        said.append(f"mode {rules.mode}")
    elif rules.on_error != "raise":
        said.append({"deny": "denies the call if it fails", "skip": "is skipped if it fails"}[rules.on_error])
    if rules.timeout is not None:
        said.append(f"at most {rules.timeout} s of its own time")
    if rules.max_failures is not None:
        said.append(f"rests after {rules.max_failures} failures in a row")
    if rules.blocking:
        said.append("in a worker thread")
    return ", ".join(said) or None


def _stage_name(number: int) -> str:
    return Stage(number).name if number in Stage.__members__.values() else str(number)


def _conditions(when: When | None) -> str | None:
    if when is None:
        return None
    said = [f"{name} is {value}" for name, value in (("provider", when.provider), ("model", when.model)) if value]
    said += [f"options.{name} matches" for name in when.options] + [f"metadata.{key} matches" for key in when.metadata]
    said += ["a function of the options says so"] if when.custom is not None else []
    return " and ".join(said) or None


def _changed(before: CallOptions, after: CallOptions) -> tuple[str, ...]:
    names = (f.name for f in dataclasses.fields(CallOptions) if f.name != "context")
    return tuple(name for name in names if getattr(before, name) != getattr(after, name))
