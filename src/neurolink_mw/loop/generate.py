"""A turn that is generated: every step is a `do_generate`, where a model chooses its non-streaming wire format."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, Unpack

import anyio

from ..errors import ConfigError, ContextOverflowError
from ..protocol import CallOptions, GenerateResult, LanguageModel
from ..tools import Tool
from .asking import Step
from .guard import overflow
from .native import has_native_do_generate
from .result import TurnRecord, TurnResult
from .settings import TurnKeywords, TurnSettings, turn_settings
from .turn import Turn

T = TypeVar("T")


async def run_generate_loop(
    model: LanguageModel,
    options: CallOptions,
    *,
    tools: Sequence[Tool] = (),
    record: TurnRecord | None = None,
    **settings: Unpack[TurnKeywords],
) -> TurnResult:
    """Ask the model, run the tools that it calls, and ask again, until it answers.

    It calls `do_generate` only. options: of the turn; each step gets them with its own prompt, tools and tool choice.
    settings: see `TurnSettings`. record: filled in as the turn goes, and readable however it ends.

    Raises what the model raises at the first step; after that a `TurnError` with what was done, the failure as its
    cause. A turn that outlasts its `deadline` is a `TurnError`, too. `PolicyDenied` is raised as it is.
    """
    return await generate_turn(model, options, turn_settings(tools, settings), record)


async def generate_turn(
    model: LanguageModel, options: CallOptions, settings: TurnSettings, record: TurnRecord | None
) -> TurnResult:
    """`run_generate_loop` with settings that were checked already."""
    if not has_native_do_generate(model):
        raise ConfigError(f"a turn needs a model with do_generate, and {type(model).__name__} has none")
    turn = Turn(model, options, settings, record)
    if settings.deadline is None:
        return await _run(turn)
    with anyio.move_on_after(settings.deadline):
        return await _run(turn)
    raise turn.overdue()


async def _run(turn: Turn) -> TurnResult:
    try:
        await turn.begin()
        while (step := await turn.next_step()) is not None:
            await _take(turn, step)
        return turn.result()
    except Exception as error:
        if (failure := turn.error(error)) is None:
            raise
        try:
            raise failure from error
        finally:
            del failure  # a frame that holds the error that refers to it would wait for the collector


async def _take(turn: Turn, step: Step) -> None:
    try:
        answer = await ask(turn, step, step.model.do_generate)
        if not isinstance(answer, GenerateResult):
            raise ConfigError(f"do_generate of the model returned {type(answer).__name__}, not a GenerateResult")
    except Exception as error:
        if not turn.forgives(step, error):
            raise
        turn.go_without(step, error)
    else:
        await turn.ended(step, answer)


async def ask(turn: Turn, step: Step, call: Callable[[CallOptions], Awaitable[T]]) -> T:
    """Call the model for a step; once more with less, where it says that the conversation is too long."""
    if step.patience is None:
        return await _ask(turn, step, call)
    with anyio.fail_after(step.patience):
        return await _ask(turn, step, call)


async def _ask(turn: Turn, step: Step, call: Callable[[CallOptions], Awaitable[T]]) -> T:
    try:
        return await call(step.options)
    except ContextOverflowError as error:
        turn.refit(step, error)
    try:
        return await call(step.options)
    except ContextOverflowError as error:
        raise overflow(error, step.plan) from None
