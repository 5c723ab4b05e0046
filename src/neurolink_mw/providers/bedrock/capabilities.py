"""What single models take of what Converse can say. A table by model id, and every entry can be overruled. Pure.

The service model describes Converse as a whole; which model refuses what, only the guides and the service's answers
say. Ids come with a geography before them (`us.`), inside an ARN, and with a version behind. What is not known is sent
as asked: the service then says what it does not take.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

Thinking: TypeAlias = Literal["anthropic", "nova", "effort"]
"""How reasoning is asked for: `thinking` with a budget or a level, Nova's `reasoningConfig`, or `reasoning_effort`."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model takes.

    json_schema: `outputConfig.textFormat`. strict: `strict` on a tool. top_k: where top-k goes in
    additionalModelRequestFields, outermost key first; () where the model has none. thinking: how reasoning is asked
    for. reasons: whether it reasons at all. adaptive: whether `thinking` may be adaptive, with a level instead of a
    budget. result_status: `status` on a tool result. short_ids: tool ids are nine letters or digits. stop_sequence: the
    answer tells which one it met.
    """

    json_schema: bool = False
    strict: bool = True
    top_k: tuple[str, ...] = ()
    thinking: Thinking | None = None
    reasons: bool = True
    adaptive: bool = False
    result_status: bool = True
    short_ids: bool = False
    stop_sequence: bool = False


_CLAUDE: Final = Capabilities(top_k=("top_k",), stop_sequence=True, thinking="anthropic")
_CLAUDE_3: Final = replace(_CLAUDE, reasons=False)
_CLAUDE_45: Final = replace(_CLAUDE, json_schema=True)
_CLAUDE_46: Final = replace(_CLAUDE, json_schema=True, adaptive=True)
_CLAUDE_47: Final = replace(_CLAUDE, strict=False, adaptive=True)  # refuses the format and the flag
_OPEN: Final = Capabilities(json_schema=True, result_status=False)

# The longest beginning of an id decides. Tool results have a status on Claude and Nova alone (ToolResultBlock in the
# service model). Of `outputConfig.textFormat` the user guide names Claude 4.5 and Opus 4.6; the other entries are our
# best knowledge, which `structuredOutput` in the provider options overrules.
_BY_ID: Final[Mapping[str, Capabilities]] = {
    "anthropic.claude": _CLAUDE_47,
    "anthropic.claude-instant": _CLAUDE_3,
    "anthropic.claude-v2": _CLAUDE_3,
    "anthropic.claude-3": _CLAUDE_3,
    "anthropic.claude-3-7": _CLAUDE,
    "anthropic.claude-opus-4-1": _CLAUDE,
    "anthropic.claude-opus-4-2025": _CLAUDE,
    "anthropic.claude-sonnet-4-2025": _CLAUDE,
    "anthropic.claude-haiku-4-5": _CLAUDE_45,
    "anthropic.claude-sonnet-4-5": _CLAUDE_45,
    "anthropic.claude-opus-4-5": _CLAUDE_45,
    "anthropic.claude-sonnet-4-6": _CLAUDE_46,
    "anthropic.claude-opus-4-6": _CLAUDE_46,
    "amazon.nova": Capabilities(top_k=("inferenceConfig", "topK"), thinking="nova"),
    "amazon.titan": Capabilities(result_status=False),
    "cohere.command-r": Capabilities(top_k=("k",), result_status=False),
    "mistral": Capabilities(top_k=("top_k",), result_status=False, short_ids=True),
    "mistral.magistral": Capabilities(json_schema=True, result_status=False, short_ids=True),
    "mistral.ministral-3": Capabilities(json_schema=True, result_status=False, short_ids=True),
    "mistral.mistral-large-3": Capabilities(json_schema=True, result_status=False, short_ids=True),
    "mistral.voxtral": Capabilities(json_schema=True, result_status=False, short_ids=True),
    "meta.": Capabilities(result_status=False),
    "ai21.": Capabilities(result_status=False),
    "deepseek.": Capabilities(result_status=False),
    "deepseek.v3": _OPEN,
    "google.gemma-3": _OPEN,
    "minimax.": _OPEN,
    "moonshot": _OPEN,
    "nvidia.nemotron": _OPEN,
    "openai.": Capabilities(json_schema=True, result_status=False, thinking="effort"),
    "qwen.": _OPEN,
    "writer.": Capabilities(result_status=False),
    "zai.": _OPEN,
}
_UNKNOWN: Final = Capabilities()
_GEOGRAPHY = re.compile(r"^(?:us|us-gov|eu|apac|jp|au|ca|sa|me|af|global)\.")


def capabilities_of(model_id: str) -> Capabilities:
    """What the table says of a model id, an inference profile's id, or an ARN that ends in one of them."""
    id = _GEOGRAPHY.sub("", model_id.rpartition("/")[2].lower())
    fitting = [beginning for beginning in _BY_ID if id.startswith(beginning)]
    return _BY_ID[max(fitting, key=len)] if fitting else _UNKNOWN
