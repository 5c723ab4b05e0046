"""What a turn's `prepare_step` hook may change of the step to come."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from inspect import isawaitable
from typing import Any, TypeAlias, cast

from ..protocol import CallOptions, LanguageModel
from ..protocol.cancellation import interrupts, raise_if_cancelled
from ..protocol.serialization import camel_case
from .step import StepResult

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StepInfo:
    """What the hook is told. step_number: of the step to come, from 0; steps: those before it."""

    step_number: int
    steps: Sequence[StepResult]
    max_steps: int
    model: LanguageModel


@dataclass(frozen=True, slots=True)
class StepChanges:
    """What the hook may return, or a mapping with these names (in camelCase, too). All hold for the one step.

    tool_choice: in any spelling. model: asked instead. active_tools: the names of the tools that the model is told of;
    others are not run. system: takes the place of the system messages. options: other fields of `CallOptions`.
    """

    tool_choice: object = None
    model: LanguageModel | None = None
    active_tools: Sequence[str] | None = None
    system: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)


PrepareStep: TypeAlias = Callable[[StepInfo], object | Awaitable[object]]

NO_CHANGES = StepChanges()
_NAMES = {spelling: f.name for f in fields(StepChanges) for spelling in (f.name, camel_case(f.name))}
# The loop's own business: the conversation, and what is asked for by the fields above.
_NOT_OPTIONS = frozenset({"prompt", "tools", "tool_choice", "context", "metadata"})
_OPTIONS = frozenset(f.name for f in fields(CallOptions)) - _NOT_OPTIONS


async def ask_prepare_step(
    hook: PrepareStep | None, *, step: int, steps: Sequence[StepResult], max_steps: int, model: LanguageModel
) -> StepChanges:
    """Ask the hook. One that fails is logged, and changes nothing: the steps before it are paid for.

    Its failure and the end of the turn are told apart by whether this task is being cancelled, never by the error's
    name: a hook whose own service timed out may well raise something that is called a cancellation.
    """
    if hook is None:
        return NO_CHANGES
    try:
        said = hook(StepInfo(step, tuple(steps), max_steps, model))
        said = await said if isawaitable(said) else said
        await raise_if_cancelled()  # which the hook may have swallowed
        return _as_changes(said)
    except BaseException as error:
        if interrupts(error):
            raise
        await raise_if_cancelled()
        _log.warning("prepare_step failed before step %d, which goes on without it: %s", step, type(error).__name__)
        return NO_CHANGES


def _as_changes(said: object) -> StepChanges:
    """What a hook returned, without what cannot be used of it: one field that is wrong spoils no other."""
    if said is None:
        return NO_CHANGES
    if isinstance(said, StepChanges):
        given: dict[str, object] = {f.name: getattr(said, f.name) for f in fields(StepChanges)}
    elif isinstance(said, Mapping):
        unknown = sorted(str(name) for name in said if name not in _NAMES)
        if unknown:
            _log.warning("prepare_step returned what nobody reads: %s", ", ".join(unknown))
        given = {_NAMES[name]: value for name, value in said.items() if name in _NAMES}
    else:
        raise TypeError("prepare_step returns StepChanges(...), a mapping or None")
    usable: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        wrong = _WRONG[name](value)
        if wrong is None:
            usable[name] = tuple(cast(Iterable[str], value)) if name == "active_tools" else value
        else:
            _log.warning("what prepare_step returned as %s is not used: %s", name, wrong)
    return StepChanges(**usable)


def _wrong_options(value: object) -> str | None:
    if not isinstance(value, Mapping):
        return "it maps names of CallOptions to values"
    unknown = sorted(str(name) for name in value if name not in _OPTIONS)
    return f"it may not set {', '.join(unknown)}" if unknown else None


_WRONG: Mapping[str, Callable[[object], str | None]] = {
    "tool_choice": lambda value: None,
    "model": lambda value: None if hasattr(value, "do_generate") else "it is no language model",
    "active_tools": lambda value: None if _is_list(value) else "it is a list of names",
    "system": lambda value: None if isinstance(value, str) else "it is a text",
    "options": _wrong_options,
}


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | Mapping)
