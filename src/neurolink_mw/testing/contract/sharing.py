"""One member in many calls at once: nothing of one call shows in another, nor in what the caller handed in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import anyio

from ...protocol import CallOptions, Kind, to_json, user, user_text
from ..scripted import Reply
from .agreement import said_in
from .material import PLAIN, asking, paced, saying_in
from .plain import KINDS
from .subject import Seen, Subject, Trial, opened
from .wording import require

_QUESTIONS = ("What is the first?", "And the second?", "Then the third?")
_ADVICE = "Keep what belongs to a call in local variables of the hook, not on the instance"


async def check_calls_at_once_do_not_mix(subject: Subject) -> None:
    """Tasks that take turns at every part, each with its own request and answer, and the same block ids."""
    requests = _requests(subject)
    for kind in KINDS:
        alone = []
        for request in requests:
            async with subject.fresh(_reply) as trial:
                alone.append(await trial.ask(kind, request))
        together: dict[int, Seen] = {}
        async with subject.fresh(_reply) as trial:

            async def ask(
                place: int,
                request: CallOptions,
                trial: Trial = trial,
                kind: Kind = kind,
                seen: dict[int, Seen] = together,
            ) -> None:
                seen[place] = await trial.ask(kind, request)

            async with anyio.create_task_group() as tasks:
                for place, request in enumerate(requests):
                    tasks.start_soon(ask, place, request)
            outcomes = len(trial.outcomes)
        for place, expected in enumerate(alone):
            _require_the_same(expected, together[place], f"three do_{kind} at once through one member", _ADVICE)
        require(outcomes == len(requests), f"three do_{kind} at once have {outcomes} outcomes, and each has one")


def _requests(subject: Subject) -> list[CallOptions]:
    asked = user_text(subject.options.prompt)
    return [subject.options.replace(prompt=(user(f"{asked} {question}"),)) for question in _QUESTIONS]


def _reply(options: CallOptions) -> Reply:
    question = user_text(options.prompt)[-18:]
    return paced(saying_in("You ", "asked: ", *question))


async def check_one_member_may_stand_in_two_pipelines(subject: Subject) -> None:
    scripts = saying_in("from ", "the ", "one"), saying_in("from ", "the ", "other")
    requests = _requests(subject)[:2]
    advice = "An instance may be bound twice: keep nothing of one chain on it, such as the model or a build's lookups"
    for kind in KINDS:
        alone = []
        for place, (script, request) in enumerate(zip(scripts, requests, strict=True)):
            member = subject.factory()
            async with opened(member):
                trial = subject.trial(member, [script], f"scripted-{place}")
                alone.append(await trial.ask(kind, request))
                await trial.upstream.close_what_is_left()
        member = subject.factory()
        async with opened(member):
            trials = [subject.trial(member, [script], f"scripted-{place}") for place, script in enumerate(scripts)]
            for trial, request, expected in zip(trials, requests, alone, strict=True):
                fed = f"one member in two chains, do_{kind} through the chain of {trial.model.model_id}"
                seen = await trial.ask(kind, request)
                await trial.upstream.close_what_is_left()
                _require_the_same(expected, seen, fed, advice)
                require(len(seen.outcomes) == 1, f"{fed}: the call has {len(seen.outcomes)} outcomes. {advice}")


def _require_the_same(alone: Seen, seen: Seen, fed: str, advice: str) -> None:
    require(
        _what_came(alone) == _what_came(seen),
        f"{fed}: what comes is {seen}; with a member of its own, the same call gets {alone}. {advice}",
    )


def _what_came(seen: Seen) -> object:
    answer = seen.answer
    return type(seen.raised), answer and (said_in(answer), answer.finish_reason.unified)


async def check_the_options_are_left_as_they_were(subject: Subject) -> None:
    for options in (asking("Hello"), subject.options):
        before = _as_json(options)
        for kind in KINDS:
            async with subject.fresh(PLAIN) as trial:
                await trial.ask(kind, options)
            after = _as_json(options)
            changed = sorted(name for name in before | after if before.get(name) != after.get(name))
            require(
                not changed,
                f"do_{kind} changed the caller's own options, in {', '.join(changed)}. They serve other calls too: "
                f"make new ones with options.replace(...), and new dicts as in {{**old, 'key': value}}",
            )


def _as_json(options: CallOptions) -> dict[str, object]:
    return dict(cast(Mapping[str, object], to_json(options)))
