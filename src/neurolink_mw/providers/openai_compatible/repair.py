"""The one repair of a refused request: leave out the optional parameter that the server says it does not know. Pure.

Servers of this format support different subsets of its parameters, and so do models of one server. The error names
the parameter, so the call can be made good once without guessing.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ...protocol import JSON, CallWarning, camel_case
from ..common.errors import parsed
from ..common.refusal import refused_names
from .errors import error_details
from .request import SETTINGS

# Without these it would be another call. A tool list that is dropped changes what the model may do.
PROTECTED: Final = frozenset({"model", "messages", "tools", "stream"})

_FEATURES: Final = {
    **{parameter: camel_case(name) for name, parameter in SETTINGS.items()},
    "max_completion_tokens": "maxOutputTokens",
    "stop": "stopSequences",
    "response_format": "responseFormat",
    "tool_choice": "toolChoice",
    "reasoning_effort": "reasoning",
    "verbosity": "textVerbosity",
    "stream_options": "includeUsage",
}
_CODES = frozenset(
    {
        *("unsupported_parameter", "unknown_parameter", "unsupported_value", "unrecognized_parameter"),
        *("extra_forbidden", "value_error.extra"),
    }
)
_REFUSAL = re.compile(
    r"(?i)unsupported|unrecognized|unknown|unexpected|not (?:supported|permitted|allowed)|does(?: not|n't) support"
)


_READ_LENGTH = 4096


class Repair(NamedTuple):
    """A request to send instead, and the warning that says what became of the option."""

    native: dict[str, JSON]
    warning: CallWarning


def repair(status: int, body: bytes, native: dict[str, JSON]) -> Repair | None:
    """What to send instead of a request that was answered with `status` and `body`; None where nothing can be done."""
    if status not in (400, 422):
        return None
    parameter = _refused_parameter(body, native)
    if parameter is None:
        return None
    repaired = {name: item for name, item in native.items() if name != parameter}
    feature = _FEATURES.get(parameter, parameter)
    if parameter == "max_tokens" and "max_completion_tokens" not in native:
        # Reasoning models of OpenAI take the same limit under its newer name only.
        repaired["max_completion_tokens"] = native["max_tokens"]
        details = "the server refused max_tokens, so it was sent as max_completion_tokens"
        return Repair(repaired, CallWarning("compatibility", feature, details))
    details = f"the server refused {parameter}, so the request was sent again without it"
    return Repair(repaired, CallWarning("unsupported", feature, details))


def _refused_parameter(body: bytes, native: dict[str, JSON]) -> str | None:
    details = error_details(parsed(body))
    message = (details.message or "")[:_READ_LENGTH]
    named: list[str] = []
    refusal = {details.code, details.type} & _CODES or _REFUSAL.search(message)
    if details.param and refusal:
        named.append(details.param)
    else:
        named.extend(refused_names(message))
    for name in named:
        parameter = name.partition(".")[0].partition("[")[0]
        if parameter in native:
            # Without a choice `none` the model may call what the caller does not want called.
            forbids = parameter == "tool_choice" and native[parameter] == "none"
            return None if parameter in PROTECTED or forbids else parameter
    return None
