"""What a member says of itself: what it writes, whether it may answer, whether its refusals are final."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ...protocol import CallOptions
from ..scripted import ScriptedCall
from .agreement import said_in
from .material import ANSWERS, MIXED, PLAIN, saying
from .plain import KINDS
from .subject import Subject
from .wording import require, show, show_answer

# Which option counts as which effect; all others are "params". A tool choice may pass as either.
_EFFECTS = {"prompt": {"prompt"}, "tools": {"tools"}, "metadata": {"metadata"}, "tool_choice": {"tools", "params"}}
_SUFFIXES = (" ", "s", "S", "1", ".", "\n", " and more", "</thi", " not", "-")
_MOST_PREFIXES = 60


async def check_changes_of_the_request_are_declared(subject: Subject) -> None:
    writes = subject.factory().writes
    for kind in KINDS:
        seen = await subject.ask(kind, PLAIN)
        for name in (name for call in seen.calls for name in _changed(subject.options, call)):
            effects = _EFFECTS.get(name, {"params"})
            require(
                bool(effects & writes),
                f"do_{kind}: the model was asked with another `{name}` than the caller's, and writes is "
                f"{sorted(writes)}. Declare it: writes = frozenset({{{sorted(effects)[0]!r}, ...}}), so that the build "
                f"can tell whether it stands in a safe place",
            )


def _changed(asked: CallOptions, call: ScriptedCall) -> Iterator[str]:
    for field in dataclasses.fields(CallOptions):
        if field.name != "context" and getattr(asked, field.name) != getattr(call.options, field.name):
            yield field.name


async def check_changes_of_the_answer_are_declared(subject: Subject) -> None:
    if "output" in subject.factory().writes:
        return
    for answer in (*ANSWERS, *MIXED, *subject.answers):
        for kind in KINDS:
            seen = await subject.ask(kind, answer)
            came = seen.answered
            if came is None or not seen.calls or came.finish_reason.unified == "error" or seen.refused_a_part:
                continue
            same = said_in(came) == said_in(answer) and came.finish_reason == answer.finish_reason
            require(
                same,
                f"do_{kind}, and the model says {show_answer(answer)}: what comes out is {show_answer(came)}. Declare "
                f'it, writes = frozenset({{"output", ...}}), so that the build can tell who must see the change',
            )


async def check_answers_of_its_own_are_declared(subject: Subject) -> None:
    if subject.may_answer:
        return
    for kind in KINDS:
        seen = await subject.ask(kind, PLAIN)
        require(
            seen.answered is None or bool(seen.calls) or subject.surroundings is not None,
            f"do_{kind} was answered with {seen}, and the model was never asked. Declare it, may_answer = True, so "
            f"that outcomes say who answered; what refuses a call, does so with `raise options.context.deny(...)`",
        )


async def check_a_monotone_refusal_is_final(subject: Subject) -> None:
    """`monotone = True` says: once a text is refused, so is every longer one that begins with it."""
    if not getattr(subject.factory(), "monotone", False):
        return
    refused: str | None = None
    for whole in [answer.text for answer in (*subject.answers, *ANSWERS)]:
        refused = None
        for text in _prefixes(whole):
            denied = await _denied(subject, text)
            _require_still_refused(refused, text, denied)
            refused = text if denied and refused is None else refused
        if refused is not None:
            break
    require(
        refused is not None,
        "it says monotone = True, and refuses none of the answers that it was tried with: give texts that it refuses, "
        "check_middleware(..., answers=[...])",
    )
    for suffix in (*_SUFFIXES, *(answer.text for answer in subject.answers)):
        text = f"{refused}{suffix}"
        _require_still_refused(refused, text, await _denied(subject, text))


async def _denied(subject: Subject, text: str) -> bool:
    return (await subject.ask("generate", saying(text))).denied


def _require_still_refused(refused: str | None, longer: str, denied: bool) -> None:
    require(
        denied or refused is None,
        f"it says monotone = True, refuses {show(refused or '')}, and lets {show(longer)} pass. Leave monotone out, so "
        f"that the verdict waits for the whole answer, or judge so that more text never takes a refusal back",
    )


def _prefixes(text: str) -> list[str]:
    step = max(1, len(text) // _MOST_PREFIXES)
    return [*(text[:end] for end in range(0, len(text), step)), text]
