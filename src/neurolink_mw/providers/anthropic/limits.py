"""What single models take of what the Messages API can say, their output limits first. A table by model id. Pure.

The SDK's types describe the API as a whole; which model refuses what is in the models' own pages and migration guides
at platform.claude.com. Ids come as Bedrock (`us.anthropic.claude-...-v1:0`, ARNs) and Vertex AI (`claude-...@2025...`)
spell them, too. What is not known is sent as asked: the API then says what it does not take.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

Sampling: TypeAlias = Literal["all", "one", "none"]
"""all: temperature and top_p together; one: not both; none: neither, and no top_k."""

LEVELS: Final = ("low", "medium", "high", "xhigh", "max")
"""The levels of `output_config.effort`, lowest first."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model takes.

    max_tokens: the most of `max_tokens`, and what is sent where the call sets none; known: that the model really has
    this limit. thinking: the types of `thinking` that it takes. thinks: whether it does so unless told otherwise.
    efforts: its levels. quiet_efforts: those that it takes with thinking disabled. sampling: which of the settings.
    forced_choice: a choice of `any` or of one tool, where the call does not ask it to think: what thinks by default
    takes one then, what always thinks does not. json_format: `output_config.format`, beside tools as well. strict:
    `strict` on a tool.
    """

    max_tokens: int = 4096
    known: bool = False
    thinking: frozenset[str] = frozenset({"enabled", "disabled"})
    thinks: bool = False
    efforts: tuple[str, ...] = LEVELS
    quiet_efforts: tuple[str, ...] = LEVELS
    sampling: Sampling = "all"
    forced_choice: bool = True
    json_format: bool = False
    strict: bool = True


_BUDGET: Final = frozenset({"enabled", "disabled"})
_EITHER: Final = frozenset({"enabled", "adaptive", "disabled"})
_ADAPTIVE: Final = frozenset({"adaptive", "disabled"})
_ALWAYS: Final = frozenset({"adaptive"})
_UP_TO_HIGH: Final = LEVELS[:3]

_CLAUDE_3: Final = Capabilities(4096, True, frozenset(), efforts=(), strict=False)
_CLAUDE_35: Final = replace(_CLAUDE_3, max_tokens=8192)
_CLAUDE_37: Final = replace(_CLAUDE_3, max_tokens=64000, thinking=_BUDGET)
_SONNET_4: Final = replace(_CLAUDE_37, sampling="one")
_OPUS_4: Final = replace(_SONNET_4, max_tokens=32000)
_CLAUDE_45: Final = replace(_SONNET_4, json_format=True, strict=True)
_OPUS_45: Final = replace(_CLAUDE_45, efforts=_UP_TO_HIGH)
_CLAUDE_46: Final = replace(_CLAUDE_45, max_tokens=128000, thinking=_EITHER, efforts=("low", "medium", "high", "max"))
_CLAUDE_47: Final = replace(_CLAUDE_46, thinking=_ADAPTIVE, efforts=LEVELS, sampling="none")
_CLAUDE_5: Final = replace(_CLAUDE_47, thinks=True)
_QUIET_UP_TO_HIGH: Final = replace(_CLAUDE_5, quiet_efforts=_UP_TO_HIGH)
_ALWAYS_ON: Final = replace(_CLAUDE_5, thinking=_ALWAYS, forced_choice=False)
_SONNET_55: Final = replace(
    _CLAUDE_5, thinking=frozenset({"adaptive", "between_tools"}), quiet_efforts=_UP_TO_HIGH, forced_choice=False
)
_NEW: Final = Capabilities(128000, False, _EITHER, sampling="one", json_format=True)
_UNKNOWN: Final = Capabilities()

# The longest beginning of an id decides.
_BY_ID: Final[Mapping[str, Capabilities]] = {
    "claude": _NEW,
    "claude-instant": _CLAUDE_3,
    "claude-2": _CLAUDE_3,
    "claude-v2": _CLAUDE_3,
    "claude-3": _CLAUDE_3,
    "claude-3-5": _CLAUDE_35,
    "claude-3-7": _CLAUDE_37,
    "claude-4-sonnet": _SONNET_4,
    "claude-4-opus": _OPUS_4,
    "claude-sonnet-4-0": _SONNET_4,
    "claude-sonnet-4-2025": _SONNET_4,
    "claude-opus-4-0": _OPUS_4,
    "claude-opus-4-1": _OPUS_4,
    "claude-opus-4-2025": _OPUS_4,
    "claude-haiku-4-5": _CLAUDE_45,
    "claude-sonnet-4-5": _CLAUDE_45,
    "claude-opus-4-5": _OPUS_45,
    "claude-sonnet-4-6": _CLAUDE_46,
    "claude-opus-4-6": _CLAUDE_46,
    "claude-opus-4-7": _CLAUDE_47,
    "claude-opus-4-8": _CLAUDE_47,
    "claude-sonnet-5": _CLAUDE_5,
    "claude-opus-5": _QUIET_UP_TO_HIGH,
    "claude-haiku-5-5": _QUIET_UP_TO_HIGH,
    "claude-sonnet-5-5": _SONNET_55,
    "claude-opus-5-5": _ALWAYS_ON,
    "claude-fable-5": _ALWAYS_ON,
    "claude-mythos-5": _ALWAYS_ON,
    "claude-mythos-preview": replace(_ALWAYS_ON, thinking=frozenset({"enabled", "adaptive"})),
}
_GEOGRAPHY = re.compile(r"^(?:us|us-gov|eu|apac|jp|au|ca|sa|me|af|global)\.(?=anthropic\.)")
_DOT_IN_VERSION = re.compile(r"(?<=\d)\.(?=\d)")
# As gateways spell the first models of the fourth generation. As a beginning it would take in their successors as well.
_WITHOUT_MINOR = re.compile(r"^(claude-(?:opus|sonnet)-4)(?!-?\d)")


def capabilities_of(model_id: str) -> Capabilities:
    """What the table says of a model id, whichever cloud spells it."""
    id = model_id.rpartition("/")[2].lower()
    id = _GEOGRAPHY.sub("", id).removeprefix("anthropic.").replace("@", "-")
    id = _DOT_IN_VERSION.sub("-", id)
    id = _WITHOUT_MINOR.sub(r"\1-0", id)
    fitting = [beginning for beginning in _BY_ID if id.startswith(beginning)]
    return _BY_ID[max(fitting, key=len)] if fitting else _UNKNOWN
