"""What a turn's `prepare_step` hook may change of the step to come."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from inspect import isawaitable
from typing import TypeAlias

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
        return _as_changes(await said if isawaitable(said) else said)
    except BaseException as error:
        if interrupts(error):
            raise
        await raise_if_cancelled()
        _log.warning("prepare_step failed before step %d, which goes on without it: %s", step, type(error).__name__)
        return NO_CHANGES


def _as_changes(said: object) -> StepChanges:
    if said is None:
        return NO_CHANGES
    if isinstance(said, StepChanges):
        changes = said
    elif isinstance(said, Mapping):
        unknown = sorted(str(name) for name in said if name not in _NAMES)
        if unknown:
            _log.warning("prepare_step returned what nobody reads: %s", ", ".join(unknown))
        changes = StepChanges(**{_NAMES[name]: value for name, value in said.items() if name in _NAMES})
    else:
        raise TypeError("prepare_step returns StepChanges(...), a mapping or None")
    _check(changes)
    return changes


def _check(changes: StepChanges) -> None:
    if isinstance(changes.active_tools, str):
        raise TypeError("active_tools is a list of names")
    if changes.model is not None and not hasattr(changes.model, "do_generate"):
        raise TypeError("model is a language model")
    if changes.system is not None and not isinstance(changes.system, str):
        raise TypeError("system is a text")
    if not isinstance(changes.options, Mapping) or not set(changes.options) <= _OPTIONS:
        raise TypeError("options maps names of CallOptions to values")
