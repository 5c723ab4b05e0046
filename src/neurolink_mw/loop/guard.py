"""The context guard of one turn: which budget holds for the model of a step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ..errors import ContextOverflowError
from ..loop_guard import LoopGuardPlan, LoopGuardPolicy, PromptGuard, Reclaimed
from ..protocol import (
    LanguageModel,
    Message,
    ToolDefinition,
    available_input_tokens,
    estimate_tool_tokens,
    model_limits,
    token_factor,
)
from .settings import ContextGuard

# Looked up for each turn, in a table of beginnings of names.
_known_limits = lru_cache(maxsize=256)(model_limits)


class StepGuard:
    """A guard for each model that the steps of a turn ask; most turns have one."""

    def __init__(self, settings: ContextGuard) -> None:
        self._settings = settings
        self._guards: dict[tuple[str, str, int | None], PromptGuard] = {}
        self._tools: tuple[Sequence[ToolDefinition], int] = ((), 0)
        self._asked: PromptGuard | None = None
        self._overhead = 0

    def reclaim(
        self,
        model: LanguageModel,
        messages: tuple[Message, ...],
        tools: Sequence[ToolDefinition],
        max_output_tokens: int | None,
    ) -> Reclaimed[Message]:
        """The conversation as the step may send it."""
        self._asked = self._guard_of(model, max_output_tokens)
        if tools is not self._tools[0]:
            self._tools = (tools, estimate_tool_tokens(tools, factor=token_factor(str(getattr(model, "provider", "")))))
        self._overhead = self._tools[1]
        return self._asked.reclaim(messages, self._overhead)

    def observed(self, prompt_tokens: int | None) -> None:
        """What the provider counted for the step."""
        if self._asked is not None:
            self._asked.observed(prompt_tokens)

    def refit(self, messages: tuple[Message, ...], error: ContextOverflowError) -> Reclaimed[Message] | None:
        """A shorter conversation for a step that the provider refused as too long; None where there is none."""
        assert self._asked is not None
        return self._asked.reclaim_after_overflow(
            messages, self._overhead, prompt_tokens=error.prompt_tokens, limit_tokens=error.limit_tokens
        )

    def _guard_of(self, model: LanguageModel, max_output_tokens: int | None) -> PromptGuard:
        # The hook of one's own loop may be a `do_generate` and no more.
        provider, model_id = str(getattr(model, "provider", "")), str(getattr(model, "model_id", ""))
        key = (provider, model_id, max_output_tokens)
        guard = self._guards.get(key)
        if guard is None:
            settings = self._settings
            known = _known_limits(provider, model_id)
            limits = model_limits(provider, model_id, settings.limits) if settings.limits else known
            policy = LoopGuardPolicy(
                available_input_tokens(limits, max_output_tokens),
                threshold_ratio=settings.threshold_ratio,
                low_water_ratio=settings.low_water_ratio,
                protected_tail_count=settings.protected_tail_count,
                tail_relief=settings.tail_relief,
            )
            guard = self._guards[key] = PromptGuard(policy, factor=token_factor(provider))
        return guard


def overflow(error: ContextOverflowError, plan: LoopGuardPlan | None) -> ContextOverflowError:
    """The error of a prompt that stayed too long, with the figures."""
    figures = ""
    if plan is not None:
        figures = (
            f" (about {plan.projected_tokens} tokens by our estimate, {plan.budget_tokens} available; "
            f"{len(plan.truncate) + len(plan.relief)} results were shortened, {len(plan.drop)} messages left out)"
        )
    made = ContextOverflowError(
        f"the conversation does not fit into the model's context window, and nothing more can be left out{figures}: "
        f"{error}",
        provider=error.provider,
        model_id=error.model_id,
        status=error.status,
        request_id=error.request_id,
    )
    made.prompt_tokens, made.limit_tokens = error.prompt_tokens, error.limit_tokens
    return made
