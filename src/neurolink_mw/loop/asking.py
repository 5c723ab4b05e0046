"""What each step of a turn asks: its model, its tools, its tool choice, and as much of the conversation as fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..errors import ContextOverflowError
from ..loop_guard import LoopGuardPlan
from ..pipeline.wrap import accounted
from ..protocol import (
    CallOptions,
    Content,
    FunctionTool,
    LanguageModel,
    Message,
    SystemMessage,
    ToolChoice,
    ToolDefinition,
    UnknownPart,
)
from .guard import StepGuard, overflow
from .prepare import StepChanges, ask_prepare_step
from .result import TurnRecord
from .settings import TurnSettings
from .tool_choice import settle_tool_choice, to_v3_tool_choice

StepKind: TypeAlias = Literal["usual", "again", "last"]
"""again: after an answer of nothing, with no tools; last: for an answer at the limit of steps. Both may fail."""

_LAST_STEP_S = 60.0


@dataclass
class Step:
    """One call of the model to come. available: the names of the tools that it is told of. plan: of the context guard,
    None where there is none. shown: what the turn's answer says behind the step's own, once the step has ended:
    results of its tools, and what waits for approval."""

    number: int
    kind: StepKind
    model: LanguageModel
    options: CallOptions
    available: tuple[str, ...]
    plan: LoopGuardPlan | None
    shown: Sequence[Content] = ()

    @property
    def patience(self) -> float | None:
        """Seconds that it may take, where it is not what the turn is about."""
        return _LAST_STEP_S if self.kind == "last" else None


class Asking:
    """Makes the steps of one turn."""

    def __init__(self, model: LanguageModel, options: CallOptions, settings: TurnSettings, record: TurnRecord) -> None:
        self.tools = declared(settings, options)
        self.available = _names(self.tools)
        self._model = model
        self._options = options
        self._settings = settings
        self._record = record
        self._guard = StepGuard(settings.context_guard) if settings.context_guard.enabled else None

    async def step(self, kind: StepKind) -> Step:
        """The step to come."""
        number = len(self._record.steps)
        changes = await self._changes(number)
        tools, available = self.tools, self.available
        if changes.active_tools is not None:
            tools = tuple(tool for tool in tools if _name(tool) in changes.active_tools)
            available = _names(tools)
        model = self._model if changes.model is None else self._chosen(changes.model)
        base = self._options.replace(**changes.options) if changes.options else self._options
        plan = None
        if self._guard is not None:
            reclaimed = self._guard.reclaim(model, self._record.messages, tools, base.max_output_tokens)
            self._record.messages, plan = tuple(reclaimed.messages), reclaimed.plan
        options = base.replace(
            prompt=_with_system(self._record.messages, changes.system),
            tools=tools or None,
            tool_choice=self._tool_choice(kind, number, changes, available) if tools else None,
            context=base.context.child(step=number),
        )
        return Step(number, kind, accounted(model, options.context), options, available, plan)

    def _chosen(self, model: LanguageModel) -> LanguageModel:
        around = self._settings.around_model
        return model if around is None or model is self._model else around(model)

    def refit(self, step: Step, error: ContextOverflowError) -> None:
        """Shorten a step that the provider refused as too long. Raises the error with the figures where nothing can be
        left out."""
        reclaimed = None if self._guard is None else self._guard.refit(self._record.messages, error)
        if reclaimed is None:
            raise overflow(error, step.plan) from None
        self._record.messages = tuple(reclaimed.messages)
        system, rest = _split(step.options.prompt)[0], _split(self._record.messages)[1]
        step.options, step.plan = step.options.replace(prompt=(*system, *rest)), reclaimed.plan

    def observed(self, prompt_tokens: int | None) -> None:
        """What the provider counted for the newest step."""
        if self._guard is not None:
            self._guard.observed(prompt_tokens)

    async def _changes(self, number: int) -> StepChanges:
        settings = self._settings
        return await ask_prepare_step(
            settings.prepare_step,
            step=number,
            steps=self._record.steps,
            max_steps=settings.max_steps,
            model=self._model,
        )

    def _tool_choice(
        self, kind: StepKind, number: int, changes: StepChanges, available: tuple[str, ...]
    ) -> ToolChoice | None:
        if kind != "usual":
            return ToolChoice("none")
        chosen = settle_tool_choice(
            changes, number, self._options.tool_choice, self._settings.tool_choice_steps, available
        )
        return to_v3_tool_choice(chosen)


def declared(settings: TurnSettings, options: CallOptions) -> tuple[ToolDefinition, ...]:
    """The tools that the model is told of: the turn's, then those of the options. A function that the options name like
    one of the turn is that one, as a middleware wants it described."""
    own = {tool.name for tool in settings.tools}
    given = options.tools or ()
    described = {tool.name for tool in given if isinstance(tool, FunctionTool)}
    return (
        *(tool.definition for tool in settings.tools if tool.name not in described),
        *(tool for tool in given if isinstance(tool, FunctionTool) or _name(tool) not in own),
    )


def _names(tools: Sequence[ToolDefinition]) -> tuple[str, ...]:
    return tuple(name for tool in tools if (name := _name(tool)) is not None)


def _name(tool: ToolDefinition) -> str | None:
    return None if isinstance(tool, UnknownPart) else tool.name


def _split(messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The system messages at the beginning, and the rest."""
    at = next((index for index, one in enumerate(messages) if not isinstance(one, SystemMessage)), len(messages))
    return tuple(messages[:at]), tuple(messages[at:])


def _with_system(messages: tuple[Message, ...], system: str | None) -> tuple[Message, ...]:
    return messages if system is None else (SystemMessage(system), *_split(messages)[1])
