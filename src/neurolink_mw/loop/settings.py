"""How a turn is run: the settings that `run_generate_loop`, `run_stream_loop`, `TurnModel`, `generate` and `stream`
have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from ..errors import ConfigError
from ..loop_guard import DEFAULT_LOOP_GUARD_LOW_WATER_RATIO, DEFAULT_LOOP_GUARD_PROTECTED_TAIL
from ..pipeline.wording import did_you_mean
from ..protocol import OUTPUT_LIMITS, ExcerptLimits, LanguageModel, ModelLimits
from ..tools import Approve, Breaker, Tool, ToolSettings
from ..tools.settings import is_seconds
from ..tools.tool import by_name
from .prepare import PrepareStep
from .stop import StopCondition

MAX_STEPS = 200
MOST_STEPS = 500


@dataclass(frozen=True)
class ContextGuard:
    """How a turn stays inside the model's context window.

    limits: a glob over `provider:model-id` to a context window or `ModelLimits`, before the table of known models.
    The others are those of `LoopGuardPolicy`. enabled: whether old tool results are reclaimed at all.
    """

    limits: Mapping[str, ModelLimits | int] = field(default_factory=dict)
    threshold_ratio: float = 0.85
    low_water_ratio: float = DEFAULT_LOOP_GUARD_LOW_WATER_RATIO
    protected_tail_count: int = DEFAULT_LOOP_GUARD_PROTECTED_TAIL
    tail_relief: bool = False
    enabled: bool = True


@dataclass(frozen=True, kw_only=True)
class TurnSettings:
    """tools: what the model may call. max_steps: 1 to 500 calls of the model. tool_choice_steps: for how many steps a
    forced tool choice holds. prepare_step: asked before each step what to change of it. stop_when: conditions that end
    the turn after a step whose tools have run. terminal_tools: names of tools whose call ends the turn; they are never
    run, counted or listed. deadline: seconds for the whole turn.

    parallel_tools, tool_timeout, breaker, approve, output_limits: see `ToolSettings`. context_guard: see
    `ContextGuard`. ConfigError for what cannot work.
    """

    tools: Sequence[Tool] = ()
    max_steps: int = MAX_STEPS
    tool_choice_steps: int = 1
    prepare_step: PrepareStep | None = None
    stop_when: StopCondition | Sequence[StopCondition] = ()
    terminal_tools: Sequence[str] = ()
    deadline: float | None = None
    parallel_tools: int = 8
    tool_timeout: float | None = None
    breaker: Breaker | None = field(default_factory=Breaker)
    approve: Approve | None = None
    output_limits: ExcerptLimits | None = OUTPUT_LIMITS
    context_guard: ContextGuard = field(default_factory=ContextGuard)
    around_model: Callable[[LanguageModel], LanguageModel] | None = None
    """Puts around a model that `prepare_step` chooses what stands around the model of the turn."""
    conditions: Sequence[StopCondition] = field(init=False, repr=False, compare=False)
    """`stop_when` as a list."""
    tool_settings: ToolSettings = field(init=False, repr=False, compare=False)
    """What the executor gets."""

    def __post_init__(self) -> None:
        if not isinstance(self.tools, (list, tuple)) and not _is_list(self.tools):
            raise ConfigError("tools are given as a list: [tool]")
        by_name(self.tools)
        if not _is_whole(self.max_steps) or not 1 <= self.max_steps <= MOST_STEPS:
            raise ConfigError(f"max_steps is a whole number from 1 to {MOST_STEPS}")
        if not _is_whole(self.tool_choice_steps) or self.tool_choice_steps < 0:
            raise ConfigError("tool_choice_steps is a whole number from 0 on")
        conditions = (self.stop_when,) if callable(self.stop_when) else tuple(self.stop_when)
        if not all(map(callable, conditions)):
            raise ConfigError("stop_when takes functions of the steps, such as step_count_is(5)")
        if isinstance(self.terminal_tools, str):
            raise ConfigError("terminal_tools is a list of names")
        if not is_seconds(self.deadline):
            raise ConfigError("deadline is a number of seconds above 0, or None for no limit")
        if self.prepare_step is not None and not callable(self.prepare_step):
            raise ConfigError("prepare_step is a function of the step to come")
        tools = ToolSettings(self.parallel_tools, self.tool_timeout, self.breaker, self.approve, self.output_limits)
        object.__setattr__(self, "conditions", conditions)
        object.__setattr__(self, "tool_settings", tools)


class TurnKeywords(TypedDict, total=False):
    """The settings of a turn beside its tools, as keyword arguments; see `TurnSettings`."""

    max_steps: int
    tool_choice_steps: int
    prepare_step: PrepareStep | None
    stop_when: StopCondition | Sequence[StopCondition]
    terminal_tools: Sequence[str]
    deadline: float | None
    parallel_tools: int
    tool_timeout: float | None
    breaker: Breaker | None
    approve: Approve | None
    output_limits: ExcerptLimits | None
    context_guard: ContextGuard


_NAMES = list(TurnKeywords.__annotations__)


def turn_settings(tools: Sequence[Tool], given: Mapping[str, Any]) -> TurnSettings:
    """Tools and keyword arguments as settings. TypeError for a name that is none of them."""
    for name in given:
        if name not in _NAMES:
            raise TypeError(f"a turn has no setting {name!r}{did_you_mean(name, _NAMES)}")
    return TurnSettings(tools=tools, **given)


def _is_list(tools: object) -> bool:
    return isinstance(tools, Sequence) and not isinstance(tools, Tool | str)


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)
