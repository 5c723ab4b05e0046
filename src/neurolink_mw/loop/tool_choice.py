"""Which tool choice one step of a turn is sent.

A forced choice that held at every step would compel a tool call at every step, and the turn could only end at its
limit. So it holds for the first steps, and then the model chooses.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence

from ..protocol import LanguageModel, ToolChoice
from .prepare import PrepareStep, StepChanges, ask_prepare_step
from .step import StepResult

_log = logging.getLogger(__name__)

Choice = object
"""A tool choice in any of its spellings: "auto", "none", "required", `{"type": "tool", "toolName": ...}`, a
`ToolChoice`; None where nothing was chosen."""

_WORDS = frozenset({"auto", "none", "required"})


async def resolve_step_tool_choice(
    *,
    step: int,
    tool_choice: Choice,
    tool_choice_steps: int = 1,
    prepare_step: PrepareStep | None = None,
    steps: Sequence[StepResult] = (),
    max_steps: int,
    model: LanguageModel,
    declared_tools: Collection[str] | None = None,
) -> Choice:
    """The tool choice for step number `step` (from 0), in the spelling in which it was given.

    A forced choice ("required", or one tool) applies while `step < tool_choice_steps`, after which it is "auto";
    "auto", "none" and no choice pass through at every step. `prepare_step` runs first, and a tool choice that it
    returns wins, also a forced one late in the turn; one that returns none leaves it to the rule, and so does one that
    fails, which is logged. The cancellation of this task is raised, whatever the hook makes of it.

    A `tool_choice_steps` that is no whole number from 0 on counts as 1, with a warning.

    A choice of one tool that is not among `declared_tools` is warned about and not sent: one of the hook's counts as
    none, one of the turn becomes "auto". Without `declared_tools` nothing is checked.
    """
    if isinstance(tool_choice_steps, bool) or not isinstance(tool_choice_steps, int) or tool_choice_steps < 0:
        _log.warning("tool_choice_steps is a whole number from 0 on: 1 is taken in its place")
        tool_choice_steps = 1
    changes = await ask_prepare_step(prepare_step, step=step, steps=steps, max_steps=max_steps, model=model)
    return settle_tool_choice(changes, step, tool_choice, tool_choice_steps, declared_tools)


def settle_tool_choice(
    changes: StepChanges, step: int, tool_choice: Choice, tool_choice_steps: int, declared_tools: Collection[str] | None
) -> Choice:
    """The rule itself, for a hook that has been asked."""
    chosen = changes.tool_choice
    if chosen is not None and _is_declared(chosen, declared_tools, "prepare_step"):
        return chosen
    if not _is_declared(tool_choice, declared_tools, "the turn"):
        return "auto"
    return tool_choice if step < tool_choice_steps or not _is_forced(tool_choice) else "auto"


def to_v3_tool_choice(choice: Choice) -> ToolChoice | None:
    """Any spelling as the protocol's object. A word that is none of ours is no choice; an object passes through."""
    if isinstance(choice, ToolChoice):
        return choice
    if isinstance(choice, str):
        return ToolChoice(choice) if choice in _WORDS else None
    if isinstance(choice, Mapping):
        type, name = choice.get("type"), _tool_name(choice)
        return ToolChoice(type, name) if isinstance(type, str) else None
    return None


def _is_forced(choice: Choice) -> bool:
    found = to_v3_tool_choice(choice)
    return found is not None and found.type not in ("auto", "none")


def _is_declared(choice: Choice, declared_tools: Collection[str] | None, whose: str) -> bool:
    found = to_v3_tool_choice(choice)
    if declared_tools is None or found is None or found.type != "tool" or found.tool_name in declared_tools:
        return True
    known = ", ".join(sorted(declared_tools)) or "none"
    _log.warning(
        "the tool choice of %s names %r, which is not sent: the tools of this step are %s",
        whose, found.tool_name, known,
    )  # fmt: skip
    return False


def _tool_name(choice: Mapping[object, object]) -> str | None:
    name = choice.get("toolName", choice.get("tool_name"))
    return name if isinstance(name, str) else None
