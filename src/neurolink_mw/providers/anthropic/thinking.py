"""How a call asks for thinking and effort, and the output limit that both share. Pure.

Which types of `thinking` a model takes is in `limits`: older ones a budget of tokens, newer ones `adaptive` with a
level of effort, some cannot be told to stop. What the model is known to refuse is turned into the nearest that it
takes, with a warning. The call's own `reasoning` level counts where the provider options say nothing more exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ...protocol import CallOptions, CallWarning
from ..common.conversation import begun_with
from .errors import ErrorReader
from .limits import LEVELS, Capabilities
from .native_values import Block
from .options import ProviderOptions

THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
"""Types of the blocks that a model's thoughts are."""

# Tokens that a level is worth where a model takes a budget.
BUDGETS: Final = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32000, "max": 32000}
LEAST_BUDGET: Final = 1024
"""What the API accepts at least, and what is sent for a budget that was not given."""
ANSWER_TOKENS: Final = 4096
"""The room that is kept for the answer beside a budget that would take the whole limit."""

_TYPES: Final = ("enabled", "adaptive", "disabled", "between_tools")
_INSTEAD: Final[Mapping[str, tuple[str, ...]]] = {
    "enabled": ("adaptive",),
    "adaptive": ("enabled",),
    "disabled": ("between_tools",),
    "between_tools": ("disabled",),
}
_QUIET: Final = ("disabled", "between_tools")
_PLACE: Final = "provider_options['anthropic']['thinking']"
_EFFORT: Final = "providerOptions.anthropic.effort"


class Thinking(NamedTuple):
    """native: the member `thinking`, None where it is not sent. effort: of `output_config`. budget: tokens on top of
    the answer's. on: the model was told to think, so that it takes no sampling settings and no forced tool choice."""

    native: dict[str, object] | None = None
    effort: str | None = None

    @property
    def budget(self) -> int:
        budget = (self.native or {}).get("budget_tokens")
        return budget if isinstance(budget, int) else 0

    @property
    def on(self) -> bool:
        return self.native is not None and self.native.get("type") in ("enabled", "adaptive")


def thinking_of(
    options: CallOptions,
    own: ProviderOptions,
    capabilities: Capabilities,
    errors: ErrorReader,
    warnings: list[CallWarning],
) -> Thinking:
    """What the call says about thinking. Raises InvalidRequestError for a `thinking` that cannot be meant."""
    effort = own.output_config.get("effort")
    wanted = effort if isinstance(effort, str) else None
    feature = _EFFORT
    config = None if own.thinking is None else dict(_checked(own.thinking, errors))
    level = options.reasoning
    if wanted is None and level is not None and level != "provider-default":
        config, wanted = _at_level(level, config, capabilities, warnings)
        feature = "reasoning"
    if config is not None:
        config = _fitted(config, wanted, capabilities, warnings)
    return Thinking(config, _fitted_effort(wanted, feature, config, capabilities, warnings))


def after_history(
    thinking: Thinking, messages: Sequence[Block], capabilities: Capabilities, warnings: list[CallWarning]
) -> Thinking:
    """Thinking as the messages allow it. With a budget the API wants an answer that goes on, behind results of tools or
    a text that was begun for the model, to have begun with a thought. Where it has not, thinking is turned off for this
    request, which is what the API tells to do until that turn is over. Adaptive thinking asks for no such thought."""
    if thinking.native is None or thinking.native.get("type") != "enabled":
        return thinking
    begun = {block.get("type") for block in begun_with(messages, lambda block: block.get("type") == "tool_result")}
    if not begun or not THOUGHTS.isdisjoint(begun):
        return thinking
    instead = "disabled" if "disabled" in capabilities.thinking else "adaptive"
    details = (
        f"sent as {instead!r}: the answer that goes on here did not begin with a thought of this model, and with a "
        "budget the API takes no such; it can think again from the user's next message on"
    )
    warnings.append(CallWarning("unsupported", "thinking", details))
    return thinking._replace(native={"type": instead})


def token_limit(
    options: CallOptions, thinking: Thinking, capabilities: Capabilities, model_id: str, warnings: list[CallWarning]
) -> tuple[int, Thinking]:
    """`max_tokens`, and the thinking whose budget fits into it. The API counts the budget within the limit; the call's
    own setting is that of the answer alone, as in V3."""
    asked, most = options.max_output_tokens, capabilities.max_tokens
    if asked is None and not capabilities.known:
        details = f"the limit of {model_id} is not known: {most} was sent; say max_output_tokens"
        warnings.append(CallWarning("compatibility", "maxOutputTokens", details))
    limit = (most if asked is None else asked) + thinking.budget
    if capabilities.known and limit > most:
        if asked is not None:
            counted = "max_output_tokens and the budget of thinking" if thinking.budget else "max_output_tokens"
            details = f"{limit} ({counted}) was sent as {most}, the limit of {model_id}"
            warnings.append(CallWarning("unsupported", "maxOutputTokens", details))
        limit = most
    if thinking.native is None or not thinking.budget or thinking.budget < limit:
        return limit, thinking
    budget = max(LEAST_BUDGET, limit - ANSWER_TOKENS)
    details = f"{thinking.budget} was sent as {budget}: the budget is less than max_tokens, which is {limit} here"
    warnings.append(CallWarning("unsupported", "budgetTokens", details))
    return limit, thinking._replace(native={**thinking.native, "budget_tokens": budget})


def _checked(config: dict[str, object], errors: ErrorReader) -> dict[str, object]:
    kind, budget = config.get("type"), config.get("budget_tokens")
    if kind not in _TYPES:
        raise errors.refused(f"{_PLACE}: type is {', '.join(map(repr, _TYPES[:-1]))} or {_TYPES[-1]!r}")
    if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool) or budget < 0):
        raise errors.refused(f"{_PLACE}: budgetTokens is a whole number of tokens")
    return {name: item for name, item in config.items() if item is not None}


def _at_level(
    level: str, config: dict[str, object] | None, capabilities: Capabilities, warnings: list[CallWarning]
) -> tuple[dict[str, object] | None, str | None]:
    """What a level of V3 asks for; a configuration that was given stays, and an adaptive one gets the level."""
    if config is not None:
        effort = _effort_of(level) if config.get("type") == "adaptive" else None
        return config, effort
    if level == "none":
        if capabilities.known and not capabilities.thinks:
            return None, None  # these think only where they are asked to
        off = next((one for one in _QUIET if one in capabilities.thinking), None)
        return ({"type": off}, None) if off is not None else (None, _least(warnings))
    if level not in BUDGETS or not capabilities.thinking & {"enabled", "adaptive"}:
        details = f"no level {level!r}" if level not in BUDGETS else "this model does not think"
        warnings.append(CallWarning("unsupported", "reasoning", f"{details}: left out"))
        return None, None
    if "adaptive" in capabilities.thinking:
        return {"type": "adaptive"}, _effort_of(level)
    return {"type": "enabled", "budget_tokens": BUDGETS[level]}, None


def _least(warnings: list[CallWarning]) -> str:
    details = "this model always thinks: the level 'none' was sent as the lowest effort"
    warnings.append(CallWarning("unsupported", "reasoning", details))
    return LEVELS[0]


def _effort_of(level: str) -> str | None:
    return LEVELS[0] if level == "minimal" else level if level in LEVELS else None


def _fitted(
    config: dict[str, object], effort: str | None, capabilities: Capabilities, warnings: list[CallWarning]
) -> dict[str, object] | None:
    kind = config.get("type")
    if isinstance(kind, str) and capabilities.known and kind not in capabilities.thinking:
        instead = next((one for one in _INSTEAD[kind] if one in capabilities.thinking), None)
        said = "left out" if instead is None else f"sent as {instead!r}"
        details = f"{said}: this model does not take type {kind!r}"
        warnings.append(CallWarning("unsupported", "thinking", details))
        if instead is None:
            return None
        config = {name: item for name, item in config.items() if name != "budget_tokens"} | {"type": instead}
        if instead == "enabled":
            config["budget_tokens"] = BUDGETS.get(effort or "medium", BUDGETS["medium"])
    if config.get("type") != "enabled":
        return config
    budget = config.get("budget_tokens")
    if budget is None:
        details = f"the API wants a budget with type 'enabled': {LEAST_BUDGET} was sent; say budgetTokens"
        warnings.append(CallWarning("compatibility", "extended thinking", details))
    elif isinstance(budget, int) and budget < LEAST_BUDGET:
        details = f"{budget} was sent as {LEAST_BUDGET}, the least that the API takes"
        warnings.append(CallWarning("unsupported", "budgetTokens", details))
    else:
        return config
    return {**config, "budget_tokens": LEAST_BUDGET}


def _fitted_effort(
    effort: str | None,
    feature: str,
    config: dict[str, object] | None,
    capabilities: Capabilities,
    warnings: list[CallWarning],
) -> str | None:
    """The highest level up to the one that is wanted which the model takes; one that is none of them goes as it is."""
    if effort not in LEVELS or not capabilities.known:
        return effort
    quiet = config is not None and config.get("type") in _QUIET
    taken = capabilities.quiet_efforts if quiet else capabilities.efforts
    fitting = [one for one in LEVELS[: LEVELS.index(effort) + 1] if one in taken and one in capabilities.efforts]
    native = fitting[-1] if fitting else None
    if native != effort:
        said = "left out" if native is None else f"sent as {native!r}"
        why = "while it does not think" if quiet and native is not None else "of this model"
        kind = "compatibility" if feature == "reasoning" and native is not None else "unsupported"
        details = f"level {effort!r} was {said}: not a level {why}"
        warnings.append(CallWarning(kind, feature, details))
    return native
