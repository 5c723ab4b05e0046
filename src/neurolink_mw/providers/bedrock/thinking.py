"""How a call asks for reasoning, as fields of additionalModelRequestFields. Pure.

Converse has no member for it: Claude takes `thinking` with a budget or, newer, a level; Nova takes `reasoningConfig`;
OpenAI's open models take `reasoning_effort`. `reasoningConfig` of the provider options is put into these; so is the
call's own `reasoning` level, where nothing more exact was said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ...protocol import CallOptions, CallWarning
from ..common.conversation import begun_with
from .capabilities import Capabilities
from .errors import ErrorReader
from .native_values import Block
from .options import ProviderOptions

# Tokens that a level is worth where a model takes a budget; 1024 is the least that Claude accepts.
BUDGETS: Final = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32000, "max": 32000}
ANSWER_TOKENS: Final = 4096
"""The room for the answer beside the budget, where the call sets no limit: the limit counts both."""

_LEVELS: Final[Mapping[str, Mapping[str, str]]] = {
    "adaptive": {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"},
    "coarse": {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"},
}


class Thinking(NamedTuple):
    """fields: of additionalModelRequestFields. effort: the level of Claude's `output_config`. budget: tokens on top of
    the answer's. on: Claude reasons, so that it takes no sampling settings and no forced tool choice."""

    fields: dict[str, object]
    effort: str | None = None
    budget: int = 0
    on: bool = False


def thinking_of(
    options: CallOptions,
    own: ProviderOptions,
    capabilities: Capabilities,
    errors: ErrorReader,
    warnings: list[CallWarning],
) -> Thinking:
    """What the call says about reasoning. Raises InvalidRequestError for a `reasoningConfig` that cannot be meant."""
    if own.reasoning is not None:
        thinking = _configured(own.reasoning, capabilities, errors, warnings)
    else:
        thinking = _at_level(options.reasoning, capabilities, warnings)
    # Said in the model's own words, it counts as well.
    kind = _said_natively(own).get("type")
    if kind in ("enabled", "adaptive"):
        return thinking._replace(on=True)
    return thinking._replace(fields={}, budget=0, on=False) if kind == "disabled" else thinking


def after_history(
    thinking: Thinking, own: ProviderOptions, messages: Sequence[Block], warnings: list[CallWarning]
) -> Thinking:
    """Reasoning as the messages allow it. With a budget Claude wants an answer that goes on, behind results of tools or
    a text that was begun for it, to have begun with a thought, and refuses the request where it has not. Then it is not
    asked to reason. What the call says in the model's own fields stays as it is."""
    begun = begun_with(messages, lambda block: "toolResult" in block)
    if not thinking.budget or _said_natively(own) or not begun or any("reasoningContent" in block for block in begun):
        return thinking
    details = (
        "not asked for: the answer that goes on here did not begin with a thought of this model, and with a budget it "
        "takes no such; it can reason again from the user's next message on"
    )
    warnings.append(CallWarning("unsupported", "reasoning", details))
    return thinking._replace(fields={}, budget=0, on=False)


def _said_natively(own: ProviderOptions) -> Mapping[str, object]:
    """`thinking` in the model's own fields; empty where it is not there."""
    fields = own.members.get("additionalModelRequestFields")
    said = fields.get("thinking") if isinstance(fields, Mapping) else None
    return said if isinstance(said, Mapping) else {}


def _configured(
    config: Mapping[str, object], capabilities: Capabilities, errors: ErrorReader, warnings: list[CallWarning]
) -> Thinking:
    place = "provider_options['bedrock']['reasoningConfig']"
    kind, budget, effort = config.get("type"), config.get("budgetTokens"), config.get("maxReasoningEffort")
    if kind not in (None, "enabled", "adaptive", "disabled"):
        raise errors.refused(f"{place}: type is 'enabled', 'adaptive' or 'disabled'")
    if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool) or budget < 0):
        raise errors.refused(f"{place}: budgetTokens is a whole number of tokens")
    if effort is not None and not isinstance(effort, str):
        raise errors.refused(f"{place}: maxReasoningEffort is a string, not {type(effort).__name__}")
    if capabilities.thinking == "anthropic":
        if kind == "enabled" and budget is None:
            raise errors.refused(f"{place}: with type 'enabled' this model takes budgetTokens")
        if kind == "enabled" and isinstance(budget, int):
            return Thinking({"thinking": {"type": "enabled", "budget_tokens": budget}}, effort, budget, on=True)
        if kind == "adaptive":
            return Thinking({"thinking": {"type": "adaptive"}}, effort, on=True)
        return Thinking({}, effort)
    if budget is not None:
        details = "this model takes a level (maxReasoningEffort), no budget"
        warnings.append(CallWarning("unsupported", "budgetTokens", details))
    if capabilities.thinking == "effort":
        return Thinking({} if effort is None else {"reasoning_effort": effort})
    native = {"type": kind, "budgetTokens": budget, "maxReasoningEffort": effort}
    return Thinking({"reasoningConfig": {name: item for name, item in native.items() if item is not None}})


def _at_level(level: str | None, capabilities: Capabilities, warnings: list[CallWarning]) -> Thinking:
    if level is None or level == "provider-default":
        return Thinking({})
    if level == "none":
        if capabilities.thinking == "nova":
            return Thinking({"reasoningConfig": {"type": "disabled"}})
        if capabilities.thinking == "effort":
            details = "this model always reasons: its lowest level is low"
            warnings.append(CallWarning("unsupported", "reasoning", details))
        return Thinking({})  # the others reason only where they are asked to
    if level not in BUDGETS or capabilities.thinking is None or not capabilities.reasons:
        details = f"no level {level!r}" if level not in BUDGETS else "this model is not known to take a level"
        warnings.append(CallWarning("unsupported", "reasoning", f"{details}; say reasoningConfig in provider_options"))
        return Thinking({})
    if capabilities.thinking == "anthropic" and capabilities.adaptive:
        return Thinking({"thinking": {"type": "adaptive"}}, _level(level, "adaptive", warnings), on=True)
    if capabilities.thinking == "anthropic":
        budget = BUDGETS[level]
        return Thinking({"thinking": {"type": "enabled", "budget_tokens": budget}}, None, budget, on=True)
    effort = _level(level, "coarse", warnings)
    if capabilities.thinking == "effort":
        return Thinking({"reasoning_effort": effort})
    return Thinking({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}})


def _level(level: str, scale: str, warnings: list[CallWarning]) -> str:
    native = _LEVELS[scale][level]
    if native != level:
        details = f"level {level!r} was sent as {native!r}, the nearest that this model has"
        warnings.append(CallWarning("compatibility", "reasoning", details))
    return native
